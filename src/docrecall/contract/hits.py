"""The contract of hits, for one batch of whole units held as a frame."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from docrecall import findings
from docrecall.contract.rules import Checked, Rule, chunk_rules, fault_rules, report, split, tagged, unknown_chunks
from docrecall.options import Options
from docrecall.sources.table import FAULT, FILE, LARGEST_RANK, ROW, WIDE, Table, collect
from docrecall.tables import is_sorted_by, unit_key

# What tells chunks of one document with one score apart, in the order of `reference.py`.
_CONTENT = ("chunk_id", "doc_version", "chunk_start", "chunk_end", "n_tokens", "in_context")
_FIRST_ROWS = 1_000
_MOST_PLACE_BITS = 40  # of a word, for rank and row: 24 are left to tell units apart
_WORD = (1 << 64) - 1


def read_columns(log: Table) -> list[str]:
    """The columns of a log that the kernel reads, besides rank, which it is given as the policy counts it."""
    optional = ["doc_version", "chunk_id", "chunk_start", "chunk_end", "n_tokens", "in_context"]
    if not log.requires("score"):  # scores that order the hits are spent on that
        optional.append("score")
    return ["query_id", "doc_id", *(c for c in optional if c in log.columns and c in log.used)]


def check_hits(rows: pl.DataFrame, log: Table, options: Options) -> Checked:
    """Check and order a batch of hits.

    rows: all columns of `log.columns`, as `Table.rows_of` gives them, whole units, in any order.
    The good rows have the unit key, rank (Int64, from 1, rising within each unit) and `read_columns`; the rows of a
    unit stand together. Every row is good, a collapsed duplicate, or rejected.
    """
    key = unit_key(log.columns)
    rows, bad = split(rows, row_rules(log, options))
    rows, place = placed(rows, key, log.used, options)
    rows, duplicates, clashing = _resolve_repeats(rows, place, options)
    bad = pl.concat([bad, clashing.select(bad.columns)], how="vertical_relaxed")
    rejected, found = report(bad, log, key, options)
    if duplicates.height:
        found.append(_count("duplicate_hits", duplicates, key))
    if options.by_score:
        same = _meets_neighbour(["_unit", "_order"])
        found.append(_count("tied_scores", rows.filter(same), key, "score"))
    rank = pl.col("rank") + (1 - options.rank_base) if not options.by_score else pl.col("_unit")
    if options.by_score or options.ranks == "recount":
        rank = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("_unit")
    others = [c for c in read_columns(log) if c not in key]
    return Checked(rows.select(*key, rank.alias("rank"), *others), rejected, duplicates.height, found)


def row_rules(log: Table, options: Options, *, values: bool = True) -> list[Rule]:
    """The rules that one row can break by itself. values: whether those of `value_rules` are among them."""
    own = [c for c in (*unit_key(log.columns), "doc_id", "chunk_id") if c in log.columns and c not in log.looked_up]
    ids = [Rule("null_id", c, pl.col(c).is_null()) for c in own if c != "chunk_id" or log.looked_up]
    if log.looked_up:
        ids += unknown_chunks(log)
    order = _score_rules() if options.by_score else _rank_rules(options)
    return [*fault_rules(log), *ids, *order, *(value_rules(log) if values else [])]


def value_rules(log: Table) -> list[Rule]:
    """The rules of columns that only some measures read; in other runs they may hold anything."""
    read = read_columns(log)
    rules = chunk_rules([c for c in read if c not in log.looked_up])  # of chunks that were checked there
    if "in_context" in read and log.requires("in_context"):
        rules.append(Rule("context_null", "in_context", pl.col("in_context").is_null()))
    return rules


def check_rank_base(log: Table, options: Options) -> list[pl.DataFrame]:
    """Find a log that is said to count ranks from 0 and has no rank 0 anywhere. Costs nothing for other logs."""
    if options.by_score or options.rank_base != 0 or not log.n_rows:
        return []
    for parts in log.handfuls():
        if collect(log.scan(parts, ["rank"]).filter(pl.col("rank") == 0).head(1), parts).height:
            return []
    return [findings.finding("no_rank_zero", "hits", "rank", log.n_rows)]


def find_offenders(log: Table, options: Options) -> list[pl.DataFrame]:
    """Look for bad rows in a whole log, and bring in only those that are bad.

    Returns their findings. Repeated ranks are not looked for: they take whole units to be seen. Ids are read only where
    there is a bad row or a file may have a null among them: to decode them is most of the work.
    """
    rules = row_rules(log, options)
    doubtful = [rule for rule in rules if rule.code != "null_id" or not _filled(log, rule.column)]
    if log.read(_read_by(doubtful), where=_broken(doubtful)).is_empty():
        return []
    broken, named = _broken(rules), _read_by(rules)
    columns = list(dict.fromkeys([*unit_key(log.columns), "doc_id", *(["chunk_id"] if log.looked_up else []), *named]))
    _, bad = split(log.read(columns, where=broken), rules)
    return report(bad, log, unit_key(log.columns), options)[1]


def _filled(log: Table, column: str | None) -> bool:
    """Whether no file has a null in a column of ids, nor a number that is none as an id."""
    return column is not None and all(
        part.schema[column] not in WIDE and not part.null_count(column) for part in log.parts
    )


def _broken(rules: Sequence[Rule]) -> pl.Expr:
    return pl.any_horizontal(rule.broken for rule in rules)


def _read_by(rules: Sequence[Rule]) -> list[str]:
    """The columns that rules look at, but for what was wrong when a row was read."""
    return list(dict.fromkeys(c for rule in rules for c in rule.broken.meta.root_names() if c != FAULT))


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


def placed(
    rows: pl.DataFrame, key: list[str], used: Collection[str], options: Options
) -> tuple[pl.DataFrame, list[str]]:
    """Sort rows by unit and then as the policy orders them; give the columns that name a place in that order.

    No columns where each place was seen to be taken once. used: the columns that a tie may be broken by.
    To sort by text takes ten times as long as by a number, and the order of units means nothing here.
    """
    if not options.by_score:
        rows = rows.with_columns(pl.col("rank").cast(pl.Int64))
        order = [*key, "rank"]
        if options.ranks == "logged" and is_sorted_by(rows.head(_FIRST_ROWS), order) and is_sorted_by(rows, order):
            return rows, []
        by_word = _by_word(rows, key) if options.ranks == "logged" else None
        if by_word is not None:
            return by_word, ["_order"]
    units = rows.select(key).unique().with_row_index("_unit")
    rows = rows.join(units, on=key, how="left", maintain_order="left").with_columns(pl.col("_unit").cast(pl.Int64))
    if options.by_score:
        # Zero has one sign, so that -0.0 and 0.0 tie.
        precision = pl.Float32 if options.order == "trec_eval" else pl.Float64
        rows = rows.with_columns((pl.col("score").cast(precision) + 0.0).alias("_order"))
        # trec_eval compares names with strcmp: the bytes of their text, also of numbers.
        trec_eval = options.order == "trec_eval"
        doc = pl.col("doc_id").cast(pl.String) if trec_eval else pl.col("doc_id")
        content = [c for c in _CONTENT if c in rows.columns and c in used]
        rows = rows.sort("_unit", "_order", doc, *content, descending=[False, True, trec_eval, *[False] * len(content)])
        return rows, ["_unit", "_order", "doc_id"]
    return rows.sort("_unit", "rank"), ["_unit", "rank"]


def _by_word(rows: pl.DataFrame, key: list[str]) -> pl.DataFrame | None:
    """Sort by one word that holds some bits of the unit's hash, its rank, and the number of the row.

    Words without anything beside them are sorted in a tenth of the time of a frame, and tell the order of all columns.
    None where too few bits are left, or where units share these bits, which is seen when they have become neighbours.
    """
    if rows.is_empty():
        return None
    row_bits = (rows.height - 1).bit_length()
    rank_bits = int(rows.select(pl.col("rank").max()).item()).bit_length()
    if row_bits + rank_bits > _MOST_PLACE_BITS:
        return None
    bits = pl.struct(key).hash() if len(key) > 1 else pl.col(key[0]).hash()
    place = pl.col("rank").cast(pl.UInt64) * (1 << row_bits) + pl.int_range(pl.len(), dtype=pl.UInt64)
    unit_bits = pl.lit(_WORD >> (row_bits + rank_bits) << (row_bits + rank_bits), pl.UInt64)
    word = np.sort(rows.select((bits & unit_bits) | place).to_series().to_numpy())
    row = (word & np.uint64((1 << row_bits) - 1)).astype(np.uint32)
    # Out of the many pieces that a read gives, a gather takes four times as long.
    rows = rows.rechunk()[pl.Series(row)].with_columns(pl.Series("_order", word >> np.uint64(row_bits)))
    unit = pl.col("_order") // (1 << rank_bits)
    other = pl.any_horizontal(pl.col(c) != pl.col(c).shift() for c in key)
    return None if rows.select(((unit == unit.shift()) & other).any()).item() else rows


def _meets_neighbour(columns: list[str]) -> pl.Expr:
    """Whether a row of a sorted frame agrees with the row before or after it."""
    before = pl.all_horizontal(pl.col(c) == pl.col(c).shift() for c in columns).fill_null(False)
    after = pl.all_horizontal(pl.col(c) == pl.col(c).shift(-1) for c in columns).fill_null(False)
    return before | after


def _resolve_repeats(
    rows: pl.DataFrame, place: list[str], options: Options
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Part sorted rows into those that stand, identical copies of them, and rows whose rank another row has too."""
    none = tagged(rows.clear(), "", "")
    if not place:
        return rows, rows.clear(), none
    shared = rows.select(_meets_neighbour(place)).to_series()
    if not shared.any():
        return rows, rows.clear(), none
    crowd = rows.with_row_index("_row").filter(shared).sort(FILE, ROW)
    again = crowd.select(~pl.struct(pl.exclude(FILE, ROW, "_row")).is_first_distinct()).to_series()
    copies, left = crowd.filter(again), crowd.filter(~again)
    clash = left.select(pl.struct(place).is_duplicated()).to_series()
    clashing = left.filter(clash) if not options.by_score else left.clear()
    stays = np.ones(rows.height, dtype=np.bool_)
    stays[pl.concat([copies["_row"], clashing["_row"]]).to_numpy()] = False
    return rows.filter(pl.Series(stays)), copies.drop("_row"), tagged(clashing.drop("_row"), "rank_conflict", "rank")


def _count(code: str, rows: pl.DataFrame, key: list[str], column: str | None = None) -> pl.DataFrame:
    n_units = rows.select(key).n_unique() if rows.height else 0
    return findings.finding(code, "hits", column, rows.height, n_queries=n_units, examples=rows["query_id"].unique())
