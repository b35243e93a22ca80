"""Effect sizes, detectable differences and agreement of orderings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from docrecall.stats import effect_size, kendall_tau, smallest_difference


def test_effect_is_mean_over_deviation():
    """Of 1, 2, 3 the mean is 2 and the deviation 1; repeats and counts are the same thing."""
    assert effect_size([1.0, 2.0, 3.0]) == 2.0
    assert effect_size([-3.0, -2.0, -1.0]) == -2.0
    assert effect_size([1, 3], counts=[2, 2]) == effect_size([1, 3, 1, 3])


@pytest.mark.parametrize("values", [[], [0.5], [0.5, 0.5], [0.7 - 0.6, 0.3 - 0.2, 0.9 - 0.8], [0, 0, 0]])
def test_no_effect_without_spread(values: list[float]):
    """Fewer than two pairs, or equal differences, have no effect size, and say nothing about what could be seen."""
    assert effect_size(values) is None
    assert smallest_difference(values) is None


@pytest.mark.parametrize("factor", [2.0**-1000, 2.0**900])
def test_effect_has_no_unit(factor: float):
    """Tiny and huge differences have the effect size of ordinary ones."""
    assert effect_size(np.array([1.0, 2.0, 4.0]) * factor) == pytest.approx(effect_size([1.0, 2.0, 4.0]))


def test_smallest_difference():
    """With deviation 1 and 100 pairs it is 0.28: 1.96 + 0.84 standard errors of a tenth."""
    assert smallest_difference(sd=1.0, n=100) == pytest.approx(0.2801585)
    assert smallest_difference(sd=1.0, n=100, level=0.9, power=0.5) == pytest.approx(0.1644854)
    assert smallest_difference([1, -1], counts=[50, 50]) == pytest.approx(0.2801585 * np.sqrt(100 / 99))
    assert smallest_difference(sd=0.0, n=100) is None
    assert smallest_difference(sd=1.0, n=1) is None


def test_orderings():
    """Of three items one pair changes places: two pairs agree, one does not."""
    assert kendall_tau([1, 2, 3], [1, 3, 2]) == (1 / 3, [(1, 2)])
    assert kendall_tau([0.1, 0.2, 0.3], [10, 20, 30]) == (1.0, [])
    assert kendall_tau([3, 2, 1], [1, 2, 3]) == (-1.0, [(0, 1), (0, 2), (1, 2)])


def test_ties_swap_nothing():
    """A tie on either side is no swap; where a side ties throughout there is no tau."""
    assert kendall_tau([1, 1, 2], [2, 1, 3]) == (pytest.approx(2 / np.sqrt(6)), [])
    assert kendall_tau([1, 1], [1, 2]) == (None, [])
    assert kendall_tau([1], [1]) == (None, [])
    assert kendall_tau([], []) == (None, [])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_tau_as_scipy(pairs: list[tuple[int, int]]):
    """tau-b is scipy's, which has NaN where ours is None."""
    a, b = zip(*pairs, strict=True)
    expected = scipy_stats.kendalltau(a, b).statistic

    assert kendall_tau(a, b).tau == (None if np.isnan(expected) else pytest.approx(expected))
