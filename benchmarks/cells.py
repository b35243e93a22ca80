"""The layout matrix: how a log may lie on disk, and what may be in it. Standard library only."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

from log import IdKind, LogFiles

CELLS_VERSION = 1  # raise it when the same parameters give other rows


@dataclass(frozen=True)
class Cell:
    """A log of the matrix.

    order: `units` one after the other; `writers`, to which rows go in turn, so that every unit is in every file; or
    `random`. hits: 100 per unit, or 1 to 1,000 of which few have most. labels: 1 to 5 per query, 1 to 50, none for nine
    queries in ten, or the usual ones and nine times as many for queries that nobody asked.
    """

    name: str
    title: str
    n_files: int = 10
    by_date: bool = False
    row_group: int = 1_000_000
    compression: Literal["zstd", "snappy", "none"] = "zstd"
    dictionary: bool = True
    order: Literal["units", "writers", "random"] = "units"
    ids: IdKind = "string"
    hits: Literal["even", "tail"] = "even"
    labels: Literal["usual", "many", "few", "unasked"] = "usual"

    @property
    def same_rows(self) -> bool:
        """Whether the rows are those of the first cell, and the answer the same to the last bit."""
        return (self.ids, self.hits, self.labels) == ("string", "even", "usual")

    def folder_name(self, rows: int, seed: int) -> str:
        """One folder per log."""
        return f"layout-{self.name}-{rows}-seed{seed}"

    def stamp(self, rows: int, seed: int) -> str:
        """Say what the stamp file holds when the folder has this log."""
        return json.dumps(asdict(self) | {"rows": rows, "seed": seed, "version": CELLS_VERSION}, sort_keys=True)

    def is_in(self, files: LogFiles, rows: int, seed: int) -> bool:
        """Whether the finished log in a folder is this one."""
        return files.stamp.is_file() and files.stamp.read_text(encoding="utf-8") == self.stamp(rows, seed)


CELLS = {
    cell.name: cell
    for cell in (
        Cell("ten-files", "ten files; zstd, dictionaries, row groups of 1 M rows"),
        Cell("one-file", "one file", n_files=1),
        Cell("small-files", "10,000 files", n_files=10_000),
        Cell("by-date", "30 partitions by date", n_files=30, by_date=True),
        Cell("groups-5k", "row groups of 5,000 rows", row_group=5_000),
        Cell("snappy", "snappy", compression="snappy"),
        Cell("uncompressed", "uncompressed", compression="none"),
        Cell("plain-ids", "no dictionaries", dictionary=False),
        Cell("interleaved", "ten writers in turn, every unit in every file", order="writers"),
        Cell("unsorted", "one file, rows in random order", n_files=1, order="random"),
        Cell("integer-ids", "integer ids", ids="integer"),
        Cell("uuid-ids", "UUID ids", ids="uuid"),
        Cell("heavy-tail", "1 to 1,000 hits per unit, half of the units have 1 to 4", hits="tail"),
        Cell("many-labels", "1 to 50 labels per query", labels="many"),
        Cell("unlabelled", "nine queries in ten without labels", labels="few"),
        Cell("unasked", "nine labels in ten of queries without hits", labels="unasked"),
    )
}
INTERLEAVED = CELLS["interleaved"]
