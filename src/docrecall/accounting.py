"""The account of each run: what became of every unit."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

# status of a unit -> the column of the accounting that counts it
_REASONS = {
    "unlabelled": "n_unlabelled",
    "no_relevant": "n_no_relevant",
    "unanswerable": "n_unanswerable",
    "stale_labels": "n_stale_labels",
    "rejected_rows": "n_rejected",
}
ACCOUNTING_SCHEMA = pl.Schema(
    {"run_id": pl.String(), **dict.fromkeys(("n_total", "n_scored", "n_no_hits", *_REASONS.values()), pl.Int64())}
)


def account(tally: pl.DataFrame, runs: Iterable[str]) -> pl.DataFrame:
    """One row per run, sorted: n_total = n_scored + the reasons; n_no_hits counts scored units without hits.

    tally: as `Tally.table` gives it. runs: those that have a row although nothing of them is in it.
    """
    n, scored = pl.col("n"), pl.col("status") == "scored"
    counted = tally.group_by("run_id").agg(
        n_scored=n.filter(scored).sum(),
        n_no_hits=n.filter(scored & ~pl.col("has_hits")).sum(),
        **{column: n.filter(pl.col("status") == status).sum() for status, column in _REASONS.items()},
    )
    return (
        rows_of_runs(counted, runs)
        .with_columns(n_total=pl.sum_horizontal("n_scored", *_REASONS.values()))
        .select(*ACCOUNTING_SCHEMA)
        .cast(ACCOUNTING_SCHEMA)
    )


def rows_of_runs(counted: pl.DataFrame, runs: Iterable[str]) -> pl.DataFrame:
    """Counts by run, with zeros for runs of which nothing was counted; sorted by run_id."""
    named = pl.DataFrame({"run_id": sorted({*runs, *counted["run_id"]})}, schema={"run_id": pl.String})
    return named.join(counted, on="run_id", how="left", maintain_order="left").fill_null(0)
