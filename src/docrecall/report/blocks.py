"""What a report says, before it takes a form: tables and lists of lines. Markdown, LaTeX and HTML are made of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import polars as pl

from docrecall.funnel import Funnel
from docrecall.report.words import (
    accounts,
    decision_table,
    funnel_notes,
    mean_cell,
    notices,
    number,
    rows_of_means,
)
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
        yield means(scores.summary(), scores.measures)
    if scores.slices is not None:
        yield Table(*rows_of_means(scores.slices))
    yield Lines([*accounts(scores), *notices(scores)])
    if told := decision_table(scores):
        yield Table(*told)
    if funnel is not None:
        yield from of_funnel(funnel)


def means(summary: pl.DataFrame, measures: Iterable[str]) -> Table:
    """Measures down and runs across, or, where there are many runs, one line per run and measure."""
    rows = summary.to_dicts()
    runs = list(dict.fromkeys(row["run_id"] for row in rows))
    if len(runs) > MOST_RUNS:
        return Table(*rows_of_means(summary))
    at = {(row["run_id"], row["measure"]): row for row in rows}
    return Table(["mean of", *runs], [[m, *(mean_cell(at[run, m]) for run in runs)] for m in measures])


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
