"""Scores for other programs and for papers: JSON, CSV, Parquet, Markdown and LaTeX, each with its accounting."""

from __future__ import annotations

import json
import sys
from typing import Literal

import polars as pl

from docrecall.funnel import Funnel
from docrecall.report.blocks import of_scores
from docrecall.report.latex import to_latex
from docrecall.report.markdown import to_markdown
from docrecall.report.structured import as_document, as_table
from docrecall.scores import Scores

Format = Literal["table", "json", "csv", "markdown", "latex", "parquet"]


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


def write(scores: Scores, how: Format, funnel: Funnel | None = None) -> None:
    """Write to stdout in a format that is not the terminal's. CSV and Parquet hold one table: the funnel's, if any."""
    match how:
        case "json":
            print(to_json(scores, funnel))
        case "csv":
            print(to_csv(as_table(scores) if funnel is None else funnel.table), end="")
        case "markdown":
            print(to_markdown(of_scores(scores, funnel)))
        case "latex":
            print(to_latex(of_scores(scores, funnel)))
        case "parquet":
            (as_table(scores) if funnel is None else funnel.table).write_parquet(sys.stdout.buffer)
        case "table":
            raise AssertionError("the terminal's own format is printed by report.terminal")
