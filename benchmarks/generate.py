"""Write a synthetic retrieval log and its labels as Parquet.

python benchmarks/generate.py --rows 10_000_000 --ids string --seed 0 [--context | --requests] --out DIR

The rows depend on the parameters alone. Both kinds of ids name the same queries and documents.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from draw import Batch, Requests, draw
from ids import Ids
from log import HITS_PER_QUERY, LogFiles, LogSpec, Variant, row_count
from passages import Texts, chunk_columns, evidence_table

UNITS_PER_ROW_GROUP = 10_000  # about 1 M hits


@dataclass(frozen=True)
class Tables:
    """The rows of a batch of queries or requests."""

    hits: pl.DataFrame
    qrels: pl.DataFrame
    evidence: pl.DataFrame | None = None


Maker = Callable[[int, int], Tables]  # the first unit and how many -> their rows


def plain(spec: LogSpec, ids: Ids) -> Maker:
    """Hits and labels."""

    def make(first: int, n_queries: int) -> Tables:
        batch = draw(first, n_queries, spec.seed)
        return Tables(hits_table(batch, ids), qrels_table(batch, ids))

    return make


def context(spec: LogSpec, ids: Ids) -> Maker:
    """The hits and labels of `plain`, chunks, the context, and evidence."""
    texts = Texts(spec.seed)

    def make(first: int, n_queries: int) -> Tables:
        batch = draw(first, n_queries, spec.seed)
        rng = np.random.default_rng([spec.seed, first, 4])
        hits = hits_table(batch, ids).hstack(chunk_columns(batch, texts, rng))
        return Tables(hits, qrels_table(batch, ids), evidence_table(batch, ids, texts, rng))

    return make


def requests(spec: LogSpec, ids: Ids) -> Maker:
    """Hits of requests, sorted by request; query ids repeat."""
    drawn = Requests(spec)

    def make(first: int, n_requests: int) -> Tables:
        batch = drawn.draw(first, n_requests)
        request = ids.request(np.repeat(np.arange(first, first + n_requests), HITS_PER_QUERY))
        return Tables(hits_table(batch, ids).insert_column(0, request), qrels_table(batch, ids))

    return make


VARIANTS: dict[Variant, Callable[[LogSpec, Ids], Maker]] = {
    "plain": plain,
    "context": context,
    "requests": requests,
}


def hits_table(batch: Batch, ids: Ids) -> pl.DataFrame:
    """List the hits of a batch, by rank inside each query or request."""
    rank = np.tile(np.arange(1, HITS_PER_QUERY + 1), len(batch.hit_query) // HITS_PER_QUERY)
    return pl.DataFrame([ids.query(batch.hit_query), pl.Series("rank", rank), ids.document(batch.hit_document)])


def qrels_table(batch: Batch, ids: Ids) -> pl.DataFrame:
    """List the labels of a batch, sorted by query."""
    return pl.DataFrame(
        [ids.query(batch.label_query), ids.document(batch.label_document), pl.Series("relevance", batch.grade)]
    )


def schema(spec: LogSpec) -> pa.Schema:
    """The columns of a hit file."""
    text_or_number = pa.string() if spec.ids == "string" else pa.int64()
    columns = [("query_id", text_or_number), ("rank", pa.int64()), ("doc_id", text_or_number)]
    if spec.variant == "requests":
        columns.insert(0, ("request_id", text_or_number))
    if spec.variant == "context":
        whole = pa.int64()
        columns += [("n_tokens", whole), ("in_context", pa.bool_()), ("chunk_start", whole), ("chunk_end", whole)]
    return pa.schema(columns)


def ranges(first: int, n_units: int) -> Iterator[tuple[int, int]]:
    """Batches of at most one row group."""
    end = first + n_units
    for start in range(first, end, UNITS_PER_ROW_GROUP):
        yield start, min(UNITS_PER_ROW_GROUP, end - start)


def write_hits(path: Path, spec: LogSpec, first: int, n_units: int, make: Maker) -> Iterator[Tables]:
    """Write one hit file row group by row group; yield the other rows, which are few."""
    columns = schema(spec)
    # The dictionary of all documents is a little over pyarrow's default limit of 1 MB, at which a column chunk
    # changes its encoding half way.
    with pq.ParquetWriter(path, columns, compression="zstd", dictionary_pagesize_limit=4 << 20) as writer:
        for start, n in ranges(first, n_units):
            tables = make(start, n)
            writer.write_table(tables.hits.to_arrow().cast(columns))
            yield Tables(tables.hits.clear(), tables.qrels, tables.evidence)


def generate(spec: LogSpec, folder: Path) -> bool:
    """Write the log into the folder, unless it is there already; return whether anything was written."""
    files = LogFiles(folder)
    if files.holds(spec):
        return False
    files.hits.mkdir(parents=True, exist_ok=True)
    files.stamp.unlink(missing_ok=True)
    files.evidence.unlink(missing_ok=True)
    for left_over in files.hit_files():
        Path(left_over).unlink()

    make = VARIANTS[spec.variant](spec, Ids(spec.ids))
    per_file = spec.n_units // spec.n_files
    written = [
        tables
        for number in range(spec.n_files)
        for tables in write_hits(files.hits / f"part-{number:04}.parquet", spec, number * per_file, per_file, make)
    ]
    write_table([tables.qrels for tables in written], files.qrels)
    if spec.variant == "context":
        write_table([tables.evidence for tables in written if tables.evidence is not None], files.evidence)
    files.stamp.write_text(spec.stamp(), encoding="utf-8")
    return True


def write_table(parts: list[pl.DataFrame], path: Path) -> None:
    """Write a small table as one file."""
    pl.concat(parts).write_parquet(path, compression="zstd", statistics=True)


def main() -> None:
    """Read the arguments and write the log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=row_count, default=1_000_000)
    parser.add_argument("--ids", choices=("string", "integer"), default="string")
    parser.add_argument("--seed", type=int, default=0)
    variant = parser.add_mutually_exclusive_group()
    for name, text in (
        ("context", "with n_tokens, in_context and spans of chunks, and a table of evidence"),
        ("requests", "with request_id: queries are asked several times"),
    ):
        variant.add_argument(f"--{name}", dest="variant", action="store_const", const=name, default="plain", help=text)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    spec = LogSpec(arguments.rows, arguments.ids, arguments.seed, arguments.variant)
    print("written" if generate(spec, arguments.out) else "reused", arguments.out)


if __name__ == "__main__":
    main()
