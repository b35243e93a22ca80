"""How results show themselves, and text that came from data, made safe to print."""

from __future__ import annotations

from importlib import import_module

LONGEST = 120  # an id that is a whole paragraph shall not bury the message around it


def printable(text: object, longest: int = LONGEST) -> str:
    """Give ids and paths as one line: control and format characters are written as escapes, long text is cut."""
    out = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(text))
    return out if len(out) <= longest else out[: longest - 1] + "…"


class Displayed:
    """A result that notebooks show as HTML."""

    def _repr_html_(self) -> str:
        # A result comes before the reports, which know what it holds; they are loaded when a notebook asks.
        return str(import_module("docrecall.report.html").display(self))
