"""Blocks as LaTeX with booktabs, as it stands in a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from docrecall.report.blocks import Block, Lines, Table
from docrecall.show import printable

_PREAMBLE = "% \\usepackage{booktabs,graphicx}"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "…": r"\ldots{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}


def to_latex(blocks: Iterable[Block]) -> str:
    """Tables that are no wider than the text, and lists below them; text from data shows as it is."""
    return "\n\n".join([_PREAMBLE, *("\n".join(_block(block)) for block in blocks)])


def _block(block: Block) -> Iterator[str]:
    match block:
        case Lines(lines):
            yield r"\begin{itemize}\footnotesize"
            yield from (rf"\item {_guarded(line)}" for line in lines)
            yield r"\end{itemize}"
        case Table(columns, rows, left, caption):
            yield r"\begin{table}[htbp]"
            yield r"\centering"
            if caption:
                yield rf"\caption{{{escape(caption)}}}"
            yield r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
            yield rf"\begin{{tabular}}{{{'l' * left}{'r' * (len(columns) - left)}}}"
            yield r"\toprule"
            yield _row(columns)
            yield r"\midrule"
            yield from map(_row, rows)
            yield r"\bottomrule"
            yield r"\end{tabular}}"
            yield r"\end{table}"


def _row(cells: Iterable[str]) -> str:
    return f"{' & '.join(_guarded(printable(cell)) for cell in cells)} \\\\"


def _guarded(text: str) -> str:
    """Text at the begin of a row or an item, where a bracket or a star would be read as an option."""
    out = escape(text)
    return f"{{{out}}}" if out.startswith(("[", "*")) else out


def escape(text: str) -> str:
    """Text that LaTeX sets as it is."""
    out = re.sub("|".join(map(re.escape, _SPECIAL)), lambda found: _SPECIAL[found[0]], text)
    out = re.sub(r"(?<![\w.}-])-(?=\d)", "$-$", out)  # a minus, not a hyphen
    return out.replace("--", "-{}-").replace("--", "-{}-")  # hyphens, not a dash
