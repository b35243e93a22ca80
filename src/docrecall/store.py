"""`out=DIR`: scores on disk, and reading them back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from docrecall.contract.rules import none_rejected
from docrecall.errors import InputError
from docrecall.fingerprints import VERSIONS
from docrecall.journal import DECIDED, PER_QUERY, Columns, Journal
from docrecall.kernel.batch import Batch
from docrecall.kernel.per_query import BatchScores
from docrecall.options import Options
from docrecall.report.structured import SCHEMA_VERSION, as_document
from docrecall.scores import ROWS_SCHEMA, Scores
from docrecall.show import printable
from docrecall.slices import Tags, open_tags
from docrecall.sources.files import FileRef
from docrecall.sources.mapping import parse_mapping
from docrecall.staging import MANIFEST, StagedFolder, as_json, fingerprint, named, read_sealed
from docrecall.summary import Intervals

REJECTED = "rejected.parquet"
SLICES = "slices.parquet"
_FRAMES = ("summary", "accounting", "findings", "decisions")
_OURS = {MANIFEST, PER_QUERY, DECIDED, REJECTED, SLICES, "summary.json", *(f"{name}.parquet" for name in _FRAMES)}
RESULTS = "results"  # the key of a manifest that stands for results in a folder below


class OutputFolder(StagedFolder):
    """A folder for scores. Batches are written aside as they come; `commit` puts everything in place."""

    _journal: Journal | None = None

    def __init__(
        self, path: str | os.PathLike[str], about: Mapping[str, Any] | None = None, home: Path | None = None
    ) -> None:
        """about, home: see `StagedFolder`."""
        super().__init__(path, _OURS.__contains__, about, home)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._journal is not None:
            self._journal.stop()
        super().__exit__(kind)

    def again(self, planned: list[int], columns: Columns) -> tuple[list[int], Iterator[tuple[Batch, BatchScores]]]:
        """Give the sizes of batches to work with, and those batches that a killed run had done before this one.

        planned: the sizes for each log; those of the earlier run stand, or its batches would not be parts of this one.
        columns: what of units is written.
        """
        with named(self.target):
            self._journal = Journal(self.staging / "batches", columns)
            return self._journal.sizes(planned), self._taken_over(self._journal)

    def _taken_over(self, journal: Journal) -> Iterator[tuple[Batch, BatchScores]]:
        with named(self.target):
            yield from journal.again()

    def add(self, scores: BatchScores, batch: Batch | None = None) -> None:
        """Write the scores of a batch. batch: where it came from, if a later run may go on after it."""
        assert self._journal is not None
        with named(self.target):
            self._journal.add(scores, batch)

    def finish_units(self) -> tuple[FileRef, FileRef]:
        """Bring the batches together, sorted by key. Returns where scores and decisions stand for now."""
        assert self._journal is not None
        with named(self.target):
            paths = self._journal.finish(self.files)
            return FileRef.of(str(paths[PER_QUERY])), FileRef.of(str(paths[DECIDED]))

    def commit(self, scores: Scores) -> Scores:
        """Write the rest, sync everything, and put it in place. Returns the scores, which now stand there."""
        with named(self.target):
            frames = {
                "summary": scores.summary(),
                "accounting": scores.accounting,
                "findings": scores.findings,
                "decisions": scores.decisions,
            }
            if scores.slices is not None:
                frames["slices"] = scores.slices
            for name, frame in frames.items():
                frame.write_parquet(self.files / f"{name}.parquet")
            rejected = scores.rejected.collect()
            if rejected.height:
                rejected.write_parquet(self.files / REJECTED)
            (self.files / "summary.json").write_text(as_json(as_document(scores)), encoding="utf-8")
            self.put(_manifest(scores))
            return replace(
                scores,
                _per_query=FileRef.of(str(self.target / PER_QUERY)),
                _decided=FileRef.of(str(self.target / DECIDED)),
                _told=frames["summary"],
                _told_slices=scores.slices,
            )


def load(
    path: str | os.PathLike[str], *, queries: Any = None, requests: Any = None, map: Any = None, read: Any = None
) -> Scores:
    """Read back what `out=DIR`, `--out DIR` or a night of `docrecall nightly` wrote.

    Hashes of all files are checked; `per_query` stays on disk.

    queries, requests: the tables whose columns part the means (`summary(by=..)`) and tell clusters; results do not keep
    them. Given, read and mapped as for `score`, and needed for nothing else.

    Raises InputError when the folder is not there, is not of docrecall, or holds a file that is not the one written;
    so does reading `per_query` once another run has replaced it.
    """
    folder = Path(path)
    manifest = read_sealed(folder / MANIFEST, SCHEMA_VERSION)
    if RESULTS in manifest:
        folder /= _below(folder, manifest[RESULTS])
        manifest = read_sealed(folder / MANIFEST, SCHEMA_VERSION)
    if DECIDED not in manifest["files"] or not {"labels", "intervals"} <= manifest.keys():
        raise InputError(f"{printable(folder)} was written by an earlier version of docrecall. Score again.")
    files = {name: _checked(folder / name, wanted) for name, wanted in manifest["files"].items()}
    frames = {name: _read(files[f"{name}.parquet"]) for name in _FRAMES}
    options = Options(**manifest["options"])
    with files[PER_QUERY].open() as file:
        key = pl.read_parquet_schema(file)
    written = [e["file"] for e in manifest["inputs"] if e["table"] in ("queries", "requests") and e["file"]]
    given = {"queries": queries, "requests": requests}
    tags = open_tags(given, parse_mapping(map, read), pl.Schema(key), options)
    return Scores(
        measures=tuple(manifest["measures"]),
        accounting=frames["accounting"],
        findings=frames["findings"],
        rows=pl.DataFrame(manifest["rows"], schema=ROWS_SCHEMA),
        decisions=frames["decisions"],
        rejected=_read(files[REJECTED]).lazy() if REJECTED in files else none_rejected(),
        options=options,
        inputs=manifest["inputs"],
        versions={name: manifest[name] for name in VERSIONS},
        _per_query=files[PER_QUERY],
        _decided=files[DECIDED],
        _tags=Tags.of(tags, options, written),
        intervals=Intervals.of(manifest["intervals"]),
        _told=frames["summary"],
        _told_slices=_read(files[SLICES]) if SLICES in files else None,
        _digests=lambda: manifest["labels"],
        _match=None,
        _find=None,
        _again=None,
    )


def _below(folder: Path, named: object) -> Path:
    """What a night of the nightly job names as the folder that holds its results, which is one below its own."""
    if not isinstance(named, str) or not re.fullmatch(r"runs/[A-Za-z0-9-]{1,64}", named):
        raise InputError(f"{printable(folder)}: its manifest names no folder of results below it.")
    return Path(named)


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
        **VERSIONS,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "options": asdict(scores.options),
        "options_digest": scores.options.digest,
        "measures": list(scores.measures),
        "intervals": scores.intervals.plain(),
        "labels": scores.labels,
        "inputs": scores.inputs,
        "rows": scores.rows.to_dicts(),
    }
