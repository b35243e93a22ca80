"""What is kept of a night so that nights add up: how often each value occurs, and what intervals are made from.

A histogram has one row per (run_id, slice, slice_value, measure, value, weight) with its count. `slice` and
`slice_value` are null for the whole run, `ceiling` stands among the measures, and weight is 1 where nobody weighs. The
mean of several nights is made of their histograms put together: the date is part of the unit, so a query that is asked
every night counts every night, as it does when a month of requests is scored at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
                values = run.units.ceilings() if measure == CEILING else run.units.values(measure)
                if values is None:
                    continue
                group = {"run_id": units.run, "slice": by, "measure": measure}
                histograms.append(_named(_histogram(run, values), run, group).select(*HISTOGRAM_SCHEMA))
                if measure != CEILING:
                    samples.append(_named(_samples(run, values), run, group).select(*SAMPLE_SCHEMA))
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


_NO_FLOATS = np.zeros(0, np.float64)
_AT = "__slice"  # the number of a slice of a run


def _histogram(run: PartedRun, values: Floats) -> pl.DataFrame:
    """How often each value occurs with each weight in each slice, over the units that have one."""
    slice_of = np.zeros(len(values), np.int64)
    for number, places in enumerate(run.slices.places):
        slice_of[slice(None) if places is None else places] = number
    there = ~np.isnan(values)
    weights = np.ones(len(values)) if run.units.weights is None else run.units.weights
    rows = pl.DataFrame({_AT: slice_of[there], "value": values[there], "weight": weights[there]})
    return rows.group_by(rows.columns).agg(pl.len().cast(pl.Int64).alias("count"))


def _samples(run: PartedRun, values: Floats) -> pl.DataFrame:
    """The distinct units of each slice that has any with a weight."""
    weights, clusters = run.units.weights, run.clusters
    found: list[tuple[int, Sample]] = []
    for number, places in enumerate(run.slices.places):
        at = np.arange(len(values)) if places is None else places
        at = at[~np.isnan(values[at])]
        ws = None if weights is None else weights[at]
        if len(at) and (ws is None or ws.any()):
            cs = None if clusters is None else clusters[at]
            found.append((number, Sample.of(values[at], weights=ws, clusters=cs)))
    samples = [sample for _, sample in found]
    sizes = np.array([len(s.counts) for s in samples], np.int64)
    return pl.DataFrame(
        {
            _AT: np.repeat(np.array([number for number, _ in found], np.int64), sizes),
            "total": np.concatenate([_NO_FLOATS, *(s.totals for s in samples)]),
            "weight": np.concatenate([_NO_FLOATS, *(s.weights for s in samples)]),
            "count": np.concatenate([np.zeros(0, np.int64), *(s.counts for s in samples)]),
            "low": np.repeat(np.array([s.low for s in samples], np.float64), sizes),
            "high": np.repeat(np.array([s.high for s in samples], np.float64), sizes),
        }
    )


def _named(rows: pl.DataFrame, run: PartedRun, group: Mapping[str, str | None]) -> pl.DataFrame:
    """Put the names of the group, and of the slice in place of its number, beside rows."""
    named = run.slices.values
    texts = named.to_series().cast(pl.String) if named.width else pl.Series([None], dtype=pl.String)
    told = [pl.lit(cell, pl.String).alias(c) for c, cell in group.items()]
    return rows.with_columns(*told, texts.gather(rows[_AT]).alias("slice_value"))


def samples_of(frame: pl.DataFrame) -> dict[Group, Sample]:
    """Read samples back, as they are sorted when they are kept."""
    return {
        group: Sample(totals, weights, counts, float(low[0]), float(high[0]))
        for group, (totals, weights, counts, low, high) in _groups(frame, "total", "weight", "count", "low", "high")
    }


def means_of(histogram: pl.DataFrame) -> dict[Group, Mean]:
    """The mean of each group: the exactly rounded sum over n, or over the weights where any is not 1."""
    return {group: _mean(*columns) for group, columns in _groups(histogram, "value", "weight", "count")}


def _mean(values: Floats, weights: Floats, counts: Ints) -> Mean:
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


def _groups(frame: pl.DataFrame, *columns: str) -> Iterator[tuple[Group, list[Any]]]:
    """Some columns of each group of a frame that is sorted by groups, as arrays."""
    if frame.is_empty():
        return
    numbers = frame.select(pl.struct(GROUP).rle_id()).to_series().to_numpy().astype(np.int64)
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    arrays = [frame[c].to_numpy() for c in columns]
    names = frame.select(GROUP)[starts].rows()
    for name, low, high in zip(names, starts, [*starts[1:], frame.height], strict=True):
        yield name, [array[low:high] for array in arrays]
