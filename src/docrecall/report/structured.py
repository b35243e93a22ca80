"""Scores as plain values: the JSON document of DESIGN section 7, and one flat table with its accounting."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import polars as pl

from docrecall.scores import Scores
from docrecall.summary import family

SCHEMA_VERSION = 1
_IN_JSON = ("mean", "n", "n_null", "n_eff", "ci_low", "ci_high", "ci_method", "ceiling")


def as_document(scores: Scores) -> dict[str, Any]:
    """Give schema_version, runs (accounting, decisions and measures of each), rows, findings, intervals, options.

    `slices` has the rows of the summary by slice, where one was asked for, and `slice_tests` how they were judged.
    Nulls stay null.
    """
    decisions = {row.pop("run_id"): row for row in scores.decisions.to_dicts()}
    summary = scores.summary().partition_by("run_id", as_dict=True)
    runs = []
    for row in scores.accounting.to_dicts():
        run = row.pop("run_id")
        measures = (
            {m["measure"]: {key: m[key] for key in _IN_JSON} for m in summary[run,].to_dicts()} if summary else {}
        )
        runs.append({"run_id": run, "accounting": row, "decisions": decisions[run], "measures": measures})
    return {
        "schema_version": SCHEMA_VERSION,
        "runs": runs,
        "rows": scores.rows.to_dicts(),
        "findings": scores.findings.to_dicts(),
        "intervals": scores.intervals.plain(),
        **({} if scores.slices is None else _slices(scores.slices)),
        "options": asdict(scores.options),
        "options_digest": scores.options.digest,
    }


def _slices(slices: pl.DataFrame) -> dict[str, Any]:
    tests = {"test": "permutation", "adjustment": "benjamini-hochberg", "family": family(slices)}
    return {"slices": plain_rows(slices), "slice_tests": tests}


def plain_rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame whose slices may be of any type; what JSON has no word for is text there."""
    spans = pl.selectors.duration()
    named = (pl.selectors.temporal() - spans) | pl.selectors.decimal() | pl.selectors.enum()
    floats = pl.selectors.float()
    finite = pl.when(floats.is_finite() | floats.is_null()).then(floats)
    return frame.with_columns(named.cast(pl.String), spans.dt.to_string(), finite.name.keep()).to_dicts()


def as_table(scores: Scores) -> pl.DataFrame:
    """Give the summary, by slice where that was asked for, with the accounts in every row: no mean stands without them.

    The columns of `accounting` and `decisions` are those of the row's run; of `rows` there is one per table and fate,
    such as hits_read and qrels_duplicate, and of the policies one each, the same in every row.
    """
    fates = [c for c in scores.rows.columns if c != "table"]
    rows = [
        pl.lit(row[fate], pl.Int64).alias(f"{row['table']}_{fate}") for row in scores.rows.to_dicts() for fate in fates
    ]
    joined = scores.summary() if scores.slices is None else scores.slices.with_columns(family=family(scores.slices))
    for accounts in (scores.accounting, scores.decisions):
        joined = joined.join(accounts, on="run_id", how="left", maintain_order="left")
    return joined.with_columns(rows).with_columns(pl.lit(v).alias(name) for name, v in asdict(scores.options).items())
