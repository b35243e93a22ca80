"""Lines: recall over k, and recall against tokens."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from docrecall.plot import frames
from docrecall.plot.theme import COLOURS, MOST_BANDS, accounted, channels, names, shown, title, with_names
from docrecall.scores import Scores

_WIDTH, _HEIGHT, _MOST_TICKS = 300, 260, 12
_CUTS = {"chunks": "@k: the first k chunks", "docs": "@kdocs: the first k documents"}
_MEASURES = {"doc_recall": "doc_recall: documents", "evidence_recall": "evidence_recall: whole passages"}
_LOG = alt.Scale(type="log", nice=False, padding=10)
_AXIS = "recall (share of what is relevant)"


def recall(scores: Scores, ks: Sequence[int] | None = None, runs: Sequence[str] | None = None) -> alt.FacetChart:
    """Draw recall over k: what the first k chunks reach beside what the first k documents reach.

    Bands are the intervals of the means, for up to 6 runs. ks, runs and errors: as `frames.recall` tells.
    """
    frame = frames.recall(scores, ks, runs)
    x = alt.X("k:Q", title="k", scale=_LOG, axis=_axis(frame["k"]))
    head = title("Recall over k", _about(scores, frame))
    return _chart(frame.with_columns(panel=pl.col("cut").replace_strict(_CUTS)), x, list(_CUTS.values()), head)


def frontier(scores: Scores, budgets: Sequence[int] | None = None, runs: Sequence[str] | None = None) -> alt.FacetChart:
    """Draw recall against the tokens that were given, one point for each run and budget.

    Filled points are the best at their budget: together they are the frontier. Bands as in `recall`. budgets, runs and
    errors: as `frames.frontier` tells.
    """
    frame = frames.frontier(scores, budgets, runs)
    drawn = frame.filter(pl.col("tokens") > 0).with_columns(panel=pl.col("measure").replace_strict(_MEASURES))
    x = alt.X("tokens:Q", title="tokens given (mean, log scale)", scale=_LOG, axis=_axis(frame["budget"]))
    about = _about(scores, frame, f"budgets of {_some(frame['budget'])} tokens; filled: the best at its budget")
    panels = [_MEASURES[m] for m in frame["measure"].unique(maintain_order=True)]
    return _chart(drawn, x, panels, title("Recall against tokens", about))


def _chart(frame: pl.DataFrame, x: alt.X, panels: list[str], head: alt.TitleParams) -> alt.FacetChart:
    of = names(frame["run_id"].unique(maintain_order=True).to_list())
    runs = channels(list(of.values()))
    y = alt.Y("recall:Q", title=_AXIS, scale=alt.Scale(zero=False), axis=alt.Axis(format=".2f"))
    tips = [alt.Tooltip(c) for c in frame.columns if c != "panel"]
    every = alt.Chart(with_names(frame, of)).encode(x=x)
    base = every.encode(color=runs.colour)
    line = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=runs.dash)
    point = base.mark_point(size=55, opacity=1, fill="white").encode(y=y, shape=runs.shape, tooltip=tips)
    layers: list[alt.Chart] = [line, point]
    if "best" in frame:
        full = base.transform_filter("datum.best").mark_point(size=55, opacity=1, filled=True)
        layers.append(full.encode(y=y, shape=runs.shape, tooltip=tips))
    if len(of) <= MOST_BANDS and frame["ci_low"].is_not_null().any():
        # A mark for each run: as a channel, the pale colour of the bands would be that of the legend.
        ends = every.encode(y=alt.Y("ci_low:Q", title=_AXIS), y2="ci_high:Q")
        alone = frame.group_by("run_id", "panel").len()["len"].max() == 1  # a band of one point cannot be seen
        for run, colour in zip(of.values(), COLOURS, strict=False):
            one = ends.transform_filter(alt.FieldEqualPredicate(field="run_id", equal=run))
            band = one.mark_rule(opacity=0.5, color=colour) if alone else one.mark_area(opacity=0.1, color=colour)
            layers.insert(0, band)
    column = alt.Column("panel:N", title=None, sort=panels, header=alt.Header(labelFontSize=12))
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT).facet(column=column).properties(title=head)


def _axis(values: pl.Series) -> alt.Axis:
    """An axis with a tick at each value, unless these are too many."""
    ticks = values.unique().sort().to_list()
    return alt.Axis(format=",d", labelOverlap=True, values=ticks if len(ticks) <= _MOST_TICKS else alt.Undefined)


def _some(values: pl.Series) -> str:
    """The values, or the first and the last."""
    there = [f"{n:,}" for n in values.unique().sort()]
    return ", ".join(there) if len(there) <= _MOST_TICKS else f"{there[0]} to {there[-1]}"


def _about(scores: Scores, frame: pl.DataFrame, *more: str) -> list[str]:
    """What the lines below the title say: the run where there is one, its units, what bands are."""
    runs = frame["run_id"].unique().to_list()
    units = accounted(scores.accounting.filter(pl.col("run_id").is_in(runs)))
    if frame["ci_low"].is_not_null().any():
        units += (
            f"; bands: {100 * frame['level'][0]:g} % intervals of the means"
            if len(runs) <= MOST_BANDS
            else "; intervals: for up to 6 runs"
        )
    return [*([f"run {shown(runs[0])}"] if len(runs) == 1 else more), units]
