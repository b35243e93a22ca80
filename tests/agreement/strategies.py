"""Generated calls of `score`, rich in what goes wrong in real logs.

`build` makes a case from any `random.Random`: one that Hypothesis steers shrinks well, a seeded one makes big cases
fast.
"""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

from docrecall.reference import MEASURES
from tests.agreement import world_hits, world_tables
from tests.agreement.case import Case
from tests.agreement.world import Ids, World, ids, write_texts

CUTS = [
    *("1", "2", "3", "5", "8", "20", "2147483647"),
    *("1docs", "2docs", "3docs", "4docs", "9docs", "2147483647docs", "all", "all"),
]
CONTEXTS = [
    "context",
    "context",
    "1tokens",
    "5tokens",
    "9tokens",
    "14tokens",
    "20tokens",
    "40tokens",
    "2147483647tokens",
]
SPANS = {"chunk_start", "chunk_end"}
COVERAGES = ["0.1", "0.25", "0.3333333333333333", "0.5", "0.5", "0.9", "0.99"]


def build(r: Random, size: int) -> Case:
    """Make a case of about `size` queries (times the runs)."""
    w = _world(r, size)
    if r.random() < 0.65:
        _enrich(w)
    write_texts(w, _chunks_restart(w), r.random() < 0.3)
    measures = _measures(w)
    logs = world_hits.logs(w)
    given = {name: getattr(world_tables, name)(w) for name in sorted(w.tables)}
    n_rows = sum(len(log.rows) for log in logs.values())
    return Case(
        logs=logs,
        qrels=given.pop("qrels", None),
        queries=given.pop("queries", None),
        measures=measures,
        options=w.options,
        batch_rows=_batch_rows(r, n_rows),
        form=r.choice(["frame", "files", "files", "files", "lazy", "arrow"]),
        out=r.random() < 0.15,
        **given,
    )


def _world(r: Random, size: int) -> World:
    """A call with hits, labels, and perhaps a list of queries."""
    n_queries = r.randint(1, size)
    queries, docs = ids(r, n_queries + 1, "q"), ids(r, r.randint(2, 14), "d")
    if r.random() < 0.15 and isinstance(queries.pool[0], str) and isinstance(docs.pool[0], str):
        docs = Ids(queries.pool, queries.widths)
    options = _options(r)
    bad = r.random() < 0.3
    if bad and r.random() < 0.9:
        options["on_bad_rows"] = "reject"
    style = r.choice(["none", "column", "dict"])
    runs = r.sample(["a", "b", "run", "#", ""], r.randint(1, 3)) if style != "none" else [None]
    if style == "dict":
        runs = [run or "none" for run in runs]  # an empty name is refused where the caller gives it
    w = World(r, queries, docs, bad, options, runs, style)
    w.tables = {"qrels"} | ({"queries"} if r.random() < 0.4 else set())
    w.columns = {"chunk_id"} if r.random() < 0.6 else set()
    w.versions = {doc: r.choice(["v1", "v1", "v2"]) for doc in docs.pool}
    most = r.choice([2, 5, 14])
    w.gold = {query: r.sample(docs.pool, r.randint(1, min(len(docs.pool), most))) for query in queries.pool}
    return w


def _batch_rows(r: Random, n_rows: int) -> int:
    if n_rows < 30:
        return r.choice([1, 2, 3, 7, 1 << 30])
    # A batch costs some milliseconds, so that few cases can have many. More than four batches of files are spilled.
    return r.choice([1 << 30, n_rows, n_rows // 2, n_rows // 3, n_rows // 4, n_rows // 6, n_rows // 12])


def _options(r: Random) -> dict[str, Any]:
    choices: dict[str, list[Any]] = {
        "order": ["rank", "rank", "rank", "score", "trec_eval"],
        "ranks": ["logged", "logged", "logged", "recount"],
        "rank_base": [1, 1, 1, 0],
        "min_relevance": [1, 1, 1, 2, 3],
        "universe": ["all", "all", "hits"],
        "normalize_ids": ["none", "none", "none", "none", "NFC"],
        "versions": ["match", "match", "match", "ignore"],
        "stale": ["exclude", "keep"],
        "unit": ["request", "request", "query"],
    }
    return {name: r.choice(values) for name, values in choices.items()}


def _enrich(w: World) -> None:
    """Add tables and columns, each with some probability."""
    r = w.r
    w.tables |= {t for t, p in {"evidence": 0.65, "documents": 0.35, "requests": 0.3}.items() if r.random() < p}
    chances = {"chunk_id": 0.6, "n_tokens": 0.7, "in_context": 0.5, "doc_version": 0.5, "chunk_start": 0.75}
    w.columns |= {c for c, p in chances.items() if r.random() < p}
    if r.random() < 0.35:
        w.requests = ids(r, r.randint(2, 5), "r")
    if r.random() < 0.3:
        w.tables.add("chunks")
        w.lent = {c for c in ("doc_id", "n_tokens", "doc_version", "chunk_start") if r.random() < 0.5}
        w.columns |= w.lent | {"chunk_id"}
    w.columns |= SPANS if "chunk_start" in w.columns else set()
    w.lent |= SPANS if "chunk_start" in w.lent else set()
    if "documents" in w.tables and r.random() < 0.5:
        order = r.sample(w.docs.pool, len(w.docs.pool))
        w.aliases = {a: r.choice(order[:n]) for n, a in enumerate(order) if n and r.random() < 0.25}
        if r.random() < 0.03:
            w.aliases[order[0]] = r.choice(order)  # perhaps a circle
    if r.random() < 0.6:
        w.label_columns.add("doc_version")
    w.strange_versions = r.random() < 0.05
    if "evidence" in w.tables:
        _enrich_evidence(w)


def _enrich_evidence(w: World) -> None:
    r = w.r
    w.evidence_ids = r.choice([["e0", "e1", "e2"], [10, 9, 2], ["é", "e", "E"]])
    kinds = [kind for kind, there in {"span": w.columns >= SPANS, "chunk": "chunk_id" in w.columns}.items() if there]
    if not kinds:
        w.columns |= SPANS
        kinds = ["span"]
    if len(kinds) == 2:
        kinds = r.choice([["span"], ["chunk"], kinds, kinds])
    w.evidence_columns = ({"start", "end"} if "span" in kinds else set()) | (
        {"chunk_id"} if "chunk" in kinds else set()
    )
    if r.random() < 0.5:
        w.evidence_columns.add("doc_version")
    w.strange_chunks = r.random() < 0.06
    if r.random() < 0.15:
        w.tables.discard("qrels")


def _chunks_restart(w: World) -> bool:
    """Whether each document counts its chunks from the first: not where a chunk id alone must tell them apart."""
    clash = "chunks" in w.tables and ("doc_id" in w.lent or w.aliases)
    return w.r.random() < (0.02 if clash else 0.5)


def _measures(w: World) -> tuple[str, ...]:
    """Measures whose columns are there; seldom one that lacks some."""
    r = w.r
    tokens, context = "n_tokens" in w.columns, "in_context" in w.columns
    if r.random() < 0.01 and not w.bad:
        tokens = context = True
    pool = CUTS + [c for c in CONTEXTS * 2 if (context if c == "context" else tokens)]
    names = [name for name in MEASURES if _may(w, name, tokens)]
    many = r.random() < 0.4
    cuts = list(dict.fromkeys(r.choice(pool) for _ in range(r.randint(1, 2 if many else 4))))
    if not many:
        family = r.choice(["", "doc_", "chunk_", "evidence_", "evidence_"])
        some = [name for name in names if name.startswith(family)] or names
        names = r.sample(some, r.randint(1, min(3, len(some))))
    measures = [
        f"{name}{_params(r, name)}@{cut}"
        for name in names
        for cut in cuts
        if not (name in ("chunk_precision", "chunk_rr") and cut.endswith("docs"))
    ]
    measures = list(dict.fromkeys(measures)) or ["doc_recall@3"]
    words = {"n_tokens": "tokens", "in_context": "@context", "chunk_end": "evidence_"}
    w.used = {column for column, word in words.items() if any(word in m for m in measures)}
    return tuple(measures)


def _may(w: World, name: str, tokens: bool) -> bool:
    if name == "context_tokens":
        return tokens
    if name.startswith("chunk_"):
        return "evidence" in w.tables and "chunk_id" in w.columns
    return not name.startswith("evidence_") or "evidence" in w.tables


def _params(r: Random, name: str) -> str:
    """Parameters in canonical form: in their order, and without defaults."""
    params = []
    if name in ("evidence_recall", "evidence_hit", "evidence_all") and r.random() < 0.5:
        params.append(f"coverage={r.choice(COVERAGES)}")
    if name in ("evidence_coverage", "evidence_recall", "evidence_hit", "evidence_all") and r.random() < 0.4:
        params.append(f"gap={r.choice([1, 1, 2, 3, 40])}")
    return f"({','.join(params)})" if params else ""


def small_cases() -> st.SearchStrategy[Case]:
    """Cases of a few units in which Hypothesis chooses every cell, so that a failure shrinks to few rows."""
    return st.randoms(use_true_random=False).map(lambda r: build(r, 3))


def big_cases() -> st.SearchStrategy[Case]:
    """Cases of some dozens of units from a seed."""
    return st.integers(0, 2**40).map(lambda seed: build(Random(seed), 30))
