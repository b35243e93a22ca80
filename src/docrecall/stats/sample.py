"""A sample as the distinct units in it and how often each occurs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from docrecall.errors import UsageError
from docrecall.exact import exact_sum
from docrecall.measures.definition import Floats, Ints
from docrecall.stats import arguments

T = TypeVar("T", bound=np.generic)

# Differences such as 0.7 - 0.6 and 0.3 - 0.2 stand for the same number and differ in the last bits. What lies closer
# together than this share of the largest value is equal.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Sample:
    """Distinct units in ascending order; build it with `Sample.of`.

    totals: weight times value of each distinct unit; of a cluster the sum over what is in it.
    weights: its weight; all 1 without weights and clusters.
    counts: how many units are like this, at least 1.
    low, high: the least and the greatest value of any weight; 0 in an empty sample.
    """

    totals: Floats
    weights: Floats
    counts: Ints
    low: float
    high: float

    @classmethod
    def of(
        cls,
        values: npt.ArrayLike,
        *,
        counts: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        clusters: npt.ArrayLike | None = None,
    ) -> Self:
        """Count the distinct units among the values.

        values: finite numbers, in any order; repeats are expected, and an empty array is fine.
        counts: how often each value occurs (whole numbers; 0 leaves it out), for a histogram that exists already.
        weights: the weight of each value, at least 0. What weighs 0 is left out.
        clusters: a label for each value. Values of one cluster stay together: the cluster is the unit.

        Raises UsageError for NaN, null, infinite or huge values, negative weights, weights that are all 0, lengths
        that differ, and for counts together with clusters.
        """
        xs = arguments.floats("values", values)
        cs = None if counts is None else arguments.counts("counts", counts, len(xs))
        ws = None if weights is None else arguments.weights("weights", weights, len(xs))
        labels = None if clusters is None else arguments.labels("clusters", clusters, len(xs))
        if cs is not None and labels is not None:
            raise UsageError("counts and clusters exclude each other: equal values of two clusters are not alike.")
        if cs is not None or ws is not None:
            kept = np.ones(len(xs), np.bool_)
            kept &= True if cs is None else cs > 0
            kept &= True if ws is None else ws > 0
            xs, cs, ws, labels = xs[kept], _rows(cs, kept), _rows(ws, kept), _rows(labels, kept)
        low, high = (float(xs.min()), float(xs.max())) if len(xs) else (0.0, 0.0)
        _check_sums(max(abs(low), abs(high)), len(xs) if cs is None else int(cs.sum()), ws)
        if labels is not None:
            return cls(*distinct(*_by_cluster(xs, ws, labels), None), low, high)
        if ws is not None:
            return cls(*distinct(xs * ws, ws, cs), low, high)
        return cls(*distinct(xs, None, cs), low, high)

    @property
    def n(self) -> int:
        """How many units there are; with clusters, how many clusters."""
        return int(self.counts.sum())

    @cached_property
    def is_plain(self) -> bool:
        """Whether all weights are 1."""
        return bool((self.weights == 1).all())

    @cached_property
    def weight(self) -> float:
        """The sum of all weights."""
        return float(self.n) if self.is_plain else float(exact_sum(self.weights, self.counts))

    @cached_property
    def mean(self) -> float:
        """The exactly rounded sum of weight times value, over that of weights; the sample must not be empty."""
        return float(exact_sum(self.totals, self.counts)) / self.weight

    @property
    def influence(self) -> Floats:
        """How far each distinct unit pulls the mean: its total less what its weight lets expect, over all weight."""
        return (self.totals - self.mean * self.weights) / self.weight

    @property
    def scale(self) -> float:
        """The largest absolute value, the measure of rounding errors."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_constant(self) -> bool:
        """Whether all units have the same mean, up to rounding."""
        means = self.totals / self.weights
        return bool(np.ptp(means) <= ROUNDING * self.scale) if len(means) else True

    @property
    def n_effective(self) -> float:
        """Units of equal weight that would know as much (Kish 1965): (sum w)^2 / sum w^2."""
        share = self.weights / self.weights.max()
        return float((share * self.counts).sum()) ** 2 / float((share * share * self.counts).sum())


def _rows(column: npt.NDArray[T] | None, rows: npt.NDArray[Any]) -> npt.NDArray[T] | None:
    return None if column is None else column[rows]


def _check_sums(largest: float, n: int, weights: Floats | None) -> None:
    heaviest = 1.0 if weights is None else float(np.max(weights, initial=0.0))
    if not isfinite((largest + 1) * heaviest * n):
        raise UsageError("values or weights are too large to be added up in double precision.")


def _by_cluster(xs: Floats, ws: Floats | None, labels: npt.NDArray[np.generic]) -> tuple[Floats, Floats]:
    """The sums of weight times value and of the weights, for each label."""
    codes = _codes(labels)
    # bincount adds in the order it is given: sorted, so that the order of the rows does not show in the last bits.
    order = np.argsort(xs) if ws is None else np.lexsort((ws, xs))
    xs, codes = xs[order], codes[order]
    if ws is None:
        totals, whole = np.bincount(codes, weights=xs), np.bincount(codes)
    else:
        ws = ws[order]
        totals, whole = np.bincount(codes, weights=xs * ws), np.bincount(codes, weights=ws)
    parts = np.abs(xs) if ws is None else np.abs(xs * ws)
    totals[np.abs(totals) <= ROUNDING * np.bincount(codes, weights=parts)] = 0  # they cancel each other
    there = np.bincount(codes) > 0
    return totals[there].astype(np.float64), whole[there].astype(np.float64)


def _codes(labels: npt.NDArray[np.generic]) -> Ints:
    """A whole number from 0 on for each label; not all need occur."""
    if labels.dtype.kind in "iu" and len(labels):
        low, high = int(labels.min()), int(labels.max())
        if high - low <= 4 * len(labels):
            shifted: Ints = labels.astype(np.int64) - low
            return shifted
    codes: Ints = np.unique(labels, return_inverse=True)[1]
    return codes


def distinct(totals: Floats, ws: Floats | None, counts: Ints | None) -> tuple[Floats, Floats, Ints]:
    """Find the distinct pairs in rising order, and how often each occurs. totals: sorted in place where they can be."""
    if ws is None and counts is None:
        totals.sort()
    else:
        order = np.argsort(totals, kind="stable") if ws is None else np.lexsort((ws, totals))
        totals, ws, counts = totals[order], _rows(ws, order), _rows(counts, order)
    changes = totals[1:] != totals[:-1]
    if ws is not None:
        changes |= ws[1:] != ws[:-1]
    starts = np.concatenate([np.arange(min(len(totals), 1)), np.flatnonzero(changes) + 1])
    if counts is not None and len(counts):
        sizes = np.add.reduceat(counts, starts)
    else:
        sizes = np.diff(starts, append=len(totals))
    return totals[starts], np.ones(len(starts)) if ws is None else ws[starts], sizes.astype(np.int64)
