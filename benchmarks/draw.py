"""Draw queries, their hits and their labels as numbers.

Each batch of queries draws from its own generator, seeded by the batch, so that no row depends on how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from log import HITS_PER_QUERY, LogSpec

# A query's hits come from its pool of documents, the first ones far more often: 52 slots at this skew give about
# 40 distinct documents in 100 hits, and the first document about 14 of them. Its labels come from the same pool
# and 18 documents beyond it, so that somewhat more than half of them are among the hits and the rest never are.
CORPUS = 100_003  # prime: any stride then walks a pool without meeting a document twice
HIT_SLOTS = 52
SKEW = 2.0
MAX_LABELS = 5
SLOTS_PER_LABEL = 14
MAX_GRADE = 3


@dataclass(frozen=True)
class Pools:
    """The documents of each query by slot: a walk through the corpus from `start` by `stride`."""

    start: np.ndarray
    stride: np.ndarray

    def document(self, slot: np.ndarray) -> np.ndarray:
        """Give the documents in some slots, a row per query."""
        return (self.start + slot * self.stride) % CORPUS

    def at(self, query: np.ndarray, slot: np.ndarray) -> np.ndarray:
        """Give the document in one slot of each of some queries."""
        return (self.start[query, 0] + slot * self.stride[query, 0]) % CORPUS


@dataclass(frozen=True)
class Batch:
    """Hits and labels of consecutive queries as numbers: `query` counts from 0, documents from 0 to CORPUS - 1."""

    hit_query: np.ndarray
    hit_document: np.ndarray
    label_query: np.ndarray
    label_document: np.ndarray
    grade: np.ndarray


def draw(first: int, n_queries: int, seed: int) -> Batch:
    """Draw the queries `first` to `first + n_queries - 1`."""
    rng = np.random.default_rng([seed, first])
    pools = draw_pools(n_queries, rng)
    hit_document = draw_hits(pools, rng)
    query = np.arange(first, first + n_queries)
    return Batch(np.repeat(query, HITS_PER_QUERY), hit_document.ravel(), *draw_labels(query, pools, rng))


def draw_pools(n_queries: int, rng: np.random.Generator) -> Pools:
    """Draw the pool of documents of each query."""
    start = rng.integers(0, CORPUS, n_queries)[:, None]
    stride = rng.integers(1, CORPUS, n_queries)[:, None]
    return Pools(start, stride)


def draw_hits(pools: Pools, rng: np.random.Generator) -> np.ndarray:
    """Draw a row of documents per pool, one for each rank."""
    slot = (HIT_SLOTS * rng.random((len(pools.start), HITS_PER_QUERY)) ** SKEW).astype(np.int64)
    return pools.document(slot)


def draw_labels(query: np.ndarray, pools: Pools, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the query, document and grade of each label."""
    shape = (len(query), MAX_LABELS)
    # Label j takes a slot that is j modulo MAX_LABELS: no query is given the same label twice.
    slot = rng.integers(0, SLOTS_PER_LABEL, shape) * MAX_LABELS + np.arange(MAX_LABELS)
    grade = rng.integers(1, MAX_GRADE + 1, shape)
    kept = np.arange(MAX_LABELS) < rng.integers(1, MAX_LABELS + 1, len(query))[:, None]
    return np.broadcast_to(query[:, None], shape)[kept], pools.document(slot)[kept], grade[kept]


class Requests:
    """Queries that are asked several times, in random order; every request has hits of its own."""

    def __init__(self, spec: LogSpec) -> None:
        rng = np.random.default_rng([spec.seed, 0, 1])
        self.seed = spec.seed
        self.pools = draw_pools(spec.n_queries, rng)
        self.asked = rng.permutation(spec.n_units) % spec.n_queries
        self.labels = draw_labels(np.arange(spec.n_queries), self.pools, rng)

    def draw(self, first: int, n_requests: int) -> Batch:
        """Draw the requests `first` to `first + n_requests - 1`, and the labels of the queries of these numbers."""
        query = self.asked[first : first + n_requests]
        pools = Pools(self.pools.start[query], self.pools.stride[query])
        hit_document = draw_hits(pools, np.random.default_rng([self.seed, first, 2]))
        label_query = self.labels[0]
        here = (label_query >= first) & (label_query < first + n_requests)
        return Batch(np.repeat(query, HITS_PER_QUERY), hit_document.ravel(), *(column[here] for column in self.labels))
