"""One generated call of `score`: tables as plain rows, and how they are handed over."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

import docrecall as dr


@dataclass(frozen=True)
class Rows:
    """A table as tuples, so that the oracle needs no engine. splits: where it is cut into files."""

    columns: dict[str, Any]
    rows: list[tuple[Any, ...]]
    splits: tuple[int, ...] = ()

    def frame(self) -> pl.DataFrame:
        return pl.DataFrame(self.rows, schema=self.columns, orient="row")

    def dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def pieces(self) -> list[pl.DataFrame]:
        frame = self.frame()
        edges = [0, *sorted(self.splits), frame.height]
        return [frame.slice(low, high - low) for low, high in itertools.pairwise(edges)]


@dataclass(frozen=True)
class Case:
    """logs: run name (None: not named by the caller) -> hits. form: frame, lazy, arrow or files."""

    logs: dict[str | None, Rows]
    qrels: Rows | None
    queries: Rows | None
    measures: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    batch_rows: int = 1_000_000
    form: str = "frame"
    out: bool = False
    evidence: Rows | None = None
    documents: Rows | None = None
    requests: Rows | None = None
    chunks: Rows | None = None

    def score(self, folder: Path) -> dr.Scores:
        """Call `score`, with files and results below `folder` where the case asks for them."""
        logs = {
            name: hand_over(rows, self.form, folder / f"hits{n}") for n, (name, rows) in enumerate(self.logs.items())
        }
        others = {
            name: hand_over(table, self.form, folder / name)
            for name in ("queries", "evidence", "documents", "requests", "chunks")
            if (table := getattr(self, name)) is not None
        }
        return dr.score(
            logs.get(None, logs),
            None if self.qrels is None else hand_over(self.qrels, self.form, folder / "qrels"),
            list(self.measures),
            **others,
            batch_rows=self.batch_rows,
            out=folder / "out" if self.out else None,
            **self.options,
        )


def hand_over(rows: Rows, form: str, path: Path) -> Any:
    """The table in one of the forms that `score` takes."""
    match form:
        case "frame":
            return rows.frame()
        case "lazy":
            return rows.frame().lazy()
        case "arrow":
            frame = rows.frame()
            return frame if pl.Int128 in frame.dtypes else frame.to_arrow()  # Arrow has no such type
        case "files":
            return write_pieces(rows.pieces(), path)
    raise ValueError(form)


def write_pieces(pieces: Sequence[pl.DataFrame], folder: Path) -> str:
    """Write frames as the files of a folder, in order."""
    folder.mkdir(parents=True)
    for number, piece in enumerate(pieces):
        piece.write_parquet(folder / f"{number:03}.parquet", row_group_size=5)
    return str(folder)
