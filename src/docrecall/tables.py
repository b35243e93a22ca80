"""The tables: their columns, what each column may hold, and the types in which docrecall works on them.

Ids become String or Int64, whole numbers Int64, so that no later stage sees another width, a Categorical or
a Null-typed column. Columns that are not named here take no part in anything.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

Kind = Literal["id", "text", "whole", "rank", "number", "flag", "status"]

LABEL_STATUSES = ("answerable", "unanswerable", "unlabelled")


@dataclass(frozen=True)
class TableSpec:
    """One table. `required` and `optional` map column names to the kind of value that they hold.

    slices: whether any other column may be kept, to part the means by.
    """

    name: str
    required: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)
    slices: bool = False

    @property
    def columns(self) -> dict[str, Kind]:
        """All columns that docrecall knows, in the order of DESIGN section 2."""
        return {**self.required, **self.optional}


HITS = TableSpec(
    "hits",
    {"query_id": "id", "rank": "rank", "doc_id": "id"},
    {
        "run_id": "text",
        "request_id": "id",
        "chunk_id": "id",
        "doc_version": "text",
        "chunk_start": "whole",
        "chunk_end": "whole",
        "n_tokens": "whole",
        "in_context": "flag",
        "score": "number",
    },
)
QRELS = TableSpec("qrels", {"query_id": "id", "doc_id": "id"}, {"relevance": "whole", "doc_version": "text"})
EVIDENCE = TableSpec(
    "evidence",
    {"query_id": "id", "evidence_id": "id", "doc_id": "id"},
    {"start": "whole", "end": "whole", "chunk_id": "id", "doc_version": "text"},
)
QUERIES = TableSpec("queries", {"query_id": "id"}, {"label_status": "status", "weight": "number"}, slices=True)
REQUESTS = TableSpec(
    "requests",
    {"query_id": "id"},
    {"run_id": "text", "request_id": "id", "retrieved": "flag", "answered": "flag"},
    slices=True,
)
DOCUMENTS = TableSpec("documents", {"doc_id": "id"}, {"doc_version": "text", "title": "text", "alias_of": "id"})
CHUNKS = TableSpec(
    "chunks",
    {"chunk_id": "id", "doc_id": "id"},
    {"run_id": "text", "chunk_start": "whole", "chunk_end": "whole", "n_tokens": "whole", "doc_version": "text"},
)
TABLES: Mapping[str, TableSpec] = {
    spec.name: spec for spec in (HITS, QRELS, EVIDENCE, QUERIES, REQUESTS, DOCUMENTS, CHUNKS)
}

UNIT = ("run_id", "request_id", "query_id")  # the key of what is scored; without request_id where nobody logs it


def unit_key(columns: Container[str]) -> list[str]:
    """The columns among some that tell units apart; hits whose run the caller named have no run_id."""
    return [c for c in UNIT if c in columns]


def by_run(units: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """The rows of each run. Nothing is copied where there is one run, as in most batches."""
    if units["run_id"].n_unique() == 1:
        yield units["run_id"][0], units
        return
    for (run,), rows in units.partition_by("run_id", as_dict=True).items():
        yield run, rows


def sorted_by(units: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Units in the order of their key, each of which stands once; left as they are where that is their order."""
    return units if is_sorted_by(units, key) else units.sort(key)


def is_sorted_by(rows: pl.DataFrame, key: Sequence[str]) -> bool:
    """Whether rows stand in the order of a key, none of them at the same place as another. The key has no null."""
    later, same = pl.lit(False), pl.lit(True)
    for column in map(pl.col, key):
        later |= same & (column > column.shift())
        same &= column == column.shift()
    return bool(rows.select(later.slice(1).all()).item())


def plain_type(dtype: pl.DataType) -> pl.DataType:
    """The type that a column has once its encoding is taken off: dictionary encoded text is text."""
    return pl.String() if isinstance(dtype, pl.Categorical | pl.Enum) else dtype


def fits(kind: Kind, dtype: pl.DataType) -> bool:
    """Whether a column of this type may hold this kind. Null-typed columns fit: they hold nothing at all."""
    dtype = plain_type(dtype)
    if dtype == pl.Null:
        return True
    match kind:
        case "id":
            return dtype == pl.String or dtype.is_integer()
        case "text" | "status":
            return dtype == pl.String
        case "whole":
            return dtype.is_integer()
        case "rank":
            return dtype.is_integer() or dtype == pl.Float64
        case "number":
            return dtype.is_numeric()
        case "flag":
            return dtype == pl.Boolean


EXPECTED: Mapping[Kind, str] = {
    "id": "String or an integer type",
    "text": "String",
    "status": "String",
    "whole": "an integer type",
    "rank": "an integer type (Float64 only when every value is whole)",
    "number": "a numeric type",
    "flag": "Boolean",
}
