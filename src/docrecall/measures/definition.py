"""What a measure is made of: its name and meaning, what it needs, and its formula over columns of counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Counts(Protocol):
    """What the kernel counted for one cut: one entry per unit in every array. Symbols as in `reference.py`."""

    @property
    def relevant(self) -> Ints:
        """|R|; at least 1 in every unit that gets a value."""

    @property
    def places(self) -> Ints:
        """K."""

    @property
    def found(self) -> Ints:
        """|D n R|."""

    @property
    def first_place(self) -> Ints:
        """The smallest p(d) of a relevant document; 0 when none was found."""

    @property
    def precision_sum(self) -> Floats:
        """Sum over found d of (relevant at positions <= p(d)) / p(d), left to right."""

    @property
    def gain(self) -> Floats:
        """Discounted gain of D, left to right by position."""

    @property
    def ideal_gain(self) -> Floats:
        """Discounted gain of the ideal order, cut where the measure's cut says so."""

    @property
    def judged(self) -> Ints:
        """Documents of D that have a judgement."""

    @property
    def docs(self) -> Ints:
        """|D|."""

    @property
    def chunks(self) -> Ints:
        """Rows in the cut."""

    @property
    def relevant_chunks(self) -> Ints:
        """Rows in the cut that belong to relevant documents."""

    @property
    def top_chunks(self) -> Ints:
        """Rows in the cut that belong to the document with the most rows there."""


@dataclass(frozen=True)
class Definition:
    """One measure of the registry.

    name, meaning: what is printed and documented. high: the largest value, None when there is no bound.
    no_hits: the value of a scored unit without hits. uses: the counts that the formula reads, so that the kernel
    does no more than it must. formula: NaN marks a unit without a value; no other NaN can come up.
    """

    name: str
    meaning: str
    formula: Callable[[Counts], Floats]
    uses: tuple[str, ...]
    high: float | None = 1.0
    no_hits: float | None = 0.0


def ratio(part: Ints, whole: Ints, empty: float = np.nan) -> Floats:
    """Divide integer by integer, once; where there is nothing to divide by, the value is `empty`."""
    out = np.full(len(part), empty)
    np.divide(part, whole, out=out, where=whole > 0)
    return out
