"""The funnel: where answers get lost, each step the conjunction with those before it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from tests.seven import tables
from tests.small import hits, qrels

STEPS = ["labelled", "retrieved", "in_cut", "passage", "in_budget", "answered"]
# Each query is lost one step later than the one before it; what comes after that step would let it pass.
LOST_AT = {"q1": "labelled", "q2": "retrieved", "q3": "in_cut", "q4": "passage", "q5": "in_budget", "q6": "answered"}


def log(*, tokens: bool = True) -> pl.DataFrame:
    """Two hits for each of q1 to q7: the gold document d first, but for q2 (never) and q3 (second)."""
    rows = []
    for query in (f"q{i}" for i in range(1, 8)):
        docs = {"q2": ["x", "y"], "q3": ["x", "d"]}.get(query, ["d", "x"])
        for rank, doc in enumerate(docs, start=1):
            end = 5 if query == "q4" else 10
            rows.append((query, rank, doc, 0, end, 100 if query == "q5" else 1))
    names = ["query_id", "rank", "doc_id", "chunk_start", "chunk_end", "n_tokens"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return frame if tokens else frame.drop("n_tokens")


def given() -> dict[str, pl.DataFrame]:
    """Labels of q2 to q7, passages of the same, and answers to all but q6."""
    queries = [f"q{i}" for i in range(1, 8)]
    return {
        "qrels": pl.DataFrame({"query_id": queries[1:], "doc_id": ["d"] * 6}),
        "evidence": pl.DataFrame(
            {"query_id": queries[1:], "evidence_id": ["e"] * 6, "doc_id": ["d"] * 6, "start": [0] * 6, "end": [10] * 6}
        ),
        "requests": pl.DataFrame({"query_id": queries, "answered": [q != "q6" for q in queries]}),
    }


def score(log_: Any, measures: Any = "doc_recall@1", **rest: Any) -> dr.Scores:
    tables_ = dict(rest)
    return dr.score(log_, tables_.pop("qrels", None), measures, **tables_)


def short(funnel: dr.Funnel) -> list[tuple[Any, ...]]:
    return funnel.table.select("step", "n", "lost", "unknown").rows()


def test_each_step_is_the_conjunction_with_those_before_it() -> None:
    """Seven units, each lost one step after another; n falls by one, and shares are of the labelled."""
    followed = dr.funnel(score(log(), **given()), cut="@1", budget="@50tokens")

    assert [step.name for step in followed.steps] == STEPS
    assert short(followed) == [(step, 6 - i, 1, 0) for i, step in enumerate(STEPS)]
    assert followed.table["share"].to_list() == [n / 6 for n in (6, 5, 4, 3, 2, 1)]
    assert followed.table["of_previous"].to_list() == [6 / 7, 5 / 6, 4 / 5, 3 / 4, 2 / 3, 1 / 2]
    assert followed.table["run_id"].unique().to_list() == ["run"]
    assert followed.table["measure"].to_list() == [
        None,
        "doc_hit@all",
        "doc_hit@1",
        "evidence_hit@1",
        "evidence_hit@50tokens",
        None,
    ]


def test_lost_names_the_units_and_joins() -> None:
    """Each lost unit stands once, with its step, and joins to `per_query` on the key."""
    scores = score(log(), **given())
    followed = dr.funnel(scores, cut="@1", budget="@50tokens")

    assert dict(followed.lost.select("query_id", "step").rows()) == LOST_AT
    assert followed.lost.columns == [*scores.key, "step"]
    assert followed.lost.height == followed.table["lost"].sum()
    assert_frame_equal(followed.lost, followed.lost.sort(scores.key))
    joined = scores.per_query.join(followed.lost, on=scores.key, how="left", validate="1:1")
    assert joined.filter(pl.col("step").is_null())["query_id"].to_list() == ["q7"]


def test_a_step_later_does_not_bring_a_unit_back() -> None:
    """A passage outside the cut that fits the budget stays lost at the cut."""
    followed = dr.funnel(score(log(), **given()), cut="@1", budget="@1000tokens")
    assert dict(followed.lost.rows_by_key("query_id", unique=True))["q3"] == ("run", "in_cut")
    assert short(followed)[4] == ("in_budget", 3, 0, 0)


@pytest.mark.parametrize(("need", "n"), [("any", [2, 2, 2, 2, 2, 2]), ("all", [2, 1, 1, 1, 1, 1])])
def test_need(need: Any, n: list[int]) -> None:
    """One relevant document and passage is enough, or all of them are needed."""
    labels = {"query_id": ["q1", "q1", "q2"], "doc_id": ["a", "z", "b"]}
    passages = labels | {"evidence_id": ["e1", "e2", "e3"], "chunk_id": None}
    scores = score(**_renamed(tables("hits", "qrels", "evidence", qrels=labels, evidence=passages)))
    followed = dr.funnel(scores, cut="@10", budget="@10tokens", need=need)
    assert followed.table["n"].to_list() == n
    which = {"any": "hit", "all": "all"}[need]
    assert followed.table["measure"].to_list()[1:5] == [
        f"doc_{which}@all",
        f"doc_{which}@10",
        f"evidence_{which}@10",
        f"evidence_{which}@10tokens",
    ]


def _renamed(frames: dict[str, pl.DataFrame]) -> dict[str, Any]:
    return {("log_" if name == "hits" else name): frame for name, frame in frames.items()}


def test_coverage() -> None:
    """Half of a passage is enough where half is asked for."""
    scores = score(log(), **given())
    followed = dr.funnel(scores, cut="@1", budget="@50tokens", coverage=0.5)
    assert dict(followed.lost.select("query_id", "step").rows()) == {q: s for q, s in LOST_AT.items() if q != "q4"}
    assert followed.table["measure"][3] == "evidence_hit(coverage=0.5)@1"


def test_units_without_a_passage_pass_and_are_told() -> None:
    """A scored unit that no passage speaks of is not lost there; it is counted as unknown at both steps."""
    frames = given()
    frames["evidence"] = frames["evidence"].filter(pl.col("query_id") != "q4")
    followed = dr.funnel(score(log(), **frames), cut="@1", budget="@50tokens")
    assert "q4" not in followed.lost["query_id"]
    assert followed.table["unknown"].to_list() == [0, 0, 0, 1, 1, 0]
    assert followed.table["n"].to_list() == [6, 5, 4, 4, 3, 2]


def test_without_evidence() -> None:
    """There is no step of passages; the budget asks for the document."""
    frames = given()
    del frames["evidence"]
    followed = dr.funnel(score(log(), **frames), cut="@1", budget="@50tokens")
    assert [s.name for s in followed.steps] == ["labelled", "retrieved", "in_cut", "in_budget", "answered"]
    assert followed.table["measure"][3] == "doc_hit@50tokens"
    lost = dict(followed.lost.select("query_id", "step").rows())
    assert lost == {q: s for q, s in LOST_AT.items() if q != "q4"}


def test_without_labels_of_documents() -> None:
    """The documents of passages are the labels."""
    frames = given()
    del frames["qrels"]
    followed = dr.funnel(score(log(), **frames), cut="@1", budget="@50tokens")
    assert dict(followed.lost.select("query_id", "step").rows()) == LOST_AT


def test_without_tokens() -> None:
    """Where nobody counted tokens the default budget has no step; another budget is asked for in vain."""
    scores = score(log(tokens=False), **given())
    followed = dr.funnel(scores, cut="@1")
    assert [s.name for s in followed.steps] == [s for s in STEPS if s != "in_budget"]
    with pytest.raises(dr.DataError, match=r"hits\.n_tokens"):
        dr.funnel(scores, cut="@1", budget="@50tokens")


def test_budget_none_leaves_its_step_out() -> None:
    """Also where tokens are there."""
    followed = dr.funnel(score(log(), **given()), cut="@1", budget=None)
    assert [s.name for s in followed.steps] == [s for s in STEPS if s != "in_budget"]
    assert followed.lost.filter(query_id="q5").is_empty()


def test_tokens_of_chunks() -> None:
    """The default budget is followed where the table of chunks has the tokens."""
    frames = _renamed(tables("hits", "qrels", "chunks", hits={"n_tokens": None}, chunks={"n_tokens": [1500, 501, 5]}))
    followed = dr.funnel(score(**frames))
    assert followed.table.filter(step="in_budget").select("measure", "n", "lost").rows() == [
        ("doc_hit@2000tokens", 1, 1)
    ]


def test_without_requests_a_hit_is_an_answer() -> None:
    """Nobody said what was answered: units with hits were."""
    frames = given()
    del frames["requests"]
    followed = dr.funnel(score(log(), **frames), cut="@1", budget="@50tokens")
    assert short(followed)[-1] == ("answered", 2, 0, 0)


def test_logged_requests_are_the_units() -> None:
    """With request_id each request is followed by itself, and the lost ones are named by it."""
    log_ = {
        "query_id": ["q1", "q1", "q2"],
        "request_id": ["r1", "r2", "r3"],
        "rank": [1, 1, 1],
        "doc_id": ["a", "x", "b"],
    }
    asked = {"query_id": ["q1", "q1", "q2"], "request_id": ["r1", "r2", "r3"], "answered": [True, True, False]}
    scores = score(hits(**log_), qrels=qrels(), requests=pl.DataFrame(asked))
    followed = dr.funnel(scores)
    assert followed.lost.columns == ["run_id", "request_id", "query_id", "step"]
    assert followed.lost.rows() == [("run", "r2", "q1", "retrieved"), ("run", "r3", "q2", "answered")]
    assert followed.table["n"].to_list() == [3, 2, 2, 1]


def test_each_run_has_its_own() -> None:
    """Runs stand one after the other, sorted, each with its counts; a run in which nothing is scored has no shares."""
    empty = hits().clear()
    scores = score({"b": hits(), "a": hits(doc_id=["x", "y", "b"]), "c": empty}, qrels=qrels(), universe="hits")
    followed = dr.funnel(scores)
    by_run = {run: rows for (run,), rows in followed.table.partition_by("run_id", as_dict=True).items()}
    assert followed.table["run_id"].to_list() == [run for run in "abc" for _ in range(4)]
    assert by_run["a"]["n"].to_list() == [2, 1, 1, 1]
    assert by_run["b"]["n"].to_list() == [2, 2, 2, 2]
    assert by_run["c"].select("n", "share", "of_previous", "lost").rows() == [(0, None, None, 0)] * 4
    assert followed.lost.rows() == [("a", "q1", "retrieved")]


def test_nothing_scored() -> None:
    """Units that are not scored are lost at the first step, and no share is a number."""
    listed = pl.DataFrame({"query_id": ["q1", "q2"], "label_status": ["unanswerable", "unlabelled"]})
    followed = dr.funnel(score(hits(), qrels=qrels(), queries=listed))
    assert short(followed)[0] == ("labelled", 0, 2, 0)
    assert followed.table["share"].to_list() == [None] * 4
    assert followed.table["of_previous"].to_list() == [0.0, None, None, None]
    assert followed.lost["step"].to_list() == ["labelled", "labelled"]


def test_no_units_at_all() -> None:
    """Without a unit there is one empty funnel."""
    followed = dr.funnel(score(hits().clear(), qrels=qrels().clear()))
    assert followed.table["n"].to_list() == [0] * 4
    assert followed.lost.is_empty()
    assert followed.lost.columns == ["run_id", "query_id", "step"]


ALL_OF_THEM = ["doc_hit@all", "doc_hit@1", "evidence_hit@1", "evidence_hit@50tokens"]


def test_after_load(tmp_path: Path) -> None:
    """Written results that hold the measures give an equal funnel; others say which are missing."""
    scores = score(log(), ["doc_recall@1", *ALL_OF_THEM], out=tmp_path / "out", **given())
    expected = dr.funnel(score(log(), **given()), cut="@1", budget="@50tokens")
    for each in (scores, dr.load(tmp_path / "out")):
        followed = dr.funnel(each, cut="@1", budget="@50tokens")
        assert_frame_equal(followed.table, expected.table)
        assert_frame_equal(followed.lost, expected.lost)
        assert followed.steps == expected.steps
    with pytest.raises(dr.UsageError, match=r"doc_hit@2, evidence_hit@2: not among the written results"):
        dr.funnel(dr.load(tmp_path / "out"), cut="@2", budget="@50tokens")


def test_tables_are_read_once_more_only_when_needed(tmp_path: Path) -> None:
    """Scores that hold the measures do not look at the tables again; others do, once, and see that one changed."""
    path = tmp_path / "hits.parquet"
    log().write_parquet(path)
    enough, more = (score(path, [*ALL_OF_THEM, "doc_recall@1"][skip:], **given()) for skip in (0, 1))
    passes = []

    def again(measures: Any) -> dr.Scores:
        passes.append([str(m) for m in measures])
        return enough

    dr.funnel(replace(enough, _again=again), cut="@1", budget="@50tokens")
    assert passes == []
    dr.funnel(replace(more, _again=again), cut="@1", budget="@50tokens")
    assert passes == [ALL_OF_THEM]
    log().head(5).write_parquet(path)
    dr.funnel(enough, cut="@1", budget="@50tokens")
    with pytest.raises(dr.InputError):
        dr.funnel(more, cut="@1", budget="@50tokens")


def test_policies_stay() -> None:
    """The second pass is under the same policies."""
    bad = hits(rank=[1, None, 1])
    scores = score(bad, qrels=qrels(), on_bad_rows="reject")
    assert dr.funnel(scores).lost.rows() == [("run", "q1", "labelled")]


def test_asking_changes_nothing() -> None:
    """Following twice gives the same frames, and leaves the scores as they were."""
    scores = score(log(), **given())
    before = scores.per_query
    first, second = (dr.funnel(scores, cut="@1", budget="@50tokens") for _ in range(2))
    assert_frame_equal(first.table, second.table)
    assert_frame_equal(first.lost, second.lost)
    assert_frame_equal(scores.per_query, before)


@pytest.mark.parametrize(
    "asked",
    [
        {"cut": "10"},
        {"cut": "@"},
        {"cut": "@0"},
        {"cut": "@1,2"},
        {"cut": "@10pages"},
        {"cut": 10},
        {"cut": None},
        {"budget": "2000tokens"},
        {"budget": 2000},
        {"coverage": 0},
        {"coverage": 1.5},
        {"coverage": float("nan")},
        {"need": "most"},
        {"need": None},
    ],
    ids=str,
)
def test_words_without_a_meaning(asked: dict[str, Any]) -> None:
    """They raise a ValueError of ours that ends a command with 2."""
    scores = score(log(), **given())
    with pytest.raises((dr.UsageError, dr.MeasureError)) as caught:
        dr.funnel(scores, **asked)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("cut", ["@1docs", "@context", "@3chunks"])
def test_any_cut_will_do(cut: str) -> None:
    """Documents, context and all hits are cuts too."""
    log_ = log().with_columns(in_context=pl.lit(True))
    followed = dr.funnel(score(log_, **given()), cut=cut, budget="@50tokens")
    lost = dict(followed.lost.select("query_id", "step").rows())
    assert lost == {q: s for q, s in LOST_AT.items() if q != "q3" or cut == "@1docs"}


def test_budget_may_be_any_cut() -> None:
    """What fits is said by a cut, which may be the context that the log tells of."""
    log_ = log().with_columns(in_context=pl.col("query_id") != "q5")
    followed = dr.funnel(score(log_, **given()), cut="@1", budget="@context")
    assert dict(followed.lost.select("query_id", "step").rows()) == LOST_AT


@pytest.mark.parametrize("words", [{"cut": "@all"}, {"cut": "@5tokens", "budget": "@5tokens"}, {"budget": None}])
def test_steps_that_ask_for_the_same_measure(words: dict[str, Any]) -> None:
    """A cut that is the budget, or every hit, is a step like any other."""
    log = pl.DataFrame({"query_id": ["q"], "rank": [1], "doc_id": ["a"], "n_tokens": [3]})
    scores = dr.score(log, log.select("query_id", "doc_id"), "doc_recall@1")
    assert set(dr.funnel(scores, **words).table["n"]) == {1}


@pytest.mark.parametrize("coverage", ["1", 0, -0.5, 1.5, True, None])
@pytest.mark.parametrize("evidence", [False, True])
def test_a_coverage_that_is_none(coverage: Any, evidence: bool) -> None:
    """It is refused by name, also where no passage asks for it."""
    tables_ = given() if evidence else {"qrels": given()["qrels"]}
    with pytest.raises(dr.UsageError, match="coverage is"):
        dr.funnel(score(log(), **tables_), coverage=coverage)


def test_passages_that_the_log_cannot_speak_of_are_left_out() -> None:
    """Where neither hits nor chunks say where chunks lie, documents are followed, and a sentence says why."""
    tables_ = given()
    followed = dr.funnel(score(log().drop("chunk_start", "chunk_end"), **tables_), cut="@1", budget="@50tokens")

    assert [step.name for step in followed.steps] == [name for name in STEPS if name != "passage"]
    assert [str(step.measure) for step in followed.steps[1:-1]] == ["doc_hit@all", "doc_hit@1", "doc_hit@50tokens"]
    assert len(followed.left_out) == 1
    assert followed.left_out[0].startswith("passage: ")
    assert "chunk_start" in followed.left_out[0]


def test_a_default_budget_that_is_left_out_is_told() -> None:
    """Nobody counted tokens: the step is not there, and a sentence says so."""
    followed = dr.funnel(score(log(tokens=False), **given()), cut="@1")
    assert [step.name for step in followed.steps] == [name for name in STEPS if name != "in_budget"]
    assert len(followed.left_out) == 1
    assert followed.left_out[0].startswith("in_budget: ")
