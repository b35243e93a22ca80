"""The contract of labels, and of the list of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from docrecall.contract.frames import renamed, surely_distinct, with_nulls
from docrecall.contract.pieces import MOST_HELD, pieces, read_piece
from docrecall.contract.rules import Checked, Rule, fault_rules, null_rules, of_queries, report, split, tagged
from docrecall.options import Options
from docrecall.sources.table import FILE, ROW, Table
from docrecall.tables import LABEL_STATUSES

_PAIR = ("query_id", "doc_id")


@dataclass(frozen=True)
class Pieces:
    """Good labels that are read, and checked again, when they are wanted. starts: the row where each piece begins.

    first, last: the queries at the ends of each piece, of those that have good labels. n_rows: how many these are.
    """

    table: Table
    aliases: pl.DataFrame
    starts: Sequence[int]
    sizes: Sequence[int]
    first: pl.Series
    last: pl.Series
    schema: pl.Schema
    n_rows: int

    def load(self, number: int) -> pl.DataFrame:
        """Read the good labels of a piece."""
        rows = read_piece(self.table, _columns(self.table), self.starts[number], self.sizes[number])
        return _sift(rows, self.table, self.aliases).rows


@dataclass(frozen=True)
class CheckedLabels(Checked):
    """Labels after their check. pieces: where they are too many to be held, what reads them; `rows` has none then."""

    pieces: Pieces | None = None

    @property
    def n_good(self) -> int:
        """How many good rows there are."""
        return self.rows.height if self.pieces is None else self.pieces.n_rows


class _Sifted(NamedTuple):
    """Good labels, bad ones, those that were there already, and how many met others through an alias."""

    rows: pl.DataFrame
    bad: pl.DataFrame
    duplicates: pl.DataFrame
    n_merged: int


def check_qrels(
    table: Table,
    aliases: pl.DataFrame,
    options: Options,
    *,
    in_pieces: bool = False,
    before_whole: Callable[[], None] = lambda: None,
) -> CheckedLabels:
    """Read and check the labels.

    The good rows have query_id, doc_id, relevance (Int64; 1 where the column is absent) and doc_version if it is
    used, one per pair, sorted by query_id. Identical labels collapse; a pair with several grades or versions is bad in
    all its rows. Labels that meet through an alias keep the highest grade.

    in_pieces: whether they may stay where they are, if they are many and sorted by query. before_whole: called before
    labels that are many are read whole all the same.
    """
    if table.n_rows > MOST_HELD:
        found = _check_in_pieces(table, aliases, options) if in_pieces else None
        if found is not None:
            return found
        before_whole()
    sifted = _sift(table.read(_columns(table)), table, aliases)
    rejected, found_bad = report(sifted.bad, table, ["query_id"], options)
    found_bad.append(of_queries("duplicate_labels", "qrels", None, sifted.duplicates))
    return CheckedLabels(sifted.rows, rejected, sifted.duplicates.height + sifted.n_merged, found_bad)


def _columns(table: Table) -> list[str]:
    return [*_PAIR, *(c for c in ("relevance", "doc_version") if c in table.columns and c in table.used)]


def _check_in_pieces(table: Table, aliases: pl.DataFrame, options: Options) -> CheckedLabels | None:
    """Check labels piece by piece; None where they are not sorted by query."""
    starts, sizes, ends = [], [], []
    bad, duplicates, n_collapsed, n_rows = [], [], 0, 0
    schema: pl.Schema | None = None
    for piece in pieces(table, _columns(table)):
        if piece is None:
            return None
        start, rows = piece
        sifted = _sift(rows, table, aliases)
        schema = sifted.rows.schema
        bad.append(sifted.bad)
        duplicates.append(of_queries("duplicate_labels", "qrels", None, sifted.duplicates))
        n_collapsed += sifted.duplicates.height + sifted.n_merged
        n_rows += sifted.rows.height
        if sifted.rows.height:
            starts.append(start)
            sizes.append(rows.height)
            ends.append(sifted.rows["query_id"].gather([0, -1]))
    assert schema is not None, "tables that are checked in pieces have rows"
    rejected, found = report(pl.concat(bad), table, ["query_id"], options)
    found += duplicates
    both = pl.concat([pl.Series("query_id", [], dtype=schema["query_id"]), *ends])
    read = Pieces(table, aliases, starts, sizes, both.gather_every(2), both.gather_every(2, 1), schema, n_rows)
    return CheckedLabels(schema.to_frame(), rejected, n_collapsed, found, read)


def _sift(rows: pl.DataFrame, table: Table, aliases: pl.DataFrame) -> _Sifted:
    """Part labels, all of their queries, into good and bad ones."""
    rows, bad = split(rows, row_rules(table))
    if "relevance" not in rows.columns:
        rows = rows.with_columns(pl.lit(1, pl.Int64).alias("relevance"))
        bad = bad.with_columns(pl.lit(None, pl.Int64).alias("relevance"))
    duplicates = rows.clear()
    if not surely_distinct(rows, *_PAIR):
        again = ~pl.struct(pl.exclude(FILE, ROW)).is_first_distinct()
        rows, duplicates = rows.filter(~again), rows.filter(again)
        twice = pl.struct(_PAIR).is_duplicated()
        grades = twice & (pl.col("relevance").n_unique().over(_PAIR) > 1)
        for clash, reason, column in (
            (grades, "label_two_grades", "relevance"),
            (twice, "label_two_versions", "doc_version"),
        ):
            marked = rows.with_columns(clash.alias("_clash"))
            rows = marked.filter(~pl.col("_clash")).drop("_clash")
            clashing = tagged(marked.filter("_clash").drop("_clash"), reason, column)
            bad = pl.concat([bad, clashing.select(bad.columns)])
    rows, n_merged = _merged(rows, aliases)
    if not rows["query_id"].is_sorted():
        rows = rows.sort("query_id")
    versions = [c for c in rows.columns if c == "doc_version"]
    return _Sifted(rows.select(*_PAIR, "relevance", *versions), bad, duplicates, n_merged)


def _merged(rows: pl.DataFrame, aliases: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Labels by the names that aliases lead to; of those that meet there the highest grade stays."""
    if aliases.is_empty():
        return rows, 0
    named = renamed(rows, aliases)
    version = ["doc_version"] if "doc_version" in rows.columns else []
    best = named.sort("relevance", *version, descending=[True, *[False] * len(version)], nulls_last=False)
    kept = best.unique(_PAIR, keep="first", maintain_order=True)
    return kept, rows.height - kept.height


def row_rules(table: Table) -> list[Rule]:
    """The rules that one row of a table other than hits and evidence can break by itself."""
    rules = [*fault_rules(table), *null_rules(table)]
    if table.spec.name == "qrels" and "relevance" in table.columns:
        rules.append(Rule("relevance_null", "relevance", pl.col("relevance").is_null()))
    if "label_status" in table.columns:
        rules.append(Rule("status_unknown", "label_status", ~pl.col("label_status").is_in(LABEL_STATUSES)))
    if table.spec.name == "queries" and "weight" in table.columns:
        weight = pl.col("weight")
        rules.append(Rule("weight_invalid", "weight", (weight < 0) | ~weight.is_finite()))
    return rules


def check_queries(table: Table, options: Options) -> Checked:
    """Read and check the list of queries.

    The good rows have query_id, label_status (null where the column is absent) and, where the table has it, weight
    (null is 1), one per query, sorted. A query that stands twice is bad in all its rows, also when they are alike.
    """
    columns = [c for c in ("query_id", "label_status", "weight") if c in table.columns]
    rows = table.read(columns)
    rows = with_nulls(rows, {"label_status": pl.String()})
    own = row_rules(table)
    repeated = Rule("query_repeated", "query_id", pl.col("query_id").is_duplicated())
    alone = [rule for rule in own if rule.code not in ("status_unknown", "weight_invalid")]
    rows, bad = split(rows, [*alone, repeated, *own[len(alone) :]])
    rejected, found = report(bad, table, ["query_id"], options)
    rows = rows.select("query_id", "label_status", *(["weight"] if "weight" in columns else [])).sort("query_id")
    return Checked(rows.with_columns(pl.col(c).fill_null(1.0) for c in columns if c == "weight"), rejected, 0, found)


def label_conflicts(queries: pl.DataFrame, qrels: Callable[[], Iterable[pl.DataFrame]]) -> list[pl.DataFrame]:
    """Count queries whose stated status the labels contradict.

    Answerable or unlabelled is contradicted by the lack or presence of labels, unanswerable by a label that is
    relevant at the lowest level; a grade of 0 agrees with it. qrels: gives the labels, those of a query in one frame.
    """
    stated = queries.filter(pl.col("label_status").is_not_null())
    if stated.is_empty():
        return []
    best = pl.concat([rows.group_by("query_id").agg(pl.col("relevance").max().alias("best")) for rows in qrels()])
    status, best_grade = pl.col("label_status"), pl.col("best")
    against = stated.join(best, on="query_id", how="left").filter(
        ((status == "answerable") & best_grade.is_null())
        | ((status == "unlabelled") & best_grade.is_not_null())
        | ((status == "unanswerable") & (best_grade >= 1))
    )
    return [of_queries("label_conflict", "queries", "label_status", against)]
