"""The contract of evidence: gold passages and gold chunks."""

from __future__ import annotations

import polars as pl

from docrecall.contract.frames import renamed, surely_distinct, with_nulls
from docrecall.contract.rules import Checked, Rule, fault_rules, null_rules, of_queries, report, span_rules, split
from docrecall.options import Options
from docrecall.sources.table import FILE, ROW, Table

_OPTIONAL = {"start": pl.Int64(), "end": pl.Int64(), "doc_version": pl.String(), "chunk_id": pl.String()}
COLUMNS = ("query_id", "evidence_id", "doc_id", "start", "end", "chunk_id", "doc_version")


def check_evidence(table: Table, aliases: pl.DataFrame, options: Options) -> Checked:
    """Read and check the passages.

    The good rows have COLUMNS, null where a column is absent or not used, each once, documents by the name that
    aliases lead to. They are sorted by query_id, evidence_id, then length, start, document and version, so that of
    alternatives that are covered alike the first is chosen.
    """
    columns = [c for c in COLUMNS if c in table.columns and c in table.used]
    rows, bad = split(table.read(columns), row_rules(table))
    rejected, found = report(bad, table, ["query_id"], options)
    rows = renamed(with_nulls(rows, _OPTIONAL).select(*COLUMNS, FILE, ROW), aliases)
    copies = rows.clear()
    if not surely_distinct(rows, "query_id", "evidence_id", "doc_id", "start"):
        again = ~pl.struct(COLUMNS).is_first_distinct()
        rows, copies = rows.filter(~again), rows.filter(again)
    found.append(of_queries("duplicate_labels", "evidence", None, copies))
    length = pl.col("end") - pl.col("start")
    rows = rows.sort("query_id", "evidence_id", length, "start", "doc_id", "doc_version", nulls_last=False)
    return Checked(rows.select(COLUMNS), rejected, copies.height, found)


def row_rules(table: Table) -> list[Rule]:
    """The rules that one row can break by itself."""
    has = {c: pl.col(c) if c in table.columns else pl.lit(None, pl.Int64) for c in ("start", "end", "chunk_id")}
    nothing = pl.all_horizontal(has[c].is_null() for c in ("start", "end", "chunk_id"))
    rules = [*fault_rules(table), *null_rules(table), Rule("evidence_empty", None, nothing)]
    if "start" in table.columns or "end" in table.columns:
        rules += span_rules(has["start"], has["end"], "start", "end", empty=False)
    return rules
