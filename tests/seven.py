"""Small tables of all seven kinds, which fit together: q1 finds its passage second and q2 first.

Each builder takes columns that replace or add to its own; None takes one away. All have a column that no message may
print.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from tests.small import SECRET, _with

HITS = {
    "query_id": ["q1", "q1", "q2"],
    "rank": [1, 2, 1],
    "doc_id": ["x", "a", "b"],
    "chunk_id": ["x1", "a1", "b1"],
    "chunk_start": [0, 0, 0],
    "chunk_end": [10, 10, 10],
    "n_tokens": [5, 5, 5],
    "in_context": [True, True, True],
}
BASE: Mapping[str, Mapping[str, list[Any]]] = {
    "hits": HITS,
    "qrels": {"query_id": ["q1", "q2"], "doc_id": ["a", "b"], "relevance": [1, 1]},
    "evidence": {
        "query_id": ["q1", "q2"],
        "evidence_id": ["e1", "e2"],
        "doc_id": ["a", "b"],
        "start": [0, 0],
        "end": [10, 10],
        "chunk_id": ["a1", "b1"],
    },
    "queries": {"query_id": ["q1", "q2"], "label_status": [None, "answerable"], "weight": [1.0, 1.0]},
    "requests": {"query_id": ["q1", "q2"], "answered": [True, True]},
    "documents": {"doc_id": ["a", "b", "x"], "doc_version": ["v1"] * 3},
    "chunks": {name: HITS[name] for name in ("chunk_id", "doc_id", "chunk_start", "chunk_end", "n_tokens")},
}
NAMES = tuple(BASE)
MEASURES = (
    "doc_recall@3",
    "doc_recall@10tokens",
    "doc_recall@context",
    "chunk_recall@3",
    "evidence_recall@3",
    "evidence_coverage@3",
)


def table(name: str, **columns: Any) -> pl.DataFrame:
    """One of the seven tables; keywords replace or add columns, None takes one away."""
    base = dict(BASE[name])
    return _with(base | {"note": [SECRET] * len(next(iter(base.values())))}, columns)


def tables(*names: str, **changes: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """Some of the tables (all, when none is named), with changes by table."""
    return {name: table(name, **changes.get(name, {})) for name in names or NAMES}
