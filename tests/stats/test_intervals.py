"""Bootstrap intervals agree with scipy and with theory, and do not depend on order or on how they are computed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from docrecall.stats import Sample, bootstrap_difference, bootstrap_mean, draws, streams
from docrecall.stats.student import student_quantile

RECALLS = np.array([0, 1 / 3, 1 / 2, 2 / 3, 1])


def recalls(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).choice(RECALLS, n, p=[0.1, 0.1, 0.15, 0.15, 0.5])


def skewed(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).exponential(size=n)


def scipy_interval(samples: tuple[np.ndarray, ...], statistic, method: str):
    found = scipy_stats.bootstrap(
        samples, statistic, method=method, n_resamples=50_000, batch=1000, random_state=1, vectorized=True
    )
    return tuple(found.confidence_interval)


@pytest.mark.parametrize(("ours", "theirs"), [("percentile", "percentile"), ("bca", "BCa")])
@pytest.mark.parametrize("values", [recalls(60), recalls(400), skewed(40)], ids=["small", "large", "skewed"])
def test_mean_as_scipy(values: np.ndarray, ours: str, theirs: str):
    """Both methods have the ends of scipy's, within what 50,000 resamples allow in a skewed tail."""
    low, high, method = bootstrap_mean(values, method=ours, resamples=100_000)

    expected = scipy_interval((values,), np.mean, theirs)

    allowed = 0.1 * values.std() / np.sqrt(len(values)) + 1 / 12 / len(values)  # one step of the lattice of means
    assert method == ours
    assert (low, high) == pytest.approx(expected, abs=allowed)


@pytest.mark.parametrize(("ours", "theirs"), [("percentile", "percentile"), ("bca", "BCa")])
def test_difference_as_scipy(ours: str, theirs: str):
    """The difference of two samples of unequal size has the ends of scipy's."""
    old, new = skewed(40, 1), skewed(90, 2) * 1.5

    low, high, method = bootstrap_difference(old, new, method=ours, resamples=100_000)

    expected = scipy_interval((old, new), lambda a, b, axis: b.mean(axis) - a.mean(axis), theirs)
    assert method == ours
    assert (low, high) == pytest.approx(expected, abs=0.05 * np.sqrt(old.var() / 40 + new.var() / 90))


def test_weighted_mean_as_scipy():
    """Weights move with their values: the mean of a resample is its own sum(w x) / sum(w)."""
    values, weights = recalls(80), np.random.default_rng(2).integers(1, 9, 80).astype(float)

    low, high, _ = bootstrap_mean(values, weights=weights, method="percentile", resamples=100_000)

    found = scipy_stats.bootstrap(
        (values, weights), lambda x, w, axis: (x * w).sum(axis) / w.sum(axis), paired=True, method="percentile",
        n_resamples=20_000, batch=1000, random_state=1, vectorized=True,
    )  # fmt: skip
    assert (low, high) == pytest.approx(tuple(found.confidence_interval), abs=0.05 * found.standard_error)


def test_clusters_are_resampled_whole():
    """Copies of a unit in one cluster add no knowledge: the interval is that of the clusters."""
    values = recalls(50)

    copies = bootstrap_mean(np.repeat(values, 7), clusters=np.repeat(np.arange(50), 7))

    assert copies == pytest.approx(bootstrap_mean(values), abs=0.01)
    wide, narrow = copies, bootstrap_mean(np.repeat(values, 7))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_labels_of_clusters_are_names():
    """Text, numbers and any order of clusters give the same bits."""
    values, clusters = recalls(200), np.random.default_rng(3).integers(0, 20, 200)
    weights = np.random.default_rng(4).uniform(0.1, 2, 200)
    first = bootstrap_mean(values, weights=weights, clusters=clusters)
    mixed = np.random.default_rng(5).permutation(200)

    assert bootstrap_mean(values, weights=weights, clusters=[f"c{c}" for c in clusters]) == first
    assert bootstrap_mean(values, weights=weights, clusters=-clusters) == first
    assert bootstrap_mean(values[mixed], weights=weights[mixed], clusters=clusters[mixed]) == first


@pytest.mark.parametrize("method", ["bca", "expanded", "percentile"])
def test_equal_weights_are_no_weights(method: str):
    """Weights of 3 throughout change nothing, and what weighs 0 is not there."""
    values = recalls(100)
    plain = bootstrap_mean(values, method=method)

    assert bootstrap_mean(values, method=method, weights=np.full(100, 3.0)) == pytest.approx(plain, abs=1e-12)
    more, weights = np.append(values, [0.0, 0.0]), np.append(np.ones(100), [0.0, 0.0])
    assert bootstrap_mean(more, method=method, weights=weights) == plain


@pytest.mark.parametrize("values", [recalls(300), skewed(300)], ids=["few", "distinct"])
def test_indices_and_histogram_draw_alike(values: np.ndarray, monkeypatch: pytest.MonkeyPatch):
    """Multinomial draws and drawn indices give means of the same location, spread and skew."""
    sample, found = Sample.of(values), []
    for sparse in (0, 10**9):
        monkeypatch.setattr(draws, "SPARSE", sparse)
        found.append(draws.resampled_means(sample, 40_000, 1, 0))

    by_counts, by_index = found
    error = values.std() / np.sqrt(300)
    assert not np.array_equal(by_counts, by_index)
    for means in found:
        assert means.mean() == pytest.approx(values.mean(), abs=5 * error / 200)
        assert means.std() == pytest.approx(error, rel=0.02)
        assert scipy_stats.skew(means) == pytest.approx(scipy_stats.skew(values) / np.sqrt(300), abs=0.06)
    assert np.quantile(by_counts, [0.025, 0.975]) == pytest.approx(
        np.quantile(by_index, [0.025, 0.975]), abs=error / 20
    )


@pytest.mark.parametrize("heavy", [False, True], ids=["plain", "weighted"])
def test_bins_keep_mean_and_variance(heavy: bool):
    """A large sample of distinct values goes into bins, which keep mean and variance; with weights nearly so."""
    rng = np.random.default_rng(1)
    sample = Sample.of(rng.normal(size=100_000), weights=rng.lognormal(0, 2, 100_000) if heavy else None)

    binned = draws.thinned(sample)

    assert len(binned.counts) <= (260 if heavy else 50)
    assert binned.n == sample.n
    assert binned.mean == pytest.approx(sample.mean, abs=1e-12)
    spreads = [float((s.influence**2 * s.counts).sum()) for s in (sample, binned)]
    assert spreads[1] == pytest.approx(spreads[0], rel=5e-3 if heavy else 1e-12)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200])
def test_bins_of_tiny_and_huge_values(scale: float):
    """Squares of them are out of range; an interval is not."""
    interval = bootstrap_mean(np.arange(10_000) * (scale / 10_000 if scale > 1e-300 else scale), resamples=100)
    assert interval is not None
    assert 0 < interval.low < interval.high


@pytest.mark.parametrize("method", ["bca", "expanded", "percentile"])
@pytest.mark.parametrize("values", [recalls(500), skewed(301), recalls(30)], ids=["histogram", "indices", "small"])
def test_same_seed_same_bits(values: np.ndarray, method: str, monkeypatch: pytest.MonkeyPatch):
    """Order and the size of blocks do not show; another seed does."""
    first = bootstrap_mean(values, method=method, resamples=9001, seed=5)

    assert bootstrap_mean(values[::-1], method=method, resamples=9001, seed=5) == first
    assert bootstrap_mean(sorted(values.tolist()), method=method, resamples=9001, seed=5) == first
    for cells in (1, 777, 10**7):
        monkeypatch.setattr(streams, "_CELLS", cells)
        assert bootstrap_mean(values, method=method, resamples=9001, seed=5) == first
    moved = np.random.default_rng(1).uniform(size=50)  # off the lattice, on which two seeds may well agree
    assert bootstrap_mean(moved, seed=6) != bootstrap_mean(moved, seed=5)


def test_histogram_is_as_good_as_the_values():
    """Counts of values give the same bits as the values; with weights, counts of pairs do."""
    values = recalls(300)
    distinct, counts = np.unique(values, return_counts=True)

    assert bootstrap_mean(distinct[::-1], counts=counts[::-1]) == bootstrap_mean(values)
    assert bootstrap_mean(Sample.of(values)) == bootstrap_mean(values)
    assert bootstrap_mean([0.0, 1.0], counts=[30, 60], weights=[2, 1]) == bootstrap_mean(
        [0.0] * 30 + [1.0] * 60, weights=[2.0] * 30 + [1.0] * 60
    )


@pytest.mark.parametrize("n", [2, 50, 5000])
def test_equal_values_of_a_measure_prove_little(n: int):
    """All ones, or all zeros, have the exact binomial bound; fifty ones are no certainty."""
    exact = scipy_stats.binomtest(n, n).proportion_ci(0.95, method="exact")

    assert bootstrap_mean(np.ones(n), unit_range=True) == pytest.approx((exact.low, 1.0, "binomial"))
    assert bootstrap_mean(np.zeros(n), unit_range=True) == pytest.approx((0.0, 1 - exact.low, "binomial"))
    low, high, method = bootstrap_mean(np.full(n, 0.4), unit_range=True)
    assert (low, high, method) == pytest.approx((0.4 * exact.low, 1 - 0.6 * exact.low, "binomial"))
    assert low < 0.4 < high


def test_equal_values_with_weights_count_as_fewer():
    """The bound of weighted units is that of their effective number, and of clusters that of the clusters."""
    low = bootstrap_mean(np.ones(4), weights=[1, 1, 0.5, 0.5], unit_range=True).low
    clustered = bootstrap_mean(np.ones(30), clusters=np.repeat(np.arange(10), 3), unit_range=True)

    assert low == pytest.approx(0.025 ** (1 / 3.6))
    assert clustered == pytest.approx(bootstrap_mean(np.ones(10), unit_range=True))


def test_equal_differences_have_no_width():
    """Differences that are all equal, up to rounding, give an interval of width 0."""
    assert bootstrap_mean(np.zeros(50)) == (0.0, 0.0, "constant")
    low, high, method = bootstrap_mean([0.7 - 0.6, 0.3 - 0.2, 0.9 - 0.8])
    assert (low, high, method) == pytest.approx((0.1, 0.1, "constant"))
    assert low == high


def test_constant_nights_have_width_in_a_measure():
    """Two nights of ones may differ by as much as either bound; without a range they do not differ."""
    low, high, method = bootstrap_difference(np.ones(50), np.ones(50), unit_range=True)
    bound = 1 - 0.025 ** (1 / 50)

    assert (low, high, method) == pytest.approx((-bound, bound, "mover"))
    assert bootstrap_difference([1.0, 1.0], [0.5, 0.5]) == (-0.5, -0.5, "constant")


def test_one_constant_night_keeps_its_doubt():
    """The interval is wider than that of the other night alone, towards where the constant one may be wrong."""
    ones, others = np.ones(50), recalls(50)
    alone = bootstrap_mean(others, unit_range=True)

    low, high, method = bootstrap_difference(ones, others, unit_range=True)

    assert method == "mover"
    assert low == pytest.approx(alone.low - 1)
    assert high > alone.high - 1


def test_two_samples_are_drawn_apart():
    """Two samples of the same values are not the same sample: their difference has twice the variance."""
    values = recalls(400)

    low, high, _ = bootstrap_difference(values, values, method="percentile")

    one = bootstrap_mean(values, method="percentile")
    assert (high - low) == pytest.approx(np.sqrt(2) * (one.high - one.low), rel=0.05)
    assert bootstrap_difference(values[::-1], values, method="percentile") == (low, high, "percentile")


def test_default_methods():
    """Means of measures are skewed and take BCa, paired differences take the expanded percentiles."""
    assert bootstrap_mean(recalls(50), unit_range=True).method == "bca"
    assert bootstrap_mean(recalls(50)).method == "expanded"
    assert bootstrap_difference(recalls(50, 1), recalls(50, 2)).method == "bca"


def test_expanded_ends_reach_as_far_as_students():
    """The ends are those percentiles of the resampled means that make up for t and for n - 1."""
    values = np.random.default_rng(1).normal(size=9)
    outer = scipy_stats.norm.cdf(-scipy_stats.t.ppf(0.975, 8) * np.sqrt(9 / 8))

    expanded = bootstrap_mean(values, method="expanded")

    further = bootstrap_mean(values, method="percentile", level=1 - 2 * outer)
    assert expanded[:2] == pytest.approx(further[:2], rel=1e-9)


def test_expanded_difference_is_as_wide_as_welchs():
    """Of two samples it is Welch's interval, where the means are nearly normal."""
    rng = np.random.default_rng(1)
    old, new = rng.normal(size=15), 3 * rng.normal(size=40)
    welch = scipy_stats.ttest_ind(new, old, equal_var=False).confidence_interval()

    low, high, method = bootstrap_difference(old, new, method="expanded", resamples=100_000)

    assert method == "expanded"
    assert high - low == pytest.approx(welch.high - welch.low, rel=0.02)


@pytest.mark.parametrize("share", [0.5, 0.95, 0.9999])
@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 49, 50, 200, 201, 10_000_000])
def test_quantiles_as_scipy(share: float, freedom: int):
    """Student's quantiles are scipy's."""
    assert student_quantile(share, freedom) == pytest.approx(scipy_stats.t.ppf((1 + share) / 2, freedom), rel=1e-9)


def test_too_few():
    """Fewer than two units, or two clusters, have no interval."""
    assert bootstrap_mean([]) is None
    assert bootstrap_mean([0.5], unit_range=True) is None
    assert bootstrap_mean([0.5, 0.6], weights=[1, 0]) is None
    assert bootstrap_mean([0.1, 0.2, 0.3], clusters=["a", "a", "a"]) is None
    assert bootstrap_mean([], weights=[], clusters=[]) is None
    assert bootstrap_difference([0.5], recalls(10)) is None
    assert bootstrap_difference([], []) is None


def test_two_values_and_one_resample():
    """The smallest cases still give an interval between the values."""
    for resamples in (1, 2, 1000):
        low, high, _ = bootstrap_mean([0.0, 1.0], resamples=resamples)
        assert 0 <= low <= high <= 1


@pytest.mark.parametrize("method", ["bca", "expanded", "percentile"])
def test_size_of_numbers_does_not_matter(method: str):
    """Values a power of two away from each other have ends that far apart, without overflow."""
    values = skewed(50)
    low, high, _ = bootstrap_mean(values, method=method)

    for factor in (2.0**-1000, 2.0**900):
        assert bootstrap_mean(values * factor, method=method) == (low * factor, high * factor, method)


def test_ten_million_units():
    """A histogram of any size takes no longer than its distinct values, and the interval is that of the normal law."""
    low, high, _ = bootstrap_mean(RECALLS, counts=[2_000_000] * 5, resamples=20_000)

    error = RECALLS.std() / np.sqrt(10_000_000)
    assert (low, high) == pytest.approx((0.5 - 1.96 * error, 0.5 + 1.96 * error), abs=0.06 * error)
