"""The main job, which reads like its data flow: tables -> contract -> batches -> kernel -> scores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from docrecall import findings
from docrecall.accounting import account
from docrecall.contract.known import Known, check_known
from docrecall.contract.needs import Needs, needs_of
from docrecall.contract.overlap import near_documents
from docrecall.contract.schema import settle
from docrecall.decisions import decide, decided
from docrecall.errors import UsageError
from docrecall.fingerprints import VERSIONS, digests_of
from docrecall.journal import Columns
from docrecall.kernel.batch import Batch
from docrecall.kernel.per_query import BatchScores, found_batch, match_batch, score_batch
from docrecall.ledger import Ledger, every_batch
from docrecall.measures.grammar import Cut, Measure, parse_all
from docrecall.measures.registry import DEFAULT_MEASURES
from docrecall.memory import check_tables, describe, expect, fit, parse_bytes
from docrecall.options import Options
from docrecall.parallel import ahead, in_order
from docrecall.plan import BATCH_ROWS, Plan, batches, layouts_of, make_plans, orders_disagree
from docrecall.scores import Scores
from docrecall.slices import Tags
from docrecall.sources.inputs import Inputs
from docrecall.sources.mapping import Mappings, TableMap, parse_mapping
from docrecall.sources.read import read_logs, read_table
from docrecall.store import OutputFolder
from docrecall.summary import Intervals
from docrecall.tables import HITS, TABLES, UNIT, sorted_by, unit_key
from docrecall.tally import Tally
from docrecall.units import BESIDE

Progress = Callable[[int, int], None]


class Work(NamedTuple):
    """How a run is done, which no result depends on. memory: the most bytes that this process may hold."""

    batch_rows: int = BATCH_ROWS
    memory: int | None = None
    progress: Progress | None = None


class Settled(NamedTuple):
    """Tables whose columns and types are decided, and what was asked of them."""

    inputs: Inputs
    needs: Needs


def score(
    hits: Any,
    qrels: Any = None,
    measures: str | Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    queries: Any = None,
    evidence: Any = None,
    documents: Any = None,
    requests: Any = None,
    chunks: Any = None,
    out: str | os.PathLike[str] | None = None,
    batch_rows: int = BATCH_ROWS,
    memory: int | str | None = None,
    progress: Progress | None = None,
    map: Any = None,
    read: Any = None,
    **policies: Any,
) -> Scores:
    """Score retrieval logs against labels, with every query and row accounted for.

    hits: columns query_id, rank, doc_id, and what measures read besides (n_tokens, in_context, chunk_start, ..).
    qrels: query_id, doc_id, relevance (integer, 1 where the column is absent); may be left out where evidence is given.
    queries: query_id, label_status, weight. evidence: query_id, evidence_id, doc_id, and a span (start, end), a
    chunk_id or both. documents: doc_id, doc_version, alias_of. requests: the units, and what was answered. chunks: what
    hits lack, by chunk_id. `docrecall.tables` has all columns and types.

    Each is a path, a list of paths, a directory, a glob, a polars DataFrame or LazyFrame, or anything with
    `__arrow_c_stream__`; hits may also be a dict run name -> any of these. Ids are String or integer, of the same kind
    on all tables.

    measures: names such as `doc_recall@1,3,10`, `doc_recall@2000tokens` or `evidence_recall(coverage=0.5)@context`;
    see `docrecall measures`.
    out: a folder for the results. Batches then go to disk as they are scored, and the folder is replaced as a whole
    when all is done; the next call after one that was killed goes on where it stopped. batch_rows: about how many hits
    are worked on at a time. memory: the most that this process may hold, such as "1GB": batches are made small enough,
    or UsageError says before the work begins that it cannot be. Results depend on none of these.
    progress: called with (rows done, rows in all) after each batch. policies: the fields of `Options`.
    map: which columns hold what, where they have other names; read: the formats of tables whose files do not say. See
    `docrecall.sources.mapping.parse_mapping`.

    Raises MeasureError and UsageError for what was asked, InputTypeError and InputError for tables that cannot be
    read, DataError for tables that break the contract, OutputError when `out` cannot be written.
    """
    tables = {
        "qrels": qrels,
        "evidence": evidence,
        "queries": queries,
        "requests": requests,
        "documents": documents,
        "chunks": chunks,
    }
    options = Options.of(
        ("hits", "measures", *tables, "out", "batch_rows", "memory", "progress", "map", "read"), **policies
    )
    wanted = parse_all(measures)
    inputs = open_tables(hits, tables, parse_mapping(map, read))
    work = Work(batch_rows, None if memory is None else parse_bytes(memory), progress)
    return score_inputs(inputs, wanted, options, work, out=out)


def score_inputs(
    inputs: Inputs,
    measures: Sequence[Measure],
    options: Options,
    work: Work | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    intervals: Mapping[str, Any] | None = None,
) -> Scores:
    """Score opened tables, and put the results into a folder where one is named.

    intervals: the arguments of `Scores.summary` that the results are shown and written with; None: the defaults.
    """
    shown = Intervals() if intervals is None else Intervals.of(intervals)
    Tags.of(inputs.tables, options).names(shown.parting.columns)  # which says what is not there before the work begins
    work = work or Work()
    if not isinstance(work.batch_rows, int) or work.batch_rows < 1:
        raise UsageError(f"batch_rows is {work.batch_rows!r}; it must be a whole number of at least 1.")
    settled = prepare(inputs, measures, options)
    with ExitStack() as stack:
        folder = None
        if out is not None:
            folder = stack.enter_context(OutputFolder(out, _about(settled.inputs, measures, options, work)))
        scores = replace(evaluate(settled, measures, options, work, folder), intervals=shown)
        return scores if folder is None else folder.commit(scores)


def open_tables(hits: Any, tables: Mapping[str, Any], maps: Mappings | None = None) -> Inputs:
    """Open the tables; of Parquet and frames no row is read. tables: name -> what was given, or None."""
    if tables.get("qrels") is None and tables.get("evidence") is None:
        raise UsageError("no labels were given: pass qrels (--qrels), evidence (--evidence), or both.")
    plain, maps = TableMap(), maps or {}
    opened = {
        name: read_table(source, TABLES[name], tmap=maps.get(name, plain))
        for name, source in tables.items()
        if source is not None
    }
    return Inputs(read_logs(hits, HITS, maps.get("hits", plain)), opened)


def check(
    inputs: Inputs, options: Options, progress: Progress | None = None, measures: Sequence[Measure] = ()
) -> Scores:
    """Check that opened tables keep the contract, and give no numbers.

    measures: those that the tables are to serve; columns that none of them reads may hold anything.
    """
    checked = evaluate(prepare(inputs, measures, options), measures, options, Work(progress=progress))
    return replace(checked, measures=())


def _about(inputs: Inputs, measures: Sequence[Measure], options: Options, work: Work) -> dict[str, Any] | None:
    """What a run is about, so that a later one can tell whether it may go on with it; None where frames were given."""
    given = inputs.fingerprints()
    if any(entry["file"] is None for entry in given):
        return None
    return {
        "inputs": given,
        "measures": [str(m) for m in measures],
        "options": asdict(options),
        "batches": [work.batch_rows, work.memory],
        "versions": VERSIONS,
    }


def explain(inputs: Inputs, measures: Sequence[Measure], options: Options, work: Work, *, on_disk: bool) -> list[str]:
    """Say how opened tables would be worked on, and why. Tables are checked and keys read; nothing is scored."""
    known, plans = _planned(prepare(inputs, measures, options), len(measures), options, work, on_disk=on_disk)
    return describe(known.labels, plans, expect(known, plans, len(measures), on_disk=on_disk))


def prepare(inputs: Inputs, measures: Sequence[Measure], options: Options) -> Settled:
    """Decide which columns are read, and in which types."""
    needs = needs_of(inputs, measures, options)
    return Settled(settle(inputs, needs, options), needs)


def _planned(
    settled: Settled, n_measures: int, options: Options, work: Work, *, on_disk: bool
) -> tuple[Known, list[Plan]]:
    """Check the tables that are held whole, look at the logs, and decide how they are worked on."""
    if work.memory is not None:
        check_tables(settled.inputs, work.memory)
    layouts = None
    if work.memory is None and not {"documents", "chunks"} & settled.inputs.tables.keys():
        # Hits are read as they stand then, so how they lie can be seen while labels are read. It takes more memory.
        layouts = ahead(layouts_of, settled.inputs.logs, options)
    known = check_known(settled.inputs, settled.needs, options, partial(_before_whole, settled.inputs, work))
    layouts = layouts or partial(layouts_of, known.logs, options)
    plans = make_plans(known.logs, layouts(), known.findings, options, work.batch_rows)
    if known.labels.in_pieces and not all(plan.by_query for plan in plans):
        _before_whole(settled.inputs, work)
        known = known._replace(labels=known.labels.held())
    if work.memory is not None:
        plans = fit(plans, expect(known, plans, n_measures, on_disk=on_disk), work.memory)
    return known, plans


def _before_whole(inputs: Inputs, work: Work) -> None:
    """Refuse, where memory is bounded, labels that do not fit, and cannot be read in pieces."""
    if work.memory is not None:
        check_tables(inputs, work.memory, in_pieces=False)


def evaluate(
    settled: Settled,
    measures: Sequence[Measure],
    options: Options,
    work: Work,
    folder: OutputFolder | None = None,
) -> Scores:
    """Score settled inputs; without measures this looks at the contract alone."""
    inputs = settled.inputs
    known, plans = _planned(settled, len(measures), options, work, on_disk=folder is not None)
    names = [str(m) for m in measures]
    key = [c for c in UNIT if c != "request_id" or known.by_request]
    beside = [c for c, there in zip(BESIDE, (known.labels.weighted, known.labels.has_index), strict=True) if there]
    ledger, tally = Ledger(inputs, known, options), Tally()
    ledger.findings += [f for plan in plans for f in orders_disagree(plan.log, options, plan.batch_rows)]
    when = partial if work.memory is not None or known.labels.in_pieces else ahead  # beside the rest, or after it
    near = when(near_documents, known)
    frames: list[pl.DataFrame] = []

    def kernel(batch: Batch) -> tuple[Batch, BatchScores | None]:
        # Where the contract is broken the account of it goes on, scoring does not.
        return batch, None if ledger.breaks(batch) else score_batch(batch, known.labels, measures, options)

    def take(batch: Batch, scores: BatchScores | None) -> None:
        ledger.add(batch, scores)
        if scores is not None:
            tally.add(scores.units)
        if work.progress is not None and batch.read:
            work.progress(ledger.read, inputs.n_hits)

    def keep(scores: BatchScores, batch: Batch | None = None) -> None:
        if folder is None:
            frames.append(scores.units)
        else:
            folder.add(scores, batch)

    again: Iterable[tuple[Batch, BatchScores]] = ()
    if folder is not None:
        sizes, again = folder.again([plan.batch_rows for plan in plans], Columns(key, names, beside))
        plans = [plan._replace(batch_rows=size) for plan, size in zip(plans, sizes, strict=True)]
    n_done = 0
    for batch, done in again:
        take(batch, done)
        n_done += 1
    for batch, scores in in_order(kernel, batches(plans, options, n_done)):
        take(batch, scores)
        if scores is not None:
            keep(scores, batch)
    ledger.close()
    for batch in ledger.units_without_hits():
        done = score_batch(batch, known.labels, measures, options)
        take(batch, done)
        keep(done)
    accounting = account(tally.table(), ledger.runs)
    ledger.cross_check(accounting, measures, near)
    digests = digests_of(known.labels)
    inputs.check_unchanged()
    if folder is None:
        units = sorted_by(pl.concat(frames), key)
        per_query: Any = units.select(*key, "status", "n_hits", *names)
        told: Any = decided(units.lazy(), key, beside).collect()
    else:
        per_query, told = folder.finish_units()
    return Scores(
        measures=tuple(names),
        accounting=accounting,
        findings=findings.merge(ledger.findings),
        rows=ledger.rows(),
        decisions=decide(tally.table(), ledger.runs),
        rejected=ledger.rejected_rows(),
        options=options,
        inputs=inputs.fingerprints(),
        versions=VERSIONS,
        _per_query=per_query,
        _decided=told,
        _tags=Tags.of(inputs.tables, options),
        _digests=digests,
        _match=partial(_matches, inputs, known, options, work.batch_rows),
        _find=partial(find_documents, inputs, known, options, work.batch_rows),
        _again=partial(_again, inputs, options, work),
        opened=inputs,
    )


def _matches(inputs: Inputs, known: Known, options: Options, batch_rows: int) -> pl.DataFrame:
    """Go through the batches again, for the matches alone."""
    inputs.check_unchanged()
    found = every_batch(inputs, known, options, batch_rows)
    matches = pl.concat([match_batch(batch, known.labels, options) for batch in found])
    return matches.sort(*unit_key(matches.columns), "doc_id")


def find_documents(
    inputs: Inputs, known: Known, options: Options, batch_rows: int, cuts: Sequence[Cut]
) -> pl.DataFrame:
    """Go through the batches again, for the documents that were found under some cuts; see `Scores.found`."""
    inputs.check_unchanged()
    found = every_batch(inputs, known, options, batch_rows)
    return pl.concat([found_batch(batch, known.labels, cuts, options) for batch in found])


def _again(inputs: Inputs, options: Options, work: Work, measures: Sequence[Measure]) -> Scores:
    """Score the same tables under other measures."""
    inputs.check_unchanged()
    return score_inputs(inputs, measures, options, work)
