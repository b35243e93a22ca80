"""The permutation test of samples that are not paired: does one of several differ from all the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from docrecall.errors import UsageError
from docrecall.exact import exact_sum
from docrecall.measures.definition import Floats, Ints
from docrecall.stats.arguments import check_resampling
from docrecall.stats.draws import bins, is_large
from docrecall.stats.sample import ROUNDING, Sample, distinct
from docrecall.stats.streams import LABELS, SPARSE, blocks, strips

_LARGE = 2_000  # units from which on many distinct ones are put into bins


def permutation_tests(
    samples: Sequence[npt.ArrayLike | Sample],
    *,
    of: Collection[int] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> list[float | None]:
    """Test for each of some samples whether its mean is that of all the others together: two-sided p values.

    samples: finite numbers, one for each unit; or `Sample.of` with counts, weights or clusters. of: the places of those
    that are tested; None: all. The others only belong to the rest.

    If a sample is no different, any other choice of so many units might have been it (Fisher 1935, Pitman 1937).
    p = (1 + hits) / (1 + resamples) over random choices (Phipson and Smyth 2010): the share of those that lie at least
    as far from what all units let expect, which is the sum of weight times (value - mean of all). Clusters are chosen
    whole; one that has values in several samples counts as one in each, which errs on the side of caution.

    Where weights or the sizes of clusters differ, a sample of heavy units strays further than any choice. Sums are then
    divided by the deviation that the weights let expect: the variance of a unit is a w + b w^2, with a and b from all
    units (a: values in a cluster are independent; b: they are equal).

    Returns None for samples that are not tested or have fewer than two units, and where the others have fewer than two.
    Raises UsageError as `Sample.of` does, for resamples below 1, seeds below 0 and places that are not there.
    """
    check_resampling(resamples, seed)
    given = [sample if isinstance(sample, Sample) else Sample.of(sample) for sample in samples]
    asked = range(len(given)) if of is None else of
    if not all(0 <= place < len(given) for place in asked):
        raise UsageError(f"of is {of!r}; places from 0 to {len(given) - 1} were expected.")
    found: list[float | None] = [None] * len(given)
    pool = _Pool.of([sample for sample in given if sample.n])
    for place in asked:
        if 2 <= given[place].n <= pool.n - 2:
            found[place] = pool.p(given[place], resamples, seed)
    return found


@dataclass(frozen=True)
class _Pool:
    """All units. pulls: weight times (value - mean) of each distinct one. spread: the variance its weight lets expect.

    alike: all units weigh the same, so that sums need no scale. near: what a sum of pulls may be off by rounding.
    ab: what `_variance` gives.
    """

    mean: float
    pulls: Floats
    weights: Floats
    spread: Floats
    counts: Ints
    alike: bool
    near: float
    ab: tuple[float, float]

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> _Pool:
        totals, weights = (
            np.concatenate([np.zeros(0), *(getattr(sample, name) for sample in samples)])
            for name in ("totals", "weights")
        )
        counts = np.concatenate([np.zeros(0, np.int64), *(sample.counts for sample in samples)])
        mean = float(exact_sum(totals, counts)) / (float(exact_sum(weights, counts)) or 1.0)
        alike = not len(weights) or bool(weights.min() == weights.max())
        pulls, weights, counts = distinct(totals - mean * weights, None if alike else weights, counts)
        near = ROUNDING * float(exact_sum(np.abs(pulls), counts))
        ab = (0.0, 0.0) if alike else _variance(pulls, weights, counts)
        spread = ab[0] * weights + ab[1] * weights**2
        if is_large(counts, _LARGE):
            starts = bins(pulls, counts)
            times: Ints = np.add.reduceat(counts, starts)
            pulls, weights, spread = (np.add.reduceat(c * counts, starts) / times for c in (pulls, weights, spread))
            counts = times
        return cls(mean, pulls, weights, spread, counts, alike, near, ab)

    @property
    def n(self) -> int:
        """How many units there are."""
        return int(self.counts.sum())

    def far(self, sums: Floats, weights: Floats, spread: Floats) -> Floats:
        """How far choices of units are from what is to be expected. sums, weights, spread: of each of them."""
        if self.alike:
            return np.abs(sums)
        share = weights / (self.weights * self.counts).sum()
        variance = (1 - 2 * share) * spread + share**2 * (self.spread * self.counts).sum()
        away: Floats = np.abs(sums) / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
        return away

    def p(self, sample: Sample, resamples: int, seed: int) -> float:
        """The share of random choices that lie as far away as a sample does."""
        pulls = sample.totals - self.mean * sample.weights
        spread = self.ab[0] * sample.weights + self.ab[1] * sample.weights**2
        seen = [float(exact_sum(column, sample.counts)) for column in (pulls, sample.weights, spread)]
        seen[0] = max(abs(seen[0]) - self.near, 0.0)
        reached = float(self.far(*(np.array([one]) for one in seen))[0])
        # What is not chosen lies as far away as what is: all units sum to 0.
        size = min(sample.n, self.n - sample.n)
        hits = 0
        for generator, n in blocks(seed, LABELS, resamples):
            hits += sum(int((self.far(*sums) >= reached).sum()) for sums in self._choices(generator, n, size))
        return (1 + hits) / (1 + resamples)

    def _choices(self, generator: np.random.Generator, n: int, size: int) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Choose so many units n times; give sums of pulls, weights and spread, some rows at a time."""
        few = self.n > SPARSE * len(self.counts)
        width = len(self.counts) if few else self.n
        columns = (self.pulls, self.weights, self.spread)
        every = columns if few else tuple(np.repeat(column, self.counts) for column in columns)
        for rows in strips(n, width):
            if few:
                drawn = generator.multivariate_hypergeometric(self.counts, size, size=rows)
                sums = [(drawn * column).sum(axis=1) for column in (every[:1] if self.alike else every)]
            else:
                order = generator.random((rows, self.n)).argpartition(size - 1, axis=1)[:, :size]
                sums = [column[order].sum(axis=1) for column in (every[:1] if self.alike else every)]
            yield sums[0], sums[-1] if self.alike else sums[1], sums[-1]


def _variance(pulls: Floats, weights: Floats, counts: Ints) -> tuple[float, float]:
    """The a and b of a w + b w^2 that fit the squares of the pulls, neither below 0."""
    w, squares = weights / weights.max(), pulls**2 * counts
    sums = [float((w**power * counts).sum()) for power in range(1, 4)]
    right = float(squares.sum()), float((squares * w).sum())
    det = sums[0] * sums[2] - sums[1] ** 2
    a, b = (right[0] * sums[2] - right[1] * sums[1]) / det, (right[1] * sums[0] - right[0] * sums[1]) / det
    if a <= 0:
        a, b = 0.0, right[0] / sums[1]
    elif b <= 0:
        a, b = right[0] / sums[0], 0.0
    scale = float(weights.max())
    return a / scale, b / scale**2
