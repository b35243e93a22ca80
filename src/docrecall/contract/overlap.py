"""Whether hits and labels speak of the same queries and documents at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from docrecall import findings
from docrecall.contract.ids import is_odd, tidy
from docrecall.contract.known import Known
from docrecall.contract.lookup import DEFAULT_RUN
from docrecall.errors import DataError
from docrecall.show import printable
from docrecall.sources.table import Table, collect
from docrecall.tables import UNIT

MANY = 20  # from so many units on, nothing in common is no coincidence
_FIRST_ROWS = (1_000_000, 2_000_000, 4_000_000, 8_000_000)  # few labels are left to look for after the first of these


def refuse_no_shared_query(hit_queries: Iterable[pl.Series], known: Known) -> None:
    """Raise a DataError with examples from both sides; called when no query with hits has a label."""
    hits = pl.concat([s.cast(pl.String) for s in hit_queries]).unique()
    labels, table = _labelled(known, "query_id").cast(pl.String), known.label_table
    found = findings.finding("no_shared_queries", "hits", "query_id", len(hits), n_queries=len(hits), examples=hits)
    raise DataError(
        f"hits.query_id and {table}.query_id have no id in common: {_some(hits)} in hits, {_some(labels)} in {table}. "
        "Both must name queries in the same way.",
        found,
    )


def _told(message: str, *about: Any, severe: bool, **rest: Any) -> list[pl.DataFrame]:
    """Give a finding, or raise it with a message where it is severe."""
    found = findings.finding(*about, severity="error" if severe else None, **rest)
    if severe:
        raise DataError(message, found)
    return [found]


def no_shared_document(known: Known, n_units: int, *, matters: bool) -> list[pl.DataFrame]:
    """Look for one document id that occurs on both sides; called when no labelled unit was hit.

    Gives a finding when there is none; with many units, and when a measure depends on it, raises a DataError.
    """
    labels, table = _labelled(known, "doc_id"), known.label_table
    for log in known.logs:
        for parts in log.handfuls():
            shared = log.scan(parts, ["doc_id"]).filter(pl.col("doc_id").is_in(labels.implode())).head(1)
            if collect(shared, parts).height:
                return []
    # The smallest ids of all rows: the first rows would give other examples for another order or file split.
    smallest = pl.col("doc_id").cast(pl.String).drop_nulls().unique().bottom_k(findings.MOST_EXAMPLES)
    hits = [collect(log.scan(p, ["doc_id"]).select(smallest), p) for log in known.logs for p in log.handfuls()]
    ids = pl.concat(hits)["doc_id"]
    message = (
        f"hits.doc_id and {table}.doc_id have no id in common, over {n_units:,} labelled units with hits: "
        f"{_some(ids)} in hits, {_some(labels.cast(pl.String))} in {table}. Every measure would be 0. Both must name "
        "documents in the same way."
    )
    about = ("no_shared_documents", "hits", "doc_id", n_units)
    return _told(message, *about, n_queries=n_units, examples=ids, severe=matters and n_units >= MANY)


def no_shared_request(requests: pl.DataFrame, seen: Mapping[str, Sequence[pl.DataFrame]]) -> list[pl.DataFrame]:
    """Tell of requests none of which has a hit, though the log has hits; from many requests on raise a DataError.

    seen: run -> the units of its rows.
    """
    runs = {run for run, units in seen.items() if units}
    column = next(c for c in UNIT if c in requests.columns and (c != "run_id" or not runs & set(requests[c])))
    listed = requests[column].cast(pl.String).unique()
    logged = [units[column].cast(pl.String) for run in seen.values() for units in run if column in units.columns]
    hits = pl.concat(logged).unique() if logged else pl.Series(sorted(runs), dtype=pl.String)
    message = (
        f"hits and requests have no unit in common: {_some(hits)} in hits.{column}, {_some(listed)} in "
        f"requests.{column}. Every one of the {requests.height:,} requests would be 0. Both must name units in the "
        "same way."
    )
    n = requests["query_id"].n_unique()
    about = ("no_shared_requests", "requests", column, requests.height)
    return _told(message, *about, n_queries=n, examples=listed, severe=requests.height >= MANY)


def refuse_other_versions(found: Sequence[pl.DataFrame], n_units: int) -> None:
    """Raise a DataError; called when labelled documents were hit in many units, and never at their labelled version."""
    mismatch = findings.merge([f for f in found if f["code"].item() == "version_mismatch"])
    raise DataError(
        f"hits.doc_version and the labels' doc_version never agree: {n_units:,} units have hits of labelled documents, "
        "all at other versions. Every measure would be 0. Are these the labels of another index? "
        'versions="ignore" (--versions ignore) matches by id alone.',
        mismatch.with_columns(pl.lit("error").alias("severity")),
    )


def no_shared_chunk(known: Known, units: pl.DataFrame, *, matters: bool) -> list[pl.DataFrame]:
    """Look for runs that know none of the gold chunks.

    units: run_id, n_units (with hits and gold chunks), n_met. Gives a finding when there are such runs; with many
    units, and when a measure depends on it, raises a DataError.
    """
    totals = units.group_by("run_id").agg(pl.all().sum()).filter(pl.col("n_met") == 0, pl.col("n_units") > 0)
    evidence = known.labels.evidence
    if totals.is_empty() or evidence is None:
        return []
    gold = evidence.filter(pl.col("chunk_id").is_not_null()).select("doc_id", "chunk_id").unique()
    strangers = [row for row in totals.to_dicts() if not _knows(known, str(row["run_id"]), gold)]
    n_units = sum(row["n_units"] for row in strangers)
    if not n_units:
        return []
    message = (
        f"hits.chunk_id and evidence.chunk_id have no chunk in common, over {n_units:,} units with hits and gold "
        f"chunks: {_some(gold['chunk_id'].cast(pl.String))} are gold. Gold chunk ids do not survive another "
        "chunking; spans (evidence.start, evidence.end) do."
    )
    about = ("no_shared_chunks", "hits", "chunk_id", n_units)
    return _told(message, *about, n_queries=n_units, examples=gold["chunk_id"], severe=matters and n_units >= MANY)


def _knows(known: Known, run: str, gold: pl.DataFrame) -> bool:
    """Whether a gold chunk is in any hit of a run, or in the chunks of its index."""
    chunks = known.checks.get("chunks")
    if chunks is not None:
        mine = chunks.rows if "run_id" not in chunks.rows.columns else chunks.rows.filter(pl.col("run_id") == run)
        if mine.join(gold, on=["doc_id", "chunk_id"], how="semi").height:
            return True
    for log in known.logs:
        if "chunk_id" not in log.columns or ("run_id" not in log.columns and (log.run or DEFAULT_RUN) != run):
            continue
        for parts in log.handfuls():
            rows = log.scan(parts, ["doc_id", "chunk_id", *(["run_id"] if "run_id" in log.columns else [])])
            if "run_id" in log.columns:
                rows = rows.filter(pl.col("run_id") == run)
            if collect(rows.join(gold.lazy(), on=["doc_id", "chunk_id"], how="semi").head(1), parts).height:
                return True
    return False


def near_queries(hit_queries: Sequence[pl.Series], known: Known) -> list[pl.DataFrame]:
    """Count label query ids that no hit has, but that one would have after trimming or NFC."""
    if known.labels.qrels.schema["query_id"] != pl.String or not hit_queries:
        return []
    hits = pl.concat(hit_queries)
    labels = (rows["query_id"] for rows in known.labels.qrels.frames())
    altered = pl.concat([_altered(queries) for queries in hit_queries]).unique()
    near = _near(labels, altered, lambda ids: hits.filter(hits.is_in(ids.implode())).unique())
    return [_finding(known, "query_id", near, near)] if len(near) else []


def near_documents(known: Known) -> list[pl.DataFrame]:
    """The same for document ids. Where every label has a hit among the first rows, no others are looked at."""
    qrels = known.labels.qrels
    if qrels.schema["doc_id"] != pl.String or not qrels.height:
        return []
    first, n_labels = known.logs[0], qrels.height
    labels: Iterable[pl.Series] = (rows["doc_id"] for rows in qrels.frames())
    for start, end in pairwise((0, *_FIRST_ROWS)):
        unseen = _without_hit(labels, n_labels, first, start, end)
        labels, n_labels = [unseen], len(unseen)
        if unseen.is_empty():
            return []
        if end >= first.n_rows:
            break

    def present(ids: pl.Series) -> pl.Series:
        among = pl.col("doc_id").is_in(ids.implode())
        found = [log.read(["doc_id"], where=among)["doc_id"].unique() for log in known.logs]
        return pl.concat(found).unique()

    near = _near(labels, _altered_documents(known), present)
    if near.is_empty():
        return []
    nearly = pl.col("doc_id").is_in(near.implode())
    queries = pl.concat([rows.filter(nearly)["query_id"].unique() for rows in qrels.frames()])
    return [_finding(known, "doc_id", near, queries)]


def _without_hit(labels: Iterable[pl.Series], n_labels: int, log: Table, start: int, end: int) -> pl.Series:
    """The document ids, of so many, that some of the first rows of a log do not have, each once."""
    parts = next(log.handfuls())
    docs = log.scan(parts, ["doc_id"]).slice(start, end - start)
    if n_labels <= end - start:
        held = pl.concat(list(labels)).unique()
        docs, labels = docs.filter(pl.col("doc_id").is_in(held.implode())), [held]
    seen = collect(docs.unique(), parts)["doc_id"].implode()
    return pl.concat([ids.filter(~ids.is_in(seen)).unique() for ids in labels]).unique()


def _altered_documents(known: Known) -> pl.Series:
    """The document ids in hits that trimming or NFC would change, each once.

    A scan of its own, which looks at dictionaries of pages and not at every row: joined by an `or` to another filter,
    or asked of rows that are held already, it costs four times as much. The second condition is for what was collected:
    the optimizer would make one filter of two, and then normalise every id.
    """
    found = [
        _altered(collect(log.scan(parts, ["doc_id"]).filter(is_odd("doc_id")).unique(), parts)["doc_id"])
        for log in known.logs
        for parts in log.handfuls()
    ]
    return pl.concat(found).unique()


def _near(labels: Iterable[pl.Series], altered: pl.Series, present: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """The labels without a hit that meet one when both are tidied. `present` gives those of some ids that hits have."""
    tidied_hits = altered.to_frame("id").select(tidy("id"))["id"].unique()
    found_among = [altered.clear()]
    for ids in labels:
        found_among += [
            _altered(ids),
            ids.filter(ids.is_in(tidied_hits.implode())) if len(tidied_hits) else ids.clear(),
        ]
    candidates = pl.concat(found_among).unique().to_frame("id").with_columns(tidy("id").alias("tidied"))
    if candidates.is_empty():
        return altered.clear()
    found = present(pl.concat([candidates["id"], candidates["tidied"]]).unique()).implode()
    meets = pl.col("tidied").is_in(tidied_hits.implode()) | pl.col("tidied").is_in(found)
    return candidates.filter(~pl.col("id").is_in(found) & meets)["id"]


def _labelled(known: Known, column: str) -> pl.Series:
    """The ids that labels have in a column, each once."""
    return pl.concat([rows[column].unique() for rows in known.labels.qrels.frames()]).unique()


def _altered(ids: pl.Series) -> pl.Series:
    """The ids that trimming or NFC would change, each once."""
    return ids.to_frame("id").filter(is_odd("id")).filter(tidy("id") != pl.col("id"))["id"].unique()


def _finding(known: Known, column: str, ids: pl.Series, queries: pl.Series) -> pl.DataFrame:
    return findings.finding("near_miss_ids", known.label_table, column, len(ids), n_queries=len(queries), examples=ids)


def _some(ids: pl.Series) -> str:
    return ", ".join(f"'{printable(i)}'" for i in ids.unique().bottom_k(3).sort())
