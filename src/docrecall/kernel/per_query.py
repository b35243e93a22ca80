"""The kernel: one batch in, one row per unit out. A pure function of the batch, the labels and the policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from docrecall import findings
from docrecall.kernel.batch import Batch
from docrecall.kernel.counts import CutCounts, Family, looks_at_all_rows
from docrecall.kernel.labels import Labels
from docrecall.kernel.match import Matched, match
from docrecall.measures.grammar import Measure
from docrecall.measures.registry import REGISTRY
from docrecall.options import Options


@dataclass(frozen=True)
class BatchScores:
    """What the kernel says of a batch.

    units: run_id, query_id, status, n_hits, n_judged and one Float64 column per measure, for the units of the
    universe, in batch order. outside: rows of other units. n_matches: judged documents that were hit.
    labelled_hit_units: units of the universe with labels and hits. met: whether any query of the batch has good
    labels, also outside the universe, and also if its rows were set aside. altered_docs: ids that trimming or NFC would
    change. findings: counted rows.
    """

    units: pl.DataFrame
    outside: int
    n_matches: int
    labelled_hit_units: int
    met: bool
    altered_docs: pl.Series
    findings: list[pl.DataFrame]


def score_batch(batch: Batch, labels: Labels, measures: Sequence[Measure], options: Options) -> BatchScores:
    """Score the units of one batch."""
    matched = match(batch, labels, all_rows=_needs_all_rows(measures))
    units = _with_status(labels.annotate(batch.units), matched, options)
    scored = (units["status"] == "scored").to_numpy()
    values = units.with_columns(_columns(matched, measures, options, scored))
    inside = values.filter("listed")
    return BatchScores(
        units=inside.select("run_id", "query_id", "status", "n_hits", "n_judged", *map(str, measures)),
        outside=int(values.filter(~pl.col("listed"))["n_hits"].sum()),
        n_matches=len(matched.first_hits),
        labelled_hit_units=inside.filter((pl.col("n_judged") > 0) & (pl.col("n_hits") > 0)).height,
        met=bool((values["n_judged"] > 0).any()),
        altered_docs=matched.altered_docs,
        findings=_count(values),
    )


def match_batch(batch: Batch, labels: Labels, options: Options) -> pl.DataFrame:
    """Say where each relevant document of the scored units of a batch was found.

    Returns run_id, query_id, doc_id, relevance, first_rank, doc_position (null: missed), one row per scored unit and
    relevant document.
    """
    matched = match(batch, labels, all_rows=True)
    units = _with_status(labels.annotate(batch.units), matched, options).with_row_index("unit")
    placed = Family(matched, "docs", options.min_relevance)
    found = pl.DataFrame(
        {
            "label": placed.label,
            "first_rank": matched.hit_rank[matched.first_hits],
            "doc_position": placed.place,
        },
        schema={"label": pl.Int64, "first_rank": pl.Int64, "doc_position": pl.Int64},
    )
    wanted = units.filter("listed", pl.col("status") == "scored").select(
        pl.col("unit").cast(pl.Int64), "run_id", "query_id"
    )
    return (
        matched.labels.with_row_index("label")
        .with_columns(pl.col("label").cast(pl.Int64))
        .filter(pl.col("relevance") >= options.min_relevance)
        .join(wanted, on="unit", how="inner")
        .join(found, on="label", how="left")
        .select("run_id", "query_id", "doc_id", "relevance", "first_rank", "doc_position")
    )


def _needs_all_rows(measures: Sequence[Measure]) -> bool:
    return any(looks_at_all_rows(count, m.cut.unit) for m in measures for count in REGISTRY[m.name].uses)


def _with_status(units: pl.DataFrame, matched: Matched, options: Options) -> pl.DataFrame:
    """Add n_judged and status: the first reason that holds, in the order of DESIGN section 3."""
    n_units = len(units)
    n_judged = np.bincount(matched.label_unit, minlength=n_units)
    n_relevant = np.bincount(matched.label_unit[matched.grade >= options.min_relevance], minlength=n_units)
    stated = pl.col("label_status")
    status = (
        pl.when("rejected").then(pl.lit("rejected_rows"))
        .when(stated == "unanswerable").then(pl.lit("unanswerable"))
        .when((stated == "unlabelled") | (pl.col("n_judged") == 0)).then(pl.lit("unlabelled"))
        .when(pl.Series(n_relevant) == 0).then(pl.lit("no_relevant"))
        .otherwise(pl.lit("scored"))
    )  # fmt: skip
    return units.with_columns(pl.Series("n_judged", n_judged, dtype=pl.Int64)).with_columns(status.alias("status"))


def _columns(matched: Matched, measures: Sequence[Measure], options: Options, scored: np.ndarray) -> list[pl.Series]:
    families = {unit: Family(matched, unit, options.min_relevance) for unit in {m.cut.unit for m in measures}}
    cuts = {cut: CutCounts(families[cut.unit], cut) for cut in {m.cut for m in measures}}
    columns = []
    for measure in measures:
        values = np.where(scored, REGISTRY[measure.name].formula(cuts[measure.cut]), np.nan)
        columns.append(pl.Series(str(measure), values, nan_to_null=True))
    return columns


def _count(units: pl.DataFrame) -> list[pl.DataFrame]:
    """Findings about the rows of a batch: gaps in used units, hits without labels, hits outside the universe."""
    gaps = units.filter("listed", pl.col("n_gaps") > 0)
    unlabelled = units.filter("listed", pl.col("status") == "unlabelled", pl.col("n_hits") > 0)
    outside = units.filter(~pl.col("listed"), pl.col("n_hits") > 0)
    return [
        findings.finding(code, "hits", column, int(rows[of].sum()), n_queries=rows.height, examples=rows["query_id"])
        for code, column, rows, of in (
            ("rank_gaps", "rank", gaps, "n_gaps"),
            ("unlabelled_hits", None, unlabelled, "n_hits"),
            ("outside_universe", None, outside, "n_hits"),
        )
        if rows.height
    ]
