"""A night, or several, as text for people at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from rich.console import Console
from rich.text import Text

from docrecall.report.terminal import grid
from docrecall.report.words import account, interval, number
from docrecall.show import printable

_STYLES = {"passed": "green", "failed": "bold red", "not_judged": "yellow"}


def print_night(night: Mapping[str, Any], to: Console) -> None:
    """Print the means, the account and the gates of one night; of one that failed, why."""
    to.print(Text(f"{night['date']}: {printable(night['reason'], 2_000)}"))
    if "runs" not in night:
        return
    rows = [
        [run["run_id"], measure, number(m["mean"]), interval(m), f"{m['n']:,}", f"{m['n_null']:,}"]
        for run in night["runs"]
        for measure, m in run["measures"].items()
    ]
    to.print(grid(["run_id", "measure", "mean", "interval", "n", "n_null"], rows, left=2))
    for run in night["runs"]:
        to.print(Text(account({"run_id": run["run_id"], **run["accounting"]})))
    for gate in night["gates"]:
        words = gate["status"].replace("_", " ")
        to.print(Text(f"{gate['gate']}: {words}: {printable(gate['why'], 500)}", style=_STYLES[gate["status"]]))


def print_total(table: pl.DataFrame, to: Console) -> None:
    """Print the means of several nights together."""
    named = table.columns[: table.columns.index("mean")]
    rows = [
        [*(str(row[c]) for c in named), number(row["mean"]), interval(row), f"{row['n']:,}", f"{row['n_null']:,}"]
        for row in table.to_dicts()
    ]
    to.print(grid([*named, "mean", "interval", "n", "n_null"], rows, left=len(named)))
