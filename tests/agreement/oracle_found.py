"""What the oracle says of a call, and how it counts on the way there."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from docrecall import reference
from tests.agreement.case import Case, Rows

Unit = tuple[Any, ...]  # run, [request], query
ID_COLUMNS = ("query_id", "request_id", "doc_id", "chunk_id", "evidence_id", "alias_of")
OF_HITS_ALONE = {"distinct_docs", "repeat_share", "top_doc_share", "context_chunks", "context_tokens"}
NO_FAULT = {  # noticed in tables, and no fault
    *("duplicate_hits", "duplicate_labels", "tied_scores", "label_conflict"),
    *("gold_not_in_index", "evidence_without_label"),
}


@dataclass(frozen=True)
class Answer:
    """Results of a call. findings: code -> rows and units (or queries), for the codes that are counted here."""

    per_query: list[tuple[Any, ...]]
    accounting: list[tuple[Any, ...]]
    summary: list[tuple[Any, ...]]
    matches: list[tuple[Any, ...]]
    decisions: list[tuple[Any, ...]]
    rows: dict[str, tuple[int, int, int, int, int]]
    findings: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Refusal:
    """The call raises a DataError; code -> number of rows in its findings. A missing column has no findings."""

    codes: dict[str, int]


class RefusedError(Exception):
    """Ends the work on a call that raises a DataError."""

    def __init__(self, codes: dict[str, int]) -> None:
        super().__init__(str(codes))
        self.refusal = Refusal(codes)


class Found:
    """Counts rows, and the units or queries they touch, by code, table and column."""

    def __init__(self) -> None:
        self._rows: Counter[tuple[str, str, str | None]] = Counter()
        self._units: defaultdict[tuple[str, str, str | None], set[Any]] = defaultdict(set)

    def add(self, code: str, table: str, column: str | None, unit: Any, rows: int = 1) -> None:
        """Count rows that touch one unit; None touches none."""
        self._rows[code, table, column] += rows
        if rows and unit is not None:
            self._units[code, table, column].add(unit)

    def rows(self) -> dict[str, int]:
        """Code -> rows."""
        return {code: n for code, (n, _) in self.counts().items()}

    def counts(self) -> dict[str, tuple[int, int]]:
        """Code -> rows and units, each column of each table by itself."""
        total: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for key, n in self._rows.items():
            if n:
                before = total[key[0]]
                total[key[0]] = before[0] + n, before[1] + len(self._units[key])
        return dict(total)


class Measure:
    """A measure taken apart: `name(param=value)@cut`."""

    def __init__(self, text: str) -> None:
        self.text = text
        head, self.cut = text.split("@")
        self.name, _, params = head.rstrip(")").partition("(")
        self.params = {k: float(v) if k == "coverage" else int(v) for k, v in _pairs(params)}

    def take(self, hits: Sequence[reference.Hit]) -> reference.Cut:
        """The cut of the hits of one unit."""
        if self.cut == "all":
            return reference.cut_all(hits)
        if self.cut == "context":
            return reference.cut_context(hits)
        if self.cut.endswith("docs"):
            return reference.cut_docs(hits, int(self.cut.removesuffix("docs")))
        if self.cut.endswith("tokens"):
            return reference.cut_tokens(hits, int(self.cut.removesuffix("tokens")))
        return reference.cut_chunks(hits, int(self.cut))


def _pairs(params: str) -> list[list[str]]:
    return [pair.split("=") for pair in params.split(",") if pair]


class Call:
    """A case, what it uses, and what was found so far."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.options = case.options
        self.found = Found()
        self.measures = [Measure(text) for text in case.measures]
        self.least: int = case.options.get("min_relevance", 1)
        self.normal = case.options.get("normalize_ids") == "NFC"
        self.match_versions = case.options.get("versions", "match") == "match"

    def uses(self, *starts: str) -> bool:
        """Whether a measure's name starts so."""
        return any(m.name.startswith(starts) for m in self.measures)

    def given(self, table: str, column: str) -> bool:
        """Whether a table is there and has the column; of hits the first log speaks for all."""
        rows = next(iter(self.case.logs.values())) if table == "hits" else getattr(self.case, table)
        return rows is not None and column in rows.columns

    @cached_property
    def used(self) -> set[str]:
        """The columns of hits, beyond ids and rank or score, that this call reads."""
        used = set()
        if self.uses("context_tokens") or any(m.cut.endswith("tokens") for m in self.measures):
            used.add("n_tokens")
        if any(m.cut == "context" for m in self.measures):
            used.add("in_context")
        if self.uses("evidence_") and self.by_spans:
            used |= {"chunk_start", "chunk_end"}
        if self.uses("chunk_") or (self.uses("evidence_") and self.given("evidence", "chunk_id")):
            used.add("chunk_id")
        if self.match_versions and (self.given("qrels", "doc_version") or self.given("evidence", "doc_version")):
            used.add("doc_version")
        return used

    @property
    def by_spans(self) -> bool:
        """Whether evidence has spans; else its passages are whole chunks."""
        return self.given("evidence", "start") or self.given("evidence", "end")

    @cached_property
    def supplied(self) -> set[str]:
        """The columns that `chunks` lends to hits: used, not logged, and there."""
        if not self.given("hits", "chunk_id"):
            return set()
        wanted = (self.used | {"doc_id"}) - {"in_context", "chunk_id"}
        return {c for c in wanted if not self.given("hits", c) and self.given("chunks", c)}

    @cached_property
    def by_request(self) -> bool:
        """Whether requests are the units."""
        return self.given("hits", "request_id")

    def nfc(self, value: Any) -> Any:
        """The id as it is compared."""
        return unicodedata.normalize("NFC", value) if self.normal and isinstance(value, str) else value

    def read(self, table: Rows | None) -> list[dict[str, Any]]:
        """The rows of a table with ids as they are compared; labels without versions that are to be ignored."""
        rows = table.dicts() if table else []
        if not self.match_versions and table in (self.case.qrels, self.case.evidence):
            rows = [{c: v for c, v in row.items() if c != "doc_version"} for row in rows]
        return [{c: self.nfc(v) if c in ID_COLUMNS else v for c, v in row.items()} for row in rows]


class Checked:
    """What became of the rows of one table that is held whole."""

    def __init__(self, name: str, call: Call, table: Rows | None) -> None:
        self.name, self.call = name, call
        self.raw = call.read(table)
        self.n_read = len(self.raw)
        self.n_duplicates = self.n_rejected = 0
        self.rejected: set[Any] = set()  # queries of bad rows

    def reject(self, code: str, column: str | None, query: Any = None) -> None:
        """Set one row aside."""
        self.n_rejected += 1
        self.call.found.add(code, self.name, column, query)
        if query is not None:
            self.rejected.add(query)

    def touched(self, row: dict[str, Any]) -> Any:
        """What a bad row touches: its query; None where it does not say."""
        return row.get("query_id")

    def part(self, good: Callable[[dict[str, Any]], tuple[str, str | None] | None]) -> list[dict[str, Any]]:
        """The rows that break no rule; `good` names the first rule that a row breaks, and its column."""
        kept = []
        for row in self.raw:
            fault = good(row)
            if fault is None:
                kept.append(row)
            else:
                self.reject(*fault, self.touched(row))
        return kept

    def account(self, outside: int = 0) -> tuple[int, int, int, int, int]:
        """read, used, duplicate, rejected, outside."""
        used = self.n_read - self.n_duplicates - self.n_rejected - outside
        return self.n_read, used, self.n_duplicates, self.n_rejected, outside


def first_null(row: dict[str, Any], columns: Sequence[str]) -> tuple[str, str] | None:
    """The rule of ids: the first of some columns that is there and null."""
    return next((("null_id", c) for c in columns if c in row and row[c] is None), None)
