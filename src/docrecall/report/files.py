"""Scores for other programs: JSON, CSV, Markdown and Parquet, each with its accounting."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Literal

import polars as pl

from docrecall.funnel import Funnel
from docrecall.report.structured import as_document, as_table
from docrecall.report.words import accounts, decision_table, funnel_notes, interval, notices, number, with_ceiling
from docrecall.scores import Scores
from docrecall.show import printable

Format = Literal["table", "json", "csv", "markdown", "parquet"]


def to_json(scores: Scores, funnel: Funnel | None = None) -> str:
    """The document of `as_document`, indented, with the table of a funnel and what it leaves out where there is one."""
    more = {} if funnel is None else {"funnel": funnel.table.to_dicts(), "funnel_left_out": funnel.left_out}
    return json.dumps(as_document(scores) | more, indent=2, ensure_ascii=False, allow_nan=False)


def to_csv(frame: pl.DataFrame) -> str:
    """CSV for people with spreadsheets: text that a spreadsheet would run gets an apostrophe in front."""
    frame = frame.with_columns(pl.selectors.duration().dt.to_string())  # CSV has no word for it
    risky = pl.col(pl.String).str.contains(r"^[=+\-@\t\r]")
    safe = frame.with_columns(
        pl.when(risky).then(pl.lit("'") + pl.col(pl.String)).otherwise(pl.col(pl.String)).name.keep()
    )
    return safe.write_csv()


def to_markdown(scores: Scores, funnel: Funnel | None = None) -> str:
    """Means with n, then accounts and findings as lists, then decisions and the funnel where there are any."""
    lists = [f"- {escape(line)}" for line in [*accounts(scores), *notices(scores)]]
    more = []
    if told := decision_table(scores):
        more += ["", markdown_table(told[0], [[printable(row[0]), *row[1:]] for row in told[1]])]
    if funnel is not None:
        more += ["", funnel_markdown(funnel)]
    tables = [_means(frame) for frame in (scores.summary(), scores.slices) if frame is not None]
    return "\n".join(["\n\n".join(tables), "", *lists, *more])


def _means(summary: pl.DataFrame) -> str:
    rows = summary.to_dicts()
    names = summary.columns[: summary.columns.index("mean")]
    cells = [
        [
            *("null" if row[c] is None else printable(row[c]) for c in names),
            number(row["mean"]),
            interval(row),
            row["n"],
            row["n_null"],
        ]
        for row in rows
    ]
    return markdown_table(*with_ceiling([*names, "mean", "interval", "n", "n_null"], cells, rows))


def funnel_markdown(funnel: Funnel) -> str:
    """One line per run and step, and notes below."""
    columns = ("run_id", "step", "measure", "n", "share", "lost", "unknown")
    cells = [
        [printable(r["run_id"]), r["step"], r["measure"] or "", r["n"], number(r["share"]), r["lost"], r["unknown"]]
        for r in funnel.table.to_dicts()
    ]
    notes = [f"- {escape(line)}" for line in funnel_notes(funnel)]
    return "\n".join([markdown_table(columns, cells), *(["", *notes] if notes else [])])


def markdown_table(columns: tuple[str, ...] | list[str], rows: list[list[Any]]) -> str:
    """A table in Markdown; numbers are set to the right."""
    head = f"| {' | '.join(columns)} |"
    first: list[Any] = list(rows[0] if rows else columns)
    rule = f"|{'|'.join('---:' if rows and isinstance(cell, int | float) else '---' for cell in first)}|"
    return "\n".join([head, rule, *(f"| {' | '.join(escape(cell) for cell in row)} |" for row in rows)])


def escape(cell: object) -> str:
    """Text that Markdown shows as it is."""
    if not isinstance(cell, str) or re.fullmatch(r"`[a-z0-9_]+`", cell):  # our own names in code spans stay
        return str(cell)
    return re.sub(r"([\\`*\[\]<>|#])", r"\\\1", cell)


def write(scores: Scores, how: Format, funnel: Funnel | None = None) -> None:
    """Write to stdout in a format that is not the terminal's. CSV and Parquet hold one table: the funnel's, if any."""
    match how:
        case "json":
            print(to_json(scores, funnel))
        case "csv":
            print(to_csv(as_table(scores) if funnel is None else funnel.table), end="")
        case "markdown":
            print(to_markdown(scores, funnel))
        case "parquet":
            (as_table(scores) if funnel is None else funnel.table).write_parquet(sys.stdout.buffer)
        case "table":
            raise AssertionError("the terminal's own format is printed by report.terminal")
