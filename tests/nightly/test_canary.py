"""Every night a sample is scored a second time by the definition; one bit of difference stops the night."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from docrecall import reference
from docrecall.errors import CanaryError
from docrecall.kernel.labels import Labels
from docrecall.measures.registry import REGISTRY
from docrecall.nightly.canary import Canary
from tests.nightly.nights import DAY, job, leftovers, run, store_of
from tests.small import write

TOPICS = Path(__file__).parents[2] / "data" / "topics"


def topics(folder: Path, options: str = "", measures: str = "") -> Path:
    """A night of the example data with every measure under every kind of cut."""
    names = [f"{m}@{cut}" for m in REGISTRY for cut in ("3", "4docs", "200tokens", "context", "all") if _has(m, cut)]
    names += ["evidence_recall(coverage=0.5,gap=2)@5"]
    tables = "\n".join(f'{n} = "{TOPICS}/{n}.parquet"' for n in ("qrels", "queries", "evidence", "documents"))
    config = folder / "nightly.toml"
    config.write_text(
        f'[store]\npath = "store"\n[sources]\nundated = true\nhits = "{TOPICS}/hits/bm25-w64.parquet"\n{tables}\n'
        "[score]\ncanary = 800\n"
        f'measures = {measures or str(names)}\n[options]\nuniverse = "all"\n{options}'
    )
    return config


def _has(measure: str, cut: str) -> bool:
    by_chunk = REGISTRY[measure].labels == "chunks"  # the example data has no gold chunks
    return not by_chunk and not (cut == "4docs" and not REGISTRY[measure].by_docs)


@pytest.mark.parametrize(
    "options", ["", "order = 'score'\nversions = 'ignore'\n", "stale = 'keep'\nmin_relevance = 2\n"]
)
def test_every_measure_agrees(options: str, tmp_path: Path) -> None:
    """All scored units of the example data, under every measure and cut, are the same to the last bit."""
    told = run(topics(tmp_path, options))
    assert told["canary"] == sum(r["accounting"]["n_scored"] for r in told["runs"]) > 140


def test_the_sample_has_the_size_that_is_asked_for(tmp_path: Path) -> None:
    """Of ten units three are drawn, the same ones whatever the batches."""
    config = job(tmp_path)
    config.write_text(config.read_text().replace("[score]", "[score]\ncanary = 3"))
    assert run(config)["canary"] == 3


def gold(folder: Path) -> Path:
    """A night with gold chunks, spans, versions, weights, a list and an index, as random as a small one can be."""
    rng = random.Random(7)
    docs, queries = [f"d{k}" for k in range(12)], [f"q{k}" for k in range(60)]
    hits = [
        {"query_id": q, "rank": rank, "doc_id": doc, "chunk_id": f"{doc}-{c}", "chunk_start": 10 * c,
         "chunk_end": 10 * c + 10, "n_tokens": rng.randrange(1, 60), "in_context": rng.random() < 0.7}
        for q in queries[:55]
        for rank, (doc, c) in enumerate(rng.sample([(d, c) for d in docs for c in range(3)], 12), start=1)
    ]  # fmt: skip
    evidence = [
        {"query_id": q, "evidence_id": f"e{n // 2}", "doc_id": doc, "chunk_id": f"{doc}-{c}" if n % 3 else None,
         "start": 10 * c if n % 3 != 1 else None, "end": 10 * c + 7 if n % 3 != 1 else None}
        for q in queries
        for n, (doc, c) in enumerate(rng.sample([(d, c) for d in docs for c in range(3)], rng.randrange(1, 6)))
    ]  # fmt: skip
    weights = [rng.choice([None, 0.1, 0.3, 2.0, 7.0]) for _ in queries]
    write(folder / "logs" / f"date={DAY}" / "x.parquet", pl.DataFrame(hits))
    write(folder / "labels" / "evidence.parquet", pl.DataFrame(evidence))
    write(folder / "labels" / "queries.parquet", pl.DataFrame({"query_id": queries, "weight": weights}))
    write(folder / "labels" / "documents.parquet", pl.DataFrame({"doc_id": docs[:10]}))
    cuts = ("3", "4docs", "100tokens", "context", "all")
    names = [f"{m}@{cut}" for m in REGISTRY for cut in cuts if cut != "4docs" or REGISTRY[m].by_docs]
    config = folder / "nightly.toml"
    tables = "\n".join(f'{n} = "labels/{n}.parquet"' for n in ("evidence", "queries", "documents"))
    config.write_text(
        f'[store]\npath = "store"\n[sources]\nhits = "logs/date={{date}}"\n{tables}\n'
        f'[score]\ncanary = 100\nmeasures = {names}\n[options]\nuniverse = "all"\n'
    )
    return config


def test_gold_chunks_weights_and_ceilings_agree(tmp_path: Path) -> None:
    """What the example data lacks is compared too: every measure of the registry, weights, and an index with holes."""
    config = gold(tmp_path)
    told = run(config)
    assert told["canary"] == 60
    means = told["runs"][0]["measures"]
    assert {name.partition("@")[0] for name in means} == set(REGISTRY)
    assert 0 < means["chunk_recall@all"]["mean"] < 1
    assert means["doc_recall@3"]["ceiling"] < 1
    assert means["doc_recall@3"]["n_eff"] < 60


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("chunk_rr", "chunk_rr@3 in 60"),
        ("ceiling", "ceiling in 60"),
        ("mean", "the mean of"),
        ("effective_size", "the mean"),
    ],
)
def test_every_part_of_the_definition_is_heeded(
    what: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the definition says otherwise, in its last bit, stops the night."""
    config = gold(tmp_path)
    text = config.read_text()
    start = text.index("measures")
    config.write_text(text[:start] + 'measures = ["doc_recall@3", "chunk_rr@3"]\n[options]\nuniverse = "all"\n')
    right = reference.value if what == "chunk_rr" else getattr(reference, what)

    def wrong(*args: Any, **params: Any) -> float | None:
        found = right(*args, **params)
        return math.nextafter(found or 0.0, 99.0) if what != "chunk_rr" or args[0] == what else found

    monkeypatch.setattr(reference, "value" if what == "chunk_rr" else what, wrong)
    with pytest.raises(CanaryError) as caught:
        run(config)
    assert named in str(caught.value)
    assert store_of(config).read(DAY) is None


def test_a_weight_that_differs_stops_the_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast path gives units another weight than their query has."""
    config = gold(tmp_path)
    right = Labels.annotate
    monkeypatch.setattr(Labels, "annotate", lambda self, units: right(self, units).with_columns(weight=pl.lit(1.5)))
    with pytest.raises(CanaryError, match="weight in 60"):
        run(config)


@pytest.mark.parametrize("size", [1, 7])
def test_a_difference_stops_the_night(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One last bit in one measure: exit code 70, the measure is named, and nothing is published."""
    config = job(tmp_path)
    config.write_text(config.read_text().replace("[score]", f"[score]\ncanary = {size}"))
    run(config)
    before = store_of(config).read(DAY)
    right = reference.value

    def wrong(measure: str, *args: Any, **params: Any) -> float | None:
        found = right(measure, *args, **params)
        return math.nextafter(found or 0.0, 2.0) if measure == "doc_rr" else found

    monkeypatch.setattr(reference, "value", wrong)
    config.write_text(config.read_text().replace("doc_recall@1", "doc_recall@2"))
    with pytest.raises(CanaryError) as caught:
        run(config)
    assert caught.value.exit_code == 70
    assert f"doc_rr@3 in {size}" in str(caught.value)
    after = store_of(config).read(DAY)
    assert before is not None
    assert after is not None
    assert after.manifest == before.manifest
    assert leftovers(config) == []


def test_no_canary(tmp_path: Path) -> None:
    """Canary = 0 switches it off, and the manifest says so."""
    config = job(tmp_path)
    config.write_text(config.read_text().replace("[score]", "[score]\ncanary = 0"))
    assert run(config)["canary"] == 0


def test_smallest_are_kept_over_batches() -> None:
    """What is drawn from two batches is what is drawn from both at once."""
    from docrecall.kernel.per_query import BatchScores  # noqa: PLC0415

    units = pl.DataFrame({"run_id": ["a"] * 40, "query_id": [f"q{k}" for k in range(40)], "status": "scored"})
    units = units.with_columns(weight=pl.lit(1.0), ceiling=pl.lit(None, pl.Float64))
    nothing = pl.DataFrame()

    def of(rows: pl.DataFrame) -> BatchScores:
        return BatchScores(rows, 0, 0, 0, 0, 0, met=True, gold_chunks=nothing, findings=[])

    drawn = []
    for parts in ([units], [units[:13], units[13:14], units[14:]], [units.reverse()]):
        canary = Canary(6, "2026-11-30", [])
        for part in parts:
            canary.look(of(part), None)
        drawn.append([taken.unit["query_id"] for taken in canary._taken])
    assert drawn[0] == drawn[1] == drawn[2]
    assert len(set(drawn[0])) == 6
