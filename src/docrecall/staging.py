"""A folder of files that a reader sees whole or not at all.

Everything is written into a hidden staging folder on the same file system, synced, and only then renamed: a new
folder as a whole, an existing one file by file with the manifest last. The manifest has the SHA-256 of each file, so
a reader can tell when files of two runs stand side by side, which can be seen for the blink of those renames.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import polars as pl

from docrecall.errors import InputError, OutputError
from docrecall.show import printable

MANIFEST = "manifest.json"
TEMPORARY = ".docrecall-"  # how the names begin of what is being written
_UNFINISHED = f"{TEMPORARY}unfinished-"
_ABOUT = "about.json"
_LOG = logging.getLogger("docrecall")


class StagedFolder:
    """A folder that will hold results. `with` it: on any failure the staging is removed and the target is as before.

    Files are written below `files`; `put` brings them into place.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        ours: Callable[[str], bool],
        about: Mapping[str, Any] | None = None,
        home: Path | None = None,
    ) -> None:
        """Check that the target may be written, and make the staging folder, before any work begins.

        ours: whether a file of this name is one that such a run writes; a folder with any other file is refused.
        about: what the run is about, as plain values. A killed run leaves its staging; a run about the same takes it
        over (`resumed`), one about something else starts anew. Without it nothing is taken over.
        home: an existing folder on the same file system to stage in; by default the target, or the folder above it.
        """
        self.target, self._ours = Path(path), ours
        self.resumed = False
        if "\0" in str(self.target):
            raise OutputError(f"no folder can be named {printable(self.target)}.")
        with named(self.target):
            exists = self.target.exists()
            if exists:
                self._refuse_foreign()
            home = home or (self.target if exists else _nearest_folder(self.target))
            sweep(home)
            left = None if about is None else _take_over(home / _name(self.target))
            self.staging, self._lock = left or _stage(home)
            self.files = self.staging / "files"
            try:
                if left is not None and about is not None:
                    self._resume(about)
                shutil.rmtree(self.files, ignore_errors=True)
                self.files.mkdir()
            except OSError:
                self.__exit__(OSError)
                raise

    def _resume(self, about: Mapping[str, Any]) -> None:
        """Go on with what an earlier run left here, if it was about the same; else say what differs, and clear it."""
        note, wanted = self.staging / _ABOUT, json.loads(json.dumps(about))
        found = None
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(note.read_text(encoding="utf-8"))
        self.resumed = found == wanted
        if self.resumed:
            return
        if isinstance(found, dict):
            other = [name for name in wanted if found.get(name) != wanted[name]]
            _LOG.warning(
                "docrecall: an unfinished run is in the way of %s, with other %s; starting anew.",
                printable(self.target),
                " and ".join(other),
            )
        for left in self.staging.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        note.write_text(json.dumps(wanted), encoding="utf-8")

    def _refuse_foreign(self) -> None:
        if not self.target.is_dir():
            raise OutputError(f"{printable(self.target)} is a file; a folder was expected.")
        found = [p for p in self.target.iterdir() if not p.name.startswith(TEMPORARY)]
        names, ours = {p.name for p in found}, {p.name for p in found if self._ours(p.name) and p.is_file()}
        if names and (MANIFEST not in names or names - ours):
            strange = sorted(names - ours) or sorted(names)
            raise OutputError(
                f"{printable(self.target)} holds other files ({printable(', '.join(strange[:3]))}). "
                "Name a new folder, an empty one, or one with earlier results of docrecall."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # What a user interrupts may be gone on with, as what is killed; after a failure it would fail again.
        if kind is not KeyboardInterrupt or not (self.staging / _ABOUT).exists():
            shutil.rmtree(self.staging, ignore_errors=True)
        os.close(self._lock)

    def put(self, manifest: dict[str, Any]) -> None:
        """Add the manifest, with the fingerprints of all files, sync everything, and put it in place."""
        names = sorted(p.name for p in self.files.iterdir())
        manifest = manifest | {"files": {name: fingerprint(self.files / name) for name in names}}
        (self.files / MANIFEST).write_text(seal(manifest), encoding="utf-8")
        for name in [*names, MANIFEST]:
            sync(self.files / name)
        sync(self.files)
        if not self.target.exists():
            self.target.parent.mkdir(parents=True, exist_ok=True)
            try:
                self.files.rename(self.target)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            else:
                sync(self.target.parent)
                return
        self._refuse_foreign()  # again: it may be there only since another run ended
        self._replace(names)

    def _replace(self, names: list[str]) -> None:
        folder = os.open(self.target, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # two runs that end at once put their files in place one after the other
            for name in [*names, MANIFEST]:
                (self.files / name).replace(self.target / name)
            for old in self.target.iterdir():
                if self._ours(old.name) and old.name not in (*names, MANIFEST):
                    old.unlink(missing_ok=True)
            os.fsync(folder)
        finally:
            os.close(folder)


def write_whole(path: Path, content: bytes) -> None:
    """Put a small file in place: a temporary name beside it, synced, renamed, and the folder synced.

    The file can be read by all, as one that a plain program writes; a reader sees the old content or the new.
    """
    handle, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync(path.parent)


def seal(content: dict[str, Any]) -> str:
    """JSON with the SHA-256 of what it says, so that a reader can tell when a letter of it changed."""
    return as_json(content | {"sha256": digest(content)})


def read_sealed(path: Path, version: int) -> dict[str, Any]:
    """Read what `seal` made, without its SHA-256. InputError when it is not there, or not to the last letter."""
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text)
        schema_version, _ = found["schema_version"], found.pop("sha256")
    except OSError as error:
        raise InputError(f"{printable(path)} cannot be read ({error.strerror}). Is this a folder of results?") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{printable(path)} is not a manifest of docrecall.") from None
    if schema_version != version:
        raise InputError(f"{printable(path)} is of schema version {printable(schema_version)}; {version} is read.")
    if text != seal(found):  # to the letter: 1e-05 and 1E-05 would be the same number
        raise InputError(f"{printable(path)} was changed or damaged after it was written. Score again.")
    return dict(found)


def digest(manifest: dict[str, Any]) -> str:
    """The SHA-256 of a manifest."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def fingerprint(path: Path) -> dict[str, Any]:
    """The SHA-256 and the size of a file."""
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": path.stat().st_size}


def as_json(value: dict[str, Any]) -> str:
    """JSON for people to read too."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _nearest_folder(path: Path) -> Path:
    """The folder above a path that exists: staging there is on the same file system as the target will be."""
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    return folder


def _stage(home: Path) -> tuple[Path, int]:
    """Make a staging folder and lock it. The lock is on the folder itself, so that none is ever without one."""
    while True:
        staging = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=home))
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(staging, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if staging.exists():
                return staging, lock
            os.close(lock)
        # The sweep of another run came between and took the folder for a dead one: make another.


def _name(target: Path) -> str:
    """The staging that runs for one target can take over from one another."""
    return _UNFINISHED + hashlib.sha256(os.fsencode(target.absolute())).hexdigest()[:16]


def _take_over(staging: Path) -> tuple[Path, int] | None:
    """Lock a staging folder of a known name, made where there is none; None while another run works in it."""
    while True:
        with contextlib.suppress(FileExistsError):
            staging.mkdir()
        try:
            lock = os.open(staging, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        if staging.exists() and os.fstat(lock).st_ino == staging.stat().st_ino:
            return staging, lock
        os.close(lock)  # its owner ended, and removed it, in between


def sweep(folder: Path) -> None:
    """Remove what killed runs left: the kernel drops a dead run's lock, so a lock that is free has no owner.

    What the next run for its target can go on with stays.
    """
    for stale in folder.glob(f"{TEMPORARY}*"):
        if stale.name.startswith(_UNFINISHED):
            continue
        with contextlib.suppress(OSError):
            lock = os.open(stale, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(stale, ignore_errors=True)
            finally:
                os.close(lock)


@contextlib.contextmanager
def named(target: Path) -> Iterator[None]:
    """Turn failures to write into an OutputError that names the target; the engine words a full disk in its own way."""
    try:
        yield
    except (OutputError, InputError):
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        full = "No space left" in str(error)
        reason = "no space left on the device" if full else getattr(error, "strerror", None) or type(error).__name__
        raise OutputError(
            f"results were not written to {printable(target)}: {reason}. What stood there is as it was."
        ) from None
