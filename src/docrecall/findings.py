"""What was noticed about the data, as a frame: one row per kind of finding, with counts and examples.

The same frame carries what only deserves mention (info), what deserves a look (warning) and what breaks the
contract (error; such rows live in a DataError, never in a result). `n_queries` counts units on `hits` (one query of
one run) and queries on the other tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import polars as pl

from docrecall.errors import DataError, findings_schema
from docrecall.show import printable

Severity = Literal["info", "warning", "error"]

MOST_EXAMPLES = 5

SCHEMA = findings_schema()


class Kind(NamedTuple):
    """A kind of finding: how much it matters, what was found, and what that means or what to do.

    found begins with a plural noun, and reads the same after its singular. ids: what the examples are, where they are
    not those of what is counted.
    """

    severity: Severity
    found: str
    means: str
    ids: str = ""


# The name of a broken rule is also the `reason` of the rows that `on_bad_rows="reject"` sets aside.
KINDS: Mapping[str, Kind] = {
    # rows that break the contract
    "line_encoding": Kind(
        "error", "lines with text that is not UTF-8", "Text is read as UTF-8. Convert the file first."
    ),
    "line_fields": Kind(
        "error",
        "lines with another number of fields than expected",
        "A TREC run has 6 (query Q0 document rank score tag), TREC qrels have 4 (query 0 document grade), and a table "
        "with a header has as many as that. Other TREC layouts are declared, as in "
        "--read hits=trec:query_id,_,doc_id,rank,score.",
    ),
    "line_broken": Kind(
        "error",
        "records against the rules of CSV",
        "A quoted field ends with a quote, then a comma or the end of the line; quotes inside it are doubled.",
    ),
    "line_json": Kind("error", "lines without a JSON object in which each name stands once", "One object per line."),
    "no_match": Kind(
        "error",
        "rows with an id that the pattern of the mapping does not match",
        "The pattern must match the whole id. Widen it, or map such rows apart.",
    ),
    "list_null": Kind("error", "rows without a list", "Write an empty list for a query without hits."),
    "list_lengths": Kind("error", "rows whose lists differ in length", "Parallel lists have one element for each hit."),
    "id_fraction": Kind(
        "error", "rows with an id that is neither text nor a whole number", "Write ids as text: no digit is lost then."
    ),
    "not_text": Kind("error", "rows with a value that is not text", "Write it as a JSON string."),
    "not_whole": Kind("error", "rows with a value that is not a whole number", "7 and 7.0 can be read, 7.5 cannot."),
    "not_number": Kind(
        "error", "rows with a value that is not a number", "Numbers have a point, and no thousands separator."
    ),
    "not_flag": Kind("error", "rows with a value that is neither true nor false", "true, false, 1 and 0 are read."),
    "null_id": Kind("error", "rows without an id", "Every row needs one; a null id is nobody's."),
    "id_too_large": Kind("error", "ids beyond a signed 64-bit integer", "Write such ids as String in all tables."),
    "rank_null": Kind("error", "hits without a rank", "Ranks are whole numbers, 1 = best."),
    "rank_fraction": Kind("error", "hits with a fractional rank", "Ranks are whole numbers, 1 = best."),
    "rank_too_large": Kind("error", "hits with a rank of 2^53 or more", "Ranks are whole numbers, 1 = best."),
    "rank_below_first": Kind("error", "hits with a rank below the first", "Ranks are whole numbers, 1 = best."),
    "rank_zero": Kind(
        "error",
        "hits with rank 0",
        "Ranks start at 1 here. Pass rank_base=0 (--rank-base 0) if the best hit of this log has rank 0, "
        'or order="score" (--order score) if its ranks are not used.',
    ),
    "rank_conflict": Kind(
        "error",
        "hits on the rank of another hit of the same unit, with other content",
        "A rank belongs to one hit. Were two logs or two runs put together? A run_id column tells runs apart.",
    ),
    "score_null": Kind("error", "hits without a score", "Ordering by score needs a score in every row."),
    "score_nan": Kind("error", "hits with a NaN score", "NaN has no place in an order."),
    "relevance_null": Kind("error", "labels without a relevance", "Leave the column out if every label has grade 1."),
    "label_two_grades": Kind(
        "error", "labels of a (query_id, doc_id) with several grades", "Keep one grade for each pair."
    ),
    "label_two_versions": Kind(
        "error", "labels of a (query_id, doc_id) with several versions", "Keep one version for each pair."
    ),
    "tokens_null": Kind("error", "rows without a number of tokens", "A budget of tokens needs them in every row."),
    "tokens_negative": Kind("error", "rows with a negative number of tokens", "Tokens are counted from 0."),
    "tokens_too_large": Kind("error", "rows with 2^31 tokens or more", "No chunk is so long."),
    "context_null": Kind(
        "error", "hits without a word on being passed on", "in_context is true or false in every row."
    ),
    "span_half": Kind("error", "rows with one end of a span", "A span has a start and an end, or neither."),
    "span_negative": Kind("error", "rows with a span that begins below 0", "Offsets count characters from 0."),
    "span_order": Kind(
        "error", "rows with a span that ends too early", "It ends after its start; that of a hit may be empty."
    ),
    "span_too_large": Kind("error", "rows with a span that ends beyond 2^40", "Offsets count characters from 0."),
    "evidence_empty": Kind(
        "error", "rows with neither a span nor a chunk", "Evidence names a span (start, end), a chunk_id, or both."
    ),
    "chunk_unknown": Kind(
        "error",
        "hits of a chunk that the table of chunks does not have",
        "The table of chunks must be that of the index that the log came from; its run_id, where it has one, is that "
        "of the hits.",
        "chunks",
    ),
    "chunk_repeated": Kind(
        "error",
        "rows with a repeated chunk_id",
        "Each chunk stands once (once for each run, where run_id is there).",
    ),
    "document_repeated": Kind(
        "error", "rows with a document repeated at the same version", "Each version of a document stands once."
    ),
    "alias_conflict": Kind(
        "error", "rows of a document with several aliases", "A document has one other name at most."
    ),
    "alias_cycle": Kind(
        "error", "documents whose aliases lead round in a circle", "alias_of must lead to a document without alias."
    ),
    "request_repeated": Kind(
        "error", "rows with a repeated request", "Each request stands once, or it would weigh double."
    ),
    "weight_invalid": Kind("error", "rows with a weight that is negative or not finite", "Weights are 0 or more."),
    "query_repeated": Kind(
        "error", "rows with a repeated query_id", "Each query stands once, or it would weigh double."
    ),
    "status_unknown": Kind(
        "error", "rows with an unknown status", "It may be answerable, unanswerable, unlabelled or null."
    ),
    "ids_collapse": Kind(
        "error",
        'ids equal to another id under normalize_ids="NFC"',
        "Two ids would be taken for one. Rename one of them, or do not normalise.",
    ),
    "other_run": Kind(
        "error",
        "hits of another run than the one that the caller named for this table",
        "Name the table as its run_id column does, leave the name away, or map it (hits.run_id=value:NAME). "
        "The tag of a TREC run is left out by --read hits=trec:query_id,_,doc_id,rank,score,_.",
    ),
    # tables that do not fit together
    "no_shared_queries": Kind("error", "queries with hits, not one of them with a label", "No query id is in common."),
    "version_mismatch": Kind(
        "warning",
        "hits of labelled documents at another version than the labelled one",
        'They do not count. versions="ignore" (--versions ignore) matches by id alone.',
    ),
    # counted, and scored all the same
    "duplicate_hits": Kind("info", "hits delivered again, collapsed", "An identical row stands already."),
    "duplicate_labels": Kind("info", "labels delivered again, collapsed", "An identical row stands already."),
    "rank_gaps": Kind(
        "info", "jumps between logged ranks", 'A missing rank leaves its place empty; see ranks="recount".'
    ),
    "empty_lists": Kind(
        "warning",
        "queries with an empty list, which a table of hits has no row for",
        'With labels they count as 0 all the same; to keep others, or with universe="hits", list them in queries.',
    ),
    "orders_disagree": Kind(
        "warning",
        "hits of units whose ranks and scores put them in another order",
        'trec_eval reads the scores and never the ranks: order="trec_eval" (--order trec_eval) gives its numbers.',
    ),
    "tied_scores": Kind("info", "hits with the score of another hit of the unit", "Ties are ordered by id."),
    "unlabelled_hits": Kind("info", "hits of units without labels", "They are in no mean."),
    "outside_universe": Kind("info", "hits of units that are not listed", "They are counted and not used."),
    "files_left_out": Kind("info", "files left out for names that start with . or _", "They were not read."),
    "label_conflict": Kind("warning", "queries whose stated label_status the labels contradict", "The status wins."),
    "stale_labels": Kind(
        "warning",
        "labels of a version that the index no longer serves",
        'By default their units leave the mean; stale="keep" (--stale keep) scores them, such documents as misses.',
    ),
    "evidence_without_label": Kind(
        "info", "documents of evidence not named by the labels of the query", "Passages count all the same."
    ),
    "gold_not_in_index": Kind(
        "warning",
        "labels of relevant documents that the table of documents does not have",
        "They stay in the denominator; the ceiling of doc_recall says what can be reached.",
        "documents",
    ),
    "labels_never_requested": Kind(
        "info", "queries with labels that no request asked", "Requests are the units here, so these are in no mean."
    ),
    "narrow_gaps": Kind(
        "warning",
        "passages that only gaps of at most 2 characters between chunks keep from being covered",
        "Splitters drop white space. evidence_recall(gap=2)@.. joins such chunks.",
    ),
    "no_shared_requests": Kind(
        "warning",
        "requests without a hit, all that are listed, beside a log that has hits",
        "Do both sides name runs, requests and queries the same way? From 20 such requests on this is an error.",
    ),
    "no_shared_chunks": Kind(
        "warning",
        "units with hits and gold chunks, in runs that know no gold chunk",
        "Gold chunk ids do not survive another chunking; spans (start, end) do. From 20 such units on this is an error "
        "for measures of chunks.",
        "chunks",
    ),
    "versions_not_logged": Kind(
        "warning",
        "hits of runs without doc_version, beside runs that have it",
        'They count at any version, those of the other runs at the labelled one only. versions="ignore" '
        "(--versions ignore) treats all runs alike.",
    ),
    "no_spans": Kind(
        "warning",
        "hits in which a measure of passages looks for spans, and not one has any",
        "A hit without a span covers nothing, so that all such values are 0. Does the log really have chunk_start and "
        "chunk_end?",
    ),
    "near_miss_ids": Kind(
        "warning",
        "ids of labels without a hit that would have one after trimming or NFC",
        'Ids are compared exactly. See normalize_ids="NFC", or trim them at the source.',
    ),
    "no_shared_documents": Kind(
        "warning",
        "units with labels and hits, and no document id in common between all hits and all labels",
        "Do both sides name documents the same way? From 20 such units on this is an error.",
        "documents",
    ),
    "mostly_without_hits": Kind(
        "warning",
        "units scored without hits, more than half of the run",
        'If the log covers only part of the labels, score with universe="hits" (--universe hits).',
    ),
    "nothing_scored": Kind(
        "warning",
        "units of runs in which nothing could be scored",
        "Every mean there is null. The accounting says why: look at the labels and at min_relevance.",
    ),
    "no_rank_zero": Kind(
        "warning",
        "hits without a single rank 0 though rank_base is 0",
        "If the best hits of this log have rank 1, every rank is read one too deep: leave rank_base at 1.",
    ),
    "likely_meant": Kind(
        "warning",
        "columns of a like name, not read",
        "If it is meant, map it: --map TABLE.COLUMN=NAME (map= in Python), or TABLE.COLUMN=not:NAME if it says the "
        "opposite.",
    ),
}


def finding(
    code: str,
    table: str,
    column: str | None,
    n_rows: int,
    *,
    n_queries: int = 0,
    examples: pl.Series | Sequence[Any] = (),
    file: str | None = None,
    severity: Severity | None = None,
) -> pl.DataFrame:
    """Build one row. `examples` are ids; the five smallest are kept, as text, so that batches do not change them."""
    ids = pl.Series(examples, strict=False).cast(pl.String).drop_nulls().unique().bottom_k(MOST_EXAMPLES)
    row = (
        code,
        severity or KINDS[code].severity,
        table,
        column,
        n_rows,
        n_queries,
        ids.sort().to_list(),
        file,
    )
    return pl.DataFrame([row], schema=SCHEMA, orient="row")


def empty_findings() -> pl.DataFrame:
    """Give the frame without rows."""
    return pl.DataFrame(schema=SCHEMA)


def merge(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Add up findings of the same kind, table and column; errors first, then warnings, then by name.

    The counts add, the five smallest examples and the first file stay: the result does not depend on how the rows
    were cut into batches.
    """
    if not frames:
        return empty_findings()
    order = pl.col("severity").replace_strict({"error": 0, "warning": 1, "info": 2}, return_dtype=pl.Int8)
    return (
        pl.concat(frames)
        .group_by("code", "severity", "table", "column")
        .agg(
            pl.col("n_rows", "n_queries").sum(),
            pl.col("examples").explode(empty_as_null=False).unique().sort().head(MOST_EXAMPLES),
            # The first by path and then by line, which is a number at its end.
            pl.col("file")
            .sort_by(
                pl.col("file").str.replace(r"\d+$", ""),
                pl.col("file").str.extract(r"(\d+)$").cast(pl.Int64, strict=False),
            )
            .drop_nulls()
            .first(),
        )
        .filter(pl.col("n_rows") > 0)
        .sort(order, "code", "table", "column")
        .select(SCHEMA.names())
    )


def errors(findings: pl.DataFrame) -> pl.DataFrame:
    """Give the rows that break the contract."""
    return findings.filter(pl.col("severity") == "error")


def describe(row: Mapping[str, Any]) -> str:
    """Say one finding in a sentence: place, count, what it is, ids, file, what to do."""
    kind = KINDS[row["code"]]
    place = row["table"] if row["column"] is None else f"{row['table']}.{row['column']}"
    parts = [f"{place}: {_counted(row['n_rows'], kind.found)}"]
    touched = "units" if row["table"] == "hits" else "queries"
    if row["n_queries"] and not (row["n_queries"] == row["n_rows"] and kind.found.startswith(touched)):
        parts.append(f" in {_counted(row['n_queries'], touched)}")
    if row["examples"]:
        more = ", .." if row["n_queries"] > len(row["examples"]) == MOST_EXAMPLES else ""
        what = "chunks " if row["table"] == "chunks" else f"{kind.ids} " if kind.ids else ""
        parts.append(f" ({what}{', '.join(printable(e) for e in row['examples'])}{more})")
    if row["file"]:
        parts.append(f", first in {printable(row['file'])}")
    return f"{''.join(parts)}. {kind.means}"


def _counted(n: int, what: str) -> str:
    """A count and its noun: the first word of `what` is a plural."""
    if n != 1:
        return f"{n:,} {what}"
    noun, space, rest = what.partition(" ")
    return f"1 {noun.removesuffix('ies') + 'y' if noun.endswith('ies') else noun.removesuffix('s')}{space}{rest}"


def raise_errors(findings: pl.DataFrame) -> None:
    """Raise one DataError that tells every broken rule, if there is any."""
    broken = errors(findings)
    if broken.is_empty():
        return
    lines = [describe(row) for row in broken.to_dicts()]
    head = "The tables break the contract." if len(lines) == 1 else f"The tables break {len(lines)} rules."
    raise DataError("\n  ".join([head, *lines]), broken)
