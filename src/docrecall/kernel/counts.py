"""Counts under a cut: what the formulas of the measures read, for all units of a batch at once.

All of a batch's cuts of one kind share a `Family`, which places each judged document once; a cut then only looks up
how far it reaches. Sums of fractions run left to right inside a unit, as in `reference.py`, so that no bit differs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from docrecall.kernel.match import Matched
from docrecall.measures.definition import Floats, Ints
from docrecall.measures.grammar import Cut, CutUnit

# The counts that look at more than the rows of judged documents, under each kind of cut.
_ALL_ROWS: dict[CutUnit, frozenset[str]] = {
    "chunks": frozenset({"docs", "top_chunks", "chunks"}),
    "docs": frozenset(
        {"found", "first_place", "precision_sum", "gain", "judged", "docs", "chunks", "relevant_chunks", "top_chunks"}
    ),
    "all": frozenset({"docs", "top_chunks"}),
}


def looks_at_all_rows(count: str, unit: CutUnit) -> bool:
    """Whether a count needs every row of a unit, and not only those of judged documents."""
    return count in _ALL_ROWS[unit]


@dataclass(frozen=True)
class Steps:
    """Running sums of some terms of each unit, in order: `running[begin[u] + n - 1]` is the sum of the first n of u."""

    unit: Ints
    place: Ints
    running: Floats
    begin: Ints

    @classmethod
    def of(cls, n_units: int, unit: Ints, place: Ints, terms: Floats) -> Steps:
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
        return cls(unit, place, running, begin)

    def within(self, n_units: int, k: int | None) -> Ints:
        """How many terms of each unit stand at a place <= k."""
        reached = self.unit if k is None else self.unit[self.place <= k]
        return np.bincount(reached, minlength=n_units)

    def total(self, n: Ints) -> Floats:
        """The sum of the first n terms of each unit."""
        out = np.zeros(len(n))
        some = np.flatnonzero(n)
        out[some] = self.running[self.begin[some] + n[some] - 1]
        return out


class Family:
    """The judged documents of a batch, placed by one kind of cut."""

    def __init__(self, matched: Matched, unit: CutUnit, min_relevance: int) -> None:
        self.m, self.kind, self.min_relevance = matched, unit, min_relevance
        self.n_units = len(matched.units)
        self.n_hits: Ints = np.diff(matched.starts)
        first = matched.first_hits
        self.label = matched.hit_label[first]
        self.found_unit = matched.label_unit[self.label]
        self.found_grade = matched.grade[self.label]
        self.place = self._place(matched.hit_row[first], matched.hit_rank[first])

    def _place(self, row: Ints, rank: Ints) -> Ints:
        match self.kind:
            case "chunks":
                return rank
            case "docs":
                return self.m.doc_places(self.found_unit, row)
            case "all":
                return row - self.m.starts[self.found_unit] + 1

    @cached_property
    def relevant(self) -> Ints:
        """|R| of each unit."""
        return np.bincount(self.m.label_unit[self.m.grade >= self.min_relevance], minlength=self.n_units)

    @cached_property
    def relevant_steps(self) -> Steps:
        """Relevant documents in order; terms: how many so far / place."""
        keep = self.found_grade >= self.min_relevance
        unit, place = self.found_unit[keep], self.place[keep]
        size = np.bincount(unit, minlength=self.n_units)
        number = np.arange(len(unit)) - (np.cumsum(size) - size)[unit] + 1
        return Steps.of(self.n_units, unit, place, number / place)

    @cached_property
    def gain_steps(self) -> Steps:
        """Documents with a gain in order; terms: grade / log2(place + 1)."""
        keep = self.found_grade > 0
        unit, place = self.found_unit[keep], self.place[keep]
        return Steps.of(self.n_units, unit, place, self.found_grade[keep] / _log2_next(place))

    @cached_property
    def ideal_steps(self) -> Steps:
        """All judged documents with a gain, best grade first."""
        keep = np.flatnonzero(self.m.grade > 0)
        keep = keep[np.lexsort((-self.m.grade[keep], self.m.label_unit[keep]))]
        unit = self.m.label_unit[keep]
        size = np.bincount(unit, minlength=self.n_units)
        place = np.arange(len(unit)) - (np.cumsum(size) - size)[unit] + 1
        return Steps.of(self.n_units, unit, place, self.m.grade[keep] / _log2_next(place))

    @cached_property
    def relevant_rows(self) -> tuple[Ints, Ints]:
        """(unit, place) of every row of a relevant document; under a documents cut the place of its document."""
        keep = self.m.grade[self.m.hit_label] >= self.min_relevance
        label = self.m.hit_label[keep]
        if self.kind == "docs":
            place_of = np.zeros(len(self.m.grade), dtype=np.int64)
            place_of[self.label] = self.place
            return self.m.label_unit[label], place_of[label]
        return self.m.label_unit[label], self.m.hit_rank[keep]

    @cached_property
    def groups(self) -> tuple[Ints, Ints, Ints]:
        """(unit, place, rows) of every distinct document of each unit, judged or not."""
        keyed = self.m.all_rows.select("row", "doc_id", pl.Series("unit", self.m.row_unit))
        each = keyed.group_by("unit", "doc_id").agg(pl.col("row").min(), pl.len().cast(pl.Int64).alias("n"))
        unit, row = each["unit"].to_numpy(), each["row"].to_numpy().astype(np.int64)
        return unit, self.m.docs_before[row + 1] - self.m.docs_before[self.m.starts[unit]], each["n"].to_numpy()


class CutCounts:
    """One cut of a family: implements `measures.definition.Counts`."""

    def __init__(self, family: Family, cut: Cut) -> None:
        self.f, self.cut = family, cut

    def _reached(self, place: Ints) -> npt.NDArray[np.bool_]:
        return np.full(len(place), True) if self.cut.k is None else place <= self.cut.k

    def _of_unit(self, unit: Ints, place: Ints) -> Ints:
        return np.bincount(unit[self._reached(place)], minlength=self.f.n_units)

    @property
    def relevant(self) -> Ints:
        return self.f.relevant

    @cached_property
    def places(self) -> Ints:
        return self.f.n_hits if self.cut.k is None else np.full(self.f.n_units, self.cut.k)

    @cached_property
    def found(self) -> Ints:
        return self.f.relevant_steps.within(self.f.n_units, self.cut.k)

    @cached_property
    def first_place(self) -> Ints:
        steps, out = self.f.relevant_steps, np.zeros(self.f.n_units, dtype=np.int64)
        some = np.flatnonzero(self.found)
        out[some] = steps.place[steps.begin[some]]
        return out

    @cached_property
    def precision_sum(self) -> Floats:
        return self.f.relevant_steps.total(self.found)

    @cached_property
    def gain(self) -> Floats:
        return self.f.gain_steps.total(self.f.gain_steps.within(self.f.n_units, self.cut.k))

    @cached_property
    def ideal_gain(self) -> Floats:
        return self.f.ideal_steps.total(self.f.ideal_steps.within(self.f.n_units, self.cut.k))

    @cached_property
    def judged(self) -> Ints:
        return self._of_unit(self.f.found_unit, self.f.place)

    @cached_property
    def relevant_chunks(self) -> Ints:
        return self._of_unit(*self.f.relevant_rows)

    @cached_property
    def chunks(self) -> Ints:
        if self.cut.unit == "all":
            return self.f.n_hits
        if self.cut.unit == "chunks":
            return self._of_unit(self.f.m.row_unit, self.f.m.all_rows["rank"].to_numpy())
        unit, place, size = self.f.groups
        reached = self._reached(place)
        return np.bincount(unit[reached], size[reached], minlength=self.f.n_units).astype(np.int64)

    @cached_property
    def docs(self) -> Ints:
        if self.cut.unit == "chunks":
            begin, before = self.f.m.starts[:-1], self.f.m.docs_before
            reached: Ints = before[begin + self.chunks] - before[begin]
            return reached
        return self.f.m.distinct_docs if self.cut.k is None else np.minimum(self.f.m.distinct_docs, self.cut.k)

    @cached_property
    def top_chunks(self) -> Ints:
        out = np.zeros(self.f.n_units, dtype=np.int64)
        if self.cut.unit == "chunks":
            rows = self.f.m.all_rows.select("rank", "doc_id", pl.Series("unit", self.f.m.row_unit))
            each = rows.filter(pl.col("rank") <= self.cut.k).group_by("unit", "doc_id").len()
            np.maximum.at(out, each["unit"].to_numpy(), each["len"].to_numpy().astype(np.int64))
        else:
            unit, place, size = self.f.groups
            reached = self._reached(place)
            np.maximum.at(out, unit[reached], size[reached])
        return out


def _log2_next(place: Ints) -> Floats:
    """log2(place + 1) from math.log2: vectorised logarithms differ from it in the last bit for some arguments."""
    values, where = np.unique(place, return_inverse=True)
    return np.array([math.log2(v + 1) for v in values.tolist()])[where] if len(values) else np.zeros(0)
