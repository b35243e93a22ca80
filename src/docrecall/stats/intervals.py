"""Bootstrap intervals of a mean and of the difference of two means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from docrecall.errors import UsageError
from docrecall.measures.definition import Floats
from docrecall.stats.arguments import check_level, check_resampling, check_word
from docrecall.stats.draws import resampled_means
from docrecall.stats.sample import ROUNDING, Sample
from docrecall.stats.streams import BASELINE, CANDIDATE, MEANS
from docrecall.stats.student import student_quantile

Method = Literal["bca", "expanded", "percentile"]
METHODS = ("bca", "expanded", "percentile")
_NORMAL = NormalDist()


class Interval(NamedTuple):
    """Both ends, and how they were found: a method, "binomial", "mover" or "constant"."""

    low: float
    high: float
    method: str


@dataclass(frozen=True)
class _How:
    method: Method
    level: float
    resamples: int
    seed: int

    def __post_init__(self) -> None:
        check_word("method", self.method, METHODS)
        check_level("level", self.level)
        check_resampling(self.resamples, self.seed)


def bootstrap_mean(
    values: npt.ArrayLike | Sample,
    *,
    counts: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    clusters: npt.ArrayLike | None = None,
    method: Method | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    unit_range: bool = False,
) -> Interval | None:
    """Give an interval for the mean of which the values are a sample.

    values: one finite number per unit, in any order, or a `Sample`, which brings counts, weights and clusters along.
    counts: how often each value occurs, where the values are those of a histogram.
    weights: the weight of each value; the mean is sum(w x) / sum(w), and what weighs 0 is left out.
    clusters: a label for each value. Whole clusters are resampled, as values in them are not independent.
    method: by default "bca" under `unit_range`, else "expanded"; docs/intervals.md has the measured coverage.
      - "bca": percentiles moved by the bias and the skew of the resampled means (Efron 1987). Good for measures, whose
        means near 1 are skewed; too narrow for differences of which most are 0.
      - "expanded": percentiles a little further out, as far as Student's t is from the normal and the unbiased
        deviation from the plain one (Hesterberg 2015). Good for paired differences.
      - "percentile": the plain percentiles of the resampled means (Efron 1979).
    unit_range: whether these are values of a measure that lies between 0 and 1.

    Values that are all equal resample to themselves. As values of a measure in [0, 1] they are no proof that others
    cannot occur, so with `unit_range` the method is "binomial": the share of units with another value is at most
    1 - s with s = (a / 2)^(1 / n), a = 1 - level (Clopper and Pearson 1934), and those may lie anywhere in the range.
    That gives [s v, 1 - s (1 - v)]; fifty ones give [0.93, 1]. n is the effective number of units (clusters) where
    weights differ. Without `unit_range` (differences) the interval has width 0 and its method is "constant".

    Returns None for fewer than two units, or two clusters. Raises UsageError for NaN, null or infinite values, bad
    counts or weights, values outside [0, 1] under `unit_range`, a level outside (0, 1) and resamples below 1.
    """
    how = _How(method or ("bca" if unit_range else "expanded"), level, resamples, seed)
    if isinstance(values, Sample):
        if not (counts is None and weights is None and clusters is None):
            raise UsageError("a Sample brings its counts, weights and clusters; give them to Sample.of.")
        sample = values
    else:
        sample = Sample.of(values, counts=counts, weights=weights, clusters=clusters)
    _check_range(sample, unit_range=unit_range)
    return _of_mean(sample, how, unit_range=unit_range)


def bootstrap_difference(
    baseline: npt.ArrayLike | Sample,
    candidate: npt.ArrayLike | Sample,
    *,
    method: Method = "bca",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    unit_range: bool = False,
) -> Interval | None:
    """Give an interval for mean(candidate) - mean(baseline) of two samples that are not paired.

    baseline, candidate: one finite number per unit, in any order; or `Sample.of` with counts, weights or clusters.
    method: as for `bootstrap_mean`; the samples are resampled independently of each other.
    unit_range: whether these are values of a measure that lies between 0 and 1.

    When all values of a side are equal and `unit_range` is set, the intervals of both means are combined instead
    ("mover": Zou and Donner 2008), of which that side's is the binomial one. Without `unit_range`, two constant sides
    give an interval of width 0 ("constant").

    Returns None when either side has fewer than two units. Raises UsageError as `bootstrap_mean` does.
    """
    how = _How(method, level, resamples, seed)
    sides = [side if isinstance(side, Sample) else Sample.of(side) for side in (baseline, candidate)]
    for side in sides:
        _check_range(side, unit_range=unit_range)
    old, new = sides
    if min(old.n, new.n) < 2:
        return None
    delta = new.mean - old.mean
    if unit_range and (old.is_constant or new.is_constant):
        first = _of_mean(old, how, unit_range=True)
        second = _of_mean(new, how, unit_range=True)
        assert first is not None
        assert second is not None
        below = sqrt((new.mean - second.low) ** 2 + (first.high - old.mean) ** 2)
        above = sqrt((second.high - new.mean) ** 2 + (old.mean - first.low) ** 2)
        return Interval(max(-1.0, delta - below), min(1.0, delta + above), "mover")
    if old.is_constant and new.is_constant:
        return Interval(delta, delta, "constant")
    drawn = resampled_means(new, resamples, seed, CANDIDATE) - resampled_means(old, resamples, seed, BASELINE)
    pulls = [(-old.influence, old), (new.influence, new)]
    return _from_draws(drawn, delta, max(old.scale, new.scale), pulls, how)


def _of_mean(sample: Sample, how: _How, *, unit_range: bool) -> Interval | None:
    if sample.n < 2:
        return None
    mean = sample.mean
    if sample.is_constant:
        if not unit_range:
            return Interval(mean, mean, "constant")
        same = ((1 - how.level) / 2) ** (1 / sample.n_effective)
        return Interval(same * mean, 1 - same * (1 - mean), "binomial")
    drawn = resampled_means(sample, how.resamples, how.seed, MEANS)
    return _from_draws(drawn, mean, sample.scale, [(sample.influence, sample)], how)


def _from_draws(
    drawn: Floats, seen: float, scale: float, pulls: Sequence[tuple[Floats, Sample]], how: _How
) -> Interval:
    shares = [(1 - how.level) / 2, (1 + how.level) / 2]
    largest = max(float(np.abs(pull).max()) for pull, _ in pulls)
    pulls = [(pull / largest, sample) for pull, sample in pulls]  # cubes of tiny or huge values are out of range
    if how.method == "expanded":
        outer = _NORMAL.cdf(-_reach(pulls, how.level))
        shares = [outer, 1 - outer]
    elif how.method == "bca":
        near = ROUNDING * scale
        # Half of the ties: recalls lie on a lattice, and many resamples have the very mean that was seen.
        below = float((drawn < seen - near).sum()) + float((np.abs(drawn - seen) <= near).sum()) / 2
        floor = 1 / (len(drawn) + 1)
        bias = _NORMAL.inv_cdf(min(max(below / len(drawn), floor), 1 - floor))
        shares = [_moved(_NORMAL.inv_cdf(share), bias, _acceleration(pulls)) for share in shares]
    low, high = np.quantile(drawn, shares).tolist()
    return Interval(low, high, how.method)


def _moved(z: float, bias: float, acceleration: float) -> float:
    """Which percentile stands for the normal quantile z (Efron 1987)."""
    shifted = bias + z
    rest = 1 - acceleration * shifted
    if rest <= 0:  # beyond the pole of the transformation: the end of what was drawn
        return 1.0 if shifted > 0 else 0.0
    return _NORMAL.cdf(bias + shifted / rest)


def _acceleration(pulls: Sequence[tuple[Floats, Sample]]) -> float:
    """A sixth of the skewness of the influences (Efron 1987), over all samples."""
    squares, cubes = 0.0, 0.0
    for pull, sample in pulls:
        squares += float((pull * pull * sample.counts).sum())
        cubes += float((pull * pull * pull * sample.counts).sum())
    return cubes / (6 * squares * sqrt(squares))


def _reach(pulls: Sequence[tuple[Floats, Sample]], level: float) -> float:
    """How many deviations of the resampled means the ends are away (Hesterberg 2015); of two samples as Welch (1947).

    The variance of resampled means has n below the line where an unbiased one has n - 1.
    """
    plain = [float((pull * pull * sample.counts).sum()) for pull, sample in pulls]
    shares = [variance / sum(plain) for variance in plain]
    unbiased = [share * sample.n / (sample.n - 1) for share, (_, sample) in zip(shares, pulls, strict=True)]
    parts = sum(share**2 / (sample.n - 1) for share, (_, sample) in zip(unbiased, pulls, strict=True))
    freedom = max(1, int(sum(unbiased) ** 2 / parts * (1 + ROUNDING)))
    return student_quantile(level, freedom) * sqrt(sum(unbiased))


def _check_range(sample: Sample, *, unit_range: bool) -> None:
    if unit_range and (sample.low < 0 or sample.high > 1):
        raise UsageError(f"values from {sample.low:g} to {sample.high:g} are not of a measure between 0 and 1.")
