"""Generated logs."""

from __future__ import annotations

from typing import Any

import polars as pl

from docrecall.reference import _single as single
from tests.agreement.case import Rows
from tests.agreement.world import FEW_SCORES, SCORES, World

SIGNED = (pl.Int64, pl.Int32, pl.Int128, pl.Float64)


def logs(w: World) -> dict[str | None, Rows]:
    """One table of hits, or one per run."""
    r = w.r
    columns = _columns(w)
    knobs = {
        "gap": r.choice([0, 0, 0.2]),
        "jumps": [2, 3, 5, 2**31] if columns.get("rank") not in (pl.Int32, pl.UInt8) else [2, 3, 5],
        "twice": r.choice([0, 0, 0.1]),
        "longest": r.choice([2, 6, 6, 12, 30]),
        "empty": r.choice([0, 0.1, 0.5]),
        "scores": r.choice([SCORES, FEW_SCORES, None]),
        "bad": 0.04 if w.bad else 0,
        "order": r.choice(["sorted", "sorted", "units", "rows"]),
    }
    per_run = {}
    for run in w.runs:
        units = []
        for query in w.queries.pool:
            if r.random() < knobs["empty"]:
                continue
            pool = w.requests.pool if w.requests else [None]
            for request in r.sample(pool, r.randint(1, min(3, len(pool)))):
                units.append(_unit(w, (run, request, query), columns, knobs))
                w.asked.add((run, request, query))
        per_run[run] = units
    if w.run_style == "dict":
        return {run: _table(w, columns, units, knobs["order"]) for run, units in per_run.items()}
    return {None: _table(w, columns, [unit for units in per_run.values() for unit in units], knobs["order"])}


def _columns(w: World) -> dict[str, Any]:
    r = w.r
    by_score = w.options["order"] != "rank"
    rank_type = r.choice([pl.Int64, pl.Int64, pl.Int32, pl.UInt8, pl.UInt64, pl.Int128, pl.Float64])
    columns: dict[str, Any] = {"query_id": w.queries.type_of(r), "rank": rank_type, "doc_id": w.docs.type_of(r)}
    types = {
        "chunk_id": w.chunk_type,
        "doc_version": pl.String,
        "chunk_start": r.choice([pl.Int64, pl.Int32]),
        "chunk_end": pl.Int64,
        "n_tokens": r.choice([pl.Int64, pl.Int8]),
        "in_context": pl.Boolean,
    }
    columns |= {c: t for c, t in types.items() if c in w.columns - w.lent}
    if "doc_id" in w.lent:
        del columns["doc_id"]
    if w.run_style == "column":
        columns["run_id"] = pl.String
    if w.requests is not None:
        columns["request_id"] = w.requests.type_of(r)
    if by_score or r.random() < 0.3:
        columns["score"] = r.choice([pl.Float64, pl.Float64, pl.Float32])
    if r.random() < 0.1:
        columns["note"] = pl.Int64  # unknown, so it takes part in nothing
    if by_score and r.random() < 0.5:
        del columns["rank"]
    return columns


def _unit(w: World, unit: tuple[Any, ...], columns: dict[str, Any], knobs: dict[str, Any]) -> list[dict[str, Any]]:
    r = w.r
    rank = w.options["rank_base"] - 1
    rows = []
    text = w.texts[unit[0]]
    doc, place = None, 0
    for _ in range(r.randint(1, knobs["longest"])):
        rank += 1 if r.random() >= knobs["gap"] else r.choice(knobs["jumps"])
        if doc is not None and r.random() < 0.5:
            place = (place + 1) % len(text[doc])  # the next chunk of the same document
        else:
            doc = r.choice(w.gold[unit[2]] if r.random() < 0.45 else w.docs.pool)
            place = r.randrange(len(text[doc]))
        row = {"run_id": unit[0], "request_id": unit[1], "query_id": unit[2], "rank": rank, "note": r.randint(0, 1)}
        row |= vars(text[doc][place]) | {"in_context": r.random() < 0.6}
        row["score"] = r.choice(knobs["scores"]) if knobs["scores"] else 100 - rank / 7
        _vary(w, row)
        rows.append(row)
        if r.random() < knobs["twice"]:
            rows.append(row | {"note": 7})
        if r.random() < knobs["bad"]:
            rows.append(row | _fault(w, columns))
    for row in rows:
        if columns.get("rank") == pl.Float64:
            row["rank"] = None if row["rank"] is None else float(row["rank"])
        if columns.get("score") == pl.Float32:
            row["score"] = None if row["score"] is None else single(row["score"])
    return rows


def _vary(w: World, row: dict[str, Any]) -> None:
    """Change what logs of real systems leave out or say otherwise, and spoil what nobody reads."""
    r = w.r
    if not w.lent:
        if r.random() < 0.06:
            row["chunk_id"] = None if r.random() < 0.5 else row["chunk_id"]
            row |= r.choice([{"chunk_start": None, "chunk_end": None}, {"chunk_start": 5, "chunk_end": 25}])
        if r.random() < 0.03:
            row["chunk_id"] = None
        if r.random() < 0.05:
            row["doc_version"] = w.version(row["doc_id"])
        if r.random() < 0.03:
            row["n_tokens"] = r.randint(0, 9)
    for column, junk in {"n_tokens": [None, -1], "in_context": [None], "chunk_end": [None, -3]}.items():
        if column not in w.used and r.random() < 0.03:
            row[column] = r.choice(junk)


def _fault(w: World, columns: dict[str, Any]) -> dict[str, Any]:
    """Cells that spoil a row, or set it against its neighbour."""
    rank = columns.get("rank")
    other = w.r.choice(w.docs.pool)
    faults: list[dict[str, Any]] = [{"query_id": None}, {"doc_id": None}, {"rank": None}, {"doc_id": other}]
    faults += [{"rank": 0}, {"chunk_id": 77 if w.chunk_type != pl.String else "other"}]
    faults += [{"rank": -1}] * (rank in SIGNED)
    if rank in (pl.Int64, pl.UInt64, pl.Int128):
        faults += [{"rank": 2**53}, {"rank": 2**63 - 1}]
    faults += [{"rank": 2**63}] * (rank in (pl.UInt64, pl.Int128)) + [{"rank": -(2**90)}] * (rank == pl.Int128)
    if rank == pl.Float64:
        faults += [{"rank": 1.5}, {"rank": float("nan")}, {"rank": float("inf")}, {"rank": -float("inf")}]
    if w.options["order"] != "rank":
        faults += [{"score": None}, {"score": float("nan")}]
    faults += [{c: None} for c in ("run_id", "request_id", "chunk_id") if c in columns] * 2
    if "request_id" in columns and "run_id" in columns:
        faults.append({"request_id": None, "run_id": None})
    by_column = {
        "n_tokens": [{"n_tokens": None}, {"n_tokens": -1}],
        "in_context": [{"in_context": None}],
        "chunk_start": [{"chunk_start": None}, {"chunk_end": None}, {"chunk_start": -1}, {"chunk_start": 45}],
    }
    return w.r.choice(faults + [f for c in by_column if c in columns for f in by_column[c]])


def _table(w: World, columns: dict[str, Any], units: list[list[dict[str, Any]]], order: str) -> Rows:
    if order == "units":
        w.r.shuffle(units)
    rows = [row for unit in units for row in unit]
    if order == "rows":
        w.r.shuffle(rows)
    return w.rows(columns, rows)
