"""Sums inside units: running ones left to right, as in `reference.py`, so that no bit differs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from docrecall.measures.definition import Floats, Ints


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

    def total(self, n: Ints) -> Floats:
        """The sum of the first n terms of each unit."""
        out = np.zeros(len(n))
        some = np.flatnonzero(n)
        out[some] = self.running[self.begin[some] + n[some] - 1]
        return out
