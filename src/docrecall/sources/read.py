"""Anything that holds a table -> `Table`: paths, polars frames, Arrow streams."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from docrecall.errors import DataError, DocrecallError, InputError, InputTypeError
from docrecall.show import printable
from docrecall.sources import beir
from docrecall.sources.apply import is_lazy, wanted
from docrecall.sources.files import FileRef, list_files, scan_files
from docrecall.sources.footers import Footer, null_count, read_footer, row_group_ends
from docrecall.sources.formats import Read
from docrecall.sources.mapping import TableMap
from docrecall.sources.spool import Folder
from docrecall.sources.table import Part, Table, collect, damaged
from docrecall.sources.text import frame_part, text_part
from docrecall.tables import TableSpec

_AS_IT_IS = TableMap()

_KINDS = "a path, a list of paths, a polars DataFrame or LazyFrame, or an object with __arrow_c_stream__"


def read_table(source: Any, spec: TableSpec, run: str | None = None, tmap: TableMap = _AS_IT_IS) -> Table:
    """Open one table. Of Parquet, footers are read and rows are not; text, and a LazyFrame, are read once, here.

    source: a path, a list of paths, a directory or glob, a DataFrame, a LazyFrame, or anything with
    `__arrow_c_stream__`. tmap: its format and columns, where they are not ours. Raises InputError for files that cannot
    be read, InputTypeError for anything else, DataError for a mapping that names columns that are not there.
    """
    if isinstance(source, str | os.PathLike):
        return _from_paths([os.fsdecode(source)], spec, run, tmap)
    if isinstance(source, pl.LazyFrame):
        return _from_lazy(source, spec, run, tmap)
    if isinstance(source, pl.DataFrame):
        return Table(spec, [_frame_part(source, spec, tmap)], run)
    if hasattr(source, "__arrow_c_stream__"):
        return Table(spec, [_frame_part(_from_stream(source, spec), spec, tmap)], run)
    if isinstance(source, Sequence) and source and all(isinstance(s, str | os.PathLike) for s in source):
        return _from_paths([os.fsdecode(s) for s in source], spec, run, tmap)
    found = "an empty list" if isinstance(source, Sequence) and not source else f"a {type(source).__name__}"
    raise InputTypeError(f"{spec.name} is {found}; expected {_KINDS}.")


def read_logs(source: Any, spec: TableSpec, tmap: TableMap = _AS_IT_IS) -> list[Table]:
    """Open the hits: one table, or a dict run name -> table."""
    if not isinstance(source, Mapping):
        return [read_table(source, spec, tmap=tmap)]
    if not source:
        raise InputTypeError(f"{spec.name} is an empty dict; expected run name -> {_KINDS}.")
    if "query_id" in source:
        raise InputTypeError(
            f"{spec.name} is a dict with the key query_id; a dict is run name -> table. Make a frame of columns first."
        )
    for name in source:
        if not isinstance(name, str) or not name:
            raise InputTypeError(f"{spec.name}: run names are text that is not empty, and one is {name!r}.")
    return [read_table(source[name], spec, run=name, tmap=tmap) for name in sorted(source)]


def _from_paths(paths: list[str], spec: TableSpec, run: str | None, tmap: TableMap) -> Table:
    declared = tmap.read.format if tmap.read else None
    if declared == "beir" or (declared is None and any(beir.is_folder(path) for path in paths)):
        split = tmap.read.fields[0] if tmap.read and tmap.read.fields else None
        expanded = [beir.files_of(p, spec, split) if os.path.isdir(p) else [p] for p in paths]  # noqa: PTH112
        paths, declared = [path for group in expanded for path in group], None
        tmap = replace(tmap, read=tmap.read or Read("beir"))
    listing = list_files(paths, declared)
    return Table(spec, list(_file_parts(listing.files, spec, tmap)), run, listing.left_out)


def _from_stream(source: Any, spec: TableSpec) -> pl.DataFrame:
    try:
        return pl.DataFrame(source)
    except Exception as error:  # whatever its owner raises while it is read
        raise InputError(
            f"the {type(source).__name__} given as {spec.name} could not be read as an Arrow stream "
            f"({type(error).__name__}). A column that mixes types is the usual cause."
        ) from error


def _file_parts(files: Sequence[FileRef], spec: TableSpec, tmap: TableMap) -> Iterator[Part]:
    """Open files one after the other. What follows from their columns is worked out once for files that are alike."""
    footer: Footer | None = None
    shape: _Shape | None = None
    for file in files:
        if file.layout != "parquet":
            yield text_part(file, spec, tmap)
            continue
        footer = read_footer(file, footer)
        if shape is None or (shape.found, shape.partitions) != (footer.schema, file.partitions):
            shape = _Shape(footer.schema, file.partitions, spec, tmap)
        part = shape.part(file, footer)
        _refuse_conflict(file, part, footer.schema, spec)
        yield part


class _Shape:
    """What Parquet files that are alike have in common: columns, values of folders, what a mapping makes of them."""

    def __init__(self, found: pl.Schema, partitions: Mapping[str, str | None], spec: TableSpec, tmap: TableMap) -> None:
        self.found, self.partitions, self._spec = found, partitions, spec
        self.names = [*found, *(key for key in partitions if key not in found)]
        self._folders = [pl.lit(value, pl.String).alias(key) for key, value in partitions.items()]
        self._tmap = tmap = beir.adapt(tmap, spec, self.names)
        every = pl.Schema({**found, **{key: pl.String() for key in partitions}})
        self._columns: dict[str, pl.Expr] | None = None
        if is_lazy(tmap, _sources(every, spec, tmap)):
            self._columns = columns = wanted(every, spec, tmap)
            with_types = every if tmap.is_plain else _schema(every, columns)
            self._schema = pl.Schema({name: with_types[name] for name in columns})
            self._source_of = {c: s.names[0] for c, s in tmap.columns if s.how in ("column", "text")}

    def part(self, file: FileRef, footer: Footer) -> Part:
        """Make a part of a file; a mapping that needs a look at its rows is given one."""
        if self._columns is None:
            rows = scan_files([file]).with_columns(self._folders)
            return frame_part(rows, footer.n_rows, self._spec, self._tmap, names=self.names, file=file)
        part = Part(
            file.name,
            footer.n_rows,
            self._schema,
            self.names,
            partial(self.scan, [file]),
            null_count=lambda column: _null_count(part, file, footer, column, self._source_of.get(column, column)),
            check_unchanged=file.check_unchanged,
            fingerprint={"bytes": file.size, "mtime_ns": file.mtime_ns},
            places=partial(_row_groups, file),
            format="parquet",
            tmap=self._tmap,
            scan_files=self.scan,
            listed=file,
        )
        return part

    def scan(self, files: Sequence[FileRef]) -> pl.LazyFrame:
        """Scan the known columns of some files of this shape, end to end."""
        assert self._columns is not None, "files that need a look at their rows are spooled"
        return scan_files(files).with_columns(self._folders).select(self._columns.values())


def _schema(every: pl.Schema, columns: Mapping[str, pl.Expr]) -> pl.Schema:
    return pl.LazyFrame(schema=every).select(columns.values()).collect_schema()


def _sources(every: pl.Schema, spec: TableSpec, tmap: TableMap) -> pl.Schema:
    """The types of what a mapping reads; those of columns that nobody reads do not matter."""
    simple = replace(tmap, columns=tuple((c, s) for c, s in tmap.columns if s.how not in ("whole", "sum")), splits=())
    return _schema(every, wanted(every, spec, simple))


def _row_groups(file: FileRef, rows: pl.Series) -> pl.Series:
    """Where rows stand in a Parquet file: in which row group, if there are several."""
    ends = pl.Series(row_group_ends(file), dtype=pl.Int64)
    if len(ends) <= 1:
        return pl.Series([file.name] * len(rows), dtype=pl.String)
    group = (ends.search_sorted(rows, side="right") + 1).cast(pl.String)
    return pl.select(pl.lit(f"{file.name}, row group ") + group + f" of {len(ends)}").to_series()


def _null_count(part: Part, file: FileRef, footer: Footer, column: str, source: str) -> int:
    """Nulls of a column by the footer's statistics; by a scan where a writer left them out."""
    try:
        told = null_count(file, footer, source)
    except ValueError:
        raise damaged(part) from None
    return _count_nulls(part, column) if told is None else told


def _count_nulls(part: Part, column: str) -> int:
    return int(collect(part.scan().select(pl.col(column).null_count()), [part]).item())


def _refuse_conflict(file: FileRef, part: Part, found: Mapping[str, pl.DataType], spec: TableSpec) -> None:
    """A column that is also a folder name must say the same as the folder; the engine would let the folder win."""
    for key in found.keys() & file.partitions.keys() & spec.columns.keys():
        differs = pl.col(key).cast(pl.String).ne_missing(pl.lit(file.partitions[key], pl.String))
        if collect(scan_files([file]).select(differs.any()), [part]).item():
            raise DataError(
                f"{printable(file.path)}: the column {spec.name}.{key} and the folder {printable(key)}=.. above the "
                "file say different things. Keep one of them."
            )


def _frame_part(frame: pl.DataFrame, spec: TableSpec, tmap: TableMap) -> Part:
    tmap = beir.adapt(tmap, spec, frame.columns)
    if not is_lazy(tmap, _sources(frame.schema, spec, tmap)):
        return frame_part(frame.lazy(), frame.height, spec, tmap, names=frame.columns)
    known = frame.select(wanted(frame.schema, spec, tmap).values())
    return Part(None, known.height, known.schema, frame.columns, known.lazy, lambda c: known[c].null_count(), tmap=tmap)


def _from_lazy(frame: pl.LazyFrame, spec: TableSpec, run: str | None, tmap: TableMap) -> Table:
    """Run a LazyFrame once into a temporary file: slices of a plan that is not sorted differ from run to run."""
    try:
        schema = frame.collect_schema()
        tmap = beir.adapt(tmap, spec, schema)
        if not is_lazy(tmap, _sources(schema, spec, tmap)):
            return Table(spec, [_frame_part(frame.collect(), spec, tmap)], run)
        known = frame.select(wanted(schema, spec, tmap).values())
        if not known.collect_schema() or any(t == pl.Null for t in known.collect_schema().values()):
            return Table(spec, [replace(_frame_part(known.collect(), spec, _AS_IT_IS), names=list(schema))], run)
        folder = Folder()
        path = folder.path / f"{spec.name}.parquet"
        known.sink_parquet(path, compression="lz4")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        if isinstance(error, DocrecallError):
            raise
        raise InputError(
            f"the LazyFrame given as {spec.name} failed when it was run ({type(error).__name__}). "
            "Collect it yourself to see why."
        ) from error
    (part,) = _file_parts(list_files([str(path)]).files, spec, _AS_IT_IS)
    return Table(
        spec, [Part(None, part.n_rows, part.schema, list(schema), part.scan, part.null_count)], run, keep=folder
    )
