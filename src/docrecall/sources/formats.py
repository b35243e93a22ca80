"""Formats: what a file's name says of its layout, and what a caller declares where the name says nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from docrecall.errors import UsageError, nearest

SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".parq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".trec": "trec",
    ".run": "trec",
    ".qrels": "trec",
    ".qrel": "trec",
    ".json": "ranx",
}
FORMATS = {
    "parquet": "Parquet",
    "csv": "CSV (comma separated, a header line, fields may be quoted)",
    "tsv": "TSV (tab separated, a header line, no quoting)",
    "jsonl": "JSON lines (one object per line)",
    "trec": "a TREC run or qrels file",
    "beir": "a BEIR or MTEB folder, or one of its files",
    "ranx": "ranx JSON (query -> document -> score or grade)",
}
_WITH_FIELDS = ("csv", "tsv", "trec")  # formats whose columns can be declared
IGNORED = "_"  # a declared field that is not read


@dataclass(frozen=True)
class Read:
    """How a table is to be read: a format, and what follows its colon.

    `csv`, `tsv` and `trec` take the columns of a file without a header, in order (`_` for one that is not read);
    `beir` takes the split.
    """

    format: str
    fields: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Read:
        """Read `FORMAT` or `FORMAT:NAME,NAME,..`; UsageError for what is no format."""
        name, colon, rest = text.partition(":")
        name = name.strip().lower()
        fields = tuple(field.strip() for field in rest.split(",")) if colon else ()
        if name not in FORMATS:
            raise UsageError(f"{name!r} is no format that can be read.{nearest(name, FORMATS)} {_listed()}")
        if name == "beir" and len(fields) > 1:
            raise UsageError(f"{text!r} names several splits; one is read at a time, as in beir:test.")
        if fields and name not in (*_WITH_FIELDS, "beir"):
            raise UsageError(f"{text!r}: columns cannot be declared for {name}; such files name their own.")
        named = [field for field in fields if field != IGNORED]
        if colon and (not named or "" in fields or len(set(named)) < len(named)):
            raise UsageError(
                f"{text!r}: after the colon stand the columns of the file in order, each once, with _ for those that "
                "are not read, as in trec:query_id,_,doc_id,rank,score."
            )
        return cls(name, fields)

    def __str__(self) -> str:
        return f"{self.format}:{','.join(self.fields)}" if self.fields else self.format


def of_name(path: str) -> str | None:
    """The format that a file's name promises, or None. `.gz` at the end may follow any text format."""
    match = re.search(r"(\.[^./]+?)(\.gz)?$", path.lower())
    found = SUFFIXES.get(match[1]) if match else None
    return None if match and match[2] and found == "parquet" else found


def known_suffixes() -> str:
    """The suffixes, for messages."""
    return ", ".join(SUFFIXES)


def _listed() -> str:
    return f"Formats are {', '.join(FORMATS)}."
