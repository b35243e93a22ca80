"""Running sums inside units, and what each cut counts, on cases that are worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from docrecall.kernel.counts import CutCounts, Placed
from docrecall.kernel.family import Family, of_every_row
from docrecall.kernel.match import match
from docrecall.kernel.steps import Steps
from docrecall.measures.grammar import Cut
from tests.kernel.test_batch import Batch, labels, rows

UNITS = pl.DataFrame(
    {"run_id": ["r"] * 2, "query_id": ["a", "b"], "n_hits": [5, 0], "n_gaps": [1, 0], "rejected": [False] * 2}
)
# Rank 3 is missing; x comes three times, z is not judged, y has the best grade and w is never found.
HITS = rows(("a", 1, "x"), ("a", 2, "x"), ("a", 4, "z"), ("a", 5, "y"), ("a", 6, "x")).with_columns(
    n_tokens=pl.Series([10, 20, 30, 40, 50]), in_context=pl.Series([True, False, True, True, False])
)
EVERY = {"rank", "doc_id", "n_tokens", "in_context"}
LABELS = labels(("a", "x", 1), ("a", "y", 2), ("a", "w", 1), ("a", "v", 0), ("b", "x", 1))


def counts(cut: Cut, min_relevance: int = 1) -> CutCounts:
    matched = match(Batch(UNITS, HITS.lazy()), LABELS, of_hits=set(), of_rows=EVERY, passages=False)
    return CutCounts(Placed(Family(matched, cut.unit), min_relevance), cut)


@pytest.mark.parametrize(
    ("cut", "places", "found", "first", "judged", "docs", "chunks", "relevant_chunks", "top"),
    [
        (Cut("chunks", 1), 1, 1, 1, 1, 1, 1, 1, 1),
        (Cut("chunks", 3), 3, 1, 1, 1, 1, 2, 2, 2),
        (Cut("chunks", 5), 5, 2, 1, 2, 3, 4, 3, 2),
        (Cut("chunks", 9), 9, 2, 1, 2, 3, 5, 4, 3),
        (Cut("docs", 1), 1, 1, 1, 1, 1, 3, 3, 3),
        (Cut("docs", 2), 2, 1, 1, 1, 2, 4, 3, 3),
        (Cut("docs", 9), 9, 2, 1, 2, 3, 5, 4, 3),
        (Cut("all"), 5, 2, 1, 2, 3, 5, 4, 3),
        (Cut("tokens", 9), 0, 0, 0, 0, 0, 0, 0, 0),
        (Cut("tokens", 30), 2, 1, 1, 1, 1, 2, 2, 2),
        (Cut("tokens", 149), 4, 2, 1, 2, 3, 4, 3, 2),
        (Cut("context"), 3, 2, 1, 2, 3, 3, 2, 1),
    ],
    ids=str,
)
def test_counts_of_a_cut(
    cut: Cut, places: int, found: int, first: int, judged: int, docs: int, chunks: int, relevant_chunks: int, top: int
):
    """Each count of the log above, and of the unit beside it, which has no hits."""
    c = counts(cut)

    assert c.relevant.tolist() == [3, 1]
    assert c.places.tolist() == [places, places if cut.unit in ("chunks", "docs") else 0]
    assert c.found.tolist() == [found, 0]
    assert c.first_place.tolist() == [first, 0]
    assert c.judged.tolist() == [judged, 0]
    assert c.docs.tolist() == [docs, 0]
    assert c.chunks.tolist() == [chunks, 0]
    assert c.relevant_chunks.tolist() == [relevant_chunks, 0]
    assert c.top_chunks.tolist() == [top, 0]


@pytest.mark.parametrize(
    ("cut", "place"),
    [(Cut("chunks", 5), 5), (Cut("docs", 3), 3), (Cut("all"), 4), (Cut("tokens", 100), 4), (Cut("context"), 3)],
    ids=str,
)
def test_positions_of_a_cut(cut: Cut, place: int):
    """Y stands at its rank, as third document, as fourth row, or as third in the context: sums run over these."""
    c = counts(cut)

    assert c.precision_sum.tolist() == [1 / 1 + 2 / place, 0.0]
    assert c.gain.tolist() == [1 / math.log2(2) + 2 / math.log2(place + 1), 0.0]


def test_ideal_order_is_cut_where_the_measure_is():
    """The best grades come first, also those of documents never found; `@all` does not cut them."""
    best = [2 / math.log2(2), 1 / math.log2(3), 1 / math.log2(4)]

    assert counts(Cut("chunks", 1)).ideal_gain[0] == best[0]
    assert counts(Cut("docs", 2)).ideal_gain[0] == best[0] + best[1]
    assert counts(Cut("all")).ideal_gain[0] == best[0] + best[1] + best[2]


def test_a_higher_bar_leaves_fewer_relevant():
    """With min_relevance=2 only y is relevant; gains do not change."""
    c = counts(Cut("all"), min_relevance=2)

    assert c.relevant.tolist() == [1, 0]
    assert c.found.tolist() == [1, 0]
    assert c.first_place.tolist() == [4, 0]
    assert c.relevant_chunks.tolist() == [1, 0]
    assert c.gain[0] == counts(Cut("all")).gain[0]


def test_steps_add_up_inside_each_unit_alone():
    """Running sums begin anew with each unit; units without terms are 0."""
    unit, place = np.array([0, 0, 0, 2, 2]), np.array([1, 4, 9, 2, 3])

    steps = Steps.of(4, unit, place, place, np.array([1.0, 2.0, 4.0, 8.0, 16.0]))

    assert steps.running.tolist() == [1, 3, 7, 8, 24]
    assert steps.within(4, 4).tolist() == [2, 0, 2, 0]
    assert steps.within(4, None).tolist() == [3, 0, 2, 0]
    assert steps.total(steps.within(4, 4)).tolist() == [3, 0, 24, 0]
    assert steps.total(steps.within(4, 1)).tolist() == [1, 0, 0, 0]


def test_steps_run_from_left_to_right():
    """A sum is the plain one in order, whose last bits another order would change."""
    terms = [0.1, 0.2, 0.3, 1e16, -1e16, 0.7]
    plain = 0.0
    for term in terms:
        plain += term

    steps = Steps.of(1, np.zeros(6, dtype=np.int64), np.arange(1, 7), None, np.array(terms))

    assert steps.total(np.array([6])).tolist() == [plain]
    assert plain != math.fsum(terms)


def test_steps_without_terms():
    """Nothing to add is 0 for every unit."""
    none = np.zeros(0, dtype=np.int64)

    steps = Steps.of(3, none, none, none, np.zeros(0))

    assert steps.total(steps.within(3, 5)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("cut", [Cut("chunks", 3), Cut("tokens", 35), Cut("context"), Cut("all")], ids=str)
def test_counts_that_few_rows_can_tell_are_the_same_with_all_rows(cut: Cut):
    """What is said not to look at every row does not change when only rows of judged documents are brought in."""
    of_rows = of_every_row("found", cut.unit)
    matched = match(Batch(UNITS, HITS.lazy()), LABELS, of_hits=set(), of_rows=of_rows, passages=False)
    few, every = CutCounts(Placed(Family(matched, cut.unit), 1), cut), counts(cut)

    names = ["relevant", "places", "found", "first_place", "precision_sum", "gain", "ideal_gain", "judged"]
    names += ["docs", "chunks", "relevant_chunks", "top_chunks", "tokens"]
    narrow = [name for name in names if of_every_row(name, cut.unit) <= of_rows]
    assert {"found", "gain", "relevant_chunks"} <= set(narrow)
    for name in narrow:
        assert getattr(few, name).tolist() == getattr(every, name).tolist(), name
