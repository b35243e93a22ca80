"""One kind of cut over a batch: how far down each hit lies, and at which position.

A cut takes the hits whose reach is at most its number: ranks under `@k`, documents under `@kdocs`, tokens up to and
with the row under `@Ntokens`. All cuts of one kind share a family.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from docrecall.kernel.match import Matched
from docrecall.measures.definition import Ints, Mask
from docrecall.measures.grammar import CutUnit

_OF_UNIT: dict[CutUnit, frozenset[str]] = {"tokens": frozenset({"n_tokens"}), "context": frozenset({"in_context"})}
_ALWAYS_DOCS = frozenset({"docs", "top_chunks", "distinct_text"})
_SPAN = frozenset({"chunk_start", "chunk_end"})


def of_every_row(count: str, unit: CutUnit) -> frozenset[str]:
    """The columns of every row that a count needs under a kind of cut; of others, those of judged documents do."""
    needed = set(_OF_UNIT.get(unit, ()))
    if count in _ALWAYS_DOCS or (unit == "docs" and count not in ("places", "ideal_gain", "chunk_ids", "ids")):
        needed.add("doc_id")
    if unit == "chunks" and count in _ALWAYS_DOCS | {"chunks", "tokens", "given_text"}:
        needed.add("rank")
    if count == "tokens":
        needed.add("n_tokens")
    if count in ("given_text", "distinct_text"):
        needed |= _SPAN
    if count == "distinct_text":
        needed.add("doc_version")
    return frozenset(needed)


class Family:
    """The hits of a batch as one kind of cut sees them. `@context` is `@all` over the rows that were passed on."""

    def __init__(self, matched: Matched, unit: CutUnit) -> None:
        in_context = unit == "context"
        self.m = matched.only(matched.passed_on) if in_context else matched
        self.kind: CutUnit = "all" if in_context else unit
        self.n_units = len(matched.units)
        self.n_hits: Ints = np.diff(self.m.starts)

    def reach(self, hits: Ints) -> Ints | None:
        """How far down hits lie, given by their positions in `Matched.hits`; None: all are taken."""
        match self.kind:
            case "chunks":
                return self.m.hits["rank"].gather(hits).to_numpy()
            case "docs":
                return self.m.doc_place[self.m.hit_target[hits]]
            case "tokens":
                return self._tokens_to(self.m.hit_row[hits], self.m.target_unit[self.m.hit_target[hits]])
        return None

    def place(self, hits: Ints) -> Ints:
        """The positions of hits."""
        match self.kind:
            case "chunks" | "docs":
                reach = self.reach(hits)
                assert reach is not None
                return reach
        return self.m.hit_row[hits] - self.m.starts[self.m.target_unit[self.m.hit_target[hits]]] + 1

    @cached_property
    def row_reach(self) -> Ints | None:
        """How far down each row lies; None: all are taken."""
        match self.kind:
            case "chunks":
                return self.m.of_every_row("rank").to_numpy()
            case "tokens":
                return self._tokens_to(np.arange(self.m.starts[-1]), self.m.row_unit)
            case "docs":
                places = self.docs.select("unit", "doc_id", "place")
                return self.keyed.join(places, on=["unit", "doc_id"], how="left", maintain_order="left")[
                    "place"
                ].to_numpy()
        return None

    def rows(self, k: int | None) -> Mask:
        """Which rows a cut takes."""
        return within(self.row_reach, int(self.m.starts[-1]), k)

    @property
    def keyed(self) -> pl.DataFrame:
        """The unit and the document of every row."""
        return pl.DataFrame([pl.Series("unit", self.m.row_unit), self.m.of_every_row("doc_id")])

    @cached_property
    def docs(self) -> pl.DataFrame:
        """Every distinct document of each unit: unit, doc_id, place, n (rows)."""
        each = (
            self.keyed.with_row_index("row")
            .group_by("unit", "doc_id")
            .agg(pl.col("row").min(), pl.len().cast(pl.Int64).alias("n"))
        )
        unit, row = each["unit"].to_numpy(), each["row"].to_numpy().astype(np.int64)
        place = self.m.docs_before[row + 1] - self.m.docs_before[self.m.starts[unit]]
        return each.with_columns(pl.Series("place", place)).drop("row")

    def _tokens_to(self, row: Ints, unit: Ints) -> Ints:
        before = self.m.tokens_before
        return before[row + 1] - before[self.m.starts[unit]]


def within(reach: Ints | None, n: int, k: int | None) -> Mask:
    """Which of n things a cut takes."""
    return np.full(n, fill_value=True) if reach is None or k is None else reach <= k
