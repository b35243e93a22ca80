"""What a result shows of itself: HTML for notebooks, Markdown for a pull request, LaTeX for a paper."""

from __future__ import annotations

from collections.abc import Iterable

from docrecall.compare import Comparison
from docrecall.diagnose import Diagnosis
from docrecall.funnel import Funnel
from docrecall.report.blocks import Block, of_funnel, of_scores
from docrecall.report.comparison import of_comparison
from docrecall.report.diagnosis import of_diagnosis
from docrecall.report.html import to_html
from docrecall.report.latex import to_latex
from docrecall.report.markdown import to_markdown
from docrecall.scores import Scores


def show(result: object, form: str) -> str:
    """Give a result as "html", "markdown" or "latex". Raises TypeError for what is none of ours."""
    heading, blocks = _blocks(result)
    match form:
        case "html":
            return to_html(blocks, heading)
        case "markdown":
            return to_markdown(blocks)
        case "latex":
            return to_latex(blocks)
    raise ValueError(f"{form!r} is no form; there are html, markdown and latex.")


def _blocks(result: object) -> tuple[str, Iterable[Block]]:
    match result:
        case Scores():
            return repr(result).strip("<>"), of_scores(result)
        case Comparison():
            return repr(result).strip("<>"), of_comparison(result)
        case Diagnosis():
            return "Why the number moved", of_diagnosis(result)
        case Funnel():
            return "Where answers get lost", of_funnel(result)
    raise TypeError(f"{type(result).__name__} is no result that can be displayed.")
