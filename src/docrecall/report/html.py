"""Results as HTML for notebooks: no script, nothing from elsewhere, colours that follow a light or a dark page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import islice

from docrecall.report.blocks import Block, Lines, Table
from docrecall.show import printable

_MOST_ROWS, _MOST_BLOCKS = 200, 40  # a page shall open that shows a log of a thousand runs
_LINE = "1px solid rgba(128,128,128,"
_STYLE = f"""
.docrecall {{font-size:13px;overflow-x:auto}}
.docrecall table {{border-collapse:collapse;border:none;margin:.5em 0;font-size:13px;font-variant-numeric:tabular-nums}}
.docrecall caption {{caption-side:top;color:inherit;font-weight:600;padding:.3em 0;text-align:left;white-space:nowrap}}
.docrecall table th, .docrecall table td {{border:none;padding:.2em .8em;text-align:right;white-space:nowrap}}
.docrecall table thead th {{border-bottom:{_LINE}.7);font-weight:600;vertical-align:bottom}}
.docrecall table tbody td {{border-bottom:{_LINE}.2)}}
.docrecall table .words {{text-align:left}}
.docrecall ul {{list-style:disc;margin:.5em 0;max-width:70em;padding-left:1.3em}}
.docrecall li {{line-height:1.45;margin:0}}
"""


def to_html(blocks: Iterable[Block], heading: str) -> str:
    """A fragment of a page; text from data shows as it is, and formulas in it are left alone."""
    every = iter(blocks)
    shown = [_block(block) for block in islice(every, _MOST_BLOCKS)]
    if rest := sum(1 for _ in every):
        shown.append(f"<p>.. and {rest:,} more tables and lists; the frames of the result hold all of it.</p>")
    return (
        f'<div class="docrecall tex2jax_ignore mathjax_ignore"><style>{_STYLE}</style>'
        f"<strong>{_text(heading)}</strong>{''.join(shown)}</div>"
    )


def _block(block: Block) -> str:
    match block:
        case Lines(lines):
            return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
        case Table():
            return "".join(_table(block))


def _table(table: Table) -> Iterator[str]:
    yield "<table>"
    if table.caption:
        yield f"<caption>{escape(table.caption)}</caption>"
    yield f"<thead><tr>{_cells('th', table.columns, table.left)}</tr></thead><tbody>"
    yield from (f"<tr>{_cells('td', row, table.left)}</tr>" for row in table.rows[:_MOST_ROWS])
    yield "</tbody></table>"
    if rest := len(table.rows) - _MOST_ROWS:
        yield f"<p>.. and {rest:,} more rows</p>" if rest > 0 else ""


def _cells(tag: str, cells: Iterable[str], left: int) -> str:
    words = ' class="words"'
    return "".join(f"<{tag}{words if i < left else ''}>{_text(cell)}</{tag}>" for i, cell in enumerate(cells))


def _text(text: str) -> str:
    return escape(printable(text))
