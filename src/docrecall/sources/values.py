"""Text -> values of the kind that a column holds, and which of the texts cannot be read as that."""

from __future__ import annotations

import polars as pl

from docrecall.tables import Kind

# In front of a JSON value that is neither a text nor a whole number. No id begins with this noncharacter.
MARK = "\ufdd0"
TRUE, FALSE = ("true", "True", "TRUE", "1"), ("false", "False", "FALSE", "0")
_EXACT = 2.0**53


def read_values(text: pl.Series, kind: Kind, *, marked: bool) -> tuple[pl.Series, pl.Series | None]:
    """Give the values, and which of the texts cannot be read as them (None: all can)."""
    if kind in ("id", "text", "status"):
        bad = text.str.starts_with(MARK).fill_null(False) if marked else None
        if bad is None or not bad.any():
            return text, None
        return pl.select(pl.when(~bad).then(text)).to_series(), bad
    if kind in ("whole", "rank"):
        return whole_number(text)
    plain = text.str.strip_prefix(MARK) if marked else text
    if kind == "flag":
        flags = pl.select(pl.when(plain.is_in(TRUE)).then(True).when(plain.is_in(FALSE)).then(False)).to_series()
        return flags, text.is_not_null() & flags.is_null()
    number = plain.cast(pl.Float64, strict=False)
    return number, _lost(text, number)


def whole_number(values: pl.Series) -> tuple[pl.Series, pl.Series | None]:
    """Read whole numbers from text or floats: `7`, and `7.0`, as a column that once held a gap is written.

    Gives the numbers, and which of the values are none (None: all are).
    """
    if values.dtype.is_float():
        number, plain = values.clear(len(values)).cast(pl.Int64), values
    else:
        number = values.cast(pl.Int64, strict=False)
        plain = values
    if number.null_count() == values.null_count():
        return number, None
    if not values.dtype.is_numeric():
        plain = values.cast(pl.String).str.strip_prefix(MARK)
    real = plain.cast(pl.Float64, strict=False)
    whole = ((real == real.floor()) & (real.abs() < _EXACT)).fill_null(False)
    rescued = pl.select(pl.when(whole).then(real)).to_series().cast(pl.Int64)
    number = number.zip_with(number.is_not_null(), rescued)
    return number, _lost(values, number)


def _lost(values: pl.Series, read: pl.Series) -> pl.Series | None:
    return None if read.null_count() == values.null_count() else values.is_not_null() & read.is_null()
