"""Where the keys of a TOML text stand, which tomllib does not tell."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]  # ("gates", 1, "measure"): names of tables and keys, numbers in arrays of tables


def key_lines(text: str) -> dict[Path, int]:
    """Give the line, from 1, on which each table and each key of a valid TOML text begins.

    A statement is the shortest run of lines that parses by itself, so that lines inside of long strings and arrays are
    not taken for keys.
    """
    lines: dict[Path, int] = {}
    seen: Counter[Path] = Counter()
    home: Path = ()
    held: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        held.append(line)
        try:
            parsed = tomllib.loads("\n".join(held))
        except tomllib.TOMLDecodeError:
            continue
        start, is_header, held = number - len(held) + 1, held[0].lstrip().startswith("["), []
        if is_header:
            home = _header(parsed, seen)
            lines[home] = start
        else:
            for path in _paths(parsed):
                lines.setdefault(home + path, start)
    return lines


def nearest_line(lines: Mapping[Path, int], path: Path) -> int | None:
    """The line of a key, or of the innermost table around it that has one; None for what the text does not have."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


def _header(parsed: dict[str, Any], seen: Counter[Path]) -> Path:
    path: Path = ()
    node: Any = parsed
    while node:
        ((key, node),) = node.items()
        path += (key,)
        if isinstance(node, list):
            seen[path] += 1
            path, node = (*path, seen[path] - 1), node[0]
        elif node and seen[path]:  # a table inside the last one of an array
            path += (seen[path] - 1,)
    return path


def _paths(parsed: Mapping[str, Any]) -> Iterator[Path]:
    for key, value in parsed.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *rest) for rest in _paths(value))
