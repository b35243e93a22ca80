"""The contract of evidence: gold passages and gold chunks."""

from __future__ import annotations

import polars as pl

from docrecall import findings
from docrecall.contract.rules import Checked, Rule, fault_rules, null_rules, report, span_rules, split
from docrecall.options import Options
from docrecall.sources.table import FILE, ROW, Table

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
    types = {"start": pl.Int64, "end": pl.Int64, "doc_version": pl.String, "chunk_id": pl.String}
    rows = rows.with_columns(pl.lit(None, types[c]).alias(c) for c in COLUMNS if c not in rows.columns)
    rows = renamed(rows.select(*COLUMNS, FILE, ROW), aliases)
    copies = rows.clear()
    if not _surely_distinct(rows):
        again = ~pl.struct(COLUMNS).is_first_distinct()
        rows, copies = rows.filter(~again), rows.filter(again)
    if copies.height:
        queries = copies["query_id"].unique()
        found.append(
            findings.finding(
                "duplicate_labels", "evidence", None, copies.height, n_queries=len(queries), examples=queries
            )
        )
    length = pl.col("end") - pl.col("start")
    rows = rows.sort("query_id", "evidence_id", length, "start", "doc_id", "doc_version", nulls_last=False)
    return Checked(rows.select(COLUMNS), rejected, copies.height, found)


def _surely_distinct(rows: pl.DataFrame) -> bool:
    """Whether no row stands twice: distinct 64-bit hashes prove it, equal ones may be chance and deny nothing."""
    key = (
        pl.col("query_id").hash(1) ^ pl.col("evidence_id").hash(2) ^ pl.col("doc_id").hash(3) ^ pl.col("start").hash(4)
    )
    return bool(rows.select(key.n_unique()).item() == rows.height)


def row_rules(table: Table) -> list[Rule]:
    """The rules that one row can break by itself."""
    has = {c: pl.col(c) if c in table.columns else pl.lit(None, pl.Int64) for c in ("start", "end", "chunk_id")}
    nothing = pl.all_horizontal(has[c].is_null() for c in ("start", "end", "chunk_id"))
    rules = [*fault_rules(table), *null_rules(table), Rule("evidence_empty", None, nothing)]
    if "start" in table.columns or "end" in table.columns:
        rules += span_rules(has["start"], has["end"], "start", "end", empty=False)
    return rules


def renamed(rows: pl.DataFrame, aliases: pl.DataFrame) -> pl.DataFrame:
    """Call documents by the name that their aliases lead to. aliases: doc_id, target."""
    if aliases.is_empty():
        return rows
    joined = rows.join(aliases, on="doc_id", how="left", maintain_order="left")
    return joined.with_columns(pl.coalesce("target", "doc_id").alias("doc_id")).drop("target")
