"""TREC files of the shapes that the reference tool is shipped with, against pytrec_eval, to the digits it prints."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
import pytrec_eval

import docrecall as dr

CUTS, HIT_CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000), (1, 5, 10)
OURS = {"recall": "doc_recall", "P": "doc_precision", "map_cut": "doc_ap", "ndcg_cut": "doc_ndcg"}
NAMES = {
    "map": "doc_ap@all",
    "ndcg": "doc_ndcg@all",
    "recip_rank": "doc_rr@all",
    **{f"{theirs}_{k}": f"{ours}@{k}docs" for theirs, ours in OURS.items() for k in CUTS},
    **{f"success_{k}": f"doc_hit@{k}docs" for k in HIT_CUTS},
}


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict, dict]:
    """A run sorted by name, tab and double space, ties, junk behind the tag; graded labels with comments between."""
    folder, rng = tmp_path_factory.mktemp("trec"), random.Random(20261201)
    docs = [f"FT{rng.randrange(900, 999)}-{n}" for n in range(1500)]
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for topic in ("301", "302", "303", "304"):
        judged = rng.sample(docs, 300)
        qrels[topic] = {doc: rng.choice([0, 0, 0, 1, 1, 2]) for doc in judged}
        if topic != "304":  # in the labels and missing from the run: counts as 0
            found = rng.sample(judged, 60) + rng.sample(docs, 400)
            run[topic] = {doc: round(rng.uniform(1, 4), 2) for doc in found}
    lines = []
    for topic, scores in run.items():
        for doc, score in sorted(scores.items()):
            junk = " more junk # at the end" if rng.random() < 0.1 else ""
            lines.append(f"{topic}\tQ0\t{doc}\t{rng.randrange(1, 900)}\t  {score:.6f}\tSTANDARD{junk}")
    labels = ["# comment here"]
    for topic, grades in qrels.items():
        labels += [f"{topic} 0 {doc} {grade}" for doc, grade in grades.items()] + ["# and here", ""]
    (folder / "results.test").write_text("\n".join(lines) + "\n")
    (folder / "qrels.test").write_text("\ufeff" + "\r\n".join(labels) + "\r\n")
    (folder / "results.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder, run, qrels


@pytest.mark.parametrize("run_file", ["results.test", "results.gz"])
@pytest.mark.parametrize("level", [1, 2])
def test_printed_digits(level: int, run_file: str, shapes: tuple[Path, dict, dict]) -> None:
    """Every value that trec_eval prints for these files comes out of the same files here, by topic and as means."""
    folder, run, qrels = shapes
    measures = {"map", "ndcg", "recip_rank", *(f"{m}.{','.join(map(str, CUTS))}" for m in OURS)}
    measures.add(f"success.{','.join(map(str, HIT_CUTS))}")
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures, relevance_level=level).evaluate(run)
    theirs["304"] = dict.fromkeys(NAMES, 0.0)

    scores = dr.score(
        folder / run_file,
        folder / "qrels.test",
        list(NAMES.values()),
        read="trec",
        order="trec_eval",
        min_relevance=level,
    )

    compared = 0
    for row in scores.per_query.to_dicts():
        for name, ours in NAMES.items():
            assert f"{row[ours]:.4f}" == f"{theirs[row['query_id']][name]:.4f}", (row["query_id"], name)
            compared += 1
    assert compared == 4 * len(NAMES)
    means = dict(scores.summary().select("measure", "mean").iter_rows())
    for name, ours in NAMES.items():
        assert means[ours] == pytest.approx(sum(t[name] for t in theirs.values()) / 4, abs=1e-12)


def test_disagreement_of_orders_is_counted(shapes: tuple[Path, dict, dict]) -> None:
    """Ranks that say another order than the scores are counted by unit: a warning by rank, a note by score."""
    folder = shapes[0]
    for order, severity in (("trec_eval", "info"), ("score", "info"), ("rank", "warning")):
        reject = {"on_bad_rows": "reject"} if order == "rank" else {}  # its ranks repeat
        scores = dr.score(
            folder / "results.test", folder / "qrels.test", "doc_recall@10", read="trec", order=order, **reject
        )
        found = scores.findings.filter(code="orders_disagree")
        assert found.select("severity", "n_rows", "n_queries").rows() == [(severity, scores.rows["read"][0], 3)]


def test_orders_that_agree(tmp_path: Path) -> None:
    """Ties that stand in the reference tool's order agree; the other order of one tie is a disagreement."""
    (tmp_path / "q.qrels").write_text("1 0 a 1\n2 0 a 1\n")
    text = "1 Q0 b 1 2.0 t\n1 Q0 a 2 2.0 t\n2 Q0 a 1 3 t\n2 Q0 b 2 1 t\n"
    (tmp_path / "a.run").write_text(text)
    (tmp_path / "b.run").write_text(text.replace("2 Q0 a 1 3", "2 Q0 a 1 1"))
    for name, units in (("a.run", []), ("b.run", [1])):
        scores = dr.score(tmp_path / name, tmp_path / "q.qrels", "doc_recall@1")
        assert scores.findings.filter(code="orders_disagree")["n_queries"].to_list() == units
