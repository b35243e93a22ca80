"""Units that two runs share, side by side, and what changed from one to the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import polars as pl

from docrecall import stats
from docrecall.errors import DataError
from docrecall.measures.definition import Floats, Ints, Mask
from docrecall.show import printable
from docrecall.stats.sample import Sample
from docrecall.summary import How, mean_of
from docrecall.units import Units, numbered
from docrecall.verdicts import Delta, way_of

ROUNDING = 1e-12  # differences of equal shares that were reached in two ways differ in the last bits

# Shares of the smaller run's requests: below the first, ids meet by chance; below the second, it is worth a word.
_CHANCE, _USUAL = 0.1, 0.5

PairedBy = Literal["request", "query"]
Column = TypeVar("Column", Mask, Floats, Ints, Floats | None, Ints | None)


class Both(NamedTuple):
    """The pairs that have a value on both sides.

    before, after: their values. which: their places among all pairs; None: all of them. only_before, only_after: which
    units of either run have a value and no such pair.
    """

    before: Floats
    after: Floats
    weights: Floats | None
    clusters: Ints | None
    which: Ints | None
    only_before: Mask
    only_after: Mask

    def part(self, places: Ints, only_before: Mask, only_after: Mask) -> Both:
        """Some of them. only_before, only_after: which of the units belong to this part."""
        return Both(
            self.before[places],
            self.after[places],
            _at(self.weights, places),
            _at(self.clusters, places),
            places if self.which is None else self.which[places],
            self.only_before & only_before,
            self.only_after & only_after,
        )


@dataclass(frozen=True)
class Pairs:
    """The units of two runs by what names them, never by the order of rows.

    at_before, at_after: where each pair stands among the units of either run; None where they are the same units in the
    same order. paired_by: "query" also where requests of a query were taken together. note: what is odd about that.
    """

    before: Units
    after: Units
    at_before: Ints | None
    at_after: Ints | None
    paired_by: PairedBy
    note: str = ""

    @classmethod
    def of(cls, before: Units, after: Units, *, by_query: bool) -> Pairs:
        """Pair two runs. by_query: take the mean of the requests of each query first.

        That is done too where only one of the runs has requests, or hardly any of their requests meet.
        """
        note = ""
        if len(before.key) == len(after.key) == 2 and not by_query:
            at = _met(before.keys, after.keys)
            met = len(before) if at is None else len(at[0])
            share = met / (min(len(before), len(after)) or 1)
            note = _note(before, after, met, share)
            if share >= _CHANCE:
                first, second = at or (None, None)
                return cls(before, after, first, second, "request", note)
        before, after = (units.by_query() if len(units.key) == 2 else units for units in (before, after))
        first, second = _met(before.keys, after.keys) or (None, None)
        return cls(before, after, first, second, "query", note)

    @cached_property
    def keys(self) -> pl.DataFrame:
        """The key of each pair."""
        return self.before.keys if self.at_before is None else self.before.keys[self.at_before]

    @cached_property
    def weights(self) -> Floats | None:
        """The weight of each pair; DataError where the two runs weigh a query differently."""
        old, new = _at(self.before.weights, self.at_before), _at(self.after.weights, self.at_after)
        if old is None and new is None:
            return None
        if old is None or new is None:
            raise DataError("queries have weights in one of the runs alone. Score both with the same table of queries.")
        # Weights are held on a scale of their own, by a power of two.
        differ = old * max(new.max(initial=0.0), 0.0) != new * max(old.max(initial=0.0), 0.0)
        if differ.any():
            shown = printable(self.keys["query_id"][int(np.argmax(differ))])
            raise DataError(
                f"{int(differ.sum()):,} of {len(old):,} pairs have another weight in either run, such as query "
                f"{shown}. Score both with the same table of queries."
            )
        return old

    @cached_property
    def clusters(self) -> Ints | None:
        """A number for each pair, equal for requests of one query; None where pairs are queries."""
        return numbered(self.keys.select("query_id")) if self.paired_by == "request" else None

    def both(self, measure: str, clusters: Ints | None = None) -> Both:
        """The values of the pairs that have one on both sides. clusters: of the pairs; by default `clusters`."""
        values = [self.before.values(measure), self.after.values(measure)]
        alone = [~np.isnan(side) for side in values]
        places = [self.at_before, self.at_after]
        here = _at(alone[0], places[0]) & _at(alone[1], places[1])
        which = None if here.all() else np.flatnonzero(here)
        for side, at in zip(alone, places, strict=True):
            side[_at(np.arange(len(side)) if at is None else at, which)] = False
        old, new = (_at(_at(side, at), which) for side, at in zip(values, places, strict=True))
        clusters = self.clusters if clusters is None else clusters
        return Both(old, new, _at(self.weights, which), _at(clusters, which), which, alone[0], alone[1])


def _note(before: Units, after: Units, met: int, share: float) -> str:
    """Say how few requests meet, where few do."""
    if not met or share >= _USUAL:
        return ""
    told = (
        f"{met:,} of {len(before):,} requests of {printable(before.run)} and of {len(after):,} of "
        f"{printable(after.run)} are the same"
    )
    if share < _CHANCE:
        return f"{told}, which may be chance: queries are paired, each with the mean of its requests"
    return f"{told}, and only these are paired; unit='query' (--unit query) pairs the queries"


def _at(column: Column, at: Ints | None) -> Column:
    """Some entries of a column; None: all of them."""
    return column if column is None or at is None else column[at]


def _met(before: pl.DataFrame, after: pl.DataFrame) -> tuple[Ints, Ints] | None:
    """Where the keys of both sides meet; None where all of them do, in the same order, as in runs over one list."""
    if before.dtypes != after.dtypes:  # requests by number and by text name nothing in common
        none = np.zeros(0, np.int64)
        return none, none
    if before.equals(after):
        return None
    # A join of ids as text takes several times as long and as much memory: hashes find the pairs, and the ids decide.
    sides = [_hashed(side, name) for side, name in ((before, "_before"), (after, "_after"))]
    found = sides[0].join(sides[1], on="_hash", how="inner", maintain_order="left")
    old, new = (found[name].cast(pl.Int64) for name in ("_before", "_after"))
    same = [(before[c].gather(old) == after[c].gather(new)).alias(c) for c in before.columns]
    kept = pl.DataFrame(same).select(pl.all_horizontal(pl.all())).to_series()
    if not kept.all():
        old, new = old.filter(kept), new.filter(kept)
    return old.to_numpy(), new.to_numpy()


def _hashed(keys: pl.DataFrame, name: str) -> pl.DataFrame:
    first, *rest = (pl.col(c).hash(seed) for seed, c in enumerate(keys.columns))
    for more in rest:
        first = (first ^ more).hash()
    return keys.select(first.alias("_hash")).with_row_index(name)


class Difference(NamedTuple):
    """What changed over some pairs, weighed where queries have weights. None where there is too little to say it.

    before, after: the means. delta: the mean difference. interval: of it. wins, losses: pairs that rise and fall; the
    rest are ties. n_differ: those that are no tie, or clusters of them. sample: the differences, by cluster.
    """

    n: int
    before: float | None
    after: float | None
    delta: float | None
    interval: stats.Interval | None
    wins: int
    losses: int
    n_differ: int
    pairs: Sample | None
    sample: Sample | None


def difference(both: Both, how: How | None) -> Difference:
    """The mean paired difference, after less before. how: without it there is no interval."""
    values = both.after - both.before
    values[np.abs(values) <= ROUNDING] = 0.0  # or what is no difference would be a very sure one
    rises, falls = values > 0, values < 0
    wins, losses = int(rises.sum()), int(falls.sum())
    n_differ = wins + losses
    if both.clusters is not None:
        n_differ = len(np.unique(both.clusters[rises | falls]))
    weighs = len(values) > 0 and (both.weights is None or bool((both.weights > 0).any()))
    if not weighs:
        return Difference(len(values), None, None, None, None, wins, losses, n_differ, None, None)
    pairs = Sample.of(values, weights=both.weights)
    sample = pairs
    if both.clusters is not None:
        sample = Sample.of(values, weights=both.weights, clusters=both.clusters)
    before, _ = mean_of(both.before, both.weights)
    after, _ = mean_of(both.after, both.weights)
    interval = None if how is None else stats.bootstrap_mean(sample, **how._asdict())
    return Difference(len(values), before, after, pairs.mean, interval, wins, losses, n_differ, pairs, sample)


def as_delta(found: Difference, counted: str, level: float) -> tuple[Delta, str | None]:
    """A difference as verdicts take it. counted: what the measure counts."""
    low, high, method = found.interval or (None, None, None)
    way = way_of(low, high, found.n_differ, level)
    return Delta(counted, found.delta, low, high, found.n, found.n_differ, way), method
