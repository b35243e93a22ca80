"""What commands are told: tables, policies, and how results are shown."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from docrecall.errors import UsageError
from docrecall.options import NormalizeIds, OnBadRows, Order, Ranks, Stale, Unit, Universe, Versions
from docrecall.show import printable

TABLES, _POLICIES, _INTERVALS, _FUNNEL = (
    Group(name, sort_key=n) for n, name in enumerate(("Tables", "Policies", "Slices and intervals", "Funnel"), 1)
)


@Parameter(name="*", group=_FUNNEL)
@dataclass(frozen=True, kw_only=True)
class FunnelOptions:
    """The funnel of `docrecall.funnel`: where answers get lost."""

    funnel: Annotated[
        bool,
        Parameter(
            negative="", help="Show how many units pass each step from labels to answer; csv and parquet hold it alone."
        ),
    ] = False
    cut: Annotated[str, Parameter(help="The cut that documents and passages must be in.")] = "@10"
    budget: Annotated[str, Parameter(help="The token budget, or none; left out where nobody counted tokens.")] = (
        "@2000tokens"
    )
    coverage: Annotated[float, Parameter(help="The share of a passage that must be there.")] = 1.0
    need: Annotated[Literal["any", "all"], Parameter(help="Any relevant document and passage, or all of them.")] = "any"

    def asked(self) -> dict[str, Any] | None:
        """The arguments of `docrecall.funnel`, or None where no funnel is asked for."""
        if not self.funnel:
            if self != FunnelOptions():
                raise UsageError("--cut, --budget, --coverage and --need say how --funnel is followed: add --funnel.")
            return None
        budget = None if self.budget == "none" else self.budget
        return {"cut": self.cut, "budget": budget, "coverage": self.coverage, "need": self.need}


@Parameter(name="*", group=_INTERVALS)
@dataclass(frozen=True, kw_only=True)
class IntervalOptions:
    """How means and differences are parted, and how their intervals are made; see `docrecall.Scores.summary`."""

    by: Annotated[
        list[str] | None,
        Parameter(negative="", help="A column of queries or requests; each of its values is a slice. May repeat."),
    ] = None
    cluster: Annotated[
        str | None,
        Parameter(help="A column whose equal values are resampled together, such as conversation_id; nulls are alone."),
    ] = None
    min_n: Annotated[int, Parameter(help="Slices with fewer units are shown and not judged.")] = 20
    method: Annotated[
        Literal["bca", "expanded", "percentile"] | None,
        Parameter(help="The bootstrap. By default bca for measures between 0 and 1, expanded for others."),
    ] = None
    level: Annotated[float, Parameter(help="The confidence of intervals.")] = 0.95
    resamples: Annotated[int, Parameter(help="How many resamples intervals and tests are made of.")] = 10_000
    seed: Annotated[int, Parameter(help="The seed of intervals and tests.")] = 0

    def asked(self) -> dict[str, Any]:
        """The arguments of `Scores.summary` and `docrecall.compare`."""
        return asdict(self)


Format = Literal["table", "json", "csv", "markdown", "latex", "parquet"]
Shown = Annotated[Format, Parameter(help="How results are printed on stdout.")]


HITS_HELP = "The log: a file, directory or glob. May repeat; NAME=PATH names the run."
MAP_HELP = "Where a column comes from: hits.doc_id=source, hits.run_id=value:bm25, or a .toml file. May repeat."
READ_HELP = "The format of files whose names do not say: trec, or hits=trec. May repeat."


@Parameter(name="*", group=TABLES)
@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables to read."""

    hits: Annotated[list[str], Parameter(negative="", help=HITS_HELP)]
    qrels: Annotated[str | None, Parameter(help="The labels; may be left out where evidence is given.")] = None
    queries: Annotated[str | None, Parameter(help="The list of queries to score, with label_status and weight.")] = None
    evidence: Annotated[str | None, Parameter(help="Gold passages (spans) and gold chunks.")] = None
    documents: Annotated[str | None, Parameter(help="The documents of the index: versions and aliases.")] = None
    requests: Annotated[str | None, Parameter(help="The logged requests to score, and what was answered.")] = None
    chunks: Annotated[str | None, Parameter(help="The chunks of the index: what hits lack, by chunk_id.")] = None
    map: Annotated[list[str] | None, Parameter(negative="", help=MAP_HELP)] = None
    read: Annotated[list[str] | None, Parameter(negative="", help=READ_HELP)] = None

    @property
    def labels(self) -> dict[str, str | None]:
        """Every table but hits, by name."""
        names = ("qrels", "evidence", "queries", "requests", "documents", "chunks")
        return {name: getattr(self, name) for name in names}


@Parameter(name="*", group=TABLES)
@dataclass(frozen=True, kw_only=True)
class ComparedTables(Tables):
    """The tables of runs to compare; beside folders of results only those with columns of queries and requests."""

    hits: Annotated[list[str] | None, Parameter(negative="", help=HITS_HELP)] = None  # type: ignore[assignment]


@Parameter(name="*", group=_POLICIES)
@dataclass(frozen=True, kw_only=True)
class Policies:
    """The policies of `docrecall.Options`, one option each."""

    order: Annotated[Order, Parameter(help="What orders the hits.")] = "rank"
    ranks: Annotated[Ranks, Parameter(help="Whether logged ranks are places, or only an order.")] = "logged"
    rank_base: Annotated[int, Parameter(help="The rank of the best hit, 1 or 0.")] = 1
    min_relevance: Annotated[int, Parameter(help="Labels are relevant from this grade on.")] = 1
    on_bad_rows: Annotated[OnBadRows, Parameter(help="Stop at rows that break the contract, or set them aside.")] = (
        "error"
    )
    universe: Annotated[Universe, Parameter(help="Score all labelled queries, or only those with hits.")] = "all"
    normalize_ids: Annotated[NormalizeIds, Parameter(help="Normalise String ids on all tables.")] = "none"
    versions: Annotated[Versions, Parameter(help="Whether hits must be at the labelled doc_version.")] = "match"
    stale: Annotated[Stale, Parameter(help="Leave units with outdated labels out, or score such labels as misses.")] = (
        "exclude"
    )
    unit: Annotated[Unit, Parameter(help="Take means over logged requests, or over queries.")] = "request"


def named_paths(given: Sequence[str]) -> list[str] | dict[str, list[str]]:
    """Read NAME=PATH arguments: a dict run -> paths, or a list of paths when none has a name.

    What exists as a path is a path, also with = in it; so is what has a / before the =.
    """
    named: dict[str, list[str]] = {}
    plain: list[str] = []
    for text in given:
        match = re.fullmatch(r"([^=/]+)=(.+)", text, re.DOTALL)
        if match and not os.path.exists(text):  # noqa: PTH110 - Path.exists raises for names that are too long
            named.setdefault(match[1], []).append(match[2])
        else:
            plain.append(text)
    if named and plain:
        raise UsageError("some --hits have a name and some have none. Write NAME=PATH for all of them, or for none.")
    return named or plain


def whole_numbers(option: str, text: str) -> list[int]:
    """Read `1,3,10`."""
    pieces = [piece.strip() for piece in text.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,10}", piece) for piece in pieces):
        raise UsageError(f"{option} is {printable(text)!r}; whole numbers were expected, as in {option} 1,3,10.")
    return [int(piece) for piece in pieces]
