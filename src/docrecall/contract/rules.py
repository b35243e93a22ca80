"""Rules that rows must keep. Checking a frame gives good rows and bad rows, and both are frames."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from docrecall import findings
from docrecall.options import Options
from docrecall.sources.table import FAULT, FILE, ROW, ROW_FAULTS, Table, column_fault, fault_bit

LARGEST_OFFSET = 1 << 40  # no text is longer, and sums of lengths stay far inside 64 bits
MOST_TOKENS = 1 << 31  # no chunk is so long, and sums over a batch stay exact
_SHOWN = {"hits": "chunk_id", "chunks": "chunk_id"}  # what examples are, where they are not queries


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

    @property
    def n_good(self) -> int:
        """How many good rows there are."""
        return self.rows.height


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
    rules = [Rule(code, None, _has(fault_bit(code))) for code in ROW_FAULTS if code != "chunk_unknown"]
    # The context is also looked at where no measure asks for it, and may then hold anything.
    used = [c for c in table.columns if c in table.used and (c != "in_context" or table.requires(c))]
    return rules + [
        Rule(code, column, _has(bit)) for column in used for code, bit in [column_fault(table.spec, column)]
    ]


def unknown_chunks(table: Table) -> list[Rule]:
    """The rule that hits break when the table of chunks does not have theirs."""
    return [Rule("chunk_unknown", "chunk_id", _has(fault_bit("chunk_unknown")))] if table.faulty else []


def _has(bit: int) -> pl.Expr:
    return (pl.col(FAULT) & bit) != 0


def null_rules(table: Table, *more: str) -> list[Rule]:
    """Every required id is there, and those of some other columns where the table has them."""
    columns = dict.fromkeys([*table.spec.required, *(c for c in more if c in table.columns)])
    return [Rule("null_id", c, pl.col(c).is_null()) for c in columns]


def span_rules(start: pl.Expr, end: pl.Expr, start_name: str, end_name: str, *, empty: bool) -> list[Rule]:
    """What a span must keep: both ends or none, from 0 on, rising. empty: whether it may be without a character."""
    order = end < start if empty else end <= start
    return [
        Rule("span_half", start_name, start.is_null() & end.is_not_null()),
        Rule("span_half", end_name, end.is_null() & start.is_not_null()),
        Rule("span_negative", start_name, start < 0),
        Rule("span_order", end_name, order),
        Rule("span_too_large", end_name, end > LARGEST_OFFSET),
    ]


def chunk_rules(columns: Container[str]) -> list[Rule]:
    """What spans and tokens of chunks must keep, among the columns that somebody reads."""
    rules = []
    if "n_tokens" in columns:
        tokens = pl.col("n_tokens")
        rules += [
            Rule("tokens_null", "n_tokens", tokens.is_null()),
            Rule("tokens_negative", "n_tokens", tokens < 0),
            Rule("tokens_too_large", "n_tokens", tokens >= MOST_TOKENS),
        ]
    if "chunk_start" in columns:
        rules += span_rules(pl.col("chunk_start"), pl.col("chunk_end"), "chunk_start", "chunk_end", empty=True)
    return rules


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
        shown = "query_id" if "query_id" in rows.columns and code != "chunk_unknown" else _SHOWN.get(name, unit[-1])
        touched = rows.filter(pl.col(shown).is_not_null()) if shown in rows.columns else rows.clear()
        found.append(
            findings.finding(
                str(code),
                name,
                column if column is None else str(column),
                rows.height,
                n_queries=touched.select(unit).n_unique() if touched.height and "query_id" in rows.columns else 0,
                examples=touched[shown] if touched.height else (),
                file=rows.sort(FILE, ROW)["file"].first(),  # type: ignore[arg-type]
                severity="warning" if options.on_bad_rows == "reject" else "error",
            )
        )
    rejected = rejected.drop(FILE, ROW, *([FAULT] if FAULT in rejected.columns else []))
    order = [*REJECTED_HEAD, *(c for c in rejected.columns if c not in REJECTED_HEAD)]
    return rejected.select(order), found


def of_queries(code: str, table: str, column: str | None, rows: pl.DataFrame) -> pl.DataFrame:
    """A finding about some rows, with their queries as examples; merging leaves it out where there are none."""
    queries = rows["query_id"].unique()
    return findings.finding(code, table, column, rows.height, n_queries=len(queries), examples=queries)


def _places(bad: pl.DataFrame, table: Table) -> pl.Series:
    """Where bad rows stand, in the words of their format."""
    out = [pl.Series([], dtype=pl.String)]
    placed = bad.select(FILE, ROW).with_row_index("_n")
    order = [pl.Series([], dtype=pl.UInt32)]
    for (number,), rows in placed.group_by(FILE, maintain_order=True):
        out.append(table.parts[number].places(rows[ROW]).cast(pl.String))
        order.append(rows["_n"].cast(pl.UInt32))
    return pl.concat(out).gather(pl.concat(order).arg_sort())
