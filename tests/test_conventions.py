"""The conventions of other tools: by hand on one query, and over logs of all shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.conventions import CASE, CASE_K, CASE_RELEVANT, CONVENTIONS, Convention

BY_NAME = {c.name: c for c in CONVENTIONS}
OF_HITS = [c for c in CONVENTIONS if not c.of_mean]
OF_MEAN = [c for c in CONVENTIONS if c.of_mean]
QUIET: dict[str, Any] = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


def value(name: str, docs: list[str], relevant: set[str], k: int, scores: list[float] | None = None) -> float | None:
    scores = scores or [float(-place) for place in range(len(docs))]
    return BY_NAME[name].value(list(zip(docs, scores, strict=True)), relevant, k)


def hits(rows: dict[str, list[str]], **columns: Any) -> pl.DataFrame:
    """Query -> documents in rank order."""
    long = [(query, rank, doc) for query, docs in rows.items() for rank, doc in enumerate(docs, start=1)]
    frame = pl.DataFrame(long, schema={"query_id": pl.String, "rank": pl.Int64, "doc_id": pl.String}, orient="row")
    return frame.with_columns(pl.Series(name, values) for name, values in columns.items())


def qrels(rows: dict[str, list[str]], relevance: int = 1) -> pl.DataFrame:
    long = [(query, doc, relevance) for query, docs in rows.items() for doc in docs]
    return pl.DataFrame(long, schema={"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row")


def means(frame: pl.DataFrame, k: int) -> dict[str, tuple[float | None, int]]:
    """The table of one run as convention -> (value, n)."""
    assert frame["run_id"].n_unique() == 1
    return {row["convention"]: (row["value"], row["n"]) for row in frame.filter(k=k).to_dicts()}


def test_the_case_that_started_it() -> None:
    """Three chunks of the manual, then the faq: one log, four numbers."""
    found = {c.name: c.value(CASE, CASE_RELEVANT, CASE_K) for c in OF_HITS}

    assert found == {
        "every_hit_counted": 1.5,
        "denominator_grown_by_repeats": 0.75,
        "last_score_wins_then_cut": 1.0,
        "dedupe_then_cut": 1.0,
        "cut_then_dedupe": 0.5,
    }


@pytest.mark.parametrize("convention", OF_HITS, ids=lambda c: c.name)
def test_evaluators_printed_what_their_convention_gives(convention: Convention) -> None:
    """What each evaluator was seen to print on the case is the value of the convention it is listed under."""
    assert convention.seen_in
    assert {seen.printed for seen in convention.seen_in} == {convention.value(CASE, CASE_RELEVANT, CASE_K)}
    assert all(seen.version for seen in convention.seen_in)


@pytest.mark.parametrize("convention", OF_MEAN, ids=lambda c: c.name)
def test_conventions_of_the_mean_differ_in_what_they_leave_out(convention: Convention) -> None:
    """Where there are hits and relevant documents all of them cut, then dedupe."""
    assert convention.value(CASE, CASE_RELEVANT, CASE_K) == 0.5
    assert convention.seen_in


@pytest.mark.parametrize(
    ("name", "without_hits", "nothing_relevant"),
    [
        *((c.name, 0.0, None) for c in OF_HITS),
        ("no_hits_left_out", None, None),
        ("empty_as_0", 0.0, 0.0),
        ("empty_as_1", 0.0, 1.0),
        ("empty_as_nan", 0.0, None),
    ],
)
def test_queries_without_hits_or_labels(name: str, without_hits: float | None, nothing_relevant: float | None) -> None:
    """None leaves the mean; each convention of the mean changes one of the two and nothing else."""
    assert value(name, [], {"a"}, 3) == without_hits
    assert value(name, ["a"], set(), 3) == nothing_relevant


def test_a_late_low_score_demotes_a_document() -> None:
    """The manual came first, and its last chunk scored least: the document drops out of the first."""
    docs, scores = ["manual", "faq", "manual"], [0.9, 0.8, 0.1]
    assert value("last_score_wins_then_cut", docs, {"manual"}, 1, scores) == 0.0
    assert value("dedupe_then_cut", docs, {"manual"}, 1, scores) == 1.0


def test_equal_scores_stand_by_first_appearance() -> None:
    """A dict keeps the place at which a document was first put in."""
    docs, scores = ["a", "b", "a"], [0.9, 0.5, 0.5]
    assert value("last_score_wins_then_cut", docs, {"a"}, 1, scores) == 1.0


def test_repeats_below_the_cut_and_misses_are_to_be_found_too() -> None:
    """At k = 1 the case has one of four relevant rows; a document that no hit has adds one more."""
    assert BY_NAME["denominator_grown_by_repeats"].value(CASE, CASE_RELEVANT, 1) == 0.25
    assert BY_NAME["denominator_grown_by_repeats"].value(CASE, CASE_RELEVANT | {"lost"}, 3) == 0.6


@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda c: c.name)
@pytest.mark.parametrize("k", [0, -1])
def test_k_must_be_positive(convention: Convention, k: int) -> None:
    """As in `docrecall.doc_recall`."""
    with pytest.raises(ValueError, match="k must be positive"):
        convention.value(CASE, CASE_RELEVANT, k)


def test_the_table() -> None:
    """Four queries: the case, one without hits, one with nothing relevant, one that nobody labelled."""
    log = hits({"q1": [doc for doc, _ in CASE], "q3": ["faq"], "q4": ["faq"]})
    labels = pl.concat([qrels({"q1": ["manual", "faq"], "q2": ["faq"]}), qrels({"q3": ["faq"]}, relevance=0)])
    scores = dr.score(log, labels, "doc_recall@3")

    found = dr.convention_means(scores, [3])

    assert found.columns == ["run_id", "convention", "k", "value", "n", "ordered_by"]
    assert found["convention"].to_list() == [c.name for c in CONVENTIONS]
    assert means(found, 3) == {
        "every_hit_counted": (0.75, 2),
        "denominator_grown_by_repeats": (0.375, 2),
        "last_score_wins_then_cut": (0.5, 2),
        "dedupe_then_cut": (0.5, 2),
        "cut_then_dedupe": (0.25, 2),
        "no_hits_left_out": (0.5, 1),
        "empty_as_0": (0.5 / 3, 3),
        "empty_as_1": (0.5, 3),
        "empty_as_nan": (0.25, 2),
    }


def test_unanswerable_queries_have_an_empty_set() -> None:
    """Stated to have no answer, and no document is relevant: some tools would count them."""
    queries = pl.DataFrame({"query_id": ["q1", "q2"], "label_status": [None, "unanswerable"]})
    scores = dr.score(hits({"q1": ["a"], "q2": ["a"]}), qrels({"q1": ["a"]}), "doc_recall@1", queries=queries)
    found = means(dr.convention_means(scores, [1]), 1)
    assert (found["cut_then_dedupe"], found["empty_as_0"]) == ((1.0, 1), (0.5, 2))


def test_labels_are_relevant_from_min_relevance() -> None:
    """A grade below it is judged and not relevant."""
    labels = pl.concat([qrels({"q1": ["a"]}, relevance=2), qrels({"q1": ["b"]}, relevance=1)])
    scores = dr.score(hits({"q1": ["a", "b"]}), labels, "doc_recall@1", min_relevance=2)
    assert means(dr.convention_means(scores, [1]), 1)["every_hit_counted"] == (1.0, 1)


@pytest.mark.parametrize(
    ("scores", "ordered_by", "expected"),
    [
        ([0.9, 0.8, 0.1], "score", 0.0),
        ([9.0, 8.0, 8.5], "score", 1.0),
        (None, "rank", 0.0),
        ([0.9, None, 0.1], "rank", 0.0),
        ([9.0, float("nan"), 8.5], "rank", 0.0),
    ],
)
def test_scores_where_every_row_has_one_else_ranks(scores: Any, ordered_by: str, expected: float) -> None:
    """The last chunk of the first document counts, by its score or by its rank, and the table says which."""
    columns = {} if scores is None else {"score": scores}
    log = hits({"q1": ["a", "b", "a"]}, **columns)
    found = dr.convention_means(dr.score(log, qrels({"q1": ["a"]}), "doc_recall@1"), [1])
    (row,) = found.filter(convention="last_score_wins_then_cut").to_dicts()
    assert (row["ordered_by"], row["value"]) == (ordered_by, expected)
    assert set(found.filter(pl.col("convention") != "last_score_wins_then_cut")["ordered_by"]) == {"rank"}


@pytest.mark.parametrize("order", ["score", "trec_eval"])
def test_logs_ordered_by_score(order: str) -> None:
    """Ranks are then those that the scores give; the logged ones are not read."""
    log = hits({"q1": ["b", "a", "a"]}, score=[0.1, 0.9, 0.8])
    found = dr.convention_means(dr.score(log, qrels({"q1": ["a"]}), "doc_recall@1", order=order), [1])
    assert means(found, 1)["every_hit_counted"] == (1.0, 1)
    assert found.filter(convention="last_score_wins_then_cut")["ordered_by"].item() == "score"


def test_all_runs_and_all_batches(tmp_path: Path) -> None:
    """Rows in any order, in files and in many batches, give the same table; every run is in it."""
    one = hits({f"q{i}": ["a", "b", "a", "c"][i % 3 :] for i in range(20)}).with_columns(run_id=pl.lit("one"))
    both = pl.concat([one, one.with_columns(run_id=pl.lit("two"), doc_id=pl.col("doc_id").replace("a", "x"))])
    labels = qrels({f"q{i}": ["a", "c"] for i in range(21)})
    expected = dr.convention_means(dr.score(both, labels), [1, 2])
    assert sorted(expected["run_id"].unique()) == ["one", "two"]

    both.sample(fraction=1, shuffle=True, seed=3).write_parquet(tmp_path / "hits.parquet")
    shuffled = dr.score(tmp_path / "hits.parquet", labels)
    assert_frame_equal(dr.convention_means(shuffled, [1, 2], batch_rows=7), expected)


def test_written_results_do_not_have_the_hits(tmp_path: Path) -> None:
    """After `load` the tables are gone, and that is said."""
    dr.score(hits({"q1": ["a"]}), qrels({"q1": ["a"]}), out=tmp_path / "out")
    with pytest.raises(dr.UsageError, match="Score the tables again"):
        dr.convention_means(dr.load(tmp_path / "out"))


@pytest.mark.parametrize("ks", [[0], [1.5], [True], []])
def test_ks_that_are_none(ks: Any) -> None:
    """A k is a whole number of at least 1."""
    with pytest.raises(dr.UsageError, match="k "):
        dr.convention_means(dr.score(hits({"q1": ["a"]}), qrels({"q1": ["a"]})), ks)


DOCS = st.lists(st.sampled_from("abcd"), max_size=8)


@given(
    log=st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), DOCS, min_size=1),
    gold=st.dictionaries(st.sampled_from(["q1", "q2", "q3", "q4"]), st.sets(st.sampled_from("abce")), min_size=1),
    k=st.integers(1, 9),
)
@settings(max_examples=60, **QUIET)
def test_three_conventions_are_measures(log: dict[str, list[str]], gold: dict[str, set[str]], k: int) -> None:
    """On any log without gaps: cut then dedupe is doc_recall@k, dedupe then cut @kdocs, every hit naive_recall@k."""
    log_, labels = hits(log), qrels({query: sorted(docs) for query, docs in gold.items()})
    if log_.is_empty() or labels.is_empty() or not set(labels["query_id"]) & set(log_["query_id"]):
        return
    scores = dr.score(log_, labels, [f"doc_recall@{k}", f"doc_recall@{k}docs", f"naive_recall@{k}"])
    expected = [(row["mean"], row["n"]) for row in scores.summary().to_dicts()]
    found = means(dr.convention_means(scores, [k]), k)
    assert [found[n] for n in ("cut_then_dedupe", "dedupe_then_cut", "every_hit_counted")] == expected
    assert found["empty_as_nan"] == found["cut_then_dedupe"]
    assert found["denominator_grown_by_repeats"][0] <= min(1, found["every_hit_counted"][0])
    assert found["no_hits_left_out"][1] == scores.accounting["n_scored"].item() - scores.accounting["n_no_hits"].item()
