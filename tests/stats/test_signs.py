"""The sign-flip test: exact where it can be, honest beyond, and never led astray by a rounding."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from docrecall import stats
from docrecall.stats import sign_flip_test, signs

RECALLS = np.array([0, 1 / 3, 1 / 2, 2 / 3, 1])


def by_enumeration(thousandths: list[int]) -> float:
    """The share of all sign patterns that reach the sum, in whole numbers."""
    seen = abs(sum(thousandths))
    sums = [
        abs(sum(s * d for s, d in zip(signs_, thousandths, strict=True)))
        for signs_ in product((1, -1), repeat=len(thousandths))
    ]
    return sum(reached >= seen for reached in sums) / len(sums)


def differences(n: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.choice(RECALLS, n, p=[0.2, 0.2, 0.2, 0.2, 0.2]) - rng.choice(RECALLS, n, p=[0.22, 0.2, 0.2, 0.2, 0.18])


@pytest.mark.parametrize(
    ("given_", "p"),
    [
        ([0.1, 0.1, 0.1], 0.25),
        ([0.1, 0.1, 0.2, 0.2], 0.125),
        ([0.1, 0.2, -0.3], 1.0),
        ([1.0], 1.0),
        ([0.0, 0.0, 0.5], 1.0),
        ([1.0] * 20, 2 / 2**20),
        ([0.0] * 1000 + [1.0] * 3, 0.25),
    ],
)
def test_golden(given_: list[float], p: float):
    """Values that can be counted by hand; pairs without a difference change nothing."""
    assert sign_flip_test(given_) == p


def test_equal_sums_tie_although_their_floats_differ():
    """0.7 - 0.6, 0.3 - 0.2 and 0.9 - 0.8 are one tenth each, and 0.6 - 0.4 two of them."""
    assert sign_flip_test([0.7 - 0.6, 0.3 - 0.2, 0.9 - 0.8]) == 0.25
    # + + - and - - + reach as far as what was seen: 0.1 + 0.1 - 0.2 is nothing, so that everything does.
    assert sign_flip_test([0.7 - 0.6, 0.3 - 0.2, 0.4 - 0.6]) == 1.0
    assert sign_flip_test([0.1, 0.2, 0.3, -0.6 + 0.3]) == by_enumeration([1, 2, 3, -3])


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=9))
def test_small_samples_are_enumerated(thousandths: list[int]):
    """Up to 20 differences p is the exact share of sign patterns, for decimal fractions too."""
    assert sign_flip_test([d / 1000 for d in thousandths]) == by_enumeration(thousandths)


@pytest.mark.parametrize("n", [8, 14])
def test_exact_as_scipy(n: int):
    """The exact p value is that of scipy's paired permutation test."""
    d = np.random.default_rng(n).normal(0.3, 1, n)

    theirs = scipy_stats.permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )

    assert sign_flip_test(d) == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize(
    "d", [differences(300), np.random.default_rng(3).normal(0.07, 1, 400)], ids=["recalls", "distinct"]
)
def test_random_flips_as_scipy(d: np.ndarray):
    """Beyond 20 differences both draw, and agree within what drawing allows."""
    theirs = scipy_stats.permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=10_000, vectorized=True, batch=1000, random_state=1
    ).pvalue

    ours = sign_flip_test(d, resamples=100_000)

    assert ours == pytest.approx(theirs, abs=5 * np.sqrt(theirs * (1 - theirs) / 10_000))


def test_random_flips_as_enumeration(monkeypatch: pytest.MonkeyPatch):
    """Both ways of drawing come to the exact p value."""
    d = differences(19, seed=7)
    exact = sign_flip_test(d)
    monkeypatch.setattr(signs, "EXACT", 0)
    near = pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 200_000))

    assert sign_flip_test(d, resamples=200_000) == near
    monkeypatch.setattr(signs, "_FEW", 0)
    assert sign_flip_test(d, resamples=200_000) == near


@pytest.mark.parametrize("few", [0, 30, 10**9])
def test_frequent_and_rare_values_are_flipped_alike(few: int, monkeypatch: pytest.MonkeyPatch):
    """Binomial draws, flips one by one and a mixture of them give one distribution, whose spread is known."""
    d = differences(500)
    sizes, counts = np.unique(np.abs(d[d != 0]), return_counts=True)
    monkeypatch.setattr(signs, "_FEW", few)

    sums = np.concatenate([signs._flipped_sums(sizes, counts, np.random.default_rng(i), 8192) for i in range(10)])

    spread = np.sqrt((d * d).sum())
    assert sums.mean() == pytest.approx(0, abs=5 * spread / np.sqrt(len(sums)))
    assert sums.std() == pytest.approx(spread, rel=5 / np.sqrt(2 * len(sums)))


TAILS = {
    "normal": lambda rng, n: rng.normal(0, 1, n),
    "heavy": lambda rng, n: rng.lognormal(0, 3, n) * rng.choice([-1, 1], n),
    "one giant": lambda rng, n: np.append(rng.normal(0, 1, n - 1), 3 * np.sqrt(n)),
    "tiny": lambda rng, n: rng.normal(0, 1e-200, n),
}


@pytest.mark.parametrize("tail", TAILS)
def test_bins_keep_the_distribution(tail: str):
    """Many distinct sizes in bins: the variance of the sums is the same, and so is how often each height is reached."""
    d = np.abs(TAILS[tail](np.random.default_rng(4), 25_000))
    sizes = stats.Sample.of(d)
    values, times = signs._binned(sizes)
    assert len(values) < 300
    assert times.sum() == len(d)
    spread = float(np.sqrt(((d / sizes.scale) ** 2).sum())) * sizes.scale
    assert float(np.sqrt(((values / sizes.scale) ** 2 * times).sum())) * sizes.scale == pytest.approx(spread, rel=1e-12)
    sums = [
        np.concatenate([signs._flipped_sums(*of, np.random.default_rng(i), 8192) for i in range(5)]) / spread
        for of in ((values, times), (d, np.ones(len(d), np.int64)))
    ]
    assert scipy_stats.ks_2samp(*sums).pvalue > 0.001


@pytest.mark.parametrize(("n", "kind"), [(20, "exact"), (21, "Monte Carlo"), (20_001, "Monte Carlo, binned")])
def test_how_p_was_found(n: int, kind: str):
    """The name says whether patterns were counted, drawn, or drawn of bins."""
    d = np.random.default_rng(5).normal(0, 1, n)
    found = signs.sign_flip(stats.Sample.of(d), 100, 0)
    assert found == (sign_flip_test(d, resamples=100), kind)


def test_no_difference_is_no_evidence():
    """Identical runs have p = 1 at any size, never NaN."""
    assert sign_flip_test([0.0]) == 1.0
    assert sign_flip_test(np.zeros(100)) == 1.0
    assert sign_flip_test([0.0, -0.0]) == 1.0


def test_no_pairs():
    """Without pairs there is no p value."""
    assert sign_flip_test([]) is None
    assert sign_flip_test([0.5], counts=[0]) is None


def test_p_is_never_0():
    """What was seen is one of the patterns, so p is at least 1 / (resamples + 1)."""
    assert sign_flip_test(np.ones(1000), resamples=99) == 0.01


@pytest.mark.parametrize("n", [15, 700])
def test_histogram_is_as_good_as_the_values(n: int):
    """Counts of values, in any order and in parts, give the same bits as the values."""
    d = differences(n)
    values, counts = np.unique(d, return_counts=True)
    mixed = np.random.default_rng(2).permutation(len(values))
    parts = np.concatenate([values[mixed], values]), np.concatenate([counts[mixed] - 1, np.ones(len(values))])

    assert sign_flip_test(values, counts=counts) == sign_flip_test(d)
    assert sign_flip_test(parts[0], counts=parts[1]) == sign_flip_test(d)


@pytest.mark.parametrize(
    "d", [differences(700), np.random.default_rng(3).normal(0.05, 1, 1001)], ids=["recalls", "distinct"]
)
def test_same_seed_same_bits(d: np.ndarray, monkeypatch: pytest.MonkeyPatch):
    """Order and the size of blocks do not show; another seed does."""
    first = sign_flip_test(d, resamples=9001, seed=5)

    assert sign_flip_test(d[::-1], resamples=9001, seed=5) == first
    assert sign_flip_test(np.random.default_rng(1).permutation(d).tolist(), resamples=9001, seed=5) == first
    assert sign_flip_test(d, resamples=9001, seed=6) != first
    monkeypatch.setattr(signs, "_GROUPS", 3)
    assert sign_flip_test(d, resamples=9001, seed=5) == first


def test_ten_million_pairs():
    """A histogram of any size takes no longer than its distinct values."""
    counts = np.array([2_000_000, 3_000_000, 2_998_000, 2_002_000])

    p = sign_flip_test([-1 / 2, 1 / 3, -1 / 3, 1 / 2], counts=counts, resamples=20_000)

    # A sum of 5,000,000 terms is normal: the sum seen is 1,000 + 667 at a deviation of 1,298.
    sum_, variance = 2000 / 2 + 2000 / 3, 4_002_000 / 4 + 5_998_000 / 9
    assert p == pytest.approx(scipy_stats.norm.sf(sum_ / np.sqrt(variance)) * 2, abs=0.015)
