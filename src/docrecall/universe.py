"""Which units are scored besides those that the logs show: the ones without a single hit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from docrecall.contract.known import Known
from docrecall.kernel.batch import Batch
from docrecall.options import Options

_AT_A_TIME = 250_000


def expected_queries(known: Known, options: Options) -> pl.Series | None:
    """The queries that every run is asked: the listed ones, else the labelled ones; None when only hits count."""
    if options.universe == "hits":
        return None
    labels = known.labels
    if labels.queries is None:
        table, rejected = labels.qrels, labels.rejected
    else:
        table, rejected = labels.queries, labels.rejected_listed
    listed = table["query_id"].set_sorted().unique(maintain_order=True)
    return listed if rejected.is_empty() else pl.concat([listed, rejected]).unique().sort()


def units_without_hits(
    known: Known,
    runs: Mapping[str, Sequence[pl.Series]],
    asked: Mapping[str, pl.Series],
    lost: Sequence[pl.Series],
    options: Options,
) -> Iterator[Batch]:
    """Yield batches of the units that no row spoke of. runs: run -> the queries that it has hits for.

    asked: run -> the queries that its log names as having none. lost: queries of bad rows that name no run; the units
    of these are rejected.

    The last batch may be empty; there is always one, so that results without units have columns too.
    """
    ids = known.labels.qrels.schema
    rows = pl.LazyFrame(schema={"query_id": ids["query_id"], "rank": pl.Int64, "doc_id": ids["doc_id"]})
    nobody = pl.Series("query_id", [], dtype=ids["query_id"])
    expected = expected_queries(known, options)
    touched = pl.concat([nobody, *lost])
    found = 0
    for run, seen in runs.items():
        wanted = [s for s in (expected, asked.get(run)) if s is not None]
        missing = (
            _missing(pl.concat(wanted).unique().sort() if len(wanted) > 1 else wanted[0], seen) if wanted else nobody
        )
        for start in range(0, len(missing), _AT_A_TIME):
            found += 1
            yield Batch(_empty_units(run, missing.slice(start, _AT_A_TIME), touched), rows)
    if not found:
        yield Batch(_empty_units("", nobody, touched), rows)


def _missing(expected: pl.Series, seen: Sequence[pl.Series]) -> pl.Series:
    if not seen:
        return expected
    met = pl.concat(seen).to_frame("query_id")
    return expected.to_frame("query_id").join(met, on="query_id", how="anti", maintain_order="left")["query_id"]


def _empty_units(run: str, queries: pl.Series, touched: pl.Series) -> pl.DataFrame:
    return pl.select(
        pl.lit(run).alias("run_id"),
        queries.alias("query_id"),
        n_hits=pl.lit(0, pl.Int64),
        n_gaps=pl.lit(0, pl.Int64),
        rejected=queries.is_in(touched.implode()),
    )
