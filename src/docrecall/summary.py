"""Values of units -> means with intervals, of whole runs and of slices of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from docrecall import stats
from docrecall.errors import UsageError
from docrecall.exact import exact_sum
from docrecall.measures.definition import Floats, Ints
from docrecall.measures.grammar import parse
from docrecall.measures.registry import REGISTRY
from docrecall.parallel import in_order
from docrecall.show import printable
from docrecall.slices import Tags
from docrecall.stats.arguments import check_level, check_resampling, check_word
from docrecall.stats.intervals import METHODS
from docrecall.tables import UNIT
from docrecall.units import Units, clustered, numbered

SUMMARY_SCHEMA = pl.Schema(
    {
        "run_id": pl.String(),
        "measure": pl.String(),
        "mean": pl.Float64(),
        "n": pl.Int64(),
        "n_null": pl.Int64(),
        "n_eff": pl.Float64(),
        "ci_low": pl.Float64(),
        "ci_high": pl.Float64(),
        "ci_method": pl.String(),
        "ceiling": pl.Float64(),
    }
)
SLICES_SCHEMA = pl.Schema({**SUMMARY_SCHEMA, "p": pl.Float64(), "p_adjusted": pl.Float64()})
MIN_N = 20
_MOST_SLICES = 10_000


class How(NamedTuple):
    """How intervals are made. method: None takes the default of `stats.bootstrap_mean`."""

    level: float = 0.95
    resamples: int = 10_000
    seed: int = 0
    method: stats.Method | None = None

    def check(self) -> How:
        """Raise UsageError for what has no meaning."""
        check_level("level", self.level)
        check_resampling(self.resamples, self.seed)
        if self.method is not None:
            check_word("method", self.method, METHODS)
        return self


class Parting(NamedTuple):
    """What units are parted by, which of them are resampled together, and from how many on a slice is judged."""

    by: tuple[str, ...] = ()
    cluster: str | None = None
    min_n: int = MIN_N

    @classmethod
    def of(cls, by: str | Sequence[str] | None, cluster: str | None, min_n: int, taken: Sequence[str]) -> Parting:
        """Read the arguments. taken: the columns of the table that slices stand in."""
        names: list[Any] = [] if by is None else list(by) if isinstance(by, list | tuple) else [by]
        if isinstance(min_n, bool) or not isinstance(min_n, int) or min_n < 1:
            raise UsageError(f"min_n is {min_n!r}; it must be a whole number of at least 1.")
        for name in names:
            if not isinstance(name, str) or not name or names.count(name) > 1:
                raise UsageError(f"by is {by!r}; one column of queries or requests, or several, were expected.")
            if name in taken:
                raise UsageError(f"{name} is a column of the result. Give the slice column another name (map=, --map).")
        if cluster is not None and not (isinstance(cluster, str) and cluster):
            raise UsageError(f"cluster is {cluster!r}; a column of queries or requests was expected.")
        return cls(tuple(names), cluster, min_n)

    @property
    def columns(self) -> list[str]:
        """The columns that are read for it."""
        return list(dict.fromkeys([*self.by, *([self.cluster] if self.cluster else [])]))


class Intervals(NamedTuple):
    """What a summary shows: how it is parted, and how its intervals are made."""

    parting: Parting = Parting()
    how: How = How()

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Intervals:
        """Read the arguments of `Scores.summary`, by name. Raises UsageError for what has no meaning."""
        parting = Parting.of(asked["by"], asked["cluster"], asked["min_n"], [*SLICES_SCHEMA, *UNIT])
        return cls(parting, How(*(asked[name] for name in How._fields)).check())

    @property
    def whole(self) -> Intervals:
        """The same for whole runs."""
        return Intervals(Parting(cluster=self.parting.cluster), self.how)

    def plain(self) -> dict[str, Any]:
        """The arguments by name, as plain values."""
        return {**self.parting._asdict(), "by": list(self.parting.by), **self.how._asdict()}


class Slices(NamedTuple):
    """Slices in the order of their values, null last, and where the units of each stand; None: all units."""

    values: pl.DataFrame
    places: list[Ints | None]

    @classmethod
    def of(cls, tags: pl.DataFrame | None) -> Slices:
        """Find the slices of units. tags: a row for each unit; without them all units are one."""
        if tags is None:
            return cls(pl.DataFrame(height=1), [None])
        names = tags.columns
        grouped = tags.with_row_index("__at").group_by(names).agg(pl.col("__at").cast(pl.Int64))
        if grouped.height > _MOST_SLICES:
            raise UsageError(
                f"{' and '.join(map(printable, names))} part the units into {grouped.height:,} slices; at most "
                f"{_MOST_SLICES:,} make sense. Group the values first."
            )
        grouped = grouped.sort(names, nulls_last=True)
        return cls(grouped.select(names), [at.to_numpy() for at in grouped["__at"]])


def rows_of(
    slices: pl.DataFrame, columns: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], schema: pl.Schema
) -> pl.DataFrame:
    """Put the rows of some slices, one each, beside their values. columns: what is the same in every row."""
    same = [pl.lit(value, schema[name]).alias(name) for name, value in columns.items()]
    rest = pl.DataFrame(rows, schema={c: t for c, t in schema.items() if c not in columns})
    return pl.concat([slices, rest], how="horizontal").with_columns(same)


def family(table: pl.DataFrame) -> int:
    """How many slices, of all runs and measures, were tested and adjusted for each other; 0 for whole runs."""
    return table["p"].count() if "p_adjusted" in table.columns else 0


class PartedRun(NamedTuple):
    """The units of a run, and the slices of them."""

    units: Units
    clusters: Ints | None
    slices: Slices


def summarise(
    runs: Mapping[str, Units],
    measures: Sequence[str],
    tags: Tags,
    wanted: Intervals,
    *,
    by_query: bool,
    tested: bool = True,
) -> pl.DataFrame:
    """One row per run, slice and measure; see `Scores.summary`. by_query: take the mean of each query first.

    tested: whether slices are tested against the rest of their run; without that there are no columns p and p_adjusted.
    """
    parting, how = wanted
    tested = tested and bool(parting.by)
    names = tags.names(parting.by)
    schema = SLICES_SCHEMA if tested else SUMMARY_SCHEMA
    columns = [c for c in schema if c not in ("run_id", "measure")]
    parts = [parted(units, tags, parting, by_query=by_query) for units in runs.values()]

    def work(task: tuple[PartedRun, str]) -> pl.DataFrame:
        run, measure = task
        rows = list(_rows(run, measure, parting, how, tested=tested))
        same = {"run_id": run.units.run, "measure": measure}
        found = rows_of(run.slices.values, same, rows, schema)
        return found.select("run_id", *names, "measure", *columns).with_row_index("__slice")

    # Stable, so that the measures of a slice stay in the order asked for.
    found = [
        pl.concat(in_order(work, [(run, m) for m in measures])).sort("__slice", maintain_order=True)
        for run in (parts if measures else ())
    ]
    found = [frame for frame in found if frame.height]
    table = pl.concat(found).drop("__slice") if found else schema.to_frame()
    return _adjusted(table) if tested else table


def _adjusted(table: pl.DataFrame) -> pl.DataFrame:
    """All slices that are judged, of all runs and measures, are one family."""
    adjusted = stats.benjamini_hochberg(table["p"].to_list())
    return table.with_columns(pl.Series("p_adjusted", adjusted, dtype=pl.Float64))


def parted(units: Units, tags: Tags, parting: Parting, *, by_query: bool) -> PartedRun:
    """Find the slices of one run, and which of its units are resampled together."""
    read = None
    if parting.columns:
        read = tags.read(parting.columns, units.keys.select(pl.lit(units.run).alias("run_id"), pl.all()))
    by = read.select(tags.names(parting.by)) if read is not None and parting.by else None
    if by_query:
        units = units.by_query(by)
        by, read = (frame if frame is None else units.firsts(frame) for frame in (by, read))
    clusters = None
    if read is not None and parting.cluster is not None:
        clusters = clustered(read.select(tags.names([parting.cluster])), units.keys)
    elif len(units.key) > 1:
        clusters = numbered(units.keys.select("query_id"))
    return PartedRun(units, clusters, Slices.of(by))


class _Slice(NamedTuple):
    """The values of a slice and their weights; as a sample, if any of them weighs anything."""

    values: Floats
    weights: Floats | None
    sample: stats.Sample | None

    @classmethod
    def of(cls, run: PartedRun, values: Floats, places: Ints | None) -> _Slice:
        at = slice(None) if places is None else places
        found = values[at]
        here: Any = ~np.isnan(found)
        here = slice(None) if here.all() else here  # which copies nothing
        found = found[here]
        weights = None if run.units.weights is None else run.units.weights[at][here]
        if not len(found) or (weights is not None and not (weights > 0).any()):
            return cls(found, weights, None)
        clusters = None if run.clusters is None else run.clusters[at][here]
        return cls(found, weights, stats.Sample.of(found, weights=weights, clusters=clusters))

    def mean(self) -> tuple[float | None, float | None]:
        """As `mean_of`; what the sample has counted already is not added up again, one value at a time."""
        if self.sample is None or self.weights is not None or self.sample.n < len(self.values):
            return mean_of(self.values, self.weights)
        return self.sample.mean, float(self.sample.n)


def _rows(run: PartedRun, measure: str, parting: Parting, how: How, *, tested: bool) -> Iterator[dict[str, Any]]:
    values, weights = run.units.values(measure), run.units.weights
    ceilings = run.units.ceilings() if measure.startswith("doc_recall@") else None
    limited = REGISTRY[parse(measure).name].high == 1
    slices = [_Slice.of(run, values, places) for places in run.slices.places]
    least = parting.min_n if parting.by else 1
    judged = [found.sample is not None and len(found.values) >= least for found in slices]
    ps = _ps([found.sample for found in slices], judged, how) if tested else []
    for number, (places, found) in enumerate(zip(run.slices.places, slices, strict=True)):
        at = slice(None) if places is None else places
        mean, n_eff = found.mean()
        low, high, method = None, None, None
        if judged[number] and found.sample is not None:
            interval = stats.bootstrap_mean(found.sample, unit_range=limited, **how._asdict())
            low, high, method = interval or (low, high, method)
        ceiling = None
        if ceilings is not None:
            reach = ~np.isnan(ceilings[at])
            ceiling, _ = mean_of(ceilings[at][reach], None if weights is None else weights[at][reach])
        yield {
            "mean": mean,
            "n": len(found.values),
            "n_null": int(run.units.scored[at].sum()) - len(found.values),
            "n_eff": n_eff,
            "ci_low": low,
            "ci_high": high,
            "ci_method": method,
            "ceiling": ceiling,
            **({"p": ps[number], "p_adjusted": None} if tested else {}),
        }


def _ps(samples: Sequence[stats.Sample | None], judged: Sequence[bool], how: How) -> list[float | None]:
    """For each slice that is judged the p value of "its mean is that of the rest of the run"."""
    given = [stats.Sample.of([]) if sample is None else sample for sample in samples]
    return stats.permutation_tests(
        given, of=[number for number, wanted in enumerate(judged) if wanted], resamples=how.resamples, seed=how.seed
    )


def mean_of(values: Floats, weights: Floats | None) -> tuple[float | None, float | None]:
    """The exactly rounded sum over the sum of weights, and the effective number; None where there is no weight."""
    if weights is None:
        n = len(values)
        return (float(exact_sum(values)) / n, float(n)) if n else (None, None)
    whole, squares = float(exact_sum(weights)), exact_sum(weights * weights)
    mean = float(exact_sum(values * weights)) / whole if whole else None
    return mean, whole**2 / float(squares) if squares else None
