"""Gates: what a published night must keep, judged from its numbers and those of the nights before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from statistics import median
from typing import Any, Literal

import polars as pl

from docrecall.nightly.baseline import Before, Missing
from docrecall.nightly.config import Config, Gate
from docrecall.nightly.histograms import in_unit_range
from docrecall.nightly.numbers import Drop, Numbers, differ, differ_in_slices, p_below
from docrecall.nightly.store import Night, Store
from docrecall.show import printable
from docrecall.stats import benjamini_hochberg

Status = Literal["passed", "failed", "not_judged"]
_ROUNDING = 1e-12  # a mean that reaches its bound but for the last bits has reached it
_SHARES = {
    "max_unlabelled": ("n_unlabelled", "n_total", "units are unlabelled"),
    "max_stale": ("n_stale_labels", "n_total", "units have stale labels"),
    "max_rejected": ("n_rejected", "n_total", "units are touched by rejected rows"),
    "max_no_hits": ("n_no_hits", "n_scored", "scored units have no hits"),
}


@dataclass(frozen=True)
class Judged:
    """What one gate says of one run. why: a sentence for people.

    gate: min, max_drop or the name of a data gate. slice, slice_value: of gates by slice, the worst one. value: the
    mean, the share, the rows over their median, or the difference of the worst slice; bound: what it must keep.
    baseline: the night or run that it was compared with, delta the difference, with its interval, method and number of
    pairs (None for two samples).
    """

    gate: str
    status: Status
    why: str
    run_id: str | None = None
    measure: str | None = None
    slice: str | None = None
    slice_value: str | None = None
    value: float | None = None
    bound: float | None = None
    n: int | None = None
    baseline: str | None = None
    delta: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    ci_method: str | None = None
    n_pairs: int | None = None


def judge(config: Config, store: Store, night: Night) -> list[Judged]:
    """Judge a night by every gate of the configuration, in its order; data gates last."""
    tonight = Numbers(night)
    before = Before(config.baseline, store, tonight)
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


def _measure_gate(gate: Gate, config: Config, tonight: Numbers, before: Before) -> Iterator[Judged]:
    against = config.baseline.run
    runs = [gate.run] if gate.run is not None else [r for r in tonight.runs if r != against or gate.max_drop is None]
    for run in runs:
        mean = tonight.mean(run, gate.measure)
        told = f"{gate.measure} of {printable(run)}"
        base = Judged("min", "passed", "", run, gate.measure, value=mean.mean, n=mean.n)
        if gate.by is not None:
            yield from _slice_gates(base, gate, config, tonight, before)
            continue
        if mean.mean is None:
            yield replace(base, gate="value", status="failed", why=f"{told} has no value")
            continue
        if gate.min is not None:
            low = mean.mean < gate.min - _ROUNDING
            why = f"{told} is {mean.mean:.4f}, {'below' if low else 'at least'} {gate.min:g}"
            yield replace(base, status="failed" if low else "passed", why=why, bound=gate.min)
        if gate.max_drop is not None:
            yield _drop_gate(replace(base, gate="max_drop", bound=gate.max_drop), gate, config, tonight, before)
    if gate.run is None and gate.max_drop is not None:  # runs come and go; one that must be there has a gate by name
        for _, run, name in before.gone():
            why = f"{printable(run)} was there on {name} and is not tonight"
            yield Judged("max_drop", "not_judged", why, run, gate.measure, gate.by, bound=gate.max_drop, baseline=name)


def _slice_gates(base: Judged, gate: Gate, config: Config, tonight: Numbers, before: Before) -> Iterator[Judged]:
    """Judge each slice with enough values, and tell the worst; `fdr` bounds the share of false alarms among them."""
    run, by = str(base.run_id), str(gate.by)
    base = replace(base, slice=gate.by)
    slices = tonight.slices(run, gate.measure, by)
    large = {name: found for name, found in slices.items() if found[0].n >= gate.min_n}
    if gate.min is not None:
        limits = (0.0, 1.0) if in_unit_range(gate.measure) else None
        ps = {name: p_below(sample, gate.min, limits) for name, (_, sample) in large.items()}
        means = {name: mean.mean for name, (mean, _) in large.items()}
        worst = _worst(replace(base, bound=gate.min), gate, ps, means, len(slices))
        yield worst if worst.value is None else replace(worst, n=slices[worst.slice_value][0].n)
    if gate.max_drop is not None:
        base = replace(base, gate="max_drop", bound=gate.max_drop)
        found = before.of(run, gate.measure)
        if isinstance(found, Missing):
            yield _not_compared(base, found)
            return
        by_query = config.options.unit == "query"
        drops = differ_in_slices(found.numbers, tonight, (found.run, run), gate.measure, by, by_query=by_query)
        drops = {name: drop for name, drop in drops.items() if name in large and _large(drop, gate.min_n)}
        ps = {name: drop.p_below(-gate.max_drop) for name, drop in drops.items()}
        base = replace(base, baseline=found.name)
        worst = _worst(base, gate, ps, {name: drop.value for name, drop in drops.items()}, len(slices))
        if worst.value is not None:
            worst = replace(worst, n=slices[worst.slice_value][0].n)
            worst = _with_interval(worst, drops[worst.slice_value], config.level)
        yield worst


def _large(drop: Drop, least: int) -> bool:
    """Whether both sides of a difference have enough units; the requests of a query are one of its sample."""
    return drop.n_pairs is None or drop.n_pairs >= least


def _worst(
    base: Judged,
    gate: Gate,
    ps: dict[str | None, float | None],
    values: Mapping[str | None, float | None],
    n_slices: int,
) -> Judged:
    """Tell the slice with the smallest p value. values: the mean of each slice, or its difference to the baseline."""
    base = replace(base, value=None, n=None)
    adjusted = dict(zip(ps, benjamini_hochberg(list(ps.values())), strict=True))
    judged = {name: q for name, q in adjusted.items() if q is not None}
    few = f"; {n_slices - len(judged)} of {n_slices} slices by {printable(gate.by)} are too small to judge"
    few = "" if n_slices == len(judged) else few
    if not judged:
        return replace(base, status="not_judged", why=f"no slice has {gate.min_n} values{few}")
    worst = min(judged, key=lambda name: (judged[name], values[name] or 0.0, str(name)))
    bad = sum(q < gate.fdr for q in judged.values())
    what = f"{printable(gate.by)}={'null' if worst is None else printable(worst)}"
    value = values[worst] or 0.0
    number = f"{value:.4f}" if base.gate == "min" else f"{value:+.4f} against {printable(base.baseline)}"
    bound = f"below {gate.min:g}" if base.gate == "min" else f"a drop of more than {gate.max_drop:g}"
    told = f"{base.measure} of {printable(base.run_id)} is worst in {what}: {number}"
    told += f", surely {bound} (q {judged[worst]:.2g})" if bad else f", not surely {bound} (q {judged[worst]:.2g})"
    more = f", one of {bad} such slices" if bad > 1 else ""
    return replace(
        base,
        status="failed" if bad else "passed",
        why=f"{told}{more}{few}",
        slice_value=worst,
        value=value,
    )


def _drop_gate(base: Judged, gate: Gate, config: Config, tonight: Numbers, before: Before) -> Judged:
    run, measure, allowed = str(base.run_id), gate.measure, gate.max_drop or 0.0
    found = before.of(run, measure)
    if isinstance(found, Missing):
        return _not_compared(base, found)
    base = replace(base, baseline=found.name)
    by_query = config.options.unit == "query"
    drop = differ(found.numbers, tonight, (found.run, run), measure, by_query=by_query)
    told = None if drop is None else _with_interval(base, drop, config.level)
    if drop is None or told is None or told.ci_low is None or told.ci_high is None:
        return replace(base, status="not_judged", why="too few units to compare")
    # A bootstrap interval of two or three units is too sure of itself: an exact test of so few never is.
    sure = 2 * drop.least_p < 1 - config.level
    failed = sure and told.ci_high < -allowed - _ROUNDING
    words = f"{measure} of {printable(run)} is {drop.value:+.4f} [{told.ci_low:+.4f}, {told.ci_high:+.4f}]"
    if failed:
        verdict = f"surely a drop of more than {allowed:g}"
    elif drop.value < -allowed - _ROUNDING:
        verdict = f"perhaps a drop of more than {allowed:g}, which may be chance"
    else:
        verdict = f"no drop of more than {allowed:g}"
    status: Status = "failed" if failed else "passed"
    return replace(told, status=status, why=f"{words} against {printable(found.name)}, {verdict}")


def _not_compared(base: Judged, missing: Missing) -> Judged:
    return replace(base, status="failed" if missing.wrong else "not_judged", why=missing.why, value=None)


def _with_interval(base: Judged, drop: Drop, level: float) -> Judged:
    low, high, method = drop.interval(level) or (None, None, None)
    return replace(base, delta=drop.value, ci_low=low, ci_high=high, ci_method=method, n_pairs=drop.n_pairs)


def _data_gates(config: Config, store: Store, tonight: Numbers) -> Iterator[Judged]:
    rows = tonight.rows.unique("run_id", keep="first", maintain_order=True)
    for row in rows.to_dicts():
        if not row["n_scored"]:  # asked for or not: a night without one number is not fine
            why = f"{printable(row['run_id'])}: none of its {row['n_total']:,} units was scored"
            yield Judged("scored", "failed", why, row["run_id"], value=0.0, n=row["n_total"])
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
