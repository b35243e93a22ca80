"""Small tables for tests: two queries, three hits, two labels, in which q1 finds its document second."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

MEASURE = "doc_recall@3"
SECRET = "the text of a query"  # stands in columns that no message may print


def hits(**columns: Any) -> pl.DataFrame:
    """Three hits; keywords replace or add columns, None takes one away."""
    base: dict[str, Any] = {"query_id": ["q1", "q1", "q2"], "rank": [1, 2, 1], "doc_id": ["x", "a", "b"]}
    return _with(base | {"query_text": [SECRET] * 3}, columns)


def qrels(**columns: Any) -> pl.DataFrame:
    """Two labels."""
    base: dict[str, Any] = {"query_id": ["q1", "q2"], "doc_id": ["a", "b"], "relevance": [1, 1]}
    return _with(base | {"note": [SECRET] * 2}, columns)


def queries(**columns: Any) -> pl.DataFrame:
    """Both queries, without a stated status."""
    base: dict[str, Any] = {"query_id": ["q1", "q2"], "label_status": [None, "answerable"], "title": [SECRET] * 2}
    return _with(base, columns)


def _with(base: dict[str, Any], columns: dict[str, Any]) -> pl.DataFrame:
    size = max([len(values) for values in columns.values() if values is not None], default=0)
    base = {name: (values * size)[:size] if size else values for name, values in base.items()}
    table = {name: values for name, values in (base | columns).items() if values is not None}
    return pl.DataFrame({name: pl.Series(name, values, strict=False) for name, values in table.items()})


def write(path: Path, frame: pl.DataFrame) -> Path:
    """Write a Parquet file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(path)
    return path


def codes(findings: pl.DataFrame) -> list[tuple[Any, ...]]:
    """The findings as (code, severity, table, column, n_rows, n_queries)."""
    return findings.select("code", "severity", "table", "column", "n_rows", "n_queries").rows()


def account(rows: pl.DataFrame) -> dict[str, tuple[int, ...]]:
    """The account of rows as table -> (read, used, duplicate, rejected, outside), after checking that it balances."""
    for row in rows.to_dicts():
        assert row["read"] == row["used"] + row["duplicate"] + row["rejected"] + row["outside"], row
    return {table: tuple(counts) for table, *counts in rows.rows()}


def log(n_units: int, docs: Sequence[str], *, labelled: bool = False) -> pl.DataFrame:
    """One row per (unit, document): hits in rank order, or labels."""
    units = [f"q{u:03}" for u in range(n_units)]
    frame = pl.DataFrame({"query_id": [u for u in units for _ in docs], "doc_id": list(docs) * n_units})
    return frame if labelled else frame.with_columns(rank=pl.Series(list(range(1, len(docs) + 1)) * n_units))
