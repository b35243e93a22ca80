"""Scores in words: numbers, accounts and findings as the lines that every printed form shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from docrecall import findings
from docrecall.funnel import Funnel, answers_logged
from docrecall.scores import Scores
from docrecall.show import printable
from docrecall.summary import family

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


def interval(row: Mapping[str, Any], *, signed: bool = False) -> str:
    """Give the ends of an interval; nothing where there is none."""
    if row["ci_low"] is None:
        return ""
    sign = "+" if signed else ""
    return f"[{row['ci_low']:{sign}.3f}, {row['ci_high']:{sign}.3f}]"


def mean_cell(row: Mapping[str, Any]) -> str:
    """The mean, its interval, its n where scored units have no value, and its ceiling where that is below 1."""
    notes = [f"n={row['n']:,}"] if row["n_null"] else []
    if row["ceiling"] is not None and row["ceiling"] < 1:
        notes.append(f"at most {number(row['ceiling'])}")
    mean = f"{number(row['mean'])} {interval(row)}".rstrip()
    return f"{mean} ({', '.join(notes)})" if notes else mean


def rows_of_means(summary: pl.DataFrame) -> tuple[list[str], list[list[str]], int]:
    """Head and rows of a table with one line per run, slice and measure, and how many of its columns are words."""
    rows = summary.to_dicts()
    names = summary.columns[: summary.columns.index("mean")]
    intervals = ["interval"] if summary["ci_low"].is_not_null().any() else []
    tests = ["p", "p_adjusted"] if family(summary) else []
    cells = [
        [
            *("null" if r[c] is None else str(r[c]) for c in names),
            number(r["mean"]),
            *(interval(r) for _ in intervals),
            f"{r['n']:,}",
            f"{r['n_null']:,}",
            *(p_value(r[test]) for test in tests),
        ]
        for r in rows
    ]
    heads = [*names, "mean", *intervals, "n", "n_null", *(test.removeprefix("p_") for test in tests)]
    return *with_ceiling(heads, cells, rows), len(names)


def p_value(p: float | None) -> str:
    """A p value with two digits that count; nothing where there is none."""
    return "" if p is None else f"{p:.4f}" if p >= 0.001 else f"{p:.1e}"


def how_intervals(scores: Scores) -> list[str]:
    """Say how intervals were made, where there are any, and what was not judged."""
    frames = [frame for frame in (scores.summary(), scores.slices) if frame is not None]
    methods = sorted({method for frame in frames for method in frame["ci_method"].drop_nulls()})
    if not methods:
        return []
    parting, how = scores.intervals
    together = (
        f", units of equal {printable(parting.cluster)} together, those without one alone" if parting.cluster else ""
    )
    lines = [
        f"intervals: {how.level:.0%} bootstrap ({', '.join(methods)}), {how.resamples:,} resamples, "
        f"seed {how.seed}{together}"
    ]
    if parting.by:
        n = 0 if scores.slices is None else family(scores.slices)
        lines.append(
            f"p: permutation test of each slice against the rest of its run, two-sided, {how.resamples:,} resamples, "
            f"seed {how.seed}; adjusted by Benjamini-Hochberg over {n:,} test{'s'[: n != 1]}"
        )
        few = 0 if scores.slices is None else scores.slices.filter(pl.col("n") < parting.min_n).height
        if few:
            lines.append(f"not judged: {few:,} slices and measures with fewer than {parting.min_n:,} values")
    return lines


def with_ceiling(
    columns: list[str], cells: list[list[Any]], rows: list[dict[str, Any]]
) -> tuple[list[str], list[list[Any]]]:
    """Add a column for the ceiling to a table of the rows of `summary`, where any has one."""
    if all(row["ceiling"] is None for row in rows):
        return columns, cells
    ceilings = ["" if row["ceiling"] is None else number(row["ceiling"]) for row in rows]
    return [*columns, "ceiling"], [[*cell, ceiling] for cell, ceiling in zip(cells, ceilings, strict=True)]


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
    """Lines for each run: its units, its weights, its ceiling, its decisions; one per table; one for the policies."""
    return [
        *(account(row) for row in scores.accounting.to_dicts()),
        *how_intervals(scores),
        *limits(scores),
        *_decisions(scores),
        *(rows_account(row) for row in scores.rows.to_dicts()),
        *([f"options: {policies(scores)}"] if scores.options.changed else []),
    ]


def policies(scores: Scores) -> str:
    """The policies that are not the default, as they are passed."""
    return ", ".join(f"{name}={value!r}" for name, value in scores.options.changed.items())


def limits(scores: Scores) -> list[str]:
    """Say where weights leave fewer units than there are, and where the index cannot give all that is relevant."""
    lines = {}
    for row in scores.summary().to_dicts():
        run = printable(row["run_id"])
        if row["n"] and row["n_eff"] is None:
            lines[run, "weights"] = f"{run}: all weights of {row['n']:,} values are 0, so there is no mean"
        elif row["n"] and row["n_eff"] != row["n"]:
            lines[run, "weights"] = (
                f"{run}: means are weighed; {row['n']:,} values tell as much as {row['n_eff']:,.1f} of equal weight"
            )
        if row["ceiling"] is not None and row["ceiling"] < 1:
            lines[run, "ceiling"] = (
                f"{run}: doc_recall can reach {number(row['ceiling'])} at most; the index does not serve the rest"
            )
    return list(lines.values())


def _decided_runs(scores: Scores) -> list[dict[str, Any]]:
    """The rows of `decisions` where anything was to be decided, or somebody logged it."""
    return [row for row in scores.decisions.to_dicts() if answers_logged(scores) or worth_telling(row)]


def decision_table(scores: Scores) -> tuple[list[str], list[list[str]]] | None:
    """Head and rows of a table of the decisions' rates, one line per run; None where nothing was to be decided."""
    rows = _decided_runs(scores)
    rates = [name for name, dtype in scores.decisions.schema.items() if dtype.is_float()]
    cells = [[row["run_id"], *(number(row[rate]) for rate in rates)] for row in rows]
    return (["decisions of", *rates], cells) if rows else None


def _decisions(scores: Scores) -> list[str]:
    """Lines on what was answered, where anything was to be decided, or somebody logged it."""
    rows = _decided_runs(scores)
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
