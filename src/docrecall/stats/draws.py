"""Bootstrap means: one mean for each resample of the units, drawn with replacement."""

from __future__ import annotations

from math import sqrt

import numpy as np

from docrecall.measures.definition import Floats, Ints
from docrecall.stats.sample import Sample
from docrecall.stats.streams import SPARSE, blocks, strips

_BINS, _FEW_BINS = 128, 24  # of each kind
_LARGE = 20_000
_MANY = 5_000  # units from which on drawing from bins is cheaper than drawing indices


def resampled_means(sample: Sample, resamples: int, seed: int, purpose: int) -> Floats:
    """Draw `sample.n` units with replacement `resamples` times; give the (weighted) mean of each resample.

    A histogram is resampled by multinomial draws, a sample of mostly distinct units by drawing indices.
    """
    sample = thinned(sample)
    few = sample.n > SPARSE * len(sample.counts)
    shares = sample.counts / sample.n
    members = np.empty(0, np.int64) if few else np.repeat(np.arange(len(sample.counts)), sample.counts)
    width = len(sample.counts) if few else sample.n
    means = np.empty(resamples)
    done = 0
    for generator, size in blocks(seed, purpose, resamples):
        for rows in strips(size, width):
            if few:
                drawn = generator.multinomial(sample.n, shares, size=rows)
                found = _ratio(drawn * sample.totals, None if sample.is_plain else drawn * sample.weights, sample.n)
            else:
                picked = members[generator.integers(0, sample.n, size=(rows, sample.n))]
                found = _ratio(sample.totals[picked], None if sample.is_plain else sample.weights[picked], sample.n)
            means[done : done + rows] = found
            done += rows
    return means


def _ratio(totals: Floats, weights: Floats | None, n: int) -> Floats:
    # Not a matrix product: its last bits depend on the number of rows and of threads. A sum along a row does not.
    whole: Floats = totals.sum(axis=1)
    return whole / (n if weights is None else weights.sum(axis=1))


def thinned(sample: Sample) -> Sample:
    """Put many distinct units of a large sample into bins, each at the mean of what is in it.

    Bins of equal width keep long tails apart, and bins of equal counts the bulk beside them. Mean and variance stay:
    for what they lose inside the bins, some thousandths, these are moved apart. Not where weights are uneven; such
    units take some 250 bins, others some 40, and lose less. They are binned by their pull on the mean, which decides
    to the first order.
    """
    most = _FEW_BINS if sample.is_plain else _BINS
    if not is_large(sample.counts, _MANY, most):
        return sample
    pull = sample.influence
    order = np.arange(len(pull)) if sample.is_plain else np.argsort(pull, kind="stable")
    counts = sample.counts[order]
    starts = bins(pull[order], counts, most)
    sizes: Ints = np.add.reduceat(counts, starts)
    totals = np.add.reduceat(sample.totals[order] * counts, starts) / sizes
    weights = np.add.reduceat(sample.weights[order] * counts, starts) / sizes
    if sample.is_plain:
        apart, each = totals - sample.mean, sample.totals - sample.mean
        largest = float(np.abs(each).max())  # squares of tiny or huge values are out of range
        totals = sample.mean + apart * sqrt(_squares(each / largest, counts) / _squares(apart / largest, sizes))
    return Sample(totals, weights, sizes, sample.low, sample.high)


def _squares(apart: Floats, counts: Ints) -> float:
    return float((apart * apart * counts).sum())


def bins(values: Floats, counts: Ints, n_bins: int = _BINS) -> Ints:
    """Where each bin of distinct values begins, of equal width or counts; values in rising order, at least one."""
    by_width = np.floor((values - values[0]) / max(float(np.ptp(values)), np.finfo(np.float64).tiny) * n_bins)
    by_count = (np.cumsum(counts) - counts) * n_bins // int(counts.sum())
    changes = np.diff(by_width.astype(np.int64), prepend=-1) | np.diff(by_count, prepend=-1)
    starts: Ints = np.flatnonzero(changes)
    return starts


def is_large(counts: Ints, most: int = _LARGE, n_bins: int = _BINS) -> bool:
    """Whether bins take the place of distinct units: these are many, of more than `most`. counts: of each of them."""
    return len(counts) > 2 * n_bins and int(counts.sum()) > most
