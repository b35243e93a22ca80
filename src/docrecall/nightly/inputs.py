"""The inputs of one night: listed once, delivered or not, fingerprinted, and the same until the end."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

from docrecall.errors import IncompleteError, InputError
from docrecall.nightly import days
from docrecall.nightly.config import Config, Sources
from docrecall.nightly.places import fixed_folder, is_free
from docrecall.nightly.times import check_times
from docrecall.score import open_tables
from docrecall.show import printable
from docrecall.sources.files import FileRef
from docrecall.sources.inputs import Inputs
from docrecall.sources.mapping import parse_mapping

_LABELS = ("qrels", "evidence", "queries")
# A file that was written so shortly before it was looked at could change again within one tick of its clock.
_TICK = 2_000_000_000


def open_night(config: Config, night: date) -> Inputs:
    """List and open the tables of a night, from the folder of the configuration.

    Raises IncompleteError when something dated is not there or has no rows, or a run has no hit; DataError when a row
    is of another night, where the configuration says what its time is; else as `score` does.
    """
    sources = config.sources
    _check_delivered(sources, night)
    maps = parse_mapping(list(sources.map) or None, list(sources.read) or None)
    inputs = open_tables(sources.hits_of(night), sources.tables_of(night), maps)
    _check_places(sources, night, inputs)
    _check_rows(sources, night, inputs)
    for log in inputs.logs if sources.time is not None else ():
        check_times(log, str(sources.time), night)
    return inputs


def _check_rows(sources: Sources, night: date, inputs: Inputs) -> None:
    for log in inputs.logs:
        if not log.n_rows:
            of = "" if log.run is None else f" of {printable(log.run)}"
            raise IncompleteError(f"the hits{of} on {night} have no rows. A night without one hit was not delivered.")
    for name, table in inputs.tables.items():
        if not table.n_rows and any(days.is_dated(p) for p in sources.tables[name]):
            raise IncompleteError(f"the {name} of {night} have no rows. A night without any was not delivered.")


def _check_delivered(sources: Sources, night: date) -> None:
    days.refuse_unfinished(night)
    if sources.marker is not None and not os.path.lexists(marker := days.fill(sources.marker, night)):
        raise IncompleteError(f"{night} is not delivered: {printable(marker)} is not there.")
    for name, paths in sources.all().items():
        for path in paths:
            if days.is_dated(path) and not _has_files(there := days.fill(path, night)):
                raise IncompleteError(
                    f"{night} is not delivered: {printable(name)} has no files at {printable(there)}."
                )


def _has_files(path: str) -> bool:
    """Whether a path, a folder or a pattern names any file that is not hidden."""
    named = [path] if os.path.lexists(path) else glob.iglob(path, recursive=True)
    return any(not os.path.isdir(p) or _any_file(p) for p in named)  # noqa: PTH112 - Path raises for long names


def _any_file(folder: str) -> bool:
    for at, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith((".", "_"))]
        if any(not f.startswith((".", "_")) for f in files):
            return True
        del at
    return False


def _check_places(sources: Sources, night: date, inputs: Inputs) -> None:
    """Refuse files that links lead to outside of the folder that a source names; a file that is named may be a link."""
    for table in inputs.all():
        name = f"hits.{table.run}" if table.run is not None else table.spec.name
        patterns = sources.all()[name]
        named = {os.path.abspath(days.fill(p, night)) for p in patterns if not is_free(p)}  # noqa: PTH100
        roots = [os.path.realpath(fixed_folder(p)) for p in patterns]
        for file in _files([table]):
            real = os.path.realpath(file.path)
            if os.path.abspath(file.path) in named:  # noqa: PTH100
                continue
            if not any(os.path.commonpath([root, real]) == root for root in roots):
                raise InputError(
                    f"{printable(file.path)} is a link that leads out of the folder of its source, {printable(name)}. "
                    "Name the folder that it leads to."
                )


def _files(tables: Iterable[Any]) -> Iterator[FileRef]:
    for table in tables:
        for part in table.parts:
            if part.listed is not None:
                yield part.listed


class Fingerprints:
    """What was read, to the byte. entries: table, run, file, bytes, rows, sha256 of each file, sorted."""

    def __init__(self, inputs: Inputs) -> None:
        self._started = time.time_ns()
        self._inputs = inputs
        self._written = {file.path: _written(file) for file in _files(inputs.all())}
        known: dict[str, str] = {}
        self.entries: list[dict[str, Any]] = []
        for table in inputs.all():
            for part in table.parts:
                file = part.listed
                if file is None:
                    continue
                if file.path not in known:
                    known[file.path] = file.sha256()
                self.entries.append(
                    {
                        "table": table.spec.name,
                        "run": table.run,
                        "file": file.name,
                        "bytes": file.size,
                        "rows": part.n_rows,
                        "sha256": known[file.path],
                    }
                )
        self.entries.sort(key=lambda e: (e["table"], e["run"] or "", e["file"]))
        self._known = known

    def check_unchanged(self) -> None:
        """Raise InputError when a file is not what it was; those that were young when listed are read again.

        The time of the last change of a file's state cannot be set, as that of its content can: who writes over a file
        and puts its time back is found out.
        """
        self._inputs.check_unchanged()
        for file in _files(self._inputs.all()):
            before = self._written[file.path]
            young = max(file.mtime_ns, before) > self._started - _TICK
            if _written(file) != before or (young and file.sha256() != self._known[file.path]):
                raise InputError(f"{printable(file.path)} changed while it was read. Run again when it is whole.")


def _written(file: FileRef) -> int:
    """When the content of a file, or what is said of it, was last changed."""
    with file.open() as handle:
        return os.fstat(handle.fileno()).st_ctime_ns


def label_digest(inputs: Inputs, sources: Sources) -> str:
    """The SHA-256 of what the labels say, in the columns that are used: not of their files, order or repeats.

    inputs: settled. Tables: qrels, evidence, and queries with their status and weight unless each night has its own.
    """
    found = hashlib.sha256()
    for name in _LABELS:
        dated = any(days.is_dated(p) for p in sources.tables.get(name, ()))
        if name not in inputs.tables or (name == "queries" and dated):
            continue
        table = inputs.tables[name]
        columns = sorted(c for c in table.columns if c in table.spec.columns)
        rows = table.read(columns).select(columns).unique().sort(columns)
        found.update(json.dumps([name, columns, rows.height]).encode())
        found.update(rows.write_csv(include_header=False, null_value="\\N", quote_style="non_numeric").encode())
    return found.hexdigest()


def told_of_inputs(inputs: Inputs) -> list[str]:
    """Lines on what a night would read, one per file."""
    return [
        f"{table.spec.name}{'' if table.run is None else ' of ' + printable(table.run)}: {printable(part.file)}, "
        f"{part.n_rows:,} rows, {part.fingerprint.get('bytes', 0):,} bytes"
        for table in inputs.all()
        for part in table.parts
    ]
