"""Corrections for many comparisons keep the order of the input, and nulls out of the family."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from docrecall.stats import benjamini_hochberg, holm

PS = st.lists(st.none() | st.floats(0, 1), max_size=12)


@pytest.mark.parametrize(
    ("ps", "adjusted"),
    [
        ([0.01, 0.02, 0.03, 0.04], [0.04, 0.06, 0.06, 0.06]),
        ([None, 0.01, 0.04], [None, 0.02, 0.04]),
        ([0.04, 0.01], [0.04, 0.02]),
        ([0.9, 0.8], [1.0, 1.0]),
        ([None, None], [None, None]),
        ([], []),
    ],
)
def test_holm(ps: list[float | None], adjusted: list[float | None]):
    """Golden values of Holm's step-down method."""
    assert holm(ps) == pytest.approx(adjusted)


@pytest.mark.parametrize(
    ("ps", "adjusted"),
    [
        ([0.01, 0.02, 0.03, 0.04], [0.04, 0.04, 0.04, 0.04]),
        ([0.04, None, 0.01], [0.04, None, 0.02]),
        ([0.01, 0.5, 0.04], [0.03, 0.5, 0.06]),
        ([None], [None]),
        ([], []),
    ],
)
def test_benjamini_hochberg(ps: list[float | None], adjusted: list[float | None]):
    """Golden values of the step-up method."""
    assert benjamini_hochberg(ps) == pytest.approx(adjusted)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_benjamini_hochberg_as_scipy(ps: list[float]):
    """It is scipy's false_discovery_control."""
    assert benjamini_hochberg(ps) == pytest.approx(scipy_stats.false_discovery_control(ps))


@given(PS)
def test_adjusted_values_are_monotone(ps: list[float | None]):
    """A smaller p stays the smaller one, none falls below its own p or rises above 1, and nulls stay where they are."""
    for correct in (holm, benjamini_hochberg):
        adjusted = correct(ps)
        assert [p is None for p in adjusted] == [p is None for p in ps]
        pairs = sorted((p, q) for p, q in zip(ps, adjusted, strict=True) if p is not None and q is not None)
        assert all(p <= q * (1 + 1e-12) and q <= 1 for p, q in pairs)
        assert [q for _, q in pairs] == sorted(q for _, q in pairs)


@given(PS)
def test_holm_is_the_stricter(ps: list[float | None]):
    """The chance of any false alarm is harder to bound than the share of them."""
    pairs = zip(holm(ps), benjamini_hochberg(ps), strict=True)
    assert all(h is None or b is None or h >= b * (1 - 1e-12) for h, b in pairs)
