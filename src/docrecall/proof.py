"""Whether a log is sorted by unit, told from its keys and ranks alone.

One cheap pass shows where units begin. When no rank falls or repeats inside a unit and no unit begins twice, the log is
sorted, and that pass was also the proof that ranks are unique: slices of the files are then batches of whole units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from docrecall.contract.frames import surely_distinct
from docrecall.contract.hits import value_rules
from docrecall.measures.definition import Ints
from docrecall.options import Options
from docrecall.sources.table import LARGEST_RANK, Part, Table, blame, collect, damaged, groups
from docrecall.stretches import Stretches
from docrecall.tables import is_sorted_by, unit_key

_PROBE_ROWS = 100_000, 4_000_000  # rows in random order show it among the first
_PROBE_PARTS = 16
_PROBE_BEGIN = 1_000
_AT_ONCE = 1_000_000  # rows of small files that are read by one query
_SLICE = 5_000_000  # rows of a large file: what is marked among them holds all of them for a moment


class Layout(NamedTuple):
    """What a look at the keys of a log showed.

    units: the units of a sorted log in row order (key, n_hits and n_gaps of any whole type); None for any other.
    why: what shows that.
    stretches: where its queries stand in files that are sorted by them all the same; None for any other.
    """

    units: pl.DataFrame | None
    why: str
    stretches: Stretches | None = None


def prove_sorted(log: Table, options: Options) -> Layout:
    """Look whether a log is sorted by unit and clean; if not, whether its files are sorted by query all the same.

    Reads keys and ranks, and columns whose values have rules. Between unit starts nothing is brought in unless a rank
    does not follow its predecessor.
    """
    units, why = _whole_units(log, options)
    if units is not None:
        return Layout(units, why)
    stretches = Stretches.of(log)
    if stretches is None:
        return Layout(None, why)
    files = "the file is" if len(log.parts) == 1 else "each file is"
    return Layout(None, f"{why}; {files} in the order of {stretches.column}", stretches)


def _whole_units(log: Table, options: Options) -> tuple[pl.DataFrame | None, str]:
    """The units of a log that is sorted by them and clean, or why it is not."""
    for holds, why in (
        (options.order != "rank", f'order="{options.order}" gives hits another order than the logged one'),
        (options.ranks != "logged", 'ranks="recount" numbers hits anew'),
        (log.columns.get("rank") != pl.Int64, "ranks are not whole numbers by type, so every one is looked at"),
        (not log.n_rows, "it has no rows"),
        (log.faulty, "some rows had faults when they were read, or hit chunks that nobody knows"),
    ):
        if holds:
            return None, why
    key = unit_key(log.columns)
    if any(part.null_count("doc_id") for part in log.parts):
        return None, "some hits have no doc_id"
    if _probe_scattered(log, key):
        return None, "units begin more than once among the first rows"
    if _breaks_values(log):
        return None, "a column that a measure reads holds what it must not"
    found = _Units(key, options.rank_base)
    for marks in _all_marks(log, key):
        doubt = found.add(marks)
        if doubt is not None:
            return None, doubt
    units = found.table(log.n_rows)
    if units is None:
        return None, "some units begin more than once"
    return units, "ranks rise inside every unit, and no unit begins twice"


class _Units:
    """Units out of marks, which come part by part and are let go of: what is held is a key and two small numbers."""

    def __init__(self, key: Sequence[str], first: int) -> None:
        self._key, self._first = key, first
        self._keys: list[pl.DataFrame] = []
        self._starts: list[Ints] = []
        self._jumps: list[Ints] = []
        self._before: pl.DataFrame | None = None  # the last row of the part before
        self._rising = True

    def add(self, marks: pl.DataFrame) -> str | None:
        """Take in the marks of the next part. Returns why the log is not taken as sorted, if they show that."""
        if self._before is not None:
            first = _stitch(pl.concat([self._before, marks.head(1)]), self._key).tail(1)
            marks = pl.concat([first, marks.slice(1)])
        found = marks.select(
            unnamed=pl.any_horizontal(pl.col(*self._key, "rank").is_null()).any(),
            unranked=((pl.col("rank") < self._first) | (pl.col("rank") >= LARGEST_RANK)).any(),
            falling=(~pl.col("new") & ~(pl.col("step") > 0)).fill_null(True).any(),
        ).row(0, named=True)
        for doubt, why in (
            ("unnamed", "some hits lack a rank or a part of their key"),
            ("unranked", "some ranks are out of range"),
            ("falling", "inside a unit a rank falls or repeats"),
        ):
            if found[doubt]:
                return why
        heads = marks.filter("new")
        jump = pl.when("new").then(pl.col("rank") > self._first).otherwise(pl.col("step") > 1)
        self._jumps.append(marks.filter(jump)["row"].to_numpy())
        self._before = marks.tail(1)
        if heads.is_empty():
            return None
        keys = heads.select(self._key)
        with_last = [self._keys[-1].tail(1), keys] if self._keys else [keys]
        self._rising = self._rising and is_sorted_by(pl.concat(with_last), self._key)
        self._keys.append(keys)
        self._starts.append(heads["row"].to_numpy())
        return None

    def table(self, n_rows: int) -> pl.DataFrame | None:
        """Give key, n_hits and n_gaps of all units, in whole numbers as small as will do; None if one begins twice."""
        keys, starts = pl.concat(self._keys), np.concatenate(self._starts)
        if not self._rising and not surely_distinct(keys, *self._key) and keys.is_duplicated().any():
            return None
        unit_of_jump = np.searchsorted(starts, np.concatenate(self._jumps), side="right") - 1
        gaps = np.bincount(unit_of_jump, minlength=len(starts))
        return keys.with_columns(
            pl.Series("n_hits", np.diff(starts, append=n_rows)).shrink_dtype(),
            pl.Series("n_gaps", gaps.astype(np.int64)).shrink_dtype(),
        )


def _all_marks(log: Table, key: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The marks of all rows, numbered through, some at a time: small files together, and large ones in slices."""
    offset = 0
    filled = [part for part in log.parts if part.n_rows]
    for places in groups(filled, _AT_ONCE):
        parts = [filled[place] for place in places]
        n_rows = sum(part.n_rows for part in parts)
        for start in range(0, n_rows, _SLICE):
            marks = _marks(log, parts, key, start, min(_SLICE, n_rows - start))
            yield marks.with_columns(pl.col("row") + (offset + start))
        offset += n_rows


def _breaks_values(log: Table) -> bool:
    """Whether a column that a measure reads holds what it must not."""
    rules = value_rules(log)
    if not rules:
        return False
    columns = sorted({c for rule in rules for c in rule.broken.meta.root_names()})
    broken = pl.any_horizontal(rule.broken for rule in rules).any()
    for places in groups(log.parts, _AT_ONCE):
        parts = [log.parts[place] for place in places]
        if collect(log.scan(parts, columns).select(broken), parts).item():
            return True
    return False


def _marks(log: Table, parts: Sequence[Part], key: Sequence[str], start: int, n_rows: int) -> pl.DataFrame:
    """The rows of a slice of some parts where something happens: a unit begins, a rank does not follow, it ends."""
    scan = log.scan(parts, [*key, "rank"]).slice(start, n_rows).with_row_index("row")
    new = pl.any_horizontal(pl.col(c).ne_missing(pl.col(c).shift()) for c in key)
    step = pl.col("rank") - pl.col("rank").shift()
    marked = scan.with_columns(new.alias("new"), step.alias("step")).filter(
        pl.col("new") | pl.col("step").ne_missing(1) | (pl.col("row") >= n_rows - 1)
    )
    # Each chunk of the result still holds the rows that it was filtered from: a hundred times what is wanted.
    marks = collect(marked, parts).rechunk().with_columns(pl.col("row").cast(pl.Int64))
    if marks["row"].max() != n_rows - 1:
        blame(parts)
        raise damaged(parts[0])
    return marks


def _stitch(marks: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Join what a file boundary cut: the first row of a part goes on where the part before it ended."""
    same = pl.all_horizontal(pl.col(c) == pl.col(c).shift() for c in key)
    follows = pl.col("row") == pl.col("row").shift() + 1
    cut = (same & follows & pl.col("step").is_null()).fill_null(False)
    return marks.with_columns(
        pl.when(cut).then(False).otherwise(pl.col("new")).alias("new"),
        pl.when(cut).then(pl.col("rank") - pl.col("rank").shift()).otherwise(pl.col("step")).alias("step"),
    )


def _probe_scattered(log: Table, key: Sequence[str]) -> bool:
    """Whether units already begin twice among the first rows, in which case marking all rows would be a waste.

    The first rows of other parts are looked at too: files of several writers may each be sorted.
    """
    part, *others = [part for part in log.parts if part.n_rows][:_PROBE_PARTS]
    new = pl.any_horizontal(pl.col(c).ne_missing(pl.col(c).shift()) for c in key)
    unit = pl.struct(key).hash().alias("unit")
    heads = pl.Series(dtype=pl.UInt64)
    for n_rows in _PROBE_ROWS:
        heads = collect(log.scan([part], key).head(n_rows).filter(new).select(unit), [part])["unit"]
        if heads.n_unique() < len(heads):
            return True
    if not others:
        return False
    first_rows = pl.concat([log.scan([other], key).head(_PROBE_BEGIN) for other in others])
    begun = collect(first_rows.select(unit), others)["unit"]
    return bool(begun.is_in(heads.head(len(heads) - 1).implode()).any())  # the last unit may go on in the next file
