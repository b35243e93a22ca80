"""Tables -> files: Parquet as docrecall likes it best, and TREC's two formats."""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from urllib.parse import quote

import polars as pl

from docrecall.contract.lookup import DEFAULT_RUN
from docrecall.errors import DataError
from docrecall.show import printable
from docrecall.sources.table import Table
from docrecall.tables import TABLES
from docrecall.version import __version__

_ROW_GROUP = 1 << 20
_LONGEST_NAME = 250  # bytes that file systems take
# What separates fields, or would make a line something else.
_UNWRITABLE = r"[ \t\n\x0b\x0c\r]|^$"


def is_written_name(name: str) -> bool:
    """Whether a file of this name is one that the writers here make."""
    return name.removesuffix(".parquet") in TABLES or re.fullmatch(r"(hits(-.*)?|qrels)\.trec", name) is not None


class ParquetFile:
    """One table as Parquet: ids dictionary encoded, statistics, page checksums, and the order of rows in the footer."""

    def __init__(self, folder: Path, table: Table) -> None:
        self.names = [f"{table.spec.name}.parquet"]
        self.n_rows = 0
        self._path, self._table = folder / self.names[0], table
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, rows: pl.DataFrame) -> None:
        """Append rows that follow those before in the order of the file."""
        import pyarrow as pa  # noqa: PLC0415 - a third of a second that scoring need not pay
        import pyarrow.parquet as pq  # noqa: PLC0415

        arrow = rows.to_arrow()
        if self._writer is None:
            known = [c for c in (*self._table.spec.columns, *rows.columns) if c in rows.columns]
            self._columns = list(dict.fromkeys(known))
            # Plain strings: every reader knows them.
            fields = [
                pa.field(c, pa.string() if rows.schema[c] == pl.String else arrow.schema.field(c).type)
                for c in self._columns
            ]
            schema = pa.schema(fields, metadata={"docrecall": __version__, "table": self._table.spec.name})
            key = ("query_id", "run_id", "rank") if self._table.spec.name == "hits" else self._table.spec.required
            sorted_by = [pq.SortingColumn(self._columns.index(c)) for c in key if c in self._columns]
            self._writer = pq.ParquetWriter(
                self._path,
                schema,
                compression="zstd",
                use_dictionary=[c for c in self._columns if rows.schema[c] == pl.String],
                write_statistics=True,
                write_page_checksum=True,
                sorting_columns=sorted_by,
            )
        self._writer.write_table(arrow.select(self._columns).cast(self._writer.schema), row_group_size=_ROW_GROUP)
        self.n_rows += rows.height


class TrecFiles:
    """Hits as one run file for each run, or qrels. Numbers are written with all their digits."""

    def __init__(self, folder: Path, table: Table) -> None:
        self.names: list[str] = []
        self.n_rows = 0
        self._folder, self._table = folder, table
        self._open: dict[str, IO[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for file in self._open.values():
            file.close()
        # One run needs no name in the file's.
        if kind is None and len(self.names) == 1 and self._table.spec.name == "hits":
            (self._folder / self.names[0]).rename(self._folder / "hits.trec")
            self.names = ["hits.trec"]

    def write(self, rows: pl.DataFrame) -> None:
        """Append rows. DataError for ids that TREC's format cannot hold."""
        hits = self._table.spec.name == "hits"
        if hits and "run_id" not in rows.columns:
            rows = rows.with_columns(pl.lit(DEFAULT_RUN).alias("run_id"))
        if hits and "score" not in rows.columns:
            rows = rows.with_columns((-pl.col("rank")).cast(pl.Float64).alias("score"))
        if not hits and "relevance" not in rows.columns:
            rows = rows.with_columns(pl.lit(1, pl.Int64).alias("relevance"))
        self._refuse_unwritable(rows)
        fields = (
            ["query_id", pl.lit("Q0"), "doc_id", "rank", "score", "run_id"]
            if hits
            else ["query_id", pl.lit("0"), "doc_id", "relevance"]
        )
        line = pl.concat_str([pl.col(f) if isinstance(f, str) else f for f in fields], separator=" ") + "\n"
        by_run = rows.partition_by("run_id", as_dict=True) if hits else {(None,): rows}
        for (run,), part in by_run.items():
            name = "qrels.trec" if run is None else f"hits-{quote(str(run), safe='')}.trec"
            if len(name) > _LONGEST_NAME:
                raise DataError(
                    f"hits.run_id: the run {printable(run, 40)} is too long to name a file. Write Parquet, or map "
                    "hits.run_id to something shorter."
                )
            if name not in self._open:
                self._open[name] = (self._folder / name).open("wb")
                self.names.append(name)
            self._open[name].write("".join(part.select(line.alias("line"))["line"]).encode())
        self.n_rows += rows.height

    def _refuse_unwritable(self, rows: pl.DataFrame) -> None:
        for column in ("query_id", "doc_id", "run_id", "score", "rank", "relevance"):
            if column not in rows.columns:
                continue
            text = rows[column].cast(pl.String)
            odd = text.is_null() | text.str.contains(_UNWRITABLE).fill_null(False)
            if column == "query_id":
                odd = odd | text.str.starts_with("#") | text.str.starts_with("\ufeff")
            if column == "score":
                odd = odd | rows[column].is_nan().fill_null(False)
            if odd.any():
                some = ", ".join(f"'{printable(i)}'" for i in text.filter(odd).unique().sort().head(3).drop_nulls())
                raise DataError(
                    f"{self._table.spec.name}.{column}: {odd.sum():,} values cannot stand in a TREC file"
                    f"{f' ({some})' if some else ''}: it has white space between fields, no empty ones, comments "
                    "that begin with #, perhaps a byte order mark first, and no NaN among scores. Write Parquet, or "
                    "rename them."
                )
