"""Rows against labels: which rows hold a document that a label or a passage names."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa

from docrecall.errors import SplitUnitError
from docrecall.kernel.batch import Batch
from docrecall.kernel.labels import Labels
from docrecall.kernel.steps import Ideal
from docrecall.measures.definition import Ints, Mask
from docrecall.sources.table import collect

_QUERY_SEED, _DOC_SEED = 1, 2


@dataclass(frozen=True)
class Matched:
    """A batch and its labels, met. Units, labels, passages and rows are named by their numbers in the batch.

    units: the batch's units. starts: first row of each unit, and the number of rows at the end.
    labels: unit, doc_id, relevance, served, stale, doc_version. passages: unit, target and the columns of evidence.
    targets: how many distinct (unit, doc_id) labels and passages name; the first ones are the labels.
    hits: row, rank, target and what is needed of the rows that hold such a document, by row.
    rows: of every row rank, doc_id and what else was asked for; None when nothing was.
    """

    units: pl.DataFrame
    starts: Ints
    labels: pl.DataFrame
    passages: pl.DataFrame | None
    hits: pl.DataFrame
    rows: pl.DataFrame | None

    def of_every_row(self, column: str) -> pl.Series:
        """A column of all rows, which must have been asked for."""
        assert self.rows is not None, f"{column} of every row is missing in kernel.counts.of_every_row"
        return self.rows[column]

    @cached_property
    def label_unit(self) -> Ints:
        """The unit of each label."""
        return self.labels["unit"].to_numpy()

    @cached_property
    def grade(self) -> Ints:
        """The grade of each label."""
        return self.labels["relevance"].to_numpy()

    @cached_property
    def hit_row(self) -> Ints:
        """The row of each hit."""
        return self.hits["row"].to_numpy()

    @cached_property
    def hit_target(self) -> Ints:
        """The target of each hit."""
        return self.hits["target"].to_numpy()

    @cached_property
    def target_unit(self) -> Ints:
        """The unit of each target."""
        if self.passages is None:
            return self.label_unit
        target = self.passages["target"].to_numpy()
        unit = np.zeros(max(len(self.labels), int(target.max(initial=-1)) + 1), dtype=np.int64)
        unit[: len(self.labels)] = self.label_unit
        unit[target] = self.passages["unit"].to_numpy()
        return unit

    @cached_property
    def doc_place(self) -> Ints:
        """The place of each target's document among the distinct documents of its unit; 0 for one without a hit."""
        place = np.zeros(len(self.target_unit), dtype=np.int64)
        first = firsts(self.hit_target, len(place))
        target = self.hit_target[first]
        place[target] = self.doc_places(self.target_unit[target], self.hit_row[first])
        return place

    @cached_property
    def ideal(self) -> Ideal:
        """The best order of the judged documents of each unit."""
        return Ideal(self.label_unit, self.grade, len(self.units))

    @cached_property
    def labelled(self) -> Ints:
        """Positions in `hits` of those that hold a labelled document at any version."""
        return np.flatnonzero(self.hit_target < len(self.labels))

    @cached_property
    def met(self) -> Ints:
        """Positions in `hits` of those that meet their label: at its version, which the index still serves."""
        stale: Mask = self.labels["stale"].to_numpy()[self.hit_target[self.labelled]]
        return self.labelled[self._fits & ~stale]

    @cached_property
    def missed(self) -> Ints:
        """Positions in `hits` of those that hold a labelled document at another version."""
        return self.labelled[~self._fits]

    @cached_property
    def _fits(self) -> Mask:
        if "doc_version" not in self.labels.columns:
            return np.full(len(self.labelled), fill_value=True)
        return fits(self.hits, self.labelled, self.labels["doc_version"], self.hit_target[self.labelled])

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
        units = _lists(self.of_every_row("doc_id"), np.unique(self.starts))
        first = units.list.eval(pl.element().is_first_distinct()).explode().to_numpy()
        return np.concatenate([[0], np.cumsum(first, dtype=np.int64)])

    @cached_property
    def distinct_docs(self) -> Ints:
        """Distinct documents among all rows of each unit."""
        counts = np.zeros(len(self.units), dtype=np.int64)
        some = np.flatnonzero(np.diff(self.starts))
        if len(some):
            counts[some] = _lists(self.of_every_row("doc_id"), np.unique(self.starts)).list.n_unique().to_numpy()
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
        # Words of 32 bits, which wrap around where an offset is negative, are what polars gathers by.
        above = np.repeat((begin - (ends - size)).astype(np.uint32), size) + np.arange(size.sum(), dtype=np.uint32)
        # Out of the many pieces that a scan gives, a gather takes four times as long.
        docs = self.of_every_row("doc_id").rechunk().gather(pl.Series(above))
        return _lists(docs, np.concatenate([[0], ends])).list.n_unique().cast(pl.Int64).to_numpy()

    @cached_property
    def tokens_before(self) -> Ints:
        """For each row, and for the end: the tokens of the rows before it."""
        tokens = self.of_every_row("n_tokens").to_numpy()
        sums = np.zeros(len(tokens) + 1, dtype=np.int64)
        np.cumsum(tokens, out=sums[1:])
        return sums

    @cached_property
    def passed_on(self) -> Ints:
        """The rows that were passed to the model, rising."""
        return np.flatnonzero(self.of_every_row("in_context").fill_null(False).to_numpy())

    def only(self, kept: Ints) -> Matched:
        """The same batch as if the other rows had not been logged. kept: rows, rising."""
        place = np.searchsorted(kept, self.hit_row)
        stays = (
            kept[np.minimum(place, len(kept) - 1)] == self.hit_row if len(kept) else np.zeros(len(place), dtype=bool)
        )
        others = None
        if self.rows is not None:
            others = self.rows.drop("in_context", strict=False)[kept]
        return replace(
            self,
            starts=np.searchsorted(kept, self.starts),
            hits=self.hits.filter(pl.Series(stays)).with_columns(pl.Series("row", place[stays])),
            rows=others,
        )


def firsts(what: Ints, n: int) -> Ints:
    """Positions of the first appearance of each of n things in a list of them, rising."""
    first = np.full(n, len(what))
    np.minimum.at(first, what, np.arange(len(what)))
    return np.flatnonzero(first[what] == np.arange(len(what)))


def fits(hits: pl.DataFrame, which: Ints, versions: pl.Series, version: Ints) -> Mask:
    """Whether some hits are at some of the versions; one that is not known, on either side, fits any."""
    if "doc_version" not in hits.columns:
        return np.full(len(which), fill_value=True)
    found, wanted = hits["doc_version"].gather(which), versions.gather(version)
    return (found == wanted).fill_null(True).to_numpy()


def _lists(docs: pl.Series, offsets: Ints) -> pl.Series:
    """Cut ids into lists at offsets that rise from 0 to their number, without copying one id."""
    # The newest Arrow layout is the one that polars has in memory; older ones cost a copy of every string.
    values = docs.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    # Not pa.array, which imports pandas where it is installed: half a second.
    return pl.Series(pa.LargeListArray.from_arrays(pl.Series(offsets, dtype=pl.Int64).to_arrow(), values))


def match(
    batch: Batch, labels: Labels, *, of_hits: AbstractSet[str], of_rows: AbstractSet[str], passages: bool
) -> Matched:
    """Join the rows of a batch to what labels and passages name in its units, on the ids themselves.

    of_hits: columns of the rows that hold such a document. Only rows whose 64-bit key meets that of a target are
    brought in, a small part, which the join then decides. of_rows: columns of every row, for measures that look at
    others too. passages: whether documents that passages alone name are looked for.
    """
    unit_labels = labels.of(batch.units)
    targets, unit_passages = _targets(unit_labels, labels.passages_of(batch.units) if passages else None)
    starts = np.concatenate([[0], np.cumsum(batch.units["n_hits"].to_numpy())]).astype(np.int64)
    try:
        rows, hits = _read(batch, starts, targets, of_hits, of_rows)
    except pl.exceptions.ShapeError:
        raise SplitUnitError(
            f"a batch of {starts[-1]} rows was read as another number. This is a fault of docrecall's planner."
        ) from None
    return Matched(
        units=batch.units,
        starts=starts,
        labels=unit_labels,
        passages=unit_passages,
        hits=hits,
        rows=rows,
    )


def _targets(labels: pl.DataFrame, passages: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Number the (unit, doc_id) that are named: those of labels as they stand, then those of passages alone."""
    targets, key = _numbered(labels.select("unit", "doc_id"), 0), ["unit", "doc_id"]
    if passages is None:
        return targets, None
    passages = passages.join(targets, on=key, how="left", maintain_order="left", validate="m:1")
    unnamed = passages.filter(pl.col("target").is_null()).select(key)
    if unnamed.is_empty():
        return targets, passages
    others = _numbered(unnamed.unique(maintain_order=True), targets.height)
    passages = passages.join(others, on=key, how="left", maintain_order="left", validate="m:1")
    both = pl.coalesce("target", "target_right").alias("target")
    return pl.concat([targets, others]), passages.with_columns(both).drop("target_right")


def _numbered(targets: pl.DataFrame, first: int) -> pl.DataFrame:
    return targets.select(pl.int_range(first, first + pl.len()).alias("target"), pl.all())


def _read(
    batch: Batch, starts: Ints, targets: pl.DataFrame, of_hits: AbstractSet[str], of_rows: AbstractSet[str]
) -> tuple[pl.DataFrame | None, pl.DataFrame]:
    """The columns of every row that are asked for, and the hits that hold a target: row, rank, doc_id, .., target.

    The rows of a unit follow each other, so that their queries are not read again; nor are ranks where none is left
    out. One word of unit and document tells which rows may hold a target, and then the ids decide.
    """
    units = batch.units
    query = units["query_id"].hash(_QUERY_SEED)
    words = query.gather(targets["unit"]) ^ targets["doc_id"].hash(_DOC_SEED)
    asked = pl.LazyFrame({"asked": np.repeat(query.to_numpy(), np.diff(starts))})
    gaps = bool((units["n_gaps"] > 0).any())
    of_hit = ["doc_id", *(["rank"] if gaps else []), *sorted(of_hits - {"doc_id", "rank"})]
    of_all = list(dict.fromkeys([*of_hit, *sorted(of_rows)])) if "doc_id" in of_rows else of_hit
    word = (pl.col("doc_id").hash(_DOC_SEED) ^ pl.col("asked")).alias("word")
    rows = pl.concat([batch.rows.select(of_all), asked], how="horizontal").with_row_index("row")
    rows, wanted = rows.select("row", *of_all, word), pl.col("word").is_in(words.implode())
    held = None
    if "doc_id" in of_rows:
        held = collect(rows.with_columns(wanted.alias("wanted")), batch.parts)
        candidates = held.filter("wanted").select("row", *of_hit, "word")
        held = held.select(sorted(of_rows))
    else:
        candidates = collect(rows.filter(wanted), batch.parts).rechunk()
        if of_rows:
            held = collect(batch.rows.select(sorted(of_rows)), batch.parts)
    hits = _exact(candidates, starts, targets.with_columns(words.alias("word")))
    if not gaps:
        hits = hits.with_columns((pl.col("row") - pl.Series(starts[hits["unit"]]) + 1).alias("rank"))
    return held, hits


def _exact(candidates: pl.DataFrame, starts: Ints, targets: pl.DataFrame) -> pl.DataFrame:
    """The candidates that hold a target of their unit, and the number of that target, by row.

    Two targets may share a word, but no two of them are the same, so that a row keeps one at most.
    """
    row = candidates["row"].to_numpy().astype(np.int64)
    unit = np.repeat(np.arange(len(starts) - 1), np.diff(np.searchsorted(row, starts)))
    met = candidates.with_columns(pl.Series("row", row), pl.Series("unit", unit, dtype=pl.Int64)).join(
        targets, on="word", maintain_order="left", suffix="_wanted"
    )
    same = (pl.col("unit") == pl.col("unit_wanted")) & (pl.col("doc_id") == pl.col("doc_id_wanted"))
    return met.filter(same).drop("word", "unit_wanted", "doc_id_wanted").with_columns(pl.col("target").cast(pl.Int64))
