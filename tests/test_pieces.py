"""Labels that are read in pieces give what labels give that are held, to the last bit, or are held after all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.cli import main
from docrecall.contract import labels as check
from docrecall.contract import pieces
from docrecall.contract.known import check_known
from docrecall.kernel.labels import InPieces
from docrecall.measures.grammar import parse_all
from docrecall.options import Options
from docrecall.score import open_tables, prepare
from tests.small import write

N = 40  # queries
MEASURES = ("doc_recall@1,3", "doc_recall@3docs", "doc_ndcg@3docs")
Change = Callable[[pl.DataFrame], pl.DataFrame]


def hits() -> pl.DataFrame:
    """Three hits of each query, of documents that are named after it; the last query of five has none."""
    queries = [n for n in range(N) if n % 5 != 4]
    rows = [(f"q{n:02}", rank, f"d{(n * 7 + rank) % 23:02}") for n in queries for rank in (1, 2, 3)]
    return pl.DataFrame(rows, schema=["query_id", "rank", "doc_id"], orient="row")


def qrels() -> pl.DataFrame:
    """One to seven labels of each query, some of them judged and not relevant; two queries have none."""
    rows = [
        (f"q{n:02}", f"d{(n * 7 + 2 * at) % 23:02}", (n + at) % 3)
        for n in range(N)
        if n not in (11, 30)
        for at in range(1 + n % 7)
    ]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "relevance"], orient="row")


def force(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(check, "MOST_HELD", 0)
    monkeypatch.setattr(pieces, "PIECE_ROWS", size)


def everything(paths: list[Path], tables: dict[str, Any], **options: Any) -> dict[str, Any]:
    """All that a run tells, or how it ends."""
    try:
        scores = dr.score(
            tables["hits"], paths, MEASURES, **{k: v for k, v in tables.items() if k != "hits"}, **options
        )
    except dr.DataError as error:
        return {"error": str(error), "findings": error.findings}
    return {
        "per_query": scores.per_query,
        "summary": scores.summary(),
        "accounting": scores.accounting,
        "decisions": scores.decisions,
        "findings": scores.findings,
        "rows": scores.rows,
        "rejected": scores.rejected.collect(),
        "matches": scores.matches.collect(),
        "labels": dict(scores.labels),
    }


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, pl.DataFrame):
            assert_frame_equal(value, other[name], check_exact=True)
        else:
            assert value == other[name], name


def in_files(folder: Path, rows: pl.DataFrame, n_files: int) -> list[Path]:
    step = -(-rows.height // n_files)
    return [write(folder / f"{n:02}.parquet", rows.slice(n * step, step)) for n in range(n_files)]


def twice(rows: pl.DataFrame) -> pl.DataFrame:
    """Every third label once more, behind the others of its query."""
    return pl.concat([rows, rows.gather_every(3)]).sort("query_id", maintain_order=True)


def other_grades(rows: pl.DataFrame) -> pl.DataFrame:
    """Some labels once more with another grade."""
    more = rows.gather_every(9).with_columns(pl.col("relevance") + 1)
    return pl.concat([rows, more]).sort("query_id", maintain_order=True)


def some_null(rows: pl.DataFrame) -> pl.DataFrame:
    """Some labels name no document, others have no grade."""
    number = pl.int_range(pl.len())
    return rows.with_columns(pl.when(number % 11 != 3).then("doc_id"), pl.when(number % 13 != 4).then("relevance"))


def versioned(rows: pl.DataFrame) -> pl.DataFrame:
    """Labels of versions, some of several."""
    marked = rows.with_columns(doc_version=pl.format("v{}", pl.int_range(pl.len()) % 3))
    more = marked.gather_every(10).with_columns(doc_version=pl.lit("v9"))
    return pl.concat([marked, more]).sort("query_id", maintain_order=True)


def all_of_one_query(rows: pl.DataFrame) -> pl.DataFrame:
    """One query has most of the labels, more than fit a piece."""
    big = pl.DataFrame({"query_id": ["q20"] * 60, "doc_id": [f"e{n:02}" for n in range(60)], "relevance": [1] * 60})
    return pl.concat([rows, big.cast(rows.schema)]).sort("query_id", maintain_order=True)


def odd_ids(rows: pl.DataFrame) -> pl.DataFrame:
    """Some ids have a space behind them."""
    return rows.with_columns(
        pl.when(pl.col("doc_id") == "d07").then(pl.lit("d07 ")).otherwise("doc_id").alias("doc_id"),
        pl.when(pl.col("query_id") == "q33").then(pl.lit("q33 ")).otherwise("query_id").alias("query_id"),
    )


def nothing_good(rows: pl.DataFrame) -> pl.DataFrame:
    """The labels of neighbouring queries are all bad, so that some pieces have no good row."""
    return rows.with_columns(pl.when(~pl.col("query_id").is_between(pl.lit("q10"), pl.lit("q25"))).then("relevance"))


CHANGES: list[Change] = [
    lambda rows: rows, twice, other_grades, some_null, all_of_one_query, odd_ids, nothing_good,
    lambda rows: rows.drop("relevance"),
    lambda rows: pl.concat([rows, twice(rows).tail(7), rows.head(3)]),  # no longer sorted, at the end
    lambda rows: rows.with_columns(pl.when(pl.int_range(pl.len()) % 17 != 16).then("query_id").alias("query_id")),
    lambda rows: rows.reverse(),
]  # fmt: skip


@pytest.mark.parametrize("reject", [False, True])
@pytest.mark.parametrize(("size", "n_files"), [(1, 1), (5, 3)])
@pytest.mark.parametrize("change", CHANGES)
def test_pieces_change_nothing(
    change: Change, size: int, n_files: int, reject: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands at their ends: labels of one query, duplicates, clashes, bad rows, no good rows at all."""
    paths, tables = in_files(tmp_path, change(qrels()), n_files), {"hits": hits()}
    options = {"on_bad_rows": "reject" if reject else "error"}
    whole = everything(paths, tables, **options)
    force(monkeypatch, size)
    same(whole, everything(paths, tables, **options, batch_rows=10))


def documents() -> pl.DataFrame:
    """An index that lacks some documents and serves others at one version, and mirrors."""
    docs = [f"d{n:02}" for n in range(23) if n % 6]
    return pl.DataFrame(
        {
            "doc_id": docs,
            "doc_version": [f"v{n % 3}" for n in range(len(docs))],
            "alias_of": ["d01" if doc in ("d04", "d15") else None for doc in docs],
        }
    )


def queries() -> pl.DataFrame:
    """A list that lacks some queries, and states what the labels contradict."""
    names = [f"q{n:02}" for n in range(N) if n % 8]
    stated = ["answerable", "unanswerable", "unlabelled", None]
    return pl.DataFrame({"query_id": names, "label_status": [stated[n % 4] for n in range(len(names))]})


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("change", [lambda rows: rows, versioned, some_null])
@pytest.mark.parametrize("options", [{}, {"stale": "keep"}, {"versions": "ignore"}, {"universe": "hits"}])
def test_index_and_list_are_the_same_beside_pieces(
    options: dict[str, Any], change: Change, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Aliases, versions, staleness, conflicts with stated statuses, and what the index does not have."""
    with_versions = hits().with_columns(doc_version=pl.format("v{}", pl.int_range(pl.len()) % 3))
    tables = {"hits": with_versions, "documents": documents(), "queries": queries()}
    paths = in_files(tmp_path, change(qrels()), 2)
    whole = everything(paths, tables, on_bad_rows="reject", **options)
    force(monkeypatch, size)
    same(whole, everything(paths, tables, on_bad_rows="reject", batch_rows=9, **options))


def shuffled(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sample(fraction=1, shuffle=True, seed=1)


def by_request(rows: pl.DataFrame) -> pl.DataFrame:
    """Requests in another order than that of their queries."""
    number = pl.col("query_id").str.slice(1).cast(pl.Int64)
    return rows.with_columns(request_id=pl.format("r{}", (number * 17) % 97 + 100)).sort("request_id", "rank")


def in_runs(rows: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([rows.with_columns(run_id=pl.lit(run)) for run in ("a", "b")])


@pytest.mark.parametrize("change", [shuffled, by_request, in_runs, lambda rows: rows.sort("query_id", descending=True)])
def test_logs_of_any_order_meet_pieces(change: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that does not go along with the labels has them held; one of several runs goes along several times."""
    monkeypatch.setattr("docrecall.plan._MOST_TURNS", 3)
    tables, paths = {"hits": change(hits())}, in_files(tmp_path, qrels(), 1)
    whole = everything(paths, tables)
    force(monkeypatch, 6)
    same(whole, everything(paths, tables, batch_rows=11))


def test_integer_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids that are numbers are in the order of numbers."""
    number = pl.col("query_id", "doc_id").str.slice(1).cast(pl.Int64)
    tables, paths = {"hits": hits().with_columns(number)}, in_files(tmp_path, twice(qrels()).with_columns(number), 2)
    whole = everything(paths, tables)
    force(monkeypatch, 3)
    same(whole, everything(paths, tables, batch_rows=8))


def test_files_without_rows_among_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are no piece."""
    rows = qrels()
    empty = [write(tmp_path / f"{name}.parquet", rows.clear()) for name in ("a", "m", "z")]
    first, second = in_files(tmp_path, rows, 2)
    paths, tables = [empty[0], first, empty[1], second, empty[2]], {"hits": hits()}
    whole = everything(paths, tables)
    force(monkeypatch, 4)
    same(whole, everything(paths, tables))


def test_no_query_in_common_is_told_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same examples from both sides; and so is no document in common."""
    for column in ("query_id", "doc_id"):
        strange = hits().with_columns(pl.concat_str(pl.lit("x"), column).alias(column))
        with monkeypatch.context() as held:
            paths = in_files(tmp_path / column, qrels(), 1)
            whole = everything(paths, {"hits": strange})
            force(held, 4)
            found = everything(paths, {"hits": strange})
        assert "no id in common" in whole["error"]
        same(whole, found)


def test_sorted_labels_stay_in_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch reads the pieces that its queries need, and few are kept."""
    force(monkeypatch, 4)
    paths = in_files(tmp_path, qrels(), 2)
    settled = prepare(open_tables(hits(), {"qrels": paths}), parse_all(MEASURES), Options())
    labels = check_known(settled.inputs, settled.needs, Options()).labels.qrels
    assert isinstance(labels, InPieces)
    heights = [rows.height for rows in labels.frames()]
    assert len(heights) > 20
    assert max(heights) <= 7  # the labels of one query, if they are more than a piece holds
    asked = labels.rows_of(pl.Series(["q09", "nobody", "q05"]))
    wanted = qrels().filter(pl.col("query_id") == "q09")["doc_id"].to_list()
    assert asked.filter(unit=0)["doc_id"].to_list() == wanted
    assert asked["unit"].unique().sort().to_list() == [0, 2]
    assert len(labels._kept) <= 4
    assert_frame_equal(labels.held().rows.select(qrels().columns), qrels())


def test_the_plan_tells_how_labels_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where they stay in their files; and where the log does not go along with them, they do not."""
    force(monkeypatch, 6)
    labels = in_files(tmp_path / "qrels", qrels(), 1)[0]
    for log, told in ((hits(), True), (shuffled(hits()), False)):
        log.write_parquet(tmp_path / "hits.parquet")
        asked = ["score", f"--hits={tmp_path / 'hits.parquet'}", f"--qrels={labels}", "--measure=doc_recall@3"]
        assert main([*asked, "--explain-plan"]) == 0
        assert ("read in pieces" in capsys.readouterr().out) == told


@pytest.mark.parametrize(("log", "labels"), [(hits(), shuffled(qrels())), (shuffled(hits()), qrels())])
def test_a_bound_is_kept_where_labels_have_to_be_held(
    log: pl.DataFrame, labels: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was thought that they would stay in their files, and is found out before they are read."""
    force(monkeypatch, 6)
    monkeypatch.setattr("docrecall.memory.MOST_HELD", 0)
    paths = in_files(tmp_path, labels, 1)
    dr.score(hits(), in_files(tmp_path / "sorted", qrels(), 1), MEASURES, memory="4GB")
    monkeypatch.setattr("docrecall.memory._LABEL_BYTES", 1 << 30)
    with pytest.raises(dr.UsageError, match="are held whole"):
        dr.score(log, paths, MEASURES, memory="4GB")
