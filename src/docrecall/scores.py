"""What a run gives back: numbers, and the account of every query and row beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from docrecall.errors import UsageError
from docrecall.measures.grammar import Cut, Measure
from docrecall.options import Options
from docrecall.show import Displayed
from docrecall.slices import Tags
from docrecall.sources.files import FileRef
from docrecall.sources.inputs import Inputs
from docrecall.stats import Method
from docrecall.summary import Intervals, summarise
from docrecall.tables import unit_key
from docrecall.units import BESIDE, Results, Units, units_of

ROWS_SCHEMA = pl.Schema(
    {"table": pl.String(), **dict.fromkeys(("read", "used", "duplicate", "rejected", "outside"), pl.Int64())}
)


@dataclass(frozen=True)
class Scores(Displayed):
    """The scores of one run of docrecall. Frames are sorted, so equal inputs give equal frames.

    measures: canonical names, in the order asked for.
    accounting: run_id, n_total, n_scored, n_no_hits and one count per reason; n_total = n_scored + the reasons.
    findings: code, severity, table, column, n_rows, n_queries, examples, file. On hits, n_queries counts units.
    rows: table, read, used, duplicate, rejected, outside; read = the sum of the others. Used rows kept the contract
      and belong to listed queries, whatever the status of these.
    decisions: one row per run: answered and declined against answerable and unanswerable, `undecided`, the rates
      (null where there is nothing to divide by), and `declined_with_gold`: declined although a relevant document was
      among the hits. Unanswerable queries are in no mean of a measure.
    rejected: LazyFrame of table, column, reason, file and the known columns of the rows that `on_bad_rows="reject"`
      set aside; without rows when there are none.
    options: the policies, with a digest.
    inputs: table, run, file, format, mapping, columns, rows, bytes and mtime_ns of everything that was read.
    versions: of docrecall and polars. Runs can be compared where labels and versions agree.
    opened: the tables themselves, for what needs another look at them; None after `load`.
    intervals: what `summary()` without arguments shows; other than by default only where the command was told so.
    """

    measures: tuple[str, ...]
    accounting: pl.DataFrame
    findings: pl.DataFrame
    rows: pl.DataFrame
    decisions: pl.DataFrame
    rejected: pl.LazyFrame
    options: Options
    inputs: list[dict[str, Any]] = field(repr=False)
    versions: Mapping[str, str]
    _per_query: pl.DataFrame | FileRef = field(repr=False)
    _decided: pl.DataFrame | FileRef = field(repr=False)
    _tags: Tags = field(repr=False)
    _digests: Callable[[], Mapping[str, str]] = field(repr=False)
    _match: Callable[[], pl.DataFrame] | None = field(repr=False)
    _find: Callable[[Sequence[Cut]], pl.DataFrame] | None = field(repr=False)
    _again: Callable[[Sequence[Measure]], Scores] | None = field(repr=False)
    opened: Inputs | None = field(default=None, repr=False)
    intervals: Intervals = field(default=Intervals(), repr=False)
    _told: pl.DataFrame | None = field(default=None, repr=False)
    _told_slices: pl.DataFrame | None = field(default=None, repr=False)

    def scan(self) -> pl.LazyFrame:
        """Give `per_query` as a LazyFrame; with `out=DIR` and after `load` it lies on disk and is read when needed."""
        return _scan(self._per_query)

    @property
    def decided(self) -> pl.LazyFrame:
        """What the system did with each unit: the key of `per_query`, status, answerable, answered, gold_retrieved.

        answerable is null for units that are neither scored, stale nor unanswerable: nobody knows what was right there.
        gold_retrieved: whether a relevant document was among the hits, anywhere. The queries behind
        `decisions.declined_with_gold` are those with `answerable & ~answered & gold_retrieved`.
        """
        return _scan(self._decided).drop(BESIDE, strict=False)

    def reads(self, table: str, *columns: str) -> bool:
        """Whether a table was given, with some columns in all of its files."""
        found = [entry for entry in self.inputs if entry["table"] == table]
        return bool(found) and all(set(columns) <= set(entry["columns"]) for entry in found)

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """A digest of the labels (qrels) and one of the passages (evidence), where there are any."""
        return self._digests()

    @property
    def key(self) -> list[str]:
        """The columns that tell units apart: run_id, request_id where the log has it, query_id."""
        return unit_key(self.scan().collect_schema())

    def under(self, measures: Sequence[Measure]) -> Scores:
        """Give scores of the same tables that hold all of some measures: these, or those of a second pass.

        Raises UsageError after `load` when a measure is not among the written ones.
        """
        missing = [str(m) for m in measures if str(m) not in self.measures]
        if not missing:
            return self
        if self._again is None:
            raise UsageError(
                f"{', '.join(missing)}: not among the written results. Score the tables again with these measures."
            )
        return self._again(measures)

    @property
    def per_query(self) -> pl.DataFrame:
        """One row per unit, sorted by its key: run_id, request_id where the log has it, query_id.

        Then status, n_hits, and one Float64 column per measure.

        Only units with status `scored` have values. A null in such a unit means that the measure is not defined
        there, as the share of an empty cut.
        """
        return self._per_query if isinstance(self._per_query, pl.DataFrame) else self.scan().collect()

    @property
    def means_of_queries(self) -> bool:
        """Whether means are taken over queries, each with the mean of its requests."""
        return self.options.unit == "query" and "request_id" in self.key

    def units(self) -> dict[str, Units]:
        """The units of each run, for what is computed of values: means, slices, pairs."""
        return units_of(Results(self.scan(), _scan(self._decided)), sorted(self.accounting["run_id"]))

    @property
    def tags(self) -> Tags:
        """The columns of queries and requests that no measure reads."""
        return self._tags

    def summary(
        self,
        by: str | Sequence[str] | None = None,
        *,
        cluster: str | None = None,
        min_n: int | None = None,
        method: Method | None = None,
        level: float | None = None,
        resamples: int | None = None,
        seed: int | None = None,
    ) -> pl.DataFrame:
        """One row per run, slice and measure: run_id, [slice], measure, mean, n, n_null, n_eff, ci_low, ci_high, ..

        .. ci_method, ceiling. mean is the exactly rounded sum of the values, divided by n; null when n is 0. n counts
        values, n_null scored units without one. With weights the sums are weighed, and n_eff = (sum w)^2 / sum w^2 says
        how many equal weights would tell as much; without weights it is n. With `unit="query"` all of this is of
        queries. ceiling: what doc_recall could reach at most, given the documents that the index has; null for other
        measures, and where the table of documents was not given.

        by: a column of `queries` or `requests`, or several; each of their values is a slice, a null too. After `load`
        that table is given anew. min_n: a slice with fewer values (20) is shown and not judged: it has no interval and
        no test. Slices have two more columns: p, of a two-sided permutation test of "the mean of the slice is that of
        the rest of its run" (null too where there is no rest), and p_adjusted, which bounds the share of false
        discoveries (Benjamini and Hochberg) over all tests of the call: slices, runs and measures.
        ci_low, ci_high: the bootstrap interval of the mean at `level` (0.95) of so many resamples (10,000), null for
        fewer than two units; ci_method says how it was made, see `docs/intervals.md`. method: for all measures; None
        takes "bca" for measures that lie between 0 and 1, for which equal values give a "binomial" bound, and
        "expanded" for others.
        cluster: a column whose equal values are resampled together, such as conversation_id; nulls are alone. Without
        it, and where it is null, the requests of one query are resampled together where requests are the units.

        What is None is as in `intervals`: by default, or as the command was told that wrote the results.
        The same arguments give the same bits for any number of threads, batches and order of rows. Raises UsageError
        for columns that are not there and arguments without meaning.
        """
        asked: dict[str, Any] = {"by": by, "cluster": cluster, "min_n": min_n}
        asked |= {"method": method, "level": level, "resamples": resamples, "seed": seed}
        shown = self.intervals.plain() | {"by": None}
        wanted = Intervals.of({name: shown[name] if value is None else value for name, value in asked.items()})
        if wanted.parting.by:
            return self.summarised(wanted)
        return self._whole if wanted.whole == self.intervals.whole else self.summarised(wanted.whole)

    def summarised(self, wanted: Intervals, *, tested: bool = True) -> pl.DataFrame:
        """The summary by arguments that were read; tested: see `summary.summarise`."""
        by_query = self.means_of_queries
        return summarise(self.units(), self.measures, self.tags, wanted, by_query=by_query, tested=tested)

    @cached_property
    def _whole(self) -> pl.DataFrame:
        return self.summarised(self.intervals.whole) if self._told is None else self._told

    @cached_property
    def slices(self) -> pl.DataFrame | None:
        """The summary of the slices that were asked for with `--by`; None where none were."""
        if self._told_slices is not None or not self.intervals.parting.by:
            return self._told_slices
        return self.summarised(self.intervals)

    @cached_property
    def _matches(self) -> pl.DataFrame:
        if self._match is None:
            raise UsageError("matches are not among the written results. Score the tables again to look at them.")
        return self._match()

    @property
    def matches(self) -> pl.LazyFrame:
        """Where each relevant document of each scored unit was found, computed from the inputs when first asked for.

        One row per scored unit and relevant document, sorted: the key, doc_id, relevance, first_rank, doc_position. The
        last two are null for a missed document. Raises UsageError after `load`, and InputError when
        an input changed in the meantime.
        """
        return self._matches.lazy()

    def found(self, cuts: Sequence[Cut]) -> pl.DataFrame | None:
        """Which relevant documents scored units were given under some cuts, by another pass over the inputs.

        The key, cut, place and doc_id, one row per document, in no order. None after `load`: results do not keep them.
        """
        return None if self._find is None else self._find(cuts)

    def __repr__(self) -> str:
        n = self.accounting.select(pl.col("n_total", "n_scored").sum()).row(0) if self.accounting.height else (0, 0)
        return (
            f"<Scores: {self.accounting.height} runs, {n[1]:,} of {n[0]:,} units scored, {len(self.measures)} measures>"
        )


def _scan(frame: pl.DataFrame | FileRef) -> pl.LazyFrame:
    if isinstance(frame, FileRef):
        with frame.open() as file:  # another run may have replaced it: InputError, never its numbers
            return pl.scan_parquet(file, glob=False)
    return frame.lazy()
