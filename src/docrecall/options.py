"""Every policy of a run in one frozen value, checked when it is made, with a digest that outputs carry."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from docrecall.errors import UsageError, nearest

Order = Literal["rank", "score", "trec_eval"]
Ranks = Literal["logged", "recount"]
OnBadRows = Literal["error", "reject"]
Universe = Literal["all", "hits"]
NormalizeIds = Literal["none", "NFC"]
Versions = Literal["match", "ignore"]
Stale = Literal["exclude", "keep"]
Unit = Literal["request", "query"]

_WORDS: dict[str, tuple[str, ...]] = {
    "order": get_args(Order),
    "ranks": get_args(Ranks),
    "on_bad_rows": get_args(OnBadRows),
    "universe": get_args(Universe),
    "normalize_ids": get_args(NormalizeIds),
    "versions": get_args(Versions),
    "stale": get_args(Stale),
    "unit": get_args(Unit),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """The policies of a run. Raises UsageError (a ValueError) for a value that a policy does not know.

    order: which column orders the hits of a unit.
      - "rank": the logged rank (default).
      - "score": score descending, ties by (doc_id, chunk_id) ascending; the rank column is not used.
      - "trec_eval": score in single precision descending, ties by doc_id descending in byte order.
    ranks: what a logged rank means.
      - "logged": the place itself; missing ranks leave places empty (default).
      - "recount": only an order; the rows are numbered 1, 2, 3.
    rank_base: the rank of the best hit in the log, 1 (default) or 0.
    min_relevance: a label is relevant from this grade on; at least 1.
    on_bad_rows: what happens when rows break the contract.
      - "error": DataError, nothing is written (default).
      - "reject": the rows are set aside, the units they touch get the status `rejected_rows`.
    universe: which units are scored when no table lists them.
      - "all": every run x labelled query, and the queries that the run has hits for (default).
      - "hits": only units that have hits.
    normalize_ids: "none" (default) or "NFC", which normalises all String ids on all tables.
    versions: whether `doc_version` tells documents apart.
      - "match": a hit counts only at the labelled version; a null fits any (default).
      - "ignore": ids alone match, and no label is stale.
    stale: what becomes of units with a label of a version that the index no longer serves.
      - "exclude": they get the status `stale_labels` and leave the mean (default).
      - "keep": they are scored, and such a document is a miss.
    unit: what a mean is taken over, where hits carry `request_id`.
      - "request": the logged requests; a query that was asked often weighs as much (default).
      - "query": queries, each with the mean of its requests.
    """

    order: Order = "rank"
    ranks: Ranks = "logged"
    rank_base: int = 1
    min_relevance: int = 1
    on_bad_rows: OnBadRows = "error"
    universe: Universe = "all"
    normalize_ids: NormalizeIds = "none"
    versions: Versions = "match"
    stale: Stale = "exclude"
    unit: Unit = "request"

    def __post_init__(self) -> None:
        """Refuse values that a policy does not know."""
        for name, words in _WORDS.items():
            given = getattr(self, name)
            if given not in words:
                raise UsageError(f"{name} is {given!r}; it may be {' or '.join(repr(w) for w in words)}.")
        if not _is_whole(self.rank_base) or self.rank_base not in (0, 1):
            raise UsageError(f"rank_base is {self.rank_base!r}; the best hit has rank 1 or, if the log says so, 0.")
        if not _is_whole(self.min_relevance) or self.min_relevance < 1:
            raise UsageError(
                f"min_relevance is {self.min_relevance!r}; it must be a whole number of at least 1, "
                "because a grade of 0 means judged and not relevant."
            )

    @classmethod
    def of(cls, beside: Sequence[str] = (), **policies: Any) -> Options:
        """Build from keywords; an unknown name is a UsageError that offers the nearest, also of the names beside."""
        known = [f.name for f in fields(cls)]
        for name in policies:
            if name not in known:
                close = nearest(name, [*known, *beside])
                raise UsageError(f"unknown option {name!r}.{close} The options are {', '.join(known)}.")
        return cls(**policies)

    @property
    def by_score(self) -> bool:
        """Whether scores and not ranks order the hits."""
        return self.order != "rank"

    def unlike(self, other: Options) -> dict[str, tuple[Any, Any]]:
        """The policies that differ, with both values."""
        pairs = {f.name: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return {name: values for name, values in pairs.items() if values[0] != values[1]}

    @property
    def changed(self) -> dict[str, Any]:
        """The policies that are not the default."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}

    @property
    def digest(self) -> str:
        """Twelve hex digits that are equal for equal policies."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
