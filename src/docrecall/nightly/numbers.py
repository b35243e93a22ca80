"""The numbers of a published night, and how those of two nights or runs differ."""

from __future__ import annotations

from functools import cached_property
from math import sqrt
from typing import NamedTuple

import polars as pl

from docrecall.nightly.histograms import Group, Mean, in_unit_range, means_of, samples_of
from docrecall.nightly.store import HISTOGRAMS, ROWS, SAMPLES, Night
from docrecall.pairs import Pairs, difference
from docrecall.stats import Sample, bootstrap_difference
from docrecall.stats.effects import standard_error
from docrecall.stats.student import student_below
from docrecall.store import load
from docrecall.summary import How
from docrecall.units import Units
from docrecall.verdicts import least_units

_PAIRED = 0.9  # from this share of common queries on, two nights are compared query by query
_NOTHING = Mean(None, 0, None)


class Numbers:
    """What gates read of a night, when they ask for it."""

    def __init__(self, night: Night) -> None:
        self.night = night

    @cached_property
    def rows(self) -> pl.DataFrame:
        """Its rows of the history."""
        return self.night.frame(ROWS)

    @cached_property
    def runs(self) -> list[str]:
        """Its runs."""
        return [str(run) for run in self.rows["run_id"].unique().sort()]

    @cached_property
    def _means(self) -> dict[Group, Mean]:
        return means_of(self.night.frame(HISTOGRAMS))

    @cached_property
    def _samples(self) -> dict[Group, Sample]:
        return samples_of(self.night.frame(SAMPLES))

    @cached_property
    def _units(self) -> dict[str, Units]:
        return load(self.night.run).units()

    def mean(self, run: str, measure: str) -> Mean:
        """The mean of a measure over a whole run; without a value where there is none."""
        return self._means.get((run, None, None, measure), _NOTHING)

    def sample(self, run: str, measure: str) -> Sample | None:
        """The units behind it."""
        return self._samples.get((run, None, None, measure))

    def slices(self, run: str, measure: str, by: str) -> dict[str | None, tuple[Mean, Sample]]:
        """Slice -> the mean of a measure in it, and the units behind it."""
        groups = {group: mean for group, mean in self._means.items() if group[:2] == (run, by) and group[3] == measure}
        return {group[2]: (mean, self._samples[group]) for group, mean in groups.items() if group in self._samples}

    def units(self, run: str) -> Units:
        """The units of a run, one by one."""
        return self._units[run]


class Delta(NamedTuple):
    """A difference with its interval. sure: whether enough units differ for the interval to mean what it says."""

    value: float
    low: float | None
    high: float | None
    method: str | None
    n_pairs: int | None
    sure: bool


def differ(
    old: Numbers, new: Numbers, runs: tuple[str, str], measure: str, *, level: float, by_query: bool
) -> Delta | None:
    """The difference of two means: paired in one night, and between nights that asked nearly the same queries.

    Requests of different nights are different requests, and are two samples. runs: the old one and the new one.
    None where either side has no unit.
    """
    before, after = old.units(runs[0]), new.units(runs[1])
    same_night = old.night == new.night
    if same_night or by_query or len(after.key) == 1:
        both = Pairs.of(before, after, by_query=by_query).both(measure)
        n_pairs, alone = len(both.before), max(int(both.only_before.sum()), int(both.only_after.sum()))
        if same_night or n_pairs >= _PAIRED * (n_pairs + alone):
            found = difference(both, How(level))
            if found.delta is None:
                return None
            low, high, method = found.interval or (None, None, None)
            return Delta(found.delta, low, high, method, n_pairs, found.n_differ >= least_units(level))
    first, second = old.sample(runs[0], measure), new.sample(runs[1], measure)
    if first is None or second is None:
        return None
    interval = bootstrap_difference(first, second, level=level, unit_range=in_unit_range(measure))
    low, high, method = interval or (None, None, None)
    return Delta(second.mean - first.mean, low, high, method, None, sure=True)


def p_below(sample: Sample, bound: float, against: Sample | None = None) -> float | None:
    """The one-sided p value of a mean, or of its difference to that of another sample, being below a bound by chance.

    It is that of Student's t (1908), of two samples with Welch's degrees of freedom (1947). None for fewer than two
    units; where units do not differ at all there is no chance, and p is 0 or 1.
    """
    sides = [sample] if against is None else [sample, against]
    errors = [standard_error(side) for side in sides]
    variances = [error**2 for error in errors if error is not None]
    if len(variances) < len(sides):
        return None
    away = sample.mean - (0.0 if against is None else against.mean) - bound
    if not sum(variances):
        return 0.0 if away < 0 else 1.0
    parts = sum(v**2 / (side.n - 1) for v, side in zip(variances, sides, strict=True))
    return student_below(away / sqrt(sum(variances)), max(1, int(sum(variances) ** 2 / parts)))
