"""Batches that are done, on disk: a run that was killed carries on after the last of them.

A batch stands in a folder of its own, which gets its name when all of it is written. Kept is what the account and the
sums are made of, so that taking in a batch again from disk ends in the same state as scoring it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl

from docrecall import findings
from docrecall.kernel.batch import Batch
from docrecall.kernel.per_query import BatchScores
from docrecall.tables import sorted_by, unit_key

UNITS = "units.parquet"
_RECORD = "record.json"
_SIZES = "sizes.json"
_FRAMES = ("batch", "rejected", "batch_findings", "gold_chunks", "findings")
_COUNTS = tuple(f.name for f in fields(BatchScores) if f.type in ("int", "bool"))


class Journal:
    """The batches of one run, in order. pieces: the units of each, on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        self._n = 0
        self.pieces: list[Path] = []

    def sizes(self, planned: list[int]) -> list[int]:
        """The sizes of batches that this run began with: those that are planned, if it begins now."""
        note = self._folder.with_name(_SIZES)
        if note.exists():
            return [int(size) for size in json.loads(note.read_text(encoding="utf-8"))]
        note.write_text(json.dumps(planned), encoding="utf-8")
        return planned

    def add(self, scores: BatchScores, batch: Batch | None) -> None:
        """Write a batch, its units sorted by key; without where it came from, only for the results of this run."""
        folder = self._folder / (f"last-{len(self.pieces):06}" if batch is None else "next")
        folder.mkdir()
        units = sorted_by(scores.units, unit_key(scores.units.columns))
        units.write_parquet(folder / UNITS, compression="lz4")
        if batch is None:
            self.pieces.append(folder / UNITS)
            return
        frames = {
            "batch": batch.units,
            "rejected": pl.DataFrame() if batch.rejected is None else batch.rejected,
            "batch_findings": findings.merge(batch.findings),
            "gold_chunks": scores.gold_chunks,
            "findings": findings.merge(scores.findings),
        }
        for name, frame in frames.items():
            frame.write_ipc(folder / f"{name}.arrow")
        record = {name: getattr(scores, name) for name in _COUNTS}
        record |= {"read": batch.read, "duplicates": batch.duplicates}
        (folder / _RECORD).write_text(json.dumps(record), encoding="utf-8")
        done = folder.rename(self._of(self._n))
        self._n += 1
        self.pieces.append(done / UNITS)

    def again(self) -> Iterator[tuple[Batch, BatchScores]]:
        """Give the batches of an earlier try, up to the first that is missing or not whole; the rest is removed."""
        while (folder := self._of(self._n)).is_dir():
            try:
                done = _read(folder)
            except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
                break  # names are there and contents are not: the machine stopped, not only the run
            self._n += 1
            self.pieces.append(folder / UNITS)
            yield done
        for left in self._folder.iterdir():
            if left.name >= self._of(self._n).name:
                shutil.rmtree(left, ignore_errors=True)

    def _of(self, number: int) -> Path:
        return self._folder / f"{number:06}"


def _read(folder: Path) -> tuple[Batch, BatchScores]:
    record: dict[str, Any] = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    frames = {name: pl.read_ipc(folder / f"{name}.arrow") for name in _FRAMES}
    batch = Batch(
        frames["batch"],
        pl.LazyFrame(),
        read=record.pop("read"),
        duplicates=record.pop("duplicates"),
        rejected=frames["rejected"] if frames["rejected"].width else None,
        findings=[frames["batch_findings"]],
    )
    scores = BatchScores(
        units=pl.read_parquet(folder / UNITS, glob=False),
        gold_chunks=frames["gold_chunks"],
        findings=[frames["findings"]],
        **record,
    )
    return batch, scores
