"""The numbers of a published night, and how those of two nights or runs differ."""

from __future__ import annotations

from functools import cached_property
from math import comb, sqrt
from typing import NamedTuple

import polars as pl

from docrecall.errors import DataError, InputError, UsageError
from docrecall.nightly.histograms import Group, Mean, in_unit_range, means_of, samples_of
from docrecall.nightly.store import HISTOGRAMS, ROWS, SAMPLES, TAGS, Night
from docrecall.pairs import Both, Pairs, difference
from docrecall.parted import Parted
from docrecall.scores import Scores
from docrecall.slices import Tags
from docrecall.stats import Interval, Sample, bootstrap_difference, bootstrap_mean
from docrecall.stats.effects import standard_error
from docrecall.stats.student import student_below
from docrecall.store import load
from docrecall.summary import How, Parting
from docrecall.units import Units

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
    def _scores(self) -> Scores:
        given = {name: self.night.frame(file) for name, file in TAGS.items() if file in self.night.manifest["files"]}
        if damage := self.night.damage():  # or `load` would say to score again
            raise InputError(f"{damage[0]}; run `docrecall nightly` for {self.night.date} again.")
        return load(self.night.run, **given)

    @cached_property
    def _units(self) -> dict[str, Units]:
        return self._scores.units()

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

    @property
    def tags(self) -> Tags:
        """The slices that its units are in."""
        return self._scores.tags


class Drop(NamedTuple):
    """A difference, new less old. samples: its pairs, or both sides. n_differ: pairs that do, or clusters of them."""

    value: float
    samples: tuple[Sample, ...]
    n_pairs: int | None
    n_differ: int
    unit_range: bool

    @classmethod
    def of_pairs(cls, both: Both, *, unit_range: bool) -> Drop | None:
        """Of units that stand on both sides; None where there are none with a weight."""
        found = difference(both, None)
        if found.delta is None or found.sample is None:
            return None
        return cls(found.delta, (found.sample,), found.n, found.n_differ, unit_range)

    @classmethod
    def of_samples(cls, old: Sample | None, new: Sample | None, *, unit_range: bool) -> Drop | None:
        """Of two samples; None where either is empty."""
        if old is None or new is None:
            return None
        return cls(new.mean - old.mean, (old, new), None, min(old.n, new.n), unit_range)

    def interval(self, level: float) -> Interval | None:
        """The interval of the difference; None for fewer than two units."""
        if self.n_pairs is not None:
            return bootstrap_mean(self.samples[0], **How(level)._asdict())
        old, new = self.samples
        return bootstrap_difference(old, new, level=level, unit_range=self.unit_range)

    @property
    def least_p(self) -> float:
        """The smallest p value that an exact test of so few units can have: of signs, or of permutations."""
        if self.n_pairs is not None:
            return float(0.5**self.n_differ)
        old, new = self.samples
        return 1 / comb(old.n + new.n, new.n)

    def p_below(self, bound: float) -> float | None:
        """The one-sided p value of the difference being below a bound by chance; None for fewer than two units."""
        limits = (-1.0, 1.0) if self.unit_range else None
        if self.n_pairs is not None:
            p = p_below(self.samples[0], bound, limits)
        else:
            old, new = self.samples
            p = _p_of_two(old, new, bound, unit_range=self.unit_range)
        return None if p is None else max(p, self.least_p)


def differ(old: Numbers, new: Numbers, runs: tuple[str, str], measure: str, *, by_query: bool) -> Drop | None:
    """The difference of two means: paired in one night, and between nights that asked nearly the same queries.

    Requests of different nights are different requests, and are two samples. runs: the old one and the new one.
    None where either side has no unit.
    """
    ranged = in_unit_range(measure)
    pairs = _pairs(old, new, runs, by_query=by_query)
    both = None if pairs is None else pairs.both(measure)
    if both is not None and (old.night == new.night or _nearly_all(both)):
        return Drop.of_pairs(both, unit_range=ranged)
    return Drop.of_samples(old.sample(runs[0], measure), new.sample(runs[1], measure), unit_range=ranged)


def differ_in_slices(
    old: Numbers, new: Numbers, runs: tuple[str, str], measure: str, by: str, *, by_query: bool
) -> dict[str | None, Drop]:
    """The difference in each slice that both sides have: paired as `differ` does, else of two samples."""
    ranged = in_unit_range(measure)
    sides = old.slices(runs[0], measure, by), new.slices(runs[1], measure, by)
    drops = {
        name: Drop.of_samples(sides[0][name][1], sample, unit_range=ranged)
        for name, (_, sample) in sides[1].items()
        if name in sides[0]
    }
    pairs = _pairs(old, new, runs, by_query=by_query)
    parted = None if pairs is None else _parted(pairs, (old.tags, new.tags), by)
    if pairs is not None and parted is not None:
        names = parted.slices.to_series().cast(pl.String).to_list()
        for name, both in zip(names, parted.parts(pairs.both(measure)), strict=True):
            if name in drops and (old.night == new.night or _nearly_all(both)):
                drops[name] = Drop.of_pairs(both, unit_range=ranged)
    return {name: drop for name, drop in drops.items() if drop is not None}


def _pairs(old: Numbers, new: Numbers, runs: tuple[str, str], *, by_query: bool) -> Pairs | None:
    """The units of both sides that are the same; None for the requests of two nights, and where weights changed."""
    before, after = old.units(runs[0]), new.units(runs[1])
    if old.night != new.night and not by_query and len(after.key) > 1:
        return None
    pairs = Pairs.of(before, after, by_query=by_query)
    try:
        _ = pairs.weights
    except DataError:
        return None
    return pairs


def _parted(pairs: Pairs, tags: tuple[Tags, Tags], by: str) -> Parted | None:
    """The slices of pairs; None where a pair is in none, as a query of several requests in those of requests."""
    try:
        return Parted.of(pairs, tags, Parting((by,)))
    except (UsageError, DataError):  # the latter where the column has another type since
        return None


def _nearly_all(both: Both) -> bool:
    n, alone = len(both.before), max(int(both.only_before.sum()), int(both.only_after.sum()))
    return n >= _PAIRED * (n + alone)


def p_below(sample: Sample, bound: float, limits: tuple[float, float] | None) -> float | None:
    """The one-sided p value of a mean being below a bound by chance: that of Student's t (1908).

    Units that do not differ have no spread to judge by. Between limits they are judged by Markov's inequality: that n
    values are all at most c, where their mean is m, has at most the chance ((1 - m) / (1 - c))^n; for c = 0 and values
    of 0 and 1 that is exact. Without limits by their signs. None for fewer than two units.
    """
    error = standard_error(sample)
    if error is None:
        return None
    away = sample.mean - bound
    if error:
        return student_below(away / error, sample.n - 1)
    if away >= 0:
        return 1.0
    if limits is None:
        return float(0.5**sample.n)
    high = limits[1]
    return float(max(0.0, (high - bound) / (high - sample.mean)) ** sample.n)


def _p_of_two(old: Sample, new: Sample, bound: float, *, unit_range: bool) -> float | None:
    """The same of the difference of two samples, with Welch's degrees of freedom (1947)."""
    found = [_variance(side, unit_range=unit_range) for side in (old, new)]
    variances = [v for v in found if v is not None]
    if len(variances) < len(found):
        return None
    away = new.mean - old.mean - bound
    if not sum(variances):
        return 0.0 if away < 0 else 1.0
    parts = sum(v**2 / (side.n - 1) for v, side in zip(variances, (old, new), strict=True))
    return student_below(away / sqrt(sum(variances)), max(1, int(sum(variances) ** 2 / parts)))


def _variance(side: Sample, *, unit_range: bool) -> float | None:
    """Of the mean. Units between 0 and 1 that do not differ get one more at either end (Agresti and Caffo 2000)."""
    error = standard_error(side)
    if error is None:
        return None
    if error or not unit_range:
        return error**2
    mean = (side.n * side.mean + 1) / (side.n + 2)
    return mean * (1 - mean) / (side.n + 2)
