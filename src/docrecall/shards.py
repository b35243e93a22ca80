"""Rows in any order -> frames that each hold all rows of their queries.

Few shards are filtered out of repeated scans; many are written once to temporary files, since every further scan
costs nearly as much as the first. Which way is taken never shows in a result.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
from pyarrow import ipc

from docrecall.errors import InputError, OutputError
from docrecall.sources.table import Table, groups

Way = Literal["slices", "merge", "whole", "scans", "spill"]

_MOST_SCANS = 4  # measured: a filtered scan costs about 0.85 of a bare one, writing and reading back 3 to 3.5
_MOST_SHARDS = 256  # one open file each
_SEED = 20_261_201


def shards(log: Table, shard_rows: int, done: int = 0) -> Iterator[pl.DataFrame]:
    """Yield frames as `Table.rows_of` gives them, all columns; each query, with all its rows, is in exactly one.

    done: how many of the first are not wanted again.
    """
    columns, n_shards = list(log.columns), n_shards_of(log, shard_rows)
    match way_of(log, shard_rows):
        case _ if done >= n_shards:
            return
        case "whole":
            yield log.read(columns)
        case "scans":
            for shard in range(done, n_shards):
                yield log.read(columns, where=_shard(n_shards) == shard)
        case _:
            yield from _spilled(log, columns, n_shards, shard_rows, done)


def n_shards_of(log: Table, shard_rows: int) -> int:
    """Into how many frames a log is cut."""
    return max(1, min(-(-log.n_rows // shard_rows), _MOST_SHARDS))


def way_of(log: Table, shard_rows: int) -> Way:
    """How the rows of a log come together: read whole, by a scan for each shard, or by one spill to temporary files."""
    n_shards = n_shards_of(log, shard_rows)
    if n_shards == 1:
        return "whole"
    return "scans" if n_shards <= _MOST_SCANS or all(part.file is None for part in log.parts) else "spill"


def _shard(n_shards: int) -> pl.Expr:
    # By query and not by unit, so that the labels of a query are needed by one shard only.
    return pl.col("query_id").hash(_SEED) % n_shards


def _spilled(log: Table, columns: list[str], n_shards: int, shard_rows: int, done: int) -> Iterator[pl.DataFrame]:
    try:
        spill = tempfile.TemporaryDirectory(prefix="docrecall-shards-")
    except OSError as error:
        raise _no_room(error) from None
    with spill as folder:
        paths = [Path(folder) / f"{shard}.arrows" for shard in range(n_shards)]
        try:
            _write(log, columns, paths, shard_rows, done)
        except InputError:
            raise
        except OSError as error:
            raise _no_room(error) from None
        for path in paths[done:]:
            if path.exists():
                yield pl.read_ipc_stream(path)
                path.unlink()
            else:
                yield log.rows_of(range(1), columns, piece=(0, 0))


def _no_room(error: OSError) -> OutputError:
    place = tempfile.tempdir or "any folder that is tried"
    return OutputError(
        f"no room to sort the log by query: writing temporary files in {place} failed "
        f"({error.strerror or type(error).__name__}). Set TMPDIR to a folder with more space, "
        "or sort the log by query_id."
    )


def _write(log: Table, columns: list[str], paths: list[Path], slice_rows: int, done: int) -> None:
    """Write the rows of each shard that is wanted to its own file."""
    with contextlib.ExitStack() as stack:
        writers: dict[int, ipc.RecordBatchStreamWriter] = {}
        shard_of = _shard(len(paths))
        wanted = shard_of >= done if done else None
        for places, piece in _slices(log, slice_rows):
            found = log.rows_of(places, columns, where=wanted, piece=piece)
            tagged = found.with_columns(shard_of.cast(pl.Int32).alias("_shard"))
            for (shard,), rows in tagged.partition_by("_shard", as_dict=True, include_key=False).items():
                table: pa.Table = rows.to_arrow()
                if shard not in writers:
                    writers[shard] = stack.enter_context(ipc.new_stream(str(paths[shard]), table.schema))
                writers[shard].write_table(table)


def _slices(log: Table, slice_rows: int) -> Iterator[tuple[range, tuple[int, int] | None]]:
    """All rows of a log, about so many at a time: slices of large files, and many small files together."""
    for places in groups(log.parts, slice_rows):
        if len(places) > 1:
            yield places, None
            continue
        for offset in range(0, log.parts[places.start].n_rows, slice_rows):
            yield places, (offset, slice_rows)
