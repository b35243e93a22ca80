"""Spans of many groups at once against sets of whole numbers in plain Python."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from docrecall.kernel.spans import Spans

Triple = tuple[int, int, int]  # group, start, end

N_GROUPS = 5
spans = st.lists(
    st.tuples(st.integers(0, N_GROUPS - 1), st.integers(0, 40), st.integers(0, 12)).map(
        lambda t: (t[0], t[1], t[1] + t[2])
    ),
    max_size=25,
)


def of(triples: list[Triple]) -> Spans:
    columns = zip(*triples, strict=True) if triples else ([], [], [])
    return Spans(*(np.array(list(column), dtype=np.int64) for column in columns))


def triples(made: Spans) -> list[Triple]:
    return list(zip(made.group.tolist(), made.start.tolist(), made.end.tolist(), strict=True))


def characters(given_spans: list[Triple]) -> dict[int, set[int]]:
    """Group -> the whole numbers that its spans hold."""
    held: defaultdict[int, set[int]] = defaultdict(set)
    for group, start, end in given_spans:
        held[group] |= set(range(start, end))
    return {group: numbers for group, numbers in held.items() if numbers}


def bridged(numbers: set[int], gap: int) -> set[int]:
    """Fill what lies between two numbers with at most `gap` missing ones in between."""
    inner = range(min(numbers), max(numbers))
    runs, filled = [], set(numbers)
    for number in inner:
        if number in numbers:
            if 0 < len(runs) <= gap:
                filled |= set(runs)
            runs = []
        else:
            runs.append(number)
    if 0 < len(runs) <= gap:
        filled |= set(runs)
    return filled


def pieces(numbers: set[int]) -> list[tuple[int, int]]:
    """The stretches of numbers that follow one another."""
    out: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if out and out[-1][1] == number:
            out[-1] = (out[-1][0], number + 1)
        else:
            out.append((number, number + 1))
    return out


@given(spans)
@example([])
@example([(0, 3, 3)])
def test_ordered(drawn: list[Triple]) -> None:
    """Sorted by group and start; every span that holds a character is there as often as it was given."""
    made = triples(of(drawn).ordered())
    assert sorted(made) == sorted(t for t in drawn if t[1] < t[2])
    assert [t[:2] for t in made] == sorted(t[:2] for t in made)


@given(spans, st.integers(0, 6))
@example([], 0)
@example([(0, 0, 9), (0, 1, 2), (0, 3, 4)], 0)  # a long span reaches over those that follow
@example([(0, 0, 4), (0, 4, 8)], 0)  # spans that touch
@example([(0, 0, 4), (0, 6, 8)], 1)
@example([(0, 0, 4), (0, 6, 8)], 2)
@example([(0, 0, 40), (1, 0, 1)], 0)  # what one group reaches means nothing to the next
@example([(0, 0, 1), (4, 2, 3)], 6)
def test_joined(drawn: list[Triple], gap: int) -> None:
    """The joined spans are the stretches of the union, with gaps of at most `gap` filled; disjoint and sorted."""
    made = triples(of(drawn).ordered().joined(gap))
    expected = [
        (group, start, end)
        for group, numbers in sorted(characters(drawn).items())
        for start, end in pieces(bridged(numbers, gap))
    ]
    assert made == expected


@given(spans, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=N_GROUPS, max_size=N_GROUPS))
def test_clipped(drawn: list[Triple], windows: list[tuple[int, int]]) -> None:
    """What is left of a group is what lies inside its window; nothing without a character stays."""
    start, end = (np.array([w[0] for w in windows]), np.array([w[0] + w[1] for w in windows]))
    made = triples(of(drawn).clipped(start, end))
    inside = {group: numbers & set(range(start[group], end[group])) for group, numbers in characters(drawn).items()}
    assert characters(made) == {group: numbers for group, numbers in inside.items() if numbers}
    assert all(low < high for _, low, high in made)
    assert sum(high - low for _, low, high in made) == sum(
        len(set(range(s, e)) & set(range(start[g], end[g]))) for g, s, e in drawn
    )


@given(spans)
def test_lengths(drawn: list[Triple]) -> None:
    """Lengths add up, what is given twice twice; of joined spans they count each number of a group once."""
    assert of(drawn).lengths(N_GROUPS).tolist() == [
        sum(end - start for g, start, end in drawn if g == group) for group in range(N_GROUPS)
    ]
    held = characters(drawn)
    joined = of(drawn).ordered().joined()
    assert joined.lengths(N_GROUPS).tolist() == [len(held.get(group, ())) for group in range(N_GROUPS)]


@given(spans, st.integers(0, 6), st.randoms())
def test_the_order_of_spans_does_not_matter(drawn: list[Triple], gap: int, random: object) -> None:
    """Any order of the same spans is joined to the same."""
    other = list(drawn)
    random.shuffle(other)  # type: ignore[attr-defined]
    assert triples(of(other).ordered().joined(gap)) == triples(of(drawn).ordered().joined(gap))


@pytest.mark.parametrize("far", [1 << 40, (1 << 61) - 10])
def test_offsets_far_out(far: int) -> None:
    """Groups and offsets that do not fit one number together are joined as well."""
    drawn = [(g, s + far, e + far) for g, s, e in [(0, 0, 4), (0, 2, 6), (1, 1, 2), (3, 0, 2), (3, 4, 5)]]
    assert triples(of(drawn).ordered().joined()) == [
        (g, s + far, e + far) for g, s, e in [(0, 0, 6), (1, 1, 2), (3, 0, 2), (3, 4, 5)]
    ]
    assert triples(of(drawn).ordered().joined(2))[-1] == (3, far, far + 5)


def test_groups_far_apart() -> None:
    """A group without spans between two others is 0."""
    drawn = [(0, 0, 3), (1_000_000, 5, 9)]
    lengths = of(drawn).ordered().joined().lengths(1_000_001)
    assert (lengths[0], lengths[500_000], lengths[1_000_000], lengths.sum()) == (3, 0, 4, 7)


def test_no_spans_at_all() -> None:
    """Every step of nothing is nothing."""
    none = np.zeros(3, dtype=np.int64)
    made = of([]).ordered().joined(2).clipped(none, none)
    assert triples(made) == []
    assert made.lengths(3).tolist() == [0, 0, 0]
