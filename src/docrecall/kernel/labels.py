"""What is known of the queries: labels, passages, whether they are listed, and what was said of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from threading import Lock

import numpy as np
import polars as pl

from docrecall.measures.definition import Ints, Mask
from docrecall.tables import unit_key

_MOST_PIECES = 4  # that are kept; as many batches in the works, of neighbours, ask for two or three


class ByQuery:
    """A table sorted by query_id, in which the rows of some queries are found without a join over all of it.

    queries: those that have rows, each once, sorted.
    """

    def __init__(self, rows: pl.DataFrame) -> None:
        queries = rows["query_id"]
        self.rows = rows
        self._starts = np.flatnonzero((queries != queries.shift()).fill_null(True).to_numpy())
        self.queries = queries.gather(self._starts)
        self._ends = np.append(self._starts[1:], rows.height)

    @property
    def schema(self) -> pl.Schema:
        """The columns and their types."""
        return self.rows.schema

    @property
    def height(self) -> int:
        """How many rows there are."""
        return self.rows.height

    def frames(self) -> Iterator[pl.DataFrame]:
        """All rows, in frames of whole queries that rise from frame to frame: here one."""
        yield self.rows

    def held(self) -> ByQuery:
        """The same with all rows in memory."""
        return self

    @property
    def in_memory(self) -> pl.DataFrame:
        """The rows that are held."""
        return self.rows

    def rows_of(self, queries: pl.Series) -> pl.DataFrame:
        """Give the rows of some queries: unit (number of the query among those given, rising) and the columns."""
        unit, row = self.of(queries)
        in_a_piece = len(row) > 0 and bool((np.diff(row) == 1).all())
        rows = self.rows.slice(int(row[0]), len(row)) if in_a_piece else self.rows[row]
        return rows.select(pl.Series("unit", unit, dtype=pl.Int64), pl.all())

    def of(self, queries: pl.Series) -> tuple[Ints, Ints]:
        """Find the rows of some queries: (number of the query among those given, number of the row), query by query."""
        none = np.zeros(0, dtype=np.int64)
        if self.rows.is_empty() or queries.is_empty():
            return none, none
        # A batch of a sorted log asks for neighbours: what lies between them fits the cache, all of it does not.
        asked = pl.lit(queries)
        ends = pl.select(asked.min().append(asked.max())).to_series()
        low, high = self.queries.search_sorted(ends, side="left").to_list()
        near = self.queries[low : high + 1]
        if near.is_empty():
            return none, none
        if len(near) == len(queries) and (near == queries).all():
            met = np.arange(len(queries))
            place = met
        else:
            place = np.minimum(near.search_sorted(queries, side="left").to_numpy().astype(np.int64), len(near) - 1)
            met = np.flatnonzero((near.gather(place) == queries).to_numpy())
            place = place[met]
        begin, end = self._starts[low + place], self._ends[low + place]
        size = end - begin
        first = np.repeat(begin - (np.cumsum(size) - size), size)
        return np.repeat(met, size), first + np.arange(len(first))


class InPieces:
    """A table sorted by query_id that stays where it is, and of which pieces are read when their queries are asked for.

    What `ByQuery` is for a table that is held. Batches of a sorted log ask for one piece after the other.
    """

    def __init__(
        self, load: Callable[[int], pl.DataFrame], first: pl.Series, last: pl.Series, schema: pl.Schema, height: int
    ) -> None:
        """load: number of a piece -> its rows, some. first, last: the queries at its ends, both rising."""
        self.schema, self.height = schema, height
        self._load, self._first, self._last = load, first, last
        self._kept: OrderedDict[int, ByQuery] = OrderedDict()
        self._lock = Lock()

    @property
    def queries(self) -> pl.Series:
        """The queries that have rows, each once, sorted."""
        found = [
            self._first.clear(),
            *(rows["query_id"].set_sorted().unique(maintain_order=True) for rows in self.frames()),
        ]
        return pl.concat(found).alias("query_id")

    def frames(self) -> Iterator[pl.DataFrame]:
        """All rows, in frames of whole queries that rise from frame to frame."""
        for number in range(len(self._first)):
            yield self._load(number)

    @property
    def in_memory(self) -> pl.DataFrame:
        """The rows that are held: at the most so many as a few pieces have, counted from the first ones."""
        return pl.concat([self.schema.to_frame(), *islice(self.frames(), _MOST_PIECES)])

    def held(self) -> ByQuery:
        """The same with all rows in memory."""
        return ByQuery(pl.concat([self.schema.to_frame(), *self.frames()]).rechunk())

    def rows_of(self, queries: pl.Series) -> pl.DataFrame:
        """Give the rows of some queries: unit (number of the query among those given, rising) and the columns."""
        found = [pl.DataFrame(schema={"unit": pl.Int64(), **self.schema})]
        if len(queries):
            asked = pl.lit(queries)
            low = self._last.search_sorted(pl.select(asked.min()).to_series(), side="left").item()
            high = self._first.search_sorted(pl.select(asked.max()).to_series(), side="right").item()
            found += [self._piece(number).rows_of(queries) for number in range(low, high)]
        rows = pl.concat(found).rechunk()
        return rows if rows["unit"].is_sorted() else rows.sort("unit", maintain_order=True)

    def _piece(self, number: int) -> ByQuery:
        with self._lock:
            if number not in self._kept:
                self._kept[number] = ByQuery(self._load(number))
            self._kept.move_to_end(number)
            if len(self._kept) > _MOST_PIECES:
                self._kept.popitem(last=False)
            return self._kept[number]


@dataclass(frozen=True)
class Labels:
    """Labels, passages and lists, checked.

    qrels: query_id, doc_id, relevance, served, stale, and doc_version where versions are compared; sorted by query_id.
    evidence: the columns of `contract.evidence`, served and stale, in its order; None without such a table.
    queries: query_id, label_status, and weight where weights are given; sorted; None when no list was given.
    requests: the listed units (all or some of run_id, request_id, query_id), retrieved, answered, listed_badly.
    rejected, rejected_listed: query_id of the queries that a bad row touches, of all tables and of the list alone.
    stale_queries: those with a label that no longer holds. has_index: whether the documents of the index are known.
    one: the weight of a query that has none, on the scale of the others.
    """

    qrels: ByQuery | InPieces
    evidence: pl.DataFrame | None
    queries: pl.DataFrame | None
    requests: pl.DataFrame | None
    rejected: pl.Series
    rejected_listed: pl.Series
    stale_queries: pl.Series
    has_index: bool
    one: float = 1.0

    @property
    def listed(self) -> pl.Series | None:
        """The queries of the list, in a good way or a bad one; None when no list was given."""
        return None if self.queries is None else pl.concat([self.queries["query_id"], self.rejected_listed])

    @property
    def asked_queries(self) -> pl.Series:
        """The queries that a run without requests is asked: those of the list, else those with labels; sorted."""
        table = self._queries or self.qrels
        rejected = self.rejected if self._queries is None else self.rejected_listed
        return table.queries if rejected.is_empty() else pl.concat([table.queries, rejected]).unique().sort()

    @property
    def request_key(self) -> list[str]:
        """The columns that the list of requests tells units by."""
        return [] if self.requests is None else unit_key(self.requests.columns)

    @property
    def weighted(self) -> bool:
        """Whether queries have weights."""
        return self.queries is not None and "weight" in self.queries.columns

    @cached_property
    def _evidence(self) -> ByQuery | None:
        return None if self.evidence is None else ByQuery(self.evidence)

    @cached_property
    def _queries(self) -> ByQuery | None:
        return None if self.queries is None else ByQuery(self.queries)

    @property
    def in_pieces(self) -> bool:
        """Whether labels are read when they are needed."""
        return isinstance(self.qrels, InPieces)

    def held(self) -> Labels:
        """The same with all labels in memory."""
        return replace(self, qrels=self.qrels.held())

    def of(self, units: pl.DataFrame) -> pl.DataFrame:
        """Give the labels of some units: unit (its row number) and the columns of `qrels`."""
        return self.qrels.rows_of(units["query_id"])

    def passages_of(self, units: pl.DataFrame) -> pl.DataFrame | None:
        """Give the passages of some units: unit and the columns of `evidence`, in its order."""
        return None if self._evidence is None else self._evidence.rows_of(units["query_id"])

    def annotate(self, units: pl.DataFrame) -> pl.DataFrame:
        """Add listed, label_status, stale and weight to units; retrieved and answered where there is a list of them.

        Row order stays. A query that a bad row of a table touches is rejected, not outside.
        """
        query = units["query_id"]
        listed, status, weight = self._of_queries(query)
        units = units.drop("rejected").hstack(
            [
                pl.Series("rejected", mask(units["rejected"]) | _among(query, self.rejected)),
                pl.Series("stale", _among(query, self.stale_queries)),
                status,
                weight,
                pl.Series("listed", listed | _among(query, self.rejected_listed)),
            ]
        )
        return units if self.requests is None else self._with_requests(units, self.requests)

    def _of_queries(self, query: pl.Series) -> tuple[Mask, pl.Series, pl.Series]:
        """Whether queries are listed, their label_status, and their weight."""
        n = len(query)
        none = pl.Series("label_status", [None], dtype=pl.String).new_from_index(0, n)
        one = pl.Series("weight", [self.one]).new_from_index(0, n)
        if self._queries is None:
            return np.full(n, fill_value=True), none, one
        which, row = self._queries.of(query)
        listed = np.full(n, fill_value=False)
        listed[which] = True
        row_of = np.full(n, -1)
        row_of[which] = row
        place = pl.Series(row_of).replace(-1, None)
        found = self._queries.rows
        weight = found["weight"].gather(place).fill_null(self.one) if self.weighted else one
        return listed, found["label_status"].gather(place), weight

    def _with_requests(self, units: pl.DataFrame, requests: pl.DataFrame) -> pl.DataFrame:
        key = self.request_key
        near = _between(requests, units, key[0])
        joined = units.drop("listed").join(near, on=key, how="left", maintain_order="left", validate="m:1")
        return joined.with_columns(
            pl.col("listed_badly").is_not_null().alias("listed"),
            pl.col("rejected") | pl.col("listed_badly").fill_null(False),
        ).drop("listed_badly")


def mask(found: pl.Series) -> Mask:
    """Truth values for numpy; null is false."""
    return (found.fill_null(False) if found.null_count() else found).to_numpy()


def _among(ids: pl.Series, some: pl.Series) -> Mask:
    """Which ids are among some others, mostly none."""
    return mask(ids.is_in(some.implode())) if len(some) else np.zeros(len(ids), dtype=np.bool_)


def _between(table: pl.DataFrame, units: pl.DataFrame, column: str) -> pl.DataFrame:
    """Narrow a list to the range of what is asked for: a batch of a sorted log needs a small part of it."""
    if units.is_empty() or table.is_empty():
        return table.clear()
    low, high = units[column].min(), units[column].max()
    return table.filter(pl.col(column).is_between(pl.lit(low), pl.lit(high)))
