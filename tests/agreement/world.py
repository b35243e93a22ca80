"""What generated calls are about: ids, documents cut into chunks, and which columns and tables a call has."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import polars as pl

from tests.agreement.case import Rows

LONG = "long" * 80
NUMBERS = ["17", "7", "007", "07", "1", "0", "-1", "1.0", "1e3", "12", "123", "3", "23", "017", " 17", "17 "]
ODD = [
    *(
        "",
        " ",
        "a",
        " a",
        "a ",
        "\ta",
        "a\tb",
        "a b",
        "a\nb",
        "#",
        "#1",
        "a#b",
        "a/b",
        "null",
        "None",
        "NaN",
        "A",
        "ss",
    ),
    *(
        "é",
        "e\u0301",
        "K",
        "\u212a",
        "Å",
        "A\u030a",
        "\u212b",
        "ß",
        "日本",
        "🙂",
        "\U0001f642\u200d",
        "\uffff",
        "\U00010000",
    ),
    *("ss", "\U0001f642\u200d", "a\x00", "\u00a0a", "q\u2028", LONG, LONG + "r"),
]
LARGE = [0, 1, -1, 17, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**32, -(2**31), 255, -17, 10, 9, 100, -2]
WIDTHS = [pl.Int64, pl.Int32, pl.Int16, pl.Int8, pl.UInt64, pl.UInt32, pl.UInt16, pl.UInt8, pl.Int128]
# Float32 makes one value of the first three.
SCORES = [
    0.1,
    0.1 + 1e-9,
    0.1 - 1e-9,
    0.0,
    -0.0,
    -1.5,
    -1.5 - 1e-9,
    3.0,
    3.0 + 2**-30,
    1e300,
    2e300,
    float("inf"),
    -1e-300,
    7.25,
]
FEW_SCORES = [-2.0, -1.0, 0.0, 1.0, 2.0]


@dataclass(frozen=True)
class Ids:
    """Ids of one kind, and the types that may hold them."""

    pool: list[Any]
    widths: list[Any]

    def type_of(self, r: Random) -> Any:
        return r.choice(self.widths)


def ids(r: Random, n: int, letter: str) -> Ids:
    """Draw n ids of one style."""
    style = r.choice(["plain", "numbers", "odd", "odd", "whole", "large"])
    if style == "whole":
        pool = list(range(n))
        return Ids(pool, [w for w in WIDTHS if n <= 120 or w not in (pl.Int8, pl.UInt8)])
    if style == "large":
        return Ids(_some(r, LARGE, n, range(1000, 1000 + n)), [pl.Int64, pl.Int64, pl.Int128])
    spare = [f"{letter}{i}" for i in range(n)]
    fixed = {"plain": [], "numbers": NUMBERS, "odd": ODD}[style]
    return Ids(_some(r, fixed, n, spare), [pl.String])


def _some(r: Random, first: list[Any], n: int, spare: Any) -> list[Any]:
    return [*r.sample(first, min(n, len(first))), *spare][:n]


@dataclass(frozen=True)
class Chunk:
    """A piece of a document, as an index holds it."""

    chunk_id: Any
    doc_id: Any
    chunk_start: int | None
    chunk_end: int | None
    n_tokens: int
    doc_version: str | None


Text = dict[Any, list[Chunk]]  # document -> its chunks in order


@dataclass
class World:
    """What one call has.

    columns: of hits, beyond ids and rank, that are known, logged or lent. lent: those that only the chunks table has.
    tables: the optional tables that are given. texts: run -> its chunks. gold: query -> documents to label.
    """

    r: Random
    queries: Ids
    docs: Ids
    bad: bool
    options: dict[str, Any]
    runs: list[str | None]
    run_style: str  # none, column or dict
    tables: set[str] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)
    lent: set[str] = field(default_factory=set)
    label_columns: set[str] = field(default_factory=set)
    evidence_columns: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    requests: Ids | None = None
    aliases: dict[Any, Any] = field(default_factory=dict)
    chunk_type: Any = pl.String
    evidence_ids: list[Any] = field(default_factory=lambda: ["e0", "e1", "e2"])
    versions: dict[Any, str] = field(default_factory=dict)
    texts: dict[str | None, Text] = field(default_factory=dict)
    gold: dict[Any, list[Any]] = field(default_factory=dict)
    asked: set[tuple[Any, ...]] = field(default_factory=set)  # run, request, query of the units with hits
    strange_chunks: bool = False
    strange_versions: bool = False  # labels speak of another index

    def version(self, doc: Any, of_labels: bool = False) -> str | None:
        """Mostly the version of the document, sometimes another or none."""
        if self.strange_versions:
            return "old" if of_labels else self.versions[doc]
        return self.versions[doc] if self.r.random() < 0.85 else self.r.choice(["v1", "v2", None])

    def rows(self, columns: dict[str, Any], rows: list[dict[str, Any]]) -> Rows:
        """A table, cut into files somewhere."""
        tuples = [tuple(row[c] for c in columns) for row in rows]
        splits = (self.r.randint(0, len(rows)) for _ in range(self.r.choice([0, 1, 1, 2, 5])))
        return Rows(columns, tuples, tuple(splits))


def write_texts(w: World, per_document: bool, whole_numbers: bool) -> None:
    """Cut every document into chunks: tiles, overlaps, or pieces with gaps of one to three characters."""
    w.chunk_type = w.r.choice([pl.Int64, pl.Int32]) if whole_numbers else pl.String
    shared = w.r.random() < 0.5
    for run in w.runs:
        if shared and w.texts:
            w.texts[run] = next(iter(w.texts.values()))
            continue
        number = 0
        w.texts[run] = {}
        step = w.r.choice([(0, 0), (0, 0), (-6, 0), (1, 1), (1, 2), (1, 3), (-4, 3)])
        for doc in w.docs.pool:
            chunks, start = [], 0
            length = w.r.choice([3, 8, 8, 13])
            for n in range(w.r.randint(1, 6)):
                end = min(start + w.r.randint(max(1, length - 3), length), 40)
                number += 1
                chunk_id = (
                    (n if per_document else number) if whole_numbers else f"c{n}" if per_document else f"k{number}"
                )
                span = (start, end) if w.r.random() < 0.95 else w.r.choice([(None, None), (start, start)])
                chunks.append(Chunk(chunk_id, doc, *span, w.r.randint(0, 9), w.version(doc)))
                start = max(end + w.r.randint(*step), 0)
                if start >= 40:
                    break
            w.texts[run][doc] = chunks
