"""What a night is compared with: the nights before it, a fixed one, or another run of the same night."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from docrecall.nightly.config import Baseline
from docrecall.nightly.numbers import Numbers
from docrecall.nightly.store import Night, Store
from docrecall.show import printable


class Compared(NamedTuple):
    """The night that a measure of a run is compared with, the run in it, and what the two are called."""

    numbers: Numbers
    run: str
    name: str


class Missing(NamedTuple):
    """Why there is nothing to compare with. wrong: whether there should be."""

    why: str
    wrong: bool


class Before:
    """What measures of a night are compared with; nights are those of the same labels and options."""

    def __init__(self, baseline: Baseline, store: Store, tonight: Numbers) -> None:
        self._baseline, self._store, self._tonight = baseline, store, tonight

    def of(self, run: str, measure: str) -> Compared | Missing:
        """What this measure of this run is compared with. InputError where what is published is damaged."""
        if self._baseline.against == "run":
            old = str(self._baseline.run)
            if self._tonight.mean(old, measure).mean is None:
                return Missing(f"the baseline run {printable(old)} has no {measure}", wrong=True)
            return Compared(self._tonight, old, old)
        nights, missing = self._nights
        if missing is not None:
            return missing
        there = [n for n in nights if n.mean(run, measure).mean is not None]
        if not there:
            names = ", ".join(str(n.night.date) for n in nights[:3])
            wrong = self._baseline.against == "night"
            return Missing(f"{measure} of {printable(run)} has no value on {names}", wrong=wrong)
        # Of an even number the lower one of the middle two: the baseline is a night, not a number between two.
        ordered = sorted(there, key=lambda n: (n.mean(run, measure).mean or 0.0, n.night.date))
        chosen = ordered[(len(ordered) - 1) // 2]
        return Compared(chosen, run, chosen.night.date.isoformat())

    def gone(self) -> list[Compared]:
        """The runs of the newest night to compare with that are not there tonight."""
        nights = [] if self._baseline.against == "run" else self._nights[0]
        newest = nights[:1]
        return [Compared(n, r, str(n.night.date)) for n in newest for r in n.runs if r not in self._tonight.runs]

    @cached_property
    def _nights(self) -> tuple[list[Numbers], Missing | None]:
        """As many as the configuration asks for, the newest first; or why there is none."""
        if self._baseline.against == "night":
            return self._fixed()
        most = 1 if self._baseline.against == "last_good" else self._baseline.nights
        found: list[Numbers] = []
        for day in reversed([d for d in self._store.dates() if d < self._tonight.night.date]):
            night = self._store.read(day)
            verdict = None if night is None else self._store.verdict(night)
            if night is None or verdict is None or not verdict["passed"]:
                continue
            other = _differs(night, self._tonight.night)
            if other and not found:
                why = f"{other} changed after {day}: run that night again to compare with it"
                return [], Missing(why, wrong=False)
            if other:
                break
            found.append(Numbers(night))
            if len(found) == most:
                break
        return found, None if found else Missing("no night before it passed its gates", wrong=False)

    def _fixed(self) -> tuple[list[Numbers], Missing | None]:
        day = self._baseline.night
        assert day is not None, "the configuration was checked"
        if day == self._tonight.night.date:
            return [], Missing("this night is the baseline", wrong=False)
        night = self._store.read(day)
        if night is None:
            return [], Missing(f"the baseline, {day}, is not published", wrong=True)
        if other := _differs(night, self._tonight.night):
            return [], Missing(f"{other} changed since the baseline: run {day} again, or name another", wrong=True)
        return [Numbers(night)], None


def _differs(one: Night, other: Night) -> str | None:
    names = {"label_digest": "labels", "options_digest": "options"}
    return next((word for name, word in names.items() if one.manifest[name] != other.manifest[name]), None)
