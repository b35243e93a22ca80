"""Per-unit scores -> means and accounts. What is added up here does not depend on order or batches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from docrecall.exact import exact_sum
from docrecall.measures.definition import Floats
from docrecall.reference import mean
from docrecall.tables import by_run

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
CEILING = "ceiling"


@dataclass
class _Sum:
    """Exact sums of the values of one measure, of their weights, and of the squares of these."""

    n: int = 0
    values: Fraction = Fraction(0)
    weights: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)

    def add(self, values: Floats, weights: Floats | None) -> None:
        self.n += len(values)
        if weights is None:
            self.values += exact_sum(values)
            return
        self.values += exact_sum(values * weights)
        self.weights += exact_sum(weights)
        self.squares += exact_sum(weights * weights)

    def mean(self, *, weighted: bool) -> float | None:
        whole = float(self.weights) if weighted else float(self.n)
        return float(self.values) / whole if whole else None

    def effective(self, *, weighted: bool) -> float | None:
        if not weighted:
            return float(self.n) or None
        return float(self.weights) ** 2 / float(self.squares) if self.squares else None


class Tally:
    """Adds up units as batches of them come in."""

    def __init__(self, measures: Sequence[str], *, weighted: bool, by_query: bool) -> None:
        """weighted: whether queries have weights. by_query: whether means are taken inside queries first.

        Such means need all units of a query at once: `add_queries` brings them when all batches are done.
        """
        self._measures = list(measures)
        self._weighted, self._by_query = weighted, by_query
        self._sums: defaultdict[tuple[str, str], _Sum] = defaultdict(_Sum)
        self._units: dict[str, Counter[str]] = {}
        self._queries: Counter[str] = Counter()

    def note_runs(self, runs: Iterable[str]) -> None:
        """Give these runs an account, also those in which nothing was to be scored."""
        for run in runs:
            self._units.setdefault(run, Counter())

    def add(self, units: pl.DataFrame) -> None:
        """Add units: run_id, status, n_hits, weight, ceiling and the measures' columns."""
        for run, rows in by_run(units):
            counts = self._units.setdefault(run, Counter())
            counts.update(dict(rows["status"].value_counts().iter_rows()))
            counts["no_hits"] += rows.filter(pl.col("status") == "scored", pl.col("n_hits") == 0).height
            if not self._by_query:
                self._add_values(run, rows)

    def _add_values(self, run: str, rows: pl.DataFrame) -> None:
        for name in (*self._measures, CEILING):
            weights = rows["weight"].filter(rows[name].is_not_null()).to_numpy() if self._weighted else None
            self._sums[run, name].add(rows[name].drop_nulls().to_numpy(), weights)

    def add_queries(self, units: pl.LazyFrame) -> None:
        """Add the means of queries over their units, given as to `add`, of all batches together."""
        scored = units.filter(pl.col("status") == "scored")
        keys = scored.select("run_id", "query_id", "weight").collect()
        if keys.is_empty():
            return
        order = keys.select(pl.struct("run_id", "query_id").arg_sort()).to_series()
        keys = keys[order]
        new = keys.select(pl.struct("run_id", "query_id") != pl.struct("run_id", "query_id").shift()).to_series()
        begin = np.flatnonzero(new.fill_null(True).to_numpy())
        heads = keys[begin]
        for run, rows in by_run(heads):
            self._queries[run] += rows.height
        for name in (*self._measures, CEILING):
            values = scored.select(name).collect()[name].gather(order).to_list()
            means = pl.Series(name, means_of_stretches(values, begin.tolist()), dtype=pl.Float64)
            frame = heads.with_columns(means).filter(pl.col(name).is_not_null())
            for run, rows in by_run(frame):
                weights = rows["weight"].to_numpy() if self._weighted else None
                self._sums[run, name].add(rows[name].to_numpy(), weights)

    def summary(self) -> pl.DataFrame:
        """One row per run and measure: the exactly rounded sum over n, null when no unit has a value."""
        rows: list[dict[str, Any]] = []
        for run in sorted(self._units):
            ceiling = self._sums[run, CEILING].mean(weighted=self._weighted)
            whole = self._queries[run] if self._by_query else self._units[run]["scored"]
            for measure in self._measures:
                total = self._sums[run, measure]
                rows.append(
                    {
                        "run_id": run,
                        "measure": measure,
                        "mean": total.mean(weighted=self._weighted),
                        "n": total.n,
                        "n_null": whole - total.n,
                        "n_eff": total.effective(weighted=self._weighted),
                        "ceiling": ceiling if measure.startswith("doc_recall@") else None,
                    }
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


def means_of_stretches(values: list[float | None], begin: list[int]) -> list[float | None]:
    """The mean of each stretch of values."""
    return [
        values[low] if high - low == 1 else mean(values[low:high])
        for low, high in zip(begin, [*begin[1:], len(values)], strict=True)
    ]
