"""What a report says, before it takes a form: tables and lists of lines. Markdown, LaTeX and HTML are made of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from docrecall.funnel import Funnel
from docrecall.report.words import accounts, decision_table, funnel_notes, notices, number, with_ceiling
from docrecall.scores import Scores

MOST_RUNS = 4  # beside each other; more runs than that stand below each other


class Table(NamedTuple):
    """Cells as text. left: how many columns are words; the others are numbers. caption: a line above, or nothing."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    caption: str = ""


class Lines(NamedTuple):
    """Sentences, each for itself."""

    lines: Sequence[str]


Block = Table | Lines


def of_scores(scores: Scores, funnel: Funnel | None = None) -> Iterator[Block]:
    """Means, then accounts and findings, then decisions and the funnel where there are any."""
    if scores.measures:
        yield means(scores.summary().to_dicts(), scores.measures)
    yield Lines([*accounts(scores), *notices(scores)])
    if told := decision_table(scores):
        yield Table(*told)
    if funnel is not None:
        yield from of_funnel(funnel)


def means(rows: Sequence[dict[str, Any]], measures: Iterable[str]) -> Table:
    """Measures down and runs across, or, where there are many runs, one line per run and measure."""
    runs = list(dict.fromkeys(row["run_id"] for row in rows))
    if len(runs) <= MOST_RUNS:
        at = {(row["run_id"], row["measure"]): row for row in rows}
        return Table(["mean of", *runs], [[m, *(mean(at[run, m]) for run in runs)] for m in measures])
    columns = ["run_id", "measure", "mean", "n", "n_null"]
    cells = [[r["run_id"], r["measure"], with_interval(r), f"{r['n']:,}", f"{r['n_null']:,}"] for r in rows]
    return Table(*with_ceiling(columns, cells, list(rows)), left=2)


def mean(row: dict[str, Any]) -> str:
    """A mean with its interval; its n where scored units have no value, and its ceiling where that is below 1."""
    notes = [f"n={row['n']:,}"] if row["n_null"] else []
    if row["ceiling"] is not None and row["ceiling"] < 1:
        notes.append(f"at most {number(row['ceiling'])}")
    return f"{with_interval(row)} ({', '.join(notes)})" if notes else with_interval(row)


def with_interval(row: dict[str, Any]) -> str:
    """A mean, and its interval where there is one."""
    if row["ci_low"] is None or row["ci_high"] is None:
        return number(row["mean"])
    return f"{number(row['mean'])} [{number(row['ci_low'])}, {number(row['ci_high'])}]"


def of_funnel(funnel: Funnel) -> Iterator[Block]:
    """One line per run and step, and notes below."""
    columns = ["run_id", "step", "measure", "n", "share", "lost", "unknown"]
    counts = ("lost", "unknown")
    cells = [
        [r["run_id"], r["step"], r["measure"] or "", f"{r['n']:,}", number(r["share"]), *(f"{r[c]:,}" for c in counts)]
        for r in funnel.table.to_dicts()
    ]
    yield Table(columns, cells, left=3)
    if notes := funnel_notes(funnel):
        yield Lines(notes)
