"""Whether rows of hits were logged in the night that their path says: a half-open UTC day."""

from __future__ import annotations

from datetime import date

import polars as pl

from docrecall.errors import DataError, nearest
from docrecall.nightly import days
from docrecall.show import printable
from docrecall.sources.files import scan_files
from docrecall.sources.table import Part, Table, collect


def check_times(log: Table, column: str, night: date) -> None:
    """Raise DataError for a row whose time is null or lies outside of the night, or for a column that is no time.

    column: as the files have it, a date and time. One with a time zone is converted to UTC, one without is UTC.
    """
    for part in log.parts:
        if part.listed is None or part.format != "parquet":
            raise DataError(
                f"{printable(part.file)} is not Parquet; hits.{printable(column)} is a time in such files only."
            )
        if column not in part.names:
            raise DataError(
                f"hits has no column {printable(column)} ({printable(part.file)}), which time of [sources] names."
                f"{nearest(column, part.names)}"
            )
        _check(part, scan_files([part.listed]), column, night)


def _check(part: Part, rows: pl.LazyFrame, column: str, night: date) -> None:
    name, where = f"hits.{printable(column)}", printable(part.file)
    kind = rows.collect_schema()[column]
    if not isinstance(kind, pl.Datetime):
        raise DataError(f"{name} is {kind} ({where}); a date and time was expected, in UTC or with a time zone.")
    time = pl.col(column)
    if kind.time_zone is not None:
        time = time.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    # In the unit of the column: a coarser one would take the last nanosecond of a night for the first of the next.
    start, end = (
        pl.lit(moment.replace(tzinfo=None)).dt.cast_time_unit(kind.time_unit) for moment in days.bounds(night)
    )
    counts = rows.select(
        (time < start).sum().alias("before"), (time >= end).sum().alias("after"), time.null_count().alias("null")
    )
    found = collect(counts, [part]).row(0, named=True)
    if any(found.values()):
        told = ", ".join(f"{n:,} {word}" for word, n in found.items() if n)
        raise DataError(
            f"{name}: {sum(found.values()):,} rows are not of {night} ({told}; {where}). A night is the UTC day from "
            "00:00 to 24:00: part the log by it, and give each row its time."
        )
