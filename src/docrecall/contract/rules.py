"""Rules that rows must keep. Checking a frame gives good rows and bad rows, and both are frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from docrecall import findings
from docrecall.options import Options
from docrecall.sources.table import FAULT, FILE, ROW, ROW_FAULTS, Table, column_fault, fault_bit


class Rule(NamedTuple):
    """`broken` is true for rows that break the rule; `code` names it in findings and as the reason of rejected rows."""

    code: str
    column: str | None
    broken: pl.Expr


@dataclass(frozen=True)
class Checked:
    """A table, or a batch of one, after its check.

    rows: the good rows, duplicates collapsed. rejected: the bad rows with `table`, `column`, `reason`, `file` in
    front. duplicates: rows collapsed. findings: one frame per kind.
    """

    rows: pl.DataFrame
    rejected: pl.DataFrame
    duplicates: int = 0
    findings: list[pl.DataFrame] = field(default_factory=list)


REJECTED_HEAD = ("table", "column", "reason", "file")


def none_rejected() -> pl.LazyFrame:
    """Give the frame of rejected rows when there are none."""
    return pl.LazyFrame(schema=dict.fromkeys(REJECTED_HEAD, pl.String))


def fault_rules(table: Table) -> list[Rule]:
    """The rules that rows of text broke when they were read; in columns that this run does not use, anything may stand.

    Nothing for tables in which no row has a fault.
    """
    if not table.faulty:
        return []
    rules = [Rule(code, None, _has(fault_bit(code))) for code in ROW_FAULTS]
    used = [column for column in table.columns if column in table.used]
    return rules + [
        Rule(code, column, _has(bit)) for column in used for code, bit in [column_fault(table.spec, column)]
    ]


def _has(bit: int) -> pl.Expr:
    return (pl.col(FAULT) & bit) != 0


def split(rows: pl.DataFrame, rules: Sequence[Rule]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Part good rows from bad; bad rows carry `reason` and `column`, of the first rule that they break."""
    counts = rows.select(rule.broken.sum().alias(str(number)) for number, rule in enumerate(rules))
    broken = [rule for number, rule in enumerate(rules) if counts[str(number)].item()]
    if not broken:
        return rows, tagged(rows.clear(), "", "")
    first = pl.coalesce(pl.when(rule.broken).then(pl.lit(n, pl.Int32)) for n, rule in enumerate(broken))
    marked = rows.with_columns(first.alias("_rule"))
    bad = [
        tagged(marked.filter(pl.col("_rule") == n).drop("_rule"), rule.code, rule.column)
        for n, rule in enumerate(broken)
    ]
    return marked.filter(pl.col("_rule").is_null()).drop("_rule"), pl.concat(bad)


def tagged(rows: pl.DataFrame, reason: str, column: str | None) -> pl.DataFrame:
    """Say why these rows are bad."""
    return rows.with_columns(pl.lit(reason).alias("reason"), pl.lit(column, pl.String).alias("column"))


def report(
    bad: pl.DataFrame, table: Table, unit: Sequence[str], options: Options
) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Turn bad rows into the frame of rejected rows and one finding per rule; `unit` is what they touch.

    Rows that are set aside and counted are a warning; rows that stop the run are an error.
    """
    name = table.spec.name
    rejected = bad.with_columns(pl.lit(name).alias("table"), _places(bad, table).alias("file"))
    found = []
    for (code, column), rows in rejected.group_by("reason", "column", maintain_order=True):
        touched = rows.filter(pl.col("query_id").is_not_null()) if "query_id" in rows.columns else rows.clear()
        found.append(
            findings.finding(
                str(code),
                name,
                column if column is None else str(column),
                rows.height,
                n_queries=touched.select(unit).n_unique() if touched.height else 0,
                examples=touched["query_id"] if touched.height else (),
                file=rows.sort(FILE, ROW)["file"].first(),  # type: ignore[arg-type]
                severity="warning" if options.on_bad_rows == "reject" else "error",
            )
        )
    rejected = rejected.drop(FILE, ROW, *([FAULT] if FAULT in rejected.columns else []))
    order = [*REJECTED_HEAD, *(c for c in rejected.columns if c not in REJECTED_HEAD)]
    return rejected.select(order), found


def _places(bad: pl.DataFrame, table: Table) -> pl.Series:
    """Where bad rows stand, in the words of their format."""
    out = [pl.Series([], dtype=pl.String)]
    placed = bad.select(FILE, ROW).with_row_index("_n")
    order = [pl.Series([], dtype=pl.UInt32)]
    for (number,), rows in placed.group_by(FILE, maintain_order=True):
        out.append(table.parts[number].places(rows[ROW]).cast(pl.String))
        order.append(rows["_n"].cast(pl.UInt32))
    return pl.concat(out).gather(pl.concat(order).arg_sort())
