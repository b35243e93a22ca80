"""The account: what became of every row, what was noticed, and whether the tables fit together at all."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from docrecall import findings
from docrecall.contract.known import Known
from docrecall.contract.overlap import near_documents, near_queries, no_shared_document, refuse_no_shared_query
from docrecall.contract.rules import none_rejected
from docrecall.kernel.batch import Batch
from docrecall.kernel.per_query import BatchScores
from docrecall.options import Options
from docrecall.plan import DEFAULT_RUN
from docrecall.scores import ROWS_SCHEMA
from docrecall.sources.inputs import Inputs
from docrecall.sources.table import Table, blame


class Ledger:
    """Adds up what batches tell besides scores."""

    def __init__(self, inputs: Inputs, known: Known, options: Options) -> None:
        self._inputs, self._known, self._options = inputs, known, options
        self.findings = list(known.findings)
        self.read = 0
        self.broken = False
        self._duplicates = self._rejected = self._outside = 0
        self._rejected_frames: list[pl.DataFrame] = []
        self._queries: dict[str, list[pl.Series]] = {
            log.run or DEFAULT_RUN: [] for log in inputs.logs if log.run or "run_id" not in log.columns
        }
        self.asked = _asked(inputs.logs)
        for run in self.asked:
            self._queries.setdefault(run, [])
        self._lost: list[pl.Series] = []
        self._altered: list[pl.Series] = []
        self._met = False
        self._matches = self._labelled_hit_units = 0

    @property
    def runs(self) -> dict[str, list[pl.Series]]:
        """Run -> the queries it has rows for. A log without rows is one run all the same."""
        return self._queries or {DEFAULT_RUN: []}

    @property
    def lost(self) -> list[pl.Series]:
        """Queries of rows that name no run: such a row touches its query in every run."""
        return self._lost

    def breaks(self, batch: Batch) -> bool:
        """Whether a batch breaks the contract in a run that stops at that."""
        return self._options.on_bad_rows == "error" and batch.rejected is not None and batch.rejected.height > 0

    def note_units(self, batch: Batch) -> None:
        """Note which units have rows, and which queries have rows of no run."""
        if batch.rejected is not None and "run_id" in batch.rejected.columns:
            lost = batch.rejected.filter(pl.col("run_id").is_null(), pl.col("query_id").is_not_null())
            self._lost.append(lost["query_id"])
        for (run,), units in batch.units.partition_by("run_id", as_dict=True).items():
            self._queries.setdefault(run, []).append(units["query_id"])

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
        self._altered.append(scores.altered_docs)
        self._matches += scores.n_matches
        self._labelled_hit_units += scores.labelled_hit_units

    def close(self) -> None:
        """Raise the DataError of a run that met broken rows, and InputError when fewer rows came than footers told."""
        if self.read != self._inputs.n_hits:
            blame([part for log in self._inputs.logs for part in log.parts])
        if self.broken:
            findings.raise_errors(findings.merge(self.findings))

    def cross_check(self, accounting: pl.DataFrame, *, matters: bool) -> None:
        """Look whether hits and labels meet. `matters`: whether any measure depends on it. May raise a DataError."""
        qrels = self._known.labels.qrels
        queries = [*self._lost, *(s for seen in self._queries.values() for s in seen)]
        if qrels.height and sum(map(len, queries)):
            if not self._met and not self._share_a_query(queries):
                refuse_no_shared_query(queries, qrels)
            if not self._matches and self._labelled_hit_units:
                self.findings += no_shared_document(self._inputs.logs, qrels, self._labelled_hit_units, matters=matters)
            self.findings += near_queries(queries, qrels)
            altered = pl.concat(self._altered).unique()
            self.findings += near_documents(self._inputs.logs, qrels, altered)
        lacking = int(accounting.filter(2 * pl.col("n_no_hits") > pl.col("n_scored"))["n_no_hits"].sum())
        if lacking:
            self.findings.append(findings.finding("mostly_without_hits", "hits", None, lacking, n_queries=lacking))
        unscored = int(accounting.filter(pl.col("n_scored") == 0)["n_total"].sum())
        if unscored:
            self.findings.append(findings.finding("nothing_scored", "qrels", None, unscored))

    def _share_a_query(self, queries: list[pl.Series]) -> bool:
        """Whether bad rows, which the kernel does not meet, show that both sides name queries in the same way."""
        labels = pl.concat([self._known.labels.qrels["query_id"], self._known.qrels.rejected["query_id"].drop_nulls()])
        return bool(pl.concat(queries).is_in(labels.implode()).any())

    def rows(self) -> pl.DataFrame:
        """One row per table: read = used + duplicate + rejected + outside."""
        n_hits = self._inputs.n_hits
        used = n_hits - self._duplicates - self._rejected - self._outside
        qrels, queries = self._known.qrels, self._known.queries
        outside = self._labels_outside()
        table = [
            ("hits", n_hits, used, self._duplicates, self._rejected, self._outside),
            (
                "qrels",
                self._inputs.qrels.n_rows,
                qrels.rows.height - outside,
                qrels.duplicates,
                qrels.rejected.height,
                outside,
            ),
        ]
        if self._inputs.queries and queries:
            table.append(("queries", self._inputs.queries.n_rows, queries.rows.height, 0, queries.rejected.height, 0))
        return pl.DataFrame(table, schema=ROWS_SCHEMA, orient="row")

    def _labels_outside(self) -> int:
        """Labels of queries that are not scored in any run."""
        labels, listed = self._known.labels.qrels.select("query_id"), self._known.labels.listed
        n_labels = labels.height
        if listed is not None:
            labels = labels.join(listed.to_frame("query_id"), on="query_id", how="semi")
        if self._options.universe == "hits":
            seen = [*(s for run in self._queries.values() for s in run), *self.asked.values()]
            hit = pl.concat(seen) if seen else labels["query_id"].clear()
            labels = labels.join(hit.to_frame("query_id"), on="query_id", how="semi")
        return n_labels - labels.height

    def rejected_rows(self) -> pl.LazyFrame:
        """All rows set aside, of all tables, with the columns that any of them knows; sorted."""
        checks = [self._known.qrels, *([self._known.queries] if self._known.queries else [])]
        frames = [*self._rejected_frames, *(check.rejected for check in checks if check.rejected.height)]
        if not frames:
            return none_rejected()
        rows = pl.concat(frames, how="diagonal_relaxed")
        return rows.sort(rows.columns, maintain_order=True).lazy()


def _asked(logs: Sequence[Table]) -> dict[str, pl.Series]:
    """Run -> the queries that its log names without giving them a hit."""
    found: dict[str, list[pl.Series]] = {}
    for log in logs:
        asked = log.asked
        if asked is None:
            continue
        if "run_id" not in asked.columns:
            asked = asked.with_columns(pl.lit(log.run or DEFAULT_RUN).alias("run_id"))
        for (run,), units in asked.drop_nulls().partition_by("run_id", as_dict=True).items():
            found.setdefault(run, []).append(units["query_id"])
    return {run: pl.concat(queries).unique() for run, queries in found.items()}
