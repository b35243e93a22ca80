"""Whole logs as numbers: the usual one, and some with other hits or other labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cells import Cell
from draw import HIT_SLOTS, Batch, draw, draw_labels, draw_pools
from log import HITS_PER_QUERY

QUERIES_AT_ONCE = 10_000  # as `generate.py` has it, for the same rows
MOST_HITS = 1_000
MANY_LABELS = 50
LABELLED_OF = 10  # one query in so many has labels, or one label in so many has hits


@dataclass(frozen=True)
class Shape:
    """Rows in the order of units and ranks. first_hits: the row at which each query begins, and the end."""

    batch: Batch
    rank: np.ndarray
    first_hits: np.ndarray


def shape_of(cell: Cell, rows: int, seed: int) -> Shape:
    """Draw the rows of a cell."""
    shape = heavy_tail(rows, seed) if cell.hits == "tail" else even(rows, seed)
    n_queries = len(shape.first_hits) - 1
    return replace(shape, batch=relabelled(shape.batch, cell, n_queries, seed))


def even(rows: int, seed: int) -> Shape:
    """The rows of the plain log."""
    n_queries = rows // HITS_PER_QUERY
    starts = range(0, n_queries, QUERIES_AT_ONCE)
    batch = joined([draw(start, min(QUERIES_AT_ONCE, n_queries - start), seed) for start in starts])
    return Shape(batch, np.tile(np.arange(1, HITS_PER_QUERY + 1), n_queries), np.arange(0, rows + 1, HITS_PER_QUERY))


def heavy_tail(rows: int, seed: int) -> Shape:
    """1 to 1,000 hits per query: at least n of them in one query of the square root of n."""
    rng = np.random.default_rng([seed, 0, 5])
    # The mean is above 60: what is drawn is more than enough, and the last query that is kept is cut short.
    drawn = np.minimum(MOST_HITS, rng.random(rows // 20 + 1) ** -2).astype(np.int64)
    ends = np.cumsum(drawn)
    n_hits = drawn[: int(np.searchsorted(ends, rows)) + 1]
    n_hits[-1] -= n_hits.sum() - rows
    first_hits = np.concatenate([[0], np.cumsum(n_hits)])
    queries = np.arange(len(n_hits))
    hit_query = np.repeat(queries, n_hits)
    # As many distinct documents for the number of hits as the plain log has.
    slots = np.maximum(2, n_hits * HIT_SLOTS // HITS_PER_QUERY)
    pools = draw_pools(len(n_hits), rng)
    slot = (slots[hit_query] * rng.random(rows) ** 2).astype(np.int64)
    hit_document = pools.at(hit_query, slot)
    rank = np.arange(rows) - first_hits[:-1][hit_query] + 1
    return Shape(Batch(hit_query, hit_document, *draw_labels(queries, pools, rng)), rank, first_hits)


def relabelled(batch: Batch, cell: Cell, n_queries: int, seed: int) -> Batch:
    """Give a batch the labels of a cell."""
    rng = np.random.default_rng([seed, 0, 6])
    match cell.labels:
        case "usual":
            return batch
        case "few":
            return with_labels(batch, *(column[batch.label_query % LABELLED_OF == 0] for column in labels_of(batch)))
        case "unasked":
            others = np.arange(n_queries, n_queries * LABELLED_OF)
            more = draw_labels(others, draw_pools(len(others), rng), rng)
            both = zip(labels_of(batch), more, strict=True)
            return with_labels(batch, *(np.concatenate(columns) for columns in both))
        case "many":
            return with_labels(batch, *many_labels(batch, n_queries, rng))


def many_labels(batch: Batch, n_queries: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw 1 to 50 documents per query, half of them from its hits."""
    most = MANY_LABELS
    kept = np.arange(most) < rng.integers(1, most + 1, n_queries)[:, None]
    hits = batch.hit_document.reshape(n_queries, -1)[:, :most]  # repeats are dropped below
    elsewhere = rng.integers(0, batch.hit_document.max() + 1, kept.shape)
    document = np.where(np.arange(most) % 2 == 0, hits, elsewhere)
    query = np.broadcast_to(np.arange(n_queries)[:, None], kept.shape)
    pairs = np.unique(np.stack([query[kept], document[kept]]), axis=1)
    return pairs[0], pairs[1], rng.integers(1, 4, pairs.shape[1])


def labels_of(batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Query, document and grade."""
    return batch.label_query, batch.label_document, batch.grade


def with_labels(batch: Batch, query: np.ndarray, document: np.ndarray, grade: np.ndarray) -> Batch:
    """Keep the hits."""
    return replace(batch, label_query=query, label_document=document, grade=grade)


def joined(batches: list[Batch]) -> Batch:
    """Put batches of queries one after the other."""
    columns = ("hit_query", "hit_document", "label_query", "label_document", "grade")
    return Batch(*(np.concatenate([getattr(batch, column) for batch in batches]) for column in columns))
