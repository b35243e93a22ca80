"""The permutation test of samples that are not paired: does one of several differ from all the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from docrecall.exact import exact_sum
from docrecall.measures.definition import Floats
from docrecall.stats.arguments import check_resampling
from docrecall.stats.draws import thinned
from docrecall.stats.sample import ROUNDING, Sample
from docrecall.stats.streams import LABELS, blocks

_CELLS = 1 << 20  # numbers that are drawn at once: 8 MB
_SPARSE = 8  # units per distinct one, below which shuffling is cheaper than a hypergeometric draw
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
    p = (1 + hits) / (1 + resamples) over random choices (Phipson and Smyth 2010): the share of those whose sum lies at
    least as far from what all units let expect. What is summed is weight times (value - mean of all). Clusters are
    chosen whole; one that has values in several samples counts as one in each, which errs on the side of caution.

    Returns None for samples that are not tested or have fewer than two units, and where the others have fewer than two.
    Raises UsageError as `Sample.of` does, and for resamples below 1 and seeds below 0.
    """
    check_resampling(resamples, seed)
    given = [sample if isinstance(sample, Sample) else Sample.of(sample) for sample in samples]
    there = [sample for sample in given if sample.n]
    if len(there) < 2:
        return [None] * len(given)
    pooled, mean = _pooled(there), _mean(there)
    n, near = pooled.n, ROUNDING * float(exact_sum(np.abs(pooled.totals), pooled.counts))
    found: list[float | None] = [None] * len(given)
    for place in range(len(given)) if of is None else of:
        sample = given[place]
        if 2 <= sample.n <= n - 2:
            away = abs(float(exact_sum(_away(sample, mean), sample.counts)))
            found[place] = _p(pooled, sample.n, away - near, resamples, seed)
    return found


def _mean(samples: Sequence[Sample]) -> float:
    totals = sum(exact_sum(sample.totals, sample.counts) for sample in samples)
    return float(totals / sum(exact_sum(sample.weights, sample.counts) for sample in samples))


def _away(sample: Sample, mean: float) -> Floats:
    return sample.totals - mean * sample.weights


def _pooled(samples: Sequence[Sample]) -> Sample:
    """All units, each as how far it pulls the mean of all."""
    mean = _mean(samples)
    pulls = np.concatenate([_away(sample, mean) for sample in samples])
    return thinned(Sample.of(pulls, counts=np.concatenate([sample.counts for sample in samples])), _LARGE)


def _p(pooled: Sample, n: int, reached: float, resamples: int, seed: int) -> float:
    size = min(n, pooled.n - n)  # all units sum to 0, so those that are not chosen lie as far away
    few = pooled.n > _SPARSE * len(pooled.counts)
    members = np.empty(0) if few else np.repeat(pooled.totals, pooled.counts)
    width = len(pooled.counts) if few else pooled.n
    hits = 0
    for generator, count in blocks(seed, LABELS, resamples):
        for first in range(0, count, max(1, _CELLS // width)):
            rows = min(max(1, _CELLS // width), count - first)
            if few:
                chosen = generator.multivariate_hypergeometric(pooled.counts, size, size=rows)
                sums = (chosen * pooled.totals).sum(axis=1)
            else:
                order = generator.random((rows, pooled.n)).argpartition(size - 1, axis=1)[:, :size]
                sums = members[order].sum(axis=1)
            hits += int((np.abs(sums) >= reached).sum())
    return (1 + hits) / (1 + resamples)
