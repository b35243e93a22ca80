"""Dots with intervals: what changed between runs, measure by measure."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from docrecall.diagnose import Diagnosis
from docrecall.plot import frames
from docrecall.plot.theme import BLUE, GREY, VERMILLION, counted, names, shown, title

_WIDTH, _ROW = 150, 22
_SIGNED = "datum.value == 0 ? '0' : format(datum.value, '+.2~f')"


def differences(
    found: Diagnosis, pairs: Sequence[tuple[str, str]] | None = None, cuts: Sequence[str] | None = None
) -> alt.VConcatChart:
    """Draw the paired differences, candidate less baseline: a column for each measure, a line for each cut.

    One row of panels for each pair of runs. Measures that are shares have one scale, others their own. Colour and shape
    say which run is higher, or that they cannot be told apart. pairs, cuts and errors: as `frames.differences` tells.
    """
    frame = frames.differences(found, pairs, cuts)
    compared = frame.select("baseline", "candidate").unique(maintain_order=True).rows()
    rows = [_pair(frame.filter(baseline=a, candidate=b), frame, alone=len(compared) == 1) for a, b in compared]
    about = [
        f"{100 * found.level:g} % intervals of the mean paired difference; {counted(frame['n_pairs'])} pairs of units"
    ]
    return alt.vconcat(*rows, spacing=28).properties(title=title("What changed, candidate less baseline", about))


def _pair(frame: pl.DataFrame, whole: pl.DataFrame, *, alone: bool) -> alt.HConcatChart:
    """The panels of one pair. whole: the frame of all pairs, whose measures, scales and legend all rows share."""
    ids = frame.row(0)[:2]
    baseline, candidate = names(ids).values()
    higher = (baseline, candidate) if alone else ("the baseline", "the candidate")
    ways = {ids[0]: f"{higher[0]} is higher", ids[1]: f"{higher[1]} is higher", "": "cannot be told apart"}
    data = frame.with_columns(
        cut="@" + pl.col("cut"), way=pl.col("prefers").fill_null("").replace_strict(ways, return_dtype=pl.String)
    )
    cuts = [f"@{cut}" for cut in whole["cut"].unique(maintain_order=True)]
    panels: list[alt.LayerChart | alt.FacetChart] = []
    for measure in whole["measure"].unique(maintain_order=True):
        rows = data.filter(measure=measure).select("cut", "way", "delta", "ci_low", "ci_high", "n_pairs")
        panels.append(_panel(rows, measure, _scale(whole, measure), cuts, list(ways.values()), first=not panels))
    head = alt.TitleParams(f"{candidate} less {baseline}", anchor="start", fontSize=12)
    return alt.hconcat(*panels, spacing=12).properties(title=head)


def _scale(whole: pl.DataFrame, measure: str) -> tuple[str, alt.Scale]:
    """What the axis of a measure counts, and its scale: one for all shares, one for each other measure."""
    unit = whole.filter(measure=measure)["unit"][0]
    alike = whole.filter(pl.col("unit") == unit) if unit == frames.SHARE else whole.filter(measure=measure)
    ends = pl.concat([alike[c] for c in ("delta", "ci_low", "ci_high")]).drop_nulls().to_list()
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = (high - low) * 0.06 or 1.0
    return unit, alt.Scale(domain=[low - room, high + room], nice=False, zero=False)


def _panel(
    rows: pl.DataFrame, measure: str, of: tuple[str, alt.Scale], cuts: list[str], ways: list[str], *, first: bool
) -> alt.LayerChart | alt.FacetChart:
    unit, scale = of
    axis = alt.Axis(labels=first, ticks=first, domain=first, labelLimit=0)
    y = alt.Y("cut:N", title=None, sort=cuts, scale=alt.Scale(domain=cuts), axis=axis)
    x = alt.X("delta:Q", title=unit, scale=scale, axis=alt.Axis(labelExpr=_SIGNED, tickCount=4, labelOverlap=True))
    legend = alt.Legend(orient="bottom", title=None, labelLimit=0, symbolSize=90, columns=3)
    colour = alt.Color("way:N", scale=alt.Scale(domain=ways, range=[VERMILLION, BLUE, GREY]), legend=legend)
    shape = alt.Shape("way:N", scale=alt.Scale(domain=ways, range=["triangle-left", "triangle-right", "circle"]))
    base = alt.Chart(rows).encode(y=y, color=colour)
    zero = alt.Chart(pl.DataFrame({"zero": [0]})).mark_rule(color="#444").encode(x=alt.X("zero:Q", scale=scale))
    bar = base.mark_rule(strokeWidth=2).encode(x=alt.X("ci_low:Q", scale=scale, title=unit), x2="ci_high:Q")
    dot = base.mark_point(size=80, filled=True, opacity=1).encode(x=x, shape=shape, tooltip=rows.columns)
    size = {"width": _WIDTH, "height": _ROW * len(cuts)}
    head = alt.TitleParams(shown(measure), fontSize=11, fontWeight="normal")
    return alt.layer(zero, bar, dot).properties(title=head, **size)
