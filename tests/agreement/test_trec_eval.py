"""Without repeats and gaps the documents cut is trec_eval's cut, and `@all` its measures of the whole list.

Known differences, which the queries here leave out: a query without relevant documents leaves our mean (trec_eval gives
it 0), and a negative grade is judged here. Chunks are trec_eval's documents only when no document comes twice.
"""

from __future__ import annotations

import math
from random import Random

import polars as pl
import pytest
import pytrec_eval

import docrecall as dr

KS = (1, 3, 5, 10, 30)
PAIRS = {
    **{f"doc_recall@{k}docs": f"recall_{k}" for k in KS},
    **{f"doc_precision@{k}docs": f"P_{k}" for k in KS},
    **{f"doc_ap@{k}docs": f"map_cut_{k}" for k in KS},
    **{f"doc_ndcg@{k}docs": f"ndcg_cut_{k}" for k in KS},
    **{f"doc_hit@{k}docs": f"success_{k}" for k in KS},
    "doc_ap@all": "map",
    "doc_ndcg@all": "ndcg",
    "doc_rr@all": "recip_rank",
}
LISTS = ",".join(map(str, KS))
ASKED = {f"{name}.{LISTS}" for name in ("recall", "P", "map_cut", "ndcg_cut", "success")} | {
    "map",
    "ndcg",
    "recip_rank",
}
# Integers tie and are negative; the pairs become one number in single precision.
TIED = [-2.0, -1.0, 0.0, -0.0, 1.0, 0.5, 0.5 + 1e-9, 0.1, 0.1 - 1e-10, 1e-50, 16777216.0, 16777217.0, 1e30]


def make_queries(seed: int, n: int, tied: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Queries of up to 40 documents, each once, with graded labels: hits with rank and score, and qrels."""
    r = Random(seed)
    pool = [f"d{i}" for i in range(45)] + ["Z", "a", "é", "日本", "10", "9", "_"]
    hits, labels = [], []
    for q in range(n):
        docs = r.sample(pool, r.randint(1, 40))
        scores = [r.choice(TIED) if tied else 100.0 - place for place in range(len(docs))]
        hits += [
            (f"q{q}", rank, doc, score) for rank, (doc, score) in enumerate(zip(docs, scores, strict=True), start=1)
        ]
        judged = r.sample(pool, r.randint(1, 12))
        grades = [r.choice([0, 0, 1, 1, 2, 3]) for _ in judged]
        grades[0] = grades[0] or 1  # at least one is relevant
        labels += [(f"q{q}", doc, grade) for doc, grade in zip(judged, grades, strict=True)]
    schema = {"query_id": str, "rank": int, "doc_id": str, "score": float}
    qrels = pl.DataFrame(labels, schema={"query_id": str, "doc_id": str, "relevance": int}, orient="row")
    return pl.DataFrame(hits, schema=schema, orient="row"), qrels


def trec_eval(hits: pl.DataFrame, qrels: pl.DataFrame, level: int) -> dict[str, dict[str, float]]:
    """Query -> measure -> value, by pytrec_eval."""
    run: dict[str, dict[str, float]] = {}
    for query, doc, score in hits.select("query_id", "doc_id", "score").iter_rows():
        run.setdefault(query, {})[doc] = score
    labels: dict[str, dict[str, int]] = {}
    for query, doc, grade in qrels.iter_rows():
        labels.setdefault(query, {})[doc] = grade
    return pytrec_eval.RelevanceEvaluator(labels, ASKED, relevance_level=level).evaluate(run)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("tied", [False, True], ids=["distinct scores", "tied scores"])
def test_measures_equal_trec_eval(tied: bool, level: int):
    """recall_k, P_k, map_cut_k, ndcg_cut_k, success_k, map, ndcg and recip_rank of 1,000 queries agree to 1e-12."""
    hits, qrels = make_queries(level, 1000, tied)
    theirs = trec_eval(hits, qrels, level)
    # trec_eval reads scores and never ranks; with distinct scores our default order is the same one.
    policy = {"order": "trec_eval"} if tied else {}
    shuffled = hits.sample(fraction=1, shuffle=True, seed=1)

    ours = dr.score(shuffled, qrels, list(PAIRS), min_relevance=level, **policy).per_query

    compared = 0
    for row in ours.filter(status="scored").iter_rows(named=True):
        for name, foreign in PAIRS.items():
            assert math.isclose(row[name], theirs[row["query_id"]][foreign], rel_tol=0, abs_tol=1e-12), (row, name)
        compared += 1
    assert compared == (1000 if level == 1 else ours.filter(status="scored").height)
    assert compared > 700


def test_ties_are_what_decides():
    """The tied logs above would score differently by their ranks, so that the order is really tested."""
    hits, qrels = make_queries(1, 200, tied=True)

    by_rank, by_score = (
        dr.score(hits, qrels, "doc_ap@all", order=order).per_query["doc_ap@all"] for order in ("rank", "trec_eval")
    )

    assert (by_rank != by_score).sum() > 100


def test_scores_that_single_precision_cannot_tell_apart_tie():
    """2^24 and 2^24 + 1 are one score to trec_eval, so the greater id comes first."""
    hits = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0**24 + 1, 2.0**24]})
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["b"]})
    measure = "doc_rr@all"

    values = {o: dr.score(hits, qrels, measure, order=o).per_query[measure].item() for o in ("score", "trec_eval")}

    assert values == {"score": 0.5, "trec_eval": 1.0}
    assert trec_eval(hits, qrels.with_columns(relevance=1), 1)["q"]["recip_rank"] == 1.0


def test_negative_grade_is_the_known_difference():
    """trec_eval takes a negative grade for no judgement; here the document is judged and not relevant, gain 0."""
    hits = pl.DataFrame({"query_id": ["q", "q"], "rank": [1, 2], "doc_id": ["bad", "good"]})
    qrels = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["bad", "good"], "relevance": [-1, 1]})

    row = dr.score(hits, qrels, ["doc_judged@all", "doc_ndcg@all"]).per_query.row(0, named=True)

    assert row["doc_judged@all"] == 1.0
    assert row["doc_ndcg@all"] == 1 / math.log2(3)
