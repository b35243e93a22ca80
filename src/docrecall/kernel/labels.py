"""What is known of the queries: their labels, whether they are listed, and what was said of them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Labels:
    """Labels and list of queries, checked, each sorted by query_id.

    qrels: query_id, doc_id, relevance. queries: query_id, label_status; None when no list was given.
    rejected, rejected_listed: query_id of the queries that a bad row touches, of both tables and of the list alone.
    """

    qrels: pl.DataFrame
    queries: pl.DataFrame | None
    rejected: pl.Series
    rejected_listed: pl.Series

    @property
    def listed(self) -> pl.Series | None:
        """The queries of the list, in a good way or a bad one; None when no list was given."""
        return None if self.queries is None else pl.concat([self.queries["query_id"], self.rejected_listed])

    def of(self, units: pl.DataFrame) -> pl.DataFrame:
        """Give the labels of some units: unit (its row number), doc_id, relevance."""
        near = _between(self.qrels, units["query_id"])
        keyed = units.select("query_id").with_row_index("unit")
        return keyed.join(near, on="query_id", how="inner").select(pl.col("unit").cast(pl.Int64), "doc_id", "relevance")

    def annotate(self, units: pl.DataFrame) -> pl.DataFrame:
        """Add `listed` and `label_status` to units, and let bad label rows reject them. Row order stays."""
        bad = pl.col("rejected") | pl.col("query_id").is_in(self.rejected.implode())
        units = units.with_columns(bad)
        if self.queries is None:
            return units.with_columns(pl.lit(True).alias("listed"), pl.lit(None, pl.String).alias("label_status"))
        near = _between(self.queries, units["query_id"]).with_columns(pl.lit(True).alias("listed"))
        joined = units.join(near, on="query_id", how="left", maintain_order="left", validate="m:1")
        # A query that is listed in a bad way is rejected, not outside.
        return joined.with_columns(
            pl.col("listed").fill_null(False) | pl.col("query_id").is_in(self.rejected_listed.implode())
        )


def _between(table: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    """Narrow a table sorted by query_id to the range of some ids: a batch of a sorted log needs a small part of it."""
    if ids.is_empty() or table.is_empty():
        return table.clear()
    column = table["query_id"]
    low = column.search_sorted(ids.bottom_k(1), side="left").item()
    high = column.search_sorted(ids.top_k(1), side="right").item()
    return table.slice(low, high - low)
