"""Exact sums are those of math.fsum, whatever the order and the batches."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docrecall import exact
from docrecall.exact import exact_sum

TINY, LEAST = 2.0**-1022, 5e-324
FLOATS = st.floats(-1e300, 1e300, allow_subnormal=True)
ODD = st.sampled_from([0.0, -0.0, LEAST, -LEAST, TINY, -TINY, 1e300, -1e300, 0.1, 1 / 3, -1.0, 2.0**53, 2.0**53 + 2])


def array(values: list[float]) -> np.ndarray:
    return np.array(values, dtype=np.float64)


@given(st.lists(FLOATS | ODD, max_size=60))
def test_rounded_sum_is_fsum(values: list[float]):
    """Rounded once, the exact sum has the bits of math.fsum, with subnormal, huge and negative values."""
    assert float(exact_sum(array(values))) == math.fsum(values)


@given(st.lists(FLOATS | ODD, max_size=40))
def test_sum_is_exact(values: list[float]):
    """Before rounding it is the sum of the values as fractions."""
    assert exact_sum(array(values)) == sum(map(Fraction, values), Fraction(0))


@given(st.lists(FLOATS | ODD, max_size=40), st.integers(0, 40), st.randoms())
def test_order_and_batches_do_not_matter(values: list[float], cut: int, random):
    """Parts in any order add up to the whole."""
    shuffled = random.sample(values, len(values))

    parts = exact_sum(array(shuffled[:cut])) + exact_sum(array(shuffled[cut:]))

    assert parts == exact_sum(array(values))


def test_nothing_adds_up_to_nothing():
    """An empty array gives 0."""
    assert exact_sum(array([])) == 0


def test_what_plain_sums_lose_is_kept():
    """A one between two huge numbers of opposite sign survives."""
    assert exact_sum(array([1e300, 1.0, -1e300])) == 1
    assert exact_sum(array([LEAST] * 3)) == 3 * Fraction(LEAST)


def test_many_values_of_one_size():
    """Ten million tenths are added without rounding: as many as would overflow a 53-bit partial sum."""
    values = np.full(10_000_000, 0.1)

    assert exact_sum(values) == 10_000_000 * Fraction(0.1)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_pieces_of_a_long_array_are_added(size: int, monkeypatch: pytest.MonkeyPatch):
    """An array longer than one piece is summed piece by piece."""
    monkeypatch.setattr(exact, "_CHUNK", size)
    values = np.random.default_rng(1).normal(size=1000) * 10.0 ** np.random.default_rng(2).integers(-20, 20, 1000)

    assert float(exact_sum(values)) == math.fsum(values)


@given(st.lists(st.tuples(FLOATS | ODD, st.sampled_from([0, 1, 2, 7, 1 << 20, (1 << 35) - 1, 1 << 36])), max_size=40))
def test_histograms_of_any_size(found: list[tuple[float, int]]):
    """Values that occur once, or more often than halves of 53 bits can be added up in 63, are summed exactly."""
    values, counts = array([v for v, _ in found]), np.array([n for _, n in found], dtype=np.int64)

    assert exact_sum(values, counts) == sum((Fraction(v) * n for v, n in found), Fraction(0))
