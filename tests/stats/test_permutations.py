"""The permutation test of one sample against the others: scipy's numbers, clusters whole, and nothing without units."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from docrecall import UsageError
from docrecall.stats import Sample, permutation_tests

RECALLS = np.array([0, 1 / 3, 1 / 2, 2 / 3, 1])
MANY = 40_000


def two(n: int, m: int, *, distinct: bool = False, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    if distinct:
        return rng.normal(1.5 / np.sqrt(n), 1, n), rng.normal(0, 1, m)
    return rng.choice(RECALLS, n, p=[0.3, 0.1, 0.1, 0.1, 0.4]), rng.choice(RECALLS, m, p=[0.2, 0.1, 0.1, 0.1, 0.5])


def by_enumeration(one: list[float], rest: list[float]) -> float:
    """The share of all choices of so many units whose mean is at least as far away."""
    every = [*one, *rest]
    usual = sum(every) / len(every) * len(one)
    far = [abs(sum(chosen) - usual) for chosen in combinations(every, len(one))]
    return float(np.mean(np.array(far) >= abs(sum(one) - usual) - 1e-12))


@pytest.mark.parametrize(
    ("one", "rest"), [([0, 0, 0], [1, 1, 1]), ([1, 0.5, 1], [0, 0.5, 0, 0.5, 0]), ([0.1, 0.2], [0.3, 0.4, 0.9, 0.2])]
)
def test_small_samples_by_hand(one: list[float], rest: list[float]):
    """Random choices come to the share of all choices."""
    expected = by_enumeration(one, rest)
    assert permutation_tests([one, rest], resamples=MANY) == pytest.approx([expected] * 2, abs=0.01)


@pytest.mark.parametrize(("n", "m", "distinct"), [(40, 200, False), (40, 200, True), (300, 4000, True)])
def test_agrees_with_scipy(n: int, m: int, distinct: bool):
    """Within Monte-Carlo error: a histogram, distinct values, and those in bins."""
    one, rest = two(n, m, distinct=distinct)
    found = scipy_stats.permutation_test(
        (one, rest), lambda a, b, axis: a.mean(axis) - b.mean(axis), n_resamples=5000, vectorized=True, rng=1
    )
    peer = np.mean(np.abs(found.null_distribution) >= abs(found.statistic) - 1e-12)
    assert 0.001 < peer < 0.5
    assert permutation_tests([one, rest], resamples=20_000)[0] == pytest.approx(peer, abs=4 * np.sqrt(peer / 5000))


def test_each_against_all_others():
    """Three samples: each p is that of the sample against the other two together; those not asked for are the rest."""
    one, rest = two(30, 90)
    parts = [one, rest[:50], rest[50:]]
    found = permutation_tests(parts, seed=5)
    for place, part in enumerate(parts):
        others = np.concatenate([p for i, p in enumerate(parts) if i != place])
        assert found[place] == pytest.approx(permutation_tests([part, others], seed=5)[0])
    assert permutation_tests(parts, of=[2], seed=5) == [None, None, found[2]]


def test_clusters_are_chosen_whole():
    """Copies inside a cluster add no evidence."""
    one, rest = two(12, 40)
    alone = permutation_tests([one, rest])[0]
    copies = [
        Sample.of(np.repeat(part, 30), clusters=np.repeat(np.arange(len(part)) + start, 30))
        for part, start in ((one, 0), (rest, 100))
    ]
    assert permutation_tests(copies)[0] == pytest.approx(alone, abs=0.02)


@pytest.mark.parametrize("kind", ["weights", "clusters", "light"])
def test_a_sample_of_heavy_units_is_not_different_for_that(kind: str):
    """Units that weigh ten times as much stray further; without a scale a quarter of such samples had p <= 0.05."""
    rng = np.random.default_rng(7)

    def side(n: int, size: int) -> Sample:
        values = rng.choice([0.0, 1.0], n, p=[0.4, 0.6])
        if kind == "clusters":
            return Sample.of(np.repeat(values, size), clusters=np.repeat(np.arange(n), size))
        return Sample.of(values, weights=size * rng.lognormal(0, 1, n))

    sizes = (1, 10) if kind == "light" else (10, 1)
    ps = [
        permutation_tests([side(50, sizes[0]), side(450, sizes[1])], of=[0], resamples=200, seed=i)[0]
        for i in range(200)
    ]
    assert 0.01 <= np.mean([p <= 0.05 for p in ps if p is not None]) <= 0.1


def test_weights_weigh():
    """A unit of weight 0 is not there, and equal weights are none."""
    one, rest = two(30, 90)
    weighed = [Sample.of(np.append(part, 7.0), weights=np.append(np.full(len(part), 3.0), 0)) for part in (one, rest)]
    assert permutation_tests(weighed) == permutation_tests([one, rest])


def test_order_and_seed():
    """The same bits in any order; another seed gives other draws."""
    one, rest = two(40, 200, distinct=True)
    assert permutation_tests([one, rest], seed=1) == permutation_tests([one[::-1], np.sort(rest)], seed=1)
    assert permutation_tests([one, rest], seed=1) != permutation_tests([one, rest], seed=2)


def test_nothing_to_tell():
    """Equal values have p 1; fewer than two units on either side have none."""
    assert permutation_tests([[1, 1], [1, 1, 1]]) == [1.0, 1.0]
    assert permutation_tests([]) == []
    assert permutation_tests([[1, 2, 3]]) == [None]
    assert permutation_tests([[1], [2, 3], []]) == [None, None, None]


def test_never_zero():
    """The choice that was seen counts too."""
    assert permutation_tests([np.zeros(50), np.ones(50)], resamples=99) == [0.01, 0.01]


def test_refused():
    """As elsewhere in stats."""
    with pytest.raises(UsageError, match="resamples is 0"):
        permutation_tests([[1, 2], [3, 4]], resamples=0)
    with pytest.raises(UsageError, match="NaN"):
        permutation_tests([[1, np.nan], [3, 4]])
    with pytest.raises(UsageError, match="places from 0 to 1"):
        permutation_tests([[1, 2], [3, 4]], of=[2])
