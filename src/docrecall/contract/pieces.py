"""A table that is too large to be held, in pieces of whole queries: its files are sorted by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from docrecall.sources.table import MOST_OPEN, Table, blame

PIECE_ROWS = 1 << 19  # some 30 MB where ids are short; three or four pieces are held at a time
MOST_HELD = 1 << 22  # rows up to which a table is held whole, which is faster than to read it twice


def pieces(table: Table, columns: Sequence[str]) -> Iterator[tuple[int, pl.DataFrame] | None]:
    """Read a table piece by piece: the number of rows before the piece, and its rows as `Table.rows_of` gives them.

    All rows of a query are in one piece. Gives None and ends where rows are not sorted by query, or name none.
    """
    start, before = 0, None
    while start < table.n_rows:
        size = PIECE_ROWS
        while True:
            rows = read_piece(table, columns, start, size)
            queries = rows["query_id"]
            if queries.null_count() or not queries.is_sorted():
                yield None
                return
            n = rows.height
            if start + n < table.n_rows:  # the last query may go on behind the piece
                n = int(queries.search_sorted(queries[-1], side="left"))
            if n:
                break
            size *= 2
        if before is not None and not queries[0] > before:
            yield None
            return
        before = queries[n - 1]
        yield start, rows.head(n)
        start += n


def read_piece(table: Table, columns: Sequence[str], start: int, n_rows: int) -> pl.DataFrame:
    """Read rows from one on, of all parts put end to end; fewer than asked for at the end, and where files are many."""
    ends = np.cumsum([part.n_rows for part in table.parts])
    first = int(np.searchsorted(ends, start, side="right"))
    stop = min(int(np.searchsorted(ends, start + n_rows)) + 1, first + MOST_OPEN, len(ends))
    n_rows = min(n_rows, int(ends[stop - 1]) - start)
    begin = int(ends[first]) - table.parts[first].n_rows
    rows = table.rows_of(range(first, stop), columns, piece=(start - begin, n_rows))
    if rows.height != n_rows:
        blame(table.parts[first:stop])
    return rows
