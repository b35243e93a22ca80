"""The units of one run, column by column: what means, slices and pairs are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from docrecall.measures.definition import Floats, Ints, Mask
from docrecall.tables import unit_key

BESIDE = ("weight", "ceiling")  # what is known of units besides their values, where queries or the index tell it


class Results(NamedTuple):
    """Two frames in one order, that of the key: the columns of `per_query`, and those of `BESIDE`."""

    rows: pl.LazyFrame
    beside: pl.LazyFrame


class _Folded(NamedTuple):
    """Which rows make a unit: `order` puts them together, `begin` is where each unit starts in it."""

    order: Ints
    begin: Ints


class Units:
    """The units of one run in the order of their key. Columns are read when they are asked for, one at a time.

    After `by_query` a unit is a query, and its value the mean of its scored requests that have one.
    """

    def __init__(self, results: Results, run: str, start: int, n: int, folded: _Folded | None = None) -> None:
        """start, n: the rows of the run."""
        self.run = run
        self._results, self._start, self._n, self._folded = results, start, n, folded

    def __len__(self) -> int:
        return self._n if self._folded is None else len(self._folded.begin)

    @property
    def is_folded(self) -> bool:
        """Whether requests of a query were taken together."""
        return self._folded is not None

    def _read(self, *columns: str, beside: bool = False) -> pl.DataFrame:
        frame = self._results.beside if beside else self._results.rows
        return frame.select(columns).slice(self._start, self._n).collect()

    @cached_property
    def weighted(self) -> bool:
        """Whether queries have weights."""
        return "weight" in self._results.beside.collect_schema()

    @cached_property
    def key(self) -> list[str]:
        """What tells the units of the run apart: request_id where it is logged, and query_id."""
        if self._folded is not None:
            return ["query_id"]
        return [c for c in unit_key(self._results.rows.collect_schema()) if c != "run_id"]

    @cached_property
    def keys(self) -> pl.DataFrame:
        """The key of each unit."""
        return self.firsts(self._read(*self.key))

    @cached_property
    def scored(self) -> Mask:
        """Whether each unit is scored."""
        if self._folded is not None:
            return np.full(len(self), fill_value=True)
        return self._read("status").select(pl.col("status") == "scored").to_series().to_numpy()

    @cached_property
    def weights(self) -> Floats | None:
        """The weight of each unit; None where queries have none."""
        return self.firsts(self._read("weight", beside=True))["weight"].to_numpy() if self.weighted else None

    def values(self, measure: str) -> Floats:
        """The values of a measure, NaN for units without one."""
        return self._folded_values(self._read(measure)[measure].to_numpy())

    def ceilings(self) -> Floats | None:
        """What doc_recall could reach in each unit, NaN for units that are not scored; None without an index."""
        if "ceiling" not in self._results.beside.collect_schema():
            return None
        return self._folded_values(self._read("ceiling", beside=True)["ceiling"].to_numpy())

    def _folded_values(self, values: Floats) -> Floats:
        if self._folded is None:
            return values
        return means_of_stretches(values[self._folded.order], self._folded.begin)

    def firsts(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The first row of each unit, of a frame with a row for each of this run."""
        return rows if self._folded is None else rows[self._folded.order[self._folded.begin]]

    def by_query(self, tags: pl.DataFrame | None = None) -> Units:
        """Take the scored requests of each query together. tags: a row for each; requests that differ stay apart."""
        keys = self._read("query_id")
        if tags is not None:
            keys = pl.concat([keys, tags], how="horizontal")
        at = np.flatnonzero(self.scored)
        placed = keys[at].with_row_index("__at").sort(keys.columns, maintain_order=True)
        differs = pl.any_horizontal(pl.col(c).ne_missing(pl.col(c).shift()) for c in keys.columns)
        new = placed.select(differs | (pl.int_range(pl.len()) == 0)).to_series().to_numpy()
        order = at[placed["__at"].to_numpy()]
        return Units(self._results, self.run, self._start, self._n, _Folded(order, np.flatnonzero(new)))


def units_of(results: Results, runs: Sequence[str]) -> dict[str, Units]:
    """Part results into the units of each run; a run without rows has no units."""
    stretches = results.rows.select("run_id").collect()["run_id"].rle().struct.unnest()
    sizes = stretches["len"].cast(pl.Int64)
    there = dict(zip(stretches["value"], zip(sizes.cum_sum() - sizes, sizes, strict=True), strict=True))
    return {run: Units(results, run, *there.get(run, (0, 0))) for run in runs}


def means_of_stretches(values: Floats, begin: Ints) -> Floats:
    """The exactly rounded mean of the values in each stretch that are not NaN; NaN where there are none."""
    there = ~np.isnan(values)
    if not len(begin):
        return values[begin]
    size = np.add.reduceat(there.astype(np.int64), begin)
    present = values[there]
    ends = np.cumsum(size)
    out = np.full(len(begin), np.nan)
    one, more = size == 1, np.flatnonzero(size > 1)
    out[one] = present[ends[one] - 1]
    plain = present.tolist()
    spans = zip((ends - size)[more].tolist(), ends[more].tolist(), strict=True)
    out[more] = [math.fsum(plain[low:high]) / (high - low) for low, high in spans]
    return out


def numbered(labels: pl.DataFrame) -> Ints:
    """A number for each row, equal for equal rows: where such a row first stands."""
    where = labels.with_row_index("__at").select(pl.col("__at").first().over(labels.columns).cast(pl.Int64))
    return where.to_series().to_numpy()


def clustered(labels: pl.DataFrame, keys: pl.DataFrame) -> Ints:
    """A number for each unit, equal for units with equal labels.

    A unit without a label belongs to nobody but itself; requests of one query stay together.
    """
    (label,) = labels.get_columns()
    alone = len(keys) + numbered(keys.select("query_id"))
    clusters: Ints = np.where(label.is_null().to_numpy(), alone, numbered(labels))
    return clusters
