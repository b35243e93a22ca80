"""What a pair of runs comes to, in a sentence that is computed from its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, log2
from typing import Literal

Way = Literal[-1, 0, 1]


@dataclass(frozen=True)
class Delta:
    """The paired difference of one measure, candidate less baseline.

    noun: what the measure counts, in the plural. value: None where no unit has a value in both runs, or
    none of them weighs anything. low, high: its interval; None below two units. n: units in both. n_differ: those (or
    clusters of them) in which it is not 0. way: 1 where the candidate is told to be higher, -1 where the baseline is,
    0 where neither is.
    """

    noun: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    n_differ: int
    way: Way

    def __str__(self) -> str:
        if self.value is None:
            return "null"
        if self.low is None or self.high is None:
            return f"{self.value:+.3f} [no interval]"
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def way_of(low: float | None, high: float | None, n_differ: int, level: float) -> Way:
    """Say which side a difference is on: where its interval excludes 0, and enough units differ to bear that out.

    A sign test of fewer units cannot reach the level even if all of them agree: 6 are needed for 95 %. A bootstrap
    interval does not know that, and excludes 0 when two units out of two say the same.
    """
    if low is None or high is None or n_differ < least_units(level):
        return 0
    return 1 if low > 0 else -1 if high < 0 else 0


def least_units(level: float) -> int:
    """The fewest units that differ with which a two-sided sign test can reach the level: 2^(1 - m) < 1 - level."""
    return floor(1 - log2(1 - level)) + 1


def gain(naive: Delta, docs: Delta) -> str:
    """Say what the naive difference is made of: distinct documents, and repeats, which are the rest of it."""
    if docs.value is None or naive.value is None:
        return "all units in both runs have weight 0" if docs.n and naive.n else "no unit is scored in both runs"
    if not naive.n_differ and not docs.n_differ:
        return "no unit differs"
    word = "gain" if naive.way > 0 else "loss"
    match naive.way, docs.way:
        case (1, -1) | (-1, 1):
            return f"the whole {word} is repeats"
        case (1 | -1, 0):
            return f"the {word} is repeats, and documents cannot be told apart"
        case (1, 1) | (-1, -1):
            share = 1 - docs.value / naive.value
            if share < 0.005:
                return f"repeats have no part in the {word}"
            return f"{min(share, 0.99):.0%} of the naive {word} is repeats"
        case (0, 1):
            return "documents are gained, and the naive measure does not show it"
        case (0, -1):
            return "documents are lost, and repeats hide it from the naive measure"
    return "neither can tell"


def preferences(baseline: str, candidate: str, naive: Delta, real: Sequence[Delta]) -> str:
    """Say which run each measure prefers, as shortly as the numbers allow. real: doc_recall first."""
    names = {1: candidate, -1: baseline}
    told = {delta.way for delta in real} - {0}
    if not told and not naive.way:
        return f"no measure can tell {candidate} from {baseline}"
    unsure = [d for d in real if not d.way]
    if len(told) == 1 and len(real) > 1 and real[0].way and len(unsure) < 2:
        (way,) = told
        # One that leans the same way does not contradict the others, and is said to be unsure.
        if all(d.value and d.value * way > 0 for d in unsure):
            same = "every measure" if naive.way == way else f"{_naive(names, naive)}, and every real one"
            rest = "".join(f", which for {d.noun} may be chance" for d in unsure)
            return f"{same} prefers {names[way]}{rest}"
    clauses = []
    for way in (1, -1) if naive.way >= 0 else (-1, 1):
        words = (["the naive measure"] if naive.way == way else []) + [d.noun for d in real if d.way == way]
        if words:
            verb = "prefers" if words == ["the naive measure"] else "prefer"
            clauses.append(f"{_and(words)} {verb} {names[way]}")
    cannot = ([] if naive.way else ["the naive measure"]) + [d.noun for d in unsure]
    if cannot:
        clauses.append(f"{_and(cannot)} cannot tell")
    return ", and ".join(clauses) if len(clauses) < 3 else f"{clauses[0]}, {clauses[1]}, and {clauses[2]}"


def _naive(names: dict[int, str], naive: Delta) -> str:
    return f"the naive measure prefers {names[naive.way]}" if naive.way else "the naive measure cannot tell"


def _and(words: Iterable[str]) -> str:
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last


def short(baseline: str, candidate: str, naive: Delta, real: Sequence[Delta]) -> str:
    """The verdict without numbers. real: the differences of the real measures, doc_recall first."""
    made_of = gain(naive, real[0])
    if real[0].value is None or not any(d.n_differ for d in (naive, *real)):
        return made_of
    found = preferences(baseline, candidate, naive, real)
    return f"{made_of}; {found}" if naive.way or real[0].way else found


def sentence(
    baseline: str,
    candidate: str,
    naive: Delta,
    real: Sequence[Delta],
    tokens: tuple[float | None, float | None] = (None, None),
) -> str:
    """The verdict with its numbers. tokens: what the baseline and the candidate gave at this cut, where it is known."""
    docs, *others = real
    text = f"naive {naive}, doc_recall {docs}: {gain(naive, docs)}."
    if docs.value is not None and any(d.n_differ for d in (naive, *real)):
        found = preferences(baseline, candidate, naive, real)
        numbers = f" ({', '.join(f'{d.noun} {d}' for d in others)})" if others else ""
        text += f" {found[0].upper()}{found[1:]}{numbers}."
    before, after = tokens
    if before is not None and after is not None:
        text += f" {candidate} gives {after:,.1f} tokens, {baseline} {before:,.1f}."
    return text
