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
from docrecall.measures.grammar import parse_all
from docrecall.measures.registry import REGISTRY
from docrecall.stats import Interval, Sample, bootstrap_mean
from docrecall.summary import CEILING, means_of_stretches

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


def scored_units(units: pl.LazyFrame, measures: Sequence[str], *, by_query: bool) -> pl.DataFrame:
    """The rows that means are taken over: scored units, or, with `by_query`, queries with the means of their requests.

    units: as the kernel gives them, of all batches. Returns run_id, query_id, weight, the measures and the ceiling.
    """
    names = [*measures, CEILING]
    rows = units.filter(pl.col("status") == "scored").select("run_id", "query_id", "weight", *names).collect()
    if not by_query or rows.is_empty():
        return rows
    rows = rows.sort("run_id", "query_id", maintain_order=True)
    key = pl.struct("run_id", "query_id")
    new = rows.select(key.ne_missing(key.shift())).to_series().to_numpy().copy()
    new[0] = True
    begin = np.flatnonzero(new)
    means = [
        pl.Series(name, means_of_stretches(rows[name].to_list(), begin.tolist()), dtype=pl.Float64) for name in names
    ]
    return rows[begin].select("run_id", "query_id", "weight").with_columns(means)


def count_values(rows: pl.DataFrame, measures: Sequence[str]) -> pl.DataFrame:
    """The histogram of each run and measure over `scored_units`, sorted; units without a value take no part."""
    parts = [
        rows.lazy()
        .filter(pl.col(name).is_not_null())
        .group_by("run_id", "weight", pl.col(name).alias("value"))
        .agg(pl.len().cast(pl.Int64).alias("count"))
        .with_columns(pl.lit(name).alias("measure"), *(pl.lit(None, pl.String).alias(c) for c in GROUP[1:3]))
        .select(*HISTOGRAM_SCHEMA)
        for name in (*measures, CEILING)
    ]
    return pl.concat(parts).sort(*GROUP, "value", "weight").collect()


def sample_values(rows: pl.DataFrame, measures: Sequence[str], *, clustered: bool) -> pl.DataFrame:
    """The `stats.Sample` of each run and measure over `scored_units`, one row per distinct unit in it.

    clustered: whether rows are requests, of which those of one query are resampled together.
    """
    frames = [pl.DataFrame(schema=SAMPLE_SCHEMA)]
    for (run,), part in rows.partition_by("run_id", as_dict=True, maintain_order=True).items():
        queries = part["query_id"].rank("dense").cast(pl.Int64).to_numpy()
        weights = part["weight"].to_numpy()
        for name in measures:
            there = part[name].is_not_null().to_numpy()
            if not there.any() or not weights[there].any():
                continue
            found = Sample.of(
                part[name].to_numpy()[there],
                weights=None if (weights == 1).all() else weights[there],
                clusters=queries[there] if clustered else None,
            )
            frames.append(_as_frame(found, (str(run), None, None, name)))
    return pl.concat(frames).sort(*GROUP, "total", "weight")


def _as_frame(sample: Sample, group: Group) -> pl.DataFrame:
    columns = {"total": sample.totals, "weight": sample.weights, "count": sample.counts}
    named = [pl.lit(cell, pl.String).alias(c) for c, cell in zip(GROUP, group, strict=True)]
    bounds = [pl.lit(sample.low).alias("low"), pl.lit(sample.high).alias("high")]
    return pl.DataFrame(columns).select(*named, "total", "weight", "count", *bounds)


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
    return REGISTRY[parse_all(measure)[0].name].high == 1


def _groups(frame: pl.DataFrame) -> Iterator[tuple[Group, pl.DataFrame]]:
    parts: Mapping[tuple[object, ...], pl.DataFrame] = frame.partition_by(GROUP, as_dict=True, maintain_order=True)
    yield from parts.items()  # type: ignore[misc]
