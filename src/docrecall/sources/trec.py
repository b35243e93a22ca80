"""TREC runs and qrels: fields between white space, one row per line."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from docrecall.sources.formats import IGNORED
from docrecall.sources.lines import TEXT, Block, looks_packed, text_lines
from docrecall.sources.table import FAULT, LINE, fault_bit

# As the reference tool reads them; https://trec.nist.gov/trec_eval. The second field takes part in nothing.
RUN = ("query_id", IGNORED, "doc_id", "rank", "score", "run_id")
QRELS = ("query_id", IGNORED, "doc_id", "relevance")

# The white space of the C locale: a no-break space, for one, is a letter of an id.
_SPACE, _TOKEN = r"[ \t\x0b\x0c]", r"([^ \t\x0b\x0c\r]+)"

_EVEN = bytes.maketrans(b"\t\x0b\x0c", b"   ")


def parse(block: Block, fields: Sequence[str], *, more: bool) -> pl.DataFrame:
    """Read a block: LINE, one String column per field, FAULT.

    Blank lines and lines that begin with # are left out. A line with another number of fields than expected, or with a
    carriage return inside, has the fault `line_fields`, and of its fields only the query. more: whether fields may
    follow the last, as the reference tool allows in runs; they are not read.
    """
    rows = _parse_regular(block, block.data, fields)
    if rows is None:
        rows = _parse_regular(block, _evened(block.data), fields)
    return _parse_any(block, fields, more=more) if rows is None else rows


def _evened(data: bytes) -> bytes:
    """The same lines with one space between fields, and none before the first or behind the last."""
    data = data.replace(b"\r\n", b"\n").translate(_EVEN)
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    return data.replace(b"\n ", b"\n").replace(b" \n", b"\n").strip(b" ")


def _parse_regular(block: Block, data: bytes, fields: Sequence[str]) -> pl.DataFrame | None:
    """Read the lines of a block in which one space stands between fields and nowhere else; None for any others.

    The engine's own CSV reader takes a third of the time that a pattern does. What it would see otherwise than the
    pattern shows in its answer: a null where fields are missing or gaps are double, fewer rows where lines are blank.
    """
    if looks_packed(data) or any(other in data for other in (b"\t", b"\x0b", b"\x0c", b"\r")):
        return None
    names = [str(n) for n in range(len(fields))]
    try:
        found = pl.read_csv(
            data, separator=" ", has_header=False, quote_char=None, schema=dict.fromkeys(names, pl.String)
        )
    except pl.exceptions.PolarsError:  # more fields than these, or no UTF-8
        return None
    whole = found.height == data.count(b"\n") + (not data.endswith(b"\n"))
    if not whole or any(found.null_count().row(0)) or found["0"].str.starts_with("#").any():
        return None
    return found.select(
        pl.int_range(block.first, block.first + pl.len(), dtype=pl.Int64).alias(LINE),
        pl.lit(0, pl.Int64).alias(FAULT),
        *(pl.col(n).alias(name) for n, name in zip(names, fields, strict=True) if name != IGNORED),
    )


def _parse_any(block: Block, fields: Sequence[str], *, more: bool) -> pl.DataFrame:
    lines = text_lines(block).lazy()
    if FAULT not in lines.collect_schema():
        lines = lines.with_columns(pl.lit(0, pl.Int64).alias(FAULT))
    end = rf"(?:{_SPACE}[^\r]*)?" if more else rf"{_SPACE}*"
    pattern = rf"^{_SPACE}*{rf'{_SPACE}+'.join([_TOKEN] * len(fields))}{end}$"
    rows = (
        lines.filter(~pl.col(TEXT).str.starts_with("#"))
        .with_columns(pl.col(TEXT).str.extract_groups(pattern).alias("__fields"))
        .collect()
    )
    found = rows["__fields"].struct.unnest()
    bad = found[:, 0].is_null()
    named = [(str(n), name) for n, name in enumerate(fields, 1) if name != IGNORED]
    out = rows.select(LINE, FAULT).with_columns(found[n].alias(name) for n, name in named)
    if not bad.any():
        return out
    texts = rows[TEXT]
    blank = ~texts.str.contains(r"[^ \t\x0b\x0c\r]")
    first = texts.str.extract(_TOKEN)
    query = "query_id" if fields[0] == "query_id" else None
    return out.with_columns(
        pl.when(bad & (pl.col(FAULT) == 0)).then(fault_bit("line_fields")).otherwise(pl.col(FAULT)).alias(FAULT),
        *([pl.when(bad).then(first).otherwise(pl.col(query)).alias(query)] if query else []),
    ).filter(~blank)
