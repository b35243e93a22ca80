"""Results against the oracle, bit for bit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

import docrecall as dr
from tests.agreement.case import Case
from tests.agreement.oracle import Answer, Refusal, answer

_NOT_COUNTED_HERE = {
    "near_miss_ids",
    "mostly_without_hits",
    "files_left_out",
    "nothing_scored",
    "no_rank_zero",
    "likely_meant",
    "stale_labels",
}
DECISIONS = [
    *("run_id", "answered_answerable", "declined_answerable", "answered_unanswerable", "declined_unanswerable"),
    *("undecided", "decline_rate", "false_answer_rate", "over_refusal_rate"),
    *("decline_precision", "decline_recall", "decline_f1", "declined_with_gold"),
]


def bits(rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    """Rows with floats as hexadecimal text, so that -0.0 is not 0.0 and the last bit counts."""
    return [tuple(cell.hex() if isinstance(cell, float) else cell for cell in row) for row in rows]


def same(what: str, got: list[Any], wanted: list[Any]) -> None:
    """Compare, and show the first few rows that differ."""
    if got != wanted:
        only_got = [row for row in got if row not in wanted][:3]
        only_wanted = [row for row in wanted if row not in got][:3]
        raise AssertionError(f"{what}: got {only_got}, expected {only_wanted} ({len(got)} and {len(wanted)} rows)")


def check(case: Case) -> int:
    """Score a case, compare everything with the oracle, and give the number of units."""
    wanted = answer(case)
    with tempfile.TemporaryDirectory() as folder:
        scores = _score(case, Path(folder))
        if isinstance(scores, Refusal) or isinstance(wanted, Refusal):
            assert scores == wanted
            return 0
        _compare(case, scores, wanted)
        if case.out:
            _compare_loaded(scores, dr.load(Path(folder) / "out"))
    return len(wanted.per_query)


def _score(case: Case, folder: Path) -> dr.Scores | Refusal:
    try:
        return case.score(folder)
    except dr.DataError as error:
        return Refusal(dict(error.findings.group_by("code").agg(pl.col("n_rows").sum()).iter_rows()))


def _compare(case: Case, scores: dr.Scores, wanted: Answer) -> None:
    per_query = scores.per_query
    request = ["request_id"] if any("request_id" in log.columns for log in case.logs.values()) else []
    key = ["run_id", *request, "query_id"]
    assert per_query.columns == [*key, "status", "n_hits", *case.measures]
    assert all(per_query.schema[m] == pl.Float64 for m in case.measures)
    same("per_query", bits(per_query.iter_rows()), bits(wanted.per_query))
    same("accounting", scores.accounting.rows(), wanted.accounting)
    summary = scores.summary().select("run_id", "measure", "mean", "n", "n_null", "n_eff", "ceiling")
    same("summary", bits(summary.iter_rows()), bits(wanted.summary))
    assert scores.decisions.columns == DECISIONS
    same("decisions", bits(scores.decisions.iter_rows()), bits(wanted.decisions))
    same("rows", [(row[0], row[1:]) for row in scores.rows.iter_rows()], list(wanted.rows.items()))
    found = scores.findings.filter(~pl.col("code").is_in(_NOT_COUNTED_HERE))
    counts = found.group_by("code").agg(pl.col("n_rows", "n_queries").sum())
    found_counts = sorted((code, (n_rows, n_units)) for code, n_rows, n_units in counts.iter_rows())
    same("findings", found_counts, sorted(wanted.findings.items()))
    assert "error" not in scores.findings["severity"], "error findings live in a DataError only"
    assert scores.rejected.collect().height == sum(row[3] for row in wanted.rows.values())
    if len(wanted.per_query) % 3 == 0:  # they cost a second pass over the batches
        matches = scores.matches.collect()
        assert matches.columns == [*key, "doc_id", "relevance", "first_rank", "doc_position"]
        same("matches", bits(matches.iter_rows()), bits(wanted.matches))


def _compare_loaded(scores: dr.Scores, loaded: dr.Scores) -> None:
    assert loaded.per_query.equals(scores.per_query)
    assert loaded.summary().equals(scores.summary())
    assert loaded.accounting.equals(scores.accounting)
    assert loaded.decisions.equals(scores.decisions)
    assert loaded.findings.equals(scores.findings)
    assert loaded.rows.equals(scores.rows)
