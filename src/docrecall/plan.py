"""Files -> batches of whole units, decided by evidence.

Slices of a log that `proof` showed to be sorted are batches. Anything else (scattered units, rows out of order, rows
delivered twice, bad rows, order by score) goes through `shards`, which brings each unit's rows together first, and is
checked there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import polars as pl

from docrecall import findings
from docrecall.contract.hits import check_hits, find_offenders, read_columns
from docrecall.contract.lookup import DEFAULT_RUN
from docrecall.kernel.batch import Batch, find_units
from docrecall.measures.definition import Ints
from docrecall.options import Options
from docrecall.proof import Layout, prove_sorted
from docrecall.shards import Way, n_shards_of, shards, way_of
from docrecall.sources.table import MOST_OPEN, Part, Table
from docrecall.stretches import Stretches
from docrecall.tables import unit_key

BATCH_ROWS = 2_000_000  # whole row groups of a million rows, where they hold whole units

_MOST_TURNS = 16  # of queries that begin anew, as those of the next run of a log do


class Plan(NamedTuple):
    """How one log is worked on. batch_rows: about how many of its hits at a time."""

    log: Table
    layout: Layout
    batch_rows: int

    @property
    def way(self) -> Way:
        """How its units come together."""
        if self.layout.units is not None:
            return "slices"
        way = way_of(self.log, self.batch_rows)
        return "merge" if way != "whole" and self.layout.stretches is not None else way

    @property
    def merged(self) -> Stretches | None:
        """The stretches that are merged, if that is the way."""
        return self.layout.stretches if self.way == "merge" else None

    @property
    def by_query(self) -> bool:
        """Whether its batches are neighbouring queries, which rise from batch to batch but for a few times."""
        units = self.layout.units
        if units is None:
            return self.merged is not None and self.merged.column == "query_id"
        queries = units["query_id"]
        return int((queries < queries.shift()).sum()) <= _MOST_TURNS

    @property
    def n_shards(self) -> int:
        """How many batches there are where units have to come together first."""
        if self.merged is not None:
            return len(self.merged.groups(self.batch_rows))
        return n_shards_of(self.log, self.batch_rows)

    def shards(self, done: int) -> Iterator[pl.DataFrame]:
        """The rows of these batches, but for the first that are done."""
        if self.merged is not None:
            return self.merged.frames(self.log, self.batch_rows, done)
        return shards(self.log, self.batch_rows, done)


def layouts_of(logs: Sequence[Table], options: Options) -> list[Layout]:
    """Look how each log lies."""
    return [prove_sorted(log, options) for log in logs]


def make_plans(
    logs: Sequence[Table],
    layouts: Sequence[Layout],
    found: Sequence[pl.DataFrame],
    options: Options,
    batch_rows: int = BATCH_ROWS,
) -> list[Plan]:
    """Decide how each log is worked on; when rows by themselves break the contract, raise a DataError.

    found: what the check of the other tables found, so that one message tells everything.
    """
    plans = [Plan(log, layout, batch_rows) for log, layout in zip(logs, layouts, strict=True)]
    if options.on_bad_rows == "error":
        bad = [f for plan in plans if plan.layout.units is None for f in find_offenders(plan.log, options)]
        findings.raise_errors(findings.merge([*found, *bad]))
    return plans


def orders_disagree(log: Table, options: Options, batch_rows: int) -> list[pl.DataFrame]:
    """Count the units of a TREC run in which the order of ranks is not that of trec_eval; nothing for other logs.

    Such files carry both, and evaluators differ in which of them they read. Rows without a rank or a score, which may
    hold anything where it is not used, are passed over.
    """
    if not {"rank", "score"} <= log.columns.keys() or any(part.format != "trec" for part in log.parts):
        return []
    found, key = [], unit_key(log.columns)
    for rows in shards(log, batch_rows):
        whole = rows.select(*key, "rank", "score", "doc_id").drop_nulls()
        same = pl.all_horizontal(pl.col(c) == pl.col(c).shift() for c in key)
        score, doc = pl.col("score").cast(pl.Float32), pl.col("doc_id").cast(pl.String)
        higher = (score > score.shift()) | ((score == score.shift()) & (doc > doc.shift()))
        ordered = whole.lazy().sort(*key, "rank", maintain_order=True).with_columns((same & higher).alias("_swapped"))
        per_unit = ordered.group_by(key).agg(pl.len().cast(pl.Int64), pl.col("_swapped").any()).filter("_swapped")
        units = per_unit.collect()
        queries = units["query_id"].unique()
        n_hits = int(units["len"].sum())
        severity: findings.Severity = "warning" if options.order == "rank" else "info"
        found.append(
            findings.finding(
                "orders_disagree", "hits", "score", n_hits, n_queries=units.height, examples=queries, severity=severity
            )
        )
    return found


def batches(plans: Sequence[Plan], options: Options, done: int = 0) -> Iterator[Batch]:
    """Yield the batches of all logs, but for the first that are done. Every row is in one of them, or was counted."""
    for plan in plans:
        units = plan.layout.units
        if units is not None:
            slices = _slices(plan.log, units, options, plan.batch_rows)
            skipped = sum(1 for _ in islice(slices, done))  # nothing of them is read
            yield from slices
        else:
            skipped = min(done, plan.n_shards)
            yield from _checked_shards(plan, options, skipped)
        done -= skipped


def _checked_shards(plan: Plan, options: Options, done: int) -> Iterator[Batch]:
    log = plan.log
    key = unit_key(log.columns)
    for rows in plan.shards(done):
        checked = check_hits(rows, log, options)
        units = _touched(find_units(checked.rows, key), checked.rejected, key)
        yield Batch(
            _named(units, log),
            checked.rows.lazy().select("rank", *read_columns(log)),
            frozenset(read_columns(log)),
            log.parts,
            read=rows.height,
            duplicates=checked.duplicates,
            rejected=_of_its_run(checked.rejected, log),
            findings=checked.findings,
        )


def _touched(units: pl.DataFrame, rejected: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Mark the units that bad rows touch, and add those that have nothing but bad rows.

    A row without a query touches none.
    """
    bad = rejected.select(key).filter(pl.col("query_id").is_not_null()).unique()
    whole = bad.filter(pl.all_horizontal(pl.col(key).is_not_null())).with_columns(pl.lit(True).alias("rejected"))
    joined = units.join(whole, on=key, how="full", coalesce=True, maintain_order="left_right")
    return touched_in_part(
        joined.with_columns(pl.col("n_hits", "n_gaps").fill_null(0), pl.col("rejected").fill_null(False)), bad
    )


def touched_in_part(units: pl.DataFrame, bad: pl.DataFrame) -> pl.DataFrame:
    """Let bad rows that lack a run or a request reject every unit that they may belong to.

    bad: the keys of bad rows, null where a row does not say. Row order of the units stays.
    """
    bad = bad.select(unit_key(set(bad.columns) & set(units.columns)))
    some = bad.filter(pl.any_horizontal(pl.all().is_null()), pl.col("query_id").is_not_null()).unique()
    for named in some.select(pl.all().is_not_null()).unique().to_dicts():  # one round for each kind of partial key
        known = [c for c, there in named.items() if there]
        alike = pl.all_horizontal(pl.col(c).is_not_null() == there for c, there in named.items())
        hit = some.filter(alike).select(known).unique().with_columns(pl.lit(True).alias("_hit"))
        marked = units.join(hit, on=known, how="left", maintain_order="left")
        units = marked.with_columns(pl.col("rejected") | pl.col("_hit").fill_null(False)).drop("_hit")
    return units


def _named(units: pl.DataFrame, log: Table) -> pl.DataFrame:
    if "rejected" not in units.columns:
        units = units.with_columns(pl.lit(False).alias("rejected"))
    numbers = pl.col("n_hits", "n_gaps").cast(pl.Int64)
    return _of_its_run(units, log).select(*unit_key([*units.columns, "run_id"]), numbers, "rejected")


def _of_its_run(rows: pl.DataFrame, log: Table) -> pl.DataFrame:
    """Give units or rows their run: the log's own column, the caller's name, or `run`."""
    if "run_id" in rows.columns:
        return rows
    return rows.with_columns(pl.lit(log.run or DEFAULT_RUN).alias("run_id"))


def _slices(log: Table, units: pl.DataFrame, options: Options, batch_rows: int) -> Iterator[Batch]:
    """Cut a sorted log between units, near the wanted size and at the end of a file where one is near."""
    for start, end, first, after in _cuts(log, units["n_hits"].to_numpy(), batch_rows):
        rows, parts = _between(log, start, end)
        if options.rank_base != 1:
            rows = rows.with_columns(pl.col("rank") + (1 - options.rank_base))
        named = _named(units.slice(first, after - first), log)
        yield Batch(named, rows, frozenset(read_columns(log)), parts, read=end - start)


def _cuts(log: Table, n_hits: Ints, batch_rows: int) -> list[tuple[int, int, int, int]]:
    """Where batches begin and end: the first row and the first after, and the same of units."""
    ends = np.cumsum(n_hits, dtype=np.int64)
    file_ends = np.cumsum([part.n_rows for part in log.parts])
    found, start, unit = [], 0, 0
    while start < log.n_rows:
        last_file = min(int(np.searchsorted(file_ends, start, side="right")) + MOST_OPEN, len(file_ends)) - 1
        goal = min(_goal(start, batch_rows, ends, file_ends), int(file_ends[last_file]))
        stop = int(np.searchsorted(ends, goal)) + 1
        end = int(ends[stop - 1])
        found.append((start, end, unit, stop))
        start, unit = end, stop
    return found


def _goal(start: int, batch_rows: int, ends: Ints, file_ends: Ints) -> int:
    """The row at which the batch should end: a file's end between half and one and a half of the wanted size."""
    goal = start + batch_rows
    near = file_ends[(file_ends > start + batch_rows // 2) & (file_ends <= start + batch_rows + batch_rows // 2)]
    whole = near[np.isin(near, ends[np.searchsorted(ends, near).clip(max=len(ends) - 1)])]
    if len(whole):
        goal = int(whole[np.argmin(np.abs(whole - goal))])
    return min(goal, int(ends[-1]))


def _between(log: Table, start: int, end: int) -> tuple[pl.LazyFrame, Sequence[Part]]:
    """Scan the rows from one on up to another, not included, of all parts put end to end."""
    file_ends = np.cumsum([part.n_rows for part in log.parts])
    first, last = np.searchsorted(file_ends, [start, end - 1], side="right")
    parts = log.parts[first : last + 1]
    begin = int(file_ends[first]) - log.parts[first].n_rows
    rows = log.scan(parts, ["rank", *read_columns(log)])
    return (rows if (begin, int(file_ends[last])) == (start, end) else rows.slice(start - begin, end - start)), parts
