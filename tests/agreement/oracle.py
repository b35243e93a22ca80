"""What `score` must say of a case: the rules of DESIGN in plain Python, the values by `docrecall.reference`.

Nothing here is vectorised, batched or shared with the columnar code.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from docrecall import reference
from tests.agreement.case import Case, Rows

KNOWN_HITS = ("query_id", "rank", "doc_id", "run_id", "chunk_id", "score")
OF_HITS_ALONE = {"distinct_docs", "repeat_share", "top_doc_share", "context_chunks"}
COUNTED = {"duplicate_hits", "duplicate_labels", "tied_scores"}  # noticed in rows, and no fault
REASONS = {
    "unlabelled": "n_unlabelled",
    "no_relevant": "n_no_relevant",
    "unanswerable": "n_unanswerable",
    "stale_labels": "n_stale_labels",
    "rejected_rows": "n_rejected",
}
Unit = tuple[str, Any]


@dataclass(frozen=True)
class Answer:
    """Results of a call. findings: code -> rows and units (or queries), for the codes that are counted here."""

    per_query: list[tuple[Any, ...]]
    accounting: list[tuple[Any, ...]]
    summary: list[tuple[Any, ...]]
    matches: list[tuple[Any, ...]]
    rows: dict[str, tuple[int, int, int, int, int]]
    findings: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Refusal:
    """The call raises a DataError; code -> number of rows in its findings."""

    codes: dict[str, int]


class Found:
    """Counts rows, and the units or queries they touch, by code."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.units: defaultdict[str, set[Any]] = defaultdict(set)

    def add(self, code: str, unit: Any, rows: int = 1) -> None:
        self.rows[code] += rows
        if rows and unit is not None:
            self.units[code].add(unit)

    def counts(self) -> dict[str, tuple[int, int]]:
        return {code: (n, len(self.units[code])) for code, n in self.rows.items() if n}


class Labels:
    """qrels after their contract: grades by query, and what was set aside."""

    def __init__(self, table: Rows, nfc: Callable[[Any], Any], found: Found) -> None:
        rows = [
            (nfc(r["query_id"]), nfc(r["doc_id"]), r.get("relevance") if "relevance" in r else 1) for r in table.dicts()
        ]
        good = []
        bad: list[tuple[str, Any]] = []
        for query, doc, grade in rows:
            if query is None or doc is None:
                bad.append(("null_id", query))
            elif grade is None:
                bad.append(("relevance_null", query))
            else:
                good.append((query, doc, grade))
        kept = list(dict.fromkeys(good))
        pairs = Counter((query, doc) for query, doc, _ in kept)
        self.grades: defaultdict[Any, dict[Any, int]] = defaultdict(dict)
        for query, doc, grade in kept:
            if pairs[query, doc] > 1:
                bad.append(("label_two_grades", query))
            else:
                self.grades[query][doc] = grade
        self.n_read, self.n_duplicates, self.n_rejected = len(rows), len(good) - len(kept), len(bad)
        self.rejected = {query for _, query in bad if query is not None}
        for code, query in bad:
            found.add(code, query)
        for query, count in Counter(query for query, _, _ in good).items():
            found.add("duplicate_labels", query, count - sum(q == query for q, _, _ in kept))


class Listed:
    """The queries table after its contract: status by query, and what was set aside."""

    def __init__(self, table: Rows, nfc: Callable[[Any], Any], found: Found) -> None:
        rows = [(nfc(r["query_id"]), r.get("label_status")) for r in table.dicts()]
        times = Counter(query for query, _ in rows)
        self.status: dict[Any, str | None] = {}
        bad: list[tuple[str, Any]] = []
        for query, status in rows:
            if query is None:
                bad.append(("null_id", None))
            elif times[query] > 1:
                bad.append(("query_repeated", query))
            elif status not in (None, "answerable", "unanswerable", "unlabelled"):
                bad.append(("status_unknown", query))
            else:
                self.status[query] = status
        self.n_read, self.n_rejected = len(rows), len(bad)
        self.rejected = {query for _, query in bad if query is not None}
        for code, query in bad:
            found.add(code, query)


class Log:
    """The hits of one log after their contract: ranked hits by unit, and what was set aside."""

    def __init__(self, name: str | None, table: Rows, case: Case, nfc: Callable[[Any], Any], found: Found) -> None:
        self.options = case.options
        self.order = self.options.get("order", "rank")
        self.base = self.options.get("rank_base", 1)
        self.has_run = "run_id" in table.columns
        self.docs: set[Any] = set()
        self.seen_runs: set[str] = set() if self.has_run else {name or "run"}
        self.touched: set[Unit] = set()
        self.touched_in_every_run: set[Any] = set()
        self.n_read = len(table.rows)
        self.n_rejected = self.n_duplicates = 0
        good = []
        for cells in table.dicts():
            row = {c: nfc(v) if c.endswith("_id") and c != "run_id" else v for c, v in cells.items() if c in KNOWN_HITS}
            if row["doc_id"] is not None:
                self.docs.add(row["doc_id"])
            run = row["run_id"] if self.has_run else (name or "run")
            code = self._broken(row)
            if code is None:
                good.append(((run, row["query_id"]), row))
            else:
                self._reject(code, run, row["query_id"], found)
        self.units = self._collapse(good, found)

    def _broken(self, row: dict[str, Any]) -> str | None:
        if row["query_id"] is None or row["doc_id"] is None or (self.has_run and row["run_id"] is None):
            return "null_id"
        if self.order != "rank":
            score = row["score"]
            return "score_null" if score is None else "score_nan" if math.isnan(score) else None
        rank = row["rank"]
        if rank is None:
            return "rank_null"
        if isinstance(rank, float) and (not math.isfinite(rank) or rank != int(rank)):
            return "rank_fraction"
        if rank >= 2**53:
            return "rank_too_large"
        if rank == 0 and self.base == 1:
            return "rank_zero"
        return "rank_below_first" if rank < self.base else None

    def _reject(self, code: str, run: str | None, query: Any, found: Found) -> None:
        self.n_rejected += 1
        found.add(code, None if query is None else (run, query))
        if query is not None and run is None:
            self.touched_in_every_run.add(query)
        elif query is not None:
            self.touched.add((run, query))

    def _collapse(self, good: list[tuple[Unit, dict[str, Any]]], found: Found) -> dict[Unit, list[tuple[int, Any]]]:
        by_unit: defaultdict[Unit, dict[tuple[Any, ...], dict[str, Any]]] = defaultdict(dict)
        for unit, row in good:
            # repr tells NaN from numbers and NaN is NaN; adding 0.0 gives zero one sign.
            content = tuple(repr(v + 0.0) if isinstance(v, float) else v for v in row.values())
            if content in by_unit[unit]:
                self.n_duplicates += 1
                found.add("duplicate_hits", unit)
            else:
                by_unit[unit][content] = row
        units: dict[Unit, list[tuple[int, Any]]] = {}
        for unit, rows in by_unit.items():
            kept = list(rows.values())
            if self.order == "rank":
                times = Counter(row["rank"] for row in kept)
                for row in kept:
                    if times[row["rank"]] > 1:
                        self._reject("rank_conflict", *unit, found)
                kept = [row for row in kept if times[row["rank"]] == 1]
            if kept:
                units[unit] = self._ranked(unit, kept, found)
        return units

    def _ranked(self, unit: Unit, rows: list[dict[str, Any]], found: Found) -> list[tuple[int, Any]]:
        if self.order == "rank":
            logged = [(int(row["rank"]) + 1 - self.base, row["doc_id"]) for row in rows]
            return reference.recount(logged) if self.options.get("ranks") == "recount" else sorted(logged)
        single = self.order == "trec_eval"
        times = Counter(reference._single(row["score"]) if single else float(row["score"]) for row in rows)
        found.add("tied_scores", unit, sum(n for n in times.values() if n > 1))
        if single:
            return reference.order_as_trec_eval((row["score"], row["doc_id"]) for row in rows)
        # Chunks only part ties between rows of one document, which no measure can tell apart.
        return reference.order_by_score((float(row["score"]), row["doc_id"], 0) for row in rows)


def answer(case: Case) -> Answer | Refusal:
    """Work out the case."""
    normal = case.options.get("normalize_ids") == "NFC"

    def nfc(value: Any) -> Any:
        return unicodedata.normalize("NFC", value) if normal and isinstance(value, str) else value

    collapsed = _collapsed(case) if normal else 0
    if collapsed:
        return Refusal({"ids_collapse": collapsed})
    found = Found()
    labels = Labels(case.qrels, nfc, found)
    listed = Listed(case.queries, nfc, found) if case.queries is not None else None
    logs = [Log(name, rows, case, nfc, found) for name, rows in case.logs.items()]
    broken = {c: n for c, n in found.rows.items() if n and c not in COUNTED}
    if broken and case.options.get("on_bad_rows", "error") == "error":
        first = {c: n for c, n in broken.items() if c != "rank_conflict"}
        return Refusal(first or broken)

    hits = {unit: ranked for log in logs for unit, ranked in log.units.items()}
    touched = {unit for log in logs for unit in log.touched}
    runs = {run for log in logs for run in log.seen_runs} | {run for run, _ in hits} | {run for run, _ in touched}
    runs = runs or {"run"}
    # A row without a run may be of any run: it makes no unit, but its query is whole in none.
    lost = {query for log in logs for query in log.touched_in_every_run}
    seen = {query for _, query in {*hits, *touched}} | lost
    known_labels = set(labels.grades) | labels.rejected
    if labels.grades and seen and not seen & known_labels:
        return Refusal({"no_shared_queries": len(seen)})

    rejected = labels.rejected | (listed.rejected if listed else set())
    asked = (set(listed.status) | listed.rejected) if listed else None
    if case.options.get("universe") == "hits":
        units = {unit for unit in {*hits, *touched} if asked is None or unit[1] in asked}
    elif asked is not None:
        units = {(run, query) for run in runs for query in asked}
    else:
        units = {(run, query) for run in runs for query in known_labels} | {*hits, *touched}

    met_units = [u for u in units if labels.grades.get(u[1]) and hits.get(u)]
    label_docs = {doc for grades in labels.grades.values() for doc in grades}
    if met_units and not any(label_docs & log.docs for log in logs):
        if len(met_units) >= 20 and any(m.split("@")[0] not in OF_HITS_ALONE for m in case.measures):
            return Refusal({"no_shared_documents": len(met_units)})
        found.add("no_shared_documents", None, len(met_units))
        found.units["no_shared_documents"] = set(met_units)

    least = case.options.get("min_relevance", 1)
    per_query, matches = [], []
    status: dict[Unit, str] = {}
    for unit in sorted(units):
        run, query = unit
        grades = labels.grades.get(query, {})
        said = listed.status.get(query) if listed else None
        status[unit] = _status(unit in touched or query in lost | rejected, said, grades, least)
        ranked = hits.get(unit, [])
        values = [_value(m, ranked, grades, least) if status[unit] == "scored" else None for m in case.measures]
        per_query.append((run, query, status[unit], len(ranked), *values))
        if status[unit] == "scored":
            order = list(dict.fromkeys(doc for _, doc in ranked))
            for doc in sorted(d for d, g in grades.items() if g >= least):
                places = [rank for rank, d in ranked if d == doc]
                position = order.index(doc) + 1 if places else None
                matches.append((run, query, doc, grades[doc], min(places, default=None), position))
        if ranked:
            before = [0, *(rank for rank, _ in ranked)]
            found.add("rank_gaps", unit, sum(b - a > 1 for a, b in pairwise(before)))
            if status[unit] == "unlabelled":
                found.add("unlabelled_hits", unit, len(ranked))
    for unit in hits.keys() - units:
        found.add("outside_universe", unit, len(hits[unit]))
    for query, said in listed.status.items() if listed else ():
        if _contradicted(said, labels.grades.get(query)):
            found.add("label_conflict", query)

    return Answer(
        per_query,
        [_account(run, per_query) for run in sorted(runs)],
        [line for run in sorted(runs) for line in _means(run, per_query, case.measures)],
        matches,
        _rows(logs, labels, listed, hits, units),
        found.counts(),
    )


def _status(rejected: bool, said: str | None, grades: dict[Any, int], least: int) -> str:
    if rejected:
        return "rejected_rows"
    if said == "unanswerable":
        return "unanswerable"
    if said == "unlabelled" or not grades:
        return "unlabelled"
    return "scored" if max(grades.values()) >= least else "no_relevant"


def _value(measure: str, ranked: list[tuple[int, Any]], grades: dict[Any, int], least: int) -> float | None:
    name, cut = measure.split("@")
    if cut == "all":
        taken = reference.cut_all(ranked)
    elif cut.endswith("docs"):
        taken = reference.cut_docs(ranked, int(cut.removesuffix("docs")))
    else:
        taken = reference.cut_chunks(ranked, int(cut))
    return reference.value(name, taken, grades, least)


def _contradicted(said: str | None, grades: dict[Any, int] | None) -> bool:
    match said:
        case "answerable":
            return not grades
        case "unlabelled":
            return bool(grades)
        case "unanswerable":
            return bool(grades) and max(grades.values()) >= 1
    return False


def _account(run: str, per_query: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    mine = [row for row in per_query if row[0] == run]
    status = Counter(row[2] for row in mine)
    no_hits = sum(row[2] == "scored" and row[3] == 0 for row in mine)
    return (run, len(mine), status["scored"], no_hits, *(status[reason] for reason in REASONS))


def _means(run: str, per_query: list[tuple[Any, ...]], measures: tuple[str, ...]) -> list[tuple[Any, ...]]:
    mine = [row for row in per_query if row[0] == run and row[2] == "scored"]
    lines = []
    for number, measure in enumerate(measures, start=4):
        values = [row[number] for row in mine if row[number] is not None]
        lines.append((run, measure, reference.mean(values), len(values), len(mine) - len(values)))
    return lines


def _rows(
    logs: list[Log], labels: Labels, listed: Listed | None, hits: dict[Unit, list[Any]], units: set[Unit]
) -> dict[str, tuple[int, int, int, int, int]]:
    outside = sum(len(ranked) for unit, ranked in hits.items() if unit not in units)
    read, twice, bad = (sum(getattr(log, f"n_{what}") for log in logs) for what in ("read", "duplicates", "rejected"))
    asked = {query for _, query in units}
    stray = sum(len(grades) for query, grades in labels.grades.items() if query not in asked)
    used_labels = sum(map(len, labels.grades.values())) - stray
    out = {
        "hits": (read, read - twice - bad - outside, twice, bad, outside),
        "qrels": (labels.n_read, used_labels, labels.n_duplicates, labels.n_rejected, stray),
    }
    if listed is not None:
        out["queries"] = (listed.n_read, listed.n_read - listed.n_rejected, 0, listed.n_rejected, 0)
    return out


def _collapsed(case: Case) -> int:
    """Ids of one column of one table that NFC makes one."""
    tables = [*case.logs.values(), case.qrels, *([case.queries] if case.queries else [])]
    total = 0
    for table in tables:
        for column in ("query_id", "doc_id", "chunk_id"):
            ids = {row[column] for row in table.dicts() if column in row and isinstance(row[column], str)}
            times = Counter(unicodedata.normalize("NFC", i) for i in ids)
            total += sum(n for n in times.values() if n > 1)
    return total
