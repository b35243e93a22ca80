"""Gates: what a published night must keep, judged from its numbers and those of the nights before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import date
from statistics import median
from typing import Any, Literal, NamedTuple

import polars as pl

from docrecall.nightly.config import Config, Gate
from docrecall.nightly.folder import HISTOGRAMS, SAMPLES
from docrecall.nightly.histograms import Group, Mean, in_unit_range, means_of, samples_of
from docrecall.nightly.history import ROWS
from docrecall.nightly.store import Night, Store
from docrecall.pairs import How, difference, pair
from docrecall.show import printable
from docrecall.stats import Sample, bootstrap_difference
from docrecall.store import PER_QUERY
from docrecall.tables import unit_key
from docrecall.verdicts import least_units

Status = Literal["passed", "failed", "not_judged"]
_ROUNDING = 1e-12  # a mean that reaches its bound but for the last bits has reached it
_PAIRED = 0.9  # from this share of common queries on, two nights are compared query by query
_RESAMPLES = 10_000
_SHARES = {
    "max_unlabelled": ("n_unlabelled", "n_total", "units are unlabelled"),
    "max_stale": ("n_stale_labels", "n_total", "units have stale labels"),
    "max_rejected": ("n_rejected", "n_total", "units are touched by rejected rows"),
    "max_no_hits": ("n_no_hits", "n_scored", "scored units have no hits"),
}


@dataclass(frozen=True)
class Judged:
    """What one gate says of one run. why: a sentence for people.

    gate: min, max_drop or the name of a data gate. value: the mean, the share, or the rows over their median; bound:
    what it must keep. baseline: the night or run that it was compared with, delta the difference, with its interval,
    method and number of pairs (None for two samples).
    """

    gate: str
    status: Status
    why: str
    run_id: str | None = None
    measure: str | None = None
    value: float | None = None
    bound: float | None = None
    n: int | None = None
    baseline: str | None = None
    delta: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    ci_method: str | None = None
    n_pairs: int | None = None


class _Delta(NamedTuple):
    """A difference with its interval. sure: whether enough units differ for the interval to mean what it says."""

    value: float
    low: float | None
    high: float | None
    method: str | None
    n_pairs: int | None
    sure: bool


class _Numbers:
    """The numbers of a published night, read when they are asked for."""

    def __init__(self, night: Night) -> None:
        self.night = night
        self.means: dict[Group, Mean] = means_of(night.frame(HISTOGRAMS))
        self._samples: dict[Group, Sample] | None = None
        self._per_query: pl.DataFrame | None = None

    def mean(self, run: str, measure: str) -> Mean:
        return self.means.get((run, None, None, measure), Mean(None, 0, None))

    @property
    def runs(self) -> list[str]:
        return self.night.frame(ROWS)["run_id"].unique().sort().to_list()

    def sample(self, run: str, measure: str) -> Sample | None:
        if self._samples is None:
            frame = self.night.frame(SAMPLES)
            self._samples = samples_of(frame) if frame.height else {}
        return self._samples.get((run, None, None, measure))

    def units(self, run: str, measure: str) -> pl.DataFrame:
        """The scored units of a run that have a value: what names them, and the value."""
        if self._per_query is None:
            self._per_query = self.night.frame(PER_QUERY).filter(pl.col("status") == "scored")
        there = self._per_query.filter(pl.col("run_id") == run, pl.col(measure).is_not_null())
        return there.select(*(c for c in unit_key(there.columns) if c != "run_id"), measure)


def judge(config: Config, store: Store, night: Night) -> list[Judged]:
    """Judge a night by every gate of the configuration, in its order; data gates last."""
    tonight = _Numbers(night)
    before = _Before(config, store, night)
    found = [j for gate in config.gates for j in _measure_gate(gate, config, tonight, before)]
    return [*found, *_data_gates(config, store, tonight)]


def passed(judged: list[Judged]) -> bool:
    """Whether no gate failed."""
    return all(j.status != "failed" for j in judged)


def reason(judged: list[Judged]) -> str:
    """One line on all gates."""
    by_status = {status: [j for j in judged if j.status == status] for status in ("passed", "failed", "not_judged")}
    failed, open_ = by_status["failed"], by_status["not_judged"]
    if failed:
        text = f"{len(failed)} of {len(judged)} gates failed: {'; '.join(j.why for j in failed[:3])}"
        text += f"; and {len(failed) - 3} more" if len(failed) > 3 else ""
    else:
        text = f"{len(by_status['passed'])} of {len(judged)} gates passed" if judged else "no gates are set"
    if open_:
        text += f"; {len(open_)} not judged: {'; '.join(dict.fromkeys(j.why for j in open_))}"
    return text


def as_dicts(judged: list[Judged]) -> list[dict[str, Any]]:
    """For JSON."""
    return [asdict(j) for j in judged]


class _Before:
    """The nights that gates compare with: those before this one, passed, and scored by the same labels and options."""

    def __init__(self, config: Config, store: Store, night: Night) -> None:
        self._config, self._store, self._night = config, store, night
        self._good: list[_Numbers] | None = None
        self.why_not = "no night before it passed its gates"

    def good(self) -> list[_Numbers]:
        """The newest first; as many as the configuration asks for."""
        if self._good is None:
            baseline = self._config.baseline
            most = 1 if baseline.against == "last_good" else baseline.nights
            self._good = [_Numbers(n) for n in self._find(most)]
        return self._good

    def _find(self, most: int) -> list[Night]:
        found: list[Night] = []
        for day in reversed([d for d in self._store.dates() if d < self._night.date]):
            night = self._store.read(day)
            verdict = None if night is None else self._store.verdict(night)
            if night is None or verdict is None or not verdict["passed"]:
                continue
            other = _differs(night, self._night)
            if other and not found:
                self.why_not = f"{other} changed after {day}: run that night again to compare with it"
                break
            if not other:
                found.append(night)
            if other or len(found) == most:
                break
        return found

    def of(self, run: str, measure: str) -> _Numbers | None:
        """The night that this measure of this run is compared with."""
        there = [n for n in self.good() if n.mean(run, measure).mean is not None]
        if not there:
            return None
        # Of an even number the lower one of the middle two: the baseline is a night, not a number between two.
        ordered = sorted(there, key=lambda n: (n.mean(run, measure).mean or 0.0, n.night.date))
        return ordered[(len(ordered) - 1) // 2]


def _differs(one: Night, other: Night) -> str | None:
    names = {"label_digest": "labels", "options_digest": "options"}
    return next((word for name, word in names.items() if one.manifest[name] != other.manifest[name]), None)


def _measure_gate(gate: Gate, config: Config, tonight: _Numbers, before: _Before) -> Iterator[Judged]:
    against = config.baseline.run
    runs = [gate.run] if gate.run is not None else [r for r in tonight.runs if r != against or gate.max_drop is None]
    for run in runs:
        mean = tonight.mean(run, gate.measure)
        told = f"{gate.measure} of {printable(run)}"
        base = Judged("min", "passed", "", run, gate.measure, mean.mean, n=mean.n)
        if mean.mean is None:
            yield replace(base, gate="value", status="failed", why=f"{told} has no value")
            continue
        if gate.min is not None:
            low = mean.mean < gate.min - _ROUNDING
            why = f"{told} is {mean.mean:.4f}, {'below' if low else 'at least'} {gate.min:g}"
            yield replace(base, status="failed" if low else "passed", why=why, bound=gate.min)
        if gate.max_drop is not None:
            yield _drop_gate(replace(base, gate="max_drop", bound=gate.max_drop), gate, config, tonight, before)


def _drop_gate(base: Judged, gate: Gate, config: Config, tonight: _Numbers, before: _Before) -> Judged:
    run, measure, allowed = str(base.run_id), gate.measure, gate.max_drop or 0.0
    if config.baseline.against == "run":
        other, old_run, named_by = tonight, str(config.baseline.run), str(config.baseline.run)
        if other.mean(old_run, measure).mean is None:
            return replace(base, status="failed", why=f"the baseline run {printable(old_run)} has no {measure}")
    else:
        found = before.of(run, measure)
        if found is None:
            return replace(base, status="not_judged", why=before.why_not)
        other, old_run, named_by = found, run, found.night.date.isoformat()
    delta = _delta(other, tonight, (old_run, run), measure, config)
    if delta is None or delta.low is None or delta.high is None:
        return replace(base, status="not_judged", baseline=named_by, why="too few units to compare")
    failed = delta.sure and delta.high < -allowed - _ROUNDING
    told = f"{measure} of {printable(run)} is {delta.value:+.4f} [{delta.low:+.4f}, {delta.high:+.4f}]"
    if failed:
        verdict = f"surely a drop of more than {allowed:g}"
    elif delta.value < -allowed - _ROUNDING:
        verdict = f"perhaps a drop of more than {allowed:g}, which may be chance"
    else:
        verdict = f"no drop of more than {allowed:g}"
    return replace(
        base,
        status="failed" if failed else "passed",
        why=f"{told} against {printable(named_by)}, {verdict}",
        baseline=named_by,
        delta=delta.value,
        ci_low=delta.low,
        ci_high=delta.high,
        ci_method=delta.method,
        n_pairs=delta.n_pairs,
    )


def _delta(old: _Numbers, new: _Numbers, runs: tuple[str, str], measure: str, config: Config) -> _Delta | None:
    """The difference of two means: paired in one night, and between nights that asked nearly the same queries.

    Requests of different nights are different requests, and are two samples.
    """
    by_query = config.options.unit == "query"
    old_run, run = runs
    before, after = old.units(old_run, measure), new.units(run, measure)
    same_night = old is new
    weighted = any(not _plain(s) for s in (old.sample(old_run, measure), new.sample(run, measure)) if s is not None)
    if same_night or (not weighted and (by_query or "request_id" not in after.columns)):
        pairs = pair(before, after, [measure], by_query=by_query)
        n_pairs = pairs.before.height
        if same_night or n_pairs >= _PAIRED * max(_n(before, by_query), _n(after, by_query)):
            found, method = difference(pairs, measure, measure, How(config.level, _RESAMPLES, 0))
            if found.value is None:
                return None
            sure = found.n_differ >= least_units(config.level)
            return _Delta(found.value, found.low, found.high, method, n_pairs, sure)
    first, second = old.sample(old_run, measure), new.sample(run, measure)
    if first is None or second is None:
        return None
    interval = bootstrap_difference(
        first, second, level=config.level, resamples=_RESAMPLES, unit_range=in_unit_range(measure)
    )
    low, high, how = interval or (None, None, None)
    return _Delta(second.mean - first.mean, low, high, how, None, sure=True)


def _n(units: pl.DataFrame, by_query: bool) -> int:
    return units["query_id"].n_unique() if by_query else units.height


def _plain(sample: Sample) -> bool:
    """Whether each unit weighs the same; clusters of requests do not, and are no reason not to pair."""
    return bool((sample.weights == sample.weights[:1]).all())


def _data_gates(config: Config, store: Store, tonight: _Numbers) -> Iterator[Judged]:
    rows = tonight.night.frame(ROWS).unique("run_id", keep="first", maintain_order=True)
    for row in rows.to_dicts():
        for name, (part, whole, words) in _SHARES.items():
            most = getattr(config.data, name)
            if most is None:
                continue
            yield _share(Judged(name, "passed", "", row["run_id"], bound=most, n=row[whole]), row[part], words)
    most = config.data.max_version_mismatch
    if most is not None:  # counted over all runs
        found = tonight.night.frame("findings.parquet").filter(pl.col("code") == "version_mismatch")
        base = Judged("max_version_mismatch", "passed", "", bound=most, n=int(rows["n_total"].sum()))
        yield _share(base, int(found["n_queries"].sum()), "units have a labelled document at another version")
    yield from _row_gates(config, store, tonight.night)


def _share(base: Judged, part: int, words: str) -> Judged:
    """Judge a share of the `n` units of a gate by its bound."""
    of = "all runs" if base.run_id is None else printable(base.run_id)
    if not base.n or base.bound is None:
        return replace(base, status="failed", why=f"{of}: nothing was scored")
    share = part / base.n
    over = share > base.bound + _ROUNDING
    why = f"{of}: {share:.1%} of the {words}, {'more than' if over else 'at most'} {base.bound:.1%}"
    return replace(base, status="failed" if over else "passed", why=why, value=share)


def _row_gates(config: Config, store: Store, night: Night) -> Iterator[Judged]:
    bounds = {"min_rows": config.data.min_rows, "max_rows": config.data.max_rows}
    if all(bound is None for bound in bounds.values()):
        return
    n_rows = _hit_rows(night)
    days = [d for d in store.dates() if d < night.date][-config.baseline.nights :]
    earlier = [_hit_rows(n) for n in map(store.read, days) if n is not None]
    for name, bound in bounds.items():
        if bound is None:
            continue
        base = Judged(name, "not_judged", "no night before it was published", bound=bound, n=n_rows)
        if not earlier:
            yield base
            continue
        usual = median(earlier)
        ratio = n_rows / usual
        off = ratio < bound - _ROUNDING if name == "min_rows" else ratio > bound + _ROUNDING
        told = f"{n_rows:,} rows of hits are {ratio:.2f} of the median of {_nights(len(earlier))} before"
        why = f"{told}, {'outside' if off else 'inside'} the bound of {bound:g}"
        yield replace(base, status="failed" if off else "passed", why=why, value=ratio)


def _hit_rows(night: Night) -> int:
    return int(next(row["read"] for row in night.manifest["rows"] if row["table"] == "hits"))


def _nights(n: int) -> str:
    return "the night" if n == 1 else f"the {n} nights"


def verdict_of(night: date, judged: list[Judged], at: str) -> dict[str, Any]:
    """What is written beside a night."""
    return {
        "date": night.isoformat(),
        "passed": passed(judged),
        "reason": reason(judged),
        "gates": as_dicts(judged),
        "judged_at": at,
    }
