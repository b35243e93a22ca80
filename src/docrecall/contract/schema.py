"""The rules that columns and types must keep, decided from footers and schemas before any row is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from docrecall.errors import DataError, nearest
from docrecall.options import Options
from docrecall.show import printable
from docrecall.sources.inputs import Inputs
from docrecall.sources.table import WIDE, Part, Table
from docrecall.tables import EXPECTED, Kind, TableSpec, fits, plain_type


def settle(inputs: Inputs, options: Options) -> Inputs:
    """Check columns and types, and decide the type in which each column is worked on.

    Raises DataError for a missing column, a type that a column may not have, files of one table that differ in their
    columns, and ids that are String on one side and integers on the other. Nothing is cast in silence.
    """
    for table in inputs.all():
        used = _used(table.spec, options)
        for part in table.parts:
            _require(table.spec, part, used)
            _refuse_types(table.spec, part, used)
    for table in inputs.all():
        _refuse_drift(table)
    ids = {column: _one_kind(inputs, column) for column in ("query_id", "doc_id")}
    return Inputs(
        [_typed(log, ids, options) for log in inputs.logs],
        _typed(inputs.qrels, ids, options),
        _typed(inputs.queries, ids, options) if inputs.queries else None,
    )


def _used(spec: TableSpec, options: Options) -> dict[str, bool]:
    """The columns that this run reads, and whether each must be there."""
    used = dict.fromkeys(spec.required, True)
    match spec.name:
        case "hits":
            used |= {"run_id": False, "request_id": False}
            if options.by_score:
                used.pop("rank")
                used["score"] = True
                if options.order == "score":
                    used["chunk_id"] = False
        case "qrels":
            used["relevance"] = False
        case "queries":
            used["label_status"] = False
    return used


def _where(part: Part) -> str:
    return f" ({printable(part.file)})" if part.file else ""


def _require(spec: TableSpec, part: Part, used: dict[str, bool]) -> None:
    for column, required in used.items():
        if required and column not in part.schema:
            have = ", ".join(printable(name) for name in part.names) or "none"
            raise DataError(
                f"{spec.name} has no column {spec.name}.{column}{_where(part)}.{nearest(column, part.names)} "
                f"Its columns: {have}. Rename the column that holds it."
            )
    if "request_id" in part.schema and spec.name == "hits":
        raise DataError(
            f"hits.request_id is there{_where(part)}, and this version does not score logged requests yet: with it, "
            "each request would be a unit of its own. Drop the column if every query was logged once."
        )


def _refuse_types(spec: TableSpec, part: Part, used: dict[str, bool]) -> None:
    for column in used:
        found, kind = part.schema.get(column), spec.columns[column]
        if found is not None and not fits(kind, found):
            ids = (
                " Float ids lose digits and cannot be told from each other."
                if kind == "id" and found.is_float()
                else ""
            )
            raise DataError(f"{spec.name}.{column} is {_said(found)}{_where(part)}; expected {EXPECTED[kind]}.{ids}")


def _said(dtype: pl.DataType) -> str:
    """The name of a type, without the values and names inside: an Enum would print its categories."""
    return str(dtype.base_type()) if dtype.is_nested() or isinstance(dtype, pl.Enum) else str(dtype)


def _refuse_drift(table: Table) -> None:
    """All files of a table have the same known columns, each of the same kind; integer widths may differ."""
    first = table.parts[0]
    for part in table.parts[1:]:
        for column in sorted(first.schema.keys() ^ part.schema.keys()):
            has, lacks = (first, part) if column in first.schema else (part, first)
            raise DataError(
                f"{table.spec.name}.{column} is missing in{_where(lacks)} but present in{_where(has)}. "
                "All files of a table must have the same columns."
            )
        for column, found in part.schema.items():
            before = first.schema[column]
            if pl.Null not in (before, found) and _family(before) != _family(found):
                raise DataError(
                    f"{table.spec.name}.{column} is {_said(found)} in{_where(part)} but {_said(before)} "
                    f"in{_where(first)}. All files of a table must have the same column types."
                )


def _family(dtype: pl.DataType) -> str:
    dtype = plain_type(dtype)
    return "integer" if dtype.is_integer() else "float" if dtype.is_float() else str(dtype)


def _one_kind(inputs: Inputs, column: str) -> pl.DataType:
    """String or Int64: the one kind that an id column has on all tables."""
    first: tuple[Table, Part] | None = None
    for table in inputs.all():
        for part in table.parts:
            found = part.schema.get(column)
            if found is None or found == pl.Null:
                continue
            if first is None:
                first = table, part
            before = first[1].schema[column]
            if _family(before) != _family(found):
                left, right = f"{first[0].spec.name}.{column}", f"{table.spec.name}.{column}"
                raise DataError(
                    f"{left} is {_said(before)}{_where(first[1])} but {right} is {_said(found)}{_where(part)}. "
                    f"Ids must have the same type on both sides; nothing is cast for you. Write one of them in the "
                    'type of the other. Leading zeros matter: 7 and "007" are different ids.'
                )
    return pl.Int64() if first and first[1].schema[column].is_integer() else pl.String()


def _typed(table: Table, ids: dict[str, pl.DataType], options: Options) -> Table:
    used = _used(table.spec, options)
    columns = {
        column: ids[column]
        if column in ids
        else _working_type(kind, [p.schema[column] for p in table.parts], used=column in used)
        for column, kind in table.spec.columns.items()
        if column in table.parts[0].schema
    }
    return replace(table, columns=columns, normalize=options.normalize_ids == "NFC")


def _working_type(kind: Kind, found: Sequence[pl.DataType], *, used: bool) -> pl.DataType:
    """The type for a column: what its kind asks for, or what is there when nobody reads it but to compare rows."""
    present = [plain_type(t) for t in found if t != pl.Null]
    if not present:
        return {
            "id": pl.String(),
            "text": pl.String(),
            "status": pl.String(),
            "number": pl.Float64(),
            "flag": pl.Boolean(),
        }.get(kind, pl.Int64())
    if not used and any(t in WIDE for t in present):
        return pl.String()  # holds any of them exactly, and nobody computes with it
    if used and kind == "number":
        return pl.Float64()
    if all(t.is_integer() for t in present):
        return pl.Float64() if kind == "number" else pl.Int64()
    return pl.Float64() if all(t.is_float() for t in present) else present[0]
