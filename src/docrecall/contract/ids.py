"""Ids that cannot be told apart, or that only nearly meet."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from docrecall import findings
from docrecall.sources.table import Table, collect

_LARGEST_ID = 2**63 - 1


def check_ids(table: Table) -> list[pl.DataFrame]:
    """Find integer ids that do not fit 64 bits and, under NFC, ids that collapse. Costs nothing for other tables."""
    found = []
    for column, kind in table.spec.columns.items():
        if kind == "id" and column in table.columns:
            found += _too_large(table, column)
            if table.normalize and table.columns[column] == pl.String:
                found += _collapsed(table, column)
    return found


def _too_large(table: Table, column: str) -> list[pl.DataFrame]:
    found = []
    for part in table.parts:
        if part.schema[column] in (pl.UInt64, pl.Int128, pl.UInt128):
            large = part.scan().filter(pl.col(column) > _LARGEST_ID).select(column)
            ids = collect(large, [part])[column]
            if len(ids):
                found.append(
                    findings.finding("id_too_large", table.spec.name, column, len(ids), examples=ids, file=part.file)
                )
    return found


def _collapsed(table: Table, column: str) -> list[pl.DataFrame]:
    raw, odd = pl.col(column), pl.col(column).str.len_bytes() != pl.col(column).str.len_chars()
    ids = replace(table, normalize=False).read([column], where=odd).select(column).unique()
    clashing = ids.with_columns(raw.str.normalize("NFC").alias("normal")).filter(pl.col("normal").is_duplicated())
    if clashing.is_empty():
        return []
    return [findings.finding("ids_collapse", table.spec.name, column, clashing.height, examples=clashing[column])]


def is_odd(column: str) -> pl.Expr:
    """Whether an id could change under trimming or NFC: it has outer white space or a letter outside ASCII.

    Written for speed on columns of many million plain ids: two comparisons, a length and a byte.
    """
    col = pl.col(column)
    last_byte = col.cast(pl.Binary).bin.get(-1, null_on_oob=True)
    return pl.any_horizontal(col.str.len_bytes() != col.str.len_chars(), col < "!", last_byte < 33)


def tidy(column: str) -> pl.Expr:
    """The id after trimming and NFC: what a near miss is compared by."""
    return pl.col(column).str.strip_chars().str.normalize("NFC")
