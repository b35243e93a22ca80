"""A diagnosis in every printed form: what moved, which run each measure prefers, and what other tools would print."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import polars as pl
from rich.console import Console
from rich.text import Text

from docrecall.conventions import CONVENTIONS, Convention, Seen
from docrecall.cuts import COLUMNS, COMPARED
from docrecall.diagnose import Diagnosis
from docrecall.report.blocks import Block, Lines, Table
from docrecall.report.files import to_csv
from docrecall.report.latex import to_latex
from docrecall.report.markdown import to_markdown
from docrecall.report.structured import as_document
from docrecall.report.terminal import grid, print_notices
from docrecall.report.words import accounts, notices, number
from docrecall.scores import Scores
from docrecall.show import printable

Format = Literal["json", "csv", "markdown", "latex", "parquet"]
Grid = tuple[list[str], list[list[str]]]
_FIRST = ("naive_recall", "doc_recall")


def as_plain(told: Diagnosis, conventions: pl.DataFrame | None = None) -> dict[str, Any]:
    """The frames of a diagnosis as lists of rows, and how its intervals were made."""
    frames = {name: getattr(told, name).to_dicts() for name in ("lines", "deltas", "verdicts", "orders")}
    how = {"level": told.level, "resamples": told.resamples, "seed": told.seed}
    more = {} if conventions is None else {"conventions": conventions.to_dicts()}
    return {"diagnosis": {**frames, "notes": list(told.notes), **how}, **more}


def write(scores: Scores, told: Diagnosis, conventions: pl.DataFrame | None, how: Format) -> None:
    """Write to stdout. CSV and Parquet hold one table: that of the conventions where it was asked for, else the lines.

    Both have the account of its run in every row.
    """
    table = told.lines if conventions is None else conventions
    table = table.join(scores.accounting, on="run_id", how="left", maintain_order="left")
    match how:
        case "json":
            document = as_document(scores) | as_plain(told, conventions)
            print(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
        case "csv":
            print(to_csv(table), end="")
        case "markdown":
            print(to_markdown(of_run(scores, told, conventions)))
        case "latex":
            print(to_latex(of_run(scores, told, conventions)))
        case "parquet":
            table.write_parquet(sys.stdout.buffer)


def print_diagnosis(scores: Scores, told: Diagnosis, conventions: pl.DataFrame | None, to: Console) -> None:
    """Print tables and sentences for people at a terminal."""
    to.print(grid(*lines_grid(told), left=2))
    for heading, table, sentences in _pairs(told, short=True):
        to.print(Text(f"\n{heading}"))
        to.print(grid(*table))
        for line in sentences:
            to.print(Text(line))
    if told.orders.height:
        to.print(Text("\nDo the measures put the runs in the same order? (1: they do, -1: in the opposite one)"))
        to.print(grid(*orders_grid(told), left=2))
    for line in [*swap_lines(told), "", *_about(told)]:
        to.print(Text(line))
    if conventions is not None:
        to.print(Text("\nRecall of the same log under each convention:"))
        to.print(grid(*conventions_grid(conventions), left=2))
        for line in convention_lines():
            to.print(Text(line))
    to.print(Text(""))
    for line in accounts(scores):
        to.print(Text(line))
    print_notices(scores, to)


def of_run(scores: Scores, told: Diagnosis, conventions: pl.DataFrame | None) -> Iterator[Block]:
    """A diagnosis with the conventions and the accounts of its run."""
    yield from of_diagnosis(told)
    if conventions is not None:
        yield Table(*conventions_grid(conventions), left=2)
        yield Lines(convention_lines())
    yield Lines([*accounts(scores), *notices(scores)])


def of_diagnosis(told: Diagnosis) -> Iterator[Block]:
    """The lines, the differences of each pair of runs with their verdicts, and the orders."""
    yield Table(*lines_grid(told), left=2)
    for heading, table, sentences in _pairs(told, short=False):
        yield Table(*table, caption=heading)
        yield Lines(sentences)
    if told.orders.height:
        yield Table(*orders_grid(told), left=2)
    if lines := [*swap_lines(told), *_about(told)]:
        yield Lines(lines)


def lines_grid(told: Diagnosis) -> Grid:
    """One line per run and cut; columns that nothing is known of are left out."""
    shown = [c for c in COLUMNS if told.lines[c].is_not_null().any()]
    if "evidence_recall" in shown and not told.lines.select((pl.col("n") == pl.col("n_passages")).all()).item():
        shown.insert(shown.index("evidence_coverage"), "n_passages")
    rows = [
        [row["run_id"], f"@{row['cut']}", f"{row['n']:,}", *(_cell(c, row) for c in shown)]
        for row in told.lines.to_dicts()
    ]
    return ["run_id", "cut", "n", *shown], rows


def _cell(column: str, row: dict[str, Any]) -> str:
    """A mean; null where nothing was scored, and nothing where the column does not speak of such a cut."""
    value = row[column]
    if value is None:
        return "" if row["n"] else "null"
    if column == "n_passages":
        return f"{value:,}"
    return f"{value:,.1f}" if column == "context_tokens" else number(value)


def _pairs(told: Diagnosis, *, short: bool) -> Iterator[tuple[str, Grid, list[str]]]:
    """For each pair of runs a heading, the table of differences, and a sentence for each cut."""
    runs = told.verdicts.partition_by("baseline", "candidate", as_dict=True, maintain_order=True)
    for (baseline, candidate), verdicts in runs.items():
        rows = told.deltas.filter(pl.col("baseline") == baseline, pl.col("candidate") == candidate).to_dicts()
        cells = {(row["cut"], _family(row["measure"])): _difference(row) for row in rows}
        columns = [c for c in COMPARED if any(column == c for _, column in cells)]
        table = [[f"@{cut}", *(cells.get((cut, c), "") for c in columns)] for cut in verdicts["cut"]]
        n = max(verdicts["n_pairs"].to_list())
        heading = (
            f"{printable(candidate)} less {printable(baseline)}, over the {n:,} units in both, "
            f"with {told.level:.0%} intervals:"
        )
        sentences = [f"@{v['cut']}: {v['short']}" if short else v["verdict"] for v in verdicts.to_dicts()]
        yield heading, (["cut", *columns], table), sentences


def _family(measure: str) -> str:
    """The column of the lines that a measure is."""
    name, _, cut = measure.partition("@")
    return "doc_recall_docs" if cut.endswith("docs") else name


def _difference(row: dict[str, Any]) -> str:
    if row["delta"] is None:
        return "null"
    bounds = "" if row["ci_low"] is None else f" [{row['ci_low']:+.3f}, {row['ci_high']:+.3f}]"
    return f"{row['delta']:+.3f}{bounds}"


def orders_grid(told: Diagnosis) -> Grid:
    """Kendall's tau of the orders by the naive measure and by documents, against those by other measures."""
    taus = {(o["cut"], _family(o["first"]), _family(o["second"])): o["tau"] for o in told.orders.to_dicts()}
    seconds = [c for c in COMPARED if any(second == c for _, _, second in taus)]
    rows = []
    for cut, first in dict.fromkeys((cut, first) for cut, first, _ in taus if first in _FIRST):
        cells = [taus.get((cut, first, second)) for second in seconds]
        rows.append([f"@{cut}", first, *("" if tau is None else f"{tau:+.2f}" for tau in cells)])
    return ["tau", "order by", *seconds], rows


def swap_lines(told: Diagnosis) -> list[str]:
    """Say which pairs of runs the naive measure, and documents, put in another order than the other measures.

    Where both runs were compared, swaps in which a measure cannot tell them apart are left out.
    """
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for order in told.orders.to_dicts():
        first = _family(order["first"])
        for swap in order["swapped"] if first in _FIRST else ():
            if swap["told_apart"] is not False:
                key = (order["cut"], first, swap["higher"], swap["lower"])
                found.setdefault(key, []).append(_family(order["second"]))
    alike: dict[tuple[str, str, str, str], list[str]] = {}
    for (cut, first, higher, lower), seconds in found.items():
        alike.setdefault((cut, higher, lower, ", ".join(seconds)), []).append(first)
    unsure = any(swap["told_apart"] is None for order in told.orders.to_dicts() for swap in order["swapped"])
    chance = ["runs that were not compared with each other may change places by chance"] if alike and unsure else []
    return chance + [
        f"@{cut}: {printable(higher)} above {printable(lower)} by {' and '.join(firsts)}, not by {seconds}"
        for (cut, higher, lower, seconds), firsts in alike.items()
    ]


def _about(told: Diagnosis) -> list[str]:
    """How intervals were made, and what is left out."""
    lines = [f"left out: {note}" if note.startswith(("passages:", "tokens:")) else note for note in told.notes]
    methods = ", ".join(sorted(told.deltas["ci_method"].drop_nulls().unique()))
    if methods:
        lines.append(
            f"intervals: bootstrap of the paired differences ({methods}), {told.resamples:,} resamples, "
            f"seed {told.seed}, each for itself"
        )
    return lines


def conventions_grid(means: pl.DataFrame) -> Grid:
    """Conventions and k down, runs across; n stands beside the mean where it is not that of cut-then-dedupe."""
    runs = means["run_id"].unique(maintain_order=True).to_list()
    cells = {(r["run_id"], r["convention"], r["k"]): r for r in means.to_dicts()}
    rows = []
    for convention in CONVENTIONS:
        for k in means["k"].unique(maintain_order=True):
            row = [cells[run, convention.name, k] for run in runs]
            usual = [cells[run, "cut_then_dedupe", k]["n"] for run in runs]
            rows.append([convention.name, str(k), *(_mean(r, n) for r, n in zip(row, usual, strict=True))])
    return ["convention", "k", *runs], rows


def _mean(row: dict[str, Any], usual: int) -> str:
    return number(row["value"]) if row["n"] == usual else f"{number(row['value'])} (n={row['n']:,})"


def convention_lines(conventions: Sequence[Convention] = CONVENTIONS) -> list[str]:
    """What each convention does, and which evaluators were seen to do so."""
    return [
        f"{c.name}: {c.meaning} {'This treatment was seen in' if c.of_mean else 'Seen in'} "
        f"{', '.join(map(_seen, c.seen_in))}."
        for c in conventions
    ]


def _seen(seen: Seen) -> str:
    return f"{seen.evaluator} {seen.version}{f' ({seen.note})' if seen.note else ''}"
