"""Corrections of p values for the number of comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from docrecall.errors import UsageError
from docrecall.stats.arguments import is_number


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Adjust p values so that the chance of any false alarm in the family is bounded (Holm 1979).

    The i-th smallest of m is multiplied by m - i + 1; no value is below that of a smaller p, none above 1. None stays
    None and is no member of the family; an empty family gives an empty list. The order of the input is kept.

    Raises UsageError for what is no number between 0 and 1.
    """
    family, m = _ascending(ps)
    scaled = ((m - i) * p for i, (p, _) in enumerate(family))
    return _placed(ps, [at for _, at in family], accumulate(scaled, max))


def benjamini_hochberg(ps: Sequence[float | None]) -> list[float | None]:
    """Adjust p values so that the expected share of false alarms is bounded (Benjamini and Hochberg 1995).

    The i-th smallest of m is multiplied by m / i; no value is above that of a larger p, none above 1. The bound holds
    for independent tests and for those that agree with each other. None, order and errors as for `holm`.
    """
    family, m = _ascending(ps)
    scaled = (p * m / (m - i) for i, (p, _) in enumerate(reversed(family)))
    return _placed(ps, [at for _, at in reversed(family)], accumulate(scaled, min))


def _ascending(ps: Any) -> tuple[list[tuple[float, int]], int]:
    if isinstance(ps, str) or not isinstance(ps, Iterable):
        raise UsageError(f"p values are {ps!r}; a list of numbers between 0 and 1 was expected.")
    every = list(ps)
    given = [(p, at) for at, p in enumerate(every) if p is not None]
    bad = [p for p, _ in given if not (is_number(p) and 0 <= p <= 1)]
    if bad:
        raise UsageError(f"{len(bad)} of {len(every)} p values, such as {bad[0]!r}, are no numbers between 0 and 1.")
    family = sorted((float(p), at) for p, at in given)
    return family, len(family)


def _placed(ps: Sequence[float | None], places: list[int], adjusted: Iterable[float]) -> list[float | None]:
    result: list[float | None] = [None] * len(ps)
    for at, p in zip(places, adjusted, strict=True):
        result[at] = min(p, 1.0)
    return result
