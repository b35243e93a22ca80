"""Sorted pieces on disk -> one sorted stream, without holding more than a few pieces' worth at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from docrecall.tables import sorted_by

_STRIDE = 1 << 14  # rows of a piece that one sample stands for
_AT_A_TIME = 16  # samples between two cuts: about a row group of results

Key = tuple[Any, ...]


def in_order(pieces: Sequence[Path], key: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield all rows of some Parquet files, sorted by key, in frames of uneven size; at least one, maybe empty.

    pieces: each sorted by key; a key stands once in all of them together. What is yielded, put end to end, does not
    depend on how the rows were cut into pieces.
    """
    spans = [span for piece in pieces if (span := _Piece.of(piece, key)) is not None]
    cuts = _cuts(spans, key)
    if not cuts:
        yield pl.scan_parquet(pieces[0], glob=False).collect()
        return
    for low, high in zip(cuts, [*cuts[1:], None], strict=True):
        inside = [p for p in spans if p.last >= low and (high is None or p.first < high)]
        frames = [p.between(key, low, high) for p in inside]
        if frames:
            yield sorted_by(pl.concat(frames), key)


class _Piece:
    """A piece with rows: its first and last key, and every so many keys between them."""

    def __init__(self, path: Path, samples: pl.DataFrame, first: Key, last: Key) -> None:
        self.path, self.samples, self.first, self.last = path, samples, first, last

    @classmethod
    def of(cls, path: Path, key: Sequence[str]) -> _Piece | None:
        keys = pl.scan_parquet(path, glob=False).select(key).collect()
        if keys.is_empty():
            return None
        return cls(path, keys.gather_every(_STRIDE), keys.row(0), keys.row(-1))

    def between(self, key: Sequence[str], low: Key, high: Key | None) -> pl.DataFrame:
        """The rows from one key on, up to and without another."""
        rows = pl.scan_parquet(self.path, glob=False)
        if self.first < low:
            rows = rows.filter(~_before(key, low))
        if high is not None and self.last >= high:
            rows = rows.filter(_before(key, high))
        return rows.collect()


def _cuts(pieces: Sequence[_Piece], key: Sequence[str]) -> list[Key]:
    """Keys that part all rows into stretches of like size, the smallest first."""
    if not pieces:
        return []
    samples = pl.concat([p.samples for p in pieces]).sort(key)
    return samples.gather_every(_AT_A_TIME).rows()


def _before(key: Sequence[str], bound: Key) -> pl.Expr:
    """Whether a row's key is smaller than a bound."""
    smaller = pl.lit(False)
    for column, most in reversed(list(zip(key, bound, strict=True))):
        smaller = (pl.col(column) < most) | ((pl.col(column) == most) & smaller)
    return smaller
