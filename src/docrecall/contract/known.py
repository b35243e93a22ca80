"""The tables that are held whole, checked and ready for the kernel."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from docrecall import findings
from docrecall.contract.hits import check_rank_base
from docrecall.contract.ids import check_ids
from docrecall.contract.labels import check_qrels, check_queries, label_conflicts
from docrecall.contract.rules import Checked
from docrecall.contract.schema import like
from docrecall.kernel.labels import Labels
from docrecall.options import Options
from docrecall.sources.inputs import Inputs
from docrecall.sources.table import Table, collect


class Known(NamedTuple):
    """Labels for the kernel, the checks that they came from, and everything found on the way, on all tables."""

    labels: Labels
    qrels: Checked
    queries: Checked | None
    findings: list[pl.DataFrame]


def check_known(inputs: Inputs, options: Options) -> Known:
    """Read and check qrels and queries, and look at what footers and names tell about all tables.

    Raises DataError for ids that would be taken for one another and for hits of another run than the caller named:
    no set of rows could be set aside to mend that.
    """
    of_tables = [f for table in inputs.all() for f in check_ids(table)]
    of_tables += [f for log in inputs.logs for f in _other_run(log)]
    findings.raise_errors(findings.merge(of_tables))
    qrels = check_qrels(inputs.qrels, options)
    queries = check_queries(inputs.queries, options) if inputs.queries else None
    checks = [qrels, *([queries] if queries else [])]
    rejected = [check.rejected["query_id"].drop_nulls().unique() for check in checks]
    listed = queries.rows if queries else None
    found = [f for check in checks for f in check.findings]
    if listed is not None:
        found += label_conflicts(listed, qrels.rows)
    found += [f for log in inputs.logs for f in check_rank_base(log, options)]
    for table in inputs.all():
        if table.left_out:
            found.append(findings.finding("files_left_out", table.spec.name, None, table.left_out))
    for name, column in _not_applied(inputs):
        found.append(findings.finding("not_compared", name, column, 1))
    for table in inputs.all():
        found += _likely_meant(table)
    labels = Labels(qrels.rows, listed, pl.concat(rejected).unique(), rejected[-1] if queries else rejected[0].clear())
    return Known(labels, qrels, queries, found)


def _not_applied(inputs: Inputs) -> list[tuple[str, str]]:
    """(table, column) of what has a meaning in the design that this version does not apply yet."""
    found = []
    if "doc_version" in inputs.qrels.columns and any("doc_version" in log.columns for log in inputs.logs):
        found.append(("hits", "doc_version"))
    if inputs.queries and "weight" in inputs.queries.columns:
        found.append(("queries", "weight"))
    return found


def _likely_meant(table: Table) -> list[pl.DataFrame]:
    """Find columns that nobody reads and that go by a usual word for one that is taken for granted instead.

    Labels without a relevance have grade 1, also where a column `grade` says 0; lists without a rank are in order.
    """
    part = table.parts[0]
    granted = {"qrels": "relevance", "hits": "rank"}.get(table.spec.name)
    if granted is None or granted in part.names or part.tmap.source(granted):
        return []
    if granted in part.schema and table.spec.name == "qrels":  # a group of a pattern
        return []
    used = {name for _, source in part.tmap.columns for name in source.names}
    used |= {split.column for split in part.tmap.splits}
    free = [name for name in part.names if name not in used and name not in table.spec.columns]
    name = like(granted, free, nearly=False)
    return [findings.finding("likely_meant", table.spec.name, granted, 1, examples=[name])] if name else []


def _other_run(log: Table) -> list[pl.DataFrame]:
    """Find rows of a log whose run the caller named that say another run."""
    if log.run is None or "run_id" not in log.columns:
        return []
    found = []
    for part in log.parts:
        other = log.scan(part, ["run_id"]).filter(pl.col("run_id").ne_missing(pl.lit(log.run))).select("run_id")
        runs = collect(other, [part])["run_id"]
        if len(runs):
            found.append(findings.finding("other_run", "hits", "run_id", len(runs), examples=runs, file=part.file))
    return found
