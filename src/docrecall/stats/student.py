"""Student's distribution, for whole degrees of freedom: quantiles and shares."""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt, tan
from statistics import NormalDist

_SERIES = 200  # degrees of freedom from which on the expansion is right to nine digits, and the sum below is long


@lru_cache(maxsize=256)
def student_quantile(share: float, freedom: int) -> float:
    """Give t such that |T| <= t with the given probability, 0 < share < 1; freedom is at least 1.

    Up to 200 degrees of freedom the distribution is a finite sum of powers of a cosine, which is inverted by bisection
    (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4); beyond, it is expanded around the normal quantile (26.7.5).
    """
    if freedom > _SERIES:
        return _expanded(NormalDist().inv_cdf((1 + share) / 2), freedom)
    low, high = 0.0, pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _share_within(middle, freedom) < share else (low, middle)
    return sqrt(freedom) * tan(low)


def student_below(t: float, freedom: int) -> float:
    """Give the probability that T is below t; freedom is at least 1.

    Beyond 200 degrees of freedom by the normal approximation of Abramowitz and Stegun (1964), 26.7.8.
    """
    if freedom > _SERIES:
        return NormalDist().cdf(t * (1 - 1 / (4 * freedom)) / sqrt(1 + t * t / (2 * freedom)))
    half = _share_within(atan(abs(t) / sqrt(freedom)), freedom) / 2
    return 0.5 + half if t > 0 else 0.5 - half


def _share_within(angle: float, freedom: int) -> float:
    """The probability of |T| <= sqrt(freedom) tan(angle)."""
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for power in range(1 + odd, freedom, 2):
        total += term
        term *= cos(angle) ** 2 * power / (power + 1)
    inner = sin(angle) * total
    return 2 / pi * (angle + inner) if odd else inner


def _expanded(z: float, freedom: int) -> float:
    orders = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(order / float(freedom) ** power for power, order in enumerate(orders, start=1))
