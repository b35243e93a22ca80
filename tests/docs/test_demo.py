"""The demo says what the figures say, whatever they are."""

from __future__ import annotations

import re

import pytest

from docrecall.cli import main
from docrecall.demo import RUNS, at_budget, by_run, data_folder, score_case, score_topics, what_moved


def moved(naive: tuple[float, float], real: tuple[float, float]) -> str:
    means = {run: {"naive_recall@10": naive[i], "doc_recall@10": real[i]} for i, run in enumerate(("large", "small"))}
    return what_moved(means, "large", "small")


def test_case_of_the_readme() -> None:
    """The data holds the case that started it: 150 %, 50 % and 100 %."""
    assert by_run(score_case(data_folder()))["run"] == {
        "naive_recall@3": 1.5,
        "doc_recall@3": 0.5,
        "doc_recall@3docs": 1.0,
    }


def test_topics_are_accounted_for() -> None:
    """173 questions, of which 10 have no answer, 5 no labels and 10 outdated ones, in each of the four runs."""
    accounting = score_topics(data_folder()).accounting
    assert set(accounting["run_id"]) == set(RUNS)
    assert accounting.select(
        "n_total", "n_scored", "n_unanswerable", "n_unlabelled", "n_stale_labels"
    ).unique().rows() == [(173, 148, 10, 5, 10)]


@pytest.mark.parametrize(
    ("naive", "real", "verdict"),
    [
        ((1.0, 2.0), (0.9, 0.8), "better, and the documents that are reached do not bear it out"),
        ((1.0, 2.0), (0.9, 0.9), "better, and the documents that are reached do not bear it out"),
        ((2.0, 1.0), (0.8, 0.9), "worse, and the documents that are reached do not bear it out"),
        ((1.0, 2.0), (0.8, 0.9), "both say the same"),
        ((2.0, 1.0), (0.9, 0.8), "both say the same"),
        ((1.0, 1.00001), (0.9, 0.9), "both say the same"),
    ],
)
def test_sentence_is_computed(naive: tuple[float, float], real: tuple[float, float], verdict: str) -> None:
    """The verdict follows the signs of both changes, to the digits that are printed."""
    assert verdict in moved(naive, real)


def test_sentence_has_the_figures() -> None:
    """Both values and their difference stand in the sentence."""
    assert "naive_recall@10 rises from 1.0000 to 1.2500 (+0.2500)" in moved((1.0, 1.25), (0.5, 0.25))
    assert "doc_recall@10 falls from 0.5000 to 0.2500 (-0.2500)" in moved((1.0, 1.25), (0.5, 0.25))


def test_command_prints_both_numbers_and_the_account(capsys: pytest.CaptureFixture[str]) -> None:
    """`docrecall demo` prints the case, a table with both numbers for each run, the sentence and the account."""
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    means = by_run(score_topics(data_folder()))
    for run in RUNS:
        assert f"{means[run]['naive_recall@10']:.4f}" in out
        assert f"{means[run]['doc_recall@10']:.4f}" in out
    assert "1.50" in out
    assert what_moved(means, RUNS[0], RUNS[-1]) in out
    assert at_budget(means, RUNS[0], RUNS[-1]) in out
    assert "148 of 173 units scored" in out
    for step in ("labelled", "retrieved", "in_cut", "passage", "in_budget", "answered"):
        assert re.search(rf"^{step} .*%", out, re.MULTILINE), step


@pytest.mark.parametrize(
    ("docs", "passages", "verdict"),
    [
        ((0.1, 0.2), (0.4, 0.3), "the two move apart"),
        ((0.2, 0.1), (0.3, 0.4), "the two move apart"),
        ((0.1, 0.2), (0.3, 0.4), "do not contradict"),
        ((0.1, 0.2), (0.3, 0.3), "do not contradict"),
    ],
)
def test_budget_sentence_is_computed(docs: tuple[float, float], passages: tuple[float, float], verdict: str) -> None:
    """At the same budget documents and passages move apart only where the figures say so."""
    means = {
        run: {"doc_recall@512tokens": docs[i], "evidence_recall@512tokens": passages[i]}
        for i, run in enumerate(("large", "small"))
    }
    assert verdict in at_budget(means, "large", "small")
