"""A batch: whole units and their rows. It is all that the kernel sees, on one machine or on many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from docrecall.errors import SplitUnitError
from docrecall.sources.table import Part


@dataclass(frozen=True)
class Batch:
    """Some whole units of one log, checked.

    units: run_id, request_id where it is logged, query_id, n_hits, n_gaps, rejected (whether a bad row touched it): one
    row per unit, in the order of the rows; units without rows may stand anywhere.
    rows: query_id, rank (Int64, from 1), doc_id, and the other columns that the run reads: the rows of each unit stand
    together, rank rising.
    columns: what `rows` has besides query_id, rank and doc_id.
    parts: where the rows come from, to say which file is to blame when reading fails.
    read, duplicates, rejected, findings: what the contract made of the rows on the way here.
    """

    units: pl.DataFrame
    rows: pl.LazyFrame
    columns: frozenset[str] = frozenset()
    parts: Sequence[Part] = ()
    read: int = 0
    duplicates: int = 0
    rejected: pl.DataFrame | None = None
    findings: list[pl.DataFrame] = field(default_factory=list)


def find_units(rows: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Find the units of rows that stand together by unit, with rank rising: key, n_hits, n_gaps in that order.

    A gap is a place where ranks jump, before the first hit of a unit too. Raises SplitUnitError when a unit stands in
    more than one place.
    """
    new = rows.select(pl.any_horizontal(pl.col(c).ne_missing(pl.col(c).shift()) for c in key)).to_series().to_numpy()
    new = new | (np.arange(len(new)) == 0)
    starts = np.flatnonzero(new)
    rank = rows["rank"].to_numpy()
    jump = np.diff(rank, prepend=0) > 1
    jump[starts] = rank[starts] > 1
    n_gaps = np.add.reduceat(jump, starts, dtype=np.int64) if len(starts) else starts
    units = rows.select(key)[starts].with_columns(
        pl.Series("n_hits", np.diff(starts, append=len(new)), dtype=pl.Int64),
        pl.Series("n_gaps", n_gaps, dtype=pl.Int64),
    )
    if units.select(key).is_duplicated().any():
        raise SplitUnitError(
            "a unit stands in more than one place of its batch. This is a fault of docrecall's planner."
        )
    return units
