"""The works of `context.py`: what is asked of which log, and what may be spent on it. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from log import BUDGETS, CUTS, HITS_PER_QUERY, Variant

TOOLS = ("docrecall", "duckdb", "python")
TOOL_TITLES = {"docrecall": "**docrecall**", "duckdb": "DuckDB SQL", "python": "plain Python"}

Tool = Literal["docrecall", "duckdb", "python"]


@dataclass(frozen=True)
class Task:
    """One question to every tool.

    columns: what an answer needs beside query_id, rank and doc_id. cuts: numbers that go with `unit`; one that leaves
    nothing out under the context cut, which has none. goal: bare scans of the columns; peak_gb: memory.
    """

    name: str
    title: str
    variant: Variant
    columns: tuple[str, ...]
    cuts: tuple[int, ...]
    family: str = "doc_recall"
    unit: Literal["", "tokens", "context"] = ""
    goal: float | None = None
    peak_gb: float = 1.0
    tolerance: float = 1e-12

    @property
    def measures(self) -> tuple[str, ...]:
        """The names under which docrecall has the values."""
        return tuple(f"{self.family}@{'' if self.unit == 'context' else k}{self.unit}" for k in self.cuts)

    @property
    def scanned(self) -> tuple[str, ...]:
        """Every column of the hits that an answer needs."""
        return ("query_id", "rank", "doc_id", *self.columns)

    @property
    def scan(self) -> str:
        """The bare scan of these columns, one for all works that need the same."""
        return f"scan_{'_'.join((self.variant, *self.columns))}"


_SPAN = ("chunk_start", "chunk_end")
_COVERAGE = "evidence_coverage"

TASKS = (
    Task("context", "`@context`", "context", ("in_context",), (HITS_PER_QUERY,), unit="context", goal=5.0),
    Task("tokens", "`@2000tokens`", "context", ("n_tokens",), (2000,), unit="tokens", goal=5.0),
    Task("tokens_7", "7 x `@Ntokens`", "context", ("n_tokens",), BUDGETS, unit="tokens", goal=5.0),
    Task(
        "evidence", "`evidence_coverage@10`", "context", _SPAN, (10,), _COVERAGE, goal=8.0, peak_gb=1.5, tolerance=1e-9
    ),
    Task(
        "evidence_7",
        "7 x `evidence_coverage@k`",
        "context",
        _SPAN,
        CUTS,
        _COVERAGE,
        goal=8.0,
        peak_gb=1.5,
        tolerance=1e-9,
    ),
    Task("queries", "7 x `@k`, queries", "plain", (), CUTS),
    Task("requests", "7 x `@k`, requests", "requests", ("request_id",), CUTS),
)
