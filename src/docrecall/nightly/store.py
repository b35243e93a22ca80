"""Where nights are published, and how: one night is one transaction.

    STORE/nights/2026-11-30/manifest.json    what readers open, and nothing else: it names the run and each of its files
                           /runs/RUN/        the results of that run, which `docrecall.load` reads; never changed
                           /verdict.json     what the gates said of them
    STORE/.staging/                          what is being written
    STORE/history.parquet                    one row per night, run and measure; made of the above, and made again

Results are staged, synced and renamed to a name that was never used; then the manifest is replaced, which is the only
moment at which a night changes. The lock of a night is on its folder, and the kernel drops it when its owner dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from docrecall.errors import InputError, LockedError, OutputError
from docrecall.report.structured import SCHEMA_VERSION
from docrecall.show import printable
from docrecall.staging import MANIFEST, TEMPORARY, fingerprint, named, read_sealed, seal, sweep, sync, write_whole
from docrecall.store import RESULTS

NIGHTS, STAGING, RUNS, VERDICT, HISTORY = "nights", ".staging", "runs", "verdict.json", "history.parquet"
HISTOGRAMS, SAMPLES, ROWS = "histograms.parquet", "samples.parquet", "night.parquet"  # of a run, beside its results
TAGS = {"queries": "queries.parquet", "requests": "requests.parquet"}  # the slices of its units, by the table that says
_RUN_TIME = "%Y%m%dT%H%M%S"
_RUN = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{12}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True)
class Night:
    """A published night. manifest: date, key, content, digests of labels and options, inputs, rows, files, .."""

    date: date
    folder: Path
    manifest: dict[str, Any]

    @property
    def run(self) -> Path:
        """The folder of its results."""
        return self.folder / str(self.manifest[RESULTS])

    def frame(self, name: str) -> pl.DataFrame:
        """Read one of its Parquet files. InputError when it is not what was written. What was hashed is read."""
        path, wanted = self.run / name, self.manifest["files"].get(name)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{printable(path)} cannot be read ({error.strerror}); {_AGAIN}") from None
        if wanted is None or hashlib.sha256(content).hexdigest() != wanted["sha256"]:
            raise InputError(f"{printable(path)} was changed or damaged after it was published; {_AGAIN}")
        return pl.read_parquet(io.BytesIO(content))

    def damage(self) -> list[str]:
        """What is wrong with its files, in sentences; empty when all are as they were published."""
        found = []
        listed = {**self.manifest["files"], **self.manifest["apart"]["files"]}
        for name, wanted in sorted(listed.items()):
            path = self.run / name
            try:
                if fingerprint(path) != wanted:
                    found.append(f"{printable(path)} is not what was published")
            except OSError as error:
                found.append(f"{printable(path)} cannot be read ({error.strerror})")
        return found


_AGAIN = "run `docrecall nightly` for that date again."


class Store:
    """A folder of nights."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def history(self) -> Path:
        """The history of all nights."""
        return self.root / HISTORY

    @property
    def staging(self) -> Path:
        """Where folders are written before they get their names: on the same file system, below no scanned folder."""
        return self.root / STAGING

    def folder(self, night: date) -> Path:
        """The folder of a night."""
        return self.root / NIGHTS / night.isoformat()

    def dates(self) -> list[date]:
        """The nights that are published, in order."""
        try:
            names = sorted(p.name for p in (self.root / NIGHTS).iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"{printable(self.root)} cannot be read ({error.strerror}).") from None
        found = [(n, _date_of(n)) for n in names]
        return [day for n, day in found if day is not None and self._manifest(n).is_file()]

    def _manifest(self, name: str) -> Path:
        return self.root / NIGHTS / name / MANIFEST

    def read(self, night: date) -> Night | None:
        """Open a night; None when it is not published, InputError when its manifest is not what was written."""
        folder = self.folder(night)
        if not (folder / MANIFEST).exists():
            return None
        manifest = read_sealed(folder / MANIFEST, SCHEMA_VERSION)
        found = str(manifest.get(RESULTS, ""))
        if manifest.get("date") != night.isoformat() or not _RUN.fullmatch(found.removeprefix(f"{RUNS}/")):
            raise InputError(f"{printable(folder / MANIFEST)} is not the manifest of {night}.")
        return Night(night, folder, manifest)

    def verdict(self, night: Night) -> dict[str, Any] | None:
        """What the gates said of a night as it is published now; None where they have not spoken."""
        if not (night.folder / VERDICT).exists():
            return None
        found = read_sealed(night.folder / VERDICT, SCHEMA_VERSION)
        return found if found["content"] == night.manifest["content"] else None

    @contextlib.contextmanager
    def locked(self, night: date) -> Iterator[None]:
        """Hold the lock of a night; LockedError when another run has it."""
        with self._lock(self.folder(night), wait=False, what=f"the night of {night}"):
            yield

    @contextlib.contextmanager
    def history_locked(self) -> Iterator[None]:
        """Hold the lock of the history, after those that ask for it at the same time."""
        with self._lock(self.staging, wait=True, what="the history"):
            for left in self.root.glob(f"{TEMPORARY}*"):
                left.unlink(missing_ok=True)  # of a run that died while it wrote the history
            yield

    @contextlib.contextmanager
    def _lock(self, folder: Path, *, wait: bool, what: str) -> Iterator[None]:
        with named(self.root):
            _make(folder)
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), self.root, what)
            yield
        finally:
            os.close(handle)

    def new_run(self, night: date) -> Path:
        """Where the next results of a night will stand: a name that no other run has had."""
        name = f"{datetime.now(UTC).strftime(_RUN_TIME)}-{secrets.token_hex(6)}"
        return self.folder(night) / RUNS / name

    def prepare(self, night: date) -> None:
        """Make the folders that a run needs, so that renaming finds them synced."""
        with named(self.root):
            _make(self.folder(night) / RUNS)
            _make(self.staging)

    def publish(self, night: date, manifest: dict[str, Any]) -> Night:
        """Replace the manifest of a night: before it readers see the old run, and from then on the new one."""
        with named(self.folder(night)):
            write_whole(self.folder(night) / MANIFEST, seal({"schema_version": SCHEMA_VERSION, **manifest}).encode())
        found = self.read(night)
        assert found is not None, "it was written just now, under the lock"
        return found

    def judge(self, night: Night, verdict: dict[str, Any]) -> None:
        """Write what the gates said of a night."""
        content = {"schema_version": SCHEMA_VERSION, "content": night.manifest["content"], **verdict}
        with named(night.folder):
            write_whole(night.folder / VERDICT, seal(content).encode())

    def tidy(self, night: date, keep_days: int, now: datetime | None = None) -> None:
        """Under the lock of a night, remove what dead runs left, and results that were replaced some days ago.

        A staging folder is that of a dead run when its lock is free. Results were replaced when the next ones were
        made, which the names of both tell; they stay as long as the manifest names them, or cannot be read.
        """
        with contextlib.suppress(OSError):
            sweep(self.staging)
        folder = self.folder(night)
        with named(folder):
            for left in folder.glob(f"{TEMPORARY}*"):
                left.unlink(missing_ok=True)
        try:
            published = self.read(night)
        except InputError:
            return
        oldest = ((now or datetime.now(UTC)) - timedelta(days=keep_days)).strftime(_RUN_TIME)
        runs = sorted(run for run in (folder / RUNS).iterdir() if _RUN.fullmatch(run.name))
        for run, after in zip(runs, [*runs[1:], *runs[-1:]], strict=True):  # the last, if it is not named, died
            if after.name < oldest and (published is None or run != published.run):
                shutil.rmtree(run, ignore_errors=True)


def _date_of(name: str) -> date | None:
    """The night that a folder is called by; None for any other name."""
    with contextlib.suppress(ValueError):
        return date.fromisoformat(name) if _DATE.fullmatch(name) else None
    return None


def _flock(handle: int, how: int, root: Path, what: str) -> None:
    busy = False
    with named(root):
        try:
            fcntl.flock(handle, how)
        except BlockingIOError:
            busy = True
    if busy:
        raise LockedError(f"another run works on {what} in {printable(root)}; wait until it is done.")


def _make(folder: Path) -> None:
    """Make a folder and those above it, each synced into the one that holds it. A link is no folder of the store."""
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        sync(path.parent)
    if folder.is_symlink():
        raise OutputError(f"{printable(folder)} is a link; a folder of the store was expected.")
