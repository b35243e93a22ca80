"""The tables that are held whole, checked and ready for the kernel, and the log as they say it is to be read."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from docrecall import findings
from docrecall.contract.evidence import check_evidence
from docrecall.contract.hits import check_rank_base
from docrecall.contract.ids import check_ids
from docrecall.contract.index import Index, check_chunks, check_documents, no_index, with_staleness
from docrecall.contract.labels import CheckedLabels, check_qrels, check_queries, label_conflicts
from docrecall.contract.lookup import look_up
from docrecall.contract.needs import Needs
from docrecall.contract.requests import check_requests
from docrecall.contract.rules import Checked, of_queries
from docrecall.contract.schema import like, supplied
from docrecall.kernel.labels import ByQuery, InPieces, Labels
from docrecall.options import Options
from docrecall.sources.inputs import Inputs
from docrecall.sources.table import Table, collect

_GONE = pl.col("stale").all().over("query_id", "evidence_id")  # passages without an alternative that still holds
_FAR = 200  # powers of two beyond which squares of weights may not be finite, or 0


class Known(NamedTuple):
    """What the kernel is told, the log as it is to be read, the checks of the tables, and what was found on the way."""

    labels: Labels
    logs: list[Table]
    checks: Mapping[str, Checked]
    findings: list[pl.DataFrame]

    @property
    def by_request(self) -> bool:
        """Whether logged requests are the units."""
        return any("request_id" in log.columns for log in self.logs)

    @property
    def label_table(self) -> str:
        """The table that says what is relevant."""
        return _label_table(self.checks)


def check_known(
    inputs: Inputs, needs: Needs, options: Options, before_whole: Callable[[], None] = lambda: None
) -> Known:
    """Read and check every table but hits, and look at what footers and names tell about all of them.

    before_whole: called before labels that are many are read whole, because they are not sorted by query.

    Raises DataError for ids that would be taken for one another, for hits of another run than the caller named, and for
    aliases that go round in a circle: no set of rows could be set aside to mend that.
    """
    tables = inputs.tables
    of_tables = [f for table in inputs.all() for f in check_ids(table)]
    of_tables += [f for log in inputs.logs for f in _other_run(log)]
    findings.raise_errors(findings.merge(of_tables))
    checks: dict[str, Checked] = {}
    index = no_index(inputs.logs[0].columns.get("doc_id", _doc_type(inputs)))
    if "documents" in tables:
        index = check_documents(tables["documents"], options)
    if "qrels" in tables:
        alone = "evidence" not in tables  # passages bring labels of their own, and are held
        checks["qrels"] = check_qrels(
            tables["qrels"], index.aliases, options, in_pieces=alone, before_whole=before_whole
        )
    if "evidence" in tables:
        checks["evidence"] = check_evidence(tables["evidence"], index.aliases, options)
    if "queries" in tables:
        checks["queries"] = check_queries(tables["queries"], options)
    if "requests" in tables:
        checks["requests"] = check_requests(tables["requests"], options)
    if index.checked is not None:
        checks["documents"] = index.checked
    by_doc = all("doc_id" in log.columns for log in inputs.logs)
    if "chunks" in tables:
        checks["chunks"] = check_chunks(tables["chunks"], index.aliases, options, by_doc=by_doc)
    labels = _labels(inputs, checks, index, options)
    found = [f for check in checks.values() for f in check.findings]
    if "queries" in checks:
        found += label_conflicts(checks["queries"].rows, labels.qrels.frames)
    found += _of_evidence(checks) + _of_index(inputs, labels, index, options)
    found += _versions_not_logged(inputs.logs) + _without_spans(inputs.logs, checks)
    for log in inputs.logs:
        found += check_rank_base(log, options)
    for table in inputs.all():
        if table.left_out:
            found.append(findings.finding("files_left_out", table.spec.name, None, table.left_out))
        found += _likely_meant(table)
    chunks = _known_chunks(checks["chunks"], options, by_doc=by_doc) if "chunks" in checks else None
    logs = [look_up(log, chunks, supplied(log, tables.get("chunks"), needs), index.aliases) for log in inputs.logs]
    return Known(labels, logs, checks, found)


def _label_table(given: Container[str]) -> str:
    return "qrels" if "qrels" in given else "evidence"


def _known_chunks(check: Checked, options: Options, *, by_doc: bool) -> pl.DataFrame:
    """The chunks that hits are looked up in.

    In a run that stops at bad rows those of the chunks are among them: they are told as such, and not once more as hits
    of chunks that nobody knows.
    """
    rows, bad = check.rows, check.rejected
    if options.on_bad_rows == "reject" or bad.is_empty():
        return rows
    key = ["chunk_id", *(["run_id"] if "run_id" in rows.columns else []), *(["doc_id"] if by_doc else [])]
    return pl.concat([rows, bad.select(rows.columns)]).unique(key, keep="any")


def _doc_type(inputs: Inputs) -> pl.DataType:
    return next(table.columns["doc_id"] for table in inputs.tables.values() if "doc_id" in table.columns)


def _labels(inputs: Inputs, checks: Mapping[str, Checked], index: Index, options: Options) -> Labels:
    """Bring labels, passages and lists into the form that the kernel takes."""
    evidence = with_staleness(checks["evidence"].rows, index, options) if "evidence" in checks else None
    qrels = _by_query(inputs, checks, index, options)
    nobody = pl.Series("query_id", [], dtype=qrels.schema["query_id"])
    stale_queries = nobody
    if options.stale == "exclude" and index.served is not None:
        stale = [rows.filter("stale")["query_id"] for rows in qrels.frames()]
        stale += [] if evidence is None else [evidence.filter(_GONE, "stale")["query_id"]]
        stale_queries = pl.concat([nobody, *stale]).unique()
    bad = [checks[name].rejected["query_id"] for name in ("qrels", "evidence", "queries") if name in checks]
    rejected = pl.concat([nobody, *bad]).drop_nulls().unique()
    listed_badly = checks["queries"].rejected["query_id"].drop_nulls().unique() if "queries" in checks else None
    queries, one = None, 1.0
    if "queries" in checks:
        queries, one = _weighed(checks["queries"].rows, all_listed="requests" not in checks)
    return Labels(
        qrels=qrels,
        evidence=evidence,
        queries=queries,
        requests=_requests(checks["requests"]) if "requests" in checks else None,
        rejected=rejected,
        rejected_listed=rejected.clear() if listed_badly is None else listed_badly,
        stale_queries=stale_queries,
        has_index=index.served is not None,
        one=one,
    )


def _by_query(inputs: Inputs, checks: Mapping[str, Checked], index: Index, options: Options) -> ByQuery | InPieces:
    """The labels, and what the index makes of each."""

    def marked(rows: pl.DataFrame) -> pl.DataFrame:
        rows = with_staleness(rows, index, options)
        return rows.with_columns(pl.col("stale") & (pl.col("relevance") >= options.min_relevance))

    given = checks.get("qrels")
    if not isinstance(given, CheckedLabels) or given.pieces is None:
        return ByQuery(marked(_qrels(inputs, checks)))
    read, schema = given.pieces, marked(given.rows).schema
    return InPieces(lambda number: marked(read.load(number)), read.first, read.last, schema, read.n_rows)


def _qrels(inputs: Inputs, checks: Mapping[str, Checked]) -> pl.DataFrame:
    """The labels, and for queries that have none the documents of their evidence, with grade 1."""
    given, evidence = checks.get("qrels"), checks.get("evidence")
    if evidence is None:
        assert given is not None, "qrels or evidence are there"
        return given.rows
    unspoken = evidence.rows
    if given is not None:
        spoken_of = pl.concat([_distinct(given.rows), given.rejected["query_id"].drop_nulls()]).to_frame()
        queries = _distinct(evidence.rows).to_frame().join(spoken_of, on="query_id", how="anti")
        if queries.is_empty() and (_versioned(inputs, "qrels") or not _versioned(inputs, "evidence")):
            return given.rows
        unspoken = unspoken.join(queries, on="query_id", how="semi")
    one = pl.when(pl.col("doc_version").n_unique() == 1).then(pl.col("doc_version").first())
    derived = unspoken.group_by("query_id", "doc_id").agg(
        pl.lit(1, pl.Int64).first().alias("relevance"), one.alias("doc_version")
    )
    rows = derived if given is None else pl.concat([given.rows, derived], how="diagonal")
    if not any(_versioned(inputs, name) for name in ("qrels", "evidence")):
        rows = rows.drop("doc_version")
    return rows if rows["query_id"].is_sorted() else rows.sort("query_id")


def _distinct(rows: pl.DataFrame) -> pl.Series:
    """The queries of a table that is sorted by them, each once."""
    return rows["query_id"].set_sorted().unique(maintain_order=True)


def _versioned(inputs: Inputs, name: str) -> bool:
    table = inputs.tables.get(name)
    return table is not None and "doc_version" in table.columns and "doc_version" in table.used


def _weighed(queries: pl.DataFrame, *, all_listed: bool) -> tuple[pl.DataFrame, float]:
    """Weights brought near 1 by a power of two, and what 1 becomes: no mean changes, and squares stay finite.

    all_listed: whether no query is asked that is not listed; small weights are left alone beside the 1 of such a query.
    """
    if "weight" not in queries.columns or queries.is_empty():
        return queries, 1.0
    weights = queries["weight"].to_numpy()
    _, power = math.frexp(float(weights.max()))
    if -_FAR <= power <= _FAR or (power < 0 and not all_listed):
        return queries, 1.0
    near = queries.with_columns(pl.Series("weight", np.ldexp(weights, -power)))
    return near, math.ldexp(1.0, -power) if power > 0 else 1.0


def _requests(check: Checked) -> pl.DataFrame:
    """The listed units, those that are listed in a bad way too."""
    key = [c for c in check.rows.columns if c not in ("retrieved", "answered")]
    bad = check.rejected.drop_nulls(key).select(key).unique()
    none = [pl.lit(None, pl.Boolean).alias(c) for c in ("retrieved", "answered")]
    return pl.concat(
        [
            check.rows.with_columns(pl.lit(False).alias("listed_badly")),
            bad.with_columns(*none, pl.lit(True).alias("listed_badly")),
        ]
    )


def _of_evidence(checks: Mapping[str, Checked]) -> list[pl.DataFrame]:
    """Count documents of evidence that the labels of their query, where it has any, do not name."""
    if "evidence" not in checks or "qrels" not in checks:
        return []
    pairs, qrels = checks["evidence"].rows.select("query_id", "doc_id"), checks["qrels"].rows
    strange = pairs.join(qrels, on=["query_id", "doc_id"], how="anti").unique().join(qrels, on="query_id", how="semi")
    return [of_queries("evidence_without_label", "evidence", "doc_id", strange)]


def _of_index(inputs: Inputs, labels: Labels, index: Index, options: Options) -> list[pl.DataFrame]:
    """Count labels of relevant documents that the index does not have, and labels of versions that it does not serve.

    Passages are labels too, where the documents of a query are known by them alone.
    """
    if index.served is None:
        return []
    table, found = _label_table(inputs.tables), []
    for rows in labels.qrels.frames():
        absent = rows.filter(~pl.col("served"), pl.col("relevance") >= options.min_relevance)
        n, docs = absent["query_id"].n_unique(), absent["doc_id"]
        found.append(findings.finding("gold_not_in_index", table, "doc_id", len(docs), n_queries=n, examples=docs))
        if table == "qrels":
            found.append(of_queries("stale_labels", "qrels", "doc_version", rows.filter("stale")))
    if labels.evidence is not None:  # without qrels the document of every alternative is relevant
        of_evidence = labels.evidence.filter("stale" if table == "evidence" else _GONE)
        found.append(of_queries("stale_labels", "evidence", "doc_version", of_evidence))
    return found


def _versions_not_logged(logs: Sequence[Table]) -> list[pl.DataFrame]:
    """Count hits of runs that do not log versions, where others do and versions are compared."""
    lacks = [log for log in logs if "doc_version" not in log.columns]
    if not lacks or not any("doc_version" in log.columns and "doc_version" in log.used for log in logs):
        return []
    runs = [log.run for log in lacks if log.run]
    return [
        findings.finding("versions_not_logged", "hits", "doc_version", sum(log.n_rows for log in lacks), examples=runs)
    ]


def _without_spans(logs: Sequence[Table], checks: Mapping[str, Checked]) -> list[pl.DataFrame]:
    """Count hits of logs in which no hit has a span, where a measure looks for passages that have one."""
    if "evidence" not in checks or not checks["evidence"].rows["start"].count():
        return []
    return [
        findings.finding("no_spans", "hits", "chunk_start", log.n_rows, examples=[log.run] if log.run else [])
        for log in logs
        if log.requires("chunk_start")
        and "chunk_start" in log.columns
        and all(part.null_count("chunk_start") == part.n_rows for part in log.parts)
    ]


def _likely_meant(table: Table) -> list[pl.DataFrame]:
    """Find columns that nobody reads and that go by a usual word for one that is done without instead.

    Labels without a relevance have grade 1, also where a column `grade` says 0; lists without a rank are in order;
    requests that do not say `answered` are taken to be answered where there are hits, whatever `declined` says.
    """
    part = table.parts[0]
    lists = table.spec.name == "hits" and "rank" in part.schema and "rank" not in part.names
    columns = [*(["rank"] if lists else []), *table.spec.optional]
    used = {name for _, source in part.tmap.columns for name in source.names}
    used |= {split.column for split in part.tmap.splits}
    free = [name for name in part.names if name not in used and name not in table.spec.columns]
    # A group of a pattern, and a column that is mapped, are read; scores are missed by the order that needs them.
    unread = [c for c in columns if c not in part.names and not part.tmap.source(c) and c != "score"]
    unread = [c for c in unread if c == "rank" or c not in part.schema]
    likely = {column: like(column, free, nearly=False) for column in unread}
    return [
        findings.finding("likely_meant", table.spec.name, column, 1, examples=[name])
        for column, name in likely.items()
        if name
    ]


def _other_run(log: Table) -> list[pl.DataFrame]:
    """Find rows of a log whose run the caller named that say another run."""
    if log.run is None or "run_id" not in log.columns:
        return []
    found = []
    for part in log.parts:
        other = log.scan([part], ["run_id"]).filter(pl.col("run_id").ne_missing(pl.lit(log.run))).select("run_id")
        runs = collect(other, [part])["run_id"]
        if len(runs):
            found.append(findings.finding("other_run", "hits", "run_id", len(runs), examples=runs, file=part.file))
    return found
