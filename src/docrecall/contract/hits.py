"""The contract of hits, for one batch of whole units held as a frame."""

from __future__ import annotations

import polars as pl

from docrecall import findings
from docrecall.contract.rules import Checked, Rule, report, split, tagged
from docrecall.options import Options
from docrecall.sources.table import FILE, LARGEST_RANK, Table


def unit_key(log: Table) -> list[str]:
    """The columns that tell the units of one log apart; a log whose run the caller named has one run."""
    return ["run_id", "query_id"] if "run_id" in log.columns else ["query_id"]


def check_hits(rows: pl.DataFrame, log: Table, options: Options) -> Checked:
    """Check and order a batch of hits.

    rows: all columns of `log.columns` and FILE, whole units, in any order.
    The good rows have the unit key, rank (Int64, from 1, rising within each unit) and doc_id, sorted by unit and rank.
    Every row is good, a collapsed duplicate, or rejected.
    """
    key = unit_key(log)
    rows, bad = split(rows, row_rules(log, options))
    rows = _by_score(rows, options) if options.by_score else rows.with_columns(pl.col("rank").cast(pl.Int64))
    rows, duplicates, clashing = _resolve_repeats(rows, key, options)
    bad = pl.concat([bad, clashing.select(bad.columns)], how="vertical_relaxed")
    rejected, found = report(bad, log, key)
    if duplicates.height:
        found.append(_count("duplicate_hits", duplicates, key))
    if options.by_score:
        tied = rows.filter(pl.struct(*key, "_order").is_duplicated())
        found.append(_count("tied_scores", tied, key, "score"))
    return Checked(_ranked(rows, key, options), rejected, duplicates.height, found)


def row_rules(log: Table, options: Options) -> list[Rule]:
    """The rules that one row can break by itself."""
    ids = [Rule("null_id", column, pl.col(column).is_null()) for column in (*unit_key(log), "doc_id")]
    return [*ids, *(_score_rules() if options.by_score else _rank_rules(options))]


def find_offenders(log: Table, options: Options) -> list[pl.DataFrame]:
    """Look for bad rows in a whole log in one query, and bring in only those that are bad.

    Returns their findings. Repeated ranks are not looked for: they take whole units to be seen.
    """
    rules = row_rules(log, options)
    broken = pl.any_horizontal(rule.broken for rule in rules)
    columns = list(dict.fromkeys([*unit_key(log), "doc_id", *(rule.column for rule in rules)]))
    _, bad = split(log.read(columns, where=broken), rules)
    return report(bad, log, unit_key(log))[1]


def _rank_rules(options: Options) -> list[Rule]:
    rank, first = pl.col("rank"), options.rank_base
    return [
        Rule("rank_null", "rank", rank.is_null()),
        Rule("rank_fraction", "rank", (rank != rank.floor()) | ~rank.cast(pl.Float64).is_finite()),
        Rule("rank_too_large", "rank", rank >= LARGEST_RANK),
        # Zero is told apart from worse, because a log that counts from 0 is common and has a remedy.
        Rule("rank_zero", "rank", (rank == 0) & (first == 1)),
        Rule("rank_below_first", "rank", rank < first),
    ]


def _score_rules() -> list[Rule]:
    score = pl.col("score")
    return [Rule("score_null", "score", score.is_null()), Rule("score_nan", "score", score.is_nan())]


def _by_score(rows: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Add `_order`, the number that decides. Zero has one sign, so that -0.0 and 0.0 tie."""
    precision = pl.Float32 if options.order == "trec_eval" else pl.Float64
    return rows.with_columns((pl.col("score").cast(precision) + 0.0).alias("_order"))


def _resolve_repeats(
    rows: pl.DataFrame, key: list[str], options: Options
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Part rows into those that stand, identical copies of them, and rows whose rank is taken by another row."""
    content = pl.struct(pl.exclude(FILE))
    place = pl.struct(*key, "doc_id", "_order") if options.by_score else pl.struct(*key, "rank")
    # Few logs have any: copies and conflicts both share a place, which is cheap to look for.
    shared = rows.select(place.is_duplicated()).to_series()
    if not shared.any():
        return rows, rows.clear(), tagged(rows.clear(), "", "")
    alone, crowd = rows.filter(~shared), rows.filter(shared).sort(FILE)
    again = crowd.select(~content.is_first_distinct()).to_series()
    left, copies = crowd.filter(~again), crowd.filter(again)
    if options.by_score:
        return pl.concat([alone, left]), copies, tagged(rows.clear(), "", "")
    clash = left.select(place.is_duplicated()).to_series()
    return pl.concat([alone, left.filter(~clash)]), copies, tagged(left.filter(clash), "rank_conflict", "rank")


def _ranked(rows: pl.DataFrame, key: list[str], options: Options) -> pl.DataFrame:
    """Sort by unit and rank, and number the rows where the logged ranks are not the places."""
    wanted = [*key, "rank", "doc_id"]
    if options.order == "score":
        chunk = ["chunk_id"] if "chunk_id" in rows.columns else []
        rows = rows.sort(
            *key, "_order", "doc_id", *chunk, descending=[False] * len(key) + [True] + [False] * (1 + len(chunk))
        )
    elif options.order == "trec_eval":
        # Byte order of the text, as strcmp has it: integers compare as decimal text there.
        text = pl.col("doc_id").cast(pl.String)
        rows = rows.sort(*key, "_order", text, descending=[False] * len(key) + [True, True])
    else:
        rows = rows.sort(*key, "rank")
    if options.by_score or options.ranks == "recount":
        number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(key)
        return rows.with_columns(number.alias("rank")).select(wanted)
    return rows.with_columns(pl.col("rank") + (1 - options.rank_base)).select(wanted)


def _count(code: str, rows: pl.DataFrame, key: list[str], column: str | None = None) -> pl.DataFrame:
    n_units = rows.select(key).n_unique() if rows.height else 0
    return findings.finding(code, "hits", column, rows.height, n_queries=n_units, examples=rows["query_id"].unique())
