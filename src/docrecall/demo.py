"""The story on real data that the project carries: naive and real numbers side by side as chunks shrink.

At the same k smaller chunks give less text, so the same budget of tokens is the fair comparison, and passages show what
documents hide: whether the text that answers was there. The funnel then follows one log from its labels to its answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from docrecall.errors import InputError
from docrecall.funnel import funnel
from docrecall.report.terminal import console, grid, print_funnel
from docrecall.report.words import accounts, notices
from docrecall.score import score
from docrecall.scores import Scores

if TYPE_CHECKING:
    from rich.table import Table

BUDGET = "512tokens"
SAME_K = (
    "naive_recall@3",
    "naive_recall@10",
    "doc_recall@3",
    "doc_recall@10",
    "doc_recall@3docs",
    "doc_recall@10docs",
    "doc_ndcg@10docs",
    "repeat_share@10",
    "evidence_recall@10",
)
SAME_TOKENS = tuple(f"{name}@{BUDGET}" for name in ("context_tokens", "doc_recall", "evidence_recall"))
RUNS = ("bm25-w256", "bm25-w128", "bm25-w64", "bm25-w32")  # from large chunks to small ones
_NAIVE, _REAL = "naive_recall@10", "doc_recall@10"


def data_folder() -> Path:
    """The data inside the installed package, or in the checkout that it was installed from."""
    places = (Path(__file__).parent / "demo_data", Path(__file__).parents[2] / "data")
    for place in places:
        if (place / "topics").is_dir():
            return place
    raise InputError(
        "the demo's data is not installed with this package. Score your own tables with `docrecall score`."
    )


def score_case(folder: Path) -> Scores:
    """The case that started it: one manual supplies three chunks."""
    measures = ["naive_recall@3", "doc_recall@3", "doc_recall@3docs"]
    return score(folder / "case" / "hits.parquet", folder / "case" / "qrels.parquet", measures)


def score_topics(folder: Path) -> Scores:
    """Questions about Python's topic pages, the same pages cut into chunks of four sizes."""
    topics = folder / "topics"
    tables: dict[str, Any] = {
        name: topics / f"{name}.parquet" for name in ("qrels", "queries", "evidence", "documents", "requests")
    }
    steps = ("doc_hit@all", "doc_hit@10", "evidence_hit@10", f"evidence_hit@{BUDGET}")  # for the funnel
    return score(topics / "hits", measures=[*SAME_K, *SAME_TOKENS, *steps], **tables)


def _table(means: Mapping[str, Mapping[str, float]], measures: Sequence[str]) -> Table:
    return grid(["mean of", *RUNS], [[m, *(f"{means[run][m]:.4f}" for run in RUNS)] for m in measures])


def by_run(scores: Scores) -> dict[str, dict[str, float]]:
    """Give run -> measure -> mean."""
    means: dict[str, dict[str, float]] = {}
    for row in scores.summary().to_dicts():
        means.setdefault(row["run_id"], {})[row["measure"]] = row["mean"]
    return means


def what_moved(means: Mapping[str, Mapping[str, float]], large: str, small: str) -> str:
    """Say in a sentence what the step from large to small chunks did to the naive and to the real number."""
    naive, real = (_Move(m, means[large][m], means[small][m]) for m in (_NAIVE, _REAL))
    return f"From {large} to {small}, {naive} and {real}: {_verdict(naive, real)}."


def at_budget(means: Mapping[str, Mapping[str, float]], large: str, small: str) -> str:
    """Say in a sentence what the same step does to documents and to passages when both may give as many tokens."""
    docs, passages = (_Move(m, means[large][m], means[small][m]) for m in SAME_TOKENS[1:])
    if docs.way * passages.way < 0:
        verdict = "the two move apart, and which of them matters depends on whether whole passages are needed"
    else:
        verdict = "documents and passages do not contradict each other"
    return f"From {large} to {small}, {docs} and {passages}: {verdict}."


class _Move(NamedTuple):
    measure: str
    before: float
    after: float

    @property
    def by(self) -> float:
        return self.after - self.before

    @property
    def way(self) -> int:
        """1 up, -1 down, 0 the same to the four digits that are printed."""
        step = round(self.after, 4) - round(self.before, 4)
        return (step > 0) - (step < 0)

    def __str__(self) -> str:
        verb = {1: "rises", -1: "falls", 0: "stays"}[self.way]
        return f"{self.measure} {verb} from {self.before:.4f} to {self.after:.4f} ({self.by:+.4f})"


def _verdict(naive: _Move, real: _Move) -> str:
    if naive.way == real.way:
        return "both say the same, though only the second counts each document once"
    if naive.way > real.way:
        return "the naive number calls the smaller chunks better, and the documents that are reached do not bear it out"
    return "the naive number calls the smaller chunks worse, and the documents that are reached do not bear it out"


def print_demo() -> None:
    """Print the case and the experiment to stdout."""
    folder = data_folder()
    out = console()
    case = by_run(score_case(folder))["run"]
    out.print("One query, relevant {manual, faq}; hits in rank order: manual, manual, manual, faq, terms.")
    for measure, note in (
        ("naive_recall@3", "every relevant hit counted: 150 %, more than there is"),
        ("doc_recall@3", "distinct documents among the first 3 chunks, which the LLM was given"),
        ("doc_recall@3docs", "distinct documents among the first 3 documents"),
    ):
        out.print(f"  {measure:<17} {case[measure]:.2f}  {note}")
    scores = score_topics(folder)
    means = by_run(scores)
    out.print("\nQuestions about Python's topic pages, the same pages cut into chunks of 256 to 32 words, BM25:\n")
    out.print(_table(means, SAME_K))
    out.print(f"\n{what_moved(means, RUNS[0], RUNS[-1])}")
    out.print(f"\nThe same, with as many chunks as fit {BUDGET.removesuffix('tokens')} tokens:\n")
    out.print(_table(means, SAME_TOKENS))
    out.print(f"\n{at_budget(means, RUNS[0], RUNS[-1])}")
    out.print("\nWhere answers get lost, in each log:\n")
    print_funnel(funnel(scores, budget=f"@{BUDGET}"), out)
    out.print("")
    for line in [*accounts(scores), *notices(scores)]:
        out.print(line)
    out.print("\nScore your own: docrecall score --hits LOG.parquet --qrels LABELS.parquet")
