"""Batches that are done, on disk: a run that was killed carries on after the last of them.

A batch stands in a folder of its own, which gets its name when all of it is written. Kept is what the account and the
sums are made of, so that taking in a batch again from disk ends in the same state as scoring it. Values go straight to
the files of results while batches come in the order of the key. Until their row group is written they stand beside
their batch; where few batches fill a row group, those of the one that begins the next, and the others are scored again.
From the first batch on that is not in order, each keeps its units in files of its own, and all are merged at the end.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import fields
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from docrecall import findings, rowgroups
from docrecall.decisions import decided
from docrecall.kernel.batch import Batch
from docrecall.kernel.per_query import BatchScores
from docrecall.merge import Key, in_order
from docrecall.rowgroups import RowGroups
from docrecall.tables import sorted_by

PER_QUERY = "per_query.parquet"
DECIDED = "decided.parquet"
_VALUES = "values.arrow"
_FEW = 8  # batches that fill a row group, below which they are rather scored again than kept twice
_RECORD = "record.json"
_SIZES = "sizes.json"
_FRAMES = (
    "units.arrow",
    "batch.arrow",
    "rejected.arrow",
    "batch_findings.arrow",
    "gold_chunks.arrow",
    "findings.arrow",
)
_COUNTS = tuple(f.name for f in fields(BatchScores) if f.type in ("int", "bool"))


class Columns(NamedTuple):
    """What of units goes to the files of results. beside: what stands with the decisions."""

    key: list[str]
    measures: list[str]
    beside: list[str]

    def of(self, units: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """The rows of each file."""
        return {
            PER_QUERY: units.select(*self.key, "status", "n_hits", *self.measures),
            DECIDED: decided(units.lazy(), self.key, self.beside).collect(),
        }


class Journal:
    """The batches of one run, in the order in which they came."""

    def __init__(self, folder: Path, columns: Columns) -> None:
        self._folder, self._columns = folder, columns
        folder.mkdir(exist_ok=True)
        self._results = RowGroups(folder.with_name("rows"))
        self._n = 0  # batches
        self._rows = 0  # in order
        self._last: Key | None = None  # of these
        self._values: deque[tuple[int, Path]] = deque()  # what may be in no row group yet, and up to which row
        self._aside: list[Path] = []  # folders of what is not in order

    def sizes(self, planned: list[int]) -> list[int]:
        """The sizes of batches that this run began with: those that are planned, if it begins now."""
        note = self._folder.with_name(_SIZES)
        if note.exists():
            return [int(size) for size in json.loads(note.read_text(encoding="utf-8"))]
        note.write_text(json.dumps(planned), encoding="utf-8")
        return planned

    def add(self, scores: BatchScores, batch: Batch | None) -> None:
        """Write a batch; without where it came from, only for the results of this run."""
        units = sorted_by(scores.units, self._columns.key)
        follows = not self._aside and (units.is_empty() or self._last is None or self._last < self._key(units, 0))
        if batch is None and follows:
            self._append(units)
            return
        folder = self._folder / (f"last-{len(self._aside):06}" if batch is None else "next")
        folder.mkdir()
        if not (follows or self._aside):
            self._results.flush()  # nothing follows any more, and whether values stand beside batches is not asked
        sums = {} if follows else {name: _put(folder / name, rows) for name, rows in self._columns.of(units).items()}
        if batch is None:
            self._aside.append(folder)
            return
        frames = {
            "units.arrow": units.drop(self._columns.measures),
            "batch.arrow": batch.units,
            "rejected.arrow": pl.DataFrame() if batch.rejected is None else batch.rejected,
            "batch_findings.arrow": findings.merge(batch.findings),
            "gold_chunks.arrow": scores.gold_chunks,
            "findings.arrow": findings.merge(scores.findings),
        }
        if follows and self._stand_beside(units.height):
            frames[_VALUES] = units.select(self._columns.measures)
        sums |= {name: _put(folder / name, frame) for name, frame in frames.items()}
        record = {name: getattr(scores, name) for name in _COUNTS}
        record |= {"read": batch.read, "duplicates": batch.duplicates, "rows": units.height if follows else None}
        (folder / _RECORD).write_text(json.dumps(record | {"sums": sums}), encoding="utf-8")
        done = folder.rename(self._folder / f"{self._n:06}")
        self._n += 1
        if follows:
            self._append(units, done)
        else:
            self._aside.append(done)

    def again(self) -> Iterator[tuple[Batch, BatchScores]]:
        """Give the batches of an earlier try, up to the first that is missing or not whole; the rest is removed."""
        done, groups = self._done(), self._results.written()
        while True:
            ends = list(accumulate(entry.rows or 0 for entry in done))
            while groups and (not ends or sum(group.rows for group in groups) > ends[-1]):
                groups.pop()
            written = sum(group.rows for group in groups)
            if all(entry.has(_VALUES) for entry, end in zip(done, ends, strict=True) if entry.waits(end, written)):
                break
            done.pop()
        self._results.take_over(groups)
        for left in self._folder.iterdir():
            if left.name >= f"{len(done):06}":
                shutil.rmtree(left, ignore_errors=True)
        self._n = len(done)
        for entry, end in zip(done, ends, strict=True):
            batch, scores = entry.read()
            if entry.rows is None:
                self._aside.append(entry.folder)
            elif entry.waits(end, written):
                units = pl.concat([scores.units, entry.frame(_VALUES)], how="horizontal")
                self._append(units, entry.folder, skip=max(0, written - (end - entry.rows)))
            else:
                self._note(scores.units)
            yield batch, scores

    def finish(self, folder: Path) -> dict[str, Path]:
        """Put the files of results into a folder, sorted by key; their bytes do not depend on batches."""
        paths = self._results.close()
        if self._aside:
            merged = RowGroups(self._folder.with_name("merged"))
            try:
                merged.take_over([])
                pieces = {name: [path, *(aside / name for aside in self._aside)] for name, path in paths.items()}
                for rows in zip(*(in_order(of, self._columns.key) for of in pieces.values()), strict=True):
                    merged.add(dict(zip(pieces, rows, strict=True)))
                paths = merged.close()
            finally:
                merged.stop()
        return {name: _linked(path, folder / name) for name, path in paths.items()}

    def stop(self) -> None:
        """Give up; what is being written is finished first."""
        self._results.stop()

    def _append(self, units: pl.DataFrame, folder: Path | None = None, skip: int = 0) -> None:
        """Add units that follow those in order. folder: of their batch. skip: how many are in row groups already."""
        self._note(units)
        self._results.add(self._columns.of(units.slice(skip)))
        if folder is not None:
            self._values.append((self._rows, folder / _VALUES))
        written = self._results.rows
        while written and self._values and self._values[0][0] <= written:
            self._values.popleft()[1].unlink(missing_ok=True)

    def _stand_beside(self, n: int) -> bool:
        """Whether values of n units are kept beside their batch: where few fill a row group, if it ends within."""
        most = rowgroups.MOST
        return n * _FEW <= most or self._rows // most != (self._rows + n) // most

    def _note(self, units: pl.DataFrame) -> None:
        self._rows += units.height
        if units.height:
            self._last = self._key(units, -1)

    def _key(self, units: pl.DataFrame, row: int) -> Key:
        return units.select(self._columns.key).row(row)

    def _done(self) -> list[_Done]:
        found: list[_Done] = []
        while (folder := self._folder / f"{len(found):06}").is_dir():
            try:
                entry = _Done.of(folder)
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                break  # names are there and contents are not: the machine stopped, not only the run
            if not all(entry.has(name) for name in entry.sums if name != _VALUES):
                break
            found.append(entry)
        return found


class _Done(NamedTuple):
    """A batch on disk. rows: of its units, which are among those in order; None: it keeps them for itself."""

    folder: Path
    rows: int | None
    record: dict[str, Any]
    sums: dict[str, int]

    @classmethod
    def of(cls, folder: Path) -> _Done:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        return cls(folder, record.pop("rows"), record, record.pop("sums"))

    def has(self, name: str) -> bool:
        """Whether a file is there as it was written."""
        with contextlib.suppress(OSError, KeyError):
            return zlib.crc32((self.folder / name).read_bytes()) == self.sums[name]
        return False

    def waits(self, end: int, written: int) -> bool:
        """Whether units are in no row group yet. end: where those of this batch end; written: where row groups do."""
        return self.rows is not None and (end > written or not written)

    def frame(self, name: str) -> pl.DataFrame:
        return pl.read_ipc(self.folder / name)

    def read(self) -> tuple[Batch, BatchScores]:
        """The batch, and its scores without their values."""
        units, rows, rejected, batch_findings, gold_chunks, of_scores = map(self.frame, _FRAMES)
        batch = Batch(
            rows,
            pl.LazyFrame(),
            read=self.record["read"],
            duplicates=self.record["duplicates"],
            rejected=rejected if rejected.width else None,
            findings=[batch_findings],
        )
        counts = {name: self.record[name] for name in _COUNTS}
        return batch, BatchScores(units=units, gold_chunks=gold_chunks, findings=[of_scores], **counts)


def _put(path: Path, frame: pl.DataFrame) -> int:
    """Write a frame, and give the checksum of its bytes, by which a page that was lost is seen."""
    content = io.BytesIO()
    if path.suffix == ".parquet":
        frame.write_parquet(content, compression="lz4")
    else:
        frame.write_ipc(content, compression="lz4")
    path.write_bytes(content.getbuffer())
    return zlib.crc32(content.getbuffer())


def _linked(path: Path, target: Path) -> Path:
    """Another name for a file; a copy where the file system knows no such."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
    return target
