"""Bars: how many units pass each step of a funnel, and how many are lost there."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from docrecall.funnel import Funnel
from docrecall.plot import frames
from docrecall.plot.theme import BLUE, names, title, with_names

_WIDTH, _ROW, _COLUMNS = 260, 24, 2
_PALE = "#C9C9C9"


def funnel(found: Funnel, runs: Sequence[str] | None = None) -> alt.FacetChart:
    """Draw a panel for each run and in it a bar for each step: what passed, and in grey what was lost there.

    Numbers are units, with their share of the labelled ones. runs and errors: as `frames.funnel` tells.
    """
    frame = frames.funnel(found, runs)
    shown = names(frame["run_id"].unique(maintain_order=True).to_list())
    share = (
        pl.when(pl.col("share").is_null())
        .then(pl.lit(""))
        .otherwise(pl.format(" ({} %)", (pl.col("share") * 100).round(1)))
    )
    data = with_names(frame, shown).with_columns(
        before=pl.col("n") + pl.col("lost"), told=pl.col("n").cast(pl.String) + share
    )
    steps = frame["step"].unique(maintain_order=True).to_list()
    units = "logged requests" if "request_id" in found.lost.columns else "queries"
    y = alt.Y("step:N", title=None, sort=steps)
    most = max(data["before"], default=0) or 1
    # Room for the numbers to the right of the longest bar.
    x = alt.X(
        "n:Q",
        title=units,
        scale=alt.Scale(domain=[0, 1.4 * most], nice=False),
        axis=alt.Axis(format=",d", tickMinStep=1, tickCount=5),
    )
    base = alt.Chart(data).encode(y=y)
    lost = base.mark_bar(color=_PALE).encode(x=x, x2="before:Q")
    passed = base.mark_bar(color=BLUE).encode(
        x=x, tooltip=["run_id", "step", "meaning", "n", "share", "lost", "unknown"]
    )
    label = base.mark_text(align="left", dx=4, fontSize=11).encode(x=alt.X("before:Q"), text="told:N")
    one = alt.layer(lost, passed, label).properties(width=_WIDTH, height=_ROW * len(steps))
    facet = alt.Facet(
        "run_id:N", title=None, sort=list(shown.values()), header=alt.Header(labelFontSize=12, labelLimit=0)
    )
    head = title(
        "Where answers get lost", [f"blue: {units} that pass a step and all before it; grey: lost at this step"]
    )
    return one.facet(facet=facet, columns=_COLUMNS).properties(title=head)
