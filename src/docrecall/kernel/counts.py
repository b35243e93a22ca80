"""Counts under a cut: what the formulas of the measures read, for all units of a batch at once.

All of a batch's cuts of one kind share a `Placed`, which places each judged document once; a cut then only looks up
how far it reaches.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from docrecall.kernel.family import Family, within
from docrecall.kernel.match import firsts
from docrecall.kernel.passages import CutPassages, Passages
from docrecall.kernel.steps import Steps, log2_next, numbered, sums
from docrecall.measures.definition import Floats, Ints, Mask
from docrecall.measures.grammar import Cut


class Placed:
    """The judged documents of a batch, placed by one kind of cut."""

    def __init__(self, family: Family, min_relevance: int) -> None:
        self.f, self.m, self.min_relevance = family, family.m, min_relevance
        self.n_units = family.n_units
        hits = self.m.met[firsts(self.m.hit_target[self.m.met], len(self.m.labels))]
        label, place = self.m.hit_target[hits], family.place(hits)
        unit = self.m.label_unit[label]
        # Rows rise by unit and rank, so this mostly is the order already; other versions of a document can disturb it.
        if len(unit) and not ((np.diff(unit) > 0) | (np.diff(place) > 0)).all():
            order = np.lexsort((place, unit))
            hits, label, place, unit = hits[order], label[order], place[order], unit[order]
        self.hits, self.label, self.place, self.unit = hits, label, place, unit
        self.reach = family.reach(self.hits)
        self.grade = self.m.grade[self.label]

    @cached_property
    def relevant(self) -> Ints:
        """|R| of each unit."""
        return np.bincount(self.m.label_unit[self.m.grade >= self.min_relevance], minlength=self.n_units)

    def _steps(self, keep: Mask, terms: Floats) -> Steps:
        reach = None if self.reach is None else self.reach[keep]
        return Steps.of(self.n_units, self.unit[keep], self.place[keep], reach, terms)

    @cached_property
    def relevant_steps(self) -> Steps:
        """Relevant documents in order; terms: how many so far / place."""
        keep = self.grade >= self.min_relevance
        return self._steps(keep, numbered(self.unit[keep], self.n_units) / self.place[keep])

    @cached_property
    def gain_steps(self) -> Steps:
        """Documents with a gain in order; terms: grade / log2(place + 1)."""
        keep = self.grade > 0
        return self._steps(keep, self.grade[keep] / log2_next(self.place[keep]))

    @cached_property
    def relevant_rows(self) -> tuple[Ints, Ints | None]:
        """(unit, reach) of every row of a relevant document."""
        met = self.m.met
        met = met[self.m.grade[self.m.hit_target[met]] >= self.min_relevance]
        return self.m.label_unit[self.m.hit_target[met]], self.f.reach(met)

    @cached_property
    def passages(self) -> Passages:
        """The passages of the batch."""
        return Passages(self.f)


class CutCounts:
    """One cut: implements `measures.definition.Counts`."""

    def __init__(self, placed: Placed, cut: Cut) -> None:
        self.placed, self.f, self.cut, self.k = placed, placed.f, cut, cut.k

    @cached_property
    def passages(self) -> CutPassages:
        return CutPassages(self.placed.passages, self.cut)

    def _of_unit(self, unit: Ints, reach: Ints | None) -> Ints:
        return np.bincount(unit[within(reach, len(unit), self.k)], minlength=self.f.n_units)

    @property
    def relevant(self) -> Ints:
        return self.placed.relevant

    @cached_property
    def places(self) -> Ints:
        return np.full(self.f.n_units, self.k) if self.cut.unit in ("chunks", "docs") else self.chunks

    @cached_property
    def found(self) -> Ints:
        return self.placed.relevant_steps.within(self.f.n_units, self.k)

    @cached_property
    def first_place(self) -> Ints:
        return self.placed.relevant_steps.first(self.found)

    @cached_property
    def precision_sum(self) -> Floats:
        return self.placed.relevant_steps.total(self.found)

    @cached_property
    def gain(self) -> Floats:
        return self.placed.gain_steps.total(self.placed.gain_steps.within(self.f.n_units, self.k))

    @cached_property
    def ideal_gain(self) -> Floats:
        return self.f.m.ideal.gain(self.k if self.cut.unit in ("chunks", "docs") else None)

    @cached_property
    def judged(self) -> Ints:
        return self._of_unit(self.placed.unit, self.placed.reach)

    @cached_property
    def relevant_chunks(self) -> Ints:
        return self._of_unit(*self.placed.relevant_rows)

    @cached_property
    def chunks(self) -> Ints:
        if self.cut.unit in ("context", "all"):
            return self.f.n_hits
        if self.cut.unit == "docs":
            docs = self.f.docs.filter(pl.col("place") <= self.k)
            return np.bincount(docs["unit"].to_numpy(), docs["n"].to_numpy(), self.f.n_units).astype(np.int64)
        return np.bincount(self.f.m.row_unit[self.f.rows(self.k)], minlength=self.f.n_units)

    @cached_property
    def docs(self) -> Ints:
        if self.cut.unit in ("chunks", "tokens"):
            begin, before = self.f.m.starts[:-1], self.f.m.docs_before
            reached: Ints = before[begin + self.chunks] - before[begin]
            return reached
        return self.f.m.distinct_docs if self.k is None else np.minimum(self.f.m.distinct_docs, self.k)

    @cached_property
    def top_chunks(self) -> Ints:
        if self.cut.unit in ("chunks", "tokens"):
            each = (
                self.f.keyed.filter(pl.Series(self.f.rows(self.k)))
                .group_by("unit", "doc_id")
                .agg(pl.len().cast(pl.Int64).alias("n"))
            )
        else:
            each = self.f.docs if self.k is None else self.f.docs.filter(pl.col("place") <= self.k)
        out = np.zeros(self.f.n_units, dtype=np.int64)
        np.maximum.at(out, each["unit"].to_numpy(), each["n"].to_numpy())
        return out

    @cached_property
    def tokens(self) -> Ints:
        taken = self.f.rows(self.k)
        tokens = self.f.m.of_every_row("n_tokens").to_numpy()
        return sums(self.f.m.row_unit[taken], tokens[taken], self.f.n_units)
