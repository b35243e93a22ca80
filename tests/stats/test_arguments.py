"""What has no meaning is refused by name, as a UsageError and thus as a ValueError."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from docrecall import stats
from docrecall.errors import UsageError

ONES = [1.0, 1.0, 0.5]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), None])
@pytest.mark.parametrize(
    "function",
    [
        stats.sign_flip_test,
        stats.bootstrap_mean,
        stats.effect_size,
        stats.smallest_difference,
        lambda values: stats.bootstrap_difference(ONES, values),
        lambda values: stats.bootstrap_difference(values, ONES),
        lambda values: stats.kendall_tau(values, ONES),
    ],
)
def test_numbers_are_finite(function: Callable[[list[float | None]], object], bad: float | None):
    """NaN, infinite and null values are refused and counted, never dropped."""
    with pytest.raises(UsageError, match="1 of 3 values that are NaN, null or infinite"):
        function([0.1, bad, 0.2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.sign_flip_test(ONES, resamples=0), "resamples is 0"),
        (lambda: stats.sign_flip_test(ONES, resamples=2.5), "resamples is 2.5"),
        (lambda: stats.sign_flip_test(ONES, seed=-1), "seed is -1"),
        (lambda: stats.sign_flip_test(ONES, seed=None), "seed is None"),
        (lambda: stats.sign_flip_test([ONES]), "values has 2 dimensions"),
        (lambda: stats.sign_flip_test(["0.5"]), "Nothing is cast"),
        (lambda: stats.sign_flip_test([0.5, {}]), "no number"),
        (lambda: stats.sign_flip_test(ONES, counts=[1, 2]), r"counts has the shape \(2,\)"),
        (lambda: stats.sign_flip_test(ONES, counts=[1, 2, -1]), "whole numbers of at least 0"),
        (lambda: stats.sign_flip_test(ONES, counts=[1, 2, 0.5]), "whole numbers of at least 0"),
        (lambda: stats.sign_flip_test(ONES, counts=[2**52, 2**52, 1]), "2\\^53"),
        (lambda: stats.sign_flip_test([1e308] * 3), "too large"),
        (lambda: stats.bootstrap_mean(ONES, resamples=-1), "resamples is -1"),
        (lambda: stats.bootstrap_mean(ONES, level=1), "level is 1"),
        (lambda: stats.bootstrap_mean(ONES, level=0.0), "level is 0.0"),
        (lambda: stats.bootstrap_mean(ONES, level=95), "level is 95"),
        (lambda: stats.bootstrap_mean(ONES, method="bcaa"), 'Did you mean "bca"'),
        (lambda: stats.bootstrap_mean(ONES, weights=[1, -1, 1]), "1 negative weights"),
        (lambda: stats.bootstrap_mean(ONES, weights=[0, 0, 0]), "weights add up to 0"),
        (lambda: stats.bootstrap_mean(ONES, weights=[1]), "weights has the shape"),
        (lambda: stats.bootstrap_mean(ONES, weights=[1, None, 1]), "weights holds 1 of 3"),
        (lambda: stats.bootstrap_mean(ONES, clusters=["a", "b"]), "clusters has the shape"),
        (lambda: stats.bootstrap_mean(ONES, clusters=["a", None, "b"]), "clusters holds null"),
        (lambda: stats.bootstrap_mean(ONES, clusters=[None] * 3), "clusters holds null"),
        (lambda: stats.bootstrap_mean(ONES, clusters=pl.Series(["a", None, "b"])), "clusters holds null"),
        (lambda: stats.bootstrap_mean(ONES, clusters=[1.0, np.nan, 2.0]), "clusters holds null"),
        (lambda: stats.bootstrap_mean(ONES, clusters=[1, 1, 2], counts=[1, 1, 1]), "exclude each other"),
        (lambda: stats.bootstrap_mean([0.5, 1.5], unit_range=True), "from 0.5 to 1.5"),
        (lambda: stats.bootstrap_mean(stats.Sample.of(ONES), weights=[1, 1, 1]), "Sample.of"),
        (lambda: stats.bootstrap_difference(ONES, [-0.5, 0], unit_range=True), "from -0.5 to 0"),
        (lambda: stats.bootstrap_difference(ONES, ONES, level=2), "level is 2"),
        (lambda: stats.smallest_difference(ONES, power=1), "power is 1"),
        (stats.smallest_difference, "both sd and n"),
        (lambda: stats.smallest_difference(sd=1.0), "both sd and n"),
        (lambda: stats.smallest_difference(ONES, n=3), "exclude each other"),
        (lambda: stats.smallest_difference(sd=-1.0, n=3), "sd is -1.0"),
        (lambda: stats.kendall_tau(ONES, [1]), "a has 3 items and b has 1"),
        (lambda: stats.holm([0.5, 1.5]), "1 of 2 p values, such as 1.5"),
        (lambda: stats.benjamini_hochberg([0.5, float("nan")]), "such as nan"),
        (lambda: stats.holm(["a", None]), "1 of 2 p values, such as 'a'"),
        (lambda: stats.holm(0.5), "p values are 0.5; a list"),
        (lambda: stats.holm("0.5"), "p values are '0.5'; a list"),
        (lambda: stats.benjamini_hochberg(None), "p values are None; a list"),
        (lambda: stats.bootstrap_mean(ONES, level="0.95"), "level is '0.95'"),
        (lambda: stats.bootstrap_mean(ONES, level=None), "level is None"),
        (lambda: stats.smallest_difference(ONES, power="0.8"), "power is '0.8'"),
        (lambda: stats.smallest_difference(sd="1", n=3), "sd is '1'"),
    ],
)
def test_refused(call: Callable[[], object], message: str):
    """The message names the argument and what was found."""
    with pytest.raises(UsageError, match=message) as caught:
        call()
    assert isinstance(caught.value, ValueError)


def test_series_and_other_sequences_are_taken():
    """A polars Series, a tuple, integers and booleans are numbers too."""
    assert stats.sign_flip_test(pl.Series([0.1, 0.1, 0.1])) == 0.25
    assert stats.sign_flip_test((1, 1, 1)) == 0.25
    assert stats.effect_size([True, False]) == stats.effect_size([1.0, 0.0])
