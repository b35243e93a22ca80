"""Paths -> files. We list, stat and open every file ourselves.

An engine that is handed a folder skips empty files, reads hidden ones and left-over temporary ones, and stops at a
README; an engine that is handed a path may read another file than the one that was checked. So: an explicit list,
a fingerprint taken once, and open handles whose fingerprint is compared.
"""

from __future__ import annotations

import glob as globbing
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

import polars as pl

from docrecall.errors import InputError, UsageError
from docrecall.show import printable

SUFFIXES = (".parquet", ".pq", ".parq")
_MAGIC = b"PAR1"
_SHORTEST = 12  # magic, footer length, magic: nothing shorter is a Parquet file
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class FileRef:
    """One file as it was when it was listed. `partitions` are the `key=value` folders above it (None: null)."""

    path: str
    inode: int
    size: int
    mtime_ns: int
    partitions: Mapping[str, str | None] = field(default_factory=dict)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open for reading; InputError when the file is gone, unreadable, or not the one that was listed."""
        try:
            handle = Path(self.path).open("rb")  # noqa: SIM115 - closed below, outside the reach of this except
        except OSError as error:
            raise _unreadable(self.path, error) from None
        with handle:
            self._compare(os.fstat(handle.fileno()))
            yield handle

    def scan(self) -> pl.LazyFrame:
        """Scan the file that was listed, and no other that may have taken its path."""
        with self.open() as handle:  # the scan keeps a descriptor of its own
            return pl.scan_parquet(handle, glob=False, hive_partitioning=False)

    def check_unchanged(self) -> None:
        """Raise InputError when the path no longer holds what was listed."""
        try:
            now = Path(self.path).stat()
        except OSError as error:
            raise _unreadable(self.path, error) from None
        self._compare(now)

    def _compare(self, now: os.stat_result) -> None:
        if (now.st_ino, now.st_size, now.st_mtime_ns) != (self.inode, self.size, self.mtime_ns):
            raise InputError(
                f"{printable(self.path)} changed while it was read. Inputs must stay as they are; "
                "write a new file under a temporary name and rename it when it is whole."
            )


@dataclass(frozen=True)
class Listing:
    """The files behind one argument, and how many hidden ones were left out."""

    files: tuple[FileRef, ...]
    left_out: int = 0


def list_files(paths: list[str]) -> Listing:
    """List what each path names: a file, a directory (all below it, `key=value` folders included) or a glob."""
    files: list[FileRef] = []
    left_out = 0
    for path in paths:
        if "://" in path:
            raise UsageError(f"{printable(path)} is a URL. docrecall reads local files; copy or mount the data first.")
        for root, found in _expand(path):
            if found is None:
                left_out += 1
            else:
                files.append(_reference(found, root))
    return Listing(tuple(files), left_out)


def _expand(path: str) -> Iterator[tuple[str, str | None]]:
    """Yield (root, file) for every data file of a path, and (root, None) for every hidden name."""
    # A name with brackets in it is a name first: only what does not exist is tried as a pattern.
    if Path(path).is_dir():
        yield from _walk_whole(path)
    elif globbing.has_magic(path) and not os.path.lexists(path):
        matches = sorted(globbing.glob(path, recursive=True))
        if not matches:
            raise InputError(f"no files match {printable(path)}.")
        root = re.split(r"[*?[]", path, maxsplit=1)[0].rpartition(os.sep)[0]
        for match in matches:
            if Path(match).is_dir():
                if "**" not in path:  # ** has already named everything below
                    yield from _walk_whole(match)
            else:
                yield root, _data_file(match)
    else:
        yield str(Path(path).parent), path


def _walk_whole(directory: str) -> Iterator[tuple[str, str | None]]:
    found = list(_walk(directory, seen=set()))
    if not any(file is not None for file in found):
        raise InputError(
            f"no data files in {printable(directory)}. Parquet files are expected ({', '.join(SUFFIXES)})."
        )
    for file in found:
        yield directory, file


def _walk(directory: str, seen: set[str]) -> Iterator[str | None]:
    real = os.path.realpath(directory)
    if real in seen:
        raise InputError(f"{printable(directory)} leads back into itself through a symbolic link.")
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError as error:
        raise _unreadable(directory, error) from None
    for entry in entries:
        if entry.name.startswith((".", "_")):
            yield None
        elif entry.is_dir():
            yield from _walk(entry.path, seen | {real})
        else:
            yield _data_file(entry.path)


def _data_file(path: str) -> str:
    if not path.lower().endswith(SUFFIXES):
        raise InputError(
            f"{printable(path)} is not a data file ({', '.join(SUFFIXES)}). Move it away, "
            "or start its name with . or _ to have it left out."
        )
    return path


def _reference(path: str, root: str) -> FileRef:
    try:
        stat = Path(path).stat()
        with Path(path).open("rb") as handle:
            head = handle.read(len(_MAGIC))
            handle.seek(-min(stat.st_size, len(_MAGIC)), os.SEEK_END)
            tail = handle.read(len(_MAGIC))
    except OSError as error:
        raise _unreadable(path, error) from None
    name = printable(path)
    if stat.st_size == 0:
        raise InputError(f"{name} is empty (0 bytes). A table without rows is still a Parquet file with its columns.")
    if head != _MAGIC:
        raise InputError(f"{name} is not a Parquet file: it does not start with PAR1.")
    if stat.st_size < _SHORTEST or tail != _MAGIC:
        raise InputError(f"{name} is cut short or still being written: it does not end with PAR1.")
    return FileRef(path, stat.st_ino, stat.st_size, stat.st_mtime_ns, _partitions(path, root))


def _partitions(path: str, root: str) -> dict[str, str | None]:
    """Read the `key=value` folders between the root that was asked for and the file; values stay text."""
    found: dict[str, str | None] = {}
    for folder in os.path.relpath(path, root or ".").split(os.sep)[:-1]:
        key, equals, value = folder.partition("=")
        if equals:
            found[unquote(key)] = None if value == _NULL_PARTITION else unquote(value)
    return found


def _unreadable(path: str, error: OSError) -> InputError:
    name = printable(path)
    if isinstance(error, FileNotFoundError):
        return InputError(f"{name} does not exist.")
    if isinstance(error, PermissionError):
        return InputError(f"{name} cannot be read: permission denied.")
    return InputError(f"{name} cannot be read: {error.strerror or type(error).__name__}.")
