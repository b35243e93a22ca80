"""From units to what a call gives: matches, means, accounts, decisions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from docrecall import reference
from tests.agreement.oracle_found import Call, Unit
from tests.agreement.oracle_labels import Listed

REASONS = {
    "unlabelled": "n_unlabelled",
    "no_relevant": "n_no_relevant",
    "unanswerable": "n_unanswerable",
    "stale_labels": "n_stale_labels",
    "rejected_rows": "n_rejected",
}


@dataclass(frozen=True)
class Scored:
    """A unit with its status and values."""

    unit: Unit
    status: str
    hits: list[reference.Hit]
    judged: reference.Judged
    values: list[float | None]
    ceiling: float | None

    def met(self, doc: Any) -> list[reference.Hit]:
        """The hits of a labelled document at its version."""
        label = self.judged.labels[doc]
        return [hit for hit in self.hits if hit.doc == doc and reference._meets(hit, label)]

    def matches(self) -> list[tuple[Any, ...]]:
        """One line per relevant document."""
        order = list(dict.fromkeys(hit.doc for hit in self.hits))
        lines = []
        for doc in sorted(self.judged.relevant):
            met = self.met(doc)
            place = (min(hit.rank for hit in met), order.index(doc) + 1) if met else (None, None)
            lines.append((*self.unit, doc, self.judged.labels[doc].grade, *place))
        return lines

    @property
    def gold_chunks(self) -> set[tuple[Any, Any]]:
        """The gold chunks, by document and chunk."""
        return {(p.doc, p.chunk) for p in self.judged.passages if p.chunk is not None}


def accounts(runs: Iterable[str], scored: Sequence[Scored]) -> list[tuple[Any, ...]]:
    """The accounting: one line per run."""
    lines = []
    for run in sorted(runs):
        mine = [s for s in scored if s.unit[0] == run]
        status = Counter(s.status for s in mine)
        no_hits = sum(s.status == "scored" and not s.hits for s in mine)
        lines.append((run, len(mine), status["scored"], no_hits, *(status[reason] for reason in REASONS)))
    return lines


def means(call: Call, runs: Iterable[str], scored: Sequence[Scored], listed: Listed) -> list[tuple[Any, ...]]:
    """The summary: run, measure, mean, n, n_null, n_eff, ceiling."""
    by_query = call.options.get("unit") == "query"
    lines = []
    for run in sorted(runs):
        mine = [s for s in scored if s.unit[0] == run and s.status == "scored"]
        reachable = _mean([(s.unit[-1], s.ceiling) for s in mine], listed, by_query)[0]
        for number, measure in enumerate(call.measures):
            values = [(s.unit[-1], s.values[number]) for s in mine]
            ceiling = reachable if measure.name == "doc_recall" else None
            lines.append((run, measure.text, *_mean(values, listed, by_query), ceiling))
    return lines


def _mean(
    values: Sequence[tuple[Any, float | None]], listed: Listed, by_query: bool
) -> tuple[float | None, int, int, float | None]:
    """mean, n, n_null and n_eff of the values of units, or first of those of each query."""
    if by_query:
        of_query = defaultdict(list)
        for query, value in values:
            of_query[query].append(value)
        values = [(query, reference.mean(its)) for query, its in of_query.items()]
    there = [(query, value) for query, value in values if value is not None]
    weights = [listed.weight(query) for query, _ in there] if listed.weighted else None
    mean = reference.mean([value for _, value in there], weights)
    n_eff = (float(len(there)) or None) if weights is None else reference.effective_size(weights)
    return mean, len(there), len(values) - len(there), n_eff


def decisions(runs: Iterable[str], scored: Sequence[Scored], answered: Callable[[Unit], bool]) -> list[tuple[Any, ...]]:
    """The decision table: one line per run, in the order of DESIGN section 6."""
    lines = []
    for run in sorted(runs):
        count: Counter[str] = Counter()
        for s in scored:
            if s.unit[0] != run:
                continue
            kind = "answerable" if s.status in ("scored", "stale_labels") else s.status
            if kind not in ("answerable", "unanswerable"):
                count["undecided"] += 1
                continue
            said = answered(s.unit)
            count[f"{'answered' if said else 'declined'}_{kind}"] += 1
            if kind == "answerable" and not said:
                count["with_gold"] += any(s.met(doc) for doc in s.judged.relevant)
        four = [count[f"{did}_{kind}"] for kind in ("answerable", "unanswerable") for did in ("answered", "declined")]
        lines.append((run, *four, count["undecided"], *reference.decision_rates(*four).values(), count["with_gold"]))
    return lines
