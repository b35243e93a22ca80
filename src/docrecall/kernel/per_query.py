"""The kernel: one batch in, one row per unit out. A pure function of the batch, the labels and the policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from docrecall import findings
from docrecall.kernel.batch import Batch
from docrecall.kernel.counts import CutCounts, Placed
from docrecall.kernel.family import Family, of_every_row, within
from docrecall.kernel.labels import Labels, mask
from docrecall.kernel.match import Matched, match
from docrecall.kernel.passages import Passages
from docrecall.measures.definition import Floats
from docrecall.measures.grammar import Cut, CutUnit, Measure
from docrecall.measures.registry import REGISTRY
from docrecall.options import Options
from docrecall.tables import unit_key

_NARROW_GAP = 2  # what splitters drop between chunks is a line break or two


@dataclass(frozen=True)
class BatchScores:
    """What the kernel says of a batch.

    units: the key, status, n_hits, n_judged, one Float64 column per measure, and weight, answered, gold (whether a
    relevant document was met) and ceiling (null where the index is not known), for the units of the universe, in batch
    order. outside: rows of other units. n_matches: labelled documents that were met. labelled_hit_units, hit_units,
    mismatched_units: units of the universe with labels and hits, with hits, with a hit at another version than the
    labelled one. met: whether any query of the batch has good labels, also outside the universe, and also if its rows
    were set aside. gold_chunks: by run, units with hits and gold chunks, and of these those that met one. findings:
    counted rows.
    """

    units: pl.DataFrame
    outside: int
    n_matches: int
    labelled_hit_units: int
    hit_units: int
    mismatched_units: int
    met: bool
    gold_chunks: pl.DataFrame
    findings: list[pl.DataFrame]


def score_batch(batch: Batch, labels: Labels, measures: Sequence[Measure], options: Options) -> BatchScores:
    """Score the units of one batch."""
    of_rows = {c for m in measures for count in REGISTRY[m.name].uses for c in of_every_row(count, m.cut.unit)}
    of_rows |= {"in_context"}
    passages = any(REGISTRY[m.name].labels in ("evidence", "chunks") for m in measures)
    of_hits = {"doc_version", *(("chunk_start", "chunk_end", "chunk_id") if passages else ())}
    there = batch.columns | {"rank", "doc_id"}
    matched = match(batch, labels, of_hits=of_hits & there, of_rows=of_rows & there, passages=passages)
    units = with_status(labels.annotate(batch.units), matched, options)
    units = units.drop("answered", "retrieved", strict=False).hstack(_decided(units, matched, labels, options))
    scored = mask(units["status"] == "scored")
    counted = _Counted(matched, options)
    inside, n_hits, judged = mask(units["listed"]), units["n_hits"].to_numpy(), mask(units["n_judged"] > 0)
    hit = inside & (n_hits > 0)
    return BatchScores(
        outside=int(n_hits[~inside].sum()),
        labelled_hit_units=int((hit & judged).sum()),
        hit_units=int(hit.sum()),
        mismatched_units=int((inside & mask(units["n_missed"] > 0)).sum()),
        met=bool(judged.any()),
        units=_with_values(units, [_values(counted, measure, scored) for measure in measures]),
        n_matches=int(np.count_nonzero(np.bincount(matched.hit_target[matched.met]))),
        gold_chunks=_gold_chunks(units, counted) if passages else _NO_GOLD,
        findings=[*_count(units), *(_narrow_gaps(units, counted, measures) if passages else [])],
    )


def match_batch(batch: Batch, labels: Labels, options: Options) -> pl.DataFrame:
    """Say where each relevant document of the scored units of a batch was found.

    Returns the key, doc_id, relevance, first_rank, doc_position (null: missed), one row per scored unit and relevant
    document.
    """
    of_hits = batch.columns & {"doc_version"}
    matched = match(batch, labels, of_hits=of_hits, of_rows={"rank", "doc_id"}, passages=False)
    units = with_status(labels.annotate(batch.units), matched, options).with_row_index("unit")
    placed = Placed(Family(matched, "docs"), options.min_relevance)
    found = pl.DataFrame(
        {
            "label": placed.label,
            "first_rank": matched.hits["rank"].gather(placed.hits),
            "doc_position": placed.place,
        },
        schema={"label": pl.Int64, "first_rank": pl.Int64, "doc_position": pl.Int64},
    )
    key = unit_key(units.columns)
    wanted = units.filter("listed", pl.col("status") == "scored").select(pl.col("unit").cast(pl.Int64), *key)
    return (
        matched.labels.with_row_index("label")
        .with_columns(pl.col("label").cast(pl.Int64))
        .filter(pl.col("relevance") >= options.min_relevance)
        .drop("query_id")
        .join(wanted, on="unit", how="inner")
        .join(found, on="label", how="left")
        .select(*key, "doc_id", "relevance", "first_rank", "doc_position")
    )


def found_batch(batch: Batch, labels: Labels, cuts: Sequence[Cut], options: Options) -> pl.DataFrame:
    """Say which relevant documents each scored unit of a batch was given under some cuts.

    Returns the key, cut (as it is printed), place, doc_id: one row per document that was found.
    """
    of_rows = {c for cut in cuts for c in of_every_row("docs", cut.unit)} | {"rank", "doc_id"}
    of_rows |= {"n_tokens"} if any(cut.unit == "tokens" for cut in cuts) else set()
    matched = match(batch, labels, of_hits=batch.columns & {"doc_version"}, of_rows=of_rows, passages=False)
    units = with_status(labels.annotate(batch.units), matched, options)
    key = unit_key(units.columns)
    there = units.select(pl.col("listed") & (pl.col("status") == "scored")).to_series().to_numpy()
    frames = []
    for cut in cuts:
        placed = Placed(Family(matched, cut.unit), options.min_relevance)
        taken = within(placed.reach, len(placed.label), cut.k) & (placed.grade >= options.min_relevance)
        taken &= there[placed.unit]
        frames.append(
            units[placed.unit[taken]].select(
                *key,
                pl.lit(str(cut)).alias("cut"),
                pl.Series("place", placed.place[taken], dtype=pl.Int64),
                matched.labels["doc_id"].gather(placed.label[taken]),
            )
        )
    return pl.concat(frames)


class _Counted:
    """The counts of a batch, each kind of cut placed once and each cut counted once."""

    def __init__(self, matched: Matched, options: Options) -> None:
        self.matched, self._least = matched, options.min_relevance
        self._placed: dict[CutUnit, Placed] = {}
        self._cuts: dict[object, CutCounts] = {}

    def under(self, measure: Measure) -> CutCounts:
        """The counts under the cut of a measure."""
        cut = measure.cut
        if cut.unit not in self._placed:
            self._placed[cut.unit] = Placed(Family(self.matched, cut.unit), self._least)
        if cut not in self._cuts:
            self._cuts[cut] = CutCounts(self._placed[cut.unit], cut)
        return self._cuts[cut]


def _values(counted: _Counted, measure: Measure, scored: np.ndarray) -> pl.Series:
    formula: Floats = REGISTRY[measure.name].formula(counted.under(measure), **measure.arguments)
    return pl.Series(str(measure), np.where(scored, formula, np.nan), nan_to_null=True)


def _with_values(units: pl.DataFrame, values: list[pl.Series]) -> pl.DataFrame:
    """The units of the universe with their values; columns as in `BatchScores`."""
    told = units.select(*unit_key(units.columns), "status", "n_hits", "n_judged")
    # Not with_columns: an expression for each of many measures takes longer than their values.
    whole = told.hstack(values).hstack(units.select("weight", "answered", "gold", "ceiling").get_columns())
    return whole if units["listed"].all() else whole.filter(units["listed"])


def with_status(units: pl.DataFrame, matched: Matched, options: Options) -> pl.DataFrame:
    """Add n_judged, n_relevant, n_missed and status: the first reason that holds, in the order of DESIGN section 3.

    By numpy, as other such work on the units of a batch: they are few, and each expression of the engine costs more.
    """
    n_units = len(units)
    relevant = matched.grade >= options.min_relevance
    missed = matched.label_unit[matched.hit_target[matched.missed]]
    n_judged = np.bincount(matched.label_unit, minlength=n_units)
    n_relevant = np.bincount(matched.label_unit[relevant], minlength=n_units)
    stated = units["label_status"]
    reasons = (
        mask(units["rejected"]),
        mask(stated == "unanswerable"),
        mask(stated == "unlabelled") | (n_judged == 0),
        n_relevant == 0,
        mask(units["stale"]),
    )
    status = np.full(n_units, len(reasons), dtype=np.uint32)
    for number in reversed(range(len(reasons))):
        status[reasons[number]] = number
    counts = {"n_judged": n_judged, "n_relevant": n_relevant, "n_missed": np.bincount(missed, minlength=n_units)}
    found = [pl.Series(name, n.astype(np.int64, copy=False)) for name, n in counts.items()]
    return units.hstack([*found, _STATUSES.gather(pl.Series(status)).alias("status")])


_STATUSES = pl.Series(["rejected_rows", "unanswerable", "unlabelled", "no_relevant", "stale_labels", "scored"])


def _decided(units: pl.DataFrame, matched: Matched, labels: Labels, options: Options) -> list[pl.Series]:
    """What the system did (answered, gold: whether it had a relevant document), and what it could have reached."""
    n_units = len(units)
    given = np.diff(matched.starts) > 0
    if matched.rows is not None and "in_context" in matched.rows.columns:
        given = np.diff(np.searchsorted(matched.passed_on, matched.starts)) > 0
    answered = pl.Series("answered", given)
    if labels.requests is not None:
        answered = units.select(pl.coalesce("answered", "retrieved", answered).alias("answered")).to_series()
    target = matched.hit_target[matched.met]
    gold = np.zeros(n_units, dtype=np.bool_)
    gold[matched.label_unit[target[matched.grade[target] >= options.min_relevance]]] = True
    if labels.has_index:
        reachable = matched.labels["served"].to_numpy() & ~matched.labels["stale"].to_numpy()
        reachable &= matched.grade >= options.min_relevance
        n = np.bincount(matched.label_unit[reachable], minlength=n_units)
        scored = (units["status"] == "scored").to_numpy()
        share = np.where(scored, n / np.maximum(units["n_relevant"].to_numpy(), 1), np.nan)
        ceiling = pl.Series("ceiling", share, nan_to_null=True)
    else:
        ceiling = pl.Series("ceiling", [None], dtype=pl.Float64).new_from_index(0, n_units)
    return [answered, pl.Series("gold", gold), ceiling]


_NO_GOLD = pl.DataFrame(schema={"run_id": pl.String, "n_units": pl.Int64, "n_met": pl.Int64})


def _gold_chunks(units: pl.DataFrame, counted: _Counted) -> pl.DataFrame:
    """By run, units of the universe with hits and gold chunks, and how many of them have one among all their hits."""
    named = counted.matched.passages
    if named is None or named["chunk_id"].is_null().all():
        return _NO_GOLD
    passages = Passages(Family(counted.matched, "all"))
    met = np.zeros(len(units), dtype=np.bool_)
    met[passages.unit[passages.gold[0]]] = True
    marked = units.select("run_id", "listed", "n_hits", pl.Series("named", passages.chunk_ids), pl.Series("met", met))
    asked = marked.filter("listed", pl.col("n_hits") > 0, pl.col("named") > 0)
    return asked.group_by("run_id").agg(
        pl.len().cast(pl.Int64).alias("n_units"), pl.col("met").sum().cast(pl.Int64).alias("n_met")
    )


def _narrow_gaps(units: pl.DataFrame, counted: _Counted, measures: Sequence[Measure]) -> list[pl.DataFrame]:
    """Count passages of scored units that only narrow gaps between chunks keep from full coverage in some asked cut."""
    asked = [m for m in measures if "gap" in m.arguments and m.arguments["gap"] < _NARROW_GAP]
    if not asked:
        return []
    under = [(counted.under(m).passages, int(m.arguments["gap"])) for m in asked]
    narrow = np.logical_or.reduce([(p.best(gap) < 1) & (p.best(_NARROW_GAP) == 1) for p, gap in under])
    unit = under[0][0].p.id_unit[narrow]
    scored = units.select(pl.col("listed") & (pl.col("status") == "scored")).to_series().to_numpy()
    unit = unit[scored[unit]]
    queries = units["query_id"].gather(np.unique(unit))
    n = len(queries)
    return [findings.finding("narrow_gaps", "evidence", None, len(unit), n_queries=n, examples=queries)] if n else []


def _count(units: pl.DataFrame) -> list[pl.DataFrame]:
    """Findings about the rows of a batch: gaps, hits without labels, at other versions, and outside the universe."""
    listed, hit = mask(units["listed"]), mask(units["n_hits"] > 0)
    kinds = (
        ("rank_gaps", "rank", listed & mask(units["n_gaps"] > 0), "n_gaps"),
        ("unlabelled_hits", None, listed & mask(units["status"] == "unlabelled") & hit, "n_hits"),
        ("version_mismatch", "doc_version", listed & mask(units["n_missed"] > 0), "n_missed"),
        ("outside_universe", None, ~listed & hit, "n_hits"),
    )
    found = []
    for code, column, which, of in kinds:
        if which.any():
            rows = units.filter(which)
            n = int(rows[of].sum())
            found.append(findings.finding(code, "hits", column, n, n_queries=rows.height, examples=rows["query_id"]))
    return found
