"""What a notebook shows: tables and accounts as HTML that holds no markup but ours."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

import docrecall as dr
from docrecall.report import display, html
from docrecall.report.blocks import Lines, Table
from tests.small import hits, qrels, queries

NASTY = "</td></table></div><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\"'\x1b\u202e"
TAGS = {"div", "style", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li", "p"}


class Page(HTMLParser):
    """Collects tags with their attributes, and text; every tag must be closed in its place."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if self._open[-1:] != ["style"] else ""


def results(*runs: str) -> list[Any]:
    """Every result that shows itself."""
    scores = dr.score({run: hits() for run in runs}, qrels(), "doc_recall@1,3")
    compared = dr.compare(scores, resamples=10)
    return [scores, dr.diagnose(scores, [1, 3], resamples=10), dr.funnel(scores, "@3"), compared]


@pytest.mark.parametrize("result", results(NASTY, NASTY + "2"), ids=lambda result: type(result).__name__)
def test_ids_do_not_break_out(result: Any) -> None:
    """There is no tag and no attribute but our own, whatever runs are called, and names can be read."""
    page = Page(result._repr_html_())
    assert {tag for tag, _ in page.tags} <= TAGS
    assert {name for _, attributes in page.tags for name in attributes} == {"class"}
    assert NASTY.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e") in page.text
    assert not set(page.text) & {"\x1b", "\u202e"}


@pytest.mark.parametrize("result", results("a", "b"), ids=lambda result: type(result).__name__)
def test_nothing_comes_from_elsewhere(result: Any) -> None:
    """No address, no import and no script: a notebook shows it offline, and formulas are left alone."""
    text = result._repr_html_()
    for word in ("http", "//", "url(", "@import", "<script"):
        assert word not in text
    assert 'class="docrecall tex2jax_ignore mathjax_ignore"' in text


@pytest.mark.parametrize("result", results("a", "b"), ids=lambda result: type(result).__name__)
def test_pages_may_be_dark(result: Any) -> None:
    """Neither letters nor grounds have a colour of their own, so that they have that of the page."""
    style = result._repr_html_().split("<style>")[1].split("</style>")[0]
    assert "background" not in style
    assert "color:" not in style.replace("color:inherit", "")


def test_scores_show_their_account() -> None:
    """Means with intervals, and below them what became of units and rows."""
    scores, *_ = results("a", "b")
    text = Page(scores._repr_html_()).text
    assert "Scores: 2 runs, 4 of 4 units scored, 2 measures" in text
    assert "0.5000 [0.000, 1.000]" in text
    assert "a: 2 of 2 units scored" in text
    assert "qrels: 2 rows read = 2 used" in text


def test_weights_that_are_all_0_are_said() -> None:
    """There is no mean then, and the rest is shown."""
    scores = dr.score(hits(), qrels(), "doc_recall@1", queries=queries(weight=[0.0, 0.0]))
    text = Page(scores._repr_html_()).text
    assert "run: all weights of 2 values are 0, so there is no mean" in text
    assert "qrels: 2 rows read = 2 used" in text


def test_verdicts_and_steps_are_shown() -> None:
    """A diagnosis shows its verdicts, a funnel its steps, a comparison what it was tested by."""
    _, told, steps, compared = results("a", "b")
    assert "adjusted by Holm over 2 tests" in Page(compared._repr_html_()).text
    assert "Comparison: 1 pairs of runs, 2 measures, 2 tests" in Page(compared._repr_html_()).text
    for verdict in told.verdicts["verdict"]:
        assert verdict in Page(told._repr_html_()).text
    for step in steps.steps:
        assert f">{step.name}</td>" in steps._repr_html_()


def test_long_tables_are_cut() -> None:
    """A page opens that shows many runs: 200 rows of a table, 40 tables, and how many more there are."""
    table = Table(["n"], [[str(n)] for n in range(300)])
    text = html.to_html([table, *[Lines(["x"])] * 50], "many")
    assert "<td>199</td>" in text.replace(' class="words"', "")
    assert "<td>200</td>" not in text.replace(' class="words"', "")
    assert ".. and 100 more rows" in text
    assert text.count("<ul>") == 39
    assert ".. and 11 more tables and lists" in text
    assert "more rows" not in html.to_html([Table(["n"], [["1"]] * 200)], "few")


def test_only_results_are_displayed() -> None:
    """Anything else is a fault of the caller."""
    with pytest.raises(TypeError, match="int is no result"):
        display.show(3, "html")


@pytest.mark.parametrize("result", results("a_b", "$x|y"), ids=lambda result: type(result).__name__)
def test_results_give_tables_to_paste(result: Any) -> None:
    """Markdown for a pull request and LaTeX for a paper, of the same tables and sentences as the page."""
    markdown, latex = result.to_markdown(), result.to_latex()
    assert "|---|" in markdown
    assert r"\$x\|y" in markdown
    assert latex.startswith("% \\usepackage{booktabs,graphicx}")
    assert r"\$x\textbar{}y" in latex
    tables = [tag for tag, _ in Page(result._repr_html_()).tags].count("table")
    assert latex.count("\\begin{tabular}") == tables
    with pytest.raises(ValueError, match="'pdf' is no form"):
        display.show(result, "pdf")
