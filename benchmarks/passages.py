"""What the context variant has beyond the plain log: chunks with their place and length, the context, and evidence."""

from __future__ import annotations

import numpy as np
import polars as pl

from draw import CORPUS, Batch
from ids import Ids
from log import HITS_PER_QUERY

# Documents are made of chunks that tile them. Hits and evidence both prefer the beginning of a document, so that a
# query meets the same chunk again and about a quarter of the evidence is met at all.
MIN_CHUNKS, MAX_CHUNKS = 4, 20
MIN_TOKENS, MAX_TOKENS = 20, 400
MIN_CHARACTERS, MAX_CHARACTERS = 4, 6  # per token
CHUNK_SKEW = 2.0

CONTEXT_TOKENS = 2000
KNOCKED_OUT = 0.1

PASSAGES = 3  # rows of evidence per query
MIN_PASSAGE, MAX_PASSAGE = 50, 1500  # characters; at most the document
LABELLED = 0.85  # the others lie in a document of some hit
ALTERNATIVES = 0.25  # of queries, whose last passage is an alternative to the one before


class Texts:
    """The chunks of all documents: a row per document, a column per chunk, of which the first `n_chunks` exist."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 0, 3])
        self.n_chunks = rng.integers(MIN_CHUNKS, MAX_CHUNKS + 1, CORPUS)
        self.tokens = rng.integers(MIN_TOKENS, MAX_TOKENS + 1, (CORPUS, MAX_CHUNKS))
        characters = self.tokens * rng.uniform(MIN_CHARACTERS, MAX_CHARACTERS, self.tokens.shape)
        self.end = np.cumsum(characters.astype(np.int64), axis=1)
        self.start = np.concatenate([np.zeros((CORPUS, 1), np.int64), self.end[:, :-1]], axis=1)
        self.length = self.end[np.arange(CORPUS), self.n_chunks - 1]


def chunk_columns(batch: Batch, texts: Texts, rng: np.random.Generator) -> pl.DataFrame:
    """Draw a chunk for each hit: n_tokens, in_context, chunk_start, chunk_end."""
    document = batch.hit_document
    chunk = (texts.n_chunks[document] * rng.random(len(document)) ** CHUNK_SKEW).astype(np.int64)
    n_tokens = texts.tokens[document, chunk]
    return pl.DataFrame(
        {
            "n_tokens": n_tokens,
            "in_context": in_context(n_tokens, rng),
            "chunk_start": texts.start[document, chunk],
            "chunk_end": texts.end[document, chunk],
        }
    )


def in_context(n_tokens: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Pass on the first hits of a query as long as they fit, without some that something else knocked out."""
    fits = n_tokens.reshape(-1, HITS_PER_QUERY).cumsum(axis=1) <= CONTEXT_TOKENS
    return fits.ravel() & (rng.random(len(n_tokens)) >= KNOCKED_OUT)


def evidence_table(batch: Batch, ids: Ids, texts: Texts, rng: np.random.Generator) -> pl.DataFrame:
    """Draw passages for each query, sorted by query and evidence; rows that share their id are alternatives."""
    query, first_label, n_labels = np.unique(batch.label_query, return_index=True, return_counts=True)
    shape = (len(query), PASSAGES)
    label = first_label[:, None] + rng.integers(0, n_labels[:, None], shape)
    hit = np.arange(len(query))[:, None] * HITS_PER_QUERY + rng.integers(0, HITS_PER_QUERY, shape)
    labelled = rng.random(shape) < LABELLED
    document = np.where(labelled, batch.label_document[label], batch.hit_document[hit])

    length = np.minimum(rng.integers(MIN_PASSAGE, MAX_PASSAGE + 1, shape), texts.length[document])
    start = ((texts.length[document] - length) * rng.random(shape) ** CHUNK_SKEW).astype(np.int64)
    number = np.broadcast_to(np.arange(1, PASSAGES + 1), shape).copy()
    number[rng.random(len(query)) < ALTERNATIVES, -1] -= 1
    return pl.DataFrame(
        [
            ids.query(np.repeat(query, PASSAGES)),
            ids.evidence(number.ravel()),
            ids.document(document.ravel()),
            pl.Series("start", start.ravel()),
            pl.Series("end", (start + length).ravel()),
        ]
    )
