"""Every night a sample is scored a second time by the definition; one bit of difference stops the night."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from docrecall import reference
from docrecall.errors import CanaryError
from docrecall.measures.registry import REGISTRY
from docrecall.nightly.canary import Canary
from tests.nightly.nights import DAY, job, leftovers, run, store_of

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
    import polars as pl  # noqa: PLC0415

    from docrecall.kernel.per_query import BatchScores  # noqa: PLC0415

    units = pl.DataFrame({"run_id": ["a"] * 40, "query_id": [f"q{k}" for k in range(40)], "status": "scored"})
    nothing = pl.DataFrame()
    empty = pl.Series(dtype=pl.String)

    def of(rows: pl.DataFrame) -> BatchScores:
        return BatchScores(rows, 0, 0, 0, 0, 0, met=True, gold_chunks=nothing, altered_docs=empty, findings=[])

    drawn = []
    for parts in ([units], [units[:13], units[13:14], units[14:]], [units.reverse()]):
        canary = Canary(6, "2026-11-30", [])
        for part in parts:
            canary.look(of(part), None)
        drawn.append([taken.unit["query_id"] for taken in canary._taken])
    assert drawn[0] == drawn[1] == drawn[2]
    assert len(set(drawn[0])) == 6
