"""The tables of a log: chunks, hits, requests."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

from docrecall import reference
from tests.agreement.case import Rows
from tests.agreement.oracle_found import Call, Checked, Unit, first_null
from tests.agreement.oracle_labels import Documents

KNOWN_HITS = (
    *("query_id", "rank", "doc_id", "run_id", "request_id", "chunk_id", "doc_version"),
    *("chunk_start", "chunk_end", "n_tokens", "in_context", "score"),
)
NOT_SUPPLIED: dict[str, Any] = {}


def chunk_fault(row: dict[str, Any], used: set[str]) -> tuple[str, str | None] | None:
    """What is wrong with the tokens or the span of a chunk, where they are used."""
    if "n_tokens" in used and (row["n_tokens"] is None or row["n_tokens"] < 0):
        return "tokens_null" if row["n_tokens"] is None else "tokens_negative", "n_tokens"
    start, end = row.get("chunk_start"), row.get("chunk_end")
    if "chunk_start" not in used or (start is None and end is None):
        return None
    if start is None or end is None:
        return "span_half", "chunk_start" if start is None else "chunk_end"
    if start < 0:
        return "span_negative", "chunk_start"
    return ("span_order", "chunk_end") if end < start else None


class Chunks(Checked):
    """What is known of chunks: by run where the table has runs, and by document where hits name theirs."""

    def __init__(self, call: Call, documents: Documents) -> None:
        super().__init__("chunks", call, call.case.chunks)
        self._has_run = call.given("chunks", "run_id")
        self._by_doc = call.given("hits", "doc_id")
        for row in self.raw:
            row["doc_id"] = documents.canonical(row["doc_id"])
        keys = Counter(self._key(row.get("run_id"), row["doc_id"], row["chunk_id"]) for row in self.raw)
        self._twice = {key for key, n in keys.items() if n > 1}
        good = self.part(self._fault)
        # A run that stops at bad chunks does not tell their hits as unknown besides.
        stops = call.options.get("on_bad_rows", "error") == "error"
        found = self.raw if stops else good
        self._rows = {self._key(row.get("run_id"), row["doc_id"], row["chunk_id"]): row for row in found}
        self._known = {(row.get("run_id"), row["doc_id"], row["chunk_id"]) for row in good}

    def _key(self, run: Any, doc: Any, chunk: Any) -> tuple[Any, ...]:
        return (run if self._has_run else None, doc if self._by_doc else None, chunk)

    def _fault(self, row: dict[str, Any]) -> tuple[str, str | None] | None:
        if fault := first_null(row, ("chunk_id", "doc_id", "run_id")):
            return fault
        key = self._key(row.get("run_id"), row["doc_id"], row["chunk_id"])
        return ("chunk_repeated", "chunk_id") if key in self._twice else chunk_fault(row, self.call.supplied)

    def find(self, run: Any, doc: Any, chunk: Any) -> dict[str, Any] | None:
        """The row of a chunk, or None."""
        return self._rows.get(self._key(run, doc, chunk))

    def knows(self, run: str, doc: Any, chunk: Any) -> bool:
        """Whether a run's chunks hold this one."""
        return (run if self._has_run else None, doc, chunk) in self._known


class Requests(Checked):
    """The requests table: what was asked, and whether it was answered."""

    def __init__(self, call: Call) -> None:
        super().__init__("requests", call, call.case.requests)
        self.given = call.case.requests is not None
        self.has_run = call.given("requests", "run_id")
        self._columns = [c for c in ("run_id", "request_id", "query_id") if call.given("requests", c)]
        self._times = Counter(self._key(row) for row in self.raw)
        self._good = {self._key(row): row for row in self.part(self._fault)}
        self.repeated = {key for key, n in self._times.items() if n > 1 and None not in key}

    def _key(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[c] for c in self._columns)

    def _fault(self, row: dict[str, Any]) -> tuple[str, str | None] | None:
        if fault := first_null(row, self._columns):
            return fault
        return ("request_repeated", self._columns[-1]) if self._times[self._key(row)] > 1 else None

    def touched(self, row: dict[str, Any]) -> Any:
        """What a bad row touches: one request, and not its query."""
        return None if row["query_id"] is None else self._key(row)

    def runs(self) -> set[str]:
        """The runs that are named, by rows with a full key."""
        return {key[0] for key in self.listed} if self.has_run else set()

    @property
    def listed(self) -> set[tuple[Any, ...]]:
        """The keys that are listed, those that stand twice too."""
        return {*self._good, *self.repeated}

    def units(self, runs: set[str]) -> set[Unit]:
        """The units that are listed."""
        return self.listed if self.has_run else {(run, *key) for run in runs for key in self.listed}

    def is_rejected(self, unit: Unit) -> bool:
        """Whether the unit is listed twice."""
        return (unit if self.has_run else unit[1:]) in self.repeated

    def answered(self, unit: Unit) -> bool | None:
        """What the table says of a unit: answered, else retrieved; None where it says nothing."""
        row = self._good.get(unit if self.has_run else unit[1:], {})
        answered = row.get("answered")
        return row.get("retrieved") if answered is None else answered


class Log:
    """The hits of one log after their contract: ranked hits by unit, and what was set aside."""

    def __init__(self, name: str | None, table: Rows, call: Call, documents: Documents, chunks: Chunks) -> None:
        self.call, self.documents, self.chunks = call, documents, chunks
        self.order = call.options.get("order", "rank")
        self.base = call.options.get("rank_base", 1)
        self.name = name or "run"
        self.has_run = "run_id" in table.columns
        self.columns = table.columns
        self.docs: set[Any] = set()
        self.seen_chunks: set[tuple[Any, Any, Any]] = set()  # run, document, chunk of any row
        self.queries: set[Any] = set()  # of any row
        self.named_runs = {self.name} if name is not None or not self.has_run else set()
        self.touched: set[Unit] = set()
        self.touched_in_part: set[Unit] = set()  # None stands for any
        self.n_read = len(table.rows)
        self.n_rejected = self.n_duplicates = 0
        good: list[tuple[Unit, dict[str, Any], dict[str, Any]]] = []
        for cells in call.read(table):
            row = {c: v for c, v in cells.items() if c in KNOWN_HITS}
            if "doc_id" in row:
                row["doc_id"] = documents.canonical(row["doc_id"])
            unit = self._unit(row)
            full, fault = self._full(unit, row)
            self._note(unit, full)
            if fault is None:
                good.append((unit, row, full))
            else:
                self._reject(*fault, unit)
        self.units = self._collapse(good)

    def _unit(self, row: dict[str, Any]) -> Unit:
        run = row["run_id"] if self.has_run else self.name
        return (run, row["request_id"], row["query_id"]) if self.call.by_request else (run, row["query_id"])

    def _full(self, unit: Unit, row: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, str | None] | None]:
        """The row with what `chunks` lends it, and the first rule that it breaks."""
        supplied = self.call.supplied
        found = self.chunks.find(unit[0], row.get("doc_id"), row.get("chunk_id")) if supplied else NOT_SUPPLIED
        full = row | {c: found[c] if found is not None else None for c in supplied}
        ids = ["run_id", "request_id", "query_id", *(["doc_id"] if "doc_id" in row else [])]
        fault = first_null(row, [*ids, *(["chunk_id"] if supplied else [])])
        if fault is None and found is None:
            fault = "chunk_unknown", "chunk_id"
        return full, fault or self._place_fault(row) or self._used_fault(full)

    def _place_fault(self, row: dict[str, Any]) -> tuple[str, str | None] | None:
        if self.order != "rank":
            score = row["score"]
            code = "score_null" if score is None else "score_nan" if math.isnan(score) else None
            return (code, "score") if code else None
        rank, code = row["rank"], None
        if rank is None:
            code = "rank_null"
        elif isinstance(rank, float) and (not math.isfinite(rank) or rank != int(rank)):
            code = "rank_fraction"
        elif rank >= 2**53:
            code = "rank_too_large"
        elif rank == 0 and self.base == 1:
            code = "rank_zero"
        elif rank < self.base:
            code = "rank_below_first"
        return (code, "rank") if code else None

    def _used_fault(self, full: dict[str, Any]) -> tuple[str, str | None] | None:
        """The rules of columns that a measure uses and that the table of chunks, which is checked too, did not lend."""
        used = self.call.used - self.call.supplied
        if fault := chunk_fault(full, used):
            return fault
        return ("context_null", "in_context") if "in_context" in used and full["in_context"] is None else None

    def _note(self, unit: Unit, full: dict[str, Any]) -> None:
        """Note what any row shows, good or bad."""
        if unit[-1] is not None:
            self.queries.add(unit[-1])
        if full["doc_id"] is not None:
            self.docs.add(full["doc_id"])
            self.seen_chunks.add((unit[0], full["doc_id"], full.get("chunk_id")))

    def _reject(self, code: str, column: str | None, unit: Unit) -> None:
        self.n_rejected += 1
        self.call.found.add(code, "hits", column, None if unit[-1] is None else unit)
        if unit[-1] is not None:
            (self.touched_in_part if None in unit else self.touched).add(unit)

    def _collapse(self, good: list[tuple[Unit, dict[str, Any], dict[str, Any]]]) -> dict[Unit, list[reference.Hit]]:
        by_unit: defaultdict[Unit, dict[tuple[Any, ...], dict[str, Any]]] = defaultdict(dict)
        for unit, row, full in good:
            # repr tells NaN from numbers and NaN is NaN; adding 0.0 gives zero one sign.
            content = tuple(repr(v + 0.0) if isinstance(v, float) else v for v in row.values())
            if content in by_unit[unit]:
                self.n_duplicates += 1
                self.call.found.add("duplicate_hits", "hits", None, unit)
            else:
                by_unit[unit][content] = full
        units: dict[Unit, list[reference.Hit]] = {}
        for unit, rows in by_unit.items():
            kept = list(rows.values())
            if self.order == "rank":
                times = Counter(row["rank"] for row in kept)
                for row in kept:
                    if times[row["rank"]] > 1:
                        self._reject("rank_conflict", "rank", unit)
                kept = [row for row in kept if times[row["rank"]] == 1]
            if kept:
                units[unit] = self._ranked(unit, kept)
        return units

    def _ranked(self, unit: Unit, rows: list[dict[str, Any]]) -> list[reference.Hit]:
        if self.order == "rank":
            logged = [self._hit(row, int(row["rank"]) + 1 - self.base) for row in rows]
            recount = self.call.options.get("ranks") == "recount"
            return reference.recount(logged) if recount else sorted(logged, key=lambda hit: hit.rank)
        single = self.order == "trec_eval"
        times = Counter(reference._single(row["score"]) if single else float(row["score"]) for row in rows)
        self.call.found.add("tied_scores", "hits", "score", unit, sum(n for n in times.values() if n > 1))
        # Ties that score, document and chunk leave are parted by the columns that the call reads, null first. Both
        # orders are stable; the reverse of trec_eval's keeps the order of equals too.
        hits = sorted(((row["score"], self._hit(row, 0)) for row in rows), key=lambda pair: self._tie(pair[1]))
        if single:
            return reference.order_as_trec_eval(hits)
        return reference.order_by_score((float(score), hit) for score, hit in hits)

    def _hit(self, row: dict[str, Any], rank: int) -> reference.Hit:
        def used(column: str) -> Any:
            return row.get(column) if column in self.call.used else None

        start, end = used("chunk_start"), used("chunk_end")
        return reference.Hit(
            rank=rank,
            doc=row["doc_id"],
            chunk=row.get("chunk_id"),
            version=used("doc_version"),
            span=None if start is None else (start, end),
            tokens=used("n_tokens"),
            in_context=row.get("in_context"),
        )

    @staticmethod
    def _tie(hit: reference.Hit) -> tuple[Any, ...]:
        start, end = hit.span or (None, None)
        cells = (hit.chunk, hit.version, start, end, hit.tokens, hit.in_context)
        return tuple((cell is not None, cell) if cell is not None else (False, 0) for cell in cells)

    def answered(self, unit: Unit) -> bool:
        """What hits alone say of a unit: whether any is there, in the context where that is logged."""
        hits = self.units.get(unit, [])
        return any(hit.in_context for hit in hits) if "in_context" in self.columns else bool(hits)
