"""Write a synthetic retrieval log and its labels as Parquet.

python benchmarks/generate.py --rows 10_000_000 --ids string --seed 0 --out DIR

The rows depend on the parameters alone: each batch of queries draws from its own generator, seeded by the batch number.
Both kinds of ids name the same queries and documents.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from log import HITS_PER_QUERY, IdKind, LogFiles, LogSpec, row_count

QUERIES_PER_ROW_GROUP = 10_000  # about 1 M hits

# A query's hits come from its pool of documents, the first ones far more often: 52 slots at this skew give about
# 40 distinct documents in 100 hits, and the first document about 14 of them. Its labels come from the same pool
# and 18 documents beyond it, so that somewhat more than half of them are among the hits and the rest never are.
CORPUS = 100_003  # prime: any stride then walks a pool without meeting a document twice
HIT_SLOTS = 52
SKEW = 2.0
MAX_LABELS = 5
SLOTS_PER_LABEL = 14
MAX_GRADE = 3


@dataclass(frozen=True)
class Batch:
    """Hits and labels of consecutive queries as numbers: `query` counts from 0, documents from 0 to CORPUS - 1."""

    hit_query: np.ndarray
    hit_document: np.ndarray
    label_query: np.ndarray
    label_document: np.ndarray
    grade: np.ndarray


def draw(first: int, n_queries: int, seed: int) -> Batch:
    """Draw the queries `first` to `first + n_queries - 1`."""
    rng = np.random.default_rng([seed, first])
    query = np.arange(first, first + n_queries)
    start = rng.integers(0, CORPUS, n_queries)[:, None]
    stride = rng.integers(1, CORPUS, n_queries)[:, None]

    hit_slot = (HIT_SLOTS * rng.random((n_queries, HITS_PER_QUERY)) ** SKEW).astype(np.int64)
    hit_document = (start + hit_slot * stride) % CORPUS

    # Label j takes a slot that is j modulo MAX_LABELS: no query is given the same label twice.
    label_slot = rng.integers(0, SLOTS_PER_LABEL, (n_queries, MAX_LABELS)) * MAX_LABELS + np.arange(MAX_LABELS)
    label_document = (start + label_slot * stride) % CORPUS
    grade = rng.integers(1, MAX_GRADE + 1, (n_queries, MAX_LABELS))
    kept = np.arange(MAX_LABELS) < rng.integers(1, MAX_LABELS + 1, n_queries)[:, None]

    return Batch(
        hit_query=np.repeat(query, HITS_PER_QUERY),
        hit_document=hit_document.ravel(),
        label_query=np.broadcast_to(query[:, None], kept.shape)[kept],
        label_document=label_document[kept],
        grade=grade[kept],
    )


class Ids:
    """Numbers to ids: `q0000123` and `d004211`, or the numbers themselves."""

    def __init__(self, kind: IdKind) -> None:
        self.kind = kind
        self.documents = named("d", np.arange(CORPUS), digits=6)

    def query(self, numbers: np.ndarray) -> pl.Series:
        """Give the ids of ascending query numbers; a name is made once per query, not once per row."""
        if self.kind == "integer":
            return pl.Series("query_id", numbers)
        distinct, row = np.unique(numbers, return_inverse=True)
        return named("q", distinct, digits=7).gather(row).alias("query_id")

    def document(self, numbers: np.ndarray) -> pl.Series:
        """Give the ids of document numbers."""
        if self.kind == "integer":
            return pl.Series("doc_id", numbers)
        return self.documents.gather(numbers).alias("doc_id")


def named(prefix: str, numbers: np.ndarray, digits: int) -> pl.Series:
    """Ids of equal width, so that their order as text is the order of the numbers."""
    padded = pl.Series(numbers).cast(pl.String).str.zfill(digits)
    return pl.select(pl.lit(prefix) + padded).to_series()


def hits_table(batch: Batch, ids: Ids) -> pl.DataFrame:
    """List the hits of a batch, sorted by query and rank."""
    rank = np.tile(np.arange(1, HITS_PER_QUERY + 1), len(batch.hit_query) // HITS_PER_QUERY)
    return pl.DataFrame([ids.query(batch.hit_query), pl.Series("rank", rank), ids.document(batch.hit_document)])


def qrels_table(batch: Batch, ids: Ids) -> pl.DataFrame:
    """List the labels of a batch, sorted by query."""
    return pl.DataFrame(
        [ids.query(batch.label_query), ids.document(batch.label_document), pl.Series("relevance", batch.grade)]
    )


def batches(first: int, n_queries: int, seed: int) -> Iterator[Batch]:
    """Batches of at most one row group."""
    end = first + n_queries
    for start in range(first, end, QUERIES_PER_ROW_GROUP):
        yield draw(start, min(QUERIES_PER_ROW_GROUP, end - start), seed)


def write_hits(path: Path, spec: LogSpec, first: int, n_queries: int, ids: Ids) -> pl.DataFrame:
    """Write one hit file row group by row group; return its labels, which are few."""
    text_or_number = pa.string() if spec.ids == "string" else pa.int64()
    schema = pa.schema([("query_id", text_or_number), ("rank", pa.int64()), ("doc_id", text_or_number)])
    labels = []
    # The dictionary of all documents is a little over pyarrow's default limit of 1 MB, at which a column chunk
    # changes its encoding half way.
    with pq.ParquetWriter(path, schema, compression="zstd", dictionary_pagesize_limit=4 << 20) as writer:
        for batch in batches(first, n_queries, spec.seed):
            writer.write_table(hits_table(batch, ids).to_arrow().cast(schema))
            labels.append(qrels_table(batch, ids))
    return pl.concat(labels)


def generate(spec: LogSpec, folder: Path) -> bool:
    """Write the log into the folder, unless it is there already; return whether anything was written."""
    files = LogFiles(folder)
    if files.holds(spec):
        return False
    files.hits.mkdir(parents=True, exist_ok=True)
    files.stamp.unlink(missing_ok=True)
    for left_over in files.hit_files():
        Path(left_over).unlink()

    ids = Ids(spec.ids)
    per_file = spec.n_queries // spec.n_files
    labels = [
        write_hits(files.hits / f"part-{number:04}.parquet", spec, number * per_file, per_file, ids)
        for number in range(spec.n_files)
    ]
    pl.concat(labels).write_parquet(files.qrels, compression="zstd", statistics=True)
    files.stamp.write_text(spec.stamp(), encoding="utf-8")
    return True


def main() -> None:
    """Read the arguments and write the log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=row_count, default=1_000_000)
    parser.add_argument("--ids", choices=("string", "integer"), default="string")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    spec = LogSpec(arguments.rows, arguments.ids, arguments.seed)
    print("written" if generate(spec, arguments.out) else "reused", arguments.out)


if __name__ == "__main__":
    main()
