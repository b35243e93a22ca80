"""Rows against labels: which rows hold a judged document, and where each judged document first appears."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa

from docrecall.contract.ids import is_odd, tidy
from docrecall.errors import SplitUnitError
from docrecall.kernel.batch import Batch
from docrecall.kernel.labels import Labels
from docrecall.measures.definition import Ints
from docrecall.sources.table import blame, collect

_QUERY_SEED, _DOC_SEED = 1, 2


@dataclass(frozen=True)
class Matched:
    """A batch and its labels, met. Units, labels and rows are named by their numbers in the batch.

    units: the batch's units. starts: first row of each unit, and the number of rows at the end.
    labels: unit, doc_id, relevance; its row number names the label.
    hit_row, hit_rank, hit_label: one entry per row that holds a judged document, by row.
    rows: rank and doc_id of every row; None when nothing asked for them.
    altered_docs: document ids of the rows that trimming or NFC would change, each once.
    """

    units: pl.DataFrame
    starts: Ints
    labels: pl.DataFrame
    hit_row: Ints
    hit_rank: Ints
    hit_label: Ints
    rows: pl.DataFrame | None
    altered_docs: pl.Series

    @property
    def all_rows(self) -> pl.DataFrame:
        """`rows`, where they were asked for."""
        assert self.rows is not None, "a count that looks at all rows is missing in kernel.counts._ALL_ROWS"
        return self.rows

    @cached_property
    def label_unit(self) -> Ints:
        """The unit of each label."""
        return self.labels["unit"].to_numpy()

    @cached_property
    def grade(self) -> Ints:
        """The grade of each label."""
        return self.labels["relevance"].to_numpy()

    @cached_property
    def first_hits(self) -> Ints:
        """Positions in `hit_row` of each judged document's first appearance, by row."""
        _, first = np.unique(self.hit_label, return_index=True)  # hit_row rises, so the first index is the first row
        return np.sort(first)

    @cached_property
    def row_unit(self) -> Ints:
        """The unit of every row."""
        return np.repeat(np.arange(len(self.units)), np.diff(self.starts))

    @cached_property
    def docs_before(self) -> Ints:
        """For each row, and for the end: how many (unit, document) pairs first appeared in the rows before it.

        Differences of it count distinct documents. Decided on the ids themselves, not on hashes of them.
        """
        if not self.starts[-1]:
            return np.zeros(1, dtype=np.int64)
        units = _lists(self.all_rows["doc_id"], np.unique(self.starts))
        first = units.list.eval(pl.element().is_first_distinct()).explode().to_numpy()
        return np.concatenate([[0], np.cumsum(first, dtype=np.int64)])

    @cached_property
    def distinct_docs(self) -> Ints:
        """Distinct documents among all rows of each unit."""
        counts = np.zeros(len(self.units), dtype=np.int64)
        some = np.flatnonzero(np.diff(self.starts))
        if len(some):
            counts[some] = _lists(self.all_rows["doc_id"], np.unique(self.starts)).list.n_unique().to_numpy()
        return counts

    def doc_places(self, unit: Ints, row: Ints) -> Ints:
        """Give the number of distinct documents of a unit in its rows up to and including each given row."""
        begin = self.starts[unit]
        size = row + 1 - begin
        # Few judged documents stand near the top: counting the rows above each of them then costs a third of
        # telling first appearances in all rows.
        if size.sum() > self.starts[-1]:
            return self.docs_before[row + 1] - self.docs_before[begin]
        ends = np.cumsum(size)
        above = np.repeat(begin - (ends - size), size) + np.arange(ends[-1] if len(ends) else 0)
        docs = self.all_rows["doc_id"].gather(pl.Series(above, dtype=pl.get_index_type()))
        return _lists(docs, np.concatenate([[0], ends])).list.n_unique().cast(pl.Int64).to_numpy()


def _lists(docs: pl.Series, offsets: Ints) -> pl.Series:
    """Cut ids into lists at offsets that rise from 0 to their number, without copying one id."""
    # The newest Arrow layout is the one that polars has in memory; older ones cost a copy of every string.
    values = docs.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    return pl.Series(pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values))


def match(batch: Batch, labels: Labels, *, all_rows: bool) -> Matched:
    """Join the rows of a batch to the labels of its units, on the ids themselves.

    all_rows: bring in every row, for measures that look at unjudged documents too; else only rows whose 64-bit
    key meets a label's, a small part, which the join then decides.
    """
    unit_labels = labels.of(batch.units)
    starts = np.concatenate([[0], np.cumsum(batch.units["n_hits"].to_numpy())]).astype(np.int64)
    rows, hits = _candidates(batch, unit_labels, all_rows=all_rows)
    if rows is not None and rows.height != starts[-1]:
        blame(batch.parts)
        raise SplitUnitError(
            f"a batch of {starts[-1]} rows was read as {rows.height}. This is a fault of docrecall's planner."
        )
    unit = np.searchsorted(starts, hits["row"].to_numpy(), side="right") - 1
    exact = (
        hits.with_columns(pl.Series("unit", unit, dtype=pl.Int64))
        .join(unit_labels.with_row_index("label"), on=["unit", "doc_id"], how="inner", validate="m:1")
        .sort("row")
    )
    return Matched(
        units=batch.units,
        starts=starts,
        labels=unit_labels,
        hit_row=exact["row"].cast(pl.Int64).to_numpy(),
        hit_rank=exact["rank"].to_numpy(),
        hit_label=exact["label"].cast(pl.Int64).to_numpy(),
        rows=rows,
        altered_docs=_altered_docs(batch, rows),
    )


def _candidates(batch: Batch, unit_labels: pl.DataFrame, *, all_rows: bool) -> tuple[pl.DataFrame | None, pl.DataFrame]:
    """All rows if asked for, and those that may hold a judged document: row, rank, doc_id."""
    query = batch.units["query_id"].gather(unit_labels["unit"])
    keys = pl.select(query.hash(_QUERY_SEED) ^ unit_labels["doc_id"].hash(_DOC_SEED)).to_series()
    key = pl.col("query_id").hash(_QUERY_SEED) ^ pl.col("doc_id").hash(_DOC_SEED)
    wanted = key.is_in(keys.implode())
    rows = batch.rows.with_row_index("row")
    if all_rows:
        held = collect(rows.select("row", "rank", "doc_id", wanted.alias("wanted")), batch.parts)
        return held, held.filter("wanted")
    return None, collect(rows.filter(wanted).select("row", "rank", "doc_id"), batch.parts)


def _altered_docs(batch: Batch, rows: pl.DataFrame | None) -> pl.Series:
    """The document ids that trimming or NFC would change, each once.

    A scan of its own: joined to the filter of the candidates by an `or`, it costs four times as much.
    """
    docs = batch.rows.select("doc_id") if rows is None else rows.lazy().select("doc_id")
    if docs.collect_schema()["doc_id"] != pl.String:
        return pl.Series("doc_id", [], dtype=pl.Int64)
    # In two steps: the optimizer makes one filter of two, and would then normalise every id.
    odd = collect(docs.filter(is_odd("doc_id")), batch.parts)
    return odd.filter(tidy("doc_id") != pl.col("doc_id"))["doc_id"].unique()
