"""How large a difference is, and how large it would have to be to be seen."""

from __future__ import annotations

from math import isfinite, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from docrecall.errors import UsageError
from docrecall.stats.arguments import check_level, is_number
from docrecall.stats.sample import Sample


def effect_size(differences: npt.ArrayLike | Sample, *, counts: npt.ArrayLike | None = None) -> float | None:
    """Give the mean of paired differences in units of their standard deviation: d_z (Cohen 1988).

    differences: one finite number per pair, or a `Sample`, whose weights weigh mean and squares. counts: how often each
    of them occurs, where they form a histogram. The standard deviation has n - 1 below the line.

    Returns None for fewer than two pairs, and where all differences are equal (up to rounding). Raises UsageError for
    NaN, null or infinite differences and bad counts.
    """
    sample = differences if isinstance(differences, Sample) else Sample.of(differences, counts=counts)
    sd = _deviation(sample)
    return sample.mean / sd if sd else None


def standard_error(sample: Sample) -> float | None:
    """Give the standard error of the (weighted) mean of a sample, whose units are clusters where it has them.

    It is the root of the sum of squared influences, times n / (n - 1); sd / sqrt(n) without weights. Returns None for
    fewer than two units, and 0 for units that differ by rounding alone.
    """
    if sample.n < 2:
        return None
    if sample.is_constant:
        return 0.0
    return sqrt(float((sample.influence**2 * sample.counts).sum()) * sample.n / (sample.n - 1))


def smallest_difference(
    differences: npt.ArrayLike | None = None,
    *,
    counts: npt.ArrayLike | None = None,
    sd: float | None = None,
    n: int | None = None,
    level: float = 0.95,
    power: float = 0.8,
) -> float | None:
    """Give the smallest true mean difference that so many pairs would have shown with the given power.

    It is (z(1 - a / 2) + z(power)) sd / sqrt(n) with a = 1 - level, for a two-sided test and many pairs (Bloom 1995).

    differences, counts: as for `effect_size`; or sd and n in their place, the deviation of differences and how many.

    Returns None for fewer than two pairs, and where the deviation is 0: equal differences tell nothing about the
    spread of others. Raises UsageError when both or neither of differences and (sd, n) are given, for NaN, null,
    infinite or negative values, and for a level or power outside (0, 1).
    """
    check_level("level", level)
    check_level("power", power)
    if differences is not None:
        if sd is not None or n is not None:
            raise UsageError("differences and sd, n exclude each other: the differences tell both.")
        sample = Sample.of(differences, counts=counts)
        sd, n = _deviation(sample), sample.n
    elif sd is None or n is None or counts is not None:
        raise UsageError("give differences (counts may go with them), or both sd and n.")
    if sd is None:
        return None
    if not (is_number(sd) and is_number(n) and isfinite(sd) and sd >= 0 and n >= 0):
        raise UsageError(f"sd is {sd!r} and n is {n!r}; both must be numbers of at least 0.")
    if n < 2 or sd == 0:
        return None
    normal = NormalDist()
    return (normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)) * sd / sqrt(n)


def _deviation(sample: Sample) -> float | None:
    """The standard deviation; None for fewer than two units, and 0 for units that differ by rounding alone."""
    if sample.n < 2:
        return None
    if sample.is_constant:
        return 0.0
    # Scaled, so that squares of tiny or huge values neither vanish nor overflow.
    away = sample.totals / sample.weights / sample.scale - sample.mean / sample.scale
    whole = sample.weight * (sample.n - 1) / sample.n
    return float(np.sqrt((away * away * sample.weights * sample.counts).sum() / whole)) * sample.scale
