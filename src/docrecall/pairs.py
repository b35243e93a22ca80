"""Units that two runs share, side by side, and what changed from one to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from docrecall import stats
from docrecall.cuts import COMPARED, DiagnosisPlan
from docrecall.exact import exact_sum
from docrecall.measures.definition import Floats, Ints
from docrecall.measures.grammar import Cut
from docrecall.scores import Scores
from docrecall.summary import means_of_stretches
from docrecall.tables import unit_key
from docrecall.verdicts import Delta, way_of

_ROUNDING = 1e-12  # differences of equal shares that were reached in two ways differ in the last bits


# By cut and column of the lines: the difference, and how its interval was made.
Deltas = Mapping[Cut, Mapping[str, tuple[Delta, str | None]]]


class How(NamedTuple):
    """How intervals are made."""

    level: float
    resamples: int
    seed: int


@dataclass(frozen=True)
class Pairs:
    """The units that are scored in both of two runs.

    before, after: the measures' values of these units in either run, one row per unit in the same order. clusters: a
    number for each unit, equal for requests of one query; None where units are queries.
    """

    before: pl.DataFrame
    after: pl.DataFrame
    clusters: Ints | None

    def differences(self, measure: str) -> tuple[Floats, Ints | None]:
        """The differences of the units that have a value in both runs, and their clusters."""
        before, after = self.before[measure], self.after[measure]
        both = (before.is_not_null() & after.is_not_null()).to_numpy()
        found = after.to_numpy()[both] - before.to_numpy()[both]
        return found, None if self.clusters is None else self.clusters[both]


def pair(before: pl.DataFrame, after: pl.DataFrame, measures: Sequence[str], *, by_query: bool) -> Pairs:
    """Pair the scored units of two runs by what names them, never by the order of rows.

    before, after: request_id where it is logged, query_id, and the measures. by_query: take the mean of the requests of
    each query first. That is done too where the runs have no request in common.
    """
    key = unit_key(before.columns)
    by_request = len(key) == 2 and not by_query
    found = _join(before, after, key) if by_request else None
    if found is None or found.is_empty():
        if len(key) == 2:
            before, after = _queries(before, measures), _queries(after, measures)
        by_request = False
        found = _join(before, after, ["query_id"])
    left, right = before[found["at"]], after[found["at_after"]]
    clusters = left["query_id"].rank("dense").cast(pl.Int64).to_numpy() if by_request else None
    return Pairs(left.select(measures), right.select(measures), clusters)


def _join(before: pl.DataFrame, after: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    left = before.select(key).with_row_index("at")
    right = after.select(key).with_row_index("at_after")
    return left.join(right, on=key, how="inner", validate="1:1").sort("at")


def _queries(units: pl.DataFrame, measures: Sequence[str]) -> pl.DataFrame:
    """The mean of the requests of each query that have a value, query by query."""
    units = units.sort("query_id", maintain_order=True)
    starts = np.flatnonzero((units["query_id"] != units["query_id"].shift()).fill_null(True).to_numpy())
    columns = [units["query_id"].gather(starts)]
    for measure in measures:
        means = means_of_stretches(units[measure].to_list(), starts.tolist())
        columns.append(pl.Series(measure, means, dtype=pl.Float64))
    return pl.DataFrame(columns)


def difference(pairs: Pairs, measure: str, counted: str, how: How) -> tuple[Delta, str | None]:
    """The mean difference over the pairs, each of which counts once, and how its interval was made.

    counted: what the measure counts. The value is None without pairs, the interval for fewer than two.
    """
    values, clusters = pairs.differences(measure)
    if not len(values):
        return Delta(counted, None, None, None, 0, 0, 0), None
    differ = np.abs(values) > _ROUNDING
    n_differ = int(differ.sum()) if clusters is None else len(np.unique(clusters[differ]))
    interval = stats.bootstrap_mean(values, clusters=clusters, **how._asdict())
    low, high, method = interval or (None, None, None)
    mean = float(exact_sum(values)) / len(values)
    way = way_of(low, high, n_differ, how.level)
    return Delta(counted, mean, low, high, len(values), n_differ, way), method


def compare_runs(
    scores: Scores, plan: DiagnosisPlan, compared: Sequence[tuple[str, str]], how: How
) -> dict[tuple[str, str], Deltas]:
    """The differences of each pair of runs, by cut and column."""
    if not compared:
        return {}
    columns = {cut: {c: m for c, m in of.items() if c in COMPARED} for cut, of in plan.by_cut.items()}
    names = list(dict.fromkeys(str(m) for of in columns.values() for m in of.values()))
    scored = scores.scan().filter(pl.col("status") == "scored").select(*scores.key, *names).collect()
    parts = {run: rows.drop("run_id") for (run,), rows in scored.partition_by("run_id", as_dict=True).items()}
    nothing = scored.drop("run_id").clear()
    found: dict[tuple[str, str], Deltas] = {}
    for a, b in compared:
        left, right = parts.get(a, nothing), parts.get(b, nothing)
        pairs = pair(left, right, names, by_query=scores.options.unit == "query")
        found[a, b] = {
            cut: {column: difference(pairs, str(m), noun(column, cut), how) for column, m in of.items()}
            for cut, of in columns.items()
        }
    return found


def noun(column: str, cut: Cut) -> str:
    """What a measure counts, for sentences."""
    return {
        "naive_recall": "hits",
        "doc_recall": "documents",
        "doc_recall_docs": "the first document" if cut.k == 1 else f"the first {cut.k} documents",
        "evidence_coverage": "parts of passages",
        "evidence_recall": "whole passages",
    }[column]
