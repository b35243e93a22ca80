"""Rows of a unit that lie anywhere: how they come in order, and that nothing shows in what order they came."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import docrecall as dr
from docrecall.contract import hits
from docrecall.contract.hits import find_offenders, placed
from docrecall.measures.grammar import parse_all
from docrecall.options import Options
from docrecall.score import open_tables, prepare
from docrecall.sources.table import Table
from tests.small import write

MEASURES = ["doc_recall@1,3", "doc_ndcg@3docs"]
N_QUERIES = 200


def a_log(seed: int, first: int = 1) -> pl.DataFrame:
    """Queries with 1 to 30 hits, sorted."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 31, N_QUERIES)
    query = np.repeat(np.arange(N_QUERIES), sizes)
    rank = np.concatenate([np.arange(first, n + first) for n in sizes])
    docs = draw.integers(0, 9, len(query))
    return pl.DataFrame({"query_id": [f"q{q:04}" for q in query], "rank": rank, "doc_id": [f"d{d}" for d in docs]})


def labels() -> pl.DataFrame:
    return pl.DataFrame({"query_id": [f"q{q:04}" for q in range(N_QUERIES)], "doc_id": ["d3"] * N_QUERIES})


def faulty(log: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Rows twice, ranks that two documents have, ranks and documents that are missing, and one far out of range."""
    draw = np.random.default_rng(seed)

    def some() -> pl.Series:
        return pl.arange(log.height, eager=True).is_in(draw.integers(0, log.height, 4).tolist())

    log = pl.concat([log, log.filter(some()), log.filter(some()).with_columns(doc_id=pl.lit("other"))])
    return log.with_columns(
        rank=pl.when(some()).then(None).when(some()).then(-7).when(some()).then(1 << 41).otherwise(pl.col("rank")),
        doc_id=pl.when(some()).then(None).otherwise(pl.col("doc_id")),
    )


def told(scores: dr.Scores) -> list[pl.DataFrame]:
    rejected = scores.rejected.collect().drop("file")
    return [
        scores.per_query,
        scores.summary(),
        scores.accounting,
        scores.findings.drop("file", strict=False),
        scores.rows,
        rejected.sort(rejected.columns),
    ]


def scored(folder: Path, parts: list[pl.DataFrame], qrels: Path, batch_rows: int = 10**6) -> list[pl.DataFrame]:
    for number, part in enumerate(parts):
        write(folder / f"{number}.parquet", part)
    return told(dr.score(folder, qrels, MEASURES, batch_rows=batch_rows, **asdict(Options(on_bad_rows="reject"))))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("batch_rows", [100, 1_000, 10**6])
@pytest.mark.parametrize("change", [lambda log, _: log, faulty], ids=["clean", "faulty"])
def test_random_order_shows_nowhere(
    change: Callable[[pl.DataFrame, int], pl.DataFrame], batch_rows: int, seed: int, tmp_path: Path
) -> None:
    """Rows in random order over some files, sorted in as many shards as may be, give what one sorted file gives."""
    log = change(a_log(seed), seed)
    qrels = write(tmp_path / "qrels.parquet", labels())
    where = np.random.default_rng(seed).integers(0, 4, log.height)
    mixed = log.sample(fraction=1, shuffle=True, seed=seed)
    parts = [mixed.filter(pl.Series(where == number)) for number in range(4)]

    one = scored(tmp_path / "one", [log.sort("query_id", "rank", "doc_id")], qrels)
    many = scored(tmp_path / "many", parts, qrels, batch_rows)

    for expected, found in zip(one, many, strict=True):
        assert found.equals(expected)


@pytest.mark.parametrize("key", [["query_id"], ["run_id", "query_id"]], ids=["queries", "runs"])
@pytest.mark.parametrize("first", [0, 1])
def test_one_word_brings_rows_in_order(key: list[str], first: int) -> None:
    """Rows of a unit stand together by rank, and the column of places is the same for rows of one rank alone."""
    log = a_log(1, first).with_columns(run_id=pl.lit("a"))
    log = pl.concat([log, log.head(1), log.with_columns(run_id=pl.lit("b"))]).sample(fraction=1, shuffle=True, seed=2)

    rows, place = placed(log, key, log.columns, Options(rank_base=first))  # type: ignore[arg-type]

    assert place == ["_order"]
    units = rows.select(pl.struct(key).rle().struct.field("value")).to_series()
    assert units.n_unique() == len(units)
    assert rows.select((pl.col("rank").diff().over(key) >= 0).all()).item()
    assert rows["_order"].n_unique() == log.select(*key, "rank").n_unique()
    assert rows.drop("_order").sort(log.columns).equals(log.sort(log.columns))


@pytest.mark.parametrize("name", ["_WORD", "_MOST_PLACE_BITS"])
def test_units_that_share_a_word_are_numbered(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no bit tells units apart, or none is left for them, units are numbered, and the order is as good."""
    log = a_log(1).sample(fraction=1, shuffle=True, seed=2)
    monkeypatch.setattr(hits, name, 0)

    rows, place = placed(log, ["query_id"], log.columns, Options())

    assert place == ["_unit", "rank"]
    assert rows["query_id"].rle().len() == N_QUERIES
    assert rows.drop("_unit").sort("query_id", "rank").equals(log.sort("query_id", "rank"))


def opened(folder: Path, log: pl.DataFrame) -> Table:
    options = Options()
    tables = open_tables(write(folder / "hits.parquet", log), {"qrels": write(folder / "qrels.parquet", labels())})
    return prepare(tables, parse_all(MEASURES), options).inputs.logs[0]


def test_ids_are_read_for_offenders_only_where_there_are_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clean log is told from its ranks; a null among its documents, or a bad rank, is found with its query."""
    read: list[list[str]] = []
    original = Table.read
    monkeypatch.setattr(Table, "read", lambda t, c, where=None: read.append(list(c)) or original(t, c, where))
    log, at = a_log(0), pl.arange(a_log(0).height, eager=True)
    no_doc = log.with_columns(doc_id=pl.when(at == 70).then(None).otherwise("doc_id"))
    bad_rank = log.with_columns(rank=pl.when(at == 70).then(0).otherwise("rank"))

    clean = find_offenders(opened(tmp_path / "clean", log), Options())
    assert not clean
    assert read == [["rank"]]
    for name, rows, code in (("doc", no_doc, "null_id"), ("rank", bad_rank, "rank_zero")):
        found = find_offenders(opened(tmp_path / name, rows), Options())
        assert [f["code"].to_list() for f in found] == [[code]]
        assert found[0]["examples"].to_list() == [[log["query_id"][70]]]
