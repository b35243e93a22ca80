"""Dots with intervals: what changed between runs, measure by measure, and means of slices."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from docrecall.compare import Comparison
from docrecall.diagnose import Diagnosis
from docrecall.errors import UsageError
from docrecall.plot import frames
from docrecall.plot.theme import BLUE, GREY, VERMILLION, accounted, channels, counted, names, shown, title, with_names
from docrecall.scores import Scores
from docrecall.summary import MIN_N

_PANEL, _WIDTH, _ROW = 150, 340, 22
_SIGNED = "datum.value == 0 ? '0' : format(datum.value, '+,.2~f')"
_FEW = "too few units to judge"
MOST_SLICES = 30
_Panel = alt.LayerChart | alt.FacetChart


def differences(
    found: Diagnosis | Comparison,
    pairs: Sequence[tuple[str, str]] | None = None,
    cuts: Sequence[str] | None = None,
    *,
    most: int = MOST_SLICES,
) -> alt.VConcatChart:
    """Draw the paired differences, candidate less baseline: a column for each measure, a line for each cut.

    Of a comparison by slices there is a line for each of the `most` largest ones. One row of panels for each pair of
    runs. Measures that are shares have one scale, others their own. Colour and shape say which run is higher, or that
    they cannot be told apart. Hollow points are of slices with too few pairs to be judged. pairs, cuts and errors: as
    `frames.differences` tells.
    """
    whole = frames.differences(found, pairs, cuts)
    frame, left_out = _largest(whole, "n_pairs", most)
    if frame["slice"].is_null().all():
        data = frame.with_columns(row="@" + pl.col("cut"), panel="measure")
    else:
        of = names(frame["slice"].unique(maintain_order=True).to_list())
        data = with_names(frame, of, "slice").with_columns(row="slice", panel=pl.format("{}@{}", "measure", "cut"))
    compared = data.select("baseline", "candidate").unique(maintain_order=True).rows()
    rows = [_pair(data.filter(baseline=a, candidate=b), data, alone=len(compared) == 1) for a, b in compared]
    n = counted(frame["n_pairs"])
    pairs_of = "pair" if n == "1" else "pairs"
    about = f"{100 * found.level:g} % intervals of the mean paired difference; {n} {pairs_of} of units"
    return alt.vconcat(*rows, spacing=28).properties(
        title=title("What changed, candidate less baseline", [about, *_judged_by(found), *left_out])
    )


def _judged_by(found: Diagnosis | Comparison) -> list[str]:
    if isinstance(found, Diagnosis):
        return []
    method = {"holm": "Holm", "benjamini-hochberg": "Benjamini-Hochberg"}[found.adjustment]
    return [f"coloured where p < {1 - found.level:g}, adjusted over {_tests(found.family)} ({method})"]


def _tests(n: int) -> str:
    return f"{n:,} test{'s'[: n != 1]}"


def _largest(frame: pl.DataFrame, n: str, most: int) -> tuple[pl.DataFrame, list[str]]:
    """The rows of the largest slices, in their order, and a line that says how many there are."""
    sizes = frame.group_by("slice", maintain_order=True).agg(pl.col(n).max())
    if sizes.height <= most:
        return frame, []
    if most < 1:
        raise UsageError(f"most= is {most}; at least one slice is drawn.")
    kept = sizes.sort(n, descending=True, maintain_order=True).head(most)["slice"]
    rows = frame.filter(pl.col("slice").is_in(kept.implode()))
    return rows, [f"the {most} largest of {sizes.height:,} slices"]


def _pair(frame: pl.DataFrame, whole: pl.DataFrame, *, alone: bool) -> alt.HConcatChart:
    """The panels of one pair. whole: the frame of all pairs, whose measures, scales and legend all rows share."""
    baseline, candidate = _sides(*frame.row(0)[:2])
    higher = (baseline, candidate) if alone else ("the baseline", "the candidate")
    ways = [f"{higher[0]} is higher", f"{higher[1]} is higher", "cannot be told apart"]
    told = pl.col("prefers").replace_strict(["baseline", "candidate", None], ways, return_dtype=pl.String)
    data = frame.with_columns(way=pl.when("judged").then(told).otherwise(pl.lit(_FEW)))
    if not whole.filter(pl.col("delta").is_not_null())["judged"].all():
        ways.append(_FEW)
    lines = whole["row"].unique(maintain_order=True).to_list()
    panels: list[_Panel] = []
    for name in whole["panel"].unique(maintain_order=True):
        rows = data.filter(panel=name).select("row", "way", "delta", "ci_low", "ci_high", "n_pairs")
        panels.append(_panel(rows, name, _scale(whole, name), lines, ways, first=not panels))
    head = alt.TitleParams(f"{candidate} less {baseline}", anchor="start", fontSize=12)
    return alt.hconcat(*panels, spacing=12).properties(title=head)


def _sides(baseline: str, candidate: str) -> tuple[str, str]:
    """How the two runs are called, which of two results may have the same name."""
    of = names(list(dict.fromkeys([baseline, candidate])))
    if baseline == candidate:
        return f"{of[baseline]} (baseline)", f"{of[candidate]} (candidate)"
    return of[baseline], of[candidate]


def _scale(whole: pl.DataFrame, panel: str) -> tuple[str, alt.Scale]:
    """What the axis of a measure counts, and its scale: one for all shares, one for each other measure."""
    unit = whole.filter(panel=panel)["unit"][0]
    alike = whole.filter(pl.col("unit") == unit) if unit == frames.SHARE else whole.filter(panel=panel)
    ends = pl.concat([alike[c] for c in ("delta", "ci_low", "ci_high")]).drop_nulls().to_list()
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = (high - low) * 0.06 or 1.0
    return unit, alt.Scale(domain=[low - room, high + room], nice=False, zero=False)


def _panel(
    rows: pl.DataFrame, name: str, of: tuple[str, alt.Scale], lines: list[str], ways: list[str], *, first: bool
) -> _Panel:
    unit, scale = of
    axis = alt.Axis(labels=first, ticks=first, domain=first, labelLimit=0)
    y = alt.Y("row:N", title=None, sort=lines, scale=alt.Scale(domain=lines), axis=axis)
    x = alt.X("delta:Q", title=unit, scale=scale, axis=alt.Axis(labelExpr=_SIGNED, tickCount=3, labelOverlap=True))
    legend = alt.Legend(orient="bottom", title=None, labelLimit=0, symbolSize=90, columns=3)
    styles = {
        "color": [VERMILLION, BLUE, GREY, GREY],
        "fill": [VERMILLION, BLUE, GREY, "white"],
        "shape": ["triangle-left", "triangle-right", "circle", "circle"],
    }
    scales = {name: alt.Scale(domain=ways, range=style[: len(ways)]) for name, style in styles.items()}
    colour = alt.Color("way:N", scale=scales["color"], legend=legend)
    fill = alt.Fill("way:N", scale=scales["fill"], legend=legend)
    shape = alt.Shape("way:N", scale=scales["shape"], legend=legend)
    base = alt.Chart(rows).encode(y=y, color=colour)
    zero = alt.Chart(pl.DataFrame({"zero": [0]})).mark_rule(color="#444").encode(x=alt.X("zero:Q", scale=scale))
    dot = base.mark_point(size=80, opacity=1).encode(x=x, fill=fill, shape=shape, tooltip=rows.columns)
    # Above the dot, which is wider than the interval of many pairs.
    bar = alt.Chart(rows).mark_rule(strokeWidth=1.5, color="black")
    bar = bar.encode(y=y, x=alt.X("ci_low:Q", scale=scale, title=unit), x2="ci_high:Q")
    head = alt.TitleParams(shown(name), fontSize=11, fontWeight="normal")
    return alt.layer(zero, dot, bar).properties(title=head, width=_PANEL, height=_ROW * len(lines))


def slices(
    scores: Scores,
    by: str | Sequence[str],
    measure: str | None = None,
    runs: Sequence[str] | None = None,
    *,
    min_n: int = MIN_N,
    most: int = MOST_SLICES,
) -> _Panel:
    """Draw the mean of one measure in each slice, with its interval and its n, runs below each other.

    Hollow points have fewer than min_n values and are not to be judged. A star stands where a slice differs from the
    rest of its run, by p values that are adjusted over all that is drawn. Of many slices the `most` largest are drawn.
    by, measure, runs and errors: as `frames.slices` tells.
    """
    whole = frames.slices(scores, by, measure, runs, min_n=min_n)
    frame, left_out = _largest(whole, "n", most)
    told = _with_n(frame)
    of = names(told["run_id"].unique(maintain_order=True).to_list())
    styles = channels(list(of.values()))
    data = with_names(told, of)
    lines = data["slice"].unique(maintain_order=True).to_list()
    y = alt.Y("slice:N", title=None, sort=lines, axis=alt.Axis(labelLimit=0, grid=True))
    y_offset = alt.YOffset("run_id:N", sort=list(of.values()))
    base = alt.Chart(data).encode(y=y, color=styles.colour, yOffset=y_offset)
    name = measure or str(frames.first_real(scores))
    scale = alt.Scale(zero=False)
    x = alt.X("mean:Q", title=f"mean of {name} ({frames.unit_of(name)})", scale=scale)
    bar = base.mark_rule(strokeWidth=2).encode(x=alt.X("ci_low:Q", scale=scale), x2="ci_high:Q")
    tips = [alt.Tooltip(c) for c in data.columns]
    dot = base.mark_point(size=60, opacity=1, fill="white").encode(x=x, shape=styles.shape, tooltip=tips)
    full = base.transform_filter("datum.judged").mark_point(size=60, opacity=1, filled=True)
    sure = f"isValid(datum.p_adjusted) && datum.p_adjusted < {1 - frame['level'][0]:g}"
    star = base.transform_filter(sure).mark_text(text="*", align="left", dx=4, dy=4, fontSize=15, color="black")
    units = accounted(scores.accounting.filter(pl.col("run_id").is_in(list(of))))
    about = [
        *([f"run {next(iter(of.values()))}"] if len(of) == 1 else []),
        f"{units}; {100 * frame['level'][0]:g} % intervals of the means",
    ]
    if (n := frame["family"][0]) and (frame["p_adjusted"] < 1 - frame["level"][0]).any():
        about.append(
            f"*: unlike the rest of its run, p < {1 - frame['level'][0]:g} over {_tests(n)} (Benjamini-Hochberg)"
        )
    few = [f"hollow: fewer than {min_n} values, not to be judged"] if not frame["judged"].all() else []
    return (
        alt.layer(
            bar, dot, full.encode(x=x, shape=styles.shape, tooltip=tips), star.encode(x=alt.X("ci_high:Q", scale=scale))
        )
        .properties(width=_WIDTH, height=max(_ROW, 11 * len(of) + 8) * len(lines))
        .properties(title=title(f"{name} by {_named(by)}", [*about, *few, *left_out]))
    )


def _named(by: str | Sequence[str]) -> str:
    return shown(by if isinstance(by, str) else ", ".join(by))


def _with_n(frame: pl.DataFrame) -> pl.DataFrame:
    """Put the n of each slice beside its name; from where to where it goes, where runs differ."""
    of = names(frame["slice"].unique(maintain_order=True).to_list())
    sizes = frame.group_by("slice").agg(pl.col("n"))
    told = {name: f"{of[name]} (n = {counted(pl.Series(n))})" for name, n in sizes.iter_rows()}
    return with_names(frame, told, "slice")
