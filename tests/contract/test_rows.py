"""Rows that break the contract: `on_bad_rows="error"` stops, "reject" sets them aside; every row is accounted for."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from tests.small import MEASURE, SECRET, account, codes, hits, log, qrels, queries

NAN, INF = float("nan"), float("inf")


class Broken(NamedTuple):
    """A rule, the columns that break it, and what becomes of rows and units."""

    rule: str
    table: str
    column: str
    change: dict[str, Any]
    rejected: list[str | None]  # query_id of the rejected rows, sorted
    touched: list[str]  # queries whose unit is out of the mean
    options: dict[str, Any]


def rule(
    name: str, place: str, rejected: list[str | None], touched: list[str], change: dict[str, Any], **options: Any
) -> Broken:
    table, column = place.split(".")
    return Broken(name, table, column, change, rejected, touched, options)


RULES = [
    rule("null_id", "hits.query_id", [None], [], {"query_id": ["q1", "q1", None]}),
    rule("null_id", "hits.doc_id", ["q1"], ["q1"], {"doc_id": [None, "a", "b"]}),
    rule("null_id", "hits.run_id", ["q1"], ["q1"], {"run_id": [None, "r", "r"]}),
    rule("rank_null", "hits.rank", ["q1"], ["q1"], {"rank": [1, None, 1]}),
    rule("rank_fraction", "hits.rank", ["q1"], ["q1"], {"rank": [1.0, 1.5, 1.0]}),
    rule("rank_fraction", "hits.rank", ["q1", "q2"], ["q1", "q2"], {"rank": [1.0, NAN, INF]}),
    rule("rank_fraction", "hits.rank", ["q2"], ["q2"], {"rank": [1.0, 2.0, -INF]}),
    rule("rank_too_large", "hits.rank", ["q2"], ["q2"], {"rank": [1.0, 2.0, 1e300]}),
    rule("rank_too_large", "hits.rank", ["q1"], ["q1"], {"rank": [1, 2**53, 1]}),
    rule("rank_too_large", "hits.rank", ["q1"], ["q1"], {"rank": pl.Series([1, 2**64 - 1, 1], dtype=pl.UInt64)}),
    rule("rank_too_large", "hits.rank", ["q1"], ["q1"], {"rank": pl.Series([1, 2**100, 1], dtype=pl.UInt128)}),
    rule("rank_below_first", "hits.rank", ["q1"], ["q1"], {"rank": pl.Series([1, -(2**100), 1], dtype=pl.Int128)}),
    rule("rank_below_first", "hits.rank", ["q1"], ["q1"], {"rank": [-1, 1, 1]}),
    rule("rank_below_first", "hits.rank", ["q1"], ["q1"], {"rank": [-1, 0, 0]}, rank_base=0),
    rule("rank_zero", "hits.rank", ["q1", "q2"], ["q1", "q2"], {"rank": [0, 1, 0]}),
    rule("rank_conflict", "hits.rank", ["q1", "q1"], ["q1"], {"rank": [1, 1, 1]}),
    rule(
        "rank_conflict",
        "hits.rank",
        ["q1", "q1"],
        ["q1"],
        {"rank": [1, 1, 1], "doc_id": ["a"] * 3, "chunk_id": [1, 2, 3]},
    ),
    rule("score_null", "hits.score", ["q1"], ["q1"], {"score": [1.0, None, 1.0]}, order="score"),
    rule("score_nan", "hits.score", ["q1", "q2"], ["q1", "q2"], {"score": [NAN, 1.0, NAN]}, order="trec_eval"),
    rule("null_id", "qrels.query_id", [None], [], {"query_id": ["q1", "q2", None]}),
    rule("null_id", "qrels.doc_id", ["q1"], ["q1"], {"doc_id": [None, "b"]}),
    rule("relevance_null", "qrels.relevance", ["q1"], ["q1"], {"relevance": [None, 1]}),
    rule(
        "label_two_grades",
        "qrels.relevance",
        ["q1", "q1"],
        ["q1"],
        {"query_id": ["q1", "q1", "q2"], "doc_id": ["a", "a", "b"], "relevance": [1, 2, 1]},
    ),
    rule("null_id", "queries.query_id", [None], [], {"query_id": ["q1", "q2", None]}),
    rule("query_repeated", "queries.query_id", ["q1", "q1"], ["q1"], {"query_id": ["q1", "q1", "q2"]}),
    rule("status_unknown", "queries.label_status", ["q1"], ["q1"], {"label_status": [SECRET, None]}),
]
each_rule = pytest.mark.parametrize("broken", RULES, ids=lambda b: f"{b.rule}-{b.table}.{b.column}")
EITHER_ORDER = pytest.mark.parametrize("backwards", [False, True], ids=["as logged", "backwards"])


def tables(broken: Broken) -> dict[str, pl.DataFrame]:
    made = {"hits": hits, "qrels": qrels, "queries": queries}
    return {name: make(**broken.change) if name == broken.table else make() for name, make in made.items()}


def score(frames: dict[str, pl.DataFrame], **options: Any) -> dr.Scores:
    return dr.score(frames["hits"], frames["qrels"], MEASURE, queries=frames["queries"], **options)


@each_rule
def test_error_stops(broken: Broken) -> None:
    """By default the run stops with one finding: table, column, rule, counts and the ids, and no other cell text."""
    with pytest.raises(dr.DataError, match=rf"{broken.table}\.{broken.column}: {len(broken.rejected)} ") as caught:
        score(tables(broken), **broken.options)

    expected = (broken.rule, "error", broken.table, broken.column, len(broken.rejected), len(broken.touched))
    assert codes(caught.value.findings) == [expected]
    assert caught.value.findings["examples"].to_list() == [broken.touched]
    assert SECRET not in str(caught.value)


@each_rule
@EITHER_ORDER
def test_reject_sets_rows_aside(broken: Broken, backwards: bool) -> None:
    """Rejected rows are given with their reason, the units they touch are out of the mean, and the rest is scored."""
    frames = {name: frame.reverse() if backwards else frame for name, frame in tables(broken).items()}

    scores = score(frames, on_bad_rows="reject", **broken.options)

    rejected = scores.rejected.collect()
    assert rejected.columns[:4] == ["table", "column", "reason", "file"]
    expected = {(broken.table, broken.column, broken.rule, None)}
    assert set(rejected.select("table", "column", "reason", "file").rows()) == expected
    assert sorted(rejected["query_id"].to_list(), key=str) == broken.rejected
    status = {q: "rejected_rows" if q in broken.touched else "scored" for q in ("q1", "q2")}
    assert dict(scores.per_query.select("query_id", "status").rows()) == status
    assert scores.per_query.filter(pl.col("status") != "scored")[MEASURE].drop_nulls().is_empty()
    assert account(scores.rows)[broken.table][3] == len(broken.rejected)
    noticed = scores.findings.filter(pl.col("code") == broken.rule)
    assert noticed.select("severity", "n_rows", "n_queries").rows() == [
        ("warning", len(broken.rejected), len(broken.touched))
    ]


@pytest.mark.parametrize(
    ("change", "options"),
    [
        ({"doc_id": pl.Series([1, 2, 2**64 - 1], dtype=pl.UInt64)}, {}),
        ({"doc_id": pl.Series([1, 2, -(2**100)], dtype=pl.Int128)}, {}),
        ({"doc_id": ["\u00e9", "e\u0301", "b"]}, {"normalize_ids": "NFC"}),
        ({"doc_id": ["\u212a", "K", "b"]}, {"normalize_ids": "NFC"}),
    ],
    ids=["too large", "too small", "collapse", "collapse into ASCII"],
)
@pytest.mark.parametrize("how", ["error", "reject"])
@EITHER_ORDER
def test_ids_that_cannot_be_told_apart(
    change: dict[str, Any], options: dict[str, Any], how: str, backwards: bool
) -> None:
    """What is wrong with the ids of a table is no matter of single rows: it stops a run that rejects rows too."""
    log_, labels = hits(**change), qrels(doc_id=[1, 2]) if "normalize_ids" not in options else qrels()
    with pytest.raises(dr.DataError) as caught:
        dr.score(log_.reverse() if backwards else log_, labels, MEASURE, on_bad_rows=how, **options)
    assert [c[:4] for c in codes(caught.value.findings)] in (
        [("id_too_large", "error", "hits", "doc_id")],
        [("ids_collapse", "error", "hits", "doc_id")],
    )


def test_largest_ids_and_ranks_that_are_good() -> None:
    """2^63 - 1 is an id, in a UInt64 column too, and 2^53 - 1 a rank."""
    log_ = hits(doc_id=pl.Series([1, 2**63 - 1, 2], dtype=pl.UInt64), rank=[1, 2**53 - 1, 1])
    scores = dr.score(log_, qrels(doc_id=[2**63 - 1, 2]), ["doc_recall@3", "doc_recall@all"])
    assert scores.per_query.select("doc_recall@3", "doc_recall@all").rows() == [(0.0, 1.0), (1.0, 1.0)]


def test_row_without_a_run_touches_its_query_in_every_run() -> None:
    """It may belong to any run, also to one that has no other row of the query: that unit is not scored as 0."""
    log_ = pl.DataFrame(
        {"run_id": [None, "a", "b"], "query_id": ["q2", "q1", "q1"], "rank": [1] * 3, "doc_id": ["b", "a", "x"]}
    )
    scores = dr.score(log_, qrels(), MEASURE, on_bad_rows="reject")
    expected = [
        ("a", "q1", "scored", 1.0),
        ("a", "q2", "rejected_rows", None),
        ("b", "q1", "scored", 0.0),
        ("b", "q2", "rejected_rows", None),
    ]
    assert scores.per_query.select("run_id", "query_id", "status", MEASURE).rows() == expected
    assert scores.matches.collect()["query_id"].unique().to_list() == ["q1"]


def test_every_reason_at_once() -> None:
    """Broken rules are told in one message, one line each, and a row is rejected for the first that it breaks."""
    log_ = pl.DataFrame(
        {
            "query_id": [None, "q1", "q1", "q2", "q2"],
            "rank": [None, None, 0, 1, 1],
            "doc_id": ["a", "a", None, "b", "c"],
        }
    )
    with pytest.raises(dr.DataError, match="break 4 rules") as caught:
        dr.score(log_, qrels(relevance=[1, None]), MEASURE)
    assert str(caught.value).count("\n") == len(caught.value.findings) == 4

    scores = dr.score(log_, qrels(), MEASURE, on_bad_rows="reject")
    reasons = scores.rejected.collect().sort("reason", "query_id").select("query_id", "reason").rows()
    assert reasons == [
        (None, "null_id"),
        ("q1", "null_id"),
        ("q2", "rank_conflict"),
        ("q2", "rank_conflict"),
        ("q1", "rank_null"),
    ]
    assert account(scores.rows) == {"hits": (5, 0, 0, 5, 0), "qrels": (2, 2, 0, 0, 0)}


def test_duplicates_rejected_and_outside_in_one_account() -> None:
    """Each row of a log is used, a copy, rejected, or of a query that is not listed."""
    log_ = pl.DataFrame(
        {
            "query_id": ["q1", "q1", "q1", "q2", "q2", "q3", "q3", None],
            "rank": [1, 1, 2, 1, None, 1, 2, 1],
            "doc_id": ["a", "a", "b", "b", "c", "a", "b", "a"],
        }
    )
    labels = pl.concat([qrels(), qrels(), qrels(query_id=["q3", "q4"])])
    scores = dr.score(log_, labels, MEASURE, queries=queries(), on_bad_rows="reject")
    assert account(scores.rows) == {"hits": (8, 3, 1, 2, 2), "qrels": (6, 2, 2, 0, 2), "queries": (2, 2, 0, 0, 0)}


def test_findings_depend_on_nothing_but_the_rows(tmp_path: Any) -> None:
    """Batch size, file split and row order change no count, no example, no rejected row and no score."""
    rows = log(40, ["a", "b", "c", "a"])
    rank = pl.when(pl.col("query_id") == "q003").then(None).when(pl.col("query_id") == "q005").then(7)
    log_ = rows.with_columns(rank=rank.otherwise(pl.col("rank")))
    log_ = pl.concat([log_, log_.filter(pl.col("query_id") > "q030"), log_.head(3)])
    labels = log(38, ["b", "z"], labelled=True)
    expected = dr.score(log_, labels, MEASURE, on_bad_rows="reject")
    assert codes(expected.findings) == [
        ("rank_conflict", "warning", "hits", "rank", 3, 1),
        ("rank_null", "warning", "hits", "rank", 4, 1),
        ("duplicate_hits", "info", "hits", None, 36 + 3 + 1, 9 + 1 + 1),
        ("unlabelled_hits", "info", "hits", None, 8, 2),
    ]
    for split in (1, 3, 7):
        for batch_rows in (1, 10, 45, 1000):
            pieces = log_.sample(fraction=1, shuffle=True, seed=split)
            paths = [tmp_path / f"{split}-{i}.parquet" for i in range(split)]
            for i, path in enumerate(paths):
                pieces[i::split].write_parquet(path)
            scores = dr.score(paths, labels, MEASURE, on_bad_rows="reject", batch_rows=batch_rows)
            assert_frame_equal(scores.findings.drop("file"), expected.findings.drop("file"))
            assert_frame_equal(scores.rows, expected.rows)
            assert_frame_equal(scores.per_query, expected.per_query)
            rejected = scores.rejected.drop("file").collect()
            assert_frame_equal(rejected, expected.rejected.drop("file").collect(), check_row_order=False)


def test_first_file_with_a_bad_row_is_named(tmp_path: Any) -> None:
    """A finding names the first file that has such rows; rejected rows carry their own."""
    for name, rank in (("a", [1, 2, 1]), ("b", [1, None, 1]), ("c", [None, 2, 1])):
        hits(rank=rank, run_id=[name] * 3).write_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(
        dr.DataError, match=r"2 hits without a rank in 2 units \(q1.*\), first in .*b\.parquet"
    ) as caught:
        dr.score(tmp_path, qrels(), MEASURE)
    assert caught.value.findings["file"].to_list() == [str(tmp_path / "b.parquet")]
    rejected = dr.score(tmp_path, qrels(), MEASURE, on_bad_rows="reject").rejected.collect()
    assert rejected.select("run_id", "file").rows() == [(n, str(tmp_path / f"{n}.parquet")) for n in ("b", "c")]


def test_five_examples_at_most() -> None:
    """A thousand bad units are counted, and the five smallest ids are shown."""
    log_ = log(1000, ["a"]).with_columns(rank=pl.lit(None, pl.Int64))
    with pytest.raises(
        dr.DataError, match=r"1,000 hits without a rank in 1,000 units \(q000, q001, q002, q003, q004, \.\.\)"
    ):
        dr.score(log_, qrels(), MEASURE)


@pytest.mark.parametrize(
    ("scores", "order", "found"),
    [
        ([1.0, 2.0, 3.0, 4.0], "score", "d"),
        ([INF, 1.0, 0.0, -INF], "score", "a"),
        ([-INF, -1.0, 5.0, INF], "score", "d"),
        ([-0.0, 0.0, -0.0, 0.0], "score", "a"),
        ([0.0, -0.0, 0.0, -0.0], "trec_eval", "d"),
        ([1.0, 1.0 + 1e-12, 1.0, 1.0], "score", "b"),
        ([1.0, 1.0 + 1e-12, 1.0, 1.0], "trec_eval", "d"),
        ([1e300, 1e301, 0.0, 0.0], "trec_eval", "b"),
    ],
)
def test_order_by_score(scores: list[float], order: str, found: str) -> None:
    """The largest score comes first; zeros of either sign tie; ties go by document id, backwards for trec_eval."""
    log_ = pl.DataFrame({"query_id": ["q"] * 4, "doc_id": ["a", "b", "c", "d"], "score": scores})
    for shuffled in (log_, log_.reverse()):
        result = dr.score(
            shuffled,
            log(1, ["a", "b", "c", "d"], labelled=True).with_columns(query_id=pl.lit("q")),
            "doc_recall@1",
            order=order,
        )
        first = result.matches.filter(pl.col("first_rank") == 1).collect()
        assert first["doc_id"].to_list() == [found]


def test_rank_column_is_not_read_when_scores_order() -> None:
    """Ordered by score, ranks may be absent, text, null or twice the same."""
    expected = dr.score(hits(rank=None, score=[1, 2, 1]), qrels(), "doc_recall@1", order="score").per_query
    for rank in (["x", "y", "z"], [None] * 3, [0.5] * 3, [1, 1, 1]):
        actual = dr.score(hits(rank=rank, score=[1, 2, 1]), qrels(), "doc_recall@1", order="score").per_query
        assert_frame_equal(actual, expected)
    assert expected["doc_recall@1"].to_list() == [1.0, 1.0]


def test_run_without_units_has_an_account() -> None:
    """A named run whose log is empty stands in accounting and summary also when only units with hits are scored."""
    full = pl.DataFrame({"query_id": ["q"], "rank": [1], "doc_id": ["d"]})
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"]})
    scores = dr.score({"a": full, "b": full.clear()}, qrels, "doc_recall@1", universe="hits")
    assert scores.accounting.select("run_id", "n_total", "n_scored").rows() == [("a", 1, 1), ("b", 0, 0)]
    assert scores.summary().select("run_id", "mean", "n").rows() == [("a", 1.0, 1), ("b", None, 0)]
