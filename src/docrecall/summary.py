"""Per-unit scores -> means and accounts. What is added up here does not depend on order or batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import polars as pl

from docrecall.exact import exact_sum

# Columns that later versions fill exist already, so that what reads them need not change: they are null.
SUMMARY_SCHEMA = pl.Schema(
    {
        "run_id": pl.String(),
        "measure": pl.String(),
        "mean": pl.Float64(),
        "n": pl.Int64(),
        "n_null": pl.Int64(),
        "n_eff": pl.Float64(),
        "ci_low": pl.Float64(),
        "ci_high": pl.Float64(),
        "ci_method": pl.String(),
        "ceiling": pl.Float64(),
    }
)

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


class Tally:
    """Adds up units as batches of them come in."""

    def __init__(self, measures: Sequence[str]) -> None:
        self._measures = list(measures)
        self._sums: dict[tuple[str, str], Fraction] = {}
        self._values: Counter[tuple[str, str]] = Counter()
        self._units: dict[str, Counter[str]] = {}

    def note_runs(self, runs: Iterable[str]) -> None:
        """Give these runs an account, also those in which nothing was to be scored."""
        for run in runs:
            self._units.setdefault(run, Counter())

    def add(self, units: pl.DataFrame) -> None:
        """Add units: run_id, status, n_hits and the measures' columns."""
        for (run,), rows in units.partition_by("run_id", as_dict=True).items():
            counts = self._units.setdefault(run, Counter())
            counts.update(dict(rows["status"].value_counts().iter_rows()))
            counts["no_hits"] += rows.filter(pl.col("status") == "scored", pl.col("n_hits") == 0).height
            for measure in self._measures:
                values = rows[measure].drop_nulls().to_numpy()
                self._values[run, measure] += len(values)
                self._sums[run, measure] = self._sums.get((run, measure), Fraction(0)) + exact_sum(values)

    def summary(self) -> pl.DataFrame:
        """One row per run and measure: the exactly rounded sum over n, null when no unit has a value."""
        rows = []
        for run in sorted(self._units):
            for measure in self._measures:
                n = self._values[run, measure]
                mean = float(self._sums[run, measure]) / n if n else None
                rows.append(
                    {"run_id": run, "measure": measure, "mean": mean, "n": n, "n_null": self._units[run]["scored"] - n}
                )
        return pl.DataFrame(rows, schema=SUMMARY_SCHEMA)

    def accounting(self) -> pl.DataFrame:
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
