"""Ids that cannot be told apart, or that only nearly meet."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from docrecall import findings
from docrecall.sources.table import WIDE, Table, collect


def check_ids(table: Table) -> list[pl.DataFrame]:
    """Find integer ids that do not fit 64 bits and, under NFC, ids that collapse. Costs nothing for other tables."""
    found = []
    for column, kind in table.spec.columns.items():
        if kind == "id" and column in table.columns:
            if table.columns[column] == pl.Int64:
                found += _too_large(table, column)
            elif table.normalize:
                found += _collapsed(table, column)
    return found


def _too_large(table: Table, column: str) -> list[pl.DataFrame]:
    found = []
    for part in table.parts:
        if part.schema[column] in WIDE:
            fits = pl.col(column).cast(pl.Int64, strict=False)
            large = part.scan().filter(pl.col(column).is_not_null() & fits.is_null()).select(column)
            ids = collect(large, [part])[column]
            if len(ids):
                found.append(
                    findings.finding("id_too_large", table.spec.name, column, len(ids), examples=ids, file=part.file)
                )
    return found


def _collapsed(table: Table, column: str) -> list[pl.DataFrame]:
    raw, normal, raws = pl.col(column), pl.col("normal"), replace(table, normalize=False)

    def those(wanted: pl.Expr) -> pl.DataFrame:
        return raws.read([column], where=wanted).select(column).unique()

    ids = those(raw.str.len_bytes() != raw.str.len_chars()).with_columns(raw.str.normalize("NFC").alias("normal"))
    # A letter outside ASCII can become one inside: the Kelvin sign is K.
    plain = ids.filter(normal.str.len_bytes() == normal.str.len_chars())["normal"].unique()
    if len(plain):
        ids = pl.concat([ids, those(raw.is_in(plain.implode())).with_columns(raw.alias("normal"))])
    clashing = ids.filter(normal.is_duplicated())
    if clashing.is_empty():
        return []
    return [findings.finding("ids_collapse", table.spec.name, column, clashing.height, examples=clashing[column])]


def is_odd(column: str) -> pl.Expr:
    """Whether an id could change under trimming or NFC: it has outer white space or a letter outside ASCII.

    Written for speed on columns of many million plain ids: three lengths, of which trimming copies nothing.
    """
    text = pl.col(column).str
    length = text.len_bytes()
    return (text.strip_chars().str.len_bytes() != length) | (text.len_chars() != length)


def tidy(column: str) -> pl.Expr:
    """The id after trimming and NFC: what a near miss is compared by."""
    return pl.col(column).str.strip_chars().str.normalize("NFC")
