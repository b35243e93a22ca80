"""The competitors of `context.py`, made from its works; see `peers.py`."""

# Each peer imports what it needs and no more, or all would carry the memory of all.
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from log import LogFiles
from peers import Work, docrecall, duckdb, duckdb_chunks, scan
from tasks import TASKS, Task


def bare(task: Task, files: LogFiles) -> Work:
    """Decode and hash the columns that the work needs."""
    return scan(files, task.scanned)


def ours(task: Task, files: LogFiles) -> Work:
    """Docrecall, the contract checked."""
    tables = {"evidence": files.evidence} if task.family == "evidence_coverage" else {}
    return docrecall(files, task.measures, **tables)


def in_sql(task: Task, files: LogFiles) -> Work:
    """DuckDB."""
    from context_sql import task_sql

    return duckdb_chunks(files) if task.variant == "plain" else duckdb(task_sql(task, files))


def in_python(task: Task, files: LogFiles) -> Work:
    """The definition, for small logs."""
    from plain import means

    return partial(means, task, files)


CONTEXT_PEERS: dict[str, Callable[[LogFiles], Work]] = {
    **{task.scan: partial(bare, task) for task in TASKS},
    **{f"docrecall_{task.name}": partial(ours, task) for task in TASKS},
    **{f"duckdb_{task.name}": partial(in_sql, task) for task in TASKS},
    **{f"python_{task.name}": partial(in_python, task) for task in TASKS},
}
