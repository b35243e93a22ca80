"""Text files -> parts of a table: which layout a file has, and reading it block by block in two threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple

import polars as pl

from docrecall.errors import DataError, InputError, UsageError
from docrecall.parallel import in_order
from docrecall.show import printable
from docrecall.sources import beir, delimited, jsonl, trec
from docrecall.sources.apply import Applied, apply, missing_source
from docrecall.sources.files import FileRef
from docrecall.sources.formats import IGNORED
from docrecall.sources.lines import BLOCK_BYTES, Block, blocks, first_lines
from docrecall.sources.mapping import TableMap, needed_names
from docrecall.sources.spool import Spool
from docrecall.sources.table import FAULT, LINE, Part
from docrecall.tables import TableSpec

_SMALL = 1 << 20
_ROWS_AT_A_TIME = 200_000

Parse = Callable[[Block], pl.DataFrame]


class _Layout(NamedTuple):
    """names: the columns of the file, for messages. parse: a block -> raw columns. goes_on: see `blocks`.

    doubtful: columns that were not seen in the first lines; without any value, they are not there.
    """

    names: list[str]
    parse: Parse
    goes_on: Callable[[bytes], bool] | None = None
    doubtful: frozenset[str] = frozenset()


def text_part(file: FileRef, spec: TableSpec, tmap: TableMap) -> Part:
    """Read a text file into a part. Lines are read once, here; the part scans what was made of them.

    Raises InputError for files that are not text of their layout, DataError for columns that a mapping names and the
    file lacks. Lines that cannot be read become rows with a fault.
    """
    if file.layout == "ranx":
        return _ranx_part(file, spec, tmap)
    found = _LAYOUTS[file.layout](file, spec, tmap)
    names = [*found.names, *file.partitions]
    twice = sorted(set(found.names) & set(file.partitions) & set(spec.columns))
    if twice:
        raise DataError(
            f"{printable(file.path)}: {spec.name}.{twice[0]} is a column of the file and the folder {twice[0]}=.. "
            "above it. Keep one of them."
        )
    tmap = beir.adapt(tmap, spec, names)
    folders = [pl.lit(value, pl.String).alias(key) for key, value in file.partitions.items()]
    spool = Spool(small=file.size <= _SMALL)

    def work(numbered: tuple[int, Block]) -> Applied:
        number, block = numbered
        applied = apply(found.parse(block).with_columns(folders), spec, tmap, text=True, marked=file.layout == "jsonl")
        spool.add(number, applied.rows)
        return applied

    numbered = zip(count(), blocks(file, BLOCK_BYTES, found.goes_on))
    return _gathered(spool, in_order(work, numbered), file=file, names=names, tmap=tmap, doubtful=found.doubtful)


def frame_part(
    scan: pl.LazyFrame,
    n_rows: int,
    spec: TableSpec,
    tmap: TableMap,
    *,
    names: Sequence[str],
    file: FileRef | None = None,
) -> Part:
    """Make a part of a table whose mapping needs a look at its rows: patterns, lists, numbers in text."""
    spool = Spool(small=file is None or file.size <= _SMALL)

    def read() -> Iterator[Applied]:
        for number, start in enumerate(range(0, max(n_rows, 1), _ROWS_AT_A_TIME)):
            raw = _collect(scan.slice(start, _ROWS_AT_A_TIME), file).drop(LINE, FAULT, strict=False)
            rows = pl.int_range(start + 1, start + 1 + raw.height, dtype=pl.Int64, eager=True).alias(LINE)
            applied = apply(raw.with_columns(rows), spec, tmap, text=False)
            spool.add(number, applied.rows)
            yield applied

    return _gathered(spool, read(), file=file, names=names, tmap=tmap)


def _collect(rows: pl.LazyFrame, file: FileRef | None) -> pl.DataFrame:
    try:
        return rows.collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        if file is None:
            raise
        file.check_unchanged()
        raise InputError(f"{printable(file.path)} is damaged: its footer can be read, but not its data.") from None


def _gathered(
    spool: Spool,
    pieces: Iterator[Applied],
    *,
    file: FileRef | None,
    names: Sequence[str],
    tmap: TableMap,
    doubtful: frozenset[str] = frozenset(),
) -> Part:
    """Make a part of what was read. file: None for a frame. doubtful: as in a layout."""
    layout = file.layout if file else "frame"
    asked, faulty = [], False
    for piece in pieces:
        spool.note(piece.rows)
        faulty = faulty or bool((piece.rows[FAULT] != 0).any())
        if piece.asked is not None:
            asked.append(piece.asked)
    empty = {c for c in doubtful if spool.nulls.get(c, 0) == spool.n_rows}
    schema = {c: t for c, t in spool.schema.items() if c not in (FAULT, LINE, *empty)}
    where = "row" if layout in ("parquet", "frame") else "line"

    def places(rows: pl.Series) -> pl.Series:
        if file is None or LINE not in spool.schema:
            return pl.Series([file.name if file else None] * len(rows), dtype=pl.String)
        lines = spool.scan().select(LINE).collect().to_series().gather(rows)
        return pl.select(pl.lit(f"{file.name}, {where} ") + lines.cast(pl.String)).to_series()

    def scan() -> pl.LazyFrame:
        return spool.scan().select(*schema, *([FAULT] if faulty else []))

    return Part(
        file.name if file else None,
        spool.n_rows,
        pl.Schema(schema),
        list(names),
        scan,
        null_count=lambda column: spool.nulls[column],
        check_unchanged=file.check_unchanged if file else lambda: None,
        fingerprint={"bytes": file.size, "mtime_ns": file.mtime_ns} if file else {},
        places=places,
        faulty=faulty,
        format=layout,
        asked=pl.concat(asked).drop(*empty, strict=False) if asked else None,
        tmap=tmap,
        listed=file,
    )


def _ranx_part(file: FileRef, spec: TableSpec, tmap: TableMap) -> Part:
    if spec.name not in ("hits", "qrels"):
        raise UsageError(f"{printable(file.path)}: ranx JSON holds a run or qrels, and no {spec.name}.")
    value = "score" if spec.name == "hits" else "relevance"
    rows, empty = jsonl.parse_ranx(file, value)
    applied = apply(rows, spec, tmap, text=True, marked=True)
    asked = empty if spec.name == "hits" and empty.height else None
    spool = Spool(small=True)
    spool.add(0, applied.rows)
    pieces = iter([Applied(applied.rows, asked)])
    return _gathered(spool, pieces, file=file, names=["query_id", "doc_id", value], tmap=tmap)


def _trec(file: FileRef, spec: TableSpec, tmap: TableMap) -> _Layout:
    declared = tmap.read.fields if tmap.read and tmap.read.format == "trec" else ()
    if not declared and spec.name not in ("hits", "qrels"):
        raise UsageError(
            f"{printable(file.path)}: TREC files hold a run or qrels. To read {spec.name} from fields between white "
            f"space, declare them in order, as in --read {spec.name}=trec:{','.join(spec.required)}."
        )
    fields = declared or (trec.RUN if spec.name == "hits" else trec.QRELS)
    more = not declared and spec.name == "hits"
    names = [name for name in fields if name != IGNORED]
    return _Layout(names, partial(trec.parse, fields=fields, more=more))


def _delimited(separator: str, file: FileRef, spec: TableSpec, tmap: TableMap) -> _Layout:
    layout = "csv" if separator == "," else "tsv"
    declared = tmap.read.fields if tmap.read and tmap.read.format == layout else ()
    fields = list(declared) or delimited.header(first_lines(file), separator)
    name = printable(file.path)
    if not any(fields):
        raise InputError(f"{name}, line 1: a header line with the names of the columns was expected.")
    needed = fields if spec.slices else needed_names(spec, beir.adapt(tmap, spec, fields))
    twice = [f for f in dict.fromkeys(fields) if f != IGNORED and fields.count(f) > 1 and f in needed]
    if twice:
        raise DataError(f"{name}, line 1: the header names {printable(twice[0])!r} more than once.")
    names = [f for f in fields if f != IGNORED]
    # Columns that nobody reads may share a name, have none, or have one of those that are hidden here.
    plain = [fields.count(f) == 1 and f not in ("", IGNORED) and not f.startswith("__") for f in fields]
    columns = [f if f in needed or plain[i] else f"__unread{i}" for i, f in enumerate(fields)]

    def parse(block: Block) -> pl.DataFrame:
        return delimited.parse(block, columns, separator, skip_header=not declared and block.first == 1)

    return _Layout(names, parse, delimited.goes_on if separator == "," else None)


def _jsonl(file: FileRef, spec: TableSpec, tmap: TableMap) -> _Layout:
    data = first_lines(file)
    names: dict[str, None] = {}
    for line in data.decode("utf-8", "replace").split("\n"):
        names.update(dict.fromkeys(jsonl.names(line)))
    tmap = beir.adapt(tmap, spec, names)
    wanted = needed_names(spec, tmap)
    if spec.slices:
        wanted = list(dict.fromkeys([*wanted, *names]))
    for name in [n for _, s in tmap.columns if s.how != "value" for n in s.names]:
        if name in wanted and name not in names and not any(n.startswith(f"{name}.") for n in names):
            _refuse_missing(spec, tmap, name, list(names), file)
    lists = jsonl.list_names(data, wanted)
    if lists and "rank" not in names:  # positions in the lists are the ranks
        wanted = [name for name in wanted if name != "rank"]
    doubtful = frozenset(name for name in wanted if name not in names)
    return _Layout(list(names), partial(jsonl.parse, wanted=wanted, lists=lists), doubtful=doubtful)


def _refuse_missing(spec: TableSpec, tmap: TableMap, name: str, names: list[str], file: FileRef) -> None:
    groups = {group for split in tmap.splits for group in split.groups}
    if name not in groups:
        raise DataError(f"{printable(file.path)}: {missing_source(f'a column of {spec.name}', name, names)}")


_LAYOUTS: dict[str, Callable[[FileRef, TableSpec, TableMap], _Layout]] = {
    "trec": _trec,
    "csv": partial(_delimited, ","),
    "tsv": partial(_delimited, "\t"),
    "jsonl": _jsonl,
}
