"""Logs for charts: a small one that can be counted by hand, and those that are hard to draw."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

import docrecall as dr

MANUAL = ["manual", "manual", "manual", "faq", "terms"]


def log(*docs: str, n: int = 2, tokens: int = 10) -> pl.DataFrame:
    """The same documents in rank order for each of n queries."""
    rows = [(f"q{i}", rank, doc, tokens) for i in range(n) for rank, doc in enumerate(docs, 1)]
    schema = {"query_id": pl.String, "rank": pl.Int64, "doc_id": pl.String, "n_tokens": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def labels(n: int = 2) -> pl.DataFrame:
    """The manual and the FAQ are relevant to each query."""
    return pl.DataFrame({"query_id": [f"q{i}" for i in range(n) for _ in "ab"], "doc_id": ["manual", "faq"] * n})


def scored(runs: Mapping[str, pl.DataFrame], n: int = 2) -> dr.Scores:
    """Score some runs by their first chunk; what charts need more than that is scored when they need it."""
    language = pl.DataFrame({"query_id": [f"q{i}" for i in range(n)], "language": ["en"] * n})
    return dr.score(dict(runs), labels(n), "doc_recall@1", queries=language)


def two(n: int = 2) -> dr.Scores:
    """A run of 10 tokens a chunk that repeats itself, and one of 20 that does not."""
    return scored({"w20": log("manual", "faq", n=n, tokens=20), "w10": log(*MANUAL, n=n)}, n)
