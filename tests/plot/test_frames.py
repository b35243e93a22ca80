"""What charts draw, by value."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.cli import main
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
    assert_frame_equal(frame.drop("ci_low", "ci_high", "level"), expected)
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
    assert_frame_equal(frame.drop("ci_low", "ci_high", "level"), expected)
    assert frame.schema == frames.FRONTIER_SCHEMA
    other = frames.frontier(two(), [30])
    assert other.select("tokens", "recall", "best").rows() == [(30.0, 0.5, True), (20.0, 0.5, True)]


def test_the_best_at_a_budget() -> None:
    """A higher mean at the same budget is the best, whatever was given for it."""
    runs = {"a": log("manual", "faq"), "b": log("manual", "manual")}
    frame = frames.frontier(scored(runs), [10, 20])
    assert frame.filter("best").select("run_id", "budget").rows() == [("a", 10), ("a", 20), ("b", 10)]


def test_passages_are_drawn_where_they_were_given(tmp_path: Path) -> None:
    """With evidence and spans the frontier has a second measure; after load where it was written."""
    spans = log("manual", "faq").with_columns(chunk_start=pl.lit(0), chunk_end=pl.lit(100))
    evidence = pl.DataFrame({"query_id": ["q0"], "evidence_id": ["e"], "doc_id": ["manual"], "start": [5], "end": [9]})
    scores = dr.score(spans, labels(), "doc_recall@1", evidence=evidence)
    frame = frames.frontier(scores, [10])
    assert frame.select("measure", "recall", "n").rows() == [("doc_recall", 0.5, 2), ("evidence_recall", 1.0, 1)]

    measures = ["doc_recall@10tokens", "context_tokens@10tokens"]
    given = {"hits": spans, "qrels": labels(), "evidence": evidence}
    dr.score(**given, measures=measures, out=tmp_path / "a")
    assert frames.frontier(dr.load(tmp_path / "a"))["measure"].to_list() == ["doc_recall"]
    dr.score(**given, measures=[*measures, "evidence_recall@10tokens"], out=tmp_path / "b")
    assert frames.frontier(dr.load(tmp_path / "b"))["measure"].to_list() == ["doc_recall", "evidence_recall"]


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
        frame.select("baseline", "candidate", "n_pairs", "delta", "ci_low", "ci_high"),
        told.deltas.select("baseline", "candidate", "n_pairs", "delta", "ci_low", "ci_high"),
    )
    sides = {"w10": "baseline", "w20": "candidate", None: None}
    assert frame["prefers"].to_list() == [sides[run] for run in told.deltas["prefers"]]
    assert set(frame["prefers"]) == {"baseline", "candidate", None}
    assert frame["judged"].to_list() == [True] * 8
    at_two = frame.filter(cut="2").select("measure", "delta", "prefers", "unit").rows()
    assert at_two == [
        ("naive_recall", 0.0, None, "hits per relevant document"),
        ("doc_recall", 0.5, "candidate", "share"),
    ]
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
    with pytest.raises(
        dr.UsageError, match=r"has \('c', 'b'\), which was not compared. A pair is \(baseline, candidate\)"
    ):
        frames.differences(told, [("c", "b")])
    assert frames.differences(told, cuts="@3").equals(frames.differences(told, cuts=["3"]))
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


def sliced(n: int = 3) -> dr.Scores:
    """Two languages; in the first both documents are first, in the other only one; q2 has no language."""
    hits = pl.concat([log("manual", "faq", n=1), log("manual", "x", n=n).filter(pl.col("query_id") != "q0")])
    language = pl.DataFrame({"query_id": [f"q{i}" for i in range(n)], "language": ["en", "de", *[None] * (n - 2)]})
    return dr.score({"b": hits, "a": log("x", n=n)}, labels(n), ["naive_recall@2", "doc_recall@2"], queries=language)


def test_slices() -> None:
    """One row per run and slice, in the order of values, what has none last; naive_recall is never taken by default."""
    frame = frames.slices(sliced(), "language", min_n=1)
    expected = pl.DataFrame(
        {
            "run_id": ["a"] * 3 + ["b"] * 3,
            "slice": ["de", "en", "(no value)"] * 2,
            "n": [1] * 6,
            "mean": [0.0, 0.0, 0.0, 0.5, 1.0, 0.5],
            "judged": [True] * 6,
            "p_adjusted": pl.Series([None] * 6, dtype=pl.Float64),  # a test takes two units on each side
            "family": [0] * 6,
        }
    )
    assert_frame_equal(frame.drop("ci_low", "ci_high", "level"), expected)
    assert frame.schema == frames.SLICES_SCHEMA
    few = frames.slices(sliced(), ["language"], "doc_recall@1", ["b"])
    assert few.select("mean", "judged", "ci_low").rows() == [(0.5, False, None)] * 3


def test_slices_are_adjusted_over_what_is_drawn() -> None:
    """One run of two and one measure of two: the family is the slices of the chart."""
    odd = [["manual"] if i % 2 else ["x"] for i in range(40)]
    hits = pl.concat(log(*docs, n=40).filter(query_id=f"q{i}") for i, docs in enumerate(odd))
    queries = pl.DataFrame({"query_id": [f"q{i}" for i in range(40)], "kind": ["even", "odd"] * 20})
    both = dr.score({"a": hits, "b": hits}, labels(40), ["doc_recall@1", "doc_hit@1"], queries=queries)
    frame = frames.slices(both, "kind", "doc_hit@1", ["b"])
    assert frame["family"].to_list() == [2, 2]
    assert frame["p_adjusted"].to_list() == [1 / 10_001] * 2
    chart = dr.plot.slices(both, "kind", "doc_hit@1", ["b"]).to_dict()
    assert "*: unlike the rest of its run, p < 0.05 over 2 tests (Benjamini-Hochberg)" in chart["title"]["subtitle"]
    assert "*" in [layer["mark"].get("text") for layer in chart["layer"]]


def test_slices_of_a_duration() -> None:
    """Which the engine casts to no text."""
    queries = pl.DataFrame({"query_id": ["q0", "q1"], "took": [timedelta(seconds=1), None]})
    scores = dr.score({"a": log("manual"), "b": log("faq")}, labels(), "doc_recall@1", queries=queries)
    assert frames.slices(scores, "took", runs=["a"])["slice"].to_list() == ["PT1S", "(no value)"]
    assert frames.differences(dr.compare(scores, by="took", min_n=1))["slice"].to_list() == ["PT1S", "(no value)"]


def test_slices_that_are_not_there() -> None:
    """Columns and measures are refused as they are elsewhere."""
    with pytest.raises(dr.UsageError, match="language"):
        frames.slices(sliced(), "langage")
    with pytest.raises(dr.MeasureError):
        frames.slices(sliced(), "language", "recall@3")
    naive = dr.score(log("manual"), labels(), "naive_recall@1", queries=pl.DataFrame({"query_id": ["q0"], "x": [1]}))
    with pytest.raises(dr.UsageError, match="name a measure"):
        frames.slices(naive, "x")


def test_differences_of_a_comparison() -> None:
    """A comparison is told apart by its adjusted p; its slices are joined into one name."""
    scores = dr.score(
        {"a": log(*MANUAL, n=10), "b": log("manual", "faq", n=10)}, labels(10), ["doc_recall@2", "distinct_docs@2"]
    )
    told = dr.compare(scores, resamples=100)
    frame = frames.differences(told)
    assert frame.select("measure", "cut", "slice", "n_pairs", "delta", "prefers", "unit").rows() == [
        ("doc_recall", "2", None, 10, 0.5, "candidate", "share"),
        ("distinct_docs", "2", None, 10, 1.0, "candidate", "documents"),
    ]
    assert told.table["p_adjusted"].max() < 0.05
    backwards = frames.differences(dr.compare(scores, baseline="b", resamples=100))
    assert backwards["prefers"].to_list() == ["baseline", "baseline"]
    few = dr.score({"a": log(*MANUAL), "b": log("manual", "faq")}, labels(), "doc_recall@2")
    assert frames.differences(dr.compare(few, resamples=100)).select("prefers", "judged").rows() == [(None, True)]


def test_differences_of_runs_of_one_name() -> None:
    """Two results whose runs are both called "run" are told apart by their side."""
    old, new = (dr.score(hits, labels(10), "doc_recall@2") for hits in (log(*MANUAL, n=10), log("manual", "faq", n=10)))
    for first, second, higher in ((old, new, "candidate"), (new, old, "baseline")):
        frame = frames.differences(dr.compare(first, second, resamples=100))
        assert frame.select("baseline", "candidate", "prefers").rows() == [("run", "run", higher)]


def test_slices_with_too_few_pairs_are_not_judged() -> None:
    """What was not tested is told from what was tested and cannot be told apart."""
    found = dr.compare(sliced(9), by="language", min_n=2, measures="doc_recall@2", resamples=10)
    assert frames.differences(found).select("slice", "n_pairs", "prefers", "judged").rows() == [
        ("de", 1, None, False),
        ("en", 1, None, False),
        ("(no value)", 7, "candidate", True),
    ]


def test_differences_by_slice() -> None:
    """Each slice has its row, with the measure and the cut of the comparison."""
    frame = frames.differences(dr.compare(sliced(), by="language", min_n=1, measures="doc_recall@2", resamples=10))
    assert frame.select("cut", "slice", "delta").rows() == [
        ("2", "de", 0.5),
        ("2", "en", 1.0),
        ("2", "(no value)", 0.5),
    ]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda s: frames.recall(s, runs=[]), "runs= names no run. The runs are w10, w20"),
        (lambda s: frames.slices(s, []), "by= names no column"),
        (lambda s: frames.differences(dr.diagnose(s, [1], []), pairs=[]), "no differences to draw"),
        (lambda s: frames.differences(dr.diagnose(s, [1], []), cuts=[]), "no differences to draw"),
        (lambda s: frames.differences(dr.diagnose(scored({"a": log("x")}), [1], [])), "it takes two runs"),
        (lambda s: dr.plot.slices(s, "language", most=0), "most= is 0; at least one"),
    ],
)
def test_nothing_to_draw(draw: Any, message: str) -> None:
    """An empty choice is a slip of the hand, not an empty chart."""
    with pytest.raises(dr.UsageError, match=message):
        draw(two())


@pytest.mark.parametrize("kind", [frames.recall, frames.frontier, frames.differences, frames.funnel])
def test_results_of_another_kind(kind: Any) -> None:
    """What a chart cannot be made of is named, and what it takes."""
    with pytest.raises(dr.InputTypeError, match=r"this is drawn of .*; it was given a DataFrame"):
        kind(pl.DataFrame())


def test_one_name_is_a_list_of_one() -> None:
    """A run that is named alone is not a list of letters."""
    assert frames.recall(two(), [1], runs="w20").equals(frames.recall(two(), [1], runs=["w20"]))


def test_results_that_were_written_at_another_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The level is that of the intervals that are drawn."""
    for name, frame in (("h", log(*MANUAL, n=10)), ("q", labels(10))):
        frame.write_parquet(tmp_path / f"{name}.parquet")
    argv = [f"--hits={tmp_path / 'h.parquet'}", f"--qrels={tmp_path / 'q.parquet'}", f"--out={tmp_path / 'out'}"]
    assert main(["score", *argv, "--measure=doc_recall@3", "--measure=doc_recall@3docs", "--level=0.8"]) == 0
    written = dr.load(tmp_path / "out")
    assert frames.recall(written)["level"].unique().to_list() == [0.8]
    assert frames.recall(two(), [1])["level"].unique().to_list() == [0.95]
    assert "bands: 80 % intervals" in str(dr.plot.recall(written).to_dict()["title"])
