"""What charts draw, by value."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.plot import frames
from tests.plot.logs import MANUAL, labels, log, scored, two


def test_recall_under_both_cuts() -> None:
    """Three chunks of the manual take the first three places, and one of the first two documents."""
    frame = frames.recall(scored({"run": log(*MANUAL)}), [1, 3, 5])
    expected = pl.DataFrame(
        {
            "run_id": ["run"] * 6,
            "cut": ["chunks"] * 3 + ["docs"] * 3,
            "k": [1, 3, 5] * 2,
            "recall": [0.5, 0.5, 1.0, 0.5, 1.0, 1.0],
            "n": [2] * 6,
        }
    )
    assert_frame_equal(frame.drop("ci_low", "ci_high"), expected)
    assert frame.schema == frames.RECALL_SCHEMA


def test_recall_goes_as_far_as_the_longest_list() -> None:
    """By default k is 1, 2, 3, 5 where five hits are the most, and 1 where there are none."""
    assert frames.recall(two())["k"].unique().sort().to_list() == [1, 2, 3, 5]
    nobody = pl.DataFrame({"query_id": ["q0", "q1"], "label_status": ["unlabelled"] * 2})
    unasked = dr.score(log("manual").clear(), labels(), "doc_recall@1", queries=nobody)
    assert frames.recall(unasked)["k"].to_list() == [1, 1]
    assert frames.recall(unasked)["recall"].to_list() == [None, None]


def test_written_results_are_drawn_where_they_were_cut(tmp_path: Path) -> None:
    """After load k is what was written under both cuts; where nothing was, the message says what to score."""
    dr.score(log(*MANUAL), labels(), ["doc_recall@1,3", "doc_recall@3docs"], out=tmp_path / "a")
    assert frames.recall(dr.load(tmp_path / "a"))["k"].to_list() == [3, 3]
    dr.score(log(*MANUAL), labels(), ["doc_recall@1,3"], out=tmp_path / "b")
    with pytest.raises(dr.UsageError, match="such as doc_recall@10 and doc_recall@10docs"):
        frames.recall(dr.load(tmp_path / "b"))
    with pytest.raises(dr.UsageError, match="not among the written results"):
        frames.recall(dr.load(tmp_path / "a"), [10])


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        (["w128", "w32", "w256", "w64"], ["w32", "w64", "w128", "w256"]),
        (["b", "a", "10", "9", "a1", "a01b"], ["9", "10", "a", "a1", "a01b", "b"]),
        ([f"x{'9' * 5000}", "x1"], ["x1", f"x{'9' * 5000}"]),
    ],
)
def test_numbers_in_names_are_numbers(given: list[str], ordered: list[str]) -> None:
    """Chunks of 32 words come before those of 128, however long a number is."""
    assert frames.chosen(pl.Series(given), None) == ordered


def test_runs_are_chosen() -> None:
    """In the order asked for; a name that is not there is told with the nearest."""
    assert frames.recall(two(), [1], runs=["w20", "w10"])["run_id"].to_list() == ["w20", "w20", "w10", "w10"]
    with pytest.raises(dr.UsageError, match=r'no run is called \'w21\'. Did you mean "w20"\? The runs are w10, w20'):
        frames.recall(two(), runs=["w21"])


def test_frontier() -> None:
    """At 20 tokens both reach one document of two, at 40 the run that does not repeat itself reaches both."""
    frame = frames.frontier(two(), [20, 40])
    expected = pl.DataFrame(
        {
            "run_id": ["w10", "w10", "w20", "w20"],
            "measure": ["doc_recall"] * 4,
            "budget": [20, 40, 20, 40],
            "tokens": [20.0, 40.0, 20.0, 40.0],
            "recall": [0.5, 1.0, 0.5, 1.0],
            "n": [2] * 4,
            "best": [True] * 4,
        }
    )
    assert_frame_equal(frame.drop("ci_low", "ci_high"), expected)
    assert frame.schema == frames.FRONTIER_SCHEMA
    other = frames.frontier(two(), [30])
    assert other.select("tokens", "recall", "best").rows() == [(30.0, 0.5, True), (20.0, 0.5, True)]


def test_the_best_at_a_budget() -> None:
    """A higher mean at the same budget is the best, whatever was given for it."""
    runs = {"a": log("manual", "faq"), "b": log("manual", "manual")}
    frame = frames.frontier(scored(runs), [10, 20])
    assert frame.filter("best").select("run_id", "budget").rows() == [("a", 10), ("a", 20), ("b", 10)]


def test_passages_are_drawn_where_they_were_given() -> None:
    """With evidence and spans the frontier has a second measure."""
    spans = log("manual", "faq").with_columns(chunk_start=pl.lit(0), chunk_end=pl.lit(100))
    evidence = pl.DataFrame({"query_id": ["q0"], "evidence_id": ["e"], "doc_id": ["manual"], "start": [5], "end": [9]})
    scores = dr.score(spans, labels(), "doc_recall@1", evidence=evidence)
    frame = frames.frontier(scores, [10])
    assert frame.select("measure", "recall", "n").rows() == [("doc_recall", 0.5, 2), ("evidence_recall", 1.0, 1)]


def test_no_frontier_without_tokens() -> None:
    """Where nobody counted tokens there is nothing to draw, and the message says so."""
    scores = dr.score(log(*MANUAL).drop("n_tokens"), labels(), "doc_recall@1")
    with pytest.raises(dr.UsageError, match="n_tokens"):
        frames.frontier(scores)
    with pytest.raises(dr.UsageError, match="no budgets were given"):
        frames.frontier(two(), [])


def test_differences() -> None:
    """The differences of a diagnosis, with measures and cuts apart, and what a difference of 1 is."""
    told = dr.diagnose(two(10), [1, 2], [20], resamples=100)
    frame = frames.differences(told)
    assert_frame_equal(
        frame.select("baseline", "candidate", "n_pairs", "delta", "ci_low", "ci_high", "prefers"),
        told.deltas.select("baseline", "candidate", "n_pairs", "delta", "ci_low", "ci_high", "prefers"),
    )
    at_two = frame.filter(cut="2").select("measure", "delta", "prefers", "unit").rows()
    assert at_two == [("naive_recall", 0.0, None, "hits per relevant document"), ("doc_recall", 0.5, "w20", "share")]
    assert frame.filter(cut="2docs").select("measure", "delta").rows() == [("doc_recall", 0.0)]
    assert frame.schema == frames.DIFFERENCES_SCHEMA


def test_differences_are_chosen() -> None:
    """By pair and by cut, with or without the @; what was not compared is refused by name."""
    runs = {name: log(*MANUAL) for name in "abc"}
    told = dr.diagnose(scored(runs), [1, 3], [], resamples=10)
    frame = frames.differences(told, [("b", "c"), ("a", "b")], ["@3"])
    assert frame.select("baseline", "candidate", "cut").unique(maintain_order=True).rows() == [
        ("b", "c", "3"),
        ("a", "b", "3"),
    ]
    with pytest.raises(dr.UsageError, match=r"b against c was not compared; pairs are \(baseline, candidate\)"):
        frames.differences(told, [("c", "b")])
    with pytest.raises(dr.UsageError, match="nothing was compared at @10; there is 1, 1docs, 3, 3docs"):
        frames.differences(told, cuts=["10"])


def test_funnel() -> None:
    """The steps of each run in their order, with what they mean."""
    found = dr.funnel(two(), cut="@1", budget="@40tokens", need="all")
    frame = frames.funnel(found, runs=["w20"])
    assert frame.select("run_id", "step", "n", "lost").rows() == [
        ("w20", "labelled", 2, 0),
        ("w20", "retrieved", 2, 0),
        ("w20", "in_cut", 0, 2),
        ("w20", "in_budget", 0, 0),
        ("w20", "answered", 0, 0),
    ]
    assert frame["meaning"][2] == "with every relevant document inside @1"
    assert frames.funnel(found)["run_id"].unique(maintain_order=True).to_list() == ["w10", "w20"]
