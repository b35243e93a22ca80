"""Rules that rows must keep. Checking a frame gives good rows and bad rows, and both are frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from docrecall import findings
from docrecall.options import Options
from docrecall.sources.table import FILE, Table


class Rule(NamedTuple):
    """`broken` is true for rows that break the rule; `code` names it in findings and as the reason of rejected rows."""

    code: str
    column: str
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


def tagged(rows: pl.DataFrame, reason: str, column: str) -> pl.DataFrame:
    """Say why these rows are bad."""
    return rows.with_columns(pl.lit(reason).alias("reason"), pl.lit(column).alias("column"))


def report(
    bad: pl.DataFrame, table: Table, unit: Sequence[str], options: Options
) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Turn bad rows into the frame of rejected rows and one finding per rule; `unit` is what they touch.

    Rows that are set aside and counted are a warning; rows that stop the run are an error.
    """
    name = table.spec.name
    files = [part.file for part in table.parts]
    file = (
        pl.col(FILE).map_elements(lambda n: files[n], return_dtype=pl.String) if bad.height else pl.lit(None, pl.String)
    )
    rejected = bad.with_columns(pl.lit(name).alias("table"), file.alias("file")).drop(FILE)
    found = []
    for (code, column), rows in rejected.group_by("reason", "column", maintain_order=True):
        touched = rows.filter(pl.col("query_id").is_not_null())
        found.append(
            findings.finding(
                str(code),
                name,
                str(column),
                rows.height,
                n_queries=touched.select(unit).n_unique(),
                examples=touched["query_id"],
                file=rows["file"].min(),  # type: ignore[arg-type]
                severity="warning" if options.on_bad_rows == "reject" else "error",
            )
        )
    order = [*REJECTED_HEAD, *(c for c in rejected.columns if c not in REJECTED_HEAD)]
    return rejected.select(order), found
