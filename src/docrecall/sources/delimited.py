"""CSV and TSV: a header line, then one row per record.

TSV has no quoting: a quote is a letter. CSV follows RFC 4180: a field may be quoted, and then hold commas, line ends
and doubled quotes. An empty field is null, quoted or not. Values are text; what they mean is decided by the table.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

import polars as pl

from docrecall.sources.lines import LONGEST_LINE, TEXT, Block, text_lines
from docrecall.sources.table import FAULT, LINE, fault_bit


def header(data: bytes, separator: str) -> list[str]:
    """The names in the first line of a file; empty when it has none."""
    text = data.decode("utf-8", "replace")
    if separator == "\t":
        return text.split("\n", 1)[0].removesuffix("\r").split("\t")
    try:
        return next(csv.reader((line + "\n" for line in text.split("\n")), strict=True), [])
    except csv.Error:
        return []


def goes_on(data: bytes) -> bool:
    """Whether a block of CSV ends inside a quoted field: doubled quotes are two, so an odd number is an open one."""
    return data.count(b'"') % 2 == 1


def parse(block: Block, fields: Sequence[str], separator: str, *, skip_header: bool) -> pl.DataFrame:
    """Read a block: LINE, one String column per field, FAULT. Blank lines are left out.

    A record with another number of fields than the header has the fault `line_fields`, and keeps those that it has; one
    that breaks the rules of quoting has `line_broken`, and reading goes on in the line after its first.
    """
    lone_return = block.data.count(b"\r") != block.data.count(b"\r\n")
    if separator == "," and (b'"' in block.data or lone_return):
        return _records(block, fields, skip_header=skip_header)
    lines = text_lines(block)
    if skip_header:
        lines = lines.slice(1)
    if FAULT not in lines.columns:
        lines = lines.with_columns(pl.lit(0, pl.Int64).alias(FAULT))
    lines = lines.filter(pl.col(TEXT) != "")
    n = len(fields)
    parts = lines[TEXT].str.splitn(separator, n + 1).struct.unnest()
    wrong = parts[:, n].is_not_null() | parts[:, n - 1].is_null()
    fault = pl.col(FAULT) | pl.when(wrong).then(fault_bit("line_fields")).otherwise(0)
    values = [pl.when(parts[:, i] != "").then(parts[:, i]).alias(name) for i, name in enumerate(fields)]
    return lines.select(LINE, fault, *values)


def _records(block: Block, fields: Sequence[str], *, skip_header: bool) -> pl.DataFrame:
    """The same by Python's csv module, for blocks in which a comma or a line end may stand inside a field."""
    checked = text_lines(block)
    broken = set(checked.filter(pl.col(FAULT) != 0)[LINE].to_list()) if FAULT in checked.columns else set()
    # Not the lines of `checked`, whose ends are gone: a line end inside a field is part of it.
    lines = block.data.decode("utf-8", "backslashreplace").split("\n")
    if lines[-1] == "":
        lines.pop()
    numbers: list[int] = []
    faults: list[int] = []
    columns: list[list[str | None]] = [[] for _ in fields]
    for begin, end, values in _read(lines):
        if values == [] or (begin == 0 and skip_header and values is not None):
            continue
        fault = 0 if values and len(values) == len(fields) else fault_bit("line_fields" if values else "line_broken")
        if broken and any(block.first + i in broken for i in range(begin, end)):
            fault |= fault_bit("line_encoding")
        numbers.append(block.first + begin)
        faults.append(fault)
        for i, column in enumerate(columns):
            column.append(values[i] or None if values and i < len(values) else None)
    return pl.DataFrame(
        {
            LINE: pl.Series(numbers, dtype=pl.Int64),
            FAULT: pl.Series(faults, dtype=pl.Int64),
            **{name: pl.Series(column, dtype=pl.String) for name, column in zip(fields, columns, strict=True)},
        }
    )


def _read(lines: Sequence[str]) -> Iterator[tuple[int, int, list[str] | None]]:
    """Yield (first line, line after the last, values) of each record; values are None where the rules are broken."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))  # 128 KiB else; a chunk of text may be longer
    start = 0
    while start < len(lines):
        reader = csv.reader((lines[i] + "\n" for i in range(start, len(lines))), strict=True)
        done = 0
        try:
            for values in reader:
                yield start + done, start + reader.line_num, values
                done = reader.line_num
            start = len(lines)
        except csv.Error:
            yield start + done, start + done + 1, None
            start += done + 1
