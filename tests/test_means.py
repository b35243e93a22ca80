"""From units to means: weights, the effective size, means inside queries, the ceiling, and which requests count."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.reference import effective_size, mean
from tests.small import hits, qrels

RECALL = "doc_recall@3"
QUERIES = ["q1", "q2", "q3", "q4"]
VALUES = [1.0, 0.5, 0.0, 1 / 3]


def tables() -> dict[str, pl.DataFrame]:
    """Four queries whose recall is VALUES."""
    found = {"q1": 1, "q2": 1, "q3": 0, "q4": 1}
    of = {"q1": 1, "q2": 2, "q3": 1, "q4": 3}
    return {
        "hits": pl.DataFrame(
            [(q, 1, "d0") for q in QUERIES if found[q]], schema=["query_id", "rank", "doc_id"], orient="row"
        ),
        "qrels": pl.DataFrame(
            [(q, f"d{i}") for q in QUERIES for i in range(of[q])], schema=["query_id", "doc_id"], orient="row"
        ),
    }


def score(measures: Any = RECALL, *, hits: Any = None, qrels: Any = None, **rest: Any) -> dr.Scores:
    base = tables()
    return dr.score(base["hits"] if hits is None else hits, base["qrels"] if qrels is None else qrels, measures, **rest)


def weighed(weights: list[float | None], measures: Any = RECALL, **rest: Any) -> dr.Scores:
    listed = pl.DataFrame({"query_id": QUERIES, "weight": pl.Series(weights, dtype=pl.Float64)})
    return score(measures, queries=listed, **rest)


def row(scores: dr.Scores, measure: str = RECALL) -> dict[str, Any]:
    (found,) = scores.summary().filter(measure=measure).to_dicts()
    return found


def test_the_values_of_these_tables() -> None:
    """Without weights the mean is the plain one, and n_eff is n."""
    scores = score()
    assert scores.per_query[RECALL].to_list() == VALUES
    assert row(scores)["mean"] == mean(VALUES) == math.fsum(VALUES) / 4
    assert (row(scores)["n"], row(scores)["n_null"], row(scores)["n_eff"]) == (4, 0, 4.0)


@pytest.mark.parametrize(
    "weights", [[1.0, 2.0, 3.0, 4.0], [0.1, 0.7, 1e-9, 3.3], [0.0, 0.0, 1.0, 0.0], [1e150, 1.0, 1e150, 7.0], [5.0] * 4]
)
def test_weights(weights: list[float]) -> None:
    """The mean and the effective size are those of the definition, bit for bit."""
    found = row(weighed(weights))
    assert found["mean"] == mean(VALUES, weights)
    assert found["n_eff"] == effective_size(weights)
    assert (found["n"], found["n_null"]) == (4, 0)


def test_whole_numbers_are_weights() -> None:
    """A column of integers, of any width, weighs as the same numbers in Float64."""
    listed = pl.DataFrame({"query_id": QUERIES, "weight": pl.Series([1, 2, 3, 4], dtype=pl.UInt8)})
    assert_frame_equal(score(queries=listed).summary(), weighed([1.0, 2.0, 3.0, 4.0]).summary())


def test_a_null_weighs_1() -> None:
    """In a column where others weigh more, and in one that holds nothing else."""
    assert_frame_equal(weighed([None, 2.0, None, 4.0]).summary(), weighed([1.0, 2.0, 1.0, 4.0]).summary())
    assert row(weighed([None] * 4))["mean"] == mean(VALUES)
    assert row(weighed([None] * 4))["n_eff"] == 4.0


@pytest.mark.parametrize("power", [300, -300, 900, -900])
def test_scaling_all_weights_changes_nothing(power: int) -> None:
    """By a power of two, to sizes whose squares no float holds."""
    weights = [1.0, 2.5, 0.1, 7.0]
    scaled = weighed([w * 2.0**power for w in weights])
    assert_frame_equal(scaled.summary(), weighed(list(weights)).summary())


def test_all_weights_zero() -> None:
    """Nothing to weigh by: the mean and the effective size are null, and n still counts values."""
    found = row(weighed([0.0] * 4))
    assert (found["mean"], found["n_eff"], found["n"], found["n_null"]) == (None, None, 4, 0)


def test_weight_of_zero_takes_part_in_the_account() -> None:
    """The unit is scored and counted, and moves no mean."""
    scores = weighed([1.0, 0.0, 0.0, 0.0])
    assert row(scores)["mean"] == VALUES[0]
    assert row(scores)["n_eff"] == 1.0
    assert scores.accounting["n_scored"].item() == 4


def test_units_without_a_value_do_not_weigh() -> None:
    """The weights of null values are in neither sum; n_null counts them."""
    found = row(weighed([1.0, 2.0, 50.0, 4.0], ["repeat_share@3", RECALL]), "repeat_share@3")
    assert (found["mean"], found["n"], found["n_null"]) == (0.0, 3, 1)
    assert found["n_eff"] == effective_size([1.0, 2.0, 4.0])


def test_only_scored_units_weigh() -> None:
    """The weights of other units are left out."""
    listed = pl.DataFrame(
        {"query_id": QUERIES, "weight": [1.0, 9.0, 2.0, 4.0], "label_status": [None, "unanswerable", None, None]}
    )
    found = row(score(queries=listed))
    assert found["mean"] == mean([VALUES[0], VALUES[2], VALUES[3]], [1.0, 2.0, 4.0])
    assert found["n_eff"] == effective_size([1.0, 2.0, 4.0])


def test_weights_do_not_depend_on_batches_or_the_folder(tmp_path: Path) -> None:
    """Batch size, order of rows and going through a folder change no bit."""
    weights = [0.1, 0.7, 1e-9, 3.3]
    expected = weighed(weights).summary()
    for rows in (1, 2, 1000):
        again = weighed(weights, hits=tables()["hits"].reverse(), batch_rows=rows, out=tmp_path / "out")
        assert_frame_equal(again.summary(), expected)
        assert_frame_equal(dr.load(tmp_path / "out").summary(), expected)


# Requests: q1 was asked three times (recall 1, 0, 1), q2 once (recall 0), q3 once and never answered with a hit.
LOG = pl.DataFrame(
    {
        "query_id": ["q1", "q1", "q1", "q2"],
        "request_id": ["r1", "r2", "r3", "r4"],
        "rank": [1] * 4,
        "doc_id": ["a", "x", "a", "y"],
    }
)
ASKED = pl.DataFrame({"query_id": ["q1", "q1", "q1", "q2", "q3"], "request_id": ["r1", "r2", "r3", "r4", "r5"]})
GOLD = pl.DataFrame({"query_id": ["q1", "q2", "q3"], "doc_id": ["a", "b", "c"]})


def test_requests_weigh_as_often_as_they_were_logged() -> None:
    """Each request is a unit, the one without hits too."""
    scores = score(hits=LOG, qrels=GOLD, requests=ASKED)
    assert row(scores)["mean"] == 2 / 5
    assert (row(scores)["n"], row(scores)["n_eff"]) == (5, 5.0)
    assert scores.accounting.select("n_total", "n_scored", "n_no_hits").row(0) == (5, 5, 1)
    assert scores.per_query["n_hits"].to_list() == [1, 1, 1, 1, 0]


def test_unit_query_takes_means_inside_queries_first() -> None:
    """Queries weigh alike; n counts queries, and per_query and accounting still count requests."""
    scores = score(hits=LOG, qrels=GOLD, requests=ASKED, unit="query")
    assert row(scores)["mean"] == mean([mean([1.0, 0.0, 1.0]), 0.0, 0.0])
    assert (row(scores)["n"], row(scores)["n_null"], row(scores)["n_eff"]) == (3, 0, 3.0)
    assert scores.per_query.height == scores.accounting["n_scored"].item() == 5
    assert_frame_equal(scores.per_query, score(hits=LOG, qrels=GOLD, requests=ASKED).per_query)


def test_unit_query_counts_queries_without_a_value() -> None:
    """A query has a value if any request has one; n_null counts queries with scored requests and no value."""
    scores = score(["top_doc_share@3", RECALL], hits=LOG, qrels=GOLD, requests=ASKED, unit="query")
    found = row(scores, "top_doc_share@3")
    assert (found["mean"], found["n"], found["n_null"], found["n_eff"]) == (1.0, 2, 1, 2.0)
    silent = pl.concat([ASKED, pl.DataFrame({"query_id": ["q2"], "request_id": ["r6"]})])
    found = row(score(["top_doc_share@3"], hits=LOG, qrels=GOLD, requests=silent, unit="query"), "top_doc_share@3")
    assert (found["n"], found["n_null"]) == (2, 1)


def test_unit_query_weighs_each_query_once() -> None:
    """The weight of a query is taken once under unit="query", and once for each request otherwise."""
    listed = pl.DataFrame({"query_id": ["q1", "q2", "q3"], "weight": [2.0, 3.0, 0.5]})
    by_query = row(score(hits=LOG, qrels=GOLD, requests=ASKED, queries=listed, unit="query"))
    assert by_query["mean"] == mean([mean([1.0, 0.0, 1.0]), 0.0, 0.0], [2.0, 3.0, 0.5])
    assert by_query["n_eff"] == effective_size([2.0, 3.0, 0.5])
    by_request = row(score(hits=LOG, qrels=GOLD, requests=ASKED, queries=listed))
    assert by_request["mean"] == mean([1.0, 0.0, 1.0, 0.0, 0.0], [2.0, 2.0, 2.0, 3.0, 0.5])
    assert by_request["n_eff"] == effective_size([2.0, 2.0, 2.0, 3.0, 0.5])


def test_unit_query_leaves_out_requests_that_are_not_scored() -> None:
    """A request with bad rows is in no mean of its query."""
    bad = LOG.with_columns(rank=pl.Series([1, None, 1, 1]))
    scores = score(hits=bad, qrels=GOLD, requests=ASKED, unit="query", on_bad_rows="reject")
    assert row(scores)["mean"] == mean([1.0, 0.0, 0.0])
    assert scores.accounting.select("n_scored", "n_rejected").row(0) == (4, 1)


def test_unit_query_is_of_each_run() -> None:
    """A query that two runs asked is one in each."""
    runs = {"a": LOG, "b": LOG.with_columns(doc_id=pl.Series(["x", "x", "x", "b"]))}
    scores = score(hits=runs, qrels=GOLD, requests=ASKED, unit="query")
    expected = [("a", mean([mean([1.0, 0.0, 1.0]), 0.0, 0.0]), 3), ("b", mean([0.0, 1.0, 0.0]), 3)]
    assert scores.summary().select("run_id", "mean", "n").rows() == expected


def test_unit_query_without_requests_is_the_plain_mean() -> None:
    """Where nobody logged requests every query is asked once."""
    assert_frame_equal(score(unit="query").summary(), score().summary())


def test_unit_query_does_not_depend_on_batches_or_the_folder(tmp_path: Path) -> None:
    """Queries whose requests lie in several batches too."""
    listed = pl.DataFrame({"query_id": ["q1", "q2", "q3"], "weight": [0.1, 0.2, 0.3]})
    given = {"qrels": GOLD, "requests": ASKED, "queries": listed, "unit": "query"}
    expected = score(hits=LOG, **given).summary()
    for rows in (1, 2, 1000):
        for log in (LOG, LOG.reverse()):
            again = score(hits=log, batch_rows=rows, out=tmp_path / "out", **given)
            assert_frame_equal(again.summary(), expected)
            assert_frame_equal(dr.load(tmp_path / "out").summary(), expected)


# The ceiling: what doc_recall could reach at most.


def documents(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame(columns)


def test_ceiling() -> None:
    """The mean, over the same units, of the reachable share of the relevant documents; for doc_recall alone."""
    index = documents(doc_id=["d0", "d1"])
    scores = score([RECALL, "doc_recall@1", "doc_hit@3", "naive_recall@3"], documents=index)
    reachable = [1.0, 1.0, 1.0, 2 / 3]
    ceilings = dict(scores.summary().select("measure", "ceiling").rows())
    expected = mean(reachable)
    assert ceilings == {RECALL: expected, "doc_recall@1": expected, "doc_hit@3": None, "naive_recall@3": None}
    assert row(scores)["mean"] == mean(VALUES)


def test_no_ceiling_without_documents() -> None:
    """Nobody knows what the index has."""
    assert row(score())["ceiling"] is None


def test_ceiling_of_nothing_reachable() -> None:
    """An index without any gold document has the ceiling 0, and an index of other documents hides none of the hits."""
    found = row(score(documents=documents(doc_id=["z"])))
    assert (found["ceiling"], found["mean"]) == (0.0, mean(VALUES))


def test_ceiling_is_weighed_as_the_mean() -> None:
    """By the same weights, over the scored units alone."""
    index = documents(doc_id=["d0"])
    weights = [0.1, 0.7, 1e-9, 3.3]
    assert row(weighed(list(weights), documents=index))["ceiling"] == mean([1.0, 1 / 2, 1.0, 1 / 3], weights)
    listed = pl.DataFrame({"query_id": QUERIES, "label_status": [None, None, None, "unanswerable"]})
    assert row(score(queries=listed, documents=index))["ceiling"] == mean([1.0, 1 / 2, 1.0])


def test_ceiling_by_query() -> None:
    """Inside queries first, where unit="query"."""
    index = documents(doc_id=["a", "b"])
    by_query = row(score(hits=LOG, qrels=GOLD, requests=ASKED, documents=index, unit="query"))
    assert by_query["ceiling"] == mean([1.0, 1.0, 0.0])
    assert row(score(hits=LOG, qrels=GOLD, requests=ASKED, documents=index))["ceiling"] == 4 / 5


@pytest.mark.parametrize(
    ("index", "ceiling"),
    [
        ({"doc_id": ["a", "b"]}, 1.0),
        ({"doc_id": ["a", "m"], "alias_of": [None, "b"]}, 1.0),
        ({"doc_id": ["m", "n"], "alias_of": ["n", "a"]}, 0.5),
        ({"doc_id": ["b", "c"], "alias_of": ["c", None]}, 0.5),
        ({"doc_id": ["a", "c"], "alias_of": ["c", None]}, 0.5),
    ],
    ids=str,
)
def test_ceiling_goes_by_the_names_that_aliases_lead_to(index: dict[str, Any], ceiling: float) -> None:
    """A document is in the index if any row, its own or that of another name, leads to it."""
    found = row(score(hits=hits(), qrels=qrels(), documents=documents(**index)))
    assert found["ceiling"] == ceiling
    assert found["mean"] == 1.0


def test_ceiling_of_stale_labels() -> None:
    """Stale units leave mean and ceiling; with stale="keep" they stay, and what is gone cannot be reached."""
    labels = qrels(query_id=["q1", "q1", "q2"], doc_id=["a", "x", "b"], doc_version=["v1", "v1", "v1"])
    index = documents(doc_id=["a", "x", "b"], doc_version=["v2", "v1", "v1"])
    left_out = score(hits=hits(), qrels=labels, documents=index)
    assert left_out.per_query["status"].to_list() == ["stale_labels", "scored"]
    assert (row(left_out)["mean"], row(left_out)["ceiling"], row(left_out)["n"]) == (1.0, 1.0, 1)
    kept = score(hits=hits(), qrels=labels, documents=index, stale="keep")
    assert kept.per_query["status"].to_list() == ["scored", "scored"]
    assert kept.per_query[RECALL].to_list() == [0.5, 1.0]
    assert row(kept)["ceiling"] == mean([0.5, 1.0])
    ignored = score(hits=hits(), qrels=labels, documents=index, versions="ignore")
    assert (row(ignored)["mean"], row(ignored)["ceiling"]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("served", "stale"),
    [
        (["v1"], False),
        (["v2"], True),
        (["v2", "v1"], False),
        ([None], False),
        (["v2", None], False),
        (["v2", "v3"], True),
    ],
    ids=str,
)
def test_stale_is_what_no_served_version_fits(served: list[str | None], stale: bool) -> None:
    """A label at v1, by the versions of its document that the index serves; a null fits any."""
    index = documents(doc_id=["a"] * len(served) + ["b"], doc_version=[*served, "v1"])
    scores = score(hits=hits(), qrels=qrels(doc_version=["v1", "v1"]), documents=index)
    assert scores.per_query["status"].to_list() == ["stale_labels" if stale else "scored", "scored"]


@pytest.mark.parametrize(
    ("index", "stale"),
    [
        ({"doc_id": ["a", "m", "b"], "doc_version": ["v2", None, "v1"], "alias_of": [None, "a", None]}, True),
        ({"doc_id": ["a", "m", "b"], "doc_version": ["v2", "v1", "v1"], "alias_of": [None, "a", None]}, False),
        ({"doc_id": ["m", "b"], "doc_version": [None, "v1"], "alias_of": ["a", None]}, False),
        ({"doc_id": ["m", "b"], "doc_version": ["v2", "v1"], "alias_of": ["a", None]}, True),
    ],
    ids=["own version alone", "version of a mirror", "null of a mirror alone", "other version of a mirror"],
)
def test_versions_of_a_document_are_those_of_all_its_names(index: dict[str, Any], stale: bool) -> None:
    """Another name without a version says nothing where the document has a row of its own."""
    scores = score(hits=hits(), qrels=qrels(doc_version=["v1", "v1"]), documents=documents(**index))
    assert scores.per_query["status"].to_list() == ["stale_labels" if stale else "scored", "scored"]


def test_labels_that_meet_through_an_alias_take_the_higher_grade() -> None:
    """They are one label; the merged row counts as a duplicate in the account."""
    labels = qrels(query_id=["q1", "q1", "q2"], doc_id=["a", "m", "b"], relevance=[1, 3, 1])
    index = documents(doc_id=["a", "m", "b"], alias_of=[None, "a", None])
    scores = score(hits=hits(), qrels=labels, documents=index)
    assert scores.matches.select("query_id", "doc_id", "relevance").collect().rows() == [("q1", "a", 3), ("q2", "b", 1)]
    assert scores.rows.filter(table="qrels").row(0) == ("qrels", 3, 2, 1, 0, 0)
    assert "duplicate_labels" not in scores.findings["code"]


# Which requests are units.


def test_requests_list_the_units_exactly() -> None:
    """Hits of other requests are counted and not used, and requests without hits are scored as 0."""
    scores = score(hits=LOG, qrels=GOLD, requests=ASKED.filter(pl.col("request_id").is_in(["r1", "r5"])))
    assert scores.per_query.select("request_id", "query_id", RECALL).rows() == [("r1", "q1", 1.0), ("r5", "q3", 0.0)]
    assert scores.rows.row(0) == ("hits", 4, 1, 0, 0, 3)


def test_requests_without_a_run_are_those_of_every_run() -> None:
    """And with one, of that run, also where it has no hits at all."""
    runs = {"a": LOG, "b": LOG.head(1)}
    both = score(hits=runs, qrels=GOLD, requests=ASKED)
    assert both.accounting.select("run_id", "n_total", "n_no_hits").rows() == [("a", 5, 1), ("b", 5, 4)]
    named = score(hits=runs, qrels=GOLD, requests=ASKED.with_columns(run_id=pl.Series(["a", "a", "a", "b", "c"])))
    assert named.accounting.select("run_id", "n_total", "n_no_hits").rows() == [("a", 3, 0), ("b", 1, 1), ("c", 1, 1)]


def test_requests_of_hits_are_the_units_without_a_list() -> None:
    """Labelled queries that nobody asked are no units then."""
    scores = score(hits=LOG, qrels=GOLD)
    assert scores.per_query["request_id"].to_list() == ["r1", "r2", "r3", "r4"]
    assert row(scores)["mean"] == 2 / 4
    listed = score(hits=LOG, qrels=GOLD, queries=pl.DataFrame({"query_id": ["q2", "q3"]}))
    assert listed.per_query["request_id"].to_list() == ["r4"]


def test_one_request_may_ask_several_queries() -> None:
    """The key is request and query together."""
    log = LOG.with_columns(request_id=pl.Series(["r1", "r2", "r3", "r1"]))
    assert score(hits=log, qrels=GOLD).per_query.select("request_id", "query_id").rows() == [
        ("r1", "q1"),
        ("r1", "q2"),
        ("r2", "q1"),
        ("r3", "q1"),
    ]


def test_a_request_of_a_query_that_is_not_listed_weighs_1() -> None:
    """`queries` gives status and weight; a request whose query it lacks takes them from its labels, and 1."""
    listed = pl.DataFrame({"query_id": ["q1"], "weight": [3.0], "label_status": ["answerable"]})
    scores = score(hits=LOG, qrels=GOLD, requests=ASKED, queries=listed)
    assert scores.per_query["status"].to_list() == ["scored"] * 5
    assert row(scores)["mean"] == mean([1.0, 0.0, 1.0, 0.0, 0.0], [3.0, 3.0, 3.0, 1.0, 1.0])


def test_universe_of_hits_keeps_requests_that_have_some() -> None:
    """Also where requests are listed."""
    scores = score(hits=LOG, qrels=GOLD, requests=ASKED, universe="hits")
    assert scores.per_query["request_id"].to_list() == ["r1", "r2", "r3", "r4"]


@pytest.mark.parametrize(
    ("row_of", "rejected"),
    [
        ({"run_id": "a", "request_id": None}, [("a", "r1"), ("a", "r2"), ("a", "r3")]),
        ({"run_id": None, "request_id": "r1"}, [("a", "r1"), ("b", "r1")]),
        ({"run_id": None, "request_id": None}, [(run, r) for run in "ab" for r in ("r1", "r2", "r3")]),
    ],
    ids=str,
)
def test_rows_that_do_not_name_their_request(row_of: dict[str, Any], rejected: list[tuple[str, str]]) -> None:
    """Such a row touches every unit of its query that agrees with the parts of the key that it names."""
    logs = pl.concat([LOG.with_columns(run_id=pl.lit(run)) for run in "ab"])
    lost = pl.DataFrame([{"query_id": "q1", "rank": 9, "doc_id": "a", **row_of}], schema=logs.schema)
    scores = score(hits=pl.concat([logs, lost]), qrels=GOLD, requests=ASKED, on_bad_rows="reject")
    out = scores.per_query.filter(pl.col("status") == "rejected_rows")
    assert out.select("run_id", "request_id").rows() == rejected
    assert scores.accounting["n_total"].to_list() == [5, 5]


@pytest.mark.parametrize("weight", [2.0**300, 2.0**-300, 3.0, 5e-324, 0.0])
def test_weight_beside_a_query_that_is_not_listed(weight: float) -> None:
    """A request whose query is not listed weighs 1, however large or small the weights of the others are."""
    asked = pl.DataFrame({"request_id": ["r1", "r2"], "query_id": ["q1", "q2"], "rank": [1, 1], "doc_id": ["a", "x"]})
    labels = pl.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["a", "a"]})
    listed = pl.DataFrame({"query_id": ["q1"], "weight": [weight]})
    scores = dr.score(asked, labels, "doc_recall@1", queries=listed, requests=asked.select("request_id", "query_id"))
    assert scores.summary()["mean"].item() == weight / (weight + 1)


@pytest.mark.parametrize("weights", [[5e-324, 5e-324], [1e-310, 0.0], [1.7e308, 1.7e308]])
def test_weights_at_the_ends_of_their_range(weights: list[float]) -> None:
    """Weights that are nearly 0, or nearly not finite, weigh as their ratio says."""
    labels = pl.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["a", "a"]})
    log = labels.with_columns(rank=pl.lit(1), doc_id=pl.Series(["a", "x"]))
    row = dr.score(log, labels, "doc_recall@1", queries=labels.select("query_id", weight=pl.Series(weights))).summary()
    assert row.select("mean", "n_eff").row(0) == ((0.5, 2.0) if weights[1] else (1.0, 1.0))


def test_means_by_query_without_a_scored_unit() -> None:
    """Where nothing is scored there is nothing to take means of."""
    log = pl.DataFrame({"request_id": ["r"], "query_id": ["q"], "rank": [1], "doc_id": ["a"]})
    labels = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "relevance": [0]})
    summary = dr.score(log, labels, "doc_recall@1", unit="query").summary()
    assert summary.select("mean", "n", "n_null").row(0) == (None, 0, 0)


@pytest.mark.parametrize("stale", ["exclude", "keep"])
def test_stale_labels_are_told_where_they_stand(stale: str) -> None:
    """Each table's labels of versions that the index lost are counted as its own, whatever becomes of their units."""
    qrels = pl.DataFrame({"query_id": ["q1", "q2", "q2"], "doc_id": ["a", "b", "x"], "doc_version": ["v0", "v1", "v1"]})
    evidence = pl.DataFrame(
        {
            "query_id": ["q1", "q1", "q2"],
            "evidence_id": ["e", "e", "f"],
            "doc_id": ["a", "a", "b"],
            "start": [0, 0, 0],
            "end": [5, 6, 7],
            "doc_version": ["v0", "v1", "v0"],
        }
    )
    documents = pl.DataFrame({"doc_id": ["a", "b", "x"], "doc_version": ["v1"] * 3})
    scores = dr.score(hits(), qrels, "doc_recall@3", evidence=evidence, documents=documents, stale=stale)
    told = scores.findings.filter(pl.col("code") == "stale_labels").select("table", "n_rows", "n_queries", "examples")
    # The passage e has an alternative that still holds.
    assert told.rows() == [("evidence", 1, 1, ["q2"]), ("qrels", 1, 1, ["q1"])]


def test_evidence_alone_is_what_messages_speak_of() -> None:
    """Without qrels nothing is said of qrels."""
    evidence = pl.DataFrame({"query_id": ["q1"], "evidence_id": ["e"], "doc_id": ["gone"], "start": [0], "end": [5]})
    documents = pl.DataFrame({"doc_id": ["a", "b", "x"]})
    scores = dr.score(hits(), None, "doc_recall@3", evidence=evidence, documents=documents)
    assert "qrels" not in str(scores.findings.rows())
    with pytest.raises(dr.DataError, match=r"evidence\.query_id have no id in common: .* in evidence\.") as caught:
        dr.score(hits(), None, "doc_recall@3", evidence=evidence.with_columns(query_id=pl.lit("z")))
    assert "qrels" not in str(caught.value)
