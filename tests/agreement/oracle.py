"""What `score` must say of a case: the rules of DESIGN in plain Python, the values by `docrecall.reference`.

Nothing here is vectorised, batched or shared with the columnar code.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from docrecall import reference
from tests.agreement.case import Case
from tests.agreement.oracle_found import (
    ID_COLUMNS,
    NO_FAULT,
    OF_HITS_ALONE,
    Answer,
    Call,
    Refusal,
    RefusedError,
    Unit,
)
from tests.agreement.oracle_hits import Chunks, Log, Requests
from tests.agreement.oracle_labels import Documents, Evidence, Labels, Listed
from tests.agreement.oracle_means import Scored, accounts, decisions, means

TABLES = ("hits", "qrels", "evidence", "queries", "requests", "documents", "chunks")
MANY = 20  # from so many units on, nothing in common is no coincidence


def answer(case: Case) -> Answer | Refusal:
    """Work out the case."""
    try:
        return Work(case).answer()
    except RefusedError as refused:
        return refused.refusal


class Work:
    """The tables of a case after their contract, and its units."""

    def __init__(self, case: Case) -> None:
        self.call = call = Call(case)
        _refuse_missing_columns(call)
        _refuse_collapsed_ids(call)
        self.documents = Documents(call)
        self.evidence = Evidence(call, self.documents)
        self.labels = Labels(call, self.documents, self.evidence)
        self.listed = Listed(call, self.labels)
        self.requests = Requests(call)
        self.chunks = Chunks(call, self.documents)
        self.logs = [Log(name, rows, call, self.documents, self.chunks) for name, rows in case.logs.items()]
        _refuse_bad_rows(call)
        self.hits = {unit: ranked for log in self.logs for unit, ranked in log.units.items()}
        self.touched = {unit for log in self.logs for unit in log.touched}
        self.in_part = {unit for log in self.logs for unit in log.touched_in_part}
        self.runs = self._runs()
        self._refuse_strange_queries()
        self.units = self._units()
        self.scored = [self._score(unit) for unit in sorted(self.units)]

    def _runs(self) -> set[str]:
        """The runs of the logs and of the requests; a log without rows is one run all the same."""
        named = {run for log in self.logs for run in log.named_runs} | self.requests.runs()
        return (named | {unit[0] for unit in {*self.hits, *self.touched}}) or {"run"}

    def _units(self) -> set[Unit]:
        """The universe."""
        seen = {*self.hits, *self.touched}
        asked = self.listed.asked if self.listed.given else None
        if self.requests.given:
            units = self.requests.units(self.runs)
            return units & seen if self.call.options.get("universe") == "hits" else units
        if self.call.by_request or self.call.options.get("universe") == "hits":
            return {unit for unit in seen if asked is None or unit[-1] in asked}
        if asked is not None:
            return {(run, query) for run in self.runs for query in asked}
        return {(run, query) for run in self.runs for query in self.labels.known} | seen

    def _is_rejected(self, unit: Unit) -> bool:
        """Whether a bad row of any table touches the unit."""
        run, *_, query = unit
        bad = self.labels.rejected | self.evidence.rejected | self.listed.rejected
        parts = {(None, *unit[1:])}
        if self.call.by_request:
            parts |= {(run, None, query), (None, None, query)}
        return unit in self.touched or query in bad or bool(parts & self.in_part) or self.requests.is_rejected(unit)

    def _status(self, unit: Unit) -> str:
        query = unit[-1]
        labels, said = self.labels.of.get(query, {}), self.listed.status.get(query)
        if self._is_rejected(unit):
            return "rejected_rows"
        if said == "unanswerable":
            return "unanswerable"
        if said == "unlabelled" or not labels:
            return "unlabelled"
        if max(label.grade for label in labels.values()) < self.call.least:
            return "no_relevant"
        exclude = self.call.options.get("stale", "exclude") == "exclude"
        return "stale_labels" if exclude and self.labels.stale(query) else "scored"

    def _score(self, unit: Unit) -> Scored:
        """Status and values of one unit, and what is noticed in it."""
        hits, judged, status = self.hits.get(unit, []), self.labels.judged(unit[-1]), self._status(unit)
        values: list[float | None] = [None] * len(self.call.measures)
        ceiling = None
        if status == "scored":
            cuts = {m.cut: m.take(hits) for m in self.call.measures}
            values = [reference.value(m.name, cuts[m.cut], judged, **m.params) for m in self.call.measures]
            if self.documents.given:
                ceiling = reference.ceiling(judged, self.documents.index)
            self._count_narrow_gaps(unit, cuts, judged)
        if hits:
            before = [0, *(hit.rank for hit in hits)]
            self.call.found.add("rank_gaps", "hits", "rank", unit, sum(b - a > 1 for a, b in pairwise(before)))
            if status == "unlabelled":
                self.call.found.add("unlabelled_hits", "hits", None, unit, len(hits))
        return Scored(unit, status, hits, judged, values, ceiling)

    def _count_narrow_gaps(self, unit: Unit, cuts: dict[str, reference.Cut], judged: reference.Judged) -> None:
        """Count the evidence ids that gaps of at most two characters alone keep from full coverage."""
        ids = sorted({p.evidence_id for p in judged.passages})
        narrow = set()
        for cut, gap in {(m.cut, m.params.get("gap", 0)) for m in self.call.measures if _covers(m.name)}:
            wide = reference._best_shares(cuts[cut], judged, 2)
            if gap < 2:
                shares = reference._best_shares(cuts[cut], judged, gap)
                narrow |= {e for e, share, best in zip(ids, shares, wide, strict=True) if share < 1 <= best}
        self.call.found.add("narrow_gaps", "evidence", None, unit, len(narrow))

    def answer(self) -> Answer:
        """Put together what the call gives."""
        self._refuse_strange_documents()
        self._refuse_other_versions()
        self._refuse_strange_chunks()
        self._refuse_strange_requests()
        self._count_logs_without_spans()
        found = self.call.found
        for unit in self.hits.keys() - self.units:
            found.add("outside_universe", "hits", None, unit, len(self.hits[unit]))
        if self.call.by_request and not self.requests.given:
            asked = set(self.labels.of) & self.listed.asked if self.listed.given else set(self.labels.of)
            for query in asked - {unit[-1] for unit in self.units}:
                found.add("labels_never_requested", "qrels", "query_id", query)
        return Answer(
            [(*s.unit, s.status, len(s.hits), *s.values) for s in self.scored],
            accounts(self.runs, self.scored),
            means(self.call, self.runs, self.scored, self.listed),
            [line for s in self.scored if s.status == "scored" for line in s.matches()],
            decisions(self.runs, self.scored, self._answered),
            self._rows(),
            found.counts(),
        )

    def _answered(self, unit: Unit) -> bool:
        said = self.requests.answered(unit)
        return any(log.answered(unit) for log in self.logs) if said is None else said

    def _refuse_strange_queries(self) -> None:
        seen = {query for log in self.logs for query in log.queries}
        if self.labels.of and seen and not seen & self.labels.known:
            raise RefusedError({"no_shared_queries": len(seen)})

    def _needs_labels(self) -> bool:
        return any(m.name not in OF_HITS_ALONE for m in self.call.measures)

    def _count_or_refuse(self, code: str, column: str, units: dict[Unit, int], severe: bool) -> None:
        """Count rows by unit, or refuse them when they are of many units."""
        if severe and len(units) >= MANY:
            raise RefusedError({code: sum(units.values())})
        for unit, n in units.items():
            self.call.found.add(code, "hits", column, unit, n)

    def _refuse_strange_documents(self) -> None:
        met = {s.unit: 1 for s in self.scored if s.judged.labels and s.hits}
        docs = {doc for labels in self.labels.of.values() for doc in labels}
        if not any(docs & log.docs for log in self.logs):
            self._count_or_refuse("no_shared_documents", "doc_id", met, self._needs_labels())

    def _refuse_other_versions(self) -> None:
        other: Counter[Unit] = Counter()
        fits = 0
        for s in self.scored:
            for hit in s.hits:
                if label := s.judged.labels.get(hit.doc):
                    same = hit.version is None or label.version is None or hit.version == label.version
                    fits += same
                    other[s.unit] += not same
        units = {unit: n for unit, n in other.items() if n}
        self._count_or_refuse("version_mismatch", "doc_version", units, self._needs_labels() and not fits)

    def _refuse_strange_chunks(self) -> None:
        if "chunk_id" not in self.call.used:
            return
        strange: dict[Unit, int] = {}
        for run in self.runs:
            units = [s for s in self.scored if s.unit[0] == run and s.gold_chunks]
            seen = {key for log in self.logs for key in log.seen_chunks}
            every = (p for passages in self.evidence.passages.values() for p in passages)
            gold = {(p.doc, p.chunk) for p in every if p.chunk is not None}
            if not any((run, *chunk) in seen or self.chunks.knows(run, *chunk) for chunk in gold):
                strange |= {s.unit: 1 for s in units if s.hits}
        self._count_or_refuse("no_shared_chunks", "chunk_id", strange, self.call.uses("chunk_"))

    def _refuse_strange_requests(self) -> None:
        """Requests that have no hit though the log has hits: they name units in another way."""
        outside = self.hits.keys() - self.units
        if not self.requests.given or not outside or any(s.hits for s in self.scored):
            return
        if len(self.requests.listed) >= MANY:
            raise RefusedError({"no_shared_requests": len(self.requests.listed)})
        for key in self.requests.listed:
            self.call.found.add("no_shared_requests", "requests", None, key[-1])

    def _count_logs_without_spans(self) -> None:
        passages = (p for of_query in self.evidence.passages.values() for p in of_query)
        if "chunk_start" not in self.call.used or not any(p.span for p in passages):
            return
        for rows in self.call.case.logs.values():
            if "chunk_start" in rows.columns and not any(row["chunk_start"] is not None for row in rows.dicts()):
                self.call.found.add("no_spans", "hits", "chunk_start", None, len(rows.rows))

    def _rows(self) -> dict[str, tuple[int, int, int, int, int]]:
        """The account of rows, one line per table that is given."""
        outside = sum(len(ranked) for unit, ranked in self.hits.items() if unit not in self.units)
        read, twice, bad = (
            sum(getattr(log, f"n_{what}") for log in self.logs) for what in ("read", "duplicates", "rejected")
        )
        asked = {unit[-1] for unit in self.units}
        stray = sum(len(rows) for query, rows in self.evidence.passages.items() if query not in asked)
        lines = {
            "hits": (read, read - twice - bad - outside, twice, bad, outside),
            "qrels": self.labels.account(self.labels.n_outside(asked)),
            "evidence": self.evidence.account(stray),
            "queries": self.listed.account(),
            "requests": self.requests.account(),
            "documents": self.documents.account(),
            "chunks": self.chunks.account(),
        }
        return {t: lines[t] for t in TABLES if t == "hits" or getattr(self.call.case, t) is not None}


def _covers(name: str) -> bool:
    return name in ("evidence_coverage", "evidence_recall", "evidence_hit", "evidence_all")


def _refuse_bad_rows(call: Call) -> None:
    """Stop at bad rows where the call says so. Shared ranks are looked for when rows are good one by one."""
    broken = {code: n for code, n in call.found.rows().items() if code not in NO_FAULT}
    if broken and call.options.get("on_bad_rows", "error") == "error":
        raise RefusedError({code: n for code, n in broken.items() if code != "rank_conflict"} or broken)


def _refuse_collapsed_ids(call: Call) -> None:
    """Refuse ids of one column of one table that NFC makes one."""
    tables = [*call.case.logs.values(), *(getattr(call.case, t) for t in TABLES[1:])]
    total = 0
    for table in tables if call.normal else ():
        for column in ID_COLUMNS if table else ():
            ids = {row[column] for row in table.dicts() if isinstance(row.get(column), str)}
            times = Counter(call.nfc(i) for i in ids)
            total += sum(n for n in times.values() if n > 1)
    if total:
        raise RefusedError({"ids_collapse": total})


def _refuse_missing_columns(call: Call) -> None:
    """Refuse hits that lack a column that is used; nothing is found then, and the message names the column."""
    if call.case.requests is not None and call.given("requests", "request_id") != call.by_request:
        raise RefusedError({})
    needed: set[str] = {"doc_id"} | (call.used & {"n_tokens", "in_context"})
    if call.uses("chunk_") and not call.given("evidence", "chunk_id"):
        raise RefusedError({})
    if call.uses("chunk_") or (call.uses("evidence_") and not call.by_spans):
        needed.add("chunk_id")
    if call.uses("evidence_") and call.by_spans:
        needed |= {"chunk_start", "chunk_end"}
    _require(call, needed)


def _require(call: Call, columns: set[str]) -> None:
    if any(not call.given("hits", column) and column not in call.supplied for column in columns):
        raise RefusedError({})
