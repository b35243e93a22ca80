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

CutUnit = Literal["chunks", "docs", "tokens", "context", "all"]

_MEASURE = re.compile(r"(?P<name>[^@()\s]+)\s*(?:\((?P<params>[^)]*)\))?\s*(?:@(?P<cuts>.*))?", re.DOTALL)
_NUMBER = r"[+-]?(?:[0-9]{1,20}\.?[0-9]{0,20}|\.[0-9]{1,20})(?:e-?[0-9]{1,3})?"
_PARAM = re.compile(rf"(?P<name>[a-z]+)\s*=\s*(?P<value>{_NUMBER})")
_CUT = re.compile(r"(?P<k>[+-]?[0-9]+(?:\.[0-9]+)?)(?P<unit>[A-Za-z]*)")
LARGEST_K = 2**31 - 1  # no log ranks deeper, and k times a count stays far inside 64 bits
_LONGEST_K = 40  # Python refuses to read thousands of digits; a k that long is not worth repeating either
_CUTS = (
    "Cuts are @k (the first k chunks), @kdocs (the first k documents), @Ntokens (the chunks that fit N tokens), "
    "@context (what was passed to the model) and @all."
)
_WITHOUT_K = ("context", "all")
_WITH_UNIT = ("docs", "tokens")


@dataclass(frozen=True)
class Cut:
    """Which rows count; k is the number of chunks, documents or tokens, and None for `@context` and `@all`."""

    unit: CutUnit
    k: int | None = None

    def __post_init__(self) -> None:
        """Refuse a k that has no meaning."""
        if (self.k is None) != (self.unit in _WITHOUT_K):
            raise MeasureError(f"A cut by {self.unit} {'needs a' if self.k is None else 'takes no'} number.")
        if self.k is not None and self.k < 1:
            raise MeasureError(f"k must be positive, and it is {self.k}.")
        if self.k is not None and self.k > LARGEST_K:
            raise MeasureError(f"k is {self.k}; the largest is {LARGEST_K}. @all takes every hit.")

    def __str__(self) -> str:
        if self.k is None:
            return self.unit
        return f"{self.k}{self.unit}" if self.unit in _WITH_UNIT else str(self.k)


@dataclass(frozen=True)
class Measure:
    """One column of numbers: a name of the registry, a cut, and the parameters that are not the default ones."""

    name: str
    cut: Cut
    params: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        """Refuse a name that is not in the registry, and a cut or a parameter that it cannot have."""
        if self.name not in REGISTRY:
            raise _unknown(f"{self.name}@{self.cut}", self.name)
        definition = REGISTRY[self.name]
        if self.cut.unit == "docs" and not definition.by_docs:
            raise MeasureError(
                f"{self.name}@{self.cut}: {self.name} counts chunks, and the places of @kdocs are documents. "
                f"Write {self.name}@{self.cut.k}, or @context, @Ntokens or @all."
            )
        for name, value in self.params:
            if name not in definition.params:
                known = ", ".join(definition.params) or "none"
                raise MeasureError(f"{self.name} has no parameter {name!r}. Its parameters: {known}.")
            if not definition.params[name].holds(value):
                raise MeasureError(f"{self.name}: {name} is {value:g}; it may be {definition.params[name]}.")
        given = dict(self.params)
        ordered = tuple(
            (name, int(given[name]) if p.whole else float(given[name]))
            for name, p in definition.params.items()
            if name in given and given[name] != p.default
        )
        object.__setattr__(self, "params", ordered)

    @property
    def arguments(self) -> dict[str, float]:
        """Every parameter with its value."""
        return {name: p.default for name, p in REGISTRY[self.name].params.items()} | dict(self.params)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of hits that the measure reads besides ids and order."""
        of_cut = {"tokens": ("n_tokens",), "context": ("in_context",)}.get(self.cut.unit, ())
        return tuple(dict.fromkeys((*REGISTRY[self.name].needs, *of_cut)))

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value!r}" for name, value in self.params)
        return f"{self.name}{f'({inside})' if inside else ''}@{self.cut}"


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
    if cuts is None or not cuts.strip():
        raise MeasureError(f"{text!r} names no cut. Write for example {name}@3 or {name}@3docs. {_CUTS}")
    pieces = [piece.strip() for piece in cuts.split(",")]
    _refuse_one_unit_for_many(text, name, pieces)
    given = _params(text, name, params or "")
    return [Measure(name, _cut(text, piece), given) for piece in pieces]


def _params(text: str, name: str, inside: str) -> tuple[tuple[str, float], ...]:
    """Read `coverage=0.5,gap=2`."""
    known = ", ".join(f"{p}={d.default:g}" for p, d in REGISTRY[name].params.items())
    if inside.strip() and not known:
        raise MeasureError(f"{text!r}: {name} takes no parameters.")
    found: dict[str, float] = {}
    for piece in filter(None, (piece.strip() for piece in inside.split(","))):
        match = _PARAM.fullmatch(piece)
        if match is None:
            raise MeasureError(f"{text!r}: {piece!r} is not a parameter. {name} takes {known}.")
        if match["name"] in found:
            raise MeasureError(f"{text!r}: {match['name']} stands twice.")
        found[match["name"]] = float(match["value"])
    return tuple(found.items())


def _cut(text: str, piece: str) -> Cut:
    if piece in _WITHOUT_K:
        return Cut("context" if piece == "context" else "all")
    match = _CUT.fullmatch(piece)
    if match is None:
        raise MeasureError(f"{text!r}: {piece!r} is not a cut. {_CUTS}")
    if len(match["k"]) > _LONGEST_K:
        raise MeasureError(f"k has {len(match['k'])} digits; the largest is {LARGEST_K}. @all takes every hit.")
    if "." in match["k"]:
        raise MeasureError(f"{text!r}: k must be a whole number, and it is {match['k']}.")
    match match["unit"]:
        case "" | "chunks":
            return Cut("chunks", int(match["k"]))
        case "docs":
            return Cut("docs", int(match["k"]))
        case "tokens":
            return Cut("tokens", int(match["k"]))
        case unit:
            raise MeasureError(f"{text!r}: unknown unit {unit!r}.{nearest(unit, ('docs', 'tokens', 'chunks'))} {_CUTS}")


def _refuse_one_unit_for_many(text: str, name: str, pieces: list[str]) -> None:
    """In `@1,3,10docs` or `@1,3,10tokens` the unit could mean the last cut or all of them, so neither is guessed."""
    *before, last = pieces
    bare = [match for match in map(_CUT.fullmatch, before) if match and not match["unit"]]
    unit = next((unit for unit in _WITH_UNIT if last.endswith(unit)), None)
    if not before or unit is None or len(bare) < len(before):
        return
    all_alike = ",".join([*(f"{piece}{unit}" for piece in before), last])
    chunks_first = ",".join([*(f"{piece}chunks" for piece in before), last])
    raise MeasureError(
        f"{text!r}: only the last cut has a unit. Write {name}@{all_alike} if all are "
        f"{'documents' if unit == 'docs' else unit}, or {name}@{chunks_first} if the others are chunks."
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
