"""Logs of several writers, each sorted: their files are merged, and nothing of the results shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import docrecall as dr
from docrecall.measures.grammar import parse_all
from docrecall.options import Options
from docrecall.plan import Plan
from docrecall.proof import prove_sorted
from docrecall.score import open_tables, prepare
from tests.small import write

MEASURES = ["doc_recall@1,3", "doc_ndcg@3docs", "repeat_share@5"]
N_QUERIES, BATCH = 300, 200


def a_log(seed: int = 0) -> pl.DataFrame:
    """Queries with 1 to 12 hits of few documents, sorted."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 13, N_QUERIES)
    query = np.repeat(np.arange(N_QUERIES), sizes)
    rank = np.concatenate([np.arange(1, n + 1) for n in sizes])
    docs = draw.integers(0, 6, len(query))
    return pl.DataFrame({"query_id": [f"q{q:04}" for q in query], "rank": rank, "doc_id": [f"d{d}" for d in docs]})


def labels() -> pl.DataFrame:
    return pl.DataFrame(
        {"query_id": [f"q{q:04}" for q in range(N_QUERIES)] * 2, "doc_id": ["d0"] * N_QUERIES + ["d3"] * N_QUERIES}
    )


def in_turn(log: pl.DataFrame) -> list[pl.DataFrame]:
    return [log.gather_every(3, offset) for offset in range(3)]


def unevenly(log: pl.DataFrame) -> list[pl.DataFrame]:
    """One file has all of the first half, one next to nothing, one no row, and the rest goes in turn."""
    half = log.height // 2
    rest = log.slice(half)
    few = pl.arange(rest.height, eager=True) % 40 == 3
    even = pl.arange(rest.height, eager=True) % 2 == 0
    first = pl.concat([log.head(half), rest.filter(even & ~few)])
    return [first, rest.filter(few), log.clear(), rest.filter(~even & ~few)]


def a_repeat(log: pl.DataFrame) -> pl.DataFrame:
    """A row is delivered twice, and one rank has two documents."""
    odd = log.slice(700, 1).with_columns(doc_id=pl.lit("other"))
    return pl.concat([log, log.slice(100, 2), odd]).sort("query_id", maintain_order=True)


def bad_rows(log: pl.DataFrame) -> pl.DataFrame:
    at = pl.arange(log.height, eager=True)
    return log.with_columns(
        rank=pl.when(at == 50).then(None).when(at == 333).then(-7).otherwise(pl.col("rank")),
        doc_id=pl.when(at == 900).then(None).otherwise(pl.col("doc_id")),
    )


def requests(log: pl.DataFrame) -> pl.DataFrame:
    """Sorted by request, of which neighbours ask the same query far away."""
    return log.with_columns(
        request_id=pl.col("query_id").str.replace("q", "r"),
        query_id=pl.lit("q00") + pl.col("query_id").str.slice(3),
    )


CHANGES: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "as it is": lambda log: log,
    "gaps between ranks": lambda log: log.with_columns(pl.col("rank") * 3 - 1),
    "ranks as floats": lambda log: log.with_columns(pl.col("rank").cast(pl.Float64)),
    "ranks beyond 2^31": lambda log: log.with_columns(pl.col("rank") + (1 << 40)),
    "ids as integers": lambda log: log.with_columns(pl.col("query_id").str.slice(1).cast(pl.Int64)),
    "rows twice": a_repeat,
    "bad rows": bad_rows,
    "two runs": lambda log: pl.concat(
        [log.with_columns(run_id=pl.lit("b")), log.with_columns(run_id=pl.lit("a"))]
    ).sort("query_id", maintain_order=True),
    "requests": requests,
    "scores in the place of ranks": lambda log: log.select(pl.exclude("rank"), score=-pl.col("rank").cast(pl.Float64)),
}


def told(scores: dr.Scores) -> list[pl.DataFrame]:
    return [
        scores.per_query,
        scores.summary(),
        scores.accounting,
        scores.findings.drop("file", strict=False),
        scores.rows,
        scores.decisions,
        scores.rejected.collect().drop("file"),
    ]


def scored(folder: Path, parts: list[pl.DataFrame], qrels: Path, batch_rows: int = 10**6) -> tuple[dr.Scores, Plan]:
    for number, part in enumerate(parts):
        write(folder / f"{number}.parquet", part)
    options = Options(on_bad_rows="reject", order="rank" if "rank" in parts[0].columns else "score")
    scores = dr.score(folder, qrels, MEASURES, batch_rows=batch_rows, **asdict(options))
    log = prepare(open_tables(folder, {"qrels": qrels}), parse_all(MEASURES), options).inputs.logs[0]
    return scores, Plan(log, prove_sorted(log, options), batch_rows)


@pytest.mark.parametrize("writers", [in_turn, unevenly])
@pytest.mark.parametrize("change", CHANGES)
def test_merged_files_give_what_one_file_gives(
    change: str, writers: Callable[[pl.DataFrame], list[pl.DataFrame]], tmp_path: Path
) -> None:
    """Batches are slices of all files, brought in order; values, accounts, findings and bad rows stay the same."""
    log = CHANGES[change](a_log())
    whole_numbers = log.schema["query_id"] == pl.Int64
    gold = labels().with_columns(pl.col("query_id").str.slice(1).cast(pl.Int64)) if whole_numbers else labels()
    qrels = write(tmp_path / "qrels.parquet", gold)

    one, _ = scored(tmp_path / "one", [log], qrels)
    merged, plan = scored(tmp_path / "parts", writers(log), qrels, batch_rows=BATCH)

    assert plan.way == "merge"
    assert plan.n_shards > 3
    for expected, found in zip(told(one), told(merged), strict=True):
        assert found.equals(expected)


def test_stretches_hold_every_row_once(tmp_path: Path) -> None:
    """Rows of a query are in one frame, frames follow the order of queries, and no row is lost or doubled."""
    qrels = write(tmp_path / "qrels.parquet", labels())
    log = a_log()
    _, plan = scored(tmp_path / "parts", unevenly(log), qrels, batch_rows=BATCH)

    frames = list(plan.shards(0))

    together = pl.concat(frames).select(log.columns)
    assert together.equals(log)
    assert len(frames) == plan.n_shards
    seen = [set(frame["query_id"]) for frame in frames]
    assert sum(map(len, seen)) == len(set.union(*seen))
    assert [f.height for f in plan.shards(2)] == [f.height for f in frames[2:]]


@pytest.mark.parametrize(
    "writers",
    [
        pytest.param(lambda log: [log.sample(fraction=1, shuffle=True, seed=1)], id="one file"),
        pytest.param(lambda log: [in_turn(log)[0], in_turn(log)[1].reverse(), in_turn(log)[2]], id="one is not sorted"),
        pytest.param(lambda log: [log.gather_every(70, i) for i in range(70)], id="more files than are held open"),
        pytest.param(
            lambda log: [
                part.with_columns(query_id=pl.when(pl.arange(part.height) == 500).then(None).otherwise("query_id"))
                for part in in_turn(log)
            ],
            id="a query is missing",
        ),
    ],
)
def test_other_logs_are_not_merged(writers: Callable[[pl.DataFrame], list[pl.DataFrame]], tmp_path: Path) -> None:
    """Where a file is not sorted, or they are too many, rows come together as before, with the same results."""
    qrels = write(tmp_path / "qrels.parquet", labels())
    parts = writers(a_log())
    one, _ = scored(tmp_path / "one", [pl.concat(parts)], qrels)

    other, plan = scored(tmp_path / "parts", parts, qrels, batch_rows=BATCH)

    assert plan.way in ("scans", "spill")
    for expected, found in zip(told(one), told(other), strict=True):
        assert found.equals(expected)
