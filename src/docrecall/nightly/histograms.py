"""What is kept of a night so that nights add up: how often each value occurs, and what intervals are made from.

A histogram has one row per (run_id, slice, slice_value, measure, value, weight) with its count. `slice` and
`slice_value` are null for the whole run, `ceiling` stands among the measures, and weight is 1 where nobody weighs. The
mean of several nights is made of their histograms put together: the date is part of the unit, so a query that is asked
every night counts every night, as it does when a month of requests is scored at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from docrecall.exact import exact_sum
from docrecall.measures.definition import Floats, Ints
from docrecall.measures.grammar import parse
from docrecall.measures.registry import REGISTRY
from docrecall.scores import Scores
from docrecall.stats import Interval, Sample, bootstrap_mean
from docrecall.summary import PartedRun, Parting, parted

CEILING = "ceiling"
GROUP = ("run_id", "slice", "slice_value", "measure")
_GROUP_SCHEMA = dict.fromkeys(GROUP, pl.String())
HISTOGRAM_SCHEMA = pl.Schema({**_GROUP_SCHEMA, "value": pl.Float64(), "weight": pl.Float64(), "count": pl.Int64()})
SAMPLE_SCHEMA = pl.Schema(
    {
        **_GROUP_SCHEMA,
        **dict.fromkeys(("total", "weight"), pl.Float64()),
        "count": pl.Int64(),
        **dict.fromkeys(("low", "high"), pl.Float64()),
    }
)
Group = tuple[str, str | None, str | None, str]


class Mean(NamedTuple):
    """A mean with what stands beside it in `Scores.summary`."""

    mean: float | None
    n: int
    n_eff: float | None


def count(scores: Scores, slices: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Count the values of each run, slice and measure: their histograms, and their samples.

    slices: columns of queries and requests, each of which parts the units by itself. Units without a value take no
    part. A sample has one row per distinct unit of `stats.Sample`, in which the requests of a query are one unit.
    """
    histograms, samples = [HISTOGRAM_SCHEMA.to_frame()], [SAMPLE_SCHEMA.to_frame()]
    for by in (None, *slices):
        parting = Parting(() if by is None else (by,))
        for units in scores.units().values():
            run = parted(units, scores.tags, parting, by_query=scores.means_of_queries)
            for measure in (*scores.measures, CEILING):
                for group, values, weights, clusters in _slices(run, by, measure):
                    histograms.append(_histogram(group, values, weights))
                    if measure != CEILING and (weights is None or weights.any()):
                        samples.append(_sample(group, Sample.of(values, weights=weights, clusters=clusters)))
    return (
        pl.concat(histograms).sort(*GROUP, "value", "weight"),
        pl.concat(samples).sort(*GROUP, "total", "weight"),
    )


def tags_of(scores: Scores, slices: Sequence[str]) -> dict[str, pl.DataFrame]:
    """What parts the units, so that slices can be compared pair by pair: tables as `load` takes them, by name.

    They have the columns that are named as slices and no others: such tables hold text of queries too.
    """
    found = {}
    for name in ("queries", "requests"):
        columns = [by for by in slices if scores.tags.per_query(by) == (name == "queries")]
        if columns:
            units = scores.scan().select(["query_id"] if name == "queries" else scores.key).unique().collect()
            tags = scores.tags.read(columns, units)
            found[name] = pl.concat([units, tags], how="horizontal").sort(units.columns)
    return found


_Values = tuple[Group, Floats, Floats | None, Ints | None]


def _slices(run: PartedRun, by: str | None, measure: str) -> Iterator[_Values]:
    """The values of one measure in each slice of a run, their weights, and which are of one query."""
    values = run.units.ceilings() if measure == CEILING else run.units.values(measure)
    if values is None:
        return
    weights = run.units.weights
    named = [None] if by is None else run.slices.values.to_series().cast(pl.String).to_list()
    for value, places in zip(named, run.slices.places, strict=True):
        at = np.arange(len(values)) if places is None else places
        at = at[~np.isnan(values[at])]
        if len(at):
            ws = None if weights is None else weights[at]
            clusters = None if run.clusters is None else run.clusters[at]
            yield (run.units.run, by, value, measure), values[at], ws, clusters


def _histogram(group: Group, values: Floats, weights: Floats | None) -> pl.DataFrame:
    rows = pl.DataFrame({"value": values, "weight": np.ones(len(values)) if weights is None else weights})
    counted = rows.group_by("value", "weight").agg(pl.len().cast(pl.Int64).alias("count"))
    return counted.select(*_named(group), *counted.columns)


def _sample(group: Group, sample: Sample) -> pl.DataFrame:
    columns = pl.DataFrame({"total": sample.totals, "weight": sample.weights, "count": sample.counts})
    bounds = [pl.lit(sample.low).alias("low"), pl.lit(sample.high).alias("high")]
    return columns.select(*_named(group), pl.all(), *bounds)


def _named(group: Group) -> list[pl.Expr]:
    return [pl.lit(cell, pl.String).alias(c) for c, cell in zip(GROUP, group, strict=True)]


def samples_of(frame: pl.DataFrame) -> dict[Group, Sample]:
    """Read samples back."""
    return {
        group: Sample(
            part["total"].to_numpy(),
            part["weight"].to_numpy(),
            part["count"].to_numpy(),
            part["low"].item(0),
            part["high"].item(0),
        )
        for group, part in _groups(frame)
    }


def means_of(histogram: pl.DataFrame) -> dict[Group, Mean]:
    """The mean of each group: the exactly rounded sum over n, or over the weights where any is not 1."""
    return {group: _mean(part) for group, part in _groups(histogram)}


def _mean(part: pl.DataFrame) -> Mean:
    values, weights, counts = (part[c].to_numpy() for c in ("value", "weight", "count"))
    n = int(counts.sum())
    if (weights == 1).all():
        return Mean(float(exact_sum(values, counts)) / n if n else None, n, float(n) or None)
    whole, squares = float(exact_sum(weights, counts)), float(exact_sum(weights * weights, counts))
    mean = float(exact_sum(values * weights, counts)) / whole if whole else None
    return Mean(mean, n, whole**2 / squares if squares else None)


def add_up(histograms: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Put the histograms of several nights together."""
    frames = list(histograms)
    whole = pl.concat(frames) if frames else pl.DataFrame(schema=HISTOGRAM_SCHEMA)
    return whole.group_by(*GROUP, "value", "weight").agg(pl.col("count").sum()).sort(*GROUP, "value", "weight")


def interval(sample: Sample | None, measure: str, level: float) -> Interval | None:
    """The interval of a mean, as `docrecall.stats` gives it for such a measure; None for fewer than two units."""
    return None if sample is None else bootstrap_mean(sample, level=level, unit_range=in_unit_range(measure))


def in_unit_range(measure: str) -> bool:
    """Whether the values of a measure lie between 0 and 1."""
    return REGISTRY[parse(measure).name].high == 1


def _groups(frame: pl.DataFrame) -> Iterator[tuple[Group, pl.DataFrame]]:
    parts: Mapping[tuple[object, ...], pl.DataFrame] = frame.partition_by(GROUP, as_dict=True, maintain_order=True)
    yield from parts.items()  # type: ignore[misc]
