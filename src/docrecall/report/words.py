"""Scores in words: numbers, accounts and findings as the lines that every printed form shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docrecall import findings
from docrecall.funnel import Funnel, answers_logged
from docrecall.scores import Scores
from docrecall.show import printable

_REASONS = {
    "n_unlabelled": "unlabelled",
    "n_no_relevant": "with nothing relevant",
    "n_unanswerable": "unanswerable",
    "n_stale_labels": "with stale labels",
    "n_rejected": "touched by rejected rows",
}


def number(value: float | None) -> str:
    """Give a mean with four decimals; null is said, never shown as 0."""
    return "null" if value is None else f"{value:.4f}"


def account(row: Mapping[str, Any]) -> str:
    """Say what became of the units of one run, from a row of `accounting`."""
    left_out = [f"{row[column]:,} {words}" for column, words in _REASONS.items() if row[column]]
    no_hits = f" ({row['n_no_hits']:,} without hits, as 0)" if row["n_no_hits"] else ""
    return (
        f"{printable(row['run_id'])}: {row['n_scored']:,} of {row['n_total']:,} units scored{no_hits}"
        f"{'; left out: ' + ', '.join(left_out) if left_out else ''}"
    )


def rows_account(row: Mapping[str, Any]) -> str:
    """Say what became of the rows of one table, from a row of `rows`."""
    parts = [f"{row[c]:,} {c}" for c in ("used", "duplicate", "rejected", "outside") if row[c] or c == "used"]
    return f"{row['table']}: {row['read']:,} rows read = {' + '.join(parts)}"


def accounts(scores: Scores) -> list[str]:
    """Lines for each run: its units, its weights, its ceiling, its decisions; then one per table."""
    return [
        *(account(row) for row in scores.accounting.to_dicts()),
        *limits(scores),
        *_decisions(scores),
        *(rows_account(row) for row in scores.rows.to_dicts()),
    ]


def limits(scores: Scores) -> list[str]:
    """Say where weights leave fewer units than there are, and where the index cannot give all that is relevant."""
    lines = {}
    for row in scores.summary().to_dicts():
        run = printable(row["run_id"])
        if row["n"] and row["n_eff"] != row["n"]:
            lines[run, "weights"] = (
                f"{run}: means are weighed; {row['n']:,} values tell as much as {row['n_eff']:,.1f} of equal weight"
            )
        if row["ceiling"] is not None and row["ceiling"] < 1:
            lines[run, "ceiling"] = (
                f"{run}: doc_recall can reach {number(row['ceiling'])} at most; the index lacks the rest"
            )
    return list(lines.values())


def _decisions(scores: Scores) -> list[str]:
    """Lines on what was answered, where anything was to be decided, or somebody logged it."""
    rows = [row for row in scores.decisions.to_dicts() if scores.reads("requests") or worth_telling(row)]
    lines = [decision(row) for row in rows]
    if rows and not answers_logged(scores):
        logged = [entry["columns"] for entry in scores.inputs if entry["table"] == "hits"]
        in_context = sum("in_context" in columns for columns in logged)
        where = "hit in the context" if in_context == len(logged) else "hit"
        if 0 < in_context < len(logged):
            where = "hit (in the context, where in_context is logged)"
        lines.append(f"nobody logged what was answered (requests.answered): any {where} counts as an answer")
    return lines


def worth_telling(row: Mapping[str, Any]) -> bool:
    """Whether anything was to be decided: a question without an answer."""
    return bool(row["answered_unanswerable"] + row["declined_unanswerable"])


def decision(row: Mapping[str, Any]) -> str:
    """Say what was answered and declined in one run, from a row of `decisions`."""
    unanswerable = row["answered_unanswerable"] + row["declined_unanswerable"]
    answerable = row["answered_answerable"] + row["declined_answerable"]
    gold = f", {row['declined_with_gold']:,} of them with gold retrieved" if row["declined_with_gold"] else ""
    run = printable(row["run_id"])
    return (
        f"{run}: answered {row['answered_unanswerable']:,} of {unanswerable:,} unanswerable units; "
        f"declined {row['declined_answerable']:,} of {answerable:,} answerable ones{gold}"
    )


def funnel_notes(funnel: Funnel) -> list[str]:
    """Lines on steps that are not there, and on units that passed one for want of a label."""
    return [
        *(f"left out: {line}" for line in funnel.left_out),
        *(
            f"{printable(row['run_id'])}: {row['unknown']:,} units pass {row['step']} because no label speaks of it"
            for row in funnel.table.to_dicts()
            if row["unknown"]
        ),
    ]


def notices(scores: Scores) -> list[str]:
    """One line per finding."""
    return [f"{row['severity']}: {findings.describe(row)}" for row in scores.findings.to_dicts()]
