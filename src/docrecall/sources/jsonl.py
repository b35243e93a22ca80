"""JSON, one object per line, or ranx's one object per file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from docrecall.errors import InputError
from docrecall.show import printable
from docrecall.sources.files import FileRef
from docrecall.sources.lines import TEXT, Block, blocks, text_lines
from docrecall.sources.table import FAULT, LINE, fault_bit
from docrecall.sources.values import MARK


class _Number(str):
    """A number with a fraction or an exponent, or NaN."""

    __slots__ = ()


class _RepeatedError(ValueError):
    """One object names one thing twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedError  # the last value would silently take the place of the others
    return found


# Half of a letter outside the basic plane, as where a text was cut in its middle. JSON can write it, UTF-8 cannot.
_HALF = re.compile("[\ud800-\udfff]")

# Whole numbers stay text, so that an id of any length keeps its digits.
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=str, parse_float=_Number, parse_constant=_Number)


def names(line: str) -> list[str]:
    """The names in one object; fields of objects inside it as `outer.inner`."""
    try:
        found = _DECODER.decode(line)
    except (ValueError, RecursionError):
        return []
    return [name for name in _flat_names(found) if not _HALF.search(name)] if isinstance(found, dict) else []


def _flat_names(found: dict[str, Any], above: str = "") -> list[str]:
    out = []
    for name, value in found.items():
        inner = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
        for item in inner:
            out += _flat_names(item, f"{above}{name}.")
        if not inner:
            out.append(above + name)
    return out


def list_names(data: bytes, wanted: Sequence[str]) -> frozenset[str]:
    """Which of the wanted names hold lists in the first lines of a file."""
    frame = parse(Block(1, data), wanted, None)
    return frozenset(name for name in wanted if isinstance(frame.schema[name], pl.List))


def parse(block: Block, wanted: Sequence[str], lists: frozenset[str] | None) -> pl.DataFrame:
    """Read a block: LINE, FAULT, and one column per wanted name: of lists for those in `lists`, of String for others.

    A name may lead into objects (`meta.source`), also through a list of them. What is absent is null; so is a single
    value where a list belongs. A line that is no object, or names one thing twice, has the fault `line_json`. Blank
    lines are left out. lists: None to take every column for a list that has one in this block.
    """
    lines = text_lines(block)
    lines = lines.filter(pl.col(TEXT).str.contains(r"[^ \t\r]"))
    faults = lines[FAULT].to_list() if FAULT in lines.columns else [0] * lines.height
    columns: list[list[Any]] = [[] for _ in wanted]
    paths = [name.split(".") for name in wanted]
    bad = fault_bit("line_json")
    for number, line in enumerate(lines[TEXT].to_list()):
        try:
            found = _DECODER.decode(line.strip(" \t\r"))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            faults[number] |= bad
            found = {}
        for name, path, column in zip(wanted, paths, columns, strict=True):
            value = found.get(name)
            if value is None and len(path) > 1:
                value = _follow(found, path)
            column.append(value)
    series = []
    for name, column in zip(wanted, columns, strict=True):
        if name in lists if lists is not None else any(isinstance(v, list) for v in column):
            unfolded = [[_plain(item) for item in v] if isinstance(v, list) else None for v in column]
            series.append(_series(name, unfolded, pl.List(pl.String()), faults))
        else:
            series.append(_series(name, [_plain(v) for v in column], pl.String(), faults))
    return pl.DataFrame([lines[LINE], pl.Series(FAULT, faults, dtype=pl.Int64), *series])


def _series(name: str, values: list[Any], dtype: pl.DataType, faults: list[int]) -> pl.Series:
    """Make a column; half letters in it become escapes, and their rows have a fault."""
    try:
        return pl.Series(name, values, dtype=dtype)
    except UnicodeEncodeError:
        for number, value in enumerate(values):
            whole = _whole_letters(value)
            if whole != value:
                faults[number] |= fault_bit("line_encoding")
                values[number] = whole
        return pl.Series(name, values, dtype=dtype)


def _whole_letters(value: Any) -> Any:
    if isinstance(value, list):
        return [_whole_letters(item) for item in value]
    return None if value is None else _HALF.sub(lambda half: f"\\u{ord(half[0]):x}", value)


def _follow(found: Any, path: Sequence[str]) -> Any:
    """Go into objects; a list of objects gives the list of what each has there."""
    for step, name in enumerate(path):
        if isinstance(found, list):
            return [_follow(item, path[step:]) for item in found]
        if not isinstance(found, dict):
            return None
        rest = ".".join(path[step:])
        if rest in found:  # a name may have a dot in it
            return found[rest]
        found = found.get(name)
    return found


def _plain(value: Any) -> str | None:
    """Texts and whole numbers as text; anything else is marked, so that no id is made of it."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, bool):
        return f"{MARK}{'true' if value else 'false'}"
    return f"{MARK}{value}" if isinstance(value, str) else f"{MARK}{{"


def parse_ranx(file: FileRef, value: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read query -> document -> number: (query_id, doc_id, `value`), all String, and the queries without documents.

    Raises InputError when the file is not that.
    """
    name = printable(file.path)
    data = b"".join(block.data for block in blocks(file))
    try:
        found = _DECODER.decode(data.decode("utf-8").strip())
    except _RepeatedError:
        raise InputError(
            f"{name} names a query, or a document of one query, twice. JSON keeps only one of them."
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8 text.") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{name}, line {error.lineno}: not JSON here (column {error.colno}).") from None
    except RecursionError:
        raise InputError(f"{name} is not ranx JSON: it nests too deep.") from None
    if not isinstance(found, dict) or not all(isinstance(docs, dict) for docs in found.values()):
        raise InputError(f'{name} is not ranx JSON; expected {{"query": {{"document": number, ..}}, ..}}.')
    rows = [(query, doc, _plain(number)) for query, docs in found.items() for doc, number in docs.items()]
    schema = dict.fromkeys(("query_id", "doc_id", value), pl.String)
    empty = [query for query, docs in found.items() if not docs]
    try:
        return pl.DataFrame(rows, schema=schema, orient="row"), pl.DataFrame(
            {"query_id": empty}, schema={"query_id": pl.String}
        )
    except UnicodeEncodeError:
        raise InputError(
            f"{name} has half a letter in an id (an escape between \\ud800 and \\udfff alone), which no text can hold."
        ) from None
