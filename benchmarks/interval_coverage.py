"""Measure how often the intervals hold the true mean, and how often the test sees a difference that is not there.

python benchmarks/interval_coverage.py [--quick] [--method bca|expanded|percentile] [--samples 4000] [--resamples 2000]

Samples are drawn from recall-like populations with a known mean: every shape is tilted until it has that mean. A row
says how many of 100 intervals of level 0.95 held the mean, and on which side the others missed. Standard library and
numpy beside docrecall.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import machine
from docrecall import stats

Floats = npt.NDArray[np.float64]

VALUES = np.array([0, 1 / 3, 1 / 2, 2 / 3, 1])
# How much of each value a population has before it is tilted. `hit` is a measure that is 0 or 1.
SHAPES = {
    "spread": np.array([0.30, 0.10, 0.15, 0.10, 0.35]),
    "ends": np.array([0.44, 0.03, 0.03, 0.03, 0.47]),
    "middle": np.array([0.10, 0.25, 0.30, 0.25, 0.10]),
    "hit": np.array([0.50, 0.00, 0.00, 0.00, 0.50]),
}
LOW, HIGH = 93.0, 97.0
FALSE_LOW, FALSE_HIGH = 4.0, 6.0


def main() -> int:
    """Print the tables of means, of differences and of false positives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples, two shapes: about a minute")
    parser.add_argument("--method", choices=["bca", "expanded", "percentile"], help="default: the one of each function")
    parser.add_argument("--samples", type=int, default=4000, help="samples per row (default 4000: +- 0.7 points)")
    parser.add_argument("--resamples", type=int, default=2000, help="resamples per interval or test (default 2000)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    samples = max(given.samples // 10, 1) if given.quick else given.samples
    shapes = ["spread", "hit"] if given.quick else list(SHAPES)
    rng = np.random.default_rng(given.seed)

    print(machine.describe())
    print(f"{samples} samples per row, {given.resamples} resamples, method {given.method or 'by default'}\n")
    means(rng, shapes, samples, given.resamples, given.method)
    differences(rng, samples, given.resamples, given.method)
    false_positives(rng, samples, given.resamples)
    slices(np.random.default_rng([given.seed, 1]), samples, given.resamples)
    few_units(np.random.default_rng([given.seed, 2]), samples, given.resamples)
    uneven_slices(np.random.default_rng([given.seed, 3]), samples, given.resamples)
    binned(np.random.default_rng([given.seed, 4]), samples, given.resamples)
    return 0


def tilted(shape: Floats, mean: float) -> Floats:
    """Weigh a shape by exp(t x), with the t that gives it the mean."""
    low, high = -60.0, 60.0
    for _ in range(100):
        middle = (low + high) / 2
        shares = shape * np.exp(middle * (VALUES - 0.5))
        shares /= shares.sum()
        low, high = (middle, high) if shares @ VALUES < mean else (low, middle)
    return shares


def histograms(rng: np.random.Generator, shares: Floats, n: int, samples: int) -> Iterator[npt.NDArray[np.int64]]:
    """Draw samples of n values, as counts of the distinct ones."""
    yield from rng.multinomial(n, shares, size=samples)


def means(
    rng: np.random.Generator, shapes: list[str], samples: int, resamples: int, method: stats.Method | None
) -> None:
    """Coverage of the interval of one mean."""
    print("| n | shape | mean | covered | too high | too low | goal 93-97 |")
    print("|--:|---|--:|--:|--:|--:|---|")
    for n in (50, 500, 5000):
        for shape in shapes:
            for mean in (0.3, 0.5, 0.7, 0.85, 0.9, 0.95, 0.97):
                shares = tilted(SHAPES[shape], mean)
                seen: Counter[str] = Counter()
                for number, counts in enumerate(histograms(rng, shares, n, samples)):
                    found = stats.bootstrap_mean(
                        VALUES, counts=counts, method=method, resamples=resamples, seed=number, unit_range=True
                    )
                    seen[verdict(found, mean)] += 1
                row(f"{n} | {shape} | {mean:g}", seen, samples, goal=n > 50 or mean <= 0.85)
    print()


def differences(rng: np.random.Generator, samples: int, resamples: int, method: stats.Method | None) -> None:
    """Coverage of the intervals of a paired difference, and of two nights that are not paired."""
    print("| n | pairs that differ | mean | covered | too high | too low | goal 93-97 |")
    print("|--:|--:|--:|--:|--:|--:|---|")
    old, new = tilted(SHAPES["spread"], 0.6), tilted(SHAPES["spread"], 0.65)
    gaps = np.subtract.outer(VALUES, VALUES).T.ravel()
    for n in (50, 500, 5000):
        for same in (0.0, 0.6, 0.8):  # two runs of one log mostly agree
            paired = (same * np.diag(old) + (1 - same) * np.outer(old, new)).ravel()
            truth = float(paired @ gaps)
            seen: Counter[str] = Counter()
            for number, counts in enumerate(rng.multinomial(n, paired, size=samples)):
                found = stats.bootstrap_mean(gaps, counts=counts, method=method, resamples=resamples, seed=number)
                seen[verdict(found, truth)] += 1
            differ = n * float(paired @ (gaps != 0))
            row(f"{n} | {differ:.0f} | {truth:.2g}", seen, samples, goal=differ >= 10)
    print("\n| n of either night | difference | covered | too high | too low | goal 93-97 |")
    print("|--:|--:|--:|--:|--:|---|")
    for n in (50, 500, 5000):
        for mean in (0.6, 0.85):
            old, new = tilted(SHAPES["spread"], mean), tilted(SHAPES["spread"], mean + 0.05)
            seen = Counter()
            nights = zip(histograms(rng, old, n, samples), histograms(rng, new, n, samples), strict=True)
            for number, (first, second) in enumerate(nights):
                found = stats.bootstrap_difference(
                    stats.Sample.of(VALUES, counts=first),
                    stats.Sample.of(VALUES, counts=second),
                    method=method or "bca",
                    resamples=resamples,
                    seed=number,
                    unit_range=True,
                )
                seen[verdict(found, 0.05)] += 1
            row(f"{n} | {mean:g} to {mean + 0.05:g}", seen, samples, goal=n > 50 or mean < 0.85)
    print()


def false_positives(rng: np.random.Generator, samples: int, resamples: int) -> None:
    """How often the test has p <= 0.05 where both runs are equally good."""
    print("| n | pairs that differ | p <= 0.05 | goal 4-6 |")
    print("|--:|---|--:|---|")
    shares = tilted(SHAPES["spread"], 0.6)
    gaps = np.subtract.outer(VALUES, VALUES).ravel()
    for n in (50, 500):
        for same in (0.0, 0.6, 0.9):
            pairs = same * np.diag(shares) + (1 - same) * np.outer(shares, shares)
            drawn = rng.multinomial(n, pairs.ravel(), size=samples)
            false = sum(
                stats.sign_flip_test(gaps, counts=counts, resamples=resamples, seed=number) <= 0.05
                for number, counts in enumerate(drawn)
            )
            rate = 100 * false / samples
            differ = n * (1 - same) * (1 - float((shares**2).sum()))
            reached = word(FALSE_LOW <= rate <= FALSE_HIGH) if differ >= 10 else "measured"
            print(f"| {n} | {differ:.0f} | {rate:.1f} | {reached} |", flush=True)


def slices(rng: np.random.Generator, samples: int, resamples: int) -> None:
    """How often a slice that is like the rest of its run has p <= 0.05."""
    print("\n| units of the slice | of the run | shape | mean | p <= 0.05 | goal 4-6 |")
    print("|--:|--:|---|--:|--:|---|")
    for n, whole in ((20, 500), (100, 500), (100, 10_000)):
        for shape, mean in (("spread", 0.6), ("spread", 0.9), ("hit", 0.6), ("hit", 0.9)):
            shares = tilted(SHAPES[shape], mean)
            inside, outside = (rng.multinomial(size, shares, size=samples) for size in (n, whole - n))
            false = 0
            for number, counts in enumerate(zip(inside, outside, strict=True)):
                sides = [stats.Sample.of(VALUES, counts=side) for side in counts]
                false += stats.permutation_tests(sides, of=[0], resamples=resamples, seed=number)[0] <= 0.05
            rate = 100 * false / samples
            print(f"| {n} | {whole} | {shape} | {mean:g} | {rate:.1f} | {word(FALSE_LOW <= rate <= FALSE_HIGH)} |")


def uneven_slices(rng: np.random.Generator, samples: int, resamples: int) -> None:
    """The same where the queries of the slice are asked more often than others, or less, or weigh otherwise."""
    print("\n| queries of the slice | of the run | requests of each query in it, beside it | p <= 0.05 | goal 4-6 |")
    print("|--:|--:|--:|--:|---|")
    shares = tilted(SHAPES["spread"], 0.6)
    for n, whole, inside, outside in ((50, 500, 20, 1), (50, 500, 1, 20), (100, 500, 5, 5)):
        false = 0
        for number in range(samples // 4):
            sides = []
            for size, times in ((n, inside), (whole - n, outside)):
                asked = 1 + rng.poisson(times - 1, size)
                queries = np.repeat(np.arange(size), asked)
                values = np.repeat(rng.choice(VALUES, size, p=shares), asked)
                sides.append(stats.Sample.of(values, clusters=queries))
            false += stats.permutation_tests(sides, of=[0], resamples=resamples, seed=number)[0] <= 0.05
        rate = 400 * false / samples
        reached = word(FALSE_LOW <= rate <= FALSE_HIGH)
        print(f"| {n} | {whole} | {inside}, {outside} | {rate:.1f} | {reached} |", flush=True)


def few_units(rng: np.random.Generator, samples: int, resamples: int) -> None:
    """Coverage below 50 units, or clusters, where no bootstrap has much to go by."""
    print("\n| n | mean, spread | covered | difference, most pairs equal | covered |\n|--:|--:|--:|--:|--:|")
    old, new = tilted(SHAPES["spread"], 0.6), tilted(SHAPES["spread"], 0.65)
    paired = (0.4 * np.diag(old) + 0.6 * np.outer(old, new)).ravel()
    gaps = np.subtract.outer(VALUES, VALUES).T.ravel()
    truth = float(paired @ gaps)
    for n in (2, 5, 10, 20):
        means_, gaps_ = 0, 0
        for number, counts in enumerate(rng.multinomial(n, old, size=samples)):
            found = stats.bootstrap_mean(VALUES, counts=counts, resamples=resamples, seed=number, unit_range=True)
            means_ += verdict(found, 0.6) == "covered"
        for number, counts in enumerate(rng.multinomial(n, paired, size=samples)):
            found = stats.bootstrap_mean(gaps, counts=counts, resamples=resamples, seed=number)
            gaps_ += verdict(found, truth) == "covered"
        print(f"| {n} | 0.6 | {100 * means_ / samples:.1f} | {truth:.2g} | {100 * gaps_ / samples:.1f} |", flush=True)


def binned(rng: np.random.Generator, samples: int, resamples: int) -> None:
    """Coverage where no two values are equal and there are so many that resamples are drawn from bins."""
    print("\n| n | no two values equal | mean | covered | too high | too low | goal 93-97 |")
    print("|--:|---|--:|--:|--:|--:|---|")
    n = 6000
    for a, b in ((0.1, 2.0), (0.3, 0.3), (5.0, 0.3)):
        seen: Counter[str] = Counter()
        for number in range(samples):
            found = stats.bootstrap_mean(rng.beta(a, b, n), resamples=resamples, seed=number, unit_range=True)
            seen[verdict(found, a / (a + b))] += 1
        row(f"{n} | measure, beta({a:g}, {b:g}) | {a / (a + b):.2g}", seen, samples, goal=True)
    for tail in (0.5, 1.0):
        seen, truth = Counter(), float(np.exp(tail**2 / 2))
        for number in range(samples):
            found = stats.bootstrap_mean(rng.lognormal(0, tail, n), resamples=resamples, seed=number)
            seen[verdict(found, truth)] += 1
        row(f"{n} | differences, lognormal({tail:g}) | {truth:.2g}", seen, samples, goal=True)


def verdict(found: stats.Interval, truth: float) -> str:
    """Whether the interval holds the truth, up to rounding, or on which side it lies."""
    if found.low > truth + 1e-12:
        return "high"
    return "low" if found.high < truth - 1e-12 else "covered"


def row(title: str, seen: Counter[str], samples: int, *, goal: bool) -> None:
    """Print one row of a table of coverage; what is measured without a goal says so."""
    covered, high, low = (100 * seen[key] / samples for key in ("covered", "high", "low"))
    reached = word(LOW <= covered <= HIGH) if goal else "measured"
    print(f"| {title} | {covered:.1f} | {high:.1f} | {low:.1f} | {reached} |", flush=True)


def word(reached: bool) -> str:
    """Say whether a goal was reached."""
    return "reached" if reached else "missed"


if __name__ == "__main__":
    sys.exit(main())
