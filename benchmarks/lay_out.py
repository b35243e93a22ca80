"""Write a log of the layout matrix.

python benchmarks/lay_out.py CELL --rows 10_000_000 [--seed 0] --out DIR
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from cells import CELLS, Cell
from generate import qrels_table
from ids import Ids
from log import LogFiles, row_count
from shapes import Shape, shape_of

FIRST_DAY = date(2026, 11, 1)


def main() -> None:
    """Read the arguments and write the log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cell", choices=CELLS)
    parser.add_argument("--rows", type=row_count, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    lay_out(CELLS[arguments.cell], arguments.rows, arguments.seed, LogFiles(arguments.out))


def lay_out(cell: Cell, rows: int, seed: int, files: LogFiles) -> None:
    """Write hits and labels into a folder that has none."""
    files.hits.mkdir(parents=True)
    ids = Ids(cell.ids)
    shape = shape_of(cell, rows, seed)
    for number, places in enumerate(places_of(cell, shape, seed)):
        folder = files.hits / f"date={FIRST_DAY + timedelta(days=number)}" if cell.by_date else files.hits
        folder.mkdir(exist_ok=True)
        write(hits_at(shape, places, ids), folder / f"part-{number:05}.parquet", cell)
    qrels_table(shape.batch, ids).write_parquet(files.qrels, compression="zstd", statistics=True)
    files.stamp.write_text(cell.stamp(rows, seed), encoding="utf-8")


def places_of(cell: Cell, shape: Shape, seed: int) -> Iterator[np.ndarray | slice]:
    """Say which rows each file has, in its order."""
    n_rows, n_units = len(shape.rank), len(shape.first_hits) - 1
    match cell.order:
        case "random":
            yield from np.array_split(np.random.default_rng([seed, 0, 7]).permutation(n_rows), cell.n_files)
        case "writers":
            yield from (slice(number, None, cell.n_files) for number in range(cell.n_files))
        case "units":
            bounds = shape.first_hits[np.linspace(0, n_units, cell.n_files + 1).astype(np.int64)].tolist()
            yield from (slice(start, stop) for start, stop in pairwise(bounds))


def hits_at(shape: Shape, places: np.ndarray | slice, ids: Ids) -> pl.DataFrame:
    """Make some rows."""
    query, document = shape.batch.hit_query[places], shape.batch.hit_document[places]
    return pl.DataFrame([ids.query(query), pl.Series("rank", shape.rank[places]), ids.document(document)])


def write(hits: pl.DataFrame, path: Path, cell: Cell) -> None:
    """Write one file. The limit is for the dictionary of all documents, see `generate.py`."""
    pq.write_table(
        hits.to_arrow(compat_level=pl.CompatLevel.oldest()),
        path,
        compression=cell.compression,
        use_dictionary=cell.dictionary,
        row_group_size=cell.row_group,
        dictionary_pagesize_limit=8 << 20,
    )


if __name__ == "__main__":
    main()
