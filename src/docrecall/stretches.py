"""Files that are each sorted by query, as several writers leave them -> frames that hold all rows of their queries.

The rows of neighbouring queries are a slice of each file. So they come together in memory, and need not be written once
more to temporary files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from docrecall.measures.definition import Ints
from docrecall.sources.table import Part, Table, collect
from docrecall.tables import is_sorted_by

_MOST_FILES = 64  # all of them are read for each frame
_MOST_HEADS = 16_000_000  # places where queries begin, which are held for a moment: some 300 MB
_STRETCH = 20_000  # rows, well below the smallest batch
_MOST_OF_ALL = 1_000  # a stretch is no larger part of all rows than one in so many
_FIRST_ROWS = 1_000
_LARGEST_RANK = 1 << 31


class Stretches(NamedTuple):
    """Stretches of queries, of some 20,000 rows or fewer.

    column: what all files are sorted by, the query or the request. bounds: where each stretch begins in each part, and
    last where the parts end; shape (stretches + 1, parts).
    """

    column: str
    bounds: Ints

    @classmethod
    def of(cls, log: Table) -> Stretches | None:
        """Look where queries begin in each file. None where a file is not sorted, or they are too many."""
        column = "request_id" if "request_id" in log.columns else "query_id"
        filled = [part for part in log.parts if part.n_rows]
        if not 1 <= len(filled) <= _MOST_FILES:
            return None
        if not all(_is_sorted(log.scan([part], [column]).head(_FIRST_ROWS), part) for part in filled):
            return None
        heads: list[pl.DataFrame] = []
        for part in log.parts:
            new = pl.col(column).ne_missing(pl.col(column).shift())
            marked = log.scan([part], [column]).with_row_index("row").filter(new | (pl.col("row") == 0))
            found = collect(marked, [part]).rechunk()
            if found[column].null_count() or not is_sorted_by(found, [column]):
                return None
            heads.append(found)
            if sum(h.height for h in heads) > _MOST_HEADS:
                return None
        return cls(column, _bounds(log.parts, heads, column))

    def groups(self, rows: int) -> list[tuple[int, int]]:
        """Put stretches that follow each other together, about so many rows in each group: first, and first after."""
        before, found, start = self.bounds.sum(axis=1), [], 0
        while start < len(before) - 1:
            stop = max(start + 1, int(np.searchsorted(before, before[start] + rows, side="right")) - 1)
            found.append((start, stop))
            start = stop
        return found

    def frames(self, log: Table, rows: int, done: int = 0) -> Iterator[pl.DataFrame]:
        """Yield frames as `Table.rows_of` gives them, all columns, by query and rank as far as ranks are good.

        done: how many of the first are not wanted again.
        """
        for start, stop in self.groups(rows)[done:]:
            slices = [
                log.rows_of(range(place, place + 1), log.columns, piece=(int(low), int(high - low)))
                for place, (low, high) in enumerate(zip(self.bounds[start], self.bounds[stop], strict=True))
                if high > low
            ]
            yield _merged(slices, self.column)


def _is_sorted(rows: pl.LazyFrame, part: Part) -> bool:
    values = collect(rows, [part]).to_series()
    return values.null_count() == 0 and values.is_sorted()


def _bounds(parts: Sequence[Part], heads: Sequence[pl.DataFrame], column: str) -> Ints:
    n_filled = sum(1 for part in parts if part.n_rows)
    wanted = min(_STRETCH, sum(part.n_rows for part in parts) // _MOST_OF_ALL)
    step = max(1, wanted // n_filled)
    samples = []
    for found in heads:
        row = found["row"].to_numpy()
        at = np.searchsorted(row, np.arange(0, row[-1] + 1 if len(row) else 0, step))
        samples.append(found[column].gather(at))
    cuts = pl.concat(samples).sort().gather_every(n_filled).unique().sort().slice(1)
    bounds = np.zeros((len(cuts) + 2, len(parts)), np.int64)
    for place, (part, found) in enumerate(zip(parts, heads, strict=True)):
        row = np.append(found["row"].to_numpy().astype(np.int64), part.n_rows)
        bounds[1:-1, place] = row[found[column].search_sorted(cuts, side="left").to_numpy()]
        bounds[-1, place] = part.n_rows
    return bounds


def _merged(slices: Sequence[pl.DataFrame], column: str) -> pl.DataFrame:
    """Bring slices, each sorted by the column, in its order, and in that of ranks where these are plain numbers."""
    rows = pl.concat(slices).rechunk()
    new = rows.select(pl.col(column).ne_missing(pl.col(column).shift())).to_series().to_numpy().copy()
    new[np.cumsum([0, *(one.height for one in slices[:-1])])] = True
    starts = np.flatnonzero(new)
    heads = rows[column].gather(starts)
    number = heads.unique().sort().search_sorted(heads, side="left").to_numpy().astype(np.int64)
    word = np.repeat(number, np.diff(starts, append=rows.height))
    rank = rows["rank"] if "rank" in rows.columns else pl.Series(dtype=pl.Null)
    if rank.dtype == pl.Int64 and not rank.null_count() and rank.is_between(0, _LARGEST_RANK, closed="left").all():
        word = word * _LARGEST_RANK + rank.to_numpy()
    # The slices are runs in order, which a stable sort merges.
    return rows[pl.Series(np.argsort(word, kind="stable").astype(np.uint32))]
