"""Paths -> files. We list, stat and open every file ourselves.

An engine that is handed a folder skips empty files, reads hidden ones and left-over temporary ones, and stops at a
README; an engine that is handed a path may read another file than the one that was checked. So: an explicit list,
a fingerprint taken once, and open handles whose fingerprint is compared.
"""

from __future__ import annotations

import glob as globbing
import hashlib
import os
import stat as modes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

import polars as pl

from docrecall.errors import InputError, UsageError
from docrecall.show import printable
from docrecall.sources.formats import known_suffixes, of_name

_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class FileRef:
    """One file as it was when it was listed.

    partitions: the `key=value` folders above it (None: null). layout: parquet, or the kind of text that it holds.
    """

    path: str
    inode: int
    size: int
    mtime_ns: int
    partitions: Mapping[str, str | None] = field(default_factory=dict)
    layout: str = "parquet"

    @classmethod
    def of(cls, path: str, partitions: Mapping[str, str | None] | None = None) -> FileRef:
        """Take the fingerprint of a file; InputError when there is none, or when it is a pipe or a device."""
        try:
            stat = os.stat(path)  # noqa: PTH116 - as in `open`
        except (OSError, ValueError) as error:  # a NUL in a name is a ValueError
            raise _unreadable(path, error) from None
        if not modes.S_ISREG(stat.st_mode):
            raise InputError(f"{printable(path)} is not a regular file. Write what it gives to a file first.")
        return cls(path, stat.st_ino, stat.st_size, stat.st_mtime_ns, partitions or {})

    @property
    def name(self) -> str:
        """The path as text that every output can hold, also when its bytes are not UTF-8."""
        return self.path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open for reading; InputError when the file is gone, unreadable, or not the one that was listed."""
        try:
            # Closed below, outside the reach of this except; a Path would cost as much again, of thousands of files.
            handle = open(self.path, "rb")  # noqa: SIM115, PTH123
        except OSError as error:
            raise _unreadable(self.path, error) from None
        with handle:
            self._compare(os.fstat(handle.fileno()))
            yield handle

    def sha256(self) -> str:
        """The SHA-256 of the file that was listed; InputError when it is another one by now."""
        with self.open() as handle:
            try:
                found = hashlib.file_digest(cast(BufferedReader, handle), "sha256").hexdigest()
            except OSError as error:
                raise _unreadable(self.path, error) from None
            self._compare(os.fstat(handle.fileno()))
        return found

    def check_unchanged(self) -> None:
        """Raise InputError when the path no longer holds what was listed."""
        try:
            now = os.stat(self.path)  # noqa: PTH116 - as in `open`
        except OSError as error:
            raise _unreadable(self.path, error) from None
        self._compare(now)

    def _compare(self, now: os.stat_result) -> None:
        if (now.st_ino, now.st_size, now.st_mtime_ns) != (self.inode, self.size, self.mtime_ns):
            raise InputError(
                f"{printable(self.path)} changed while it was read. Inputs must stay as they are; "
                "write a new file under a temporary name and rename it when it is whole."
            )


def scan_files(files: Sequence[FileRef]) -> pl.LazyFrame:
    """Scan the Parquet files that were listed, end to end, and no others that may have taken their paths.

    All must have the same columns.
    """
    with ExitStack() as stack:
        handles = [stack.enter_context(file.open()) for file in files]  # the scan keeps descriptors of its own
        return pl.scan_parquet(list[Any](handles), glob=False, hive_partitioning=False)


@dataclass(frozen=True)
class Listing:
    """The files behind one argument, and how many hidden ones were left out."""

    files: tuple[FileRef, ...]
    left_out: int = 0


def list_files(paths: list[str], declared: str | None = None) -> Listing:
    """List what each path names: a file, a directory (all below it, `key=value` folders included) or a glob.

    declared: the layout of all files, when the caller says it; their names may then be any.
    """
    files: list[FileRef] = []
    left_out = 0
    for path in paths:
        if "://" in path:
            raise UsageError(f"{printable(path)} is a URL. docrecall reads local files; copy or mount the data first.")
        named = os.path.abspath(path)  # noqa: PTH100
        for root, found in _expand(path):
            if found is None:
                left_out += 1
            else:
                if declared is None and of_name(found) is None and os.path.abspath(found) != named:  # noqa: PTH100
                    raise _strange(found)
                files.append(_reference(found, root, declared))
    return Listing(tuple(files), left_out)


def _expand(path: str) -> Iterator[tuple[str, str | None]]:
    """Yield (root, file) for every data file of a path, and (root, None) for every hidden name."""
    # A name with brackets in it is a name first: only what does not exist is tried as a pattern.
    # os.path answers for names that are too long or behind a closed folder, where Path raises.
    if os.path.isdir(path):  # noqa: PTH112
        yield from _some(path, ((path, file) for file in _walk(path, seen=set())))
    elif globbing.has_magic(path) and not os.path.lexists(path):
        yield from _some(path, _matches(path))
    else:
        yield str(Path(path).parent), path


def _some(path: str, found: Iterator[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    entries = list(found)
    if all(file is None for _, file in entries):
        raise InputError(f"no data files in {printable(path)}. Names that are read end in {known_suffixes()}.")
    return entries


def _matches(pattern: str) -> Iterator[tuple[str, str | None]]:
    """Yield what a pattern matches. Hidden names are left out here too, unless the pattern itself spells them."""
    root = os.path.dirname(pattern)  # noqa: PTH120
    while root and not os.path.lexists(root):
        root = os.path.dirname(root)  # noqa: PTH120
    wild = os.path.relpath(pattern, root or ".")
    spelled = any(_is_hidden(name) for name in wild.split(os.sep))
    matches = sorted(globbing.glob(os.path.join(globbing.escape(root), wild), recursive=True))  # noqa: PTH118
    if not matches:
        raise InputError(f"no files match {printable(pattern)}.")
    for match in matches:
        if not spelled and any(_is_hidden(name) for name in os.path.relpath(match, root or ".").split(os.sep)):
            yield root, None
        elif not os.path.isdir(match):  # noqa: PTH112
            yield root, match
        elif "**" not in wild:  # ** has already named everything below
            yield from ((root, file) for file in _walk(match, seen=set()))


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) and name not in (".", "..")


def _walk(directory: str, seen: set[str]) -> Iterator[str | None]:
    real = os.path.realpath(directory)
    if real in seen:
        raise InputError(f"{printable(directory)} leads back into itself through a symbolic link.")
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError as error:
        raise _unreadable(directory, error) from None
    for entry in entries:
        if _is_hidden(entry.name):
            yield None
        elif os.path.isdir(entry.path):  # noqa: PTH112 - entry.is_dir raises for a link to itself
            yield from _walk(entry.path, seen | {real})
        else:
            yield entry.path


def _strange(path: str) -> InputError:
    return InputError(
        f"{printable(path)} is not a data file ({known_suffixes()}; text may end in .gz). Move it away, "
        "or start its name with . or _ to have it left out."
    )


def _reference(path: str, root: str, declared: str | None) -> FileRef:
    layout = declared or of_name(path)
    file = FileRef.of(path, _partitions(path, root))
    return file if layout in (None, "parquet") else replace(file, layout=layout)


def _partitions(path: str, root: str) -> dict[str, str | None]:
    """Read the `key=value` folders between the root that was asked for and the file; values stay text."""
    found: dict[str, str | None] = {}
    if "=" not in path:
        return found
    for folder in os.path.relpath(path, root or ".").split(os.sep)[:-1]:
        key, equals, value = folder.partition("=")
        if equals:
            try:
                key, value = unquote(key, errors="strict"), unquote(value, errors="strict")
            except UnicodeDecodeError:
                raise InputError(
                    f"{printable(path)}: the folder {printable(folder)} is not percent-encoded UTF-8."
                ) from None
            found[key] = None if value == _NULL_PARTITION else value
    return found


def _unreadable(path: str, error: OSError | ValueError) -> InputError:
    name = printable(path)
    if isinstance(error, FileNotFoundError):
        return InputError(f"{name} does not exist.")
    if isinstance(error, PermissionError):
        return InputError(f"{name} cannot be read: permission denied.")
    if isinstance(error, ValueError):  # whose words differ from one Python to the next
        return InputError(f"{name} cannot be read: no file can have a name with a null byte.")
    return InputError(f"{name} cannot be read: {error.strerror or type(error).__name__}.")
