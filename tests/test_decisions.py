"""What the system did with each unit, and the table of answered and declined against answerable and not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.reference import decision_rates
from tests.small import hits, qrels

COUNTS = ("answered_answerable", "declined_answerable", "answered_unanswerable", "declined_unanswerable", "undecided")
RATES = tuple(decision_rates(0, 0, 0, 0))


def score(log: Any, labels: pl.DataFrame, measure: str = "doc_recall@3", **rest: Any) -> dr.Scores:
    return dr.score(log, labels, measure, **rest)


def answered(scores: dr.Scores) -> dict[str, bool]:
    return dict(scores.decided.select("query_id", "answered").collect().rows())


def log_of(**context: list[bool | None]) -> pl.DataFrame:
    """Hits of some queries with their in_context, one for each flag."""
    rows = [(q, rank, "d", flag) for q, flags in context.items() for rank, flag in enumerate(flags, start=1)]
    return pl.DataFrame(
        rows,
        schema={"query_id": pl.String, "rank": pl.Int64, "doc_id": pl.String, "in_context": pl.Boolean},
        orient="row",
    )


def labels_of(*queries: str) -> pl.DataFrame:
    return pl.DataFrame({"query_id": queries, "doc_id": ["d"] * len(queries)})


def test_the_source_is_chosen_row_by_row() -> None:
    """`answered` says it, else `retrieved`, else the hits of that very unit."""
    asked = pl.DataFrame(
        {
            "query_id": ["q1", "q2", "q3", "q4", "q5", "q6"],
            "answered": [False, True, None, None, None, None],
            "retrieved": [True, False, False, True, None, None],
        }
    )
    log = log_of(q1=[True], q3=[True], q5=[True])
    for told in (asked, asked.reverse()):
        scores = score(log, labels_of(*asked["query_id"]), requests=told)
        assert answered(scores) == {"q1": False, "q2": True, "q3": False, "q4": True, "q5": True, "q6": False}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"answered": [True, False, None]}, [True, False, False]),
        ({"retrieved": [True, False, None]}, [True, False, False]),
        ({"answered": pl.Series([None] * 3, dtype=pl.Boolean)}, [True, True, False]),
        ({"answered": [None] * 3}, [True, True, False]),
        ({}, [True, True, False]),
    ],
    ids=str,
)
def test_columns_of_requests_may_be_absent_or_null(columns: dict[str, Any], expected: list[bool]) -> None:
    """What nobody says is taken from the hits."""
    asked = pl.DataFrame({"query_id": ["q1", "q2", "q3"], **columns})
    scores = score(log_of(q1=[True], q2=[True]), labels_of("q1", "q2", "q3"), requests=asked)
    assert list(answered(scores).values()) == expected


def test_without_requests_hits_decide() -> None:
    """Units with a hit were answered; with in_context, those with a hit that was passed on. A null is not true."""
    log = log_of(q1=[True, False], q2=[False, True], q3=[False, False], q4=[None], q5=[None, True])
    labels = labels_of("q1", "q2", "q3", "q4", "q5", "q6")
    scores = score(log, labels)
    assert answered(scores) == {"q1": True, "q2": True, "q3": False, "q4": False, "q5": True, "q6": False}
    assert scores.findings.filter(pl.col("severity") != "info").is_empty()
    no_context = score(log.drop("in_context"), labels)
    assert answered(no_context) == {q: q != "q6" for q in ("q1", "q2", "q3", "q4", "q5", "q6")}


def test_context_of_another_kind_is_not_looked_at() -> None:
    """A column in_context that holds no flags takes no part, and is no fault where no measure reads it."""
    log = log_of(q1=[False]).with_columns(in_context=pl.lit("never"))
    assert answered(score(log, labels_of("q1"))) == {"q1": True}


def test_bad_rows_are_no_hits() -> None:
    """A unit whose rows were all set aside has no good hit; its decision is undecided."""
    scores = score(hits(rank=[1, 2, None]), qrels(), on_bad_rows="reject")
    told = scores.decided.collect().rows_by_key("query_id", named=True, unique=True)
    assert told["q2"]["status"] == "rejected_rows"
    assert told["q2"]["answerable"] is None
    assert told["q2"]["answered"] is False
    assert scores.decisions.select(COUNTS).row(0) == (1, 0, 0, 0, 1)


def every_status() -> dict[str, Any]:
    """One unit of each status, and a second of some, that were answered (a..) or declined (d..)."""
    status = ["scored", "scored", "unanswerable", "unanswerable", "unlabelled", "no_relevant", "stale_labels"]
    queries = ["a-scored", "d-scored", "a-none", "d-none", "a-unlabelled", "d-irrelevant", "d-stale"]
    labels = pl.DataFrame(
        {
            "query_id": ["a-scored", "d-scored", "d-irrelevant", "d-stale"],
            "doc_id": ["d", "d", "d", "e"],
            "relevance": [1, 1, 0, 1],
            "doc_version": ["v1", "v1", "v1", "v1"],
        }
    )
    stated = ["unanswerable" if s == "unanswerable" else None for s in status]
    return {
        "log": pl.DataFrame({"query_id": ["d-scored", "d-stale"], "rank": [1, 1], "doc_id": ["d", "e"]}),
        "labels": labels,
        "queries": pl.DataFrame({"query_id": queries, "label_status": stated}),
        "requests": pl.DataFrame({"query_id": queries, "answered": [q.startswith("a") for q in queries]}),
        "documents": pl.DataFrame({"doc_id": ["d", "e"], "doc_version": ["v1", "v2"]}),
    }


def test_table_of_decisions() -> None:
    """Scored and stale units are answerable; other statuses than these and unanswerable are undecided."""
    scores = score(**every_status())

    told = dict(scores.decided.select("query_id", "answerable").collect().rows())
    assert told == {
        "a-scored": True,
        "d-scored": True,
        "a-none": False,
        "d-none": False,
        "a-unlabelled": None,
        "d-irrelevant": None,
        "d-stale": True,
    }
    (row,) = scores.decisions.to_dicts()
    assert tuple(row[c] for c in COUNTS) == (1, 2, 1, 1, 2)
    assert {name: row[name] for name in RATES} == {
        "decline_rate": 3 / 5,
        "false_answer_rate": 1 / 2,
        "over_refusal_rate": 2 / 3,
        "decline_precision": 1 / 3,
        "decline_recall": 1 / 2,
        "decline_f1": 2 / 5,
    }
    assert sum(row[c] for c in COUNTS) == scores.accounting["n_total"].item()


def test_declined_although_gold_was_there() -> None:
    """Declined and answerable, with a relevant document anywhere in the hits, at its version; its queries are told."""
    scores = score(**every_status())
    assert scores.decisions["declined_with_gold"].item() == 1  # the document of the stale unit is met by no label
    behind = scores.decided.filter(pl.col("answerable") & ~pl.col("answered") & pl.col("gold_retrieved")).collect()
    assert behind["query_id"].to_list() == ["d-scored"]


@pytest.mark.parametrize(
    ("change", "gold"),
    [
        ({}, True),
        ({"rank": [1, 900, 1]}, True),
        ({"in_context": [True, False, True]}, True),
        ({"doc_id": ["x", "y", "b"]}, False),
        ({"doc_version": ["v1", "v1", "v1"]}, True),
        ({"doc_version": ["v1", None, "v1"]}, True),
        ({"doc_version": ["v1", "v2", "v1"]}, False),
    ],
    ids=str,
)
def test_gold_retrieved(change: dict[str, Any], gold: bool) -> None:
    """Whatever the cut of the measure and the context were; labels of grade 0 and other versions are not it."""
    labels = qrels(query_id=["q1", "q1", "q2"], doc_id=["a", "x", "b"], relevance=[1, 0, 1], doc_version=["v1"] * 3)
    asked = pl.DataFrame({"query_id": ["q1", "q2"], "answered": [False, True]})
    scores = score(hits(**change), labels, "doc_recall@1", requests=asked)
    told = scores.decided.collect().rows_by_key("query_id", named=True, unique=True)
    assert told["q1"]["gold_retrieved"] is gold
    assert scores.decisions["declined_with_gold"].item() == int(gold)


def test_min_relevance_says_what_gold_is() -> None:
    """A grade below it is not gold."""
    asked = pl.DataFrame({"query_id": ["q1", "q2"], "answered": [False, False]})
    labels = qrels(query_id=["q1", "q1", "q2"], doc_id=["a", "z", "b"], relevance=[1, 2, 2])
    scores = score(hits(), labels, requests=asked, min_relevance=2)
    assert dict(scores.decided.select("query_id", "gold_retrieved").collect().rows()) == {"q1": False, "q2": True}


def test_rates_without_a_denominator_are_null() -> None:
    """A run without units has no rate at all; one without unanswerable units lacks those of them."""
    (row,) = score(hits().clear(), qrels().clear()).decisions.to_dicts()
    assert [row[c] for c in COUNTS] == [0] * 5
    assert [row[r] for r in RATES] == [None] * len(RATES)
    (row,) = score(hits(), qrels()).decisions.to_dicts()
    assert row["decline_rate"] == row["over_refusal_rate"] == 0
    assert [row[r] for r in RATES[1:2] + RATES[3:]] == [None] * 4


def test_one_row_for_each_run() -> None:
    """Every run of the accounting stands, sorted, also one in which nothing was asked."""
    logs = {"b": hits(), "a": hits(query_id=["q1", "q1", "q1"], rank=[1, 2, 3]), "c": hits().clear()}
    scores = score(logs, qrels(), universe="hits")
    assert scores.decisions["run_id"].to_list() == scores.accounting["run_id"].to_list() == ["a", "b", "c"]
    assert scores.decisions["answered_answerable"].to_list() == [1, 2, 0]


def test_requests_of_one_run_decide_there_alone() -> None:
    """With run_id a request speaks of its run, also of one without hits; without it, of every run."""
    asked = pl.DataFrame({"run_id": ["a", "b", "c"], "query_id": ["q1"] * 3, "answered": [True, False, True]})
    log = pl.concat([hits(run_id=["a"] * 3), hits(run_id=["b"] * 3)])
    scores = score(log, qrels(), requests=asked)
    assert scores.decided.select("run_id", "answered").collect().rows() == [("a", True), ("b", False), ("c", True)]
    every = score(log, qrels(), requests=asked.head(1).drop("run_id"))
    assert every.decided.select("run_id", "answered").collect().rows() == [("a", True), ("b", True)]


def test_logged_requests_are_told_apart() -> None:
    """The key of `decided` is that of `per_query`."""
    log = hits(request_id=["r1", "r2", "r3"], rank=[1, 1, 1])
    asked = pl.DataFrame(
        {"query_id": ["q1", "q1", "q2"], "request_id": ["r1", "r2", "r3"], "answered": [True, False, None]}
    )
    scores = score(log, qrels(), requests=asked)
    assert scores.decided.select("request_id", "query_id", "answered").collect().rows() == [
        ("r1", "q1", True),
        ("r2", "q1", False),
        ("r3", "q2", True),
    ]
    assert_frame_equal(scores.decided.select(scores.key).collect(), scores.per_query.select(scores.key))


def test_decisions_do_not_enter_the_means() -> None:
    """Recall is the same whatever was answered, and unanswerable units are in no mean."""
    given = every_status()
    without = {name: table for name, table in given.items() if name != "requests"}
    told, silent = score(**given), score(**without)
    assert_frame_equal(told.summary(), silent.summary())
    assert told.summary()["n"].item() == told.accounting["n_scored"].item() == 2


def test_round_trip(tmp_path: Path) -> None:
    """`load` gives back decisions and what they are made of, and batches change neither."""
    expected = score(**every_status())
    for rows in (1, 1000):
        written = score(**every_status(), out=tmp_path / "out", batch_rows=rows)
        for scores in (written, dr.load(tmp_path / "out")):
            assert_frame_equal(scores.decisions, expected.decisions)
            assert_frame_equal(scores.decided.collect(), expected.decided.collect())
    assert expected.decided.collect_schema().names() == [
        "run_id",
        "query_id",
        "status",
        "answerable",
        "answered",
        "gold_retrieved",
    ]
