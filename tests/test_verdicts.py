"""Verdicts are computed from numbers: every combination of signs, and what cannot be told."""

from __future__ import annotations

from itertools import product

import pytest

from docrecall.verdicts import Delta, Way, gain, least_units, preferences, sentence, short, way_of


def delta(noun: str, way: Way, value: float | None = None, *, n_differ: int = 50) -> Delta:
    """A difference that is told to be on one side, or on none."""
    value = {1: 0.2, -1: -0.2, 0: 0.01}[way] if value is None else value
    low, high = (value - 0.05, value + 0.05) if way else (value - 0.5, value + 0.5)
    return Delta(noun, value, low, high, 100, n_differ, way)


def naive(way: Way, value: float | None = None) -> Delta:
    return delta("hits", way, value)


def docs(way: Way, value: float | None = None) -> Delta:
    return delta("documents", way, value)


@pytest.mark.parametrize(
    ("of_naive", "of_docs", "expected"),
    [
        ((1, 1.04), (-1, -0.03), "the whole gain is repeats"),
        ((-1, -1.04), (1, 0.03), "the whole loss is repeats"),
        ((1, 1.0), (1, 0.25), "75% of the naive gain is repeats"),
        ((-1, -1.0), (-1, -0.25), "75% of the naive loss is repeats"),
        ((1, 1.0), (1, 0.0001), "99% of the naive gain is repeats"),
        ((1, 0.2), (1, 0.2), "repeats have no part in the gain"),
        ((-1, -0.2), (-1, -0.3), "repeats have no part in the loss"),
        ((1, 1.0), (0, 0.01), "the gain is repeats, and documents cannot be told apart"),
        ((-1, -1.0), (0, 0.01), "the loss is repeats, and documents cannot be told apart"),
        ((0, 0.01), (1, 0.2), "documents are gained, and the naive measure does not show it"),
        ((0, 0.01), (-1, -0.2), "documents are lost, and repeats hide it from the naive measure"),
        ((0, 0.01), (0, -0.01), "neither can tell"),
    ],
)
def test_what_a_naive_difference_is_made_of(
    of_naive: tuple[Way, float], of_docs: tuple[Way, float], expected: str
) -> None:
    """Distinct documents, and the rest, which is repeats of them."""
    assert gain(naive(*of_naive), docs(*of_docs)) == expected


def test_every_combination_has_its_own_verdict() -> None:
    """No two combinations of signs of the naive and the real measure read alike."""
    ways: tuple[Way, ...] = (-1, 0, 1)
    found = [preferences("old", "new", naive(n), [docs(d)]) for n, d in product(ways, ways)]
    assert len(set(found)) == 9


@pytest.mark.parametrize(
    ("of_naive", "real", "expected"),
    [
        (0, (0, 0), "no measure can tell new from old"),
        (1, (1, 1), "every measure prefers new"),
        (-1, (-1, -1), "every measure prefers old"),
        (1, (-1, -1), "the naive measure prefers new, and every real one prefers old"),
        (-1, (1, 1), "the naive measure prefers old, and every real one prefers new"),
        (0, (1, 1), "the naive measure cannot tell, and every real one prefers new"),
        (1, (1, -1), "the naive measure and documents prefer new, and passages prefer old"),
        (-1, (1, -1), "the naive measure and passages prefer old, and documents prefer new"),
        (0, (1, -1), "documents prefer new, passages prefer old, and the naive measure cannot tell"),
        (1, (0, 0), "the naive measure prefers new, and documents and passages cannot tell"),
        (1, (0, -1), "the naive measure prefers new, passages prefer old, and documents cannot tell"),
    ],
)
def test_which_run_each_measure_prefers(of_naive: Way, real: tuple[Way, Way], expected: str) -> None:
    """Real measures that agree are told together; those that do not, by what they count."""
    of_docs, of_passages = real
    found = preferences("old", "new", naive(of_naive), [docs(of_docs), delta("passages", of_passages)])
    assert found == expected


def test_one_that_leans_the_same_way_does_not_contradict() -> None:
    """A real measure whose interval holds 0 is among `every real one` only with that said, and only if it leans so."""
    real = [docs(-1), delta("passages", -1), delta("the first 3 documents", 0, -0.02)]
    expected = "the naive measure prefers new, and every real one prefers old"
    assert preferences("old", "new", naive(1), real) == f"{expected}, which for the first 3 documents may be chance"
    real[2] = delta("the first 3 documents", 0, 0.02)
    expected = "the naive measure prefers new, documents and passages prefer old, and the first 3 documents cannot tell"
    assert preferences("old", "new", naive(1), real) == expected


def test_the_sentence() -> None:
    """Numbers with intervals, what they are made of, who prefers what, and the tokens that were given."""
    told = sentence("old", "new", naive(1, 1.04), [docs(-1, -0.1), delta("passages", -1, -0.4)], (660.0, 1093.65))
    assert told == (
        "naive +1.040 [+0.990, +1.090], doc_recall -0.100 [-0.150, -0.050]: the whole gain is repeats. The naive "
        "measure prefers new, and every real one prefers old (passages -0.400 [-0.450, -0.350]). new gives 1,093.7 "
        "tokens, old 660.0."
    )
    assert short("old", "new", naive(1, 1.04), [docs(-1, -0.1)]) == (
        "the whole gain is repeats; the naive measure prefers new, and documents prefer old"
    )


@pytest.mark.parametrize(
    ("both", "expected"),
    [
        (Delta("documents", None, None, None, 0, 0, 0), "null, doc_recall null: no unit is scored in both runs."),
        (Delta("documents", 0.0, 0.0, 0.0, 9, 0, 0), "+0.000 [+0.000, +0.000], doc_recall +0.000 [+0.000, +0.000]: "),
        (Delta("documents", 0.5, None, None, 1, 1, 0), "+0.500 [no interval], doc_recall +0.500 [no interval]: "),
    ],
)
def test_too_little_to_say(both: Delta, expected: str) -> None:
    """No unit, no difference, and no interval are said as what they are."""
    assert sentence("old", "new", both, [both]).startswith(f"naive {expected}")


@pytest.mark.parametrize(
    ("low", "high", "n_differ", "way"),
    [
        (0.1, 0.2, 6, 1),
        (-0.2, -0.1, 6, -1),
        (0.1, 0.2, 5, 0),  # five units that agree: p = 0.0625
        (0.0, 0.2, 99, 0),
        (-0.2, 0.0, 99, 0),
        (-0.1, 0.1, 99, 0),
        (None, None, 99, 0),
    ],
)
def test_which_side_a_difference_is_on(low: float | None, high: float | None, n_differ: int, way: Way) -> None:
    """The interval excludes 0, and a sign test of so many units could reach the level."""
    assert way_of(low, high, n_differ, 0.95) == way


@pytest.mark.parametrize(("level", "least"), [(0.5, 3), (0.9, 5), (0.95, 6), (0.99, 8)])
def test_fewest_units(level: float, least: int) -> None:
    """Where m units all agree, p = 2^(1 - m), which is below 1 - level from m on."""
    assert least_units(level) == least
    assert 2.0 ** (1 - least) < 1 - level <= 2.0 ** (2 - least)
