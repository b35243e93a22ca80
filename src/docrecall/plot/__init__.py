"""Charts of results, made with Altair: the extra `docrecall[plots]`.

    recall        recall over k, for the chunk cut and the document cut, with intervals
    frontier      recall against the tokens that were really given, at several budgets
    differences   what changed between runs, measure by measure, with intervals
    slices        the mean of a measure by slice, with intervals
    funnel        how many units pass each step, and how many are lost there

Each gives an Altair chart, to be shown, changed, put beside another, or saved (`chart.save("a.svg")`, .png, .html).
SVG and PNG need neither a browser nor a network. What is drawn is a small frame, made by the function of the same name
in `docrecall.plot.frames`. Runs differ in colour (Okabe and Ito 2008) and in shape or dash.
"""

from docrecall.errors import ExtraError

try:
    import altair as _altair  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "altair":
        raise
    raise ExtraError.not_installed("charts", "Altair", "plots") from None

from docrecall.plot.bars import funnel
from docrecall.plot.dots import differences, slices
from docrecall.plot.lines import frontier, recall

__all__ = ["differences", "frontier", "funnel", "recall", "slices"]
