"""Sums inside units: running ones left to right, as in `reference.py`, so that no bit differs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from docrecall.measures.definition import Floats, Ints

_NEAR = 1 << 16  # ranks may be anything, and mostly are not


def sums(unit: Ints, value: Ints, n_units: int) -> Ints:
    """Whole numbers added up by unit, exactly."""
    out = np.zeros(n_units, dtype=np.int64)
    np.add.at(out, unit, value)
    return out


@dataclass(frozen=True)
class Steps:
    """Running sums of some terms of each unit, in order: `running[begin[u] + n - 1]` is the sum of the first n of u.

    place: the position of each term. reach: how far down it lies; None: every cut takes it.
    """

    unit: Ints
    place: Ints
    reach: Ints | None
    running: Floats
    begin: Ints

    @classmethod
    def of(cls, n_units: int, unit: Ints, place: Ints, reach: Ints | None, terms: Floats) -> Steps:
        """Add up terms that stand grouped by unit, one after the other."""
        size = np.bincount(unit, minlength=n_units)
        begin = np.cumsum(size) - size
        running = terms.copy()
        going, step = np.flatnonzero(size > 1), 1
        while len(going):  # one round per position; units drop out as they end
            at = begin[going] + step
            running[at] += running[at - 1]
            step += 1
            going = going[size[going] > step]
        return cls(unit, place, reach, running, begin)

    def within(self, n_units: int, k: int | None) -> Ints:
        """How many terms of each unit a cut takes: those that lie at most k down."""
        taken = self.unit if k is None or self.reach is None else self.unit[self.reach <= k]
        return np.bincount(taken, minlength=n_units)

    def first(self, n: Ints) -> Ints:
        """The position of the first term of each unit; 0 where n, how many of its terms are taken, is 0."""
        return np.where(n > 0, self._firsts, 0)

    @cached_property
    def _firsts(self) -> Ints:
        return np.append(self.place, 0)[self.begin]

    def total(self, n: Ints) -> Floats:
        """The sum of the first n terms of each unit."""
        # Of the places that stand for no term, the last one is behind all terms and every other is another unit's.
        return np.where(n > 0, self._sums[self.begin + n - 1], 0.0)

    @cached_property
    def _sums(self) -> Floats:
        return np.append(self.running, 0.0)


class Ideal:
    """The judged documents of each unit in the best order: what their gain could be. The same for all cuts."""

    def __init__(self, unit: Ints, grade: Ints, n_units: int) -> None:
        """unit, grade: of each judged document."""
        keep = np.flatnonzero(grade > 0)
        keep = keep[np.lexsort((-grade[keep], unit[keep]))]
        place = numbered(unit[keep], n_units)
        self._n_units = n_units
        self._steps = Steps.of(n_units, unit[keep], place, place, grade[keep] / log2_next(place))
        self._gains: dict[int | None, Floats] = {}

    def gain(self, depth: int | None) -> Floats:
        """The discounted gain of the first documents of each unit; None: of all."""
        if depth not in self._gains:
            self._gains[depth] = self._steps.total(self._steps.within(self._n_units, depth))
        return self._gains[depth]


def numbered(unit: Ints, n_units: int) -> Ints:
    """Number things that stand grouped by unit from 1 on in each."""
    size = np.bincount(unit, minlength=n_units)
    return np.arange(len(unit)) - (np.cumsum(size) - size)[unit] + 1


def log2_next(place: Ints) -> Floats:
    """log2(place + 1) from math.log2: vectorised logarithms differ from it in the last bit for some arguments."""
    values, where = _distinct(place)
    return np.array([math.log2(v + 1) for v in values.tolist()])[where] if len(values) else np.zeros(0)


def _distinct(place: Ints) -> tuple[Ints, Ints]:
    """The positions that occur, rising, and for each thing the number of its own among them."""
    if place.max(initial=0) > _NEAR:
        return np.unique(place, return_inverse=True)
    there = np.bincount(place) > 0  # a tenth of the time that sorting takes
    return np.flatnonzero(there), (np.cumsum(there) - 1)[place]
