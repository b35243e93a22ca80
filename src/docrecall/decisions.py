"""Answered or declined, against answerable or not: how a system decides on questions that have no answer."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from docrecall.accounting import rows_of_runs
from docrecall.reference import decision_rates

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
    return units.select(
        *key, "status", _ANSWERABLE.alias("answerable"), "answered", pl.col("gold").alias("gold_retrieved"), *beside
    )


_ANSWERABLE = (
    pl.when(pl.col("status").is_in(["scored", "stale_labels"]))
    .then(True)
    .when(pl.col("status") == "unanswerable")
    .then(False)
)


def decide(tally: pl.DataFrame, runs: Iterable[str]) -> pl.DataFrame:
    """One row per run, sorted: the counts, the rates (null where there is nothing to divide by), declined_with_gold.

    tally: as `Tally.table` gives it. runs: those that have a row although nothing was asked in them.
    """
    n, answered, answerable = pl.col("n"), pl.col("answered").fill_null(False), pl.col("answerable")
    counted = (
        tally.with_columns(_ANSWERABLE.alias("answerable"))
        .group_by("run_id")
        .agg(
            answered_answerable=n.filter(answered & answerable).sum(),
            declined_answerable=n.filter(~answered & answerable).sum(),
            answered_unanswerable=n.filter(answered & ~answerable).sum(),
            declined_unanswerable=n.filter(~answered & ~answerable).sum(),
            undecided=n.filter(answerable.is_null()).sum(),
            declined_with_gold=n.filter(~answered & answerable & pl.col("gold")).sum(),
        )
    )
    rows = rows_of_runs(counted, runs).to_dicts()
    return pl.DataFrame(
        [row | decision_rates(*(row[column] for column in _TABLE)) for row in rows], schema=DECISIONS_SCHEMA
    )
