"""The columnar path and the definition agree bit for bit on generated logs."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings

import docrecall as dr
from tests.agreement.case import Case, Rows
from tests.agreement.compare import check
from tests.agreement.strategies import big_cases, small_cases

DONE: Counter[str] = Counter()
HITS = {"query_id": pl.String, "rank": pl.Int64, "doc_id": pl.String}
RUN_HITS = {"run_id": pl.String, **HITS}
QRELS = {"query_id": pl.String, "doc_id": pl.String}
QUIET = {
    "deadline": None,
    "database": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


@given(case=small_cases())
@settings(max_examples=120, **QUIET)
def test_small_logs(case: Case):
    """Logs of up to three queries per run, every cell chosen by Hypothesis, score as the definition says."""
    DONE["units"] += check(case)
    DONE["calls"] += 1


@given(case=big_cases())
@settings(max_examples=600, **QUIET)
def test_big_logs(case: Case):
    """Logs of up to thirty queries per run score as the definition says."""
    DONE["units"] += check(case)
    DONE["calls"] += 1


@pytest.mark.parametrize("step", [1, 3, 130])
def test_long_lists_of_many_relevant_documents(step: int):
    """Sums of dozens of terms, and places in the thousands, have the bits of the definition.

    A product with a reciprocal or another order of adding shows here in the last bit.
    """
    r = Random(step)
    docs = [f"d{i:02}" for i in range(60)]
    hits, labels = [], []
    for query in range(60):
        rank = 0
        for _ in range(70):
            rank += r.randint(1, step)
            hits.append((query, rank, r.choice(docs)))
        labels += [(query, doc, r.randint(0, 7)) for doc in r.sample(docs, 40)]
    measures = tuple(f"{name}@{cut}" for name in ("doc_ap", "doc_ndcg") for cut in ("40", "30docs", "20000", "all"))
    qrels = Rows({"query_id": pl.Int64, "doc_id": pl.String, "relevance": pl.Int64}, labels)

    assert check(Case({None: Rows({**HITS, "query_id": pl.Int64}, hits)}, qrels, None, measures, batch_rows=1000)) == 60


def test_discounts_are_those_of_math_log2():
    """A lone relevant document deep in the list is worth 1 / math.log2(place + 1) exactly.

    At these places a vectorised logarithm was seen to differ in the last bit.
    """
    places = [1620, 3241, 6483, 7956, 12967, 15913, 25935, 28598, 31827, 51871, 57197, 57802, 63655, 104702, 107176]
    hits = pl.DataFrame({"query_id": places, "rank": places, "doc_id": places})

    got = dr.score(hits, hits.drop("rank"), "doc_ndcg@200000").per_query

    assert got["doc_ndcg@200000"].to_list() == [1 / math.log2(place + 1) for place in places]


def test_enough_was_compared(request: pytest.FixtureRequest):
    """The two tests above made at least 600 calls and compared at least 10,000 units."""
    names = {item.name for item in request.session.items}
    if not {"test_small_logs", "test_big_logs"} <= names:
        pytest.skip("only a selection of this file runs")
    assert DONE["calls"] >= 600
    assert DONE["units"] >= 10_000


# The smallest cases of what generated logs have found.

GRADED = {**QRELS, "relevance": pl.Int64}
MEASURES = ("doc_recall@1", "context_chunks@all")
REJECT = {"on_bad_rows": "reject"}
TWO_LABELS = Rows(QRELS, [("q", "a"), ("r", "b")])


def statuses(
    hits: Rows, qrels: Rows = TWO_LABELS, queries: Rows | None = None, **options: str
) -> list[tuple[str, str, str]]:
    """Check a case against the oracle, and give run, query and status of each unit."""
    case = Case({None: hits}, qrels, queries, MEASURES, options)
    check(case)
    frames = None if queries is None else queries.frame()
    scores = dr.score(hits.frame(), qrels.frame(), list(MEASURES), queries=frames, **options)
    return scores.per_query.select("run_id", "query_id", "status").rows()


@pytest.mark.parametrize("rows", [[("q", 1, "a"), ("q", 2**53, "b")], [("q", 2**53, "b"), ("q", 1, "a")]])
def test_rank_beyond_every_log_is_an_error_also_in_sorted_rows(rows: list[tuple[str, int, str]]):
    """Whether a rank of 2^53 is refused does not depend on the order of the rows."""
    case = Case({None: Rows(HITS, rows)}, TWO_LABELS, None, MEASURES)

    check(case)

    with pytest.raises(dr.DataError, match=r"rank of 2\^53"):
        dr.score(Rows(HITS, rows).frame(), TWO_LABELS.frame(), list(MEASURES))


def test_log_of_bad_rows_alone_still_shares_its_queries():
    """When every hit is rejected its query is rejected_rows; ids that meet are not called strangers."""
    assert statuses(Rows(HITS, [("q", None, "a")]), **REJECT) == [("run", "q", "rejected_rows"), ("run", "r", "scored")]


def test_rejected_labels_still_share_their_queries():
    """A query that only a bad label names is in both tables: rejected_rows, and no error of ids that never meet."""
    qrels = Rows(GRADED, [("q", "a", None), ("r", "b", 1)])

    found = statuses(Rows(HITS, [("q", 1, "a")]), qrels, **REJECT)

    assert found == [("run", "q", "rejected_rows"), ("run", "r", "scored")]


def test_a_bad_row_of_the_list_is_no_label():
    """A query that is only listed, twice, does not make strangers of hits and labels meet."""
    queries = Rows({"query_id": pl.String}, [("x",), ("x",), ("q",)])

    with pytest.raises(dr.DataError, match="no id in common"):
        statuses(Rows(HITS, [("x", 1, "a")]), TWO_LABELS, queries, **REJECT)


def test_row_without_run_alone_still_shares_its_query():
    """The only hit of a labelled query has no run: its unit is rejected_rows, and no stranger is seen."""
    found = statuses(Rows(RUN_HITS, [(None, "q", 1, "a"), ("A", "z", 1, "a")]), **REJECT)

    assert found == [("A", "q", "rejected_rows"), ("A", "r", "scored"), ("A", "z", "unlabelled")]


def test_row_without_run_touches_its_query_in_every_run():
    """A hit whose run is null may be of any run, so no run has its query scored, with other hits or without any."""
    hits = Rows(RUN_HITS, [(None, "q", 1, "a"), ("A", "q", 1, "a"), ("A", "r", 1, "b"), ("B", "r", 1, "b")])

    found = statuses(hits, **REJECT)

    assert found == [
        ("A", "q", "rejected_rows"),
        ("A", "r", "scored"),
        ("B", "q", "rejected_rows"),
        ("B", "r", "scored"),
    ]


def test_bad_label_does_not_list_its_query():
    """A bad label of a query that the queries table does not list makes no unit."""
    qrels = Rows(GRADED, [("q", "a", 1), ("stranger", "a", None)])

    found = statuses(Rows(HITS, [("q", 1, "a")]), qrels, Rows({"query_id": pl.String}, [("q",)]), **REJECT)

    assert found == [("run", "q", "scored")]


def test_query_that_is_listed_twice_is_rejected_and_not_outside():
    """With universe="hits" a badly listed query stays in the universe, and its labels are not counted outside."""
    queries = Rows({"query_id": pl.String}, [("q",), ("q",), ("r",)])

    found = statuses(Rows(HITS, [("q", 1, "a"), ("r", 1, "b")]), TWO_LABELS, queries, universe="hits", **REJECT)

    assert found == [("run", "q", "rejected_rows"), ("run", "r", "scored")]


@pytest.mark.parametrize("policy", ["error", "reject"])
@pytest.mark.parametrize("twin", ["\u212a", "K\u0301"])
def test_ids_that_nfc_makes_one_are_always_refused(policy: str, twin: str):
    """The Kelvin sign becomes an ASCII K, so K beside it collapses; setting rows aside is no remedy."""
    other = "K" if twin == "\u212a" else "\u1e30"
    hits = Rows(HITS, [("q", 1, other), ("q", 2, twin)])
    options = {"normalize_ids": "NFC", "on_bad_rows": policy}

    check(Case({None: hits}, TWO_LABELS, None, MEASURES, options))

    with pytest.raises(dr.DataError, match="Two ids would be taken for one"):
        dr.score(hits.frame(), TWO_LABELS.frame(), list(MEASURES), **options)


@pytest.mark.parametrize("policy", ["error", "reject"])
@pytest.mark.parametrize(("kind", "large"), [(pl.UInt64, 2**63), (pl.Int128, -(2**63) - 1), (pl.Int128, 2**70)])
@pytest.mark.parametrize("table", ["hits", "qrels"])
def test_ids_beyond_64_bits_are_refused_by_name(policy: str, kind: type[pl.DataType], large: int, table: str):
    """An integer id that Int64 cannot hold is a DataError that names table and column, whatever table it is in."""
    doc_id = {"hits": 1, "qrels": 1} | {table: large}
    hits = pl.DataFrame({"query_id": ["q"], "rank": [1], "doc_id": pl.Series([doc_id["hits"]], dtype=kind)})
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": pl.Series([doc_id["qrels"]], dtype=kind)})

    with pytest.raises(dr.DataError, match=rf"{table}\.doc_id: 1 id beyond a signed 64-bit integer"):
        dr.score(hits, qrels, list(MEASURES), on_bad_rows=policy)


def test_grades_beyond_64_bits_are_refused_by_name():
    """A grade that Int64 cannot hold is a DataError and not a failed cast of the engine."""
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "relevance": pl.Series([2**63], dtype=pl.UInt64)})

    with pytest.raises(dr.DataError, match=r"qrels\.relevance: 1 label"):
        dr.score(Rows(HITS, [("q", 1, "a")]).frame(), qrels, list(MEASURES))


@pytest.mark.parametrize("rank", [-(2**90), 2**90])
def test_ranks_of_128_bits_are_bad_rows(rank: int):
    """A rank far outside 64 bits breaks a rule of ranks and is no failed cast of the engine."""
    hits = pl.DataFrame({"query_id": ["q"], "rank": pl.Series([rank], dtype=pl.Int128), "doc_id": ["a"]})

    with pytest.raises(dr.DataError, match=r"hits\.rank: 1 hit with a rank"):
        dr.score(hits, TWO_LABELS.frame(), list(MEASURES))


def test_set_aside_rows_are_warnings():
    """Error findings live in a DataError only: in results the same codes are warnings."""
    hits = Rows(HITS, [("q", None, "a"), ("r", 1, "b")]).frame()

    found = dr.score(hits, TWO_LABELS.frame(), list(MEASURES), **REJECT).findings

    assert found.select("code", "severity").rows() == [("rank_null", "warning")]


@pytest.mark.parametrize("batch_rows", [0, -1])
def test_batches_have_rows(batch_rows: int):
    """A batch size below 1 is a UsageError, whatever way the rows would take."""
    with pytest.raises(dr.UsageError, match="batch_rows"):
        dr.score(Rows(HITS, [("q", 1, "a")]).frame(), TWO_LABELS.frame(), list(MEASURES), batch_rows=batch_rows)


def test_integers_of_128_bits_in_files(tmp_path):
    """A Parquet file with 128-bit integers, whose footer pyarrow does not read, scores as a frame does."""
    hits = pl.DataFrame({"query_id": pl.Series([1], dtype=pl.Int128), "rank": [1], "doc_id": ["a"]})
    qrels = pl.DataFrame({"query_id": [1], "doc_id": ["a"]})
    hits.write_parquet(tmp_path / "hits.parquet")

    assert dr.score(tmp_path / "hits.parquet", qrels, list(MEASURES)).per_query.rows() == [(
        "run", 1, "scored", 1, 1.0, 1.0,
    )]  # fmt: skip
