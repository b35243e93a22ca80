"""Tables at a terminal: nothing is cut off, however narrow it is."""

from __future__ import annotations

import io

import polars as pl
import pytest
from rich.console import Console

import docrecall as dr
from docrecall.report.terminal import print_scores

RUNS = [f"retriever-with-a-long-name-{n}" for n in range(5)]


def shown(width: int) -> str:
    hits = pl.DataFrame({"run_id": RUNS, "query_id": ["q"] * 5, "rank": [1] * 5, "doc_id": ["d"] * 5})
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"]})
    scores = dr.score(hits, qrels, ["doc_recall@10", "doc_ndcg@10docs"])
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    print_scores(scores, console)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [70, 120, 200])
def test_runs_and_measures_are_told_in_full(width: int) -> None:
    """Names of runs and measures stand in full beside their means; the table turns where the runs do not fit across."""
    out = shown(width)
    assert "…" not in out
    table = out.split("units scored")[0]
    assert all(run in table for run in RUNS)
    assert "doc_recall@10" in table
    assert "doc_ndcg@10docs" in table
    assert all(len(line.rstrip()) <= width for line in table.splitlines()[:-1])


def test_wide_terminal_has_runs_side_by_side() -> None:
    """Where they fit, runs stand beside each other, one line per measure."""
    assert any(all(run in line for run in RUNS) for line in shown(200).splitlines())
    assert not any(all(run in line for run in RUNS) for line in shown(120).splitlines())
