"""The contract of documents and chunks: what the index serves, at which version, under which names."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from docrecall import findings
from docrecall.contract.frames import renamed, with_nulls
from docrecall.contract.needs import FROM_CHUNKS
from docrecall.contract.rules import Checked, Rule, chunk_rules, fault_rules, null_rules, report, split
from docrecall.options import Options
from docrecall.sources.table import Table


class Index(NamedTuple):
    """aliases: doc_id, target (the end of the chain), for each document that goes by another name.

    served: doc_id, versions (a list, in which null fits any), for each document; None when no table was given.
    versioned: whether the table of documents has versions.
    """

    checked: Checked | None
    aliases: pl.DataFrame
    served: pl.DataFrame | None
    versioned: bool = False


def no_index(doc_type: pl.DataType) -> Index:
    """What is known without a table of documents: nothing."""
    return Index(None, pl.DataFrame(schema={"doc_id": doc_type, "target": doc_type}), None)


def check_documents(table: Table, options: Options) -> Index:
    """Read and check the documents, and follow their aliases. Raises DataError for aliases that go round in a circle.

    A document stands once for each version, and has one alias at most.
    """
    columns = [c for c in ("doc_id", "doc_version", "alias_of") if c in table.columns]
    rows = table.read(columns)
    doc_type = table.columns["doc_id"]
    rows = with_nulls(rows, {"doc_version": pl.String(), "alias_of": doc_type})
    aliases = pl.col("alias_of").drop_nulls().n_unique().over("doc_id")
    rules = [
        *fault_rules(table),
        *null_rules(table),
        Rule("document_repeated", "doc_id", pl.struct("doc_id", "doc_version").is_duplicated()),
        Rule("alias_conflict", "alias_of", aliases > 1),
    ]
    rows, bad = split(rows, rules)
    rejected, found = report(bad, table, ["doc_id"], options)
    resolved = _resolve(rows)
    own = rows.filter(~pl.col("doc_id").is_in(resolved["doc_id"].implode()))["doc_id"]
    mapped = rows.join(resolved, on="doc_id", how="left")
    # Another name with no version of its own says nothing of the versions of a document that has a row.
    silent = pl.col("target").is_not_null() & pl.col("doc_version").is_null() & pl.col("target").is_in(own.implode())
    served = mapped.filter(~silent).group_by(pl.coalesce("target", "doc_id").alias("doc_id"))
    versions = served.agg(pl.col("doc_version").unique().alias("versions"))
    kept = rows.select("doc_id", "doc_version", "alias_of")
    return Index(Checked(kept, rejected, 0, found), resolved, versions, "doc_version" in columns)


def _resolve(rows: pl.DataFrame) -> pl.DataFrame:
    """Follow chains of aliases to their ends, each step going twice as far."""
    known = rows.filter(pl.col("alias_of").is_not_null()).select("doc_id", pl.col("alias_of").alias("target")).unique()
    links = known
    for _ in range(known.height.bit_length() + 1):
        further = links.select(pl.col("doc_id").alias("target"), pl.col("target").alias("_next"))
        links = links.join(further, on="target", how="left").select(
            "doc_id", pl.coalesce("_next", "target").alias("target")
        )
    going_round = links.filter(pl.col("target").is_in(known["doc_id"].implode()))["doc_id"]
    if len(going_round):
        findings.raise_errors(
            findings.finding("alias_cycle", "documents", "alias_of", len(going_round), examples=going_round)
        )
    return links


def with_staleness(rows: pl.DataFrame, index: Index, options: Options) -> pl.DataFrame:
    """Add to labels or passages: `served` (their document is in the index) and `stale` (at other versions only).

    Without a table of documents everything is served and nothing is stale.
    """
    if index.served is None:
        return rows.with_columns(pl.lit(True).alias("served"), pl.lit(False).alias("stale"))
    rows = rows.join(index.served, on="doc_id", how="left", maintain_order="left")
    served = pl.col("versions").is_not_null()
    stale = pl.lit(False)
    if options.versions == "match" and index.versioned and "doc_version" in rows.columns:
        other = ~pl.col("versions").list.contains(pl.col("doc_version")) & ~pl.col("versions").list.contains(None)
        stale = served & pl.col("doc_version").is_not_null() & other.fill_null(False)
    return rows.with_columns(served.alias("served"), stale.alias("stale")).drop("versions")


def check_chunks(table: Table, aliases: pl.DataFrame, options: Options, *, by_doc: bool) -> Checked:
    """Read and check the chunks of the index.

    by_doc: whether hits name documents themselves; chunk ids may then begin anew in each document. The good rows have
    run_id (if the table has it), chunk_id, and what the table says of them, documents by the names that aliases lead
    to.
    """
    columns = [c for c in ("run_id", "chunk_id", *FROM_CHUNKS) if c in table.columns and c in table.used]
    key = [c for c in ("run_id", "chunk_id", *(["doc_id"] if by_doc else [])) if c in columns]
    rules = [*fault_rules(table), *null_rules(table, "run_id")]
    rules.append(Rule("chunk_repeated", "chunk_id", pl.struct(key).is_duplicated()))
    rules += chunk_rules(columns)
    rows, bad = split(renamed(table.read(columns), aliases), rules)
    rejected, found = report(bad, table, key, options)
    return Checked(rows.select(columns), rejected, 0, found)
