"""Random numbers in fixed blocks: what a resample is drawn from depends on the seed and its number, on nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

# Part of every result: a change of either gives other numbers for the same seed.
BLOCK: Final = 8192
SPARSE: Final = 8  # units per distinct one, below which single units are drawn faster than counts of them (measured)
_CELLS = 1 << 20  # numbers that are drawn at once: 8 MB
SIGNS, MEANS, BASELINE, CANDIDATE, LABELS = range(5)


def blocks(seed: int, purpose: int, resamples: int) -> Iterator[tuple[np.random.Generator, int]]:
    """Give a generator of its own to every block of resamples, and how many resamples the block has.

    purpose: keeps apart what must not be correlated, such as the two samples of a difference.
    """
    for number, first in enumerate(range(0, resamples, BLOCK)):
        state = np.random.SeedSequence(seed, spawn_key=(purpose, number))
        yield np.random.Generator(np.random.PCG64(state)), min(BLOCK, resamples - first)


def strips(resamples: int, width: int) -> Iterator[int]:
    """Part the resamples of a block, for each of which `width` numbers are drawn, so that these fit memory."""
    most = max(1, _CELLS // width)
    for first in range(0, resamples, most):
        yield min(most, resamples - first)
