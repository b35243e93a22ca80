"""The canary: every night some units are scored a second time, one by one, by the definition.

It is taken while batches pass, from rows that have kept the contract, so what it watches is all that comes after: the
order of hits, cuts, matching and every formula. One bit of difference stops the night.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from docrecall import reference
from docrecall.errors import CanaryError
from docrecall.kernel.batch import Batch
from docrecall.kernel.labels import Labels
from docrecall.kernel.per_query import BatchScores
from docrecall.measures.grammar import Cut, Measure
from docrecall.options import Options
from docrecall.show import printable
from docrecall.sources.table import collect
from docrecall.summary import mean_of
from docrecall.tables import unit_key
from docrecall.units import BESIDE

_SHOWN = 5


class _Taken(NamedTuple):
    """A unit of the sample. order: what it was drawn by. hits: its rows, in order."""

    order: int
    unit: dict[str, Any]
    hits: list[dict[str, Any]]


class Canary:
    """A sample of so many scored units, the same for the same night and log whatever the batches."""

    def __init__(self, size: int, seed: str, measures: Sequence[Measure]) -> None:
        self.size, self._measures = size, measures
        self._seed = int.from_bytes(seed.encode()[-7:], "big")
        self._taken: list[_Taken] = []

    def look(self, scores: BatchScores, batch: Batch | None) -> None:
        """Draw from a batch. batch: None for units without hits."""
        if not self.size:
            return
        key = unit_key(scores.units.columns)
        drawn = (
            scores.units.lazy()
            .filter(pl.col("status") == "scored")
            .select(*key, *map(str, self._measures), *BESIDE, pl.struct(key).hash(self._seed).alias("_order"))
            .bottom_k(self.size, by="_order")
            .collect()
        )
        if len(self._taken) == self.size:
            drawn = drawn.filter(pl.col("_order") < self._taken[-1].order)
        if drawn.is_empty():
            return
        hits = _hits_of(drawn, batch, key)
        new = [_Taken(unit.pop("_order"), unit, hits[n]) for n, unit in enumerate(drawn.to_dicts())]
        self._taken = heapq.nsmallest(self.size, [*self._taken, *new], key=lambda taken: taken.order)

    def check(self, labels: Labels, options: Options) -> int:
        """Score the sample by `reference.py`; CanaryError names the measures and units that differ. Gives its size.

        Values, ceilings and weights of each unit are compared, and the means of the sample.
        """
        differ: dict[str, list[str]] = {}
        for taken, wanted in zip(self._taken, self._wanted(labels, options), strict=True):
            for name, value in wanted.items():
                if value != taken.unit[name]:
                    differ.setdefault(name, []).append(printable(taken.unit["query_id"]))
        for name in map(str, self._measures):
            if not self._same_mean(name, weighted=labels.weighted):
                differ.setdefault(f"the mean of {name}", []).append("all of them")
        if differ:
            told = "; ".join(f"{m} in {len(q)}, such as {q[0]}" for m, q in list(differ.items())[:_SHOWN])
            raise CanaryError(
                f"{len(self._taken)} units were scored again by the definition, and other values came out: {told}. "
                "Nothing was published. This is a fault of docrecall or of this machine; please report it."
            )
        return len(self._taken)

    def _wanted(self, labels: Labels, options: Options) -> Iterator[dict[str, float | None]]:
        """What the definition says of each unit, by column."""
        if not self._taken:
            return
        queries = pl.DataFrame({"query_id": [taken.unit["query_id"] for taken in self._taken]})
        weight_of = dict(_weights(labels, queries))
        for taken, (judged, index) in zip(self._taken, _judged(labels, queries, options), strict=True):
            hits = [_hit(row) for row in taken.hits]
            yield {
                str(m): reference.value(m.name, _cut(m.cut, hits), judged, **m.arguments) for m in self._measures
            } | {
                "ceiling": reference.ceiling(judged, index) if labels.has_index else None,
                "weight": weight_of.get(taken.unit["query_id"], labels.one),
            }

    def _same_mean(self, measure: str, *, weighted: bool) -> bool:
        """Whether the values of the sample come to one mean both ways, and to one effective size."""
        units = [taken.unit for taken in self._taken if taken.unit[measure] is not None]
        values, weights = ([unit[c] for unit in units] for c in (measure, "weight"))
        found = mean_of(np.array(values, np.float64), np.array(weights, np.float64) if weighted else None)
        size = reference.effective_size(weights) if weighted else float(len(units)) or None
        return found == (reference.mean(values, weights if weighted else None), size)


def _weights(labels: Labels, queries: pl.DataFrame) -> Iterator[tuple[Any, float]]:
    """The weights of some queries, of those that have one."""
    if labels.queries is None or not labels.weighted:
        return
    rows = labels.queries.filter(pl.col("query_id").is_in(queries["query_id"].implode()))
    yield from rows.select("query_id", "weight").drop_nulls().iter_rows()


def _hits_of(drawn: pl.DataFrame, batch: Batch | None, key: list[str]) -> list[list[dict[str, Any]]]:
    """The rows of each drawn unit."""
    if batch is None:
        return [[] for _ in range(drawn.height)]
    ends = batch.units.select(*key, pl.col("n_hits").cum_sum().alias("_end"), "n_hits")
    places = drawn.select(key).join(ends, on=key, how="left", maintain_order="left", validate="1:1")
    found: list[list[dict[str, Any]]] = [[] for _ in range(drawn.height)]
    n, end = places["n_hits"].fill_null(0).to_numpy(), places["_end"].fill_null(0).to_numpy()
    wanted = np.concatenate([np.arange(e - k, e) for e, k in zip(end, n, strict=True)])
    unit_of = dict(zip(wanted.tolist(), np.repeat(np.arange(len(n)), n).tolist(), strict=True))
    rows = batch.rows.with_row_index("_row").filter(pl.col("_row").is_in(pl.Series(wanted, dtype=pl.UInt32).implode()))
    for row in collect(rows, batch.parts).sort("_row").iter_rows(named=True):
        found[unit_of[row.pop("_row")]].append(row)
    return found


def _hit(row: Mapping[str, Any]) -> reference.Hit:
    start, end = row.get("chunk_start"), row.get("chunk_end")
    return reference.Hit(
        rank=row["rank"],
        doc=row["doc_id"],
        chunk=row.get("chunk_id"),
        version=row.get("doc_version"),
        span=None if start is None or end is None else (start, end),
        tokens=row.get("n_tokens"),
        in_context=row.get("in_context"),
    )


def _judged(
    labels: Labels, queries: pl.DataFrame, options: Options
) -> Iterator[tuple[reference.Judged, set[reference.Doc]]]:
    """What is known of the answers to each query, and which of the labelled documents the index has."""
    index: list[set[reference.Doc]] = [set() for _ in range(queries.height)]
    found: list[dict[Any, reference.Label]] = [{} for _ in range(queries.height)]
    for row in labels.of(queries).iter_rows(named=True):
        found[row["unit"]][row["doc_id"]] = reference.Label(row["relevance"], row.get("doc_version"), row["stale"])
        if row["served"]:
            index[row["unit"]].add(row["doc_id"])
    passages: list[list[reference.Passage]] = [[] for _ in range(queries.height)]
    told = labels.passages_of(queries)
    for row in [] if told is None else told.iter_rows(named=True):
        span = None if row["start"] is None else (row["start"], row["end"])
        passages[row["unit"]].append(
            reference.Passage(
                row["evidence_id"], row["doc_id"], span, row["chunk_id"], row["doc_version"], row["stale"]
            )
        )
    for judged, gold, there in zip(found, passages, index, strict=True):
        yield reference.Judged(judged, gold, options.min_relevance), there


def _cut(cut: Cut, hits: Sequence[reference.Hit]) -> reference.Cut:
    match cut.unit:
        case "chunks":
            return reference.cut_chunks(hits, cut.k or 0)
        case "docs":
            return reference.cut_docs(hits, cut.k or 0)
        case "tokens":
            return reference.cut_tokens(hits, cut.k or 0)
        case "context":
            return reference.cut_context(hits)
        case "all":
            return reference.cut_all(hits)
