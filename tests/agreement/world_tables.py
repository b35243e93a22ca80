"""Generated tables beside the hits: labels, evidence, queries, requests, documents, chunks."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import polars as pl

from tests.agreement.case import Rows
from tests.agreement.world import World

WEIGHTS = [None, 1.0, 1.0, 0.0, 0.1, 0.5, 3.0, 7.25, 1e-3, 1 / 3]


def _with_faults(w: World, rows: list[dict[str, Any]], share: float, faults: list[dict[str, Any]]) -> None:
    """Add copies of rows with a cell that spoils them, or sets them against their neighbour."""
    if not w.bad:
        return
    rows += [row | w.r.choice(faults) for row in rows if w.r.random() < share]


def qrels(w: World) -> Rows:
    """Labels of most queries."""
    r = w.r
    columns: dict[str, Any] = {"query_id": w.queries.type_of(r), "doc_id": w.docs.type_of(r)}
    grades = r.choice([[1], [0, 1], [1, 2, 3], [-2, -1, 0, 1, 1, 2, 3, 4], [0, 1, 2**40, 2**62, 10**6 + 1]])
    if r.random() < 0.8:
        columns["relevance"] = r.choice([pl.Int64, pl.Int64, pl.Int128] + [pl.Int8] * (max(grades) < 100))
    if "doc_version" in w.label_columns:
        columns["doc_version"] = pl.String
    rows = []
    unlabelled = r.choice([0, 0.1, 0.4])
    for query, docs in w.gold.items():
        if r.random() < unlabelled:
            continue
        for doc in docs:
            row = {"query_id": query, "doc_id": doc, "relevance": r.choice(grades), "doc_version": w.version(doc, True)}
            rows.append(row)
            if r.random() < 0.05:
                rows.append(row)
    faults = [{"relevance": None}, {"doc_id": None}, {"query_id": None}, {"relevance": 5}, {"doc_version": "v3"}]
    _with_faults(w, rows, 0.03, faults)
    if r.random() < 0.5:
        r.shuffle(rows)
    return w.rows(columns, rows)


def evidence(w: World) -> Rows:
    """Passages of some queries: spans, gold chunks or both, some of them alternatives."""
    r = w.r
    id_type = pl.Int64 if isinstance(w.evidence_ids[0], int) else pl.String
    columns: dict[str, Any] = {
        "query_id": w.queries.type_of(r),
        "evidence_id": id_type,
        "doc_id": w.docs.type_of(r),
    }
    types = {"start": pl.Int64, "end": r.choice([pl.Int64, pl.Int32]), "chunk_id": w.chunk_type}
    columns |= {c: t for c, t in {**types, "doc_version": pl.String}.items() if c in w.evidence_columns}
    rows = []
    missing = r.choice([0, 0.2, 0.5])
    for query, docs in w.gold.items():
        if r.random() < missing:
            continue
        for evidence_id in w.evidence_ids[: r.randint(1, 3)]:
            for _ in range(r.choice([1, 1, 2, 3])):
                doc = r.choice(docs) if r.random() < 0.8 else r.choice(w.docs.pool)
                row = {"query_id": query, "evidence_id": evidence_id, **_passage(w, doc)}
                rows.append(row)
                if r.random() < 0.05:
                    rows.append(row)
    faults: list[dict[str, Any]] = [{"query_id": None}, {"evidence_id": None}, {"doc_id": None}]
    faults += [{"start": None, "end": 7}, {"start": 3, "end": None}, {"start": -1, "end": 7}, {"start": 7, "end": 7}]
    faults += [{"start": 9, "end": 4}, {"start": None, "end": None, "chunk_id": None}]
    _with_faults(w, rows, 0.04, faults)
    r.shuffle(rows)
    return w.rows(columns, rows)


def _passage(w: World, doc: Any) -> dict[str, Any]:
    """A place in a document: where a chunk stands, across a seam, or anywhere."""
    r = w.r
    chunks = w.texts[r.choice(list(w.texts))][doc]
    chunk = r.choice(chunks)
    start = r.choice([chunk.chunk_start or 0, r.randint(0, 39), max((chunk.chunk_end or 1) - 2, 0)])
    end = r.choice([chunk.chunk_end or 40, start + r.randint(1, 12), start + 5, chunks[-1].chunk_end or 40])
    row = {"doc_id": doc, "start": start, "end": max(end, start + 1), "doc_version": w.version(doc, True)}
    row["chunk_id"] = w.docs.pool.index(doc) + 900 if w.strange_chunks else chunk.chunk_id
    if w.strange_chunks and w.chunk_type == pl.String:
        row["chunk_id"] = f"x{row['chunk_id']}"
    if {"start", "chunk_id"} <= w.evidence_columns:
        row |= r.choice([{}, {"chunk_id": None}, {"chunk_id": None}, {"start": None, "end": None}])
    return row


def queries(w: World) -> Rows:
    """Most queries, with status and weight."""
    r = w.r
    columns: dict[str, Any] = {"query_id": w.queries.type_of(r)}
    if r.random() < 0.7:
        columns["label_status"] = pl.String
    if r.random() < 0.4:
        columns["weight"] = pl.Float64
    stated = [None, None, "answerable", "unanswerable", "unlabelled"]
    rows = [
        {"query_id": query, "label_status": r.choice(stated), "weight": r.choice(WEIGHTS)}
        for query in w.queries.pool
        if r.random() < 0.85
    ]
    if w.bad and rows and r.random() < 0.5:
        row = r.choice(rows)
        spoilt = [row, row | {"label_status": "maybe"}, row | {"query_id": None}]
        rows += r.sample(spoilt, r.randint(1, 2))
        if r.random() < 0.5:
            rows[0] |= r.choice(
                [{"label_status": "maybe"}, *({"weight": x} for x in (-1.0, float("nan"), float("inf")))]
            )
    r.shuffle(rows)
    return w.rows(columns, rows)


def requests(w: World) -> Rows:
    """The units of the log, without a few, and some that have no hits."""
    r = w.r
    columns: dict[str, Any] = {"query_id": w.queries.type_of(r)}
    if (w.run_style != "none" and r.random() < 0.5) or r.random() < 0.03:
        columns["run_id"] = pl.String
    if w.requests is not None and (w.bad or r.random() < 0.98):  # to lack them is an error
        columns["request_id"] = w.requests.type_of(r)
    columns |= {c: pl.Boolean for c in ("retrieved", "answered") if r.random() < 0.6}
    pool = w.requests.pool if w.requests else [None]
    runs = [run or "run" for run in w.runs] + ["late"] * (r.random() < 0.1)
    asked = {(run or "run", request, query) for run, request, query in sorted(w.asked, key=repr) if r.random() < 0.95}
    asked |= {(r.choice(runs), r.choice(pool), q) for q in w.queries.pool if r.random() < 0.3}
    names = [c for c in ("run_id", "request_id", "query_id") if c in columns]
    by_key = {}
    for run, request, query in sorted(asked, key=repr):
        row = {"run_id": run, "request_id": request, "query_id": query}
        by_key[tuple(row[c] for c in names)] = row | {
            c: r.choice([True, False, None]) for c in ("retrieved", "answered")
        }
    rows = list(by_key.values())
    _with_faults(w, rows, 0.03, [{}, {"answered": True}, *({c: None} for c in names)])
    r.shuffle(rows)
    return w.rows(columns, rows)


def documents(w: World) -> Rows:
    """The index: most documents, in the versions it serves, and other names of them."""
    r = w.r
    columns: dict[str, Any] = {"doc_id": w.docs.type_of(r)}
    if r.random() < 0.7:
        columns["doc_version"] = pl.String
    if w.aliases:
        columns["alias_of"] = columns["doc_id"]
    if r.random() < 0.3:
        columns["title"] = pl.String
    rows = []
    for doc in w.docs.pool:
        if r.random() < 0.05:
            continue
        served = (
            [w.version(doc) if r.random() < 0.6 else r.choice(["v1", "v2"])]
            if r.random() < 0.8 or "doc_version" not in columns
            else ["v1", "v2"]
        )
        if doc in w.aliases and r.random() < 0.6:
            served = [None]
        rows += [{"doc_id": doc, "doc_version": v, "title": "t", "alias_of": w.aliases.get(doc)} for v in served]
    other_names = [{"doc_version": "v8", "alias_of": doc} for doc in w.docs.pool[:3]] if w.aliases else []
    _with_faults(w, rows, 0.08, [{"doc_id": None}, {"title": "u"}, {"doc_version": "v9"}, *other_names])
    r.shuffle(rows)
    return w.rows(columns, rows)


def chunks(w: World) -> Rows:
    """All chunks of all runs, with what they lend."""
    r = w.r
    columns: dict[str, Any] = {"chunk_id": w.chunk_type, "doc_id": w.docs.type_of(r)}
    by_run = len({id(text) for text in w.texts.values()}) > 1 or r.random() < 0.2
    if by_run:
        columns["run_id"] = pl.String
    types = {"chunk_start": pl.Int64, "chunk_end": pl.Int32, "n_tokens": pl.Int64, "doc_version": pl.String}
    columns |= {c: t for c, t in types.items() if c in w.lent or r.random() < 0.15}
    if ("chunk_start" in columns) != ("chunk_end" in columns):
        columns |= {c: types[c] for c in ("chunk_start", "chunk_end")}
    rows = []
    for run, text in w.texts.items():
        rows += [asdict(chunk) | {"run_id": run or "run"} for of_doc in text.values() for chunk in of_doc]
        if not by_run:
            break
    if w.bad:
        rows = [row for row in rows if r.random() < 0.99]
    faults: list[dict[str, Any]] = [{}, {"n_tokens": 3}, {"chunk_id": None}, {"doc_id": None}, {"run_id": None}]
    _with_faults(w, rows, 0.02, faults)
    if w.bad and rows:
        r.choice(rows).update(
            r.choice([{"n_tokens": None}, {"n_tokens": -1}, {"chunk_end": None}, {"chunk_start": -1}])
        )
    r.shuffle(rows)
    return w.rows(columns, rows)
