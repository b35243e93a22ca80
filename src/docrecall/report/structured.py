"""Scores as plain values: the JSON document of DESIGN section 7, and one flat table with its accounting."""

from __future__ import annotations

from typing import Any

import polars as pl

from docrecall.scores import Scores

SCHEMA_VERSION = 1
_IN_JSON = ("mean", "n", "n_null", "ci_low", "ci_high")


def as_document(scores: Scores) -> dict[str, Any]:
    """Give schema_version, runs (accounting and measures of each), rows and findings. Nulls stay null."""
    summary = scores.summary().partition_by("run_id", as_dict=True)
    runs = []
    for row in scores.accounting.to_dicts():
        run = row.pop("run_id")
        measures = (
            {m["measure"]: {key: m[key] for key in _IN_JSON} for m in summary[run,].to_dicts()} if summary else {}
        )
        runs.append({"run_id": run, "accounting": row, "measures": measures})
    return {
        "schema_version": SCHEMA_VERSION,
        "runs": runs,
        "rows": scores.rows.to_dicts(),
        "findings": scores.findings.to_dicts(),
        "options_digest": scores.options.digest,
    }


def as_table(scores: Scores) -> pl.DataFrame:
    """Give the summary with the accounting of its run in every row, so that no mean stands without it."""
    return scores.summary().join(scores.accounting, on="run_id", how="left", maintain_order="left")
