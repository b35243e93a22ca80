"""The grammar: `name@cut`, where the unit of the cut is part of the number's name.

A measure is a frozen value. `str(measure)` is its canonical name, which is the command-line argument, the config
value and the column name; `parse` is the inverse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from docrecall.errors import MeasureError, UsageError, nearest
from docrecall.measures.foreign import our_name, our_names
from docrecall.measures.registry import REGISTRY

CutUnit = Literal["chunks", "docs", "all"]

_MEASURE = re.compile(r"(?P<name>[^@()\s]+)\s*(?:\((?P<params>[^)]*)\))?\s*(?:@(?P<cuts>.*))?", re.DOTALL)
_CUT = re.compile(r"(?P<k>[+-]?[0-9]+(?:\.[0-9]+)?)(?P<unit>[A-Za-z]*)")
_LARGEST_K = 2**31 - 1  # no log ranks deeper, and k times a count stays far inside 64 bits
_LONGEST_K = 40  # Python refuses to read thousands of digits; a k that long is not worth repeating either
_CUTS = "Cuts are @k (the first k chunks), @kdocs (the first k documents) and @all."


@dataclass(frozen=True)
class Cut:
    """Which rows count: `@k` chunks, `@kdocs` documents, or `@all`; k is None for `@all` alone."""

    unit: CutUnit
    k: int | None = None

    def __post_init__(self) -> None:
        """Refuse a k that has no meaning."""
        if (self.k is None) != (self.unit == "all"):
            raise MeasureError(f"A cut by {self.unit} {'takes no' if self.unit == 'all' else 'needs a'} number.")
        if self.k is not None and self.k < 1:
            raise MeasureError(f"k must be positive, and it is {self.k}.")
        if self.k is not None and self.k > _LARGEST_K:
            raise MeasureError(f"k is {self.k}; the largest is {_LARGEST_K}. @all takes every hit.")

    def __str__(self) -> str:
        if self.k is None:
            return "all"
        return f"{self.k}docs" if self.unit == "docs" else str(self.k)


@dataclass(frozen=True)
class Measure:
    """One column of numbers: a name of the registry and a cut."""

    name: str
    cut: Cut

    def __post_init__(self) -> None:
        """Refuse a name that is not in the registry."""
        if self.name not in REGISTRY:
            raise _unknown(f"{self.name}@{self.cut}", self.name)

    def __str__(self) -> str:
        return f"{self.name}@{self.cut}"


def parse(text: str) -> Measure:
    """Read exactly one measure. Raises MeasureError (a ValueError) when it is none, or several."""
    found = parse_all([text])
    if len(found) != 1:
        raise MeasureError(f"{text!r} is {len(found)} measures; one was expected.")
    return found[0]


def parse_all(texts: str | Iterable[str | Measure]) -> tuple[Measure, ...]:
    """Read measures in order; a list of cuts gives one measure each, and a repeated measure stands once."""
    if isinstance(texts, str):
        texts = [texts]
    try:
        items = list(texts)
    except TypeError:
        raise UsageError(f"measures is a {type(texts).__name__}; a list of strings was expected.") from None
    measures: dict[Measure, None] = {}
    for item in items:
        if isinstance(item, Measure):
            measures[item] = None
        elif isinstance(item, str):
            measures.update(dict.fromkeys(_expand(item)))
        else:
            raise MeasureError(f"a measure is text such as doc_recall@3; a {type(item).__name__} was given.")
    if not measures:
        raise MeasureError("no measures were given. `docrecall measures` lists all of them.")
    return tuple(measures)


def _expand(text: str) -> list[Measure]:
    match = _MEASURE.fullmatch(text.strip())
    if match is None:
        raise MeasureError(f"{text!r} is not a measure. A measure is name@cut, for example doc_recall@3. {_CUTS}")
    name, params, cuts = match["name"], match["params"], match["cuts"]
    if name not in REGISTRY:
        raise _unknown(text, name)
    if params is not None:
        raise MeasureError(f"{text!r}: {name} takes no parameters.")
    if cuts is None or not cuts.strip():
        raise MeasureError(f"{text!r} names no cut. Write for example {name}@3 or {name}@3docs. {_CUTS}")
    pieces = [piece.strip() for piece in cuts.split(",")]
    _refuse_one_unit_for_many(text, name, pieces)
    return [Measure(name, _cut(text, piece)) for piece in pieces]


def _cut(text: str, piece: str) -> Cut:
    if piece == "all":
        return Cut("all")
    match = _CUT.fullmatch(piece)
    if match is None:
        raise MeasureError(f"{text!r}: {piece!r} is not a cut. {_CUTS}")
    if len(match["k"]) > _LONGEST_K:
        raise MeasureError(f"k has {len(match['k'])} digits; the largest is {_LARGEST_K}. @all takes every hit.")
    if "." in match["k"]:
        raise MeasureError(f"{text!r}: k must be a whole number, and it is {match['k']}.")
    match match["unit"]:
        case "" | "chunks":
            return Cut("chunks", int(match["k"]))
        case "docs":
            return Cut("docs", int(match["k"]))
        case unit:
            raise MeasureError(f"{text!r}: unknown unit {unit!r}.{nearest(unit, ('docs', 'chunks'))} {_CUTS}")


def _refuse_one_unit_for_many(text: str, name: str, pieces: list[str]) -> None:
    """In `@1,3,10docs` the unit could mean the last cut or all of them, so neither is guessed."""
    *before, last = pieces
    bare = [match for match in map(_CUT.fullmatch, before) if match and not match["unit"]]
    if not before or not last.endswith("docs") or len(bare) < len(before):
        return
    all_docs = ",".join([*(f"{piece}docs" for piece in before), last])
    chunks_first = ",".join([*(f"{piece}chunks" for piece in before), last])
    raise MeasureError(
        f"{text!r}: only the last cut has a unit. Write {name}@{all_docs} if all are documents, "
        f"or {name}@{chunks_first} if the others are chunks."
    )


def _unknown(text: str, name: str) -> MeasureError:
    ours = our_names(text)
    if ours:
        chunks, docs = ours
        return MeasureError(
            f"{text!r} is a name from another tool. Here the cut is part of the name: {chunks} looks at "
            f"{'every hit' if chunks.endswith('@all') else 'the first chunks, which the LLM was given'}; {docs} at the "
            "first documents in order of first appearance, and its positions count documents."
        )
    if family := our_name(name):
        return MeasureError(f"{text!r} is a name from another tool; ours is {family}{text.removeprefix(name)}. {_CUTS}")
    close = nearest(name, REGISTRY)
    return MeasureError(f"unknown measure {name!r}.{close} `docrecall measures` lists all of them.")
