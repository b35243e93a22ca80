"""Runs that the caller names do not touch one another: neither bad rows, nor what only some of them log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import docrecall as dr
from docrecall.cli import main
from tests.small import write

QRELS = pl.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["a", "c"]})
HITS = pl.DataFrame({"query_id": ["q1", "q1", "q2"], "rank": [1, 2, 1], "doc_id": ["a", "b", "c"]})
MEASURE = "doc_recall@3"


def with_column(**column: Any) -> pl.DataFrame:
    return HITS.with_columns(**{name: pl.Series(values) for name, values in column.items()})


def statuses(scores: dr.Scores) -> list[tuple[Any, ...]]:
    return scores.per_query.select("run_id", pl.nth(1), "status").rows()


def test_a_bad_row_of_one_run_rejects_no_unit_of_another() -> None:
    """A row of x that lacks its request may belong to any request of its query in x, and to none in y."""
    requests = pl.DataFrame({"query_id": ["q1", "q1", "q2"], "request_id": ["r1", "r9", "s"]})
    logs = {"x": with_column(request_id=["r1", None, "s"]), "y": with_column(request_id=["r1", "r1", "s"])}

    scores = dr.score(logs, QRELS, MEASURE, requests=requests, on_bad_rows="reject")

    assert statuses(scores) == [
        ("x", "r1", "rejected_rows"),
        ("x", "r9", "rejected_rows"),
        ("x", "s", "scored"),
        ("y", "r1", "scored"),
        ("y", "r9", "scored"),
        ("y", "s", "scored"),
    ]
    assert scores.summary()["mean"].to_list() == [1.0, 2 / 3]
    assert scores.rejected.collect().select("run_id", "query_id").rows() == [("x", "q1")]


def test_rejected_rows_name_the_run_of_a_log_without_a_name() -> None:
    """It is the one that `per_query` names."""
    scores = dr.score(with_column(rank=[1, None, 1]), QRELS, MEASURE, on_bad_rows="reject")
    assert scores.rejected.collect()["run_id"].to_list() == ["run"]


def test_the_context_of_one_run_decides_for_that_run_alone() -> None:
    """Where only x logs the context, q1 of x is declined as before, and y is judged by its hits."""
    x, y = with_column(in_context=[False, False, True]), HITS
    alone = dr.score({"x": x}, QRELS, MEASURE).decisions
    both = dr.score({"x": x, "y": y}, QRELS, MEASURE).decisions
    assert both.row(0) == alone.row(0)
    assert both.select("run_id", "answered_answerable", "declined_answerable").rows() == [("x", 1, 1), ("y", 2, 0)]


@pytest.mark.parametrize("with_requests", [False, True])
def test_runs_of_which_one_logs_requests(with_requests: bool, tmp_path: Path, capsys: Any) -> None:
    """Units of two kinds cannot be put side by side: an error that names both runs and files."""
    write(tmp_path / "x.parquet", with_column(request_id=["r", "r", "s"]))
    write(tmp_path / "y.parquet", HITS)
    write(tmp_path / "qrels.parquet", QRELS)
    write(tmp_path / "requests.parquet", pl.DataFrame({"query_id": ["q1"], "request_id": ["r"]}))
    more = [f"--requests={tmp_path / 'requests.parquet'}"] if with_requests else []
    hits = [f"--hits={run}={tmp_path / f'{run}.parquet'}" for run in "xy"]

    assert main(["score", *hits, f"--qrels={tmp_path / 'qrels.parquet'}", *more]) == 3

    said = capsys.readouterr().err
    assert "hits of run y has no column hits.request_id" in said
    assert "hits of run x has it" in said
    assert "y.parquet" in said
    assert "x.parquet" in said


def test_runs_of_which_one_logs_versions() -> None:
    """Hits without a version count at any: a warning says that the runs are not treated alike."""
    qrels = QRELS.with_columns(doc_version=pl.lit("v1"))
    x = with_column(doc_version=["v0", "v0", "v1"])
    scores = dr.score({"x": x, "y": HITS}, qrels, MEASURE)
    assert scores.summary()["mean"].to_list() == [0.5, 1.0]
    told = scores.findings.filter(pl.col("code") == "versions_not_logged")
    assert told.select("severity", "table", "column", "n_rows", "examples").rows() == [
        ("warning", "hits", "doc_version", 3, ["y"])
    ]
    for scores in (dr.score({"x": x, "z": x}, qrels, MEASURE), dr.score({"x": x, "y": HITS}, QRELS, MEASURE)):
        assert "versions_not_logged" not in scores.findings["code"].to_list()
