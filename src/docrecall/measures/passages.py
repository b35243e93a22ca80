"""Measures of gold chunks and gold passages: what the reader of a cut was given of the text that answers."""

from __future__ import annotations

from functools import partial

import numpy as np

from docrecall.measures.definition import Counts, Definition, Floats, Parameter, ratio

_COVERAGE = Parameter(1.0, high=1)
_GAP = Parameter(0, high=2**31 - 1, whole=True)


def _where(has: np.ndarray, values: Floats) -> Floats:
    """Units that lack the labels have no value."""
    return np.where(has, values, np.nan)


def _chunk_precision(c: Counts) -> Floats:
    return _where(c.passages.chunk_ids > 0, ratio(c.passages.gold_chunks, c.places, empty=0.0))


def _chunk_rr(c: Counts) -> Floats:
    return _where(
        c.passages.chunk_ids > 0, ratio(np.ones_like(c.passages.first_gold), c.passages.first_gold, empty=0.0)
    )


def _coverage(c: Counts, gap: int) -> Floats:
    return _where(c.passages.ids > 0, c.passages.covered_sum(gap) / np.maximum(c.passages.ids, 1))


def _precision(c: Counts) -> Floats:
    return _where(c.passages.gold_text > 0, ratio(c.passages.covered_text, c.passages.given_text, empty=0.0))


def _iou(c: Counts) -> Floats:
    return ratio(
        c.passages.covered_text,
        np.where(
            c.passages.gold_text > 0, c.passages.gold_text + c.passages.distinct_text - c.passages.covered_text, 0
        ),
    )


_of_chunks = partial(Definition, needs=("chunk_id",), labels="chunks")
_of_text = partial(Definition, needs=("chunk_start", "chunk_end"), labels="evidence")

PASSAGES = (
    _of_chunks(
        "chunk_recall",
        "share of the evidence ids with a gold chunk in the cut",
        lambda c: ratio(c.passages.chunk_ids_found, c.passages.chunk_ids),
        uses=("chunk_ids", "chunk_ids_found"),
    ),
    _of_chunks(
        "chunk_hit",
        "1 if any gold chunk is in the cut",
        lambda c: _where(c.passages.chunk_ids > 0, (c.passages.chunk_ids_found > 0).astype(np.float64)),
        uses=("chunk_ids", "chunk_ids_found"),
    ),
    _of_chunks(
        "chunk_precision",
        "distinct gold chunks per place",
        _chunk_precision,
        uses=("chunk_ids", "gold_chunks", "places"),
        by_docs=False,
    ),
    _of_chunks(
        "chunk_rr",
        "1 / position of the first gold chunk",
        _chunk_rr,
        uses=("chunk_ids", "first_gold"),
        by_docs=False,
    ),
    _of_text(
        "evidence_coverage",
        "mean over the passages of the share of their text that the cut holds, best alternative",
        _coverage,
        uses=("ids", "covered_sum"),
        params={"gap": _GAP},
    ),
    _of_text(
        "evidence_recall",
        "share of the passages that are covered at least to the coverage asked for",
        lambda c, coverage, gap: ratio(c.passages.ids_covered(coverage, gap), c.passages.ids),
        uses=("ids", "ids_covered"),
        params={"coverage": _COVERAGE, "gap": _GAP},
    ),
    _of_text(
        "evidence_hit",
        "1 if any passage is covered at least to the coverage asked for",
        lambda c, coverage, gap: _where(
            c.passages.ids > 0, (c.passages.ids_covered(coverage, gap) > 0).astype(np.float64)
        ),
        uses=("ids", "ids_covered"),
        params={"coverage": _COVERAGE, "gap": _GAP},
    ),
    _of_text(
        "evidence_all",
        "1 if every passage is covered at least to the coverage asked for",
        lambda c, coverage, gap: _where(
            c.passages.ids > 0, (c.passages.ids_covered(coverage, gap) >= c.passages.ids).astype(np.float64)
        ),
        uses=("ids", "ids_covered"),
        params={"coverage": _COVERAGE, "gap": _GAP},
    ),
    _of_text(
        "evidence_precision",
        "covered gold characters over the characters of the cut, text given twice counted twice",
        _precision,
        uses=("gold_text", "covered_text", "given_text"),
    ),
    _of_text(
        "evidence_iou",
        "covered gold characters over those that are gold or in the cut",
        _iou,
        uses=("gold_text", "covered_text", "distinct_text"),
    ),
)
