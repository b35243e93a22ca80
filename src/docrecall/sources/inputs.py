"""The tables of one run of the tool, together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from docrecall.sources.mapping import TableMap, to_toml
from docrecall.sources.table import Table


class Inputs(NamedTuple):
    """Hits are one table, or one per run that the caller named; the others are one table each, by name."""

    logs: list[Table]
    tables: Mapping[str, Table]

    def all(self) -> list[Table]:
        """Every table that was given."""
        return [*self.logs, *self.tables.values()]

    def has(self, table: str, column: str) -> bool:
        """Whether a table other than hits was given, with this column."""
        return table in self.tables and column in self.tables[table].parts[0].schema

    def reads(self, table: str, *columns: str) -> bool:
        """Whether a table was given, with some columns in all of its files."""
        given = self.logs if table == "hits" else [self.tables[table]] if table in self.tables else []
        return bool(given) and all(set(columns) <= part.schema.keys() for one in given for part in one.parts)

    def says(self, table: str, column: str) -> bool:
        """Whether a table other than hits has a value in this column."""
        return self.has(table, column) and any(p.null_count(column) < p.n_rows for p in self.tables[table].parts)

    @property
    def n_hits(self) -> int:
        """Rows of all logs."""
        return sum(log.n_rows for log in self.logs)

    def check_unchanged(self) -> None:
        """Raise InputError when a file is not what it was when it was listed."""
        for table in self.all():
            for part in table.parts:
                part.check_unchanged()

    def fingerprints(self) -> list[dict[str, Any]]:
        """What was read: table, run, file, format, mapping (TOML or null), columns, rows, the file's size and time."""
        return [
            {
                "table": table.spec.name,
                "run": table.run,
                "file": part.file,
                "format": part.format,
                "mapping": None if part.tmap == TableMap() else to_toml({table.spec.name: part.tmap}),
                "columns": [c for c in table.spec.columns if c in part.schema],
                "rows": part.n_rows,
                **part.fingerprint,
            }
            for table in self.all()
            for part in table.parts
        ]
