"""Answered or declined, against answerable or not: how a system decides on questions that have no answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import polars as pl

from docrecall.reference import decision_rates
from docrecall.tables import by_run

_TABLE = ("answered_answerable", "declined_answerable", "answered_unanswerable", "declined_unanswerable")
_RATES = tuple(decision_rates(0, 0, 0, 0))
DECISIONS_SCHEMA = pl.Schema(
    {
        "run_id": pl.String(),
        **dict.fromkeys((*_TABLE, "undecided"), pl.Int64()),
        **dict.fromkeys(_RATES, pl.Float64()),
        "declined_with_gold": pl.Int64(),
    }
)


def decided(units: pl.LazyFrame, key: Iterable[str], beside: Iterable[str] = ()) -> pl.LazyFrame:
    """Say of each unit what the system did: the key, status, answerable (null: undecided), answered, gold_retrieved.

    beside: other columns of the units to keep.
    """
    answerable = (
        pl.when(pl.col("status").is_in(["scored", "stale_labels"]))
        .then(True)
        .when(pl.col("status") == "unanswerable")
        .then(False)
    )
    return units.select(
        *key, "status", answerable.alias("answerable"), "answered", pl.col("gold").alias("gold_retrieved"), *beside
    )


class Decisions:
    """Adds up decisions as batches of units come in."""

    def __init__(self) -> None:
        self._runs: dict[str, Counter[str]] = {}

    def note_runs(self, runs: Iterable[str]) -> None:
        """Give these runs a row, also those in which nothing was asked."""
        for run in runs:
            self._runs.setdefault(run, Counter())

    def add(self, units: pl.DataFrame) -> None:
        """Add units: run_id, status, answered, gold."""
        answered, answerable = pl.col("answered").fill_null(False), pl.col("answerable")
        for run, rows in by_run(units):
            counts = decided(rows.lazy(), ["run_id"]).select(
                answered_answerable=(answered & answerable).sum(),
                declined_answerable=(~answered & answerable).sum(),
                answered_unanswerable=(answered & ~answerable).sum(),
                declined_unanswerable=(~answered & ~answerable).sum(),
                undecided=answerable.is_null().sum(),
                declined_with_gold=(~answered & answerable & pl.col("gold_retrieved")).sum(),
            )
            self._runs.setdefault(run, Counter()).update(counts.collect().row(0, named=True))

    def table(self) -> pl.DataFrame:
        """One row per run: the counts, the rates (null where there is nothing to divide by), declined_with_gold."""
        rows = []
        for run in sorted(self._runs):
            n = self._runs[run]
            rates = decision_rates(*(n[column] for column in _TABLE))
            counts = {column: n[column] for column in (*_TABLE, "undecided", "declined_with_gold")}
            rows.append({"run_id": run, **counts, **rates})
        return pl.DataFrame(rows, schema=DECISIONS_SCHEMA)
