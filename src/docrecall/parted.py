"""Pairs parted by slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from docrecall.errors import DataError, UsageError
from docrecall.measures.definition import Ints
from docrecall.pairs import Both, Pairs
from docrecall.show import printable
from docrecall.slices import Tags
from docrecall.summary import Parting, Slices
from docrecall.tables import plain_type
from docrecall.units import Units, clustered


class Parted(NamedTuple):
    """The slices of pairs, and in which of them each pair and each unit of either run is; None: there is one."""

    slices: pl.DataFrame
    clusters: Ints | None
    pairs: Ints | None
    before: Ints
    after: Ints

    @classmethod
    def of(cls, pairs: Pairs, tags: tuple[Tags, Tags], parting: Parting) -> Parted:
        none = np.zeros(0, np.int64)
        if not parting.columns:
            return cls(pl.DataFrame(height=1), None, None, none, none)
        for column in parting.columns:
            if pairs.before.is_folded and not tags[0].per_query(column):
                raise UsageError(
                    f"{printable(column)} is a column of requests, and these runs are paired by query. Name a column "
                    "of queries."
                )
        units = (pairs.before, pairs.after)
        read = [of.read(parting.columns, _named(one)) for of, one in zip(tags, units, strict=True)]
        clusters = None
        if parting.cluster is not None:
            labels = read[0].select(tags[0].names([parting.cluster]))
            clusters = clustered(labels if pairs.at_before is None else labels[pairs.at_before], pairs.keys)
        if not parting.by:
            return cls(pl.DataFrame(height=1), clusters, None, none, none)
        names = tags[0].names(parting.by)
        read = _alike([frame.select(names) for frame in read])
        slices = Slices.of(pl.concat(read)).values
        marks = slices.with_row_index("__slice")
        before, after = (
            frame.join(marks, on=names, how="left", nulls_equal=True, maintain_order="left")["__slice"]
            .cast(pl.Int64)
            .to_numpy()
            for frame in read
        )
        return cls(slices, clusters, before if pairs.at_before is None else before[pairs.at_before], before, after)

    def parts(self, both: Both) -> Iterator[Both]:
        """The pairs of each slice."""
        if self.pairs is None:
            yield both
            return
        of = self.pairs if both.which is None else self.pairs[both.which]
        order = np.argsort(of, kind="stable")
        ends = np.searchsorted(of[order], np.arange(self.slices.height + 1))
        for number in range(self.slices.height):
            places = order[ends[number] : ends[number + 1]]
            yield both.part(places, self.before == number, self.after == number)


def _alike(read: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Columns of both sides in one type; DataError where they say different kinds of things."""
    plain = [pl.DataFrame([_plain(column) for column in frame]) for frame in read]
    for old, new in zip(*plain, strict=True):
        types = {old.dtype, new.dtype} - {pl.Null()}
        if len(types) > 1 and not all(t.is_numeric() for t in types):
            raise DataError(
                f"{printable(old.name)} is {old.dtype.base_type()} on the side of the baseline and "
                f"{new.dtype.base_type()} on that of the candidate. Slices of both must be of one type."
            )
    both = pl.concat([frame.clear() for frame in plain], how="vertical_relaxed").schema
    return [frame.with_columns(pl.col(c).cast(t) for c, t in both.items()) for frame in plain]


def _plain(column: pl.Series) -> pl.Series:
    """A column without its encoding; one that says nothing has no type."""
    return column.cast(pl.Null() if column.null_count() == len(column) else plain_type(column.dtype))


def _named(units: Units) -> pl.DataFrame:
    return units.keys.select(pl.lit(units.run).alias("run_id"), pl.all())
