"""Whether two scorings put the same things in the same order."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from docrecall.errors import UsageError
from docrecall.stats.arguments import floats


class Agreement(NamedTuple):
    """Kendall's tau-b, and the pairs (i, j), i < j, of positions that the two scorings put in opposite order."""

    tau: float | None
    swapped: list[tuple[int, int]]


def kendall_tau(a: npt.ArrayLike, b: npt.ArrayLike) -> Agreement:
    """Compare two orderings of the same few items by tau-b (Kendall 1945).

    a, b: a finite number for each item, such as its mean under either measure, or its place; the items stand in the
    same order on both sides. Equal numbers tie. All pairs are looked at: meant for runs, not for documents.

    tau is (pairs in the same order - pairs in opposite order) / sqrt(pairs untied in a * pairs untied in b); it is
    None when no pair is untied on one of the sides, so too for fewer than two items. Raises UsageError for NaN, null
    or infinite numbers and for different lengths.
    """
    left, right = floats("a", a), floats("b", b)
    if left.shape != right.shape:
        raise UsageError(f"a has {len(left)} items and b has {len(right)}; they must be the same items.")
    first, second = np.triu_indices(len(left), k=1)
    in_a = _directions(left, first, second)
    in_b = _directions(right, first, second)
    opposite = in_a * in_b < 0
    swapped = list(zip(first[opposite].tolist(), second[opposite].tolist(), strict=True))
    untied = int(np.abs(in_a).sum()) * int(np.abs(in_b).sum())
    # One root of the product, so that full agreement is 1 and not a rounding away from it.
    return Agreement(int((in_a * in_b).sum()) / sqrt(untied) if untied else None, swapped)


def _directions(
    values: npt.NDArray[np.float64], first: npt.NDArray[np.intp], second: npt.NDArray[np.intp]
) -> npt.NDArray[np.int64]:
    # Compared, not subtracted: a difference of huge numbers overflows.
    above = values[first] > values[second]
    below = values[first] < values[second]
    return above.astype(np.int64) - below.astype(np.int64)
