"""How results show themselves, and text that came from data, made safe to print."""

from __future__ import annotations

from importlib import import_module

LONGEST = 120  # an id that is a whole paragraph shall not bury the message around it


def printable(text: object, longest: int = LONGEST) -> str:
    """Give ids and paths as one line: control and format characters are written as escapes, long text is cut."""
    out = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(text))
    return out if len(out) <= longest else out[: longest - 1] + "…"


class Displayed:
    """A result that shows itself: in notebooks, in a pull request, in a paper."""

    def to_markdown(self) -> str:
        """Give the tables of the result as Markdown, with what they rest on below them."""
        return self._shown("markdown")

    def to_latex(self) -> str:
        """Give the tables of the result as LaTeX (booktabs, graphicx), with what they rest on below them."""
        return self._shown("latex")

    def _repr_html_(self) -> str:
        return self._shown("html")

    def _shown(self, form: str) -> str:
        # A result comes before the reports, which know what it holds; they are loaded when somebody asks.
        return str(import_module("docrecall.report.display").show(self, form))
