"""Which units are scored besides those that the logs show: the ones without a single hit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from docrecall.contract.hits import read_columns
from docrecall.contract.known import Known
from docrecall.kernel.batch import Batch
from docrecall.options import Options
from docrecall.plan import touched_in_part
from docrecall.tables import UNIT

_AT_A_TIME = 250_000
Units = Mapping[str, Sequence[pl.DataFrame]]


def expected_units(known: Known, runs: Sequence[str], options: Options) -> dict[str, pl.DataFrame]:
    """The units that each run is asked, without their run; none where only hits count.

    They are the listed requests; else, unless the log has requests of its own, the listed queries; else the labelled
    ones.
    """
    labels = known.labels
    if options.universe == "hits" or (known.by_request and labels.requests is None):
        return {}
    if labels.requests is not None:
        key = [c for c in labels.request_key if c != "run_id"]
        if "run_id" not in labels.request_key:
            return dict.fromkeys(runs, labels.requests.select(key).sort(key))
        parts = labels.requests.partition_by("run_id", as_dict=True)
        return {run: parts[run,].select(key).sort(key) for run in runs if (run,) in parts}
    return dict.fromkeys(runs, labels.asked_queries.to_frame())


def units_without_hits(
    known: Known, runs: Units, asked: Mapping[str, pl.DataFrame], lost: Sequence[pl.DataFrame], options: Options
) -> Iterator[Batch]:
    """Yield batches of the units that no row spoke of. runs: run -> the units that it has rows for.

    asked: run -> the units that its log names as having none. lost: keys of bad rows that do not name their unit in
    full; the units that these may belong to are rejected.

    The last batch may be empty; there is always one, so that results without units have columns too.
    """
    log = known.logs[0]
    key = [c for c in UNIT if c != "run_id" and (c != "request_id" or known.by_request)]
    types = known.labels.qrels.schema
    columns = frozenset(read_columns(log))
    rows = pl.LazyFrame(schema={**{c: log.columns[c] for c in columns}, "rank": pl.Int64})
    nobody = pl.DataFrame(schema={c: log.columns[c] if c == "request_id" else types["query_id"] for c in key})
    expected = expected_units(known, list(runs), options)
    found = 0
    for run, seen in runs.items():
        wanted = [u.select(key) for u in (expected.get(run), asked.get(run)) if u is not None]
        missing = (
            _missing(pl.concat(wanted).unique().sort(key) if len(wanted) > 1 else wanted[0], seen) if wanted else nobody
        )
        for start in range(0, len(missing), _AT_A_TIME):
            found += 1
            yield Batch(_empty_units(run, missing.slice(start, _AT_A_TIME), lost), rows, columns)
    if not found:
        yield Batch(_empty_units("", nobody, lost), rows, columns)


def _missing(expected: pl.DataFrame, seen: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if not seen:
        return expected
    if _is_made_of(expected, seen):  # a sorted log of all that was asked, told in a twentieth of the time
        return expected.clear()
    there = pl.concat(seen).select(expected.columns)
    return expected.join(there, on=expected.columns, how="anti", maintain_order="left")


def _is_made_of(units: pl.DataFrame, frames: Sequence[pl.DataFrame]) -> bool:
    """Whether frames put end to end are these units; told without doing so, as a copy of all of them is large."""
    if units.height != sum(frame.height for frame in frames):
        return False
    at = 0
    for frame in frames:
        if not units.slice(at, frame.height).equals(frame.select(units.columns)):
            return False
        at += frame.height
    return True


def _empty_units(run: str, units: pl.DataFrame, lost: Sequence[pl.DataFrame]) -> pl.DataFrame:
    empty = units.select(
        pl.lit(run).alias("run_id"),
        pl.all(),
        n_hits=pl.lit(0, pl.Int64),
        n_gaps=pl.lit(0, pl.Int64),
        rejected=pl.lit(False),
    )
    for bad in lost:
        empty = touched_in_part(empty, bad)
    return empty
