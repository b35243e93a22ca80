"""The hits of each unit as plain lists, for definitions that look at one query at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl

from docrecall.kernel.batch import Batch
from docrecall.kernel.labels import Labels
from docrecall.kernel.match import match
from docrecall.kernel.per_query import with_status
from docrecall.options import Options

_NOTHING_RELEVANT = ("no_relevant", "unanswerable")


class UnitLists(NamedTuple):
    """One unit: its run, its documents in rank order (repeats kept), their scores, and the relevant documents."""

    run: str
    docs: list[Any]
    scores: list[float] | None
    relevant: frozenset[Any]


def lists_of(batch: Batch, labels: Labels, options: Options) -> Iterator[UnitLists]:
    """Yield the units of a batch that are scored, and those of which it is known that nothing is relevant.

    The latter are judged or stated to be unanswerable; their set is empty. Documents are told apart by their ids alone.
    scores: None where the batch has none.
    """
    of_rows = {"rank", "doc_id", *(batch.columns & {"score"})}
    matched = match(batch, labels, of_hits=set(), of_rows=of_rows, passages=False)
    units = with_status(labels.annotate(batch.units), matched, options)
    relevant: defaultdict[int, set[Any]] = defaultdict(set)
    named = matched.labels.filter(pl.col("relevance") >= options.min_relevance)
    for unit, doc in named.select("unit", "doc_id").iter_rows():
        relevant[unit].add(doc)
    docs = matched.of_every_row("doc_id").to_list()
    scores = matched.of_every_row("score").to_list() if "score" in batch.columns else None
    starts = matched.starts.tolist()
    columns = units.select("run_id", "status", "listed").iter_rows()
    for number, (run, status, listed) in enumerate(columns):
        gold = frozenset(relevant.get(number, ()))
        if listed and (status == "scored" or (status in _NOTHING_RELEVANT and not gold)):
            low, high = starts[number], starts[number + 1]
            yield UnitLists(run, docs[low:high], None if scores is None else scores[low:high], gold)
