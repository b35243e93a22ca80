"""Changes of a log that change nothing that is scored give the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall import reference, shards
from docrecall.contract.needs import needs_of
from docrecall.contract.schema import settle
from docrecall.measures.registry import REGISTRY
from docrecall.options import Options
from docrecall.proof import prove_sorted
from docrecall.score import open_tables
from tests.agreement.case import write_pieces
from tests.agreement.strategies import build

NOT_OF_DOCS = ("chunk_precision", "chunk_rr")  # they have no value under `@kdocs`
CUTS = ("3", "10", "3docs", "all", "25tokens", "context")
ALL = [f"{name}@{cut}" for name in REGISTRY for cut in CUTS if not (name in NOT_OF_DOCS and cut.endswith("docs"))]
POLICIES = [
    {},
    {"ranks": "recount"},
    {"order": "score"},
    {"order": "trec_eval"},
    {"universe": "hits", "min_relevance": 2},
    {"rank_base": 0},
]
SAME_FILES = ("per_query.parquet", "accounting.parquet", "findings.parquet", "summary.parquet", "summary.json")


def make_log(seed: int, n_units: int = 40) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Hits of two runs, sorted, with repeats, gaps, tied scores, unjudged documents and queries that have no labels."""
    r = Random(seed)
    hits, labels = [], []
    for run in ("a", "b"):
        for q in range(n_units):
            rank = 0
            for _ in range(r.choice([0, 1, 5, 20])):
                rank += r.choice([1, 1, 1, 2])
                place = r.randint(0, 9)  # a chunk has a place in its document, which it keeps
                chunk = (f"c{place}", 4 * place, 4 * place + 5, place)
                doc = f"d{r.randint(0, 12):02}"
                hits.append((run, f"q{q:03}", rank, doc, *chunk, r.random() < 0.6, float(r.randint(-3, 3))))
    for q in range(n_units + 4):
        labels += [(f"q{q:03}", f"d{d:02}", r.randint(-1, 3)) for d in r.sample(range(15), 4) if q % 7]
    schema = {"run_id": str, "query_id": str, "rank": int, "doc_id": str, "chunk_id": str, "chunk_start": int}
    schema |= {"chunk_end": int, "n_tokens": int, "in_context": bool, "score": float}
    qrels = pl.DataFrame(labels, schema={"query_id": str, "doc_id": str, "relevance": int}, orient="row")
    return pl.DataFrame(hits, schema=schema, orient="row"), qrels


def make_evidence(n_units: int = 44) -> pl.DataFrame:
    """Passages for the queries of `make_log`: spans, chunks and alternatives, in documents that are labelled or not."""
    r = Random(0)
    rows = []
    for q in range(n_units):
        for number in range(r.randint(0, 4)):
            start = r.randint(0, 39)
            span = (start, start + r.randint(1, 9)) if r.random() < 0.8 else (None, None)
            chunk = None if span[0] is not None and r.random() < 0.5 else f"c{r.randint(0, 9)}"
            rows.append((f"q{q:03}", f"e{number // 2}", f"d{r.randint(0, 12):02}", *span, chunk))
    schema = {"query_id": str, "evidence_id": str, "doc_id": str, "start": int, "end": int, "chunk_id": str}
    return pl.DataFrame(rows, schema=schema, orient="row").unique(maintain_order=True)


EVIDENCE = make_evidence()


def score(hits: Any, qrels: pl.DataFrame, measures: list[str], **more: Any) -> dr.Scores:
    """Score with the evidence that all logs here share."""
    return dr.score(hits, qrels, measures, **{"evidence": EVIDENCE} | more)


def same(a: dr.Scores, b: dr.Scores, findings: bool = True) -> None:
    """Everything that a run says is equal: values to the bit, order, types."""
    assert_frame_equal(a.per_query, b.per_query, check_exact=True)
    assert_frame_equal(a.summary(), b.summary(), check_exact=True)
    assert_frame_equal(a.accounting, b.accounting)
    assert_frame_equal(a.rows, b.rows)
    assert_frame_equal(a.matches.collect(), b.matches.collect())
    if findings:
        assert_frame_equal(a.findings, b.findings)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_row_order_does_not_matter(policy: dict[str, Any]):
    """Shuffled hits and labels give the same results as sorted ones."""
    hits, qrels = make_log(1)

    shuffled = hits.sample(fraction=1, shuffle=True, seed=3), qrels.sample(fraction=1, shuffle=True, seed=4)

    same(score(hits, qrels, ALL, **policy), score(*shuffled, ALL, **policy))


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("batch_rows", [1, 17, 100])
def test_batch_size_does_not_matter(policy: dict[str, Any], batch_rows: int):
    """Any batch size gives the same results, for sorted rows and for others."""
    hits, qrels = make_log(2, n_units=8)
    whole = score(hits, qrels, ALL, **policy)

    same(whole, score(hits, qrels, ALL, batch_rows=batch_rows, **policy))
    scattered = hits.sample(fraction=1, shuffle=True, seed=5)
    same(whole, score(scattered, qrels, ALL, batch_rows=batch_rows, **policy))


@pytest.mark.parametrize("cuts", [(1,), (200, 201, 202), (0, 137, 10_000), tuple(range(0, 700, 50))], ids=str)
@pytest.mark.parametrize("policy", POLICIES[:4], ids=str)
def test_file_split_does_not_matter(policy: dict[str, Any], cuts: tuple[int, ...], tmp_path: Path):
    """One file, many files and files cut inside a unit or without rows give the same results as the frame."""
    hits, qrels = make_log(3)
    edges = sorted({0, hits.height, *(min(cut, hits.height) for cut in cuts)})
    pieces = [hits.slice(a, b - a) for a, b in pairwise(edges)]
    folder = write_pieces([*pieces, hits.clear()], tmp_path / "hits")

    frame, files = (score(h, qrels, ALL, batch_rows=150, **policy) for h in (hits, folder))

    same(frame, files)


def test_one_run_per_table_is_as_a_run_column():
    """A dict run -> table gives the same results as one table with a run_id column."""
    hits, qrels = make_log(4)
    runs = {run: rows.drop("run_id") for (run,), rows in hits.partition_by("run_id", as_dict=True).items()}

    same(score(hits, qrels, ALL), score(runs, qrels, ALL))


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_names_of_ids_do_not_matter(policy: dict[str, Any]):
    """New ids that sort as the old ones did, of another kind even, change no number."""
    hits, qrels = make_log(5)
    numbers = [pl.col("query_id").str.slice(1).cast(int) - 20, pl.col("doc_id").str.slice(1).cast(int) + 1000]

    texts = score(hits, qrels, ALL, **policy).per_query
    other = [table.with_columns(numbers) for table in (hits, qrels, EVIDENCE)]
    renamed = score(*other[:2], ALL, evidence=other[2], **policy).per_query

    assert_frame_equal(renamed.drop("query_id"), texts.drop("query_id"), check_exact=True)
    assert renamed["query_id"].to_list() == [int(q[1:]) - 20 for q in texts["query_id"]]


def test_unjudged_documents_below_the_cut_do_not_matter():
    """Rows under the cut that hold documents without labels change nothing but the number of hits."""
    hits, qrels = make_log(6)
    measures = [f"{name}@{cut}" for name in REGISTRY for cut in ("10", "40")]
    last = hits.group_by("run_id", "query_id").agg(pl.col("rank").max() + 1)
    filler = last.select(
        "run_id",
        "query_id",
        pl.max_horizontal("rank", 41),
        doc_id=pl.lit("unjudged"),
        chunk_id=pl.lit("c"),
        chunk_start=pl.lit(0, pl.Int64),
        chunk_end=pl.lit(90, pl.Int64),
        n_tokens=pl.lit(9, pl.Int64),
        in_context=pl.lit(value=False),
        score=pl.lit(-9.0),
    )

    before = score(hits, qrels, measures).per_query.drop("n_hits")
    after = score(pl.concat([hits, filler]), qrels, measures).per_query.drop("n_hits")

    assert_frame_equal(before, after, check_exact=True)


def test_sorted_rows_are_not_brought_together_and_others_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The sorted way, repeated scans and temporary files are each really taken, and give the same results."""
    hits, qrels = make_log(7)
    scattered = hits.sample(fraction=1, shuffle=True, seed=8)
    folder = write_pieces([scattered.head(300), scattered.slice(300)], tmp_path / "hits")
    taken = []
    for name in ("_shard", "_spilled"):
        original = getattr(shards, name)
        monkeypatch.setattr(shards, name, lambda *a, _name=name, _f=original: taken.append(_name) or _f(*a))

    for log, is_sorted in ((hits, True), (scattered, False)):
        opened = open_tables(log, {"qrels": qrels})
        settled = settle(opened, needs_of(opened, (), Options()), Options())
        assert (prove_sorted(settled.logs[0], Options()).units is not None) == is_sorted
    way = {}
    for name, log, batch_rows in [
        ("sorted", hits, 100),
        ("one shard", folder, 10_000),
        ("scans", folder, 250),
        ("files", folder, 40),
    ]:
        way[name] = score(log, qrels, ALL, batch_rows=batch_rows)
        way[name + ": ways"] = set(taken)
        taken.clear()

    ways = [way[f"{n}: ways"] for n in ("sorted", "one shard", "scans", "files")]
    assert ways == [set(), set(), {"_shard"}, {"_shard", "_spilled"}]
    for name in ("one shard", "scans", "files"):
        same(way["sorted"], way[name])


@pytest.mark.parametrize("policy", [{}, {"order": "score"}], ids=str)
def test_written_bytes_do_not_depend_on_batches_and_files(policy: dict[str, Any], tmp_path: Path):
    """`out=DIR` writes files with the same SHA-256 whatever the batch size, the row order and the file split."""
    hits, qrels = make_log(9)
    ways = {"frame": (hits, 1 << 30), "small": (hits, 50), "rows": (hits.sample(fraction=1, shuffle=True, seed=1), 90)}
    ways["files"] = (write_pieces([hits.head(111), hits.slice(111)], tmp_path / "hits"), 70)

    digests = {}
    for name, (log, batch_rows) in ways.items():
        score(log, qrels, ALL, out=tmp_path / name, batch_rows=batch_rows, **policy)
        digests[name] = [hashlib.sha256((tmp_path / name / file).read_bytes()).hexdigest() for file in SAME_FILES]

    assert all(digest == digests["frame"] for digest in digests.values())


def test_thread_counts_do_not_matter(tmp_path: Path):
    """One, two and four threads of the engine write the same bytes."""
    hits, qrels = make_log(10)
    hits.sample(fraction=1, shuffle=True, seed=2).write_parquet(tmp_path / "hits.parquet")
    qrels.write_parquet(tmp_path / "qrels.parquet")
    EVIDENCE.write_parquet(tmp_path / "evidence.parquet")
    code = (
        "import sys, json, docrecall as dr; hits, qrels, evidence, out, measures = sys.argv[1:]; "
        "dr.score(hits, qrels, json.loads(measures), evidence=evidence, out=out, batch_rows=100)"
    )

    digests = set()
    for threads in ("1", "2", "4"):
        out = tmp_path / threads
        tables = [str(tmp_path / f"{name}.parquet") for name in ("hits", "qrels", "evidence")]
        inputs = [*tables, str(out), json.dumps(ALL)]
        environment = {**os.environ, "POLARS_MAX_THREADS": threads}
        subprocess.run([sys.executable, "-c", code, *inputs], check=True, env=environment)
        digests.add(tuple(hashlib.sha256((out / file).read_bytes()).hexdigest() for file in SAME_FILES))

    assert len(digests) == 1


@pytest.mark.parametrize("unit", ["", "docs"])
def test_recall_never_falls_as_k_grows(unit: str):
    """A deeper cut reaches every document that a shallower one does."""
    hits, qrels = make_log(11)
    measures = [f"doc_recall@{k}{unit}" for k in range(1, 30)] + ["doc_recall@all"]

    values = score(hits, qrels, measures).per_query.filter(status="scored").select(measures).to_numpy()

    assert len(values) > 20
    assert (np.diff(values, axis=1) >= 0).all()


def test_values_are_in_the_range_of_their_definition():
    """Measures with a `high` lie between 0 and it; the others have values above 1, so that no bound is missing."""
    seen: dict[str, list[float]] = {name: [] for name in REGISTRY}
    for seed in range(12):
        hits, qrels = make_log(seed + 20)
        frame = score(hits, qrels, ALL).per_query
        for measure in ALL:
            seen[measure.split("@")[0]] += frame[measure].drop_nulls().to_list()

    unbounded = {name for name, definition in REGISTRY.items() if definition.high is None}
    assert unbounded == {"naive_recall", "distinct_docs", "context_chunks", "context_tokens"}
    for name, definition in REGISTRY.items():
        assert min(seen[name]) >= 0, name
        if definition.high is None:
            assert max(seen[name]) > 1, name
        else:
            assert max(seen[name]) <= definition.high, name


def test_registry_and_reference_have_the_same_measures():
    """Every definition has its reference function and the other way round, in the same order."""
    assert list(REGISTRY) == list(reference.MEASURES)
    assert all(name == definition.name for name, definition in REGISTRY.items())


WITHOUT_HITS = [
    (name, cut)
    for name in REGISTRY
    for cut in ("1", "10", "1docs", "10docs", "all", "7tokens", "context")
    if not (name in NOT_OF_DOCS and cut.endswith("docs"))
]


@pytest.mark.parametrize(("name", "cut"), WITHOUT_HITS)
def test_value_without_hits_is_that_of_the_definition(name: str, cut: str):
    """A scored unit without hits has the value `no_hits`, in the columnar code and in the reference."""
    hits = make_log(0)[0].head(1).drop("run_id").with_columns(query_id=pl.lit("other"), doc_id=pl.lit("a"))
    qrels = pl.DataFrame({"query_id": ["q", "other"], "doc_id": ["a", "a"]})
    passage = {"query_id": ["q"], "evidence_id": ["e"], "doc_id": ["a"], "start": [0], "end": [9], "chunk_id": ["c"]}
    judged = reference.Judged({"a": reference.Label(1)}, [reference.Passage("e", "a", (0, 9), "c")])
    taken = {"1": reference.cut_chunks([], 1), "10": reference.cut_chunks([], 10), "all": reference.cut_all([])}
    taken |= {"1docs": reference.cut_docs([], 1), "10docs": reference.cut_docs([], 10)}
    taken |= {"7tokens": reference.cut_tokens([], 7), "context": reference.cut_context([])}

    scores = score(hits, qrels, [f"{name}@{cut}"], evidence=pl.DataFrame(passage))
    value = scores.per_query.filter(query_id="q")[f"{name}@{cut}"].item()

    assert value == REGISTRY[name].no_hits
    assert reference.value(name, taken[cut], judged) == REGISTRY[name].no_hits


def test_generated_cases_do_not_depend_on_form(tmp_path: Path):
    """Generated logs with all their faults say the same as frame, LazyFrame, Arrow table and files, in any batches."""
    n = 0
    for seed in range(400, 425):
        case = replace(build(Random(seed), 12), out=False)
        outcomes = []
        for form, batch_rows in [("frame", 1 << 30), ("lazy", 40), ("arrow", 25), ("files", 1 << 30), ("files", 30)]:
            n += 1
            try:
                scores = replace(case, form=form, batch_rows=batch_rows).score(tmp_path / str(n))
                outcomes.append((scores.per_query, scores.findings.drop("file")))
            except dr.DataError as error:
                outcomes.append((pl.DataFrame(), error.findings.drop("file")))
        for per_query, findings in outcomes[1:]:
            assert_frame_equal(per_query, outcomes[0][0], check_exact=True)
            assert_frame_equal(findings, outcomes[0][1])
