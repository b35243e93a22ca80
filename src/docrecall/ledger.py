"""The account: what became of every row, what was noticed, and whether the tables fit together at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import polars as pl

from docrecall import findings
from docrecall.contract.known import Known
from docrecall.contract.lookup import DEFAULT_RUN
from docrecall.contract.overlap import (
    MANY,
    near_queries,
    no_shared_chunk,
    no_shared_document,
    no_shared_request,
    refuse_no_shared_query,
    refuse_other_versions,
)
from docrecall.contract.rules import none_rejected
from docrecall.kernel.batch import Batch
from docrecall.kernel.per_query import BatchScores
from docrecall.measures.grammar import Measure
from docrecall.measures.registry import REGISTRY
from docrecall.options import Options
from docrecall.plan import Plan, batches
from docrecall.proof import prove_sorted
from docrecall.scores import ROWS_SCHEMA
from docrecall.sources.inputs import Inputs
from docrecall.sources.table import Table, blame
from docrecall.tables import TABLES, by_run, unit_key
from docrecall.universe import units_without_hits


class Ledger:
    """Adds up what batches tell besides scores."""

    def __init__(self, inputs: Inputs, known: Known, options: Options) -> None:
        self._inputs, self._known, self._options = inputs, known, options
        self.findings = list(known.findings)
        self.read = 0
        self.broken = False
        self._duplicates = self._rejected = self._outside = 0
        self._rejected_frames: list[pl.DataFrame] = []
        self._units: dict[str, list[pl.DataFrame]] = {
            log.run or DEFAULT_RUN: [] for log in inputs.logs if log.run or "run_id" not in log.columns
        }
        self.asked = _asked(inputs.logs)
        requests = known.labels.requests
        named = requests["run_id"].unique() if requests is not None and "run_id" in requests.columns else ()
        for run in [*self.asked, *sorted(named)]:
            self._units.setdefault(run, [])
        self._lost: list[pl.DataFrame] = []
        self._asked_queries: list[pl.Series] = []
        # Without a list and without requests every run is asked every labelled query.
        unlisted = known.labels.queries is None and requests is None and not known.by_request
        self._all_asked = unlisted and options.universe == "all"
        self._gold_chunks: list[pl.DataFrame] = []
        self._met = False
        self._matches = self._hit_units = self._labelled_hit_units = self._mismatched_units = 0

    @property
    def runs(self) -> dict[str, list[pl.DataFrame]]:
        """Run -> the units it has rows for, without their run. A log without rows is one run all the same."""
        return self._units or {DEFAULT_RUN: []}

    @property
    def lost(self) -> list[pl.DataFrame]:
        """Keys of rows that lack a part of them: such a row touches every unit that it may belong to."""
        return self._lost

    def units_without_hits(self) -> Iterator[Batch]:
        """Give batches of the units that no row spoke of; called when all rows were noted."""
        return units_without_hits(self._known, self.runs, self.asked, self.lost, self._options)

    def breaks(self, batch: Batch) -> bool:
        """Whether a batch breaks the contract in a run that stops at that."""
        return self._options.on_bad_rows == "error" and batch.rejected is not None and batch.rejected.height > 0

    def note_units(self, batch: Batch) -> None:
        """Note which units have rows, and which rows do not name their unit in full."""
        if batch.rejected is not None:
            key = batch.rejected.select(unit_key(batch.rejected.columns))
            lost = key.filter(pl.any_horizontal(pl.all().is_null()), pl.col("query_id").is_not_null()).unique()
            if lost.height:
                self._lost.append(lost)
        for run, units in by_run(batch.units):
            self._units.setdefault(run, []).append(_of_run(units))

    def add(self, batch: Batch, scores: BatchScores | None = None) -> None:
        """Add a batch; without scores it counts as broken."""
        self.read += batch.read
        self.broken |= scores is None
        self.findings += batch.findings
        if scores is None:
            return
        if batch.read:  # units without hits were never seen in a log
            self.note_units(batch)
            self._met |= scores.met
        self._duplicates += batch.duplicates
        self._outside += scores.outside
        if batch.rejected is not None and batch.rejected.height:
            self._rejected += batch.rejected.height
            self._rejected_frames.append(batch.rejected)
        self.findings += scores.findings
        if not self._all_asked:
            self._asked_queries.append(scores.units["query_id"].unique())
        self._gold_chunks.append(scores.gold_chunks)
        self._matches += scores.n_matches
        self._hit_units += scores.hit_units
        self._labelled_hit_units += scores.labelled_hit_units
        self._mismatched_units += scores.mismatched_units

    def close(self) -> None:
        """Raise the DataError of a run that met broken rows, and InputError when fewer rows came than footers told."""
        if self.read != self._inputs.n_hits:
            blame([part for log in self._inputs.logs for part in log.parts])
        if self.broken:
            findings.raise_errors(findings.merge(self.findings))

    def cross_check(
        self, accounting: pl.DataFrame, measures: Sequence[Measure], near: Callable[[], list[pl.DataFrame]]
    ) -> None:
        """Look whether hits and labels meet. May raise a DataError, where a measure would be wrong if they do not.

        near: gives what `near_documents` finds.
        """
        qrels = self._known.labels.qrels
        depends = {REGISTRY[m.name].labels for m in measures}
        queries = [u["query_id"] for seen in self._units.values() for u in seen]
        queries += [bad["query_id"] for bad in self._lost]
        if qrels.height and sum(map(len, queries)):
            if not self._met and not self._share_a_query(queries):
                refuse_no_shared_query(queries, self._known)
            if not self._matches and self._mismatched_units >= MANY and "documents" in depends:
                refuse_other_versions(self.findings, self._mismatched_units)
            if not self._matches and not self._mismatched_units and self._labelled_hit_units:
                matters = "documents" in depends
                self.findings += no_shared_document(self._known, self._labelled_hit_units, matters=matters)
            self.findings += near_queries(queries, self._known)
            self.findings += near()
            self.findings += no_shared_chunk(self._known, pl.concat(self._gold_chunks), matters="chunks" in depends)
        if self._outside and not self._hit_units and self._known.labels.requests is not None:
            self.findings += no_shared_request(self._known.labels.requests, self._units)
        if "requests" not in self._inputs.tables and self._known.by_request:
            self.findings += self._never_requested(queries)
        lacking = int(accounting.filter(2 * pl.col("n_no_hits") > pl.col("n_scored"))["n_no_hits"].sum())
        if lacking:
            self.findings.append(findings.finding("mostly_without_hits", "hits", None, lacking, n_queries=lacking))
        unscored = int(accounting.filter(pl.col("n_scored") == 0)["n_total"].sum())
        if unscored:
            self.findings.append(findings.finding("nothing_scored", self._known.label_table, None, unscored))

    def _share_a_query(self, queries: list[pl.Series]) -> bool:
        """Whether bad rows, which the kernel does not meet, show that both sides name queries in the same way."""
        bad = [self._known.checks[name].rejected["query_id"].drop_nulls() for name in self._label_tables]
        there = pl.concat(queries)
        labels = chain(bad, (rows["query_id"] for rows in self._known.labels.qrels.frames()))
        return any(there.is_in(some.implode()).any() for some in labels)

    @property
    def _label_tables(self) -> list[str]:
        return [name for name in ("qrels", "evidence") if name in self._known.checks]

    def _never_requested(self, queries: list[pl.Series]) -> list[pl.DataFrame]:
        """Count labelled queries, of the list where there is one, that no request asked."""
        labels = self._known.labels
        found, table = [], self._known.label_table
        for rows in labels.qrels.frames():
            known = rows["query_id"].unique()
            if labels.listed is not None:
                known = known.filter(known.is_in(labels.listed.implode()))
            seen = pl.concat([known.clear(), *queries])
            never = known.filter(~known.is_in(seen.implode()))
            n = len(never)
            found.append(findings.finding("labels_never_requested", table, None, n, n_queries=n, examples=never))
        return found

    def rows(self) -> pl.DataFrame:
        """One row per table: read = used + duplicate + rejected + outside."""
        n_hits = self._inputs.n_hits
        used = n_hits - self._duplicates - self._rejected - self._outside
        table = [("hits", n_hits, used, self._duplicates, self._rejected, self._outside)]
        for name in TABLES:
            if name in self._inputs.tables:
                check = self._known.checks[name]
                outside = self._labels_outside(name)
                read = self._inputs.tables[name].n_rows
                table.append((name, read, check.n_good - outside, check.duplicates, check.rejected.height, outside))
        return pl.DataFrame(table, schema=ROWS_SCHEMA, orient="row")

    def _labels_outside(self, name: str) -> int:
        """Labels, of one table, of queries that no unit of the universe asks."""
        if self._all_asked or name not in self._label_tables:
            return 0
        check = self._known.checks[name]
        alone = self._label_tables == ["qrels"]  # labels are those of this table then, which may not be held
        frames = self._known.labels.qrels.frames() if alone else iter([check.rows])
        asked = pl.concat([check.rows["query_id"].clear(), *self._asked_queries]).unique().to_frame("query_id")
        return check.n_good - sum(rows.join(asked, on="query_id", how="semi").height for rows in frames)

    def rejected_rows(self) -> pl.LazyFrame:
        """All rows set aside, of all tables, with the columns that any of them knows; sorted."""
        checks = self._known.checks.values()
        frames = [*self._rejected_frames, *(check.rejected for check in checks if check.rejected.height)]
        if not frames:
            return none_rejected()
        rows = pl.concat(frames, how="diagonal_relaxed")
        return rows.sort(rows.columns, maintain_order=True).lazy()


def every_batch(inputs: Inputs, known: Known, options: Options, batch_rows: int) -> Iterator[Batch]:
    """Go through all batches once more, those of units without hits last, for what the first pass did not ask."""
    ledger = Ledger(inputs, known, options)
    for log in known.logs:
        for batch in batches([Plan(log, prove_sorted(log, options), batch_rows)], options):
            ledger.note_units(batch)
            yield batch
    yield from ledger.units_without_hits()


def _of_run(units: pl.DataFrame) -> pl.DataFrame:
    """The key of units of one run, without their run."""
    return units.select(unit_key(units.columns)).drop("run_id")


def _asked(logs: Sequence[Table]) -> dict[str, pl.DataFrame]:
    """Run -> the units that its log names without giving them a hit, without their run."""
    found: dict[str, list[pl.DataFrame]] = {}
    for log in logs:
        asked = log.asked
        if asked is None:
            continue
        if "run_id" not in asked.columns:
            asked = asked.with_columns(pl.lit(log.run or DEFAULT_RUN).alias("run_id"))
        for run, units in by_run(asked.drop_nulls()):
            found.setdefault(run, []).append(_of_run(units))
    return {run: pl.concat(units).unique() for run, units in found.items()}
