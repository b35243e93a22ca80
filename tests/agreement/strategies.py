"""Generated calls of `score`, rich in what goes wrong in real logs.

`build` makes a case from any `random.Random`: one that Hypothesis steers shrinks well, a seeded one makes big cases
fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import polars as pl
from hypothesis import strategies as st

from docrecall.reference import MEASURES
from docrecall.reference import _single as single
from tests.agreement.case import Case, Rows

LONG = "long" * 80
NUMBERS = ["17", "7", "007", "07", "1", "0", "-1", "1.0", "1e3", "12", "123", "3", "23", "017", " 17", "17 "]
ODD = [
    *(
        "",
        " ",
        "a",
        " a",
        "a ",
        "\ta",
        "a\tb",
        "a b",
        "a\nb",
        "#",
        "#1",
        "a#b",
        "a/b",
        "null",
        "None",
        "NaN",
        "A",
        "ss",
    ),
    *(
        "é",
        "e\u0301",
        "K",
        "\u212a",
        "Å",
        "A\u030a",
        "\u212b",
        "ß",
        "日本",
        "🙂",
        "\U0001f642\u200d",
        "\uffff",
        "\U00010000",
    ),
    *("ss", "\U0001f642\u200d", "a\x00", "\u00a0a", "q\u2028", LONG, LONG + "r"),
]
LARGE = [0, 1, -1, 17, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**32, -(2**31), 255, -17, 10, 9, 100, -2]
WIDTHS = [pl.Int64, pl.Int32, pl.Int16, pl.Int8, pl.UInt64, pl.UInt32, pl.UInt16, pl.UInt8, pl.Int128]
# Float32 makes one value of the first three.
SCORES = [
    0.1,
    0.1 + 1e-9,
    0.1 - 1e-9,
    0.0,
    -0.0,
    -1.5,
    -1.5 - 1e-9,
    3.0,
    3.0 + 2**-30,
    1e300,
    2e300,
    float("inf"),
    -1e-300,
    7.25,
]
FEW_SCORES = [-2.0, -1.0, 0.0, 1.0, 2.0]
CUTS = [
    "1",
    "2",
    "3",
    "5",
    "8",
    "20",
    "2147483647",
    "1docs",
    "2docs",
    "3docs",
    "4docs",
    "9docs",
    "2147483647docs",
    "all",
    "all",
]


@dataclass(frozen=True)
class Ids:
    """Ids of one kind, and the types that may hold them."""

    pool: list[Any]
    widths: list[Any]

    def type_of(self, r: Random) -> Any:
        return r.choice(self.widths)


def ids(r: Random, n: int, letter: str) -> Ids:
    """Draw n ids of one style."""
    style = r.choice(["plain", "numbers", "odd", "odd", "whole", "large"])
    if style == "whole":
        pool = list(range(n))
        return Ids(pool, [w for w in WIDTHS if n <= 120 or w not in (pl.Int8, pl.UInt8)])
    if style == "large":
        return Ids(_some(r, LARGE, n, range(1000, 1000 + n)), [pl.Int64, pl.Int64, pl.Int128])
    spare = [f"{letter}{i}" for i in range(n)]
    fixed = {"plain": [], "numbers": NUMBERS, "odd": ODD}[style]
    return Ids(_some(r, fixed, n, spare), [pl.String])


def _some(r: Random, first: list[Any], n: int, spare: Any) -> list[Any]:
    return [*r.sample(first, min(n, len(first))), *spare][:n]


def build(r: Random, size: int) -> Case:
    """Make a case of about `size` queries (times the runs)."""
    n_queries = r.randint(1, size)
    queries, docs = ids(r, n_queries + 1, "q"), ids(r, r.randint(2, 14), "d")
    if r.random() < 0.15 and isinstance(queries.pool[0], str) and isinstance(docs.pool[0], str):
        docs = Ids(queries.pool, queries.widths)
    options = _options(r)
    bad = r.random() < 0.3
    if bad and r.random() < 0.9:
        options["on_bad_rows"] = "reject"
    logs = _logs(r, queries, docs, options, bad)
    n_rows = sum(len(log.rows) for log in logs.values())
    return Case(
        logs=logs,
        qrels=_qrels(r, queries, docs, bad),
        queries=_queries(r, queries, bad) if r.random() < 0.4 else None,
        measures=_measures(r),
        options=options,
        batch_rows=_batch_rows(r, n_rows),
        form=r.choice(["frame", "files", "files", "files", "lazy", "arrow"]),
        out=r.random() < 0.15,
    )


def _batch_rows(r: Random, n_rows: int) -> int:
    if n_rows < 30:
        return r.choice([1, 2, 3, 7, 1 << 30])
    # A batch costs some milliseconds, so that few cases can have many. More than four batches of files are spilled.
    return r.choice([1 << 30, n_rows, n_rows // 2, n_rows // 3, n_rows // 4, n_rows // 6, n_rows // 12])


def _options(r: Random) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, values in {
        "order": ["rank", "rank", "rank", "score", "trec_eval"],
        "ranks": ["logged", "logged", "logged", "recount"],
        "rank_base": [1, 1, 1, 0],
        "min_relevance": [1, 1, 1, 2, 3],
        "universe": ["all", "all", "hits"],
        "normalize_ids": ["none", "none", "none", "none", "NFC"],
    }.items():
        options[name] = r.choice(values)
    return options


def _measures(r: Random) -> tuple[str, ...]:
    # Few measures take the way that brings in few rows; all of them show each formula.
    cuts = list(dict.fromkeys(r.choice(CUTS) for _ in range(r.randint(1, 5))))
    if r.random() < 0.5:
        return tuple(f"{name}@{cut}" for name in MEASURES for cut in cuts)
    names = r.sample(list(MEASURES), r.randint(1, 3))
    return tuple(f"{name}@{cut}" for name in names for cut in cuts)


def _logs(r: Random, queries: Ids, docs: Ids, options: dict[str, Any], bad: bool) -> dict[str | None, Rows]:
    by_score = options["order"] != "rank"
    rank_type = r.choice([pl.Int64, pl.Int64, pl.Int32, pl.UInt8, pl.UInt64, pl.Int128, pl.Float64])
    columns: dict[str, Any] = {"query_id": queries.type_of(r), "rank": rank_type, "doc_id": docs.type_of(r)}
    many_runs = r.choice(["none", "column", "dict"])
    if many_runs == "column":
        columns["run_id"] = pl.String
    if r.random() < 0.6:
        columns["chunk_id"] = pl.String
    if by_score or r.random() < 0.3:
        columns["score"] = r.choice([pl.Float64, pl.Float64, pl.Float32])
    if r.random() < 0.1:
        columns["note"] = pl.Int64  # unknown, so it takes part in nothing
    if by_score and r.random() < 0.5:
        del columns["rank"]
    names = r.sample(["a", "b", "run", "#", ""], r.randint(1, 3)) if many_runs != "none" else [None]
    order = r.choice(["sorted", "sorted", "units", "rows"])
    knobs = {
        "gap": r.choice([0, 0, 0.2]),
        "jumps": [2, 3, 5, 2**31] if rank_type not in (pl.Int32, pl.UInt8) else [2, 3, 5],
        "twice": r.choice([0, 0, 0.1]),
        "longest": r.choice([2, 6, 6, 12, 30]),
        "empty": r.choice([0, 0.1, 0.5]),
        "scores": r.choice([SCORES, FEW_SCORES, None]),
        "bad": 0.04 if bad else 0,
    }
    per_run = {}
    for name in names:
        units = [
            _unit(r, query, name, docs.pool, columns, options, knobs)
            for query in queries.pool
            if r.random() >= knobs["empty"]
        ]
        per_run[name] = [unit for unit in units if unit]
    if many_runs == "dict":
        # A run name that is empty is refused where the caller gives it.
        return {name or "none": _table(r, columns, units, order) for name, units in per_run.items()}
    return {None: _table(r, columns, [unit for units in per_run.values() for unit in units], order)}


def _unit(
    r: Random,
    query: Any,
    run: str | None,
    docs: list[Any],
    columns: dict[str, Any],
    options: dict[str, Any],
    knobs: Any,
) -> list[dict[str, Any]]:
    rank = options["rank_base"] - 1
    rows = []
    for _ in range(r.randint(1, knobs["longest"])):
        rank += 1 if r.random() >= knobs["gap"] else r.choice(knobs["jumps"])
        row = {"query_id": query, "rank": rank, "doc_id": r.choice(docs), "run_id": run, "note": r.randint(0, 1)}
        row["chunk_id"] = r.choice(["c", None, f"c{rank}", f"c{rank}"])
        row["score"] = r.choice(knobs["scores"]) if knobs["scores"] else 100 - rank / 7
        rows.append(row)
        if r.random() < knobs["twice"]:
            rows.append(row | {"note": 7})
        if r.random() < knobs["bad"]:
            rows.append(row | _fault(r, columns, options, docs))
    if columns.get("rank") == pl.Float64:
        for row in rows:
            row["rank"] = None if row["rank"] is None else float(row["rank"])
    if columns.get("score") == pl.Float32:
        for row in rows:
            row["score"] = None if row["score"] is None else single(row["score"])
    return rows


def _fault(r: Random, columns: dict[str, Any], options: dict[str, Any], docs: list[Any]) -> dict[str, Any]:
    """Cells that spoil a row, or set it against its neighbour."""
    faults: list[dict[str, Any]] = [{"query_id": None}, {"doc_id": None}, {"rank": None}, {"doc_id": r.choice(docs)}]
    signed = columns.get("rank") not in (pl.UInt8, pl.UInt64)
    faults += [{"rank": -1}] if signed else []
    faults += [{"rank": 0}, {"chunk_id": "other"}]
    if columns.get("rank") in (pl.Int64, pl.UInt64, pl.Int128):
        faults += [{"rank": 2**53}, {"rank": 2**63 - 1}]
    if columns.get("rank") in (pl.UInt64, pl.Int128):
        faults += [{"rank": 2**63}]
    if columns.get("rank") == pl.Int128:
        faults += [{"rank": -(2**90)}]
    if columns.get("rank") == pl.Float64:
        faults += [{"rank": 1.5}, {"rank": float("nan")}, {"rank": float("inf")}, {"rank": -float("inf")}]
    if "run_id" in columns:
        faults += [{"run_id": None}]
    if options["order"] != "rank":
        faults += [{"score": None}, {"score": float("nan")}]
    return r.choice(faults)


def _table(r: Random, columns: dict[str, Any], units: list[list[dict[str, Any]]], order: str) -> Rows:
    if order == "units":
        r.shuffle(units)
    rows = [row for unit in units for row in unit]
    if order == "rows":
        r.shuffle(rows)
    return _rows(r, columns, rows)


def _rows(r: Random, columns: dict[str, Any], rows: list[dict[str, Any]]) -> Rows:
    tuples = [tuple(row[c] for c in columns) for row in rows]
    return Rows(columns, tuples, tuple(r.randint(0, len(rows)) for _ in range(r.choice([0, 1, 1, 2, 5]))))


def _qrels(r: Random, queries: Ids, docs: Ids, bad: bool) -> Rows:
    columns: dict[str, Any] = {"query_id": queries.type_of(r), "doc_id": docs.type_of(r)}
    grades = r.choice([[1], [0, 1], [1, 2, 3], [-2, -1, 0, 1, 1, 2, 3, 4], [0, 1, 2**40, 2**62, 10**6 + 1]])
    if r.random() < 0.8:
        columns["relevance"] = r.choice([pl.Int64, pl.Int64, pl.Int128] + [pl.Int8] * (max(grades) < 100))
    unlabelled = r.choice([0, 0.1, 0.4])
    rows = []
    for query in queries.pool:
        if r.random() < unlabelled:
            continue
        for doc in r.sample(docs.pool, r.randint(1, min(len(docs.pool), r.choice([2, 5, 14])))):
            row = {"query_id": query, "doc_id": doc, "relevance": r.choice(grades)}
            rows.append(row)
            if r.random() < 0.05:
                rows.append(row)
            if bad and r.random() < 0.03:
                spoilt = [{"relevance": None}, {"doc_id": None}, {"query_id": None}, {"relevance": 5}]
                rows.append(row | r.choice(spoilt))
    if r.random() < 0.5:
        r.shuffle(rows)
    return _rows(r, columns, rows)


def _queries(r: Random, queries: Ids, bad: bool) -> Rows:
    columns: dict[str, Any] = {"query_id": queries.type_of(r)}
    if r.random() < 0.7:
        columns["label_status"] = pl.String
    stated = [None, None, "answerable", "unanswerable", "unlabelled"]
    rows = [{"query_id": query, "label_status": r.choice(stated)} for query in queries.pool if r.random() < 0.85]
    if bad and rows and r.random() < 0.5:
        row = r.choice(rows)
        rows += r.sample([row, row | {"label_status": "maybe"}, row | {"query_id": None}], r.randint(1, 2))
    r.shuffle(rows)
    return _rows(r, columns, rows)


def small_cases() -> st.SearchStrategy[Case]:
    """Cases of a few units in which Hypothesis chooses every cell, so that a failure shrinks to few rows."""
    return st.randoms(use_true_random=False).map(lambda r: build(r, 3))


def big_cases() -> st.SearchStrategy[Case]:
    """Cases of some dozens of units from a seed."""
    return st.integers(0, 2**40).map(lambda seed: build(Random(seed), 30))
