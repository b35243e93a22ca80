"""How runs are told apart and named, and how charts are titled, the same in all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import polars as pl

from docrecall.show import printable

# Okabe and Ito (2008), "Color universal design", without the yellow, which is hard to see on white.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK = COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip
GREY = "#8C8C8C"
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_DASHES = ([1, 0], [7, 3], [2, 2], [8, 3, 2, 3], [14, 4])
LONGEST = 40  # letters of a name on a chart
MOST_BANDS = 6  # more bands than that hide each other


def shown(text: str) -> str:
    """A name on one line: a long one keeps its two ends, and nothing in it closes the script of a saved page.

    A blank one, which nobody would see, stands in quotes.
    """
    safe = re.sub(r"<(?=[/!])", r"\\x3c", printable(text, longest=10 * LONGEST))
    safe = safe if safe.strip(" …") else f"'{safe}'"
    return safe if len(safe) <= LONGEST else f"{safe[: LONGEST // 2 - 1]}…{safe[-LONGEST // 2 :]}"


def names(texts: Sequence[str]) -> dict[str, str]:
    """How each is shown: where they are long, what they have in common is left out; what is then alike gets numbers."""
    before, after = _shared(texts), _shared([text[::-1] for text in texts])
    out: dict[str, str] = {}
    for text in texts:
        name = whole = shown(_apart(text, before, after) if len(text) > LONGEST else text)
        n = 1
        while name in out.values():
            n += 1
            name = f"{whole} ({n})"
        out[text] = name
    return out


def _shared(texts: Sequence[str]) -> int:
    """With how many letters all of them begin."""
    low, high = min(texts, default=""), max(texts, default="")
    return next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))


def _apart(text: str, before: int, after: int, context: int = 10) -> str:
    """What is not in all names, with a few letters around it."""
    begin, end = max(0, before - context), len(text) - max(0, after - context)
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}" if begin < end else text


def with_names(frame: pl.DataFrame, of: Mapping[str, str], column: str = "run_id") -> pl.DataFrame:
    """Put names in place of ids, which may hold anything."""
    return frame.with_columns(pl.col(column).replace_strict(dict(of), return_dtype=pl.String).alias(column))


class Channels(NamedTuple):
    """What tells runs apart: colour, shape of points, dash of lines."""

    colour: alt.Color
    shape: alt.Shape
    dash: alt.StrokeDash


def channels(runs: Sequence[str]) -> Channels:
    """Colour, shape and dash of each run; of any 42 no two share both colour and shape.

    runs: as they are shown, in the order of the legend, which is left out for a single run.
    """

    def told(styles: Sequence[Any]) -> dict[str, Any]:
        scale = alt.Scale(domain=list(runs), range=[styles[i % len(styles)] for i in range(len(runs))])
        legend = alt.Legend(symbolLimit=0, labelLimit=0, symbolSize=90, symbolStrokeWidth=2)
        return {"title": "run", "scale": scale, "legend": legend if len(runs) > 1 else None}

    return Channels(
        alt.Color("run_id:N", **told(COLOURS)),
        alt.Shape("run_id:N", **told(_SHAPES)),
        alt.StrokeDash("run_id:N", **told(_DASHES)),
    )


def title(text: str, lines: Sequence[str]) -> alt.TitleParams:
    """A title with lines below it."""
    return alt.TitleParams(text, subtitle=list(lines), anchor="start", subtitleColor="#555")


def accounted(accounting: pl.DataFrame) -> str:
    """Say how many units of the runs are scored, of how many."""
    scored, total = (counted(accounting[column]) for column in ("n_scored", "n_total"))
    return f"{scored} of {total} units scored"


def counted(values: pl.Series) -> str:
    """The number, or the smallest and the largest."""
    there = sorted({int(n) for n in values.drop_nulls()}) or [0]
    return f"{there[0]:,}" if len(there) == 1 else f"{there[0]:,} to {there[-1]:,}"
