"""Units of batches -> the account of each run: what became of every unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import polars as pl

from docrecall.tables import by_run

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


class Accounting:
    """Adds up units as batches of them come in."""

    def __init__(self) -> None:
        self._units: dict[str, Counter[str]] = {}

    def note_runs(self, runs: Iterable[str]) -> None:
        """Give these runs an account, also those in which nothing was to be scored."""
        for run in runs:
            self._units.setdefault(run, Counter())

    def add(self, units: pl.DataFrame) -> None:
        """Add units: run_id, status, n_hits."""
        for run, rows in by_run(units):
            counts = self._units.setdefault(run, Counter())
            counts.update(dict(rows["status"].value_counts().iter_rows()))
            counts["no_hits"] += rows.filter(pl.col("status") == "scored", pl.col("n_hits") == 0).height

    def table(self) -> pl.DataFrame:
        """One row per run: n_total = n_scored + the reasons; n_no_hits counts scored units without hits."""
        rows = []
        for run in sorted(self._units):
            counts = self._units[run]
            reasons = {column: counts[status] for status, column in _REASONS.items()}
            n_total = counts["scored"] + sum(reasons.values())
            rows.append(
                {
                    "run_id": run,
                    "n_total": n_total,
                    "n_scored": counts["scored"],
                    "n_no_hits": counts["no_hits"],
                    **reasons,
                }
            )
        return pl.DataFrame(rows, schema=ACCOUNTING_SCHEMA)
