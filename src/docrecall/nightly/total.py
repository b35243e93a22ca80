"""Several nights as one: their histograms put together, without a look at hits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import polars as pl

from docrecall.errors import DataError, IncompleteError, UsageError, nearest
from docrecall.nightly.histograms import CEILING, GROUP, Mean, add_up, interval, means_of, samples_of
from docrecall.nightly.store import HISTOGRAMS, ROWS, SAMPLES, Night, Store
from docrecall.show import printable
from docrecall.summary import SUMMARY_SCHEMA

_ALIKE = {"label_digest": "labels", "options_digest": "options", "measures": "measures"}
_SHOWN = 5


def add_nights(store: Store, days: Sequence[date], level: float, by: str | None = None) -> pl.DataFrame:
    """The means of all units of some nights, as `Scores.summary` gives them, with the values of a slice as text.

    by: one of the slices of the configuration. The date is part of the unit. A mean is bit for bit that of scoring all
    nights at once with such units. Intervals take queries of different nights for independent.

    Raises IncompleteError for nights that are not published, DataError for nights that were scored with other labels,
    options or measures than the last of them: their means are not of one kind.
    """
    nights = _published(store, days)
    _refuse_unlike(nights)
    _check_slice(nights, by)
    counted = add_up(night.frame(HISTOGRAMS) for night in nights)
    means, samples = means_of(counted), samples_of(_samples(nights))
    nulls = pl.concat(night.frame(ROWS) for night in nights).group_by(*GROUP).agg(pl.col("n_null").sum())
    rows: list[dict[str, Any]] = []
    for run, named, value, measure, n_null in nulls.select(*GROUP, "n_null").rows():
        if named != by:
            continue
        found = means.get((run, by, value, measure), Mean(None, 0, None))
        row = {"run_id": run, "slice_value": value, "measure": measure, "n_null": n_null, **found._asdict()}
        ceiling = means.get((run, by, value, CEILING))
        row["ceiling"] = ceiling.mean if ceiling is not None and measure.startswith("doc_recall@") else None
        given = interval(samples.get((run, by, value, measure)), measure, level)
        row["ci_low"], row["ci_high"], row["ci_method"] = given or (None, None, None)
        rows.append(row)
    order = {name: n for n, name in enumerate(nights[-1].manifest["measures"])}
    schema = {"run_id": pl.String(), "slice_value": pl.String(), **SUMMARY_SCHEMA}
    rows.sort(key=lambda row: order[row["measure"]])
    table = pl.DataFrame(rows, schema=schema).sort("run_id", "slice_value", nulls_last=True, maintain_order=True)
    return table.drop("slice_value") if by is None else table.rename({"slice_value": by})


def _published(store: Store, days: Sequence[date]) -> list[Night]:
    nights = {day: store.read(day) for day in days}
    missing = [day for day, night in nights.items() if night is None]
    if missing:
        some = ", ".join(map(str, missing[:_SHOWN])) + (" .." if len(missing) > _SHOWN else "")
        raise IncompleteError(f"{len(missing)} of {len(days)} nights are not published: {some}.")
    return [night for night in nights.values() if night is not None]


def _refuse_unlike(nights: Sequence[Night]) -> None:
    last = nights[-1]
    for name, word in _ALIKE.items():
        other = [n.date for n in nights if n.manifest[name] != last.manifest[name]]
        if other:
            raise DataError(
                f"{len(other)} of {len(nights)} nights, from {other[0]} to {other[-1]}, were scored with other {word} "
                f"than {last.date}; such means are not added. --recompute scores them again with those of today."
            )


def _check_slice(nights: Sequence[Night], by: str | None) -> None:
    for night in nights if by is not None else ():
        known = night.manifest["slices"]
        if by not in known:
            raise UsageError(
                f"{night.date} has no slices by '{printable(by)}'; it has {', '.join(map(printable, known)) or 'none'}."
                f"{nearest(str(by), known)} Name it in slices of [score], and run the nights again."
            )


def _samples(nights: Sequence[Night]) -> pl.DataFrame:
    """The units of all nights; equal ones are counted together."""
    whole = pl.concat(night.frame(SAMPLES) for night in nights)
    bounds = [pl.col("low").min().over(GROUP), pl.col("high").max().over(GROUP)]
    rows = whole.with_columns(bounds).group_by(*GROUP, "total", "weight", "low", "high").agg(pl.col("count").sum())
    return rows.sort(*GROUP, "total", "weight")
