"""What a run gives back: numbers, and the account of every query and row beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from docrecall.errors import UsageError
from docrecall.options import Options
from docrecall.sources.files import FileRef

ROWS_SCHEMA = pl.Schema(
    {"table": pl.String(), **dict.fromkeys(("read", "used", "duplicate", "rejected", "outside"), pl.Int64())}
)


@dataclass(frozen=True)
class Scores:
    """The scores of one run of docrecall. Frames are sorted, so equal inputs give equal frames.

    measures: canonical names, in the order asked for.
    accounting: run_id, n_total, n_scored, n_no_hits and one count per reason; n_total = n_scored + the reasons.
    findings: code, severity, table, column, n_rows, n_queries, examples, file. On hits, n_queries counts units.
    rows: table, read, used, duplicate, rejected, outside; read = the sum of the others. Used rows kept the contract
      and belong to listed queries, whatever the status of these.
    rejected: LazyFrame of table, column, reason, file and the known columns of the rows that `on_bad_rows="reject"`
      set aside; without rows when there are none.
    options: the policies, with a digest.
    inputs: table, run, file, format, mapping, rows, bytes and mtime_ns of everything that was read.
    """

    measures: tuple[str, ...]
    accounting: pl.DataFrame
    findings: pl.DataFrame
    rows: pl.DataFrame
    rejected: pl.LazyFrame
    options: Options
    inputs: list[dict[str, Any]] = field(repr=False)
    _per_query: pl.DataFrame | FileRef = field(repr=False)
    _summary: pl.DataFrame = field(repr=False)
    _match: Callable[[], pl.DataFrame] | None = field(repr=False)

    def scan(self) -> pl.LazyFrame:
        """Give `per_query` as a LazyFrame; with `out=DIR` and after `load` it lies on disk and is read when needed."""
        if isinstance(self._per_query, FileRef):
            with self._per_query.open() as file:  # another run may have replaced it: InputError, never its numbers
                return pl.scan_parquet(file, glob=False)
        return self._per_query.lazy()

    @property
    def per_query(self) -> pl.DataFrame:
        """One row per unit, sorted by run_id, query_id: these, status, n_hits, one Float64 column per measure.

        Only units with status `scored` have values. A null in such a unit means that the measure is not defined
        there, as the share of an empty cut.
        """
        return self._per_query if isinstance(self._per_query, pl.DataFrame) else self.scan().collect()

    def summary(self) -> pl.DataFrame:
        """One row per run and measure: run_id, measure, mean, n, n_null and columns that are null in this version.

        mean is the exactly rounded sum of the values, divided by n; null when n is 0. n counts values, n_null scored
        units without one. n_eff, ci_low, ci_high, ci_method and ceiling are null.
        """
        return self._summary

    @cached_property
    def _matches(self) -> pl.DataFrame:
        if self._match is None:
            raise UsageError("matches are not among the written results. Score the tables again to look at them.")
        return self._match()

    @property
    def matches(self) -> pl.LazyFrame:
        """Where each relevant document of each scored unit was found, computed from the inputs when first asked for.

        One row per scored unit and relevant document, sorted: run_id, query_id, doc_id, relevance, first_rank,
        doc_position. The last two are null for a missed document. Raises UsageError after `load`, and InputError when
        an input changed in the meantime.
        """
        return self._matches.lazy()

    def __repr__(self) -> str:
        n = self.accounting.select(pl.col("n_total", "n_scored").sum()).row(0) if self.accounting.height else (0, 0)
        return (
            f"<Scores: {self.accounting.height} runs, {n[1]:,} of {n[0]:,} units scored, {len(self.measures)} measures>"
        )
