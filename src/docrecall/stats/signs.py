"""The sign-flip test of paired differences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from docrecall.exact import exact_sum
from docrecall.measures.definition import Floats, Ints
from docrecall.stats.arguments import check_resampling
from docrecall.stats.draws import bins, is_large
from docrecall.stats.sample import ROUNDING, Sample
from docrecall.stats.streams import BLOCK, SIGNS, blocks

EXACT = 20  # non-zero pairs: 2^19 sums, since each has a mirror image
_FEW = 200  # values that occur less often are flipped one by one: a binomial draw costs about so many flips (measured)
_GROUP = 8  # flips that one random byte decides
_GROUPS = 512  # tables of 256 sums that are held at once: 1 MB, and 4 MB of random bytes


def sign_flip_test(
    differences: npt.ArrayLike | Sample,
    *,
    counts: npt.ArrayLike | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> float | None:
    """Test whether paired differences have mean 0: the two-sided p value of the sign-flip test.

    differences: one finite number per pair, in any order; or a `Sample`, whose totals are flipped: weight times
    difference of each pair, or the sum of that over each cluster.
    counts: how often each of them occurs, where they are the values of a histogram.

    If neither side is better, each difference might as well have had the other sign (Fisher 1935). p is the share of
    sign patterns whose sum lies at least as far from 0 as the one that was seen. Up to 20 differences that are not 0,
    all patterns are counted; beyond, p = (1 + hits) / (1 + resamples) over random ones (Phipson and Smyth 2010), which
    is never 0. Pairs without a difference change nothing. Sums that differ by less than 1e-12 of the sum of absolute
    differences tie: 0.1 + 0.2 reaches 0.3.

    More than 20,000 differences of more than 256 distinct sizes are flipped in some 250 bins of nearly equal sizes,
    each at the root of their mean square, which keeps the variance of the sums.

    Returns 1.0 if all differences are 0, None if there are none. Raises UsageError for NaN, null or infinite
    differences, bad counts, resamples below 1 and seeds below 0.
    """
    sample = differences if isinstance(differences, Sample) else Sample.of(differences, counts=counts)
    return sign_flip(sample, resamples, seed).p


class SignFlip(NamedTuple):
    """A p value, and how it was found: "exact", "Monte Carlo", or "Monte Carlo, binned"; None: there was no unit."""

    p: float | None
    kind: str | None


def sign_flip(sample: Sample, resamples: int, seed: int) -> SignFlip:
    """Do what `sign_flip_test` says, and tell how."""
    check_resampling(resamples, seed)
    if not sample.n:
        return SignFlip(None, None)
    sizes = _sizes(sample)
    whole = float(exact_sum(sizes.totals, sizes.counts))
    reached = abs(float(exact_sum(sample.totals, sample.counts))) - ROUNDING * whole
    if sizes.n <= EXACT:
        return SignFlip(_share_of_patterns(np.repeat(sizes.totals, sizes.counts), reached), "exact")
    binned = is_large(sizes.counts)
    values, times = _binned(sizes) if binned else (sizes.totals, sizes.counts)
    hits = sum(
        int((np.abs(_flipped_sums(values, times, generator, size)) >= reached).sum())
        for generator, size in blocks(seed, SIGNS, resamples)
    )
    return SignFlip((1 + hits) / (1 + resamples), "Monte Carlo, binned" if binned else "Monte Carlo")


def _sizes(sample: Sample) -> Sample:
    """The absolute values of what is not 0."""
    moved = sample.totals != 0
    alone = sample.n == len(sample.counts)  # each once: plain sorting takes a third of the time
    return Sample.of(np.abs(sample.totals[moved]), counts=None if alone else sample.counts[moved])


def _binned(sizes: Sample) -> tuple[Floats, Ints]:
    starts = bins(sizes.totals, sizes.counts)
    times: Ints = np.add.reduceat(sizes.counts, starts)
    squares = np.add.reduceat((sizes.totals / sizes.scale) ** 2 * sizes.counts, starts)
    return np.sqrt(squares / times) * sizes.scale, times


def _share_of_patterns(values: Floats, reached: float) -> float:
    sums = values[:1]  # the other sign of the first value gives the mirror image of every sum
    for value in values[1:]:
        sums = np.concatenate([sums + value, sums - value])
    return float((np.abs(sums) >= reached).mean()) if len(values) else 1.0


def _flipped_sums(values: Floats, counts: Ints, generator: np.random.Generator, size: int) -> Floats:
    """Sums of the values with random signs. Terms are added one after the other, so no library's order shows."""
    sums = np.zeros(size)
    many = counts >= _FEW
    for value, count in zip(values[many].tolist(), counts[many].tolist(), strict=True):
        sums += value * (2 * generator.binomial(count, 0.5, size) - count)
    single = np.repeat(values[~many], counts[~many])
    grouped = np.concatenate([single, np.zeros(-len(single) % _GROUP)]).reshape(-1, _GROUP)
    for first in range(0, len(grouped), _GROUPS):
        tables = _sums_of_bytes(grouped[first : first + _GROUPS])
        # Whole words per group: how many groups are drawn at once then leaves the stream of bytes as it is.
        words = generator.bit_generator.random_raw(len(tables) * (BLOCK // 8)).astype("<u8")
        drawn = words.view(np.uint8).reshape(len(tables), BLOCK)[:, :size]
        for table, row in zip(tables, drawn, strict=True):
            sums += table[row]
    return sums


def _sums_of_bytes(groups: Floats) -> Floats:
    """For each group of eight values, its sum under each of the 256 patterns of signs."""
    tables = np.zeros((len(groups), 1))
    for column in range(_GROUP):
        value = groups[:, column : column + 1]
        tables = np.concatenate([tables + value, tables - value], axis=1)
    return tables
