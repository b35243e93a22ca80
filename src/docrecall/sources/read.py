"""Anything that holds a table -> `Table`: paths, polars frames, Arrow streams."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from docrecall.errors import DataError, InputError, InputTypeError
from docrecall.show import printable
from docrecall.sources.files import FileRef, list_files
from docrecall.sources.table import Part, Table, collect, damaged
from docrecall.tables import TableSpec

_KINDS = "a path, a list of paths, a polars DataFrame or LazyFrame, or an object with __arrow_c_stream__"


def read_table(source: Any, spec: TableSpec, run: str | None = None) -> Table:
    """Open one table. Footers are read, rows are not (a LazyFrame is run once, into a temporary file).

    source: a path, a list of paths, a directory or glob, a DataFrame, a LazyFrame, or anything with
    `__arrow_c_stream__`. Raises InputError for files that cannot be read and InputTypeError for anything else.
    """
    if isinstance(source, str | os.PathLike):
        return _from_paths([os.fsdecode(source)], spec, run)
    if isinstance(source, pl.LazyFrame):
        return _from_lazy(source, spec, run)
    if isinstance(source, pl.DataFrame):
        return Table(spec, [_frame_part(source, spec)], run)
    if hasattr(source, "__arrow_c_stream__"):
        return Table(spec, [_frame_part(_from_stream(source, spec), spec)], run)
    if isinstance(source, Sequence) and source and all(isinstance(s, str | os.PathLike) for s in source):
        return _from_paths([os.fsdecode(s) for s in source], spec, run)
    found = "an empty list" if isinstance(source, Sequence) and not source else f"a {type(source).__name__}"
    raise InputTypeError(f"{spec.name} is {found}; expected {_KINDS}.")


def read_logs(source: Any, spec: TableSpec) -> list[Table]:
    """Open the hits: one table, or a dict run name -> table."""
    if not isinstance(source, Mapping):
        return [read_table(source, spec)]
    if not source:
        raise InputTypeError(f"{spec.name} is an empty dict; expected run name -> {_KINDS}.")
    for name in source:
        if not isinstance(name, str) or not name:
            raise InputTypeError(f"{spec.name}: run names are text that is not empty, and one is {name!r}.")
    return [read_table(source[name], spec, run=name) for name in sorted(source)]


def _from_paths(paths: list[str], spec: TableSpec, run: str | None) -> Table:
    listing = list_files(paths)
    return Table(spec, [_file_part(file, spec) for file in listing.files], run, listing.left_out)


def _from_stream(source: Any, spec: TableSpec) -> pl.DataFrame:
    try:
        return pl.DataFrame(source)
    except Exception as error:  # whatever its owner raises while it is read
        raise InputError(
            f"the {type(source).__name__} given as {spec.name} could not be read as an Arrow stream "
            f"({type(error).__name__}). A column that mixes types is the usual cause."
        ) from error


def _file_part(file: FileRef, spec: TableSpec) -> Part:
    try:
        with file.open() as handle:
            found = pl.read_parquet_schema(handle)
        n_rows = int(file.scan().select(pl.len()).collect().item())
    except InputError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        raise InputError(f"{printable(file.path)} is damaged: its footer cannot be read as Parquet.") from None
    known = pl.Schema({c: t for c, t in found.items() if c in spec.columns})
    folders = {key: value for key, value in file.partitions.items() if key in spec.columns}
    schema = pl.Schema({**known, **{key: pl.String() for key in folders}})
    names = [*found, *(key for key in file.partitions if key not in found)]
    scan = partial(_scan_columns, file, folders, list(schema))
    part = Part(
        file.name,
        n_rows,
        schema,
        names,
        scan,
        null_count=lambda column: _null_count(file, part, column),
        check_unchanged=file.check_unchanged,
        fingerprint={"bytes": file.size, "mtime_ns": file.mtime_ns},
    )
    _refuse_conflict(file, part, known, folders, spec)
    return part


def _scan_columns(file: FileRef, folders: Mapping[str, str | None], columns: list[str]) -> pl.LazyFrame:
    literals = [pl.lit(value, pl.String).alias(key) for key, value in folders.items()]
    return file.scan().with_columns(literals).select(columns)


def _null_count(file: FileRef, part: Part, column: str) -> int:
    """Nulls of a column by the footer's statistics; by a scan where a writer left them out."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - a third of a second that small frames need not pay

    with file.open() as handle:
        try:
            footer = pq.ParquetFile(handle).metadata
        except NotImplementedError:  # polars writes 128-bit integers, which pyarrow does not read
            return _count_nulls(part, column)
        except (OSError, ValueError):  # ArrowInvalid is a ValueError
            raise damaged(part) from None
        names = [footer.schema.column(i).path for i in range(footer.num_columns)]
        if column in names:
            place = names.index(column)
            chunks = [footer.row_group(g).column(place) for g in range(footer.num_row_groups)]
            # Asked for the statistics of another type than the schema's, pyarrow ends the process.
            if any(chunk.physical_type != footer.schema.column(place).physical_type for chunk in chunks):
                raise damaged(part)
            if all(chunk.is_stats_set and chunk.statistics.has_null_count for chunk in chunks):
                return sum(chunk.statistics.null_count for chunk in chunks)
    return _count_nulls(part, column)


def _count_nulls(part: Part, column: str) -> int:
    return int(collect(part.scan().select(pl.col(column).null_count()), [part]).item())


def _refuse_conflict(
    file: FileRef, part: Part, known: pl.Schema, folders: Mapping[str, str | None], spec: TableSpec
) -> None:
    """A column that is also a folder name must say the same as the folder; the engine would let the folder win."""
    for key in known.keys() & folders.keys():
        differs = pl.col(key).cast(pl.String).ne_missing(pl.lit(folders[key], pl.String))
        if collect(file.scan().select(differs.any()), [part]).item():
            raise DataError(
                f"{printable(file.path)}: the column {spec.name}.{key} and the folder {printable(key)}=.. above the "
                "file say different things. Keep one of them."
            )


def _frame_part(frame: pl.DataFrame, spec: TableSpec) -> Part:
    known = frame.select(c for c in spec.columns if c in frame.columns)
    return Part(None, frame.height, known.schema, frame.columns, known.lazy, lambda c: known[c].null_count())


class _Folder:
    """A temporary folder that lives as long as this value does."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="docrecall-"))
        # Not TemporaryDirectory, which warns when it is let go of in any other way than by `with`.
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _from_lazy(frame: pl.LazyFrame, spec: TableSpec, run: str | None) -> Table:
    """Run a LazyFrame once into a temporary file: slices of a plan that is not sorted differ from run to run."""
    try:
        schema = frame.collect_schema()
        known = frame.select(c for c in spec.columns if c in schema)
        if not known.collect_schema() or any(t == pl.Null for t in known.collect_schema().values()):
            return Table(spec, [_frame_part(known.collect(), spec)], run)
        folder = _Folder()
        path = folder.path / f"{spec.name}.parquet"
        known.sink_parquet(path, compression="lz4")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(
            f"the LazyFrame given as {spec.name} failed when it was run ({type(error).__name__}). "
            "Collect it yourself to see why."
        ) from error
    part = _file_part(list_files([str(path)]).files[0], spec)
    return Table(
        spec, [Part(None, part.n_rows, part.schema, list(schema), part.scan, part.null_count)], run, keep=folder
    )
