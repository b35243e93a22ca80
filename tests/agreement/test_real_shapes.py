"""The case that started the tool, and the retrieval experiment in data/topics, against plain Python."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import docrecall as dr

DATA = Path(__file__).parents[2] / "data"
TOPICS = DATA / "topics"
RUNS = ("bm25-w32", "bm25-w64", "bm25-w128", "bm25-w256")
MEASURES = ["doc_recall@3", "doc_recall@3docs", "doc_rr@all", "doc_ndcg@10docs", "repeat_share@10", "naive_recall@10"]


def rows(path: Path) -> list[dict[str, Any]]:
    """A Parquet file as dicts, read without polars."""
    return pq.ParquetFile(path).read().to_pylist()


def topics() -> dr.Scores:
    """Score the four runs by document ids alone."""
    queries = TOPICS / "queries.parquet"
    return dr.score(TOPICS / "hits", TOPICS / "qrels.parquet", MEASURES, queries=queries, versions="ignore")


def test_the_case_that_started_it():
    """Three chunks of one document make a naive recall of 1.5; half of the documents are there, or all of them."""
    measures = ["naive_recall@3", "doc_recall@3", "doc_recall@3docs"]

    scores = dr.score(DATA / "case" / "hits.parquet", DATA / "case" / "qrels.parquet", measures)

    assert scores.per_query.select(measures).rows() == [(1.5, 0.5, 1.0)]
    assert dr.doc_recall(["manual"] * 3 + ["faq", "terms"], {"manual", "faq"}, k=3) == 0.5


def test_topics_are_accounted_for():
    """Of 173 questions 158 are scored, 10 unanswerable, 5 unlabelled; one is scored without hits, in every run."""
    scores = topics()

    expected = [
        {
            "run_id": run,
            "n_total": 173,
            "n_scored": 158,
            "n_no_hits": 1,
            "n_unlabelled": 5,
            "n_no_relevant": 0,
            "n_unanswerable": 10,
            "n_stale_labels": 0,
            "n_rejected": 0,
        }
        for run in sorted(RUNS)
    ]
    assert scores.accounting.to_dicts() == expected
    n_hits = sum(len(rows(TOPICS / "hits" / f"{run}.parquet")) for run in RUNS)
    assert scores.rows.row(0) == ("hits", n_hits, n_hits, 0, 0, 0)
    assert scores.rows.row(1) == ("qrels", 335, 335, 0, 0, 0)


def test_topics_with_outdated_labels():
    """Ten questions have a label for a page that the index serves at another version only; they leave the mean."""
    tables = {name: TOPICS / f"{name}.parquet" for name in ("qrels", "queries", "documents")}

    scores = dr.score(TOPICS / "hits", measures=MEASURES, **tables)

    wanted = {"n_total": 173, "n_scored": 148, "n_stale_labels": 10, "n_unanswerable": 10, "n_unlabelled": 5}
    for row in scores.accounting.to_dicts():
        assert {column: row[column] for column in wanted} == wanted
    kept = dr.score(TOPICS / "hits", measures=MEASURES, stale="keep", **tables)
    assert set(kept.accounting["n_scored"]) == {158}
    for run in RUNS:
        both = [s.summary().filter(run_id=run, measure="doc_recall@3").row(0, named=True) for s in (scores, kept)]
        assert both[0]["ceiling"] == 1.0
        assert both[1]["ceiling"] < 1.0
        assert both[1]["mean"] < both[0]["mean"]


@pytest.mark.parametrize("run", RUNS)
def test_topics_have_the_values_of_plain_python(run: str):
    """Means and each question's values of six measures, written out from their meaning, agree."""
    ranked: defaultdict[str, list[str]] = defaultdict(list)
    for hit in sorted(rows(TOPICS / "hits" / f"{run}.parquet"), key=lambda hit: hit["rank"]):
        ranked[hit["query_id"]].append(hit["doc_id"])
    grades: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for label in rows(TOPICS / "qrels.parquet"):
        grades[label["query_id"]][label["doc_id"]] = label["relevance"]
    answerable = {q["query_id"] for q in rows(TOPICS / "queries.parquet") if q["label_status"] == "answerable"}
    expected = {query: plain_values(ranked[query], grades[query]) for query in answerable}

    scores = topics()

    got = scores.per_query.filter(run_id=run, status="scored").select("query_id", *MEASURES)
    assert {row[0]: row[1:] for row in got.iter_rows()} == expected
    means = dict(scores.summary().filter(run_id=run).select("measure", "mean").iter_rows())
    for number, measure in enumerate(MEASURES):
        values = [row[number] for row in expected.values() if row[number] is not None]
        assert means[measure] == math.fsum(values) / len(values)


def plain_values(docs: list[str], grades: dict[str, int]) -> tuple[float | None, ...]:
    """The six measures of one question, from its documents in rank order."""
    relevant = {doc for doc, grade in grades.items() if grade >= 1}
    distinct = list(dict.fromkeys(docs))
    first = next((place for place, doc in enumerate(docs, start=1) if doc in relevant), None)
    gain = ideal = 0.0
    for place, doc in enumerate(distinct[:10], start=1):
        gain += grades.get(doc, 0) / math.log2(place + 1)
    for place, grade in enumerate(sorted(grades.values(), reverse=True)[:10], start=1):
        ideal += grade / math.log2(place + 1)
    top = docs[:10]
    return (
        len(relevant & set(docs[:3])) / len(relevant),
        len(relevant & set(distinct[:3])) / len(relevant),
        1 / first if first else 0.0,
        gain / ideal,
        (len(top) - len(set(top))) / len(top) if top else None,
        sum(doc in relevant for doc in top) / len(relevant),
    )


def test_chunks_hide_documents_in_topics():
    """The experiment shows the fault: smaller chunks repeat documents, and the two cuts part."""
    means = {
        (run, measure): mean
        for run, measure, mean in topics().summary().select("run_id", "measure", "mean").iter_rows()
    }

    shares = [means[run, "repeat_share@10"] for run in RUNS]
    assert shares == sorted(shares, reverse=True)
    for run in RUNS:
        assert means[run, "doc_recall@3docs"] > means[run, "doc_recall@3"]
