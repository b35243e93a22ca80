"""The works of `context.py` in plain Python, a query at a time, as they are defined; for small logs.

Nothing here is shared with docrecall, and nothing is clever: what it says is what the others have to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

import polars as pl

from log import LogFiles
from tasks import Task

Row = dict[str, Any]


def means(task: Task, files: LogFiles) -> list[float]:
    """The mean over units at each cut."""
    unit = ("request_id", "query_id") if task.variant == "requests" else ("query_id",)
    hits = grouped(pl.read_parquet(files.hit_files()), *unit)
    relevant = grouped(pl.read_parquet(files.qrels).filter(pl.col("relevance") >= 1), "query_id")
    evidence = grouped(pl.read_parquet(files.evidence), "query_id") if task.family == "evidence_coverage" else {}
    values: dict[int, list[float]] = defaultdict(list)
    for key, rows in hits.items():
        query = key[-1:]
        for k in task.cuts:
            inside = cut(rows, k, task.unit)
            if evidence:
                values[k].append(coverage(inside, evidence[query]))
            else:
                values[k].append(recall(inside, relevant[query]))
    return [fmean(values[k]) for k in task.cuts]


def grouped(table: pl.DataFrame, *key: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by key."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in table.iter_rows(named=True):
        groups[tuple(row[name] for name in key)].append(row)
    return groups


def cut(rows: Iterable[Row], k: int, unit: str) -> list[Row]:
    """The hits that count."""
    ordered = sorted(rows, key=lambda row: row["rank"])
    if unit == "context":
        return [row for row in ordered if row["in_context"]]
    if unit == "":
        return [row for row in ordered if row["rank"] <= k]
    inside: list[Row] = []
    for row in ordered:
        if sum(other["n_tokens"] for other in [*inside, row]) > k:
            break
        inside.append(row)
    return inside


def recall(inside: Iterable[Row], relevant: Sequence[Row]) -> float:
    """The share of the relevant documents that are among the hits."""
    documents = {row["doc_id"] for row in inside}
    return sum(label["doc_id"] in documents for label in relevant) / len(relevant)


def coverage(inside: Iterable[Row], evidence: Sequence[Row]) -> float:
    """The mean over evidence ids of the covered share of the best alternative, character by character."""
    given: dict[Any, set[int]] = {passage["doc_id"]: set() for passage in evidence}
    for row in inside:
        if row["doc_id"] in given:
            given[row["doc_id"]].update(range(row["chunk_start"], row["chunk_end"]))
    best: defaultdict[Any, float] = defaultdict(float)
    for passage in evidence:
        gold = range(passage["start"], passage["end"])
        share = len(given[passage["doc_id"]].intersection(gold)) / len(gold)
        best[passage["evidence_id"]] = max(best[passage["evidence_id"]], share)
    return fmean(best.values())
