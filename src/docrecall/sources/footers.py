"""What the footer of a Parquet file tells: how many rows there are, and of which columns."""

from __future__ import annotations

import os
from itertools import accumulate
from typing import Any, NamedTuple

import polars as pl

from docrecall.errors import InputError
from docrecall.show import printable
from docrecall.sources.files import FileRef, scan_files
from docrecall.sources.formats import known_suffixes, of_name

_MAGIC = b"PAR1"
_FEW = 8  # row groups
_SHORTEST = 12  # magic, footer length, magic: nothing shorter is a Parquet file


class Footer(NamedTuple):
    """schema: the columns as polars reads them. found: what tells footers that are alike; None where nothing does.

    kept: the statistics of a file of few row groups, so that thousands of small files are not opened once more.
    """

    n_rows: int
    schema: pl.Schema
    found: Any
    kept: Any = None


def read_footer(file: FileRef, before: Footer | None = None) -> Footer:
    """Read the footer of a file. before: that of another file, whose columns stand where this one's are the same.

    Raises InputError for a footer that cannot be read.
    """
    try:
        return _read(file, before)
    except InputError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        raise _unreadable(file) from None


def _read(file: FileRef, before: Footer | None) -> Footer:
    import pyarrow.parquet as pq  # noqa: PLC0415 - a third of a second that frames need not pay

    with file.open() as handle:
        if handle.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("no magic")
        try:
            footer = pq.ParquetFile(handle).metadata
        except NotImplementedError:  # polars writes 128-bit integers, which pyarrow does not read
            n_rows = scan_files([file]).select(pl.len()).collect().item()
            handle.seek(0)
            return Footer(n_rows, pl.Schema(pl.read_parquet_schema(handle)), None)
        if footer.num_rows < 0:
            raise ValueError("fewer than no rows")
        found = (footer.schema, footer.metadata)
        kept = footer if footer.num_row_groups <= _FEW else None
        if before is not None and before.found is not None and _alike(before.found, found):
            return Footer(footer.num_rows, before.schema, before.found, kept)
        handle.seek(0)
        return Footer(footer.num_rows, pl.Schema(pl.read_parquet_schema(handle)), found, kept)


def null_count(file: FileRef, footer: Footer, column: str) -> int | None:
    """Nulls of a column by the statistics of a file; None where they do not tell.

    Raises InputError for a file that changed, ValueError for statistics that contradict the columns.
    """
    told = _metadata(file) if footer.kept is None else footer.kept
    if told is None:
        return None
    names = [told.schema.column(i).path for i in range(told.num_columns)]
    if column not in names:
        return None
    place = names.index(column)
    chunks = [told.row_group(g).column(place) for g in range(told.num_row_groups)]
    # Asked for the statistics of another type than the schema's, pyarrow ends the process.
    if any(chunk.physical_type != told.schema.column(place).physical_type for chunk in chunks):
        raise ValueError("statistics of another type")
    if all(chunk.is_stats_set and chunk.statistics.has_null_count for chunk in chunks):
        return int(sum(chunk.statistics.null_count for chunk in chunks))
    return None


def row_group_ends(file: FileRef) -> list[int]:
    """The number of rows up to the end of each row group; none where they cannot be told.

    Raises InputError for a file that changed.
    """
    try:
        told = _metadata(file)
    except ValueError:
        return []
    return [] if told is None else list(accumulate(told.row_group(g).num_rows for g in range(told.num_row_groups)))


def _metadata(file: FileRef) -> Any:
    """The footer by pyarrow; None where it is of what pyarrow does not read. ValueError for one that is damaged."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    try:
        with file.open() as handle:
            return pq.ParquetFile(handle).metadata
    except InputError:
        raise
    except NotImplementedError:
        return None
    except OSError as error:
        raise ValueError("the footer cannot be read") from error


def _unreadable(file: FileRef) -> InputError:
    """Say what is wrong with a file whose footer could not be read."""
    with file.open() as handle:
        head = handle.read(len(_MAGIC))
        handle.seek(-min(file.size, len(_MAGIC)), os.SEEK_END)
        tail = handle.read(len(_MAGIC))
    name = printable(file.path)
    if file.size == 0:
        return InputError(f"{name} is empty (0 bytes). A table without rows is still a Parquet file with its columns.")
    if head != _MAGIC and of_name(file.path) is None:
        return InputError(
            f"{name} is no Parquet file, and its name does not say what else it is. Names that are read end in "
            f"{known_suffixes()}; for any other say the format, as in --read hits=trec."
        )
    if head != _MAGIC:
        return InputError(f"{name} is not a Parquet file: it does not start with PAR1.")
    if file.size < _SHORTEST or tail != _MAGIC:
        return InputError(f"{name} is cut short or still being written: it does not end with PAR1.")
    return InputError(f"{name} is damaged: its footer cannot be read as Parquet.")


def _alike(one: Any, other: Any) -> bool:
    return bool(one[0].equals(other[0])) and one[1] == other[1]
