"""The tables that are held whole, but for requests and chunks: documents, evidence, qrels, queries."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

from docrecall import reference
from tests.agreement.oracle_found import Call, Checked, RefusedError, first_null


class Documents(Checked):
    """The index: which document an id means, and which versions are served."""

    def __init__(self, call: Call) -> None:
        super().__init__("documents", call, call.case.documents)
        self.given = call.case.documents is not None
        self._stale = call.match_versions and call.given("documents", "doc_version")
        self._times = Counter((row["doc_id"], row.get("doc_version")) for row in self.raw)
        self._targets: defaultdict[Any, set[Any]] = defaultdict(set)
        for row in self.raw:
            if row.get("alias_of") is not None:
                self._targets[row["doc_id"]].add(row["alias_of"])
        good = self.part(self._fault)
        self._alias = {row["doc_id"]: row["alias_of"] for row in good if row.get("alias_of") is not None}
        aliases = (row["doc_id"] for row in good if row.get("alias_of") is not None)
        endless = {doc for doc in aliases if self._ends(doc) is None}
        if endless:
            raise RefusedError({"alias_cycle": len(endless)})
        self.index: defaultdict[Any, set[str | None]] = defaultdict(set)
        own = {row["doc_id"] for row in good}
        for row in good:
            doc, version = self.canonical(row["doc_id"]), row.get("doc_version")
            if version is not None or row["doc_id"] not in self._alias or doc not in own:
                self.index[doc].add(version)

    def _fault(self, row: dict[str, Any]) -> tuple[str, str | None] | None:
        if fault := first_null(row, ("doc_id",)):
            return fault
        if self._times[row["doc_id"], row.get("doc_version")] > 1:
            return "document_repeated", "doc_id"
        return ("alias_conflict", "alias_of") if len(self._targets[row["doc_id"]]) > 1 else None

    def _ends(self, doc: Any) -> Any:
        """The end of a chain of aliases, or None where there is none."""
        seen = set()
        while doc in self._alias:
            if doc in seen:
                return None
            seen.add(doc)
            doc = self._alias[doc]
        return doc

    def canonical(self, doc: Any) -> Any:
        """The document that an id means."""
        return self._ends(doc) if doc in self._alias else doc

    def stale(self, doc: Any, version: str | None) -> bool:
        """Whether the index has the document and serves other versions alone."""
        if not self._stale or version is None or doc not in self.index:
            return False
        return None not in self.index[doc] and version not in self.index[doc]


class Evidence(Checked):
    """Passages by query."""

    def __init__(self, call: Call, documents: Documents) -> None:
        super().__init__("evidence", call, call.case.evidence)
        self.passages: defaultdict[Any, list[reference.Passage]] = defaultdict(list)
        self.versions: defaultdict[tuple[Any, Any], set[str | None]] = defaultdict(set)
        for row in self.part(self._fault):
            doc, query, version = documents.canonical(row["doc_id"]), row["query_id"], row.get("doc_version")
            passage = reference.Passage(
                evidence_id=row["evidence_id"],
                doc=doc,
                span=None if row.get("start") is None else (row["start"], row["end"]),
                chunk=row.get("chunk_id"),
                version=version,
                stale=documents.stale(doc, version),
            )
            if passage in self.passages[query]:
                self.n_duplicates += 1
                call.found.add("duplicate_labels", "evidence", None, query)
            else:
                self.passages[query].append(passage)
                self.versions[query, doc].add(version)

    @staticmethod
    def _fault(row: dict[str, Any]) -> tuple[str, str | None] | None:
        if fault := first_null(row, ("query_id", "evidence_id", "doc_id")):
            return fault
        start, end = row.get("start"), row.get("end")
        if (start is None) != (end is None):
            return "span_half", "start" if start is None else "end"
        if start is None or end is None:
            return ("evidence_empty", None) if row.get("chunk_id") is None else None
        if start < 0:
            return "span_negative", "start"
        return ("span_order", "end") if end <= start else None


class Labels(Checked):
    """Labels by query, of qrels and, for queries that qrels do not name, of evidence."""

    def __init__(self, call: Call, documents: Documents, evidence: Evidence) -> None:
        super().__init__("qrels", call, call.case.qrels)
        self.documents, self.evidence = documents, evidence
        self.of: defaultdict[Any, dict[Any, reference.Label]] = defaultdict(dict)
        named = {row["query_id"] for row in self.raw}
        self._merge(self._kept())
        for (query, doc), versions in evidence.versions.items():
            if query not in named:
                self.of[query][doc] = self._label(doc, 1, next(iter(versions)) if len(versions) == 1 else None)
            elif query in self.of and doc not in self.of[query]:
                call.found.add("evidence_without_label", "evidence", "doc_id", query)
        self._count_gold_outside_index()

    def _kept(self) -> list[tuple[Any, Any, int, str | None]]:
        """The good labels as given, each once."""
        good = [
            (row["query_id"], row["doc_id"], row.get("relevance", 1), row.get("doc_version"))
            for row in self.part(self._fault)
        ]
        kept = list(dict.fromkeys(good))
        self.n_duplicates = len(good) - len(kept)
        for label, times in Counter(good).items():
            self.call.found.add("duplicate_labels", "qrels", None, label[0], times - 1)
        by_pair = defaultdict(list)
        for label in kept:
            by_pair[label[:2]].append(label)
        whole = []
        for (query, _), labels in by_pair.items():
            code = "label_two_grades" if len({label[2] for label in labels}) > 1 else "label_two_versions"
            if len(labels) == 1:
                whole += labels
                continue
            for _ in labels:
                self.reject(code, "relevance" if code == "label_two_grades" else "doc_version", query)
        return whole

    @staticmethod
    def _fault(row: dict[str, Any]) -> tuple[str, str | None] | None:
        if fault := first_null(row, ("query_id", "doc_id")):
            return fault
        return ("relevance_null", "relevance") if row.get("relevance", 1) is None else None

    def _merge(self, kept: list[tuple[Any, Any, int, str | None]]) -> None:
        """Bring together what meets through an alias: the highest grade, and its version if that is known."""
        meeting = defaultdict(list)
        for query, doc, grade, version in kept:
            meeting[query, self.documents.canonical(doc)].append((grade, version))
        for (query, doc), labels in meeting.items():
            self.n_duplicates += len(labels) - 1
            best = max(grade for grade, _ in labels)
            versions = [version for grade, version in labels if grade == best]
            known = [version for version in versions if version is not None]
            version = min(known) if len(known) == len(versions) else None
            self.of[query][doc] = self._label(doc, best, version)

    def _label(self, doc: Any, grade: int, version: str | None) -> reference.Label:
        stale = grade >= self.call.least and self.documents.stale(doc, version)
        return reference.Label(grade, version if self.call.match_versions else None, stale)

    def _count_gold_outside_index(self) -> None:
        for query, labels in self.of.items() if self.documents.given else ():
            for doc, label in labels.items():
                if label.grade >= self.call.least and doc not in self.documents.index:
                    self.call.found.add("gold_not_in_index", "qrels", "doc_id", query)

    @property
    def known(self) -> set[Any]:
        """Queries that a good or bad row of qrels or evidence speaks of."""
        return set(self.of) | self.rejected | self.evidence.rejected

    def judged(self, query: Any) -> reference.Judged:
        """Everything that is known of one query."""
        passages = self.evidence.passages.get(query, [])
        if not self.call.match_versions:
            passages = [reference.Passage(p.evidence_id, p.doc, p.span, p.chunk) for p in passages]
        return reference.Judged(self.of.get(query, {}), passages, self.call.least)

    def stale(self, query: Any) -> bool:
        """Whether a relevant label is stale, or an evidence id in all its rows."""
        by_id = defaultdict(list)
        for passage in self.evidence.passages.get(query, []):
            by_id[passage.evidence_id].append(passage.stale)
        return any(label.stale for label in self.of.get(query, {}).values()) or any(map(all, by_id.values()))

    def n_outside(self, asked: set[Any]) -> int:
        """Labels of qrels that no unit asks for."""
        named = {row["query_id"] for row in self.raw}
        return sum(len(labels) for query, labels in self.of.items() if query in named and query not in asked)


class Listed(Checked):
    """The queries table: status and weight by query."""

    def __init__(self, call: Call, labels: Labels) -> None:
        super().__init__("queries", call, call.case.queries)
        self.given = call.case.queries is not None
        self.weighted = call.given("queries", "weight")
        self._times = Counter(row["query_id"] for row in self.raw)
        good = self.part(self._fault)
        self.status = {row["query_id"]: row.get("label_status") for row in good}
        self._weight = {row["query_id"]: row.get("weight") for row in good}
        for query, said in self.status.items():
            if _contradicted(said, labels.of.get(query)):
                call.found.add("label_conflict", "queries", "label_status", query)

    def _fault(self, row: dict[str, Any]) -> tuple[str, str | None] | None:
        if fault := first_null(row, ("query_id",)):
            return fault
        if self._times[row["query_id"]] > 1:
            return "query_repeated", "query_id"
        if row.get("label_status") not in (None, "answerable", "unanswerable", "unlabelled"):
            return "status_unknown", "label_status"
        weight = row.get("weight")
        return ("weight_invalid", "weight") if weight is not None and not 0 <= weight < math.inf else None

    @property
    def asked(self) -> set[Any]:
        """The queries that are listed, well or badly."""
        return set(self.status) | self.rejected

    def weight(self, query: Any) -> float:
        """The weight of a query; 1 where none is said."""
        weight = self._weight.get(query)
        return 1.0 if weight is None else float(weight)


def _contradicted(said: str | None, labels: dict[Any, reference.Label] | None) -> bool:
    match said:
        case "answerable":
            return not labels
        case "unlabelled":
            return bool(labels)
        case "unanswerable":
            return bool(labels) and max(label.grade for label in labels.values()) >= 1
    return False
