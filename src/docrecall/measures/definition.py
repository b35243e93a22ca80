"""What a measure is made of: its name and meaning, what it needs, and its formula over columns of counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class PassageCounts(Protocol):
    """What the kernel counted of gold chunks and passages for one cut: one entry per unit in every array."""

    @property
    def chunk_ids(self) -> Ints:
        """Evidence ids that name a gold chunk."""

    @property
    def chunk_ids_found(self) -> Ints:
        """Those with a gold chunk in the cut."""

    @property
    def gold_chunks(self) -> Ints:
        """Distinct gold chunks in the cut."""

    @property
    def first_gold(self) -> Ints:
        """The smallest position of a gold chunk; 0 when there is none."""

    @property
    def ids(self) -> Ints:
        """Evidence ids."""

    def covered_sum(self, gap: int) -> Floats:
        """Sum of the covered shares of the best alternatives, left to right by evidence id."""

    def ids_covered(self, coverage: float, gap: int) -> Ints:
        """Evidence ids whose best alternative is covered at least to `coverage`."""

    @property
    def gold_text(self) -> Ints:
        """Characters of the chosen alternatives, each once; 0 in units without a gold span."""

    @property
    def covered_text(self) -> Ints:
        """Those of them that the cut gives."""

    @property
    def given_text(self) -> Ints:
        """Characters of the cut; text given twice counts twice."""

    @property
    def distinct_text(self) -> Ints:
        """Characters of the cut, each once."""


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

    @property
    def tokens(self) -> Ints:
        """Tokens of the rows in the cut."""

    @property
    def passages(self) -> PassageCounts:
        """The same for gold chunks and passages."""


@dataclass(frozen=True)
class Parameter:
    """A number that a measure takes: a share above 0 and up to `high`, or a whole number from 0 to `high`."""

    default: float
    high: int
    whole: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value is one that the parameter may have."""
        low = value >= 0 if self.whole else value > 0
        return low and value <= self.high and (not self.whole or value == int(value))

    def __str__(self) -> str:
        return f"a whole number from 0 to {self.high}" if self.whole else f"above 0 and at most {self.high}"


@dataclass(frozen=True)
class Definition:
    """One measure of the registry.

    name, meaning: what is printed and documented. high: the largest value, None when there is no bound.
    no_hits: the value of a scored unit without hits. uses: the counts that the formula reads, so that the kernel
    does no more than it must. formula: NaN marks a unit without a value; no other NaN can come up. params: what may
    be set in brackets, passed to the formula by name. needs: the columns of hits that are read besides the ids,
    where the cut asks for none. labels: which labels the value depends on; None: on hits alone. by_docs: whether the
    measure has a meaning under `@kdocs`.
    """

    name: str
    meaning: str
    formula: Callable[..., Floats]
    uses: tuple[str, ...]
    high: float | None = 1.0
    no_hits: float | None = 0.0
    params: Mapping[str, Parameter] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    labels: str | None = "documents"
    by_docs: bool = True


def ratio(part: Ints, whole: Ints, empty: float = np.nan) -> Floats:
    """Divide integer by integer, once; where there is nothing to divide by, the value is `empty`."""
    found: Floats = part / np.maximum(whole, 1)
    found[whole <= 0] = empty
    return found
