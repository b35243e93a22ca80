"""Write one log three times: with its documents, with chunk ids alone, and under other names of its documents.

python benchmarks/write_lookups.py LOG_FOLDER OUT
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import polars as pl

from log import LogFiles
from lookups import CHUNKS, CHUNKS_PER_DOCUMENT, INLINE, KINDS, MIRRORS, tables

DOC, CHUNK = pl.col("doc_id"), pl.col("chunk_id")


def main() -> None:
    """Read the arguments and write the logs file by file."""
    source, out = LogFiles(Path(sys.argv[1])), Path(sys.argv[2])
    for number, path in enumerate(source.hit_files()):
        hits = pl.read_parquet(path, glob=False).with_columns(
            pl.concat_str(DOC, pl.lit("#"), (pl.col("rank") % CHUNKS_PER_DOCUMENT).cast(pl.String)).alias("chunk_id")
        )
        # Half of the hits name a mirror; no labels do.
        mirrored = pl.when(pl.col("rank") % 2 == 0).then(pl.lit("m") + DOC.str.slice(1)).otherwise(DOC)
        for kind, rows in {
            INLINE: hits,
            CHUNKS: hits.drop("doc_id"),
            MIRRORS: hits.with_columns(mirrored.alias("doc_id")),
        }.items():
            folder = LogFiles(out / kind).hits
            folder.mkdir(parents=True, exist_ok=True)
            rows.write_parquet(folder / f"part-{number:04}.parquet", statistics=True, row_group_size=1_000_000)
    for kind in KINDS:
        shutil.copy(source.qrels, LogFiles(out / kind).qrels)
    known = pl.scan_parquet(LogFiles(out / INLINE).hit_files(), glob=False)
    known.select("chunk_id", "doc_id").unique().sort("chunk_id").collect().write_parquet(tables(out / CHUNKS)["chunks"])
    labelled = pl.read_parquet(source.qrels, glob=False).select("doc_id")
    documents = pl.concat([known.select("doc_id").collect(), labelled]).unique().sort("doc_id")
    mirrors = documents.select((pl.lit("m") + DOC.str.slice(1)).alias("doc_id"), DOC.alias("alias_of"))
    everything = pl.concat([documents.with_columns(pl.lit(None, pl.String).alias("alias_of")), mirrors])
    everything.write_parquet(tables(out / MIRRORS)["documents"])


if __name__ == "__main__":
    main()
