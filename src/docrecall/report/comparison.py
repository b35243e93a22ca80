"""A comparison in every printed form: differences with intervals and tests, and the queries that changed."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import polars as pl
from rich.console import Console
from rich.text import Text

from docrecall.compare import COMPARISON_SCHEMA, POWER, Comparison
from docrecall.report.blocks import Block, Lines, Table
from docrecall.report.files import to_csv
from docrecall.report.latex import to_latex
from docrecall.report.markdown import to_markdown
from docrecall.report.structured import SCHEMA_VERSION, plain_rows
from docrecall.report.terminal import grid
from docrecall.report.words import account, interval, number, p_value
from docrecall.show import printable

Format = Literal["json", "csv", "markdown", "latex", "parquet"]
_SHOWN = 10  # of each kind of flip of a measure, for people: what was lost shall not hide behind what was gained
_CHANGE = {"gained": "higher", "lost": "lower"}  # in print: more is not better in every measure


def as_plain(told: Comparison, *, flips: bool = False) -> dict[str, Any]:
    """The table and, where asked for, the flips as lists of rows, and how tests and intervals were made."""
    how = {
        "by": list(told.by),
        "cluster": told.cluster,
        "min_n": told.min_n,
        "test": "sign-flip",
        "adjustment": told.adjustment,
        "family": told.family,
        "level": told.level,
        "power": POWER,
        "resamples": told.resamples,
        "seed": told.seed,
        "notes": list(told.notes),
    }
    more = {"flips": plain_rows(told.flips), "flip_notes": list(told.flip_notes)} if flips else {}
    accounts = told.accounting.to_dicts()
    return {
        "schema_version": SCHEMA_VERSION,
        "accounting": accounts,
        "comparison": {"rows": plain_rows(told.table), **how, **more},
    }


def as_table(told: Comparison) -> pl.DataFrame:
    """The table, with the account of both runs, and how tests and intervals were made, in every row."""
    how = {
        "adjustment": told.adjustment,
        "family": told.family,
        "level": told.level,
        "resamples": told.resamples,
        "seed": told.seed,
    }
    table = told.table
    for side in ("baseline", "candidate"):
        accounts = told.accounting.filter((pl.col("side") == side) | pl.col("side").is_null()).drop("side")
        named = accounts.rename({c: side if c == "run_id" else f"{side}_{c}" for c in accounts.columns})
        table = table.join(named, on=side, how="left", maintain_order="left", validate="m:1")
    return table.with_columns(pl.lit(value).alias(name) for name, value in how.items())


def write(told: Comparison, how: Format, *, flips: bool = False) -> None:
    """Write to stdout. CSV and Parquet hold one table: the flips where these were asked for, else the differences."""
    match how:
        case "json":
            print(json.dumps(as_plain(told, flips=flips), indent=2, ensure_ascii=False, allow_nan=False))
        case "csv":
            print(to_csv(_joined(told.flips) if flips else as_table(told)), end="")
        case "markdown":
            print(to_markdown(of_comparison(told, flips=flips)))
        case "latex":
            print(to_latex(of_comparison(told, flips=flips)))
        case "parquet":
            (told.flips if flips else as_table(told)).write_parquet(sys.stdout.buffer)


def of_comparison(told: Comparison, *, flips: bool = False) -> Iterator[Block]:
    """A table for each pair of runs, how it was made below, and the queries that changed where these are asked for."""
    for heading, columns, rows in grids(told):
        yield Table(columns, rows, left=1 + len(told.by), caption=heading)
    yield Lines(about(told))
    if flips:
        for heading, columns, rows in flip_grids(told):
            yield Table(columns, rows, left=len(columns), caption=heading)
        if told.flip_notes:
            yield Lines(told.flip_notes)


def print_comparison(told: Comparison, to: Console, *, flips: bool = False) -> None:
    """Print tables and sentences for people at a terminal."""
    for heading, columns, rows in grids(told):
        to.print(Text(heading))
        to.print(grid(columns, rows, left=1 + len(told.by)))
        to.print(Text(""))
    for line in about(told):
        to.print(Text(line))
    if flips:
        for heading, columns, rows in flip_grids(told):
            to.print(Text(f"\n{heading}"))
            to.print(grid(columns, rows, left=len(columns)))
        for line in told.flip_notes:
            to.print(Text(line))


def print_notes(told: Comparison, to: Console, *, flips: bool = False) -> None:
    """Print what is odd, for forms that have no place for sentences."""
    for line in [*told.notes, *(told.flip_notes if flips else ())]:
        to.print(Text(line))


def grids(told: Comparison) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """For each pair of runs a heading, and a line for each measure and slice."""
    by = [c for c in told.table.columns[3:] if c not in _COLUMNS]
    for (baseline, candidate), rows in _pairs(told.table):
        first = rows.row(0, named=True)
        heading = f"{printable(candidate)} less {printable(baseline)}, paired by {first['paired_by']}:"
        columns = ["measure", *by, *_HEADS]
        alone = rows.select((pl.col("only_in_baseline") + pl.col("only_in_candidate")).sum()).item() > 0
        if alone:
            columns.append("only in one")
        cells = []
        for row in rows.to_dicts():
            cells.append([row["measure"], *(_text(row[c]) for c in by), *_line(row)])
            if alone:
                cells[-1].append(f"{row['only_in_baseline']:,} / {row['only_in_candidate']:,}")
        yield heading, columns, cells


_COLUMNS = frozenset(COMPARISON_SCHEMA)
_HEADS = (
    "pairs",
    "baseline",
    "candidate",
    "difference",
    "p",
    "adjusted",
    "higher / equal / lower",
    "effect",
    "could see",
)


def _line(row: dict[str, Any]) -> list[str]:
    delta = "null" if row["delta"] is None else f"{row['delta']:+.4f}"
    bounds = interval(row, signed=True)
    return [
        f"{row['n_pairs']:,}",
        number(row["mean_baseline"]),
        number(row["mean_candidate"]),
        f"{delta} {bounds}" if bounds else delta,
        p_value(row["p"]),
        p_value(row["p_adjusted"]),
        f"{row['wins']:,} / {row['ties']:,} / {row['losses']:,}",
        "" if row["effect_size"] is None else f"{row['effect_size']:+.2f}",
        "" if row["smallest_difference"] is None else f"{row['smallest_difference']:.4f}",
    ]


def _text(value: Any) -> str:
    return "null" if value is None else str(value)


def _pairs(table: pl.DataFrame) -> Iterator[tuple[tuple[str, str], pl.DataFrame]]:
    parts = table.partition_by("baseline", "candidate", as_dict=True, maintain_order=True)
    for (baseline, candidate), rows in parts.items():
        yield (str(baseline), str(candidate)), rows


def about(told: Comparison) -> list[str]:
    """The accounts of the runs, how intervals and tests were made, and what is not judged."""
    methods = ", ".join(sorted(told.table["ci_method"].drop_nulls().unique())) or "none"
    drawn = f", {told.resamples:,} resamples, seed {told.seed}"  # of what is enumerated there are none
    tests = [test + drawn * ("Monte Carlo" in test) for test in sorted(told.table["test"].drop_nulls().unique())]
    names = {"holm": "Holm", "benjamini-hochberg": "Benjamini-Hochberg"}
    accounts = [f"{row['side']} {account(row)}" if row["side"] else account(row) for row in told.accounting.to_dicts()]
    lines = [
        *accounts,
        *told.notes,
        f"intervals: {told.level:.0%} bootstrap of the paired differences ({methods}), {told.resamples:,} resamples, "
        f"seed {told.seed}",
        f"p: two-sided test, {' and '.join(tests) or 'none'}; adjusted by {names[told.adjustment]} over "
        f"{told.family:,} test{'s'[: told.family != 1]}",
        f"could see: the true difference that so many pairs show with a power of {POWER:.0%}",
    ]
    if told.cluster is not None:
        lines.append(
            f"clusters: pairs of equal {printable(told.cluster)} are resampled and flipped together, those without one "
            "alone"
        )
    elif (told.table["paired_by"] == "request").any():
        lines.append("clusters: requests of one query are resampled and flipped together")
    few = told.table.filter(pl.col("n_pairs") < told.min_n).height if told.by else 0
    if few:
        lines.append(f"not judged: {few:,} slices and measures with fewer than {told.min_n:,} pairs")
    return lines


def flip_grids(told: Comparison) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """For each pair of runs and measure the units that changed, up to a number that can be read."""
    key = [c for c in ("request_id", "query_id") if c in told.flips.columns]
    columns = ["change", *key, "baseline", "candidate", "documents of the baseline", "documents of the candidate"]
    for (baseline, candidate, measure), rows in told.flips.partition_by(
        "baseline", "candidate", "measure", as_dict=True, maintain_order=True
    ).items():
        changes = [_CHANGE.get(change, change) for change in rows["change"]]
        said = ", ".join(f"{n:,} {name}" for name, n in sorted(Counter(changes).items()))
        shown = rows.group_by("change", maintain_order=True).head(_SHOWN)
        more = f"; the first {_SHOWN} of each are shown" if shown.height < rows.height else ""
        cells = [
            [
                _CHANGE.get(row["change"], row["change"]),
                *(_text(row[c]) for c in key),
                number(row["value_baseline"]),
                number(row["value_candidate"]),
                _documents(row["docs_baseline"]),
                _documents(row["docs_candidate"]),
            ]
            for row in shown.to_dicts()
        ]
        yield (
            f"{measure}, {printable(candidate)} less {printable(baseline)}: {said}{more}",
            columns,
            cells,
        )


def _documents(ids: list[Any] | None) -> str:
    return "not known" if ids is None else ", ".join(map(printable, ids)) or "none"


def _joined(flips: pl.DataFrame) -> pl.DataFrame:
    """Lists as text, for CSV, which has none."""
    lists = pl.selectors.list()
    return flips.with_columns(pl.col("change").cast(pl.String), lists.cast(pl.List(pl.String)).list.join(" "))
