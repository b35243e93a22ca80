"""A synthetic log on disk: what it is made of and where its files lie. Standard library only."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

IdKind = Literal["string", "integer", "uuid"]
Variant = Literal["plain", "context", "requests"]

CUTS = (1, 3, 5, 10, 20, 50, 100)
BUDGETS = (250, 500, 1000, 2000, 4000, 8000, 16000)  # in tokens; all hits of a query have about 21,000
HITS_PER_QUERY = 100
REQUESTS_PER_QUERY = 5  # of the variant in which queries are asked again
GENERATOR_VERSION = 1  # raise it when the same parameters give other rows, so that old logs are not reused


@dataclass(frozen=True)
class LogSpec:
    """The parameters that determine every row of a log.

    variant: `context` has what the context and token cuts and the measures of evidence need, with the hits and labels
    of `plain`; `requests` has other hits, of queries that are asked several times.
    """

    rows: int
    ids: IdKind = "string"
    seed: int = 0
    variant: Variant = "plain"

    def __post_init__(self) -> None:
        if self.rows < 1 or self.rows % (HITS_PER_QUERY * self.n_files):
            raise ValueError(f"rows must be a positive multiple of {HITS_PER_QUERY * self.n_files:_}: {self.rows:_}")

    @property
    def n_files(self) -> int:
        """Ten files from 10 M rows on: a log of several files is the usual case, but not for small ones."""
        return 10 if self.rows >= 10_000_000 else 1

    @property
    def n_units(self) -> int:
        """Queries, or requests where they repeat queries; every one has the same number of hits."""
        return self.rows // HITS_PER_QUERY

    @property
    def n_queries(self) -> int:
        """The distinct ones."""
        return -(-self.n_units // REQUESTS_PER_QUERY) if self.variant == "requests" else self.n_units

    @property
    def folder_name(self) -> str:
        """One folder per log, so that logs of several sizes can lie side by side."""
        plain = f"{self.ids}-{self.rows}-seed{self.seed}"
        return plain if self.variant == "plain" else f"{plain}-{self.variant}"

    def stamp(self) -> str:
        """Say what the stamp file holds when the folder has this log."""
        return json.dumps(asdict(self) | {"generator": GENERATOR_VERSION}, sort_keys=True)


@dataclass(frozen=True)
class LogFiles:
    """Where the files of one log lie."""

    folder: Path

    @property
    def hits(self) -> Path:
        """The directory of the hit files."""
        return self.folder / "hits"

    @property
    def qrels(self) -> Path:
        """The labels."""
        return self.folder / "qrels.parquet"

    @property
    def evidence(self) -> Path:
        """The passages, which the context variant alone has."""
        return self.folder / "evidence.parquet"

    @property
    def stamp(self) -> Path:
        """Written last: a folder without it is not a finished log."""
        return self.folder / "_stamp.json"

    def hit_files(self) -> list[str]:
        """Every hit file by name, of partitions too: a reader should not have to guess what else a folder holds."""
        return [str(path) for path in sorted(self.hits.rglob("part-*.parquet"))]

    def holds(self, spec: LogSpec) -> bool:
        """Whether the finished log in this folder is the one asked for."""
        return self.stamp.is_file() and self.stamp.read_text(encoding="utf-8") == spec.stamp()


def row_count(text: str) -> int:
    """Read `10_000_000`; the type of the `--rows` arguments."""
    try:
        return LogSpec(int(text)).rows
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
