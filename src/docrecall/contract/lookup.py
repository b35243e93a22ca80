"""Hits as they were logged -> hits as they are scored: what the table of chunks knows of them, documents by one name.

Both are joins in front of the scan of each part, so that everything downstream sees a log that had these columns all
along. Where nothing is to be looked up the log stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from docrecall.contract.frames import renamed
from docrecall.sources.table import FAULT, Part, Table, collect, fault_bit

DEFAULT_RUN = "run"


def look_up(log: Table, chunks: pl.DataFrame | None, supplied: Sequence[str], aliases: pl.DataFrame) -> Table:
    """Call the documents of a log by the names that aliases lead to, and add the supplied columns by chunk_id.

    chunks: the checked table of chunks, with documents by these names; needed where anything is supplied. Hits of a
    chunk that it does not have are marked, and break the contract.
    """
    if aliases.height and "doc_id" in log.columns:
        log = _with_names(log, aliases)
    if chunks is not None and supplied:
        log = _with_chunks(log, chunks, supplied)
    return log


def _with_chunks(log: Table, chunks: pl.DataFrame, supplied: Sequence[str]) -> Table:
    key = ["chunk_id"] if "doc_id" in supplied else ["doc_id", "chunk_id"]
    if "run_id" in chunks.columns and "run_id" in log.columns:
        key.append("run_id")
    elif "run_id" in chunks.columns:
        chunks = chunks.filter(pl.col("run_id") == (log.run or DEFAULT_RUN))
    known = chunks.select(*key, *supplied, pl.lit(True).alias("_known"))
    columns = {**log.columns, **{c: known.schema[c] for c in supplied}}
    columns = {c: columns[c] for c in log.spec.columns if c in columns}
    faulty = log.faulty or any(_lacks(log, part, known, key) for part in log.parts)
    parts = [_joined(log, part, known, key, columns, faulty=faulty) for part in log.parts]
    used = {**dict.fromkeys(supplied, True), **log.used}
    return replace(log, parts=parts, columns=columns, used=used, looked_up=tuple(supplied), normalize=False)


def _lacks(log: Table, part: Part, known: pl.DataFrame, key: Sequence[str]) -> bool:
    """Whether a part has a hit of a chunk that nobody knows."""
    missing = log.scan([part], key).join(known.lazy(), on=key, how="anti").head(1)
    return collect(missing, [part]).height > 0


def _joined(
    log: Table, part: Part, known: pl.DataFrame, key: Sequence[str], columns: dict[str, pl.DataType], *, faulty: bool
) -> Part:
    def scan() -> pl.LazyFrame:
        rows = _own(log, part, faulty=faulty)
        rows = rows.join(known.lazy(), on=key, how="left", maintain_order="left", validate="m:1")
        if faulty:
            unknown = pl.col("_known").is_null() & pl.col("chunk_id").is_not_null()  # a null id has a name of its own
            mark = pl.when(unknown).then(fault_bit("chunk_unknown")).otherwise(0)
            rows = rows.with_columns((pl.col(FAULT) | mark).alias(FAULT))
        return rows.select(*columns, *([FAULT] if faulty else []))

    def null_count(column: str) -> int:
        # Known chunks have documents; where a chunk is not known the log is faulty, and read row by row.
        return part.null_count(column) if column in part.schema else 0

    return replace(part, schema=pl.Schema(columns), scan=scan, null_count=null_count, faulty=faulty, scan_files=None)


def _own(log: Table, part: Part, *, faulty: bool) -> pl.LazyFrame:
    """A part in working types, with its faults or a column for them."""
    faults = pl.col(FAULT) if part.faulty else pl.lit(0, pl.Int64).alias(FAULT)
    return part.scan().select(*(log.expression(part, c) for c in log.columns), *([faults] if faulty else []))


def _with_names(log: Table, aliases: pl.DataFrame) -> Table:
    schema = pl.Schema(log.columns)

    def scan(part: Part) -> pl.LazyFrame:
        rows = renamed(_own(log, part, faulty=part.faulty), aliases)
        return rows.select(*log.columns, *([FAULT] if part.faulty else []))

    parts = [replace(part, schema=schema, scan=partial(scan, part), scan_files=None) for part in log.parts]
    return replace(log, parts=parts, normalize=False)
