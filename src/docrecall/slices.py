"""Columns of queries and requests that no measure reads: what means are parted by, and which units belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from docrecall.contract.schema import settle_alone
from docrecall.errors import DataError, UsageError, nearest
from docrecall.options import Options
from docrecall.show import printable
from docrecall.sources.mapping import Mappings
from docrecall.sources.read import read_table
from docrecall.sources.table import Table
from docrecall.tables import TABLES, UNIT, plain_type, unit_key

_SOURCES = ("queries", "requests")


class Tags(NamedTuple):
    """The tables that have such columns, by name. files: where they lay when the results were written."""

    tables: Mapping[str, Table]
    files: Sequence[str] = ()
    rejecting: bool = False

    @classmethod
    def of(cls, tables: Mapping[str, Table], options: Options, files: Sequence[str] = ()) -> Tags:
        """Take those among some tables."""
        found = {name: tables[name] for name in _SOURCES if name in tables}
        return cls(found, files, options.on_bad_rows == "reject")

    def read(self, columns: Sequence[str], units: pl.DataFrame) -> pl.DataFrame:
        """Give the columns for some units, in their order; null where the tables do not name a unit.

        columns: names, or `queries.NAME` and `requests.NAME` where both tables have one. units: run_id, request_id
        where it is logged, query_id. Raises UsageError for columns that are not there, DataError where the files of a
        table disagree on a column, or a unit stands twice.
        """
        tags = []
        for column in columns:
            name, table = self._find(column)
            rows = _rows(table, name, rejecting=self.rejecting)
            key = [c for c in rows.columns if c in units.columns and c in UNIT]
            found = units.join(rows, on=key, how="left", maintain_order="left", validate="m:1")
            tags.append(found["_tag"].alias(name))
        return pl.DataFrame(tags)

    def names(self, columns: Sequence[str]) -> list[str]:
        """What columns are called in results: by their names, without that of their table."""
        return [self._find(column)[0] for column in columns]

    def per_query(self, column: str) -> bool:
        """Whether all requests of a query share what a column says."""
        return self._find(column)[1].spec.name == "queries"

    def _find(self, column: str) -> tuple[str, Table]:
        table, _, name = column.rpartition(".")
        tables = {table: self.tables[table]} if table in self.tables else self.tables
        name = name if table in self.tables else column
        there = [t for t in tables.values() if name in t.parts[0].schema and name not in UNIT]
        if len(there) == 1:
            return name, there[0]
        shown = printable(column)
        if there:
            raise UsageError(f"queries and requests both have a column {shown}: write queries.{shown} or the other.")
        if not self.tables:
            raise UsageError(f"{shown} is a column of queries or requests, and neither is at hand. {self._remedy()}")
        for t in tables.values():
            if name in t.parts[0].names and name not in UNIT:
                raise UsageError(f"{t.spec.name} has a column {shown}, but {_no_slices(t, name)}")
        known = [c for t in self.tables.values() for c in t.parts[0].schema if c not in UNIT]
        have = ", ".join(printable(c) for c in known[:40]) or "none"
        more = "" if len(self.tables) == len(_SOURCES) else f" {self._remedy()}" if self.files else ""
        raise UsageError(
            f"neither queries nor requests have a column {shown}.{nearest(name, known)} Their columns: {have}.{more}"
        )

    def _remedy(self) -> str:
        was = f" (it was scored with {', '.join(map(printable, self.files))})" if self.files else ""
        return f"Give the table that has it: queries= or requests= (--queries, --requests){was}."


def open_tags(given: Mapping[str, Any], maps: Mappings, key: pl.Schema, options: Options) -> dict[str, Table]:
    """Open the tables for results that were read back. given: by name, or None. key: the types of the results' ids.

    Raises DataError for ids of another kind, InputError and InputTypeError as `score` does.
    """
    opened = {}
    for name, source in given.items():
        if source is None:
            continue
        spec = TABLES[name]
        table = read_table(source, spec, tmap=maps[name]) if name in maps else read_table(source, spec)
        opened[name] = settle_alone(table, ["query_id"], options)
        for column in unit_key(opened[name].columns):
            found = opened[name].columns[column]
            if column in key and found != key[column]:
                raise DataError(
                    f"{name}.{column} is {found}, but the results have {key[column]}. Ids must have the same type on "
                    "both sides; nothing is cast for you."
                )
    return opened


def _no_slices(table: Table, name: str) -> str:
    """Why a column that is there cannot part units, and what to do."""
    fed = [c for c, source in table.parts[0].tmap.columns if name in {n.split(".")[0] for n in source.names}]
    if fed:
        return f"it is read as {', '.join(map(printable, fed))}. Slice by that name, or copy the column."
    if name.startswith("__"):
        return "names that start with __ make no slices. Give it another name (map=, --map)."
    return "lists, structs and binary make no slices. Give it as text, a number or a date, or map a field of a struct."


def _rows(table: Table, column: str, *, rejecting: bool) -> pl.DataFrame:
    """The key and `_tag`, each unit once."""
    types = {plain_type(part.schema[column]) for part in table.parts if column in part.schema} - {pl.Null()}
    if len(types) > 1 or any(column not in part.schema for part in table.parts):
        said = " and ".join(sorted(map(str, types))) if len(types) > 1 else "missing in some files"
        raise DataError(f"{table.spec.name}.{printable(column)} is {said}. All files must have it in one type.")
    for part in table.parts:
        part.check_unchanged()
    key = ["query_id"] if table.spec.name == "queries" else unit_key(table.columns)
    wanted = replace(table, columns={**table.columns, column: next(iter(types), pl.String())})
    rows = wanted.read([*key, column]).select(*key, pl.col(column).alias("_tag")).drop_nulls(key)
    again = rows.select(pl.struct(key).is_duplicated()).to_series()
    if again.any():
        if not rejecting:
            shown = printable(rows.filter(again)[key[-1]].cast(pl.String).sort()[0])
            raise DataError(
                f"{table.spec.name} names {again.sum():,} rows that are not the only one of their "
                f"{' and '.join(key)}, such as {shown}. Each must stand once."
            )
        rows = rows.unique(key, keep="first", maintain_order=True)  # such units were rejected and have no value
    return rows
