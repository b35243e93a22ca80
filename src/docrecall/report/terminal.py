"""Scores as tables for people at a terminal. Text from data is printed as text, never as markup."""

from __future__ import annotations

from typing import Any

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from docrecall.convert import Converted
from docrecall.findings import describe
from docrecall.funnel import Funnel
from docrecall.report.words import accounts, decision_table, funnel_notes, interval, notices, number, with_ceiling
from docrecall.scores import Scores
from docrecall.show import printable

_WIDE = 200  # where there is no terminal whose width counts, lines are not folded
_STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command line; rich would end with exit code 1, which means something else here."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """A console that never guesses: no markup, no highlighting, no folding outside terminals."""
    made = _Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)
    if not made.is_terminal:
        made.width = _WIDE
    return made


def grid(columns: list[str], rows: list[list[str]], *, left: int = 1) -> Table:
    """A plain table; the first `left` columns are text, the others numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for index, column in enumerate(columns):
        # Where a terminal is narrow, names go on in the next line: nothing is cut off.
        name, is_text = Text(printable(column)), index < left
        table.add_column(name, justify="left" if is_text else "right", no_wrap=not is_text, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def means(scores: Scores, width: int) -> Table:
    """Measures down and runs across, or one line per run and measure where the runs do not fit beside each other."""
    rows = scores.summary().to_dicts()
    runs = list(dict.fromkeys(row["run_id"] for row in rows))
    by_cell = {(row["run_id"], row["measure"]): row for row in rows}
    lines = [["mean of", *runs], *([m, *(_cell(by_cell[run, m]) for run in runs)] for m in scores.measures)]
    if sum(2 + max(len(printable(cell)) for cell in column) for column in zip(*lines, strict=True)) <= width:
        return grid(lines[0], lines[1:])
    return lines_table(scores.summary())


def lines_table(summary: pl.DataFrame) -> Table:
    """One line per run, slice and measure."""
    rows = summary.to_dicts()
    names = summary.columns[: summary.columns.index("mean")]
    intervals = ["interval"] if summary["ci_low"].is_not_null().any() else []
    cells = [
        [
            *("null" if row[c] is None else str(row[c]) for c in names),
            number(row["mean"]),
            *(interval(row) for _ in intervals),
            f"{row['n']:,}",
            f"{row['n_null']:,}",
        ]
        for row in rows
    ]
    return grid(*with_ceiling([*names, "mean", *intervals, "n", "n_null"], cells, rows), left=len(names))


def _cell(row: dict[str, Any]) -> str:
    """The mean, its interval, its n where scored units have no value, and its ceiling where that is below 1."""
    notes = [f"n={row['n']:,}"] if row["n_null"] else []
    if row["ceiling"] is not None and row["ceiling"] < 1:
        notes.append(f"at most {number(row['ceiling'])}")
    mean = f"{number(row['mean'])} {interval(row)}".rstrip()
    return f"{mean} ({', '.join(notes)})" if notes else mean


def funnel_table(funnel: Funnel, width: int) -> Table:
    """Steps down and runs across, or one line per run and step where the runs do not fit beside each other."""
    rows = funnel.table.to_dicts()
    runs = list(dict.fromkeys(row["run_id"] for row in rows))
    by_cell = {(row["run_id"], row["step"]): row for row in rows}
    lines = [["step", "of all labelled units those", *runs]]
    lines += [[s.name, s.meaning, *(_passed(by_cell[run, s.name]) for run in runs)] for s in funnel.steps]
    if sum(2 + max(len(printable(cell)) for cell in column) for column in zip(*lines, strict=True)) <= width:
        return grid(lines[0], lines[1:], left=2)
    columns = ["run_id", "step", "n", "share", "lost", "unknown"]
    cells = [
        [r["run_id"], r["step"], f"{r['n']:,}", number(r["share"]), f"{r['lost']:,}", f"{r['unknown']:,}"] for r in rows
    ]
    return grid(columns, cells, left=2)


def _passed(row: dict[str, Any]) -> str:
    share = "" if row["share"] is None else f" {row['share']:.1%}"
    return f"{row['n']:,}{share}"


def print_funnel(funnel: Funnel, to: Console) -> None:
    """Print how many units pass each step and all before it."""
    to.print(funnel_table(funnel, to.width))
    for line in funnel_notes(funnel):
        to.print(Text(line))


def print_scores(scores: Scores, to: Console) -> None:
    """Print means, accounts and findings."""
    if scores.measures:
        to.print(means(scores, to.width))
    if scores.slices is not None:
        to.print(lines_table(scores.slices))
    for line in accounts(scores):
        to.print(Text(line))
    if told := decision_table(scores):
        to.print(grid(*told))
    print_notices(scores, to)


def print_converted(done: Converted, out: str, to: Console) -> None:
    """Print what a conversion read, wrote and set aside."""
    for row in done.rows.to_dicts():
        kept = f"{row['written']:,} written to {printable(out)}/{printable(row['file'])}"
        to.print(Text(f"{row['table']}: {row['read']:,} rows read = {kept} + {row['rejected']:,} rejected"))
    for finding in done.findings.to_dicts():
        to.print(Text(f"{finding['severity']}: {describe(finding)}", style=_STYLES[finding["severity"]]))


def print_notices(scores: Scores, to: Console) -> None:
    """Print findings, coloured by severity."""
    for line in notices(scores):
        to.print(Text(line, style=_STYLES[line.partition(":")[0]]))
