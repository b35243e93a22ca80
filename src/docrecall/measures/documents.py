"""Measures of documents: a repeat never counts twice, and both sides of each ratio count documents."""

from __future__ import annotations

import numpy as np

from docrecall.measures.definition import Counts, Definition, Floats, ratio


def _reciprocal(c: Counts) -> Floats:
    return ratio(np.ones_like(c.first_place), c.first_place, empty=0.0)


def _ndcg(c: Counts) -> Floats:
    out = np.zeros(len(c.gain))
    # Zero only where nothing is relevant, and such units get no value.
    np.divide(c.gain, c.ideal_gain, out=out, where=c.ideal_gain > 0)
    return out


DOCUMENTS = (
    Definition(
        "doc_recall",
        "share of the relevant documents that the cut reaches",
        lambda c: ratio(c.found, c.relevant),
        uses=("found",),
    ),
    Definition(
        "doc_precision",
        "distinct relevant documents per place; a repeat wastes its place",
        lambda c: ratio(c.found, c.places, empty=0.0),
        uses=("found", "places"),
    ),
    Definition(
        "doc_f1",
        "harmonic mean of doc_precision and doc_recall",
        lambda c: ratio(2 * c.found, c.places + c.relevant),
        uses=("found", "places"),
    ),
    Definition(
        "doc_hit",
        "1 if any relevant document is reached",
        lambda c: (c.found > 0).astype(np.float64),
        uses=("found",),
    ),
    Definition(
        "doc_all",
        "1 if every relevant document is reached",
        lambda c: (c.found >= c.relevant).astype(np.float64),
        uses=("found",),
    ),
    Definition("doc_rr", "1 / position of the first relevant document", _reciprocal, uses=("first_place",)),
    Definition(
        "doc_ap",
        "average precision: mean over the relevant documents of the precision at their position",
        lambda c: c.precision_sum / np.maximum(c.relevant, 1),
        uses=("precision_sum",),
    ),
    Definition(
        "doc_ndcg",
        "discounted gain of the grades over that of the ideal order",
        _ndcg,
        uses=("gain", "ideal_gain"),
    ),
    Definition(
        "doc_judged",
        "share of the documents in the cut that have a judgement; null when it is empty",
        lambda c: ratio(c.judged, c.docs),
        uses=("judged", "docs"),
        no_hits=None,
    ),
)
