"""The contract of the tables that are held whole: qrels and queries."""

from __future__ import annotations

import polars as pl

from docrecall import findings
from docrecall.contract.rules import Checked, Rule, fault_rules, report, split, tagged
from docrecall.options import Options
from docrecall.sources.table import FILE, ROW, Table
from docrecall.tables import LABEL_STATUSES

_PAIR = ("query_id", "doc_id")


def check_qrels(table: Table, options: Options) -> Checked:
    """Read and check the labels.

    The good rows have query_id, doc_id and relevance (Int64; 1 where the column is absent), one per pair, sorted by
    query_id. Identical labels collapse; a pair with several grades is bad in all its rows.
    """
    columns = [*_PAIR, *(["relevance"] if "relevance" in table.columns else [])]
    rows, bad = split(table.read(columns), row_rules(table))
    if "relevance" not in rows.columns:
        rows = rows.with_columns(pl.lit(1, pl.Int64).alias("relevance"))
        bad = bad.with_columns(pl.lit(None, pl.Int64).alias("relevance"))
    duplicates = rows.clear()
    if not _pairs_unique(rows):
        again = ~pl.struct(pl.exclude(FILE, ROW)).is_first_distinct()
        rows, duplicates = rows.filter(~again), rows.filter(again)
        clash = pl.struct(_PAIR).is_duplicated()
        bad = pl.concat([bad, tagged(rows.filter(clash), "label_two_grades", "relevance").select(bad.columns)])
        rows = rows.filter(~clash)
    rejected, found = report(bad, table, ["query_id"], options)
    if duplicates.height:
        found.append(_count("duplicate_labels", table, duplicates))
    if not rows["query_id"].is_sorted():
        rows = rows.sort("query_id")
    return Checked(rows.select(*_PAIR, "relevance"), rejected, duplicates.height, found)


def row_rules(table: Table) -> list[Rule]:
    """The rules that one row of a table other than hits can break by itself."""
    rules = [*fault_rules(table), *(Rule("null_id", c, pl.col(c).is_null()) for c in table.spec.required)]
    if table.spec.name == "qrels" and "relevance" in table.columns:
        rules.append(Rule("relevance_null", "relevance", pl.col("relevance").is_null()))
    if "label_status" in table.columns:
        rules.append(Rule("status_unknown", "label_status", ~pl.col("label_status").is_in(LABEL_STATUSES)))
    return rules


def check_queries(table: Table, options: Options) -> Checked:
    """Read and check the list of queries.

    The good rows have query_id and label_status (null where the column is absent), one per query, sorted. A query
    that stands twice is bad in all its rows, also when they are alike.
    """
    columns = ["query_id", *(["label_status"] if "label_status" in table.columns else [])]
    rows = table.read(columns)
    if "label_status" not in rows.columns:
        rows = rows.with_columns(pl.lit(None, pl.String).alias("label_status"))
    own = row_rules(table)
    repeated = Rule("query_repeated", "query_id", pl.col("query_id").is_duplicated())
    rows, bad = split(rows, [*own[:-1], repeated, own[-1]] if "label_status" in table.columns else [*own, repeated])
    rejected, found = report(bad, table, ["query_id"], options)
    return Checked(rows.select("query_id", "label_status").sort("query_id"), rejected, 0, found)


def _pairs_unique(rows: pl.DataFrame) -> bool:
    """Whether no pair stands twice: distinct 64-bit hashes prove it, equal ones may be chance and deny nothing."""
    key = rows.select(pl.col("query_id").hash(1) ^ pl.col("doc_id").hash(2)).to_series()
    return key.n_unique() == rows.height


def _count(code: str, table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    queries = rows["query_id"].unique()
    return findings.finding(code, table.spec.name, None, rows.height, n_queries=len(queries), examples=queries)


def label_conflicts(queries: pl.DataFrame, qrels: pl.DataFrame) -> list[pl.DataFrame]:
    """Count queries whose stated status the labels contradict.

    Answerable or unlabelled is contradicted by the lack or presence of labels, unanswerable by a label that is
    relevant at the lowest level; a grade of 0 agrees with it.
    """
    stated = queries.filter(pl.col("label_status").is_not_null())
    if stated.is_empty():
        return []
    best = qrels.group_by("query_id").agg(pl.col("relevance").max().alias("best"))
    status, best_grade = pl.col("label_status"), pl.col("best")
    against = stated.join(best, on="query_id", how="left").filter(
        ((status == "answerable") & best_grade.is_null())
        | ((status == "unlabelled") & best_grade.is_not_null())
        | ((status == "unanswerable") & (best_grade >= 1))
    )["query_id"]
    if against.is_empty():
        return []
    return [
        findings.finding(
            "label_conflict", "queries", "label_status", len(against), n_queries=len(against), examples=against
        )
    ]
