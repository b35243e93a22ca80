"""Compare chunk sizes on the data in this repository: what the naive number says, and what was really found.

python examples/compare_chunk_sizes.py
"""

from pathlib import Path

import polars as pl

import docrecall as dr

topics = Path(__file__).parents[1] / "data" / "topics"

scores = dr.score(
    topics / "hits",  # a directory; the files carry their run_id
    topics / "qrels.parquet",
    measures=["naive_recall@10", "doc_recall@10", "doc_recall@10docs", "repeat_share@10"],
    queries=topics / "queries.parquet",
)

print(scores.summary().pivot("measure", index="run_id", values="mean"))
print(scores.accounting)

# Which relevant documents does every chunk size miss among the first ten documents?
missed = (
    scores.matches.filter(pl.col("doc_position").is_null() | (pl.col("doc_position") > 10))
    .group_by("query_id", "doc_id")
    .agg(pl.len().alias("runs"))
    .filter(pl.col("runs") == scores.accounting.height)
    .sort("query_id", "doc_id")
    .collect()
)
print(f"{missed.height} relevant documents are missed at every chunk size, for example:")
print(missed.head(5))
