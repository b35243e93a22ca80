"""A table as parts: files or frames that are scanned one by one and look alike to everything downstream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl

from docrecall.errors import DocrecallError, InputError
from docrecall.show import printable
from docrecall.sources.files import FileRef
from docrecall.sources.mapping import TableMap
from docrecall.tables import Kind, TableSpec

FILE = "__file"  # number of the part that a row came from
ROW = "__row"  # number of a row in its part, from 0
LINE = "__line"  # number of the line of text that a row was read from, from 1
FAULT = "__fault"  # what was wrong with a row when it was read: bits, as `fault_bit` gives them
WIDE = (pl.UInt64, pl.Int128, pl.UInt128)  # integer types that hold more than Int64 does
MOST_OPEN = 256  # files that one query reads: a process may have 1,024 open
LARGEST_RANK = 2**53  # from here on Float64 ranks are not exact, and no log has such ranks


# What can be wrong with a row before its values are looked at. The order gives the bits.
ROW_FAULTS = (
    "line_encoding",
    "line_fields",
    "line_broken",
    "line_json",
    "no_match",
    "list_null",
    "list_lengths",
    "chunk_unknown",
)
_COLUMN_FAULTS: Mapping[Kind, str] = {
    "id": "id_fraction",
    "text": "not_text",
    "status": "not_text",
    "whole": "not_whole",
    "rank": "not_whole",
    "number": "not_number",
    "flag": "not_flag",
}


def fault_bit(code: str) -> int:
    """The bit of a fault of a whole row."""
    return 1 << ROW_FAULTS.index(code)


def column_fault(spec: TableSpec, column: str) -> tuple[str, int]:
    """The code and the bit of a value that is not of the kind that its column asks for."""
    columns = list(spec.columns)
    return _COLUMN_FAULTS[spec.columns[column]], 1 << (len(ROW_FAULTS) + columns.index(column))


def _nowhere(rows: pl.Series) -> pl.Series:
    return pl.Series([None] * len(rows), dtype=pl.String)


@dataclass(frozen=True)
class Part:
    """A piece of a table with one schema.

    file: None for a frame. schema: the known columns as found. names: all columns, for messages. scan: gives the
    known columns, and FAULT if `faulty`; may be called any number of times. null_count: nulls of a column, from the
    footer where it tells. places: numbers of rows -> where each stands, in the words of the format. format: the
    layout that it was read from. asked: units that the log names without giving them a hit. tmap:
    the mapping, with the names that were recognised. listed: the file as it was listed. scan_files: scans it together
    with others that have the same `scan_files`; None where parts are scanned by themselves.
    """

    file: str | None
    n_rows: int
    schema: pl.Schema
    names: Sequence[str]
    scan: Callable[[], pl.LazyFrame]
    null_count: Callable[[str], int]
    check_unchanged: Callable[[], None] = lambda: None
    fingerprint: dict[str, int] = field(default_factory=dict)
    places: Callable[[pl.Series], pl.Series] = _nowhere
    faulty: bool = False
    format: str = "frame"
    asked: pl.DataFrame | None = None
    tmap: TableMap = field(default_factory=TableMap)
    listed: FileRef | None = None
    scan_files: Callable[[Sequence[FileRef]], pl.LazyFrame] | None = None


@dataclass(frozen=True)
class Table:
    """One table, or one run's hits when the caller named the run.

    columns: the known columns that it has, with the type each is worked on in (String or Int64 for ids; Float64
    ranks stay Float64, since the contract still has to look at their fractions). used: those that this run computes
    with, and whether it must. looked_up: those that the table of chunks gave. keep: whatever must live as long as the
    parts do.
    """

    spec: TableSpec
    parts: Sequence[Part]
    run: str | None = None
    left_out: int = 0
    columns: dict[str, pl.DataType] = field(default_factory=dict)
    used: Mapping[str, bool] = field(default_factory=dict)
    normalize: bool = False
    looked_up: tuple[str, ...] = ()
    keep: Any = None

    def requires(self, column: str) -> bool:
        """Whether this run cannot do without a column."""
        return self.used.get(column, False)

    @property
    def unlike(self) -> list[Part]:
        """The first part of each schema; files that are alike share one."""
        first: dict[int, Part] = {}
        for part in self.parts:
            first.setdefault(id(part.schema), part)
        return list(first.values())

    @property
    def faulty(self) -> bool:
        """Whether any row had a fault when it was read."""
        return any(part.faulty for part in self.parts)

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return sum(part.n_rows for part in self.parts)

    @property
    def asked(self) -> pl.DataFrame | None:
        """Units that the log names without a hit, by the columns of their key that the log has; each once."""
        frames = [part.asked for part in self.parts if part.asked is not None]
        if not frames:
            return None
        typed = [
            frame.select(
                conform(
                    c, frame.schema[c], self.columns.get(c, frame.schema[c]), self.spec.columns[c], nfc=self.normalize
                )
                for c in frame.columns
            )
            for frame in frames
        ]
        return pl.concat(typed).unique()

    def handfuls(self) -> Iterator[Sequence[Part]]:
        """All parts, as many at a time as one query may open."""
        for start in range(0, len(self.parts), MOST_OPEN):
            yield self.parts[start : start + MOST_OPEN]

    def scan(self, parts: Sequence[Part], columns: Iterable[str]) -> pl.LazyFrame:
        """Scan some parts, end to end: the columns asked for, in the types of `self.columns`, and FAULT where named.

        Files that are alike are one scan: one of each costs several times as much where they are many and small.
        """
        wanted = list(columns)
        scans = []
        for scan_files, group in groupby(parts, key=lambda part: part.scan_files):
            alike = list(group)
            if scan_files is None:
                scans += [part.scan().select(self.expression(part, c) for c in wanted) for part in alike]
            else:
                rows = scan_files([part.listed for part in alike if part.listed is not None])
                scans.append(rows.select(self.expression(alike[0], c) for c in wanted))
        return pl.concat(scans)

    def rows_of(
        self,
        places: range,
        columns: Iterable[str],
        *,
        where: pl.Expr | None = None,
        piece: tuple[int, int] | None = None,
    ) -> pl.DataFrame:
        """Read parts that follow one another: the columns asked for, and where each row stands and came from.

        This is told by FILE, ROW, and FAULT if any row of the table has one. where: of which rows. piece: of these
        parts, put end to end, so many rows from one on.
        """
        parts = self.parts[places.start : places.stop]
        rows = self.scan(parts, [*columns, *([FAULT] if self.faulty else [])])
        # Sliced before it is numbered, as the engine then skips what lies before the slice.
        rows = rows.with_row_index(ROW) if piece is None else rows.slice(*piece).with_row_index(ROW, offset=piece[0])
        found = collect(rows if where is None else rows.filter(where), parts)
        if len(parts) == 1:
            return found.with_columns(pl.col(ROW).cast(pl.Int64), pl.lit(places.start, pl.Int32).alias(FILE))
        ends = np.cumsum([part.n_rows for part in parts])
        row = found[ROW].to_numpy().astype(np.int64)
        file = np.searchsorted(ends, row, side="right")
        return found.with_columns(
            pl.Series(ROW, row - np.append(0, ends)[file], dtype=pl.Int64),
            pl.Series(FILE, file + places.start, dtype=pl.Int32),
        )

    def read(self, columns: Iterable[str], where: pl.Expr | None = None) -> pl.DataFrame:
        """Read the rows of all parts that fit a condition into one frame, as `rows_of` gives them."""
        wanted, frames = list(columns), []
        for start in range(0, len(self.parts), MOST_OPEN):
            places = range(start, min(start + MOST_OPEN, len(self.parts)))
            frames.append(self.rows_of(places, wanted, where=where))
            parts = self.parts[places.start : places.stop]
            if where is None and frames[-1].height != sum(part.n_rows for part in parts):
                blame(parts)
        return pl.concat(frames)

    def expression(self, part: Part, column: str) -> pl.Expr:
        """A column of a part in the type that it is worked on in."""
        if column == FAULT:
            return pl.col(FAULT) if part.faulty else pl.lit(0, pl.Int64).alias(FAULT)
        return conform(
            column, part.schema[column], self.columns[column], self.spec.columns.get(column, "text"), nfc=self.normalize
        )


def groups(parts: Sequence[Part], most_rows: int) -> Iterator[range]:
    """Put parts that follow one another together, given by their places, so that one query reads many small ones.

    A group has at most so many rows, or is one part, and no more parts than may be open.
    """
    start = n_rows = 0
    for place, part in enumerate(parts):
        if place > start and (place - start == MOST_OPEN or n_rows + part.n_rows > most_rows):
            yield range(start, place)
            start, n_rows = place, 0
        n_rows += part.n_rows
    if start < len(parts):
        yield range(start, len(parts))


def conform(column: str, found: pl.DataType, wanted: pl.DataType, kind: Kind, *, nfc: bool = False) -> pl.Expr:
    """Bring one column into its working type without changing what it says."""
    col = pl.col(column)
    if found in WIDE and wanted == pl.Int64:
        # What does not fit is refused as an id and kept as a rank beyond every log, so that the contract and not a
        # failed cast speaks of it.
        fits = col.cast(wanted, strict=False)
        if kind != "rank":
            return fits
        small = pl.when(col < 0).then(pl.coalesce(fits, -1)).otherwise(fits)
        return pl.when(col > LARGEST_RANK).then(LARGEST_RANK).otherwise(small).alias(column)
    if found != wanted:
        col = col.cast(wanted)
    if nfc and kind == "id" and wanted == pl.String:
        col = col.str.normalize("NFC")
    return col


def collect(frame: pl.LazyFrame, parts: Sequence[Part]) -> pl.DataFrame:
    """Collect with the streaming engine; when that fails, say which file is to blame.

    The engine's own messages name no file and may print cell text, so they are not passed on.
    """
    try:
        return frame.collect(engine="streaming")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        if isinstance(error, DocrecallError):
            raise
        blame(parts)
        raise


def blame(parts: Sequence[Part]) -> None:
    """Read each part by itself and raise an InputError for the first that cannot be read, or not in full."""
    for part in parts:
        if part.file is None:
            continue
        part.check_unchanged()
        try:
            # Counted from what is decoded; pl.len() is answered by the footer, which is what is doubted here.
            first = pl.col(part.schema.names()[0])
            rows, *_ = (
                part.scan()
                .select((first.count() + first.null_count()).cast(pl.Int64).alias("__rows"), pl.all().null_count())
                .collect(engine="streaming")
                .row(0)
            )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            if isinstance(error, DocrecallError):
                raise
            raise damaged(part) from None
        if rows != part.n_rows:
            raise damaged(part)


def damaged(part: Part) -> InputError:
    """The error for a file whose footer was good enough to plan with, and whose data was not."""
    return InputError(
        f"{printable(part.file)} is damaged: its footer can be read, but not the data that it tells of. "
        "Copy it again from its source."
    )
