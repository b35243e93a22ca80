"""A bound on memory: how many hits may be worked on at a time, or that it cannot be kept, before the work begins.

The tables that are held whole are measured when they are there. What a row of a log takes is estimated from its
columns, on the side of more.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from docrecall.contract.hits import read_columns
from docrecall.contract.known import Known
from docrecall.contract.pieces import MOST_HELD
from docrecall.errors import UsageError
from docrecall.kernel.labels import InPieces, Labels
from docrecall.parallel import WORKERS
from docrecall.plan import Plan
from docrecall.rowgroups import MOST
from docrecall.sources.inputs import Inputs
from docrecall.sources.table import Table, collect

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30}
_LEAST_ROWS = 50_000  # smaller batches spend their time on everything but rows
_INLINE = 12  # bytes of a string that stand in its view of 16
_LABEL_BYTES = 170  # for each row of a table that is held whole, while it is checked
_ROW_BYTES = 40  # for each row in the works, besides its columns
_UNSORTED = 3  # times as much where units are brought together first: whole rows, their copies, and what sorts them
_BARE = 180_000_000  # Python, the engine and the libraries
_SPARE = 120_000_000  # what the engine and the allocator keep
_MOST = 1 << 60  # bytes that a bound may name; no machine has them
_WAYS = {
    "slices": "slices of the files are batches",
    "merge": "each batch is a slice of every file, and its rows are brought in order",
    "whole": "the log is read whole, as one batch",
    "scans": "each batch is a scan of all files for a part of the queries",
    "spill": "all rows are written once to temporary files, a part of the queries in each; these are the batches",
}


class Expected(NamedTuple):
    """What a run holds, in bytes: now, for its results, and for each row in the works. on_disk: results are written."""

    now: int
    results: int
    per_row: int
    on_disk: bool = False

    def peak(self, batch_rows: int) -> int:
        """The most that is likely to be held at a time."""
        return self.now + self.results + _SPARE + self.per_row * batch_rows * WORKERS


def parse_bytes(given: int | str) -> int:
    """Read a number of bytes: 1GB is 10^9, 1GiB 2^30. Raises UsageError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?B?)", str(given).strip().upper())
    unit = _UNITS.get(match[2].removesuffix("B")) if match else None
    if match is None or unit is None or isinstance(given, bool) or not 1 <= float(match[1]) * unit <= _MOST:
        raise UsageError(f"memory is {given!r}; expected a number of bytes such as 1GB or 800MB.")
    return int(float(match[1]) * unit)


def check_tables(inputs: Inputs, bound: int, *, in_pieces: bool = True) -> None:
    """Raise UsageError when the tables that are held whole do not fit, before any of them is read.

    in_pieces: whether labels that are many may stay in their files, as they do where these are sorted by query.
    """
    rows = {name: table.n_rows for name, table in inputs.tables.items()}
    if in_pieces and "evidence" not in rows and "qrels" in rows:
        rows["qrels"] = min(rows["qrels"], MOST_HELD)
    needed = _resident() + _SPARE + _LABEL_BYTES * sum(rows.values())
    if needed > bound:
        largest = max(rows, key=lambda name: rows[name])
        raise UsageError(
            f"memory={_said(bound)} is too little: {sum(rows.values()):,} rows of labels and lists are held whole "
            f"({largest}: {rows[largest]:,}), which takes about {_said(needed)}."
        )


def fit(plans: Sequence[Plan], expected: Expected, bound: int) -> list[Plan]:
    """Make batches small enough for a bound. Raises UsageError when not even the smallest are."""
    left = bound - expected.peak(0)
    rows = left // (expected.per_row * WORKERS)
    if rows < min(_LEAST_ROWS, max((plan.log.n_rows for plan in plans), default=0)):
        least = expected.peak(_LEAST_ROWS)
        held = expected.results and not expected.on_disk
        results = f", {_said(expected.results)} of it for results: --out writes them" if held else ""
        raise UsageError(f"memory={_said(bound)} is too little: this run needs about {_said(least)}{results}.")
    return [plan._replace(batch_rows=max(1, min(plan.batch_rows, int(rows)))) for plan in plans]


def expect(known: Known, plans: Sequence[Plan], n_measures: int, *, on_disk: bool) -> Expected:
    """Estimate what is held. Called when the tables are read and the plans made; on_disk: whether results are written.

    What reading the tables needed on the way, and the allocator kept, serves the batches: only what is held counts.

    How many units an unsorted log has is not known before the work; one in twenty rows is assumed.
    """
    sizes = [_row_bytes(plan.log) * (1 if plan.layout.units is not None else _UNSORTED) for plan in plans]
    units = sum(len(p.layout.units) if p.layout.units is not None else p.log.n_rows // 20 for p in plans)
    # The batches, and all of them in order; on disk, the row group that is encoded and the one that is filled.
    kept = (min(units, MOST) if on_disk else units) * (3 * 16 + 8 * (n_measures + 5)) * 2
    labels = known.labels
    # Labels and passages share the ids of the rows that were checked, and the list of queries is theirs.
    frames = [labels.qrels.in_memory, labels.evidence, labels.requests]
    frames += [check.rows for name, check in known.checks.items() if name not in ("qrels", "evidence", "requests")]
    frames += [plan.layout.units for plan in plans]
    held = _BARE + int(1.2 * sum(_bytes(frame) for frame in frames if frame is not None))
    return Expected(min(held, _resident()), kept, max(sizes, default=_ROW_BYTES), on_disk)


def _bytes(frame: pl.DataFrame) -> int:
    """What a frame takes; of text the engine itself counts the letters and not the views."""
    return int(frame.estimated_size()) + sum(16 * frame.height for dtype in frame.dtypes if dtype == pl.String)


def _row_bytes(log: Table) -> int:
    """What a row of a sorted log takes while its batch is worked on."""
    wanted = [c for c in dict.fromkeys(("query_id", "rank", *read_columns(log))) if c in log.columns]
    part = next((p for p in log.parts if p.n_rows), None)
    if part is None:
        return _ROW_BYTES
    head = collect(log.scan([part], wanted).head(10_000), [part])
    return _ROW_BYTES + sum(_value_bytes(head[c]) for c in wanted)


def _value_bytes(column: pl.Series) -> int:
    if column.dtype != pl.String:
        return 8
    mean = column.str.len_bytes().mean()
    longer = float(mean) if isinstance(mean, int | float) else 0.0
    return 16 + (int(longer) if longer > _INLINE else 0)


def _resident() -> int:
    """The bytes of this process that are in memory now."""
    if os.path.exists("/proc/self/statm"):  # noqa: PTH110 - on Linux
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - not a path of anybody's
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS; the peak so far, so at least that


def _said(n: int) -> str:
    return f"{n / 1e9:.2f} GB" if n >= 10**9 else f"{n / 1e6:.0f} MB"


def describe(labels: Labels, plans: Sequence[Plan], expected: Expected) -> list[str]:
    """Say how each log is worked on and why, and what is likely to be held."""
    lines = []
    if isinstance(labels.qrels, InPieces):
        lines.append(f"labels: {labels.qrels.height:,} rows, sorted by query, read in pieces when batches need them")
    for plan in plans:
        log, units = plan.log, plan.layout.units
        name = f"hits of run {log.run}" if log.run else "hits"
        n_batches = -(-log.n_rows // plan.batch_rows)
        formats = ", ".join(sorted({part.format for part in log.parts}))
        known = "" if units is None else f", {len(units):,} units"
        lines += [
            f"{name}: {log.n_rows:,} rows{known} in {len(log.parts):,} file{'s'[: len(log.parts) != 1]} ({formats})",
            f"  {'sorted by unit' if units is not None else 'not taken as sorted'}: {plan.layout.why}",
            f"  {_WAYS[plan.way]}: about {n_batches:,} of {min(plan.batch_rows, log.n_rows):,} rows, "
            f"{WORKERS} at a time",
        ]
        if log.looked_up:
            lines.append(f"  {', '.join(log.looked_up)} looked up by chunk_id in front of every scan")
    peak = expected.peak(max((min(p.batch_rows, p.log.n_rows) for p in plans), default=0))
    lines.append(
        f"memory: about {_said(peak)} at the most ({_said(expected.now)} now, tables included; "
        f"{_said(expected.results)} for results; {expected.per_row} bytes for each row in the works)"
    )
    return lines
