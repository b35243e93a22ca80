"""Measures of repeats and of the context: what the same document costs when it comes back again and again."""

from __future__ import annotations

import numpy as np

from docrecall.measures.definition import Definition, ratio

REPEATS = (
    Definition(
        "naive_recall",
        "every hit of a relevant document, repeats counted, / relevant documents: a diagnosis, never a result",
        lambda c: ratio(c.relevant_chunks, c.relevant),
        uses=("relevant_chunks",),
        high=None,
    ),
    Definition(
        "relevant_share",
        "share of the chunks that come from relevant documents; null for an empty cut",
        lambda c: ratio(c.relevant_chunks, c.chunks),
        uses=("relevant_chunks", "chunks"),
        no_hits=None,
    ),
    Definition(
        "distinct_docs",
        "number of distinct documents",
        lambda c: c.docs.astype(np.float64),
        uses=("docs",),
        high=None,
        labels=None,
    ),
    Definition(
        "repeat_share",
        "share of the chunks that repeat a document of the cut; null for an empty cut",
        lambda c: ratio(c.chunks - c.docs, c.chunks),
        uses=("chunks", "docs"),
        no_hits=None,
        labels=None,
    ),
    Definition(
        "top_doc_share",
        "largest share of the chunks held by one document; null for an empty cut",
        lambda c: ratio(c.top_chunks, c.chunks),
        uses=("top_chunks", "chunks"),
        no_hits=None,
        labels=None,
    ),
    Definition(
        "context_chunks",
        "number of chunks that are there, which may be fewer than k",
        lambda c: c.chunks.astype(np.float64),
        uses=("chunks",),
        high=None,
        labels=None,
    ),
    Definition(
        "context_tokens",
        "number of tokens of the chunks that are there",
        lambda c: c.tokens.astype(np.float64),
        uses=("tokens",),
        high=None,
        needs=("n_tokens",),
        labels=None,
    ),
)
