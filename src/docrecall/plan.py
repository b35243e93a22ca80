"""Files -> batches of whole units, decided by evidence.

One cheap pass over the keys and ranks of a log shows where units begin. When no rank falls or repeats inside
a unit and no unit begins twice, the log is sorted by unit: that pass was also the proof that ranks are unique, and
slices of the files are batches. Anything else (scattered units, rows out of order, rows delivered twice, bad rows,
order by score) goes through `shards`, which brings each unit's rows together first, and is checked there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from docrecall import findings
from docrecall.contract.hits import check_hits, find_offenders, read_columns, value_rules
from docrecall.contract.lookup import DEFAULT_RUN
from docrecall.kernel.batch import Batch, find_units
from docrecall.options import Options
from docrecall.shards import shards
from docrecall.sources.table import LARGEST_RANK, MOST_OPEN, Part, Table, collect, damaged
from docrecall.tables import unit_key

Ints = npt.NDArray[np.int64]

BATCH_ROWS = 2_000_000  # whole row groups of a million rows, where they hold whole units
_PROBE_ROWS = 4_000_000


def check_logs(logs: Sequence[Table], found: Sequence[pl.DataFrame], options: Options) -> list[pl.DataFrame | None]:
    """Give what `prove_sorted` says of each log; when rows by themselves break the contract, raise a DataError.

    found: what the check of the other tables found, so that one message tells everything.
    """
    layouts = [prove_sorted(log, options) for log in logs]
    if options.on_bad_rows == "error":
        bad = [
            f for log, layout in zip(logs, layouts, strict=True) if layout is None for f in find_offenders(log, options)
        ]
        findings.raise_errors(findings.merge([*found, *bad]))
    return layouts


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


def batches(log: Table, units: pl.DataFrame | None, options: Options, batch_rows: int) -> Iterator[Batch]:
    """Yield the batches of one log. Every row of the log is in exactly one of them, or counted on the way.

    units: what `prove_sorted` gave.
    """
    if units is not None:
        yield from _slices(log, units, options, batch_rows)
        return
    key = unit_key(log.columns)
    for rows in shards(log, batch_rows):
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
    return _of_its_run(units, log).select(*unit_key([*units.columns, "run_id"]), "n_hits", "n_gaps", "rejected")


def _of_its_run(rows: pl.DataFrame, log: Table) -> pl.DataFrame:
    """Give units or rows their run: the log's own column, the caller's name, or `run`."""
    if "run_id" in rows.columns:
        return rows
    return rows.with_columns(pl.lit(log.run or DEFAULT_RUN).alias("run_id"))


def prove_sorted(log: Table, options: Options) -> pl.DataFrame | None:
    """Give the units of a log in row order (key, n_hits, n_gaps), or None when it is not sorted and clean.

    Reads keys and ranks only. Between unit starts nothing is brought in unless a rank does not follow its predecessor.
    """
    ranks_as_logged = options.order == "rank" and options.ranks == "logged" and log.columns["rank"] == pl.Int64
    if not ranks_as_logged or not log.n_rows or log.faulty:
        return None
    key = unit_key(log.columns)
    if any(part.null_count("doc_id") for part in log.parts) or _probe_scattered(log, key):
        return None
    if _breaks_values(log):
        return None
    frames, offset = [], 0
    for part in log.parts:
        if part.n_rows:
            frames.append(_marks(log, part, key).with_columns(pl.col("row") + offset))
            offset += part.n_rows
    marks = _stitch(pl.concat(frames), key)
    first = options.rank_base
    clean = marks.select(
        ok=~pl.any_horizontal(pl.col(*key, "rank").is_null())
        & (pl.col("rank") >= first)
        & (pl.col("rank") < LARGEST_RANK)
        & (pl.col("new") | (pl.col("step") > 0))
    )["ok"]
    if not clean.all():
        return None
    return _units_of(marks, key, first, log.n_rows)


def _breaks_values(log: Table) -> bool:
    """Whether a column that a measure reads holds what it must not."""
    rules = value_rules(log)
    if not rules:
        return False
    columns = sorted({c for rule in rules for c in rule.broken.meta.root_names()})
    for part in log.parts:
        broken = log.scan(part, columns).select(pl.any_horizontal(rule.broken for rule in rules).any())
        if collect(broken, [part]).item():
            return True
    return False


def _marks(log: Table, part: Part, key: Sequence[str]) -> pl.DataFrame:
    """The rows of a part where something happens: a unit begins, a rank does not follow, the part ends."""
    scan = log.scan(part, [*key, "rank"]).with_row_index("row")
    new = pl.any_horizontal(pl.col(c).ne_missing(pl.col(c).shift()) for c in key)
    step = pl.col("rank") - pl.col("rank").shift()
    marked = scan.with_columns(new.alias("new"), step.alias("step")).filter(
        pl.col("new") | pl.col("step").ne_missing(1) | (pl.col("row") >= part.n_rows - 1)
    )
    # Each chunk of the result still holds the rows that it was filtered from: a hundred times what is wanted.
    marks = collect(marked, [part]).rechunk().with_columns(pl.col("row").cast(pl.Int64))
    if marks["row"].max() != part.n_rows - 1:
        raise damaged(part)
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


def _units_of(marks: pl.DataFrame, key: Sequence[str], first: int, n_rows: int) -> pl.DataFrame | None:
    heads = marks.filter("new")
    rising = heads["query_id"]
    proved = len(key) == 1 and bool((rising.slice(1) > rising.slice(0, len(rising) - 1)).all())
    if not proved and heads.select(key).is_duplicated().any():
        return None
    jump = pl.when("new").then(pl.col("rank") > first).otherwise(pl.col("step") > 1)
    jumps = marks.filter(jump)["row"].to_numpy()
    starts = heads["row"].to_numpy()
    gaps = np.bincount(np.searchsorted(starts, jumps, side="right") - 1, minlength=len(starts))
    return heads.select(
        *key,
        pl.Series("n_hits", np.diff(starts, append=n_rows)),
        pl.Series("n_gaps", gaps.astype(np.int64)),
        pl.lit(False).alias("rejected"),
    )


def _probe_scattered(log: Table, key: Sequence[str]) -> bool:
    """Whether units already begin twice among the first rows, in which case marking all rows would be a waste."""
    part = next(part for part in log.parts if part.n_rows)
    scan = log.scan(part, key).head(_PROBE_ROWS)
    new = pl.any_horizontal(pl.col(c).ne_missing(pl.col(c).shift()) for c in key)
    heads = collect(scan.filter(new).select(pl.struct(key).hash().alias("h")), [part])["h"]
    return heads.n_unique() < len(heads)


def _slices(log: Table, units: pl.DataFrame, options: Options, batch_rows: int) -> Iterator[Batch]:
    """Cut a sorted log between units, near the wanted size and at the end of a file where one is near."""
    named = _named(units, log)
    ends = np.cumsum(units["n_hits"].to_numpy())
    file_ends = np.cumsum([part.n_rows for part in log.parts])
    start, unit = 0, 0
    while start < log.n_rows:
        last_file = min(int(np.searchsorted(file_ends, start, side="right")) + MOST_OPEN, len(file_ends)) - 1
        goal = min(_goal(start, batch_rows, ends, file_ends), int(file_ends[last_file]))
        stop = int(np.searchsorted(ends, goal)) + 1
        end = int(ends[stop - 1])
        rows, parts = _between(log, start, end, file_ends)
        if options.rank_base != 1:
            rows = rows.with_columns(pl.col("rank") + (1 - options.rank_base))
        yield Batch(named.slice(unit, stop - unit), rows, frozenset(read_columns(log)), parts, read=end - start)
        start, unit = end, stop


def _goal(start: int, batch_rows: int, ends: Ints, file_ends: Ints) -> int:
    """The row at which the batch should end: a file's end between half and one and a half of the wanted size."""
    goal = start + batch_rows
    near = file_ends[(file_ends > start + batch_rows // 2) & (file_ends <= start + batch_rows + batch_rows // 2)]
    whole = near[np.isin(near, ends[np.searchsorted(ends, near).clip(max=len(ends) - 1)])]
    if len(whole):
        goal = int(whole[np.argmin(np.abs(whole - goal))])
    return min(goal, int(ends[-1]))


def _between(log: Table, start: int, end: int, file_ends: Ints) -> tuple[pl.LazyFrame, list[Part]]:
    scans: list[pl.LazyFrame] = []
    parts: list[Part] = []
    for part, stop in zip(log.parts, file_ends.tolist(), strict=True):
        begin = stop - part.n_rows
        low, high = max(start, begin), min(end, stop)
        if low < high:
            scan = log.scan(part, ["rank", *read_columns(log)])
            scans.append(scan if (low, high) == (begin, stop) else scan.slice(low - begin, high - low))
            parts.append(part)
    return pl.concat(scans), parts
