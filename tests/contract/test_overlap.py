"""Whether hits and labels speak of the same things: zero overlap, near misses, conflicts, and who has no hits."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import docrecall as dr
from tests.small import MEASURE, SECRET, codes, hits, log, qrels, queries

BOTH = pytest.mark.parametrize("how", ["error", "reject"])


@BOTH
def test_no_query_in_common(how: str) -> None:
    """An error with examples from both sides, never a table of zeros, whatever becomes of bad rows."""
    with pytest.raises(dr.DataError, match="'q1', 'q2' in hits, '1', '2' in qrels") as caught:
        dr.score(hits(), qrels(query_id=["1", "2"]), MEASURE, on_bad_rows=how)
    assert codes(caught.value.findings) == [("no_shared_queries", "error", "hits", "query_id", 2, 2)]


@BOTH
def test_no_query_in_common_of_measures_of_hits(how: str) -> None:
    """The contract does not depend on what is asked for."""
    with pytest.raises(dr.DataError, match="no id in common"):
        dr.score(hits(), qrels(query_id=["1", "2"]), "repeat_share@3", on_bad_rows=how)


def test_query_in_common_outside_the_list() -> None:
    """A query that both sides know, though it is not listed, is in common."""
    listed = queries(query_id=["q8", "q9"], label_status=[None, None])
    scores = dr.score(hits(), qrels(), MEASURE, queries=listed)
    assert scores.per_query["status"].to_list() == ["unlabelled", "unlabelled"]
    assert scores.findings.filter(pl.col("code") == "outside_universe")["n_rows"].to_list() == [3]


@pytest.mark.parametrize(
    ("log_", "labels"),
    [
        (hits(rank=[None] * 3), qrels()),
        (hits().head(2), qrels(query_id=["q1", "q1", "q9"], doc_id=["a", "a", "b"], relevance=[1, 2, 1])),
    ],
    ids=["of the hits", "of the labels"],
)
def test_queries_in_common_of_which_all_rows_are_rejected(log_: pl.DataFrame, labels: pl.DataFrame) -> None:
    """Rows that were set aside have ids too: that no query is in common is not said of them."""
    scores = dr.score(log_, labels, MEASURE, on_bad_rows="reject")
    assert scores.per_query.filter(query_id="q1")["status"].to_list() == ["rejected_rows"]


@pytest.mark.parametrize(
    ("n_units", "measures", "severity"),
    [
        (19, MEASURE, "warning"),
        (20, MEASURE, "error"),
        (20, "repeat_share@3", "warning"),
        (20, ["distinct_docs@3", "top_doc_share@3docs", "context_chunks@3"], "warning"),
        (20, ["repeat_share@3", "doc_judged@3"], "error"),
    ],
)
@pytest.mark.parametrize("batch_rows", [10, 1000])
def test_no_document_in_common(n_units: int, measures: Any, severity: str, batch_rows: int) -> None:
    """A warning, and an error from 20 labelled units with hits on if any measure depends on the labels."""
    tables = log(n_units, ["a", "b"]), log(n_units, ["A", "B"], labelled=True)
    if severity == "error":
        with pytest.raises(
            dr.DataError, match="over 20 labelled units with hits: 'a', 'b' in hits, 'A', 'B' in qrels"
        ) as caught:
            dr.score(*tables, measures, batch_rows=batch_rows)
        found = caught.value.findings
    else:
        found = dr.score(*tables, measures, batch_rows=batch_rows).findings
    assert codes(found) == [("no_shared_documents", severity, "hits", "doc_id", n_units, n_units)]
    assert found["examples"].to_list() == [["a", "b"]]


def test_examples_do_not_depend_on_the_file_split(tmp_path: Any) -> None:
    """The smallest ids of all rows are shown, not those that happen to stand first."""
    rows = pl.DataFrame({"query_id": ["q"] * 3000, "doc_id": [f"d{i:04}" for i in range(3000, 0, -1)]})
    rows = rows.with_columns(rank=pl.int_range(1, 3001))
    rows[:1500].write_parquet(tmp_path / "1.parquet")
    rows[1500:].write_parquet(tmp_path / "2.parquet")
    for source in (rows, tmp_path):
        found = dr.score(source, qrels(query_id=["q", "p"], doc_id=["x", "y"]), MEASURE).findings
        assert found.filter(code="no_shared_documents")["examples"].to_list() == [[f"d000{i}" for i in range(1, 6)]]


def test_document_in_common_that_no_unit_finds() -> None:
    """Documents that both sides know, though no query finds its own, are no missing overlap."""
    scores = dr.score(
        log(30, ["a"]),
        log(30, ["b"], labelled=True).with_columns(doc_id=pl.Series(["a", *["b"] * 29]).shift(1).fill_null("z")),
        MEASURE,
    )
    assert scores.findings["code"].to_list() == []


@pytest.mark.parametrize(
    ("n_with_hits", "lacking"),
    [(2, [("mostly_without_hits", "warning", "hits", None, 3, 3)]), (3, [])],
)
def test_mostly_without_hits(n_with_hits: int, lacking: list[Any]) -> None:
    """Said when more than half of the scored units have no hits, and not with universe="hits"."""
    tables = log(n_with_hits, ["a"]), log(5, ["a"], labelled=True)
    assert codes(dr.score(*tables, MEASURE).findings) == lacking
    assert codes(dr.score(*tables, MEASURE, universe="hits").findings) == []


ODD = {"space": "a ", "tab": "\ta", "line break": "a\n", "no-break space": "\u00a0a", "carriage return": "a\r"}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("side", ["hits", "labels"])
@pytest.mark.parametrize("column", ["doc_id", "query_id"])
@pytest.mark.parametrize("backwards", [False, True])
def test_near_miss_by_white_space(column: str, side: str, odd: str, backwards: bool) -> None:
    """A label id that would meet a hit if one of them were trimmed is counted, for both ids, and never matched."""
    log_ = pl.DataFrame({"query_id": ["x", "y"], "rank": [1, 1], "doc_id": ["x", "y"]})
    labels = log_.drop("rank")
    plain = {"hits": {column: ["a", "y"]}, "labels": {column: ["a", "y"]}}
    plain[side] = {column: [odd, "y"]}
    log_ = log_.with_columns(pl.Series(column, plain["hits"][column]))
    labels = labels.with_columns(pl.Series(column, plain["labels"][column]))
    scores = dr.score(log_.reverse() if backwards else log_, labels, MEASURE)
    assert ("near_miss_ids", "warning", "qrels", column, 1, 1) in codes(scores.findings)
    assert scores.findings.filter(code="near_miss_ids")["examples"].to_list() == [plain["labels"][column][:1]]
    assert scores.summary()["mean"].to_list() == [0.5]


@pytest.mark.parametrize("column", ["doc_id", "query_id"])
@pytest.mark.parametrize(
    ("in_hits", "in_labels"), [("e\u0301", "\u00e9"), ("\u00e9", "e\u0301"), ("\u212a", "K"), ("K", "\u212a")]
)
def test_near_miss_by_normal_form(column: str, in_hits: str, in_labels: str) -> None:
    """Two spellings of one letter are a near miss, and meet with normalize_ids="NFC"."""
    log_ = pl.DataFrame({"query_id": ["x", "y"], "rank": [1, 1], "doc_id": ["x", "y"]}).with_columns(
        pl.Series(column, [in_hits, "y"])
    )
    labels = pl.DataFrame({"query_id": ["x", "y"], "doc_id": ["x", "y"]}).with_columns(
        pl.Series(column, [in_labels, "y"])
    )
    scores = dr.score(log_, labels, MEASURE)
    assert ("near_miss_ids", "warning", "qrels", column, 1, 1) in codes(scores.findings)
    normal = dr.score(log_, labels, MEASURE, normalize_ids="NFC")
    assert codes(normal.findings) == []
    assert normal.summary()["mean"].to_list() == [1.0]


def test_ids_that_occur_elsewhere_are_no_near_miss() -> None:
    """A label id that some hit has is not near: trimming it would take it from that hit."""
    log_ = pl.DataFrame({"query_id": ["x", "x", "y"], "rank": [1, 2, 1], "doc_id": ["a", "b", "a "]})
    labels = pl.DataFrame({"query_id": ["x", "y"], "doc_id": ["a ", "a"]})
    assert codes(dr.score(log_, labels, MEASURE).findings) == []


def test_integer_ids_have_no_near_misses() -> None:
    """Integers are equal or not."""
    log_, labels = hits(query_id=[1, 1, 2], doc_id=[1, 2, 3]), qrels(query_id=[1, 2], doc_id=[2, 4])
    assert codes(dr.score(log_, labels, MEASURE).findings) == []


@pytest.mark.parametrize(
    ("status", "grade", "conflict"),
    [
        ("answerable", None, True),
        ("answerable", 0, False),
        ("answerable", 1, False),
        ("unlabelled", 1, True),
        ("unlabelled", 0, True),
        ("unlabelled", None, False),
        ("unanswerable", 1, True),
        ("unanswerable", 0, False),
        ("unanswerable", None, False),
        (None, 1, False),
    ],
)
def test_label_conflict(status: str | None, grade: int | None, conflict: bool) -> None:
    """A stated status wins over the labels, and one that they contradict is counted."""
    labels = qrels(relevance=[grade if grade is not None else 1, 1]).tail(2 if grade is not None else 1)
    scores = dr.score(hits(), labels, MEASURE, queries=queries(label_status=[status, None]))
    expected = [("label_conflict", "warning", "queries", "label_status", 1, 1)] if conflict else []
    assert [c for c in codes(scores.findings) if c[0] == "label_conflict"] == expected
    won = {"unlabelled": "unlabelled", "unanswerable": "unanswerable"}.get(status or "")
    derived = {None: "unlabelled", 0: "no_relevant", 1: "scored"}[grade]
    assert scores.per_query["status"][0] == (won or derived)


def test_findings_print_ids_alone() -> None:
    """No finding and no message holds a cell of another column."""
    listed = queries(label_status=["answerable", "unanswerable"])
    scores = dr.score(hits(doc_id=["a ", "x", "y"]), qrels(), MEASURE, queries=listed)
    assert scores.findings.height >= 2
    assert SECRET not in str(scores.findings.to_dicts())


def test_nothing_scored_is_a_warning() -> None:
    """A run in which no unit could be scored says so; null means alone would pass a strict check."""
    hits = pl.DataFrame({"query_id": ["q"], "rank": [1], "doc_id": ["d"]})
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "relevance": [2]})
    found = dr.score(hits, qrels, "doc_recall@1", min_relevance=3).findings
    assert found.filter(pl.col("code") == "nothing_scored").select("severity", "n_rows").rows() == [("warning", 1)]
    assert "nothing_scored" not in dr.score(hits, qrels, "doc_recall@1").findings["code"]


def test_rank_base_zero_without_a_rank_zero_is_a_warning() -> None:
    """A log from 1 that is declared to start at 0 would be read one place too deep without a word."""
    hits = pl.DataFrame({"query_id": ["q", "q"], "rank": [1, 2], "doc_id": ["d", "e"]})
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"]})
    found = dr.score(hits, qrels, "doc_recall@1", rank_base=0).findings
    assert found.filter(pl.col("code") == "no_rank_zero").select("severity", "n_rows").rows() == [("warning", 2)]
    from_zero = hits.with_columns(pl.col("rank") - 1)
    assert "no_rank_zero" not in dr.score(from_zero, qrels, "doc_recall@1", rank_base=0).findings["code"]
