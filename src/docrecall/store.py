"""`out=DIR`: scores on disk, and reading them back."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from docrecall.contract.rules import none_rejected
from docrecall.errors import InputError
from docrecall.options import Options
from docrecall.report.structured import SCHEMA_VERSION, as_document
from docrecall.scores import ROWS_SCHEMA, Scores
from docrecall.show import printable
from docrecall.sources.files import FileRef
from docrecall.staging import MANIFEST, StagedFolder, as_json, digest, fingerprint, named
from docrecall.version import __version__

PER_QUERY = "per_query.parquet"
REJECTED = "rejected.parquet"
_FRAMES = ("summary", "accounting", "findings")
_OURS = {MANIFEST, PER_QUERY, REJECTED, "summary.json", *(f"{name}.parquet" for name in _FRAMES)}
_ROW_GROUP = 1 << 18
KEY = ["run_id", "query_id"]


class OutputFolder(StagedFolder):
    """A folder for scores. Batches are written aside as they come; `commit` puts everything in place."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, _OURS.__contains__)
        (self.staging / "parts").mkdir()
        self._parts: list[Path] = []

    def add(self, units: pl.DataFrame) -> None:
        """Write the scores of one batch aside."""
        part = self.staging / "parts" / f"{len(self._parts):06}.parquet"
        with named(self.target):
            units.sort(KEY).write_parquet(part, compression="lz4")
        self._parts.append(part)

    def finish_per_query(self) -> FileRef:
        """Bring the batches together, sorted by key, one row group at a time; the bytes do not depend on batches."""
        with named(self.target):
            path = self.files / PER_QUERY
            _merge(self._parts, path)
            shutil.rmtree(self.staging / "parts")
            return FileRef.of(str(path))

    def commit(self, scores: Scores) -> FileRef:
        """Write the rest, sync everything, and put it in place. Returns where `per_query.parquet` now stands."""
        with named(self.target):
            frames = {"summary": scores.summary(), "accounting": scores.accounting, "findings": scores.findings}
            for name, frame in frames.items():
                frame.write_parquet(self.files / f"{name}.parquet")
            rejected = scores.rejected.collect()
            if rejected.height:
                rejected.write_parquet(self.files / REJECTED)
            (self.files / "summary.json").write_text(as_json(as_document(scores)), encoding="utf-8")
            self.put(_manifest(scores))
            return FileRef.of(str(self.target / PER_QUERY))


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
        version, written = manifest["schema_version"], manifest.pop("sha256")
    except OSError as error:
        raise InputError(f"{printable(path)} cannot be read ({error.strerror}). Is this a folder of results?") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{printable(path)} is not a manifest of docrecall.") from None
    if version != SCHEMA_VERSION:
        raise InputError(f"{printable(path)} is of schema version {printable(version)}; {SCHEMA_VERSION} is read.")
    if written != digest(manifest):
        raise InputError(f"{printable(path)} was changed or damaged after it was written. Score again.")
    return dict(manifest)


def _checked(path: Path, wanted: dict[str, Any]) -> FileRef:
    """Take hold of a file of results, and refuse it when it is not the one that the manifest lists."""
    if not path.is_file():
        raise InputError(f"{printable(path)} is missing; the manifest of this folder lists it.")
    file = FileRef.of(str(path))
    if fingerprint(path) != wanted:
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
