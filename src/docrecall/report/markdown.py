"""Blocks as Markdown, as it stands in a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from docrecall.report.blocks import Block, Lines, Table
from docrecall.show import printable


def to_markdown(blocks: Iterable[Block]) -> str:
    """Tables and lists with an empty line between them; text from data shows as it is."""
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: Block) -> str:
    match block:
        case Lines(lines):
            return "\n".join(f"- {escape(line)}" for line in lines)
        case Table(columns, rows, left, caption):
            head = [escape(printable(column)) for column in columns]
            cells = [[escape(printable(cell)) for cell in row] for row in rows]
            return (f"{escape(caption)}\n\n" if caption else "") + markdown_table(head, cells, left=left)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """A table of cells that are Markdown already; those after the first `left` columns are set to the right."""
    rule = "|".join("---" if place < left else "---:" for place in range(len(columns)))
    return "\n".join([_line(columns), f"|{rule}|", *map(_line, rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_SPECIAL = re.compile(r"(?<!\w)@[A-Za-z0-9][A-Za-z0-9-]*|[\\`*\[\]<>|#~&$]|(?<![^\W_])_|_(?![^\W_])")
_BEGINS_LIST = re.compile(r"^(\s*)(?:([-+])(?=[-+\s]|$)|(\d{1,9})([.)])(?=\s|$))")


def escape(text: str) -> str:
    """Text that Markdown shows as it is. Underscores inside words mean nothing there, and measures keep theirs.

    A name after @ is set as code: sites that notify people by it look past backslashes, and leave code alone.
    At the begin of an item, signs and numbers that would begin another list do not.
    """
    shown = _SPECIAL.sub(lambda found: f"`{found[0]}`" if len(found[0]) > 1 else f"\\{found[0]}", text)
    return _BEGINS_LIST.sub(lambda m: f"{m[1]}{m[3] or ''}\\{m[2] or m[4]}", shown)
