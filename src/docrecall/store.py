"""`out=DIR`: results on disk, of which a reader sees all or nothing.

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
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from docrecall.contract.rules import none_rejected
from docrecall.errors import InputError, OutputError
from docrecall.options import Options
from docrecall.report.structured import SCHEMA_VERSION, as_document
from docrecall.scores import ROWS_SCHEMA, Scores
from docrecall.show import printable
from docrecall.sources.files import FileRef
from docrecall.version import __version__

MANIFEST = "manifest.json"
PER_QUERY = "per_query.parquet"
REJECTED = "rejected.parquet"
_FRAMES = ("summary", "accounting", "findings")
_OURS = {MANIFEST, PER_QUERY, REJECTED, "summary.json", *(f"{name}.parquet" for name in _FRAMES)}
_STAGING = ".docrecall-"
_ROW_GROUP = 1 << 18
KEY = ["run_id", "query_id"]


class OutputFolder:
    """A folder that will hold results. `with` it: on any failure the staging is removed and the target is as before."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Check that the target may be written, and make the staging folder, before any work begins."""
        self.target = Path(path)
        if "\0" in str(self.target):
            raise OutputError(f"no folder can be named {printable(self.target)}.")
        with _named(self.target):
            self._exists = self.target.exists()
            if self._exists:
                self._refuse_foreign()
            home = self.target if self._exists else _nearest_folder(self.target)
            _sweep(home)
            self.staging, self._lock = _stage(home)
            self.files = self.staging / "files"
            self.files.mkdir()
            (self.staging / "parts").mkdir()
        self._parts: list[Path] = []

    def _refuse_foreign(self) -> None:
        if not self.target.is_dir():
            raise OutputError(f"{printable(self.target)} is a file; a folder was expected.")
        found = [p for p in self.target.iterdir() if not p.name.startswith(_STAGING)]
        names, ours = {p.name for p in found}, {p.name for p in found if p.name in _OURS and p.is_file()}
        if names and (MANIFEST not in names or names - ours):
            strange = sorted(names - ours) or sorted(names)
            raise OutputError(
                f"{printable(self.target)} holds other files ({printable(', '.join(strange[:3]))}). "
                "Name a new folder, an empty one, or one with earlier results of docrecall."
            )

    def __enter__(self) -> OutputFolder:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)
        os.close(self._lock)

    def add(self, units: pl.DataFrame) -> None:
        """Write the scores of one batch aside."""
        part = self.staging / "parts" / f"{len(self._parts):06}.parquet"
        with _named(self.target):
            units.sort(KEY).write_parquet(part, compression="lz4")
        self._parts.append(part)

    def finish_per_query(self) -> FileRef:
        """Bring the batches together, sorted by key, one row group at a time; the bytes do not depend on batches."""
        with _named(self.target):
            path = self.files / PER_QUERY
            _merge(self._parts, path)
            shutil.rmtree(self.staging / "parts")
            return FileRef.of(str(path))

    def commit(self, scores: Scores) -> FileRef:
        """Write the rest, sync everything, and put it in place. Returns where `per_query.parquet` now stands."""
        with _named(self.target):
            frames = {"summary": scores.summary(), "accounting": scores.accounting, "findings": scores.findings}
            for name, frame in frames.items():
                frame.write_parquet(self.files / f"{name}.parquet")
            rejected = scores.rejected.collect()
            if rejected.height:
                rejected.write_parquet(self.files / REJECTED)
            (self.files / "summary.json").write_text(_json(as_document(scores)), encoding="utf-8")
            names = sorted(p.name for p in self.files.iterdir())
            manifest = _manifest(scores) | {"files": {name: _fingerprint(self.files / name) for name in names}}
            (self.files / MANIFEST).write_text(_json(manifest | {"sha256": _digest(manifest)}), encoding="utf-8")
            for name in [*names, MANIFEST]:
                _sync(self.files / name)
            _sync(self.files)
            self._put(names)
            return FileRef.of(str(self.target / PER_QUERY))

    def _put(self, names: list[str]) -> None:
        if not self.target.exists():
            self.target.parent.mkdir(parents=True, exist_ok=True)
            try:
                self.files.rename(self.target)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            else:
                _sync(self.target.parent)
                return
        self._refuse_foreign()  # again: it may be there only since another run ended
        self._replace(names)

    def _replace(self, names: list[str]) -> None:
        folder = os.open(self.target, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # two runs that end at once put their files in place one after the other
            for name in [*names, MANIFEST]:
                (self.files / name).replace(self.target / name)
            for name in _OURS - {*names, MANIFEST}:
                (self.target / name).unlink(missing_ok=True)
            os.fsync(folder)
        finally:
            os.close(folder)


def load(path: str | os.PathLike[str]) -> Scores:
    """Read back what `out=DIR` or `--out DIR` wrote. Hashes of all files are checked; `per_query` stays on disk.

    Raises InputError when the folder is not there, is not of docrecall, or holds a file that is not the one written;
    so does reading `per_query` once another run has replaced it.
    """
    folder = Path(path)
    manifest = _read_manifest(folder / MANIFEST)
    files = {name: _checked(folder / name, wanted) for name, wanted in manifest["files"].items()}
    frames = {name: _read(files[f"{name}.parquet"]) for name in _FRAMES}
    return Scores(
        measures=tuple(manifest["measures"]),
        accounting=frames["accounting"],
        findings=frames["findings"],
        rows=pl.DataFrame(manifest["rows"], schema=ROWS_SCHEMA),
        rejected=_read(files[REJECTED]).lazy() if REJECTED in files else none_rejected(),
        options=Options(**manifest["options"]),
        inputs=manifest["inputs"],
        _per_query=files[PER_QUERY],
        _summary=frames["summary"],
        _match=None,
    )


def _read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest that is whole: what this version wrote, to the last letter."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version, digest = manifest["schema_version"], manifest.pop("sha256")
    except OSError as error:
        raise InputError(f"{printable(path)} cannot be read ({error.strerror}). Is this a folder of results?") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{printable(path)} is not a manifest of docrecall.") from None
    if version != SCHEMA_VERSION:
        raise InputError(f"{printable(path)} is of schema version {printable(version)}; {SCHEMA_VERSION} is read.")
    if digest != _digest(manifest):
        raise InputError(f"{printable(path)} was changed or damaged after it was written. Score again.")
    return dict(manifest)


def _checked(path: Path, wanted: dict[str, Any]) -> FileRef:
    """Take hold of a file of results, and refuse it when it is not the one that the manifest lists."""
    if not path.is_file():
        raise InputError(f"{printable(path)} is missing; the manifest of this folder lists it.")
    file = FileRef.of(str(path))
    if _fingerprint(path) != wanted:
        raise InputError(
            f"{printable(path)} is not the file that this manifest lists: it was changed, "
            "damaged, or is of another run that is being put in place. Score again if it stays so."
        )
    return file


def _read(file: FileRef) -> pl.DataFrame:
    with file.open() as handle:
        return pl.read_parquet(handle, glob=False)


def _manifest(scores: Scores) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "docrecall": __version__,
        "polars": pl.__version__,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "options": asdict(scores.options),
        "options_digest": scores.options.digest,
        "measures": list(scores.measures),
        "inputs": scores.inputs,
        "rows": scores.rows.to_dicts(),
    }


def _merge(parts: list[Path], path: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - a third of a second that runs without `out` need not pay

    scan = pl.scan_parquet(parts, glob=False)
    keys = scan.select(KEY).collect()
    ordered = keys.sort(KEY)
    in_order = keys.equals(ordered)
    schema = scan.head(0).collect().to_arrow().schema
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for start in range(0, keys.height, _ROW_GROUP):
            if in_order:
                group = scan.slice(start, _ROW_GROUP).collect()
            else:
                wanted = ordered.slice(start, _ROW_GROUP)
                # Every key stands once, so a row group is exactly the rows between its first and last key.
                group = scan.filter(_between(wanted.row(0), wanted.row(-1))).collect().sort(KEY)
            writer.write_table(group.to_arrow(), row_group_size=_ROW_GROUP)


def _between(low: tuple[str, Any], high: tuple[str, Any]) -> pl.Expr:
    run, query = pl.col(KEY[0]), pl.col(KEY[1])
    from_low: pl.Expr = (run > low[0]) | ((run == low[0]) & (query >= low[1]))
    to_high: pl.Expr = (run < high[0]) | ((run == high[0]) & (query <= high[1]))
    return from_low & to_high


def _digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _fingerprint(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": path.stat().st_size}


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _sync(path: Path) -> None:
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
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=home))
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(staging, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if staging.exists():
                return staging, lock
            os.close(lock)
        # The sweep of another run came between and took the folder for a dead one: make another.


def _sweep(folder: Path) -> None:
    """Remove what killed runs left: the kernel drops a dead run's lock, so a lock that is free has no owner."""
    for stale in folder.glob(f"{_STAGING}*"):
        with contextlib.suppress(OSError):
            lock = os.open(stale, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(stale, ignore_errors=True)
            finally:
                os.close(lock)


@contextlib.contextmanager
def _named(target: Path) -> Iterator[None]:
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
