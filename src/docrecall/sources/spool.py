"""Tables that were made and not found: kept in memory while they are small, else in temporary Parquet files."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

import polars as pl

from docrecall.errors import OutputError


class Folder:
    """A temporary folder that lives as long as this value does."""

    def __init__(self) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix="docrecall-"))
        except OSError as error:
            raise no_room(error) from None
        # Not TemporaryDirectory, which warns when it is let go of in any other way than by `with`.
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Spool:
    """Frames of one schema, one after the other. `add` may be called from several threads, once for each number."""

    def __init__(self, *, small: bool) -> None:
        """small: whether what comes fits memory for certain."""
        self._folder = None if small else Folder()
        self._frames: dict[int, pl.DataFrame | Path] = {}
        self.heights: dict[int, int] = {}
        self.nulls: dict[str, int] = {}
        self.schema = pl.Schema()

    def add(self, number: int, frame: pl.DataFrame) -> None:
        """Keep a frame as the `number`th of the table."""
        self.heights[number] = frame.height
        if self._folder is None:
            self._frames[number] = frame
            return
        path = self._folder.path / f"{number:06}.parquet"
        try:
            frame.write_parquet(path, compression="lz4", statistics=False)
        except (OSError, pl.exceptions.ComputeError) as error:  # a full disk is either
            raise no_room(error) from None
        self._frames[number] = path

    def note(self, frame: pl.DataFrame) -> None:
        """Add up what is told of a table as a whole; called from one thread, for every frame."""
        self.schema = self.schema or frame.schema
        for column, n in zip(frame.columns, frame.null_count().row(0), strict=True):
            self.nulls[column] = self.nulls.get(column, 0) + n

    @property
    def n_rows(self) -> int:
        """Rows of all frames."""
        return sum(self.heights.values())

    def scan(self) -> pl.LazyFrame:
        """Give the table, frames in the order of their numbers."""
        frames = [self._frames[n] for n in sorted(self._frames) if self.heights[n]]
        in_memory = [f for f in frames if isinstance(f, pl.DataFrame)]
        if in_memory:
            return pl.concat(in_memory).lazy()
        paths = [f for f in frames if isinstance(f, Path)]
        return (
            pl.scan_parquet(paths, glob=False, hive_partitioning=False) if paths else pl.LazyFrame(schema=self.schema)
        )


def no_room(error: Exception) -> OutputError:
    """The error for temporary files that cannot be written."""
    place = tempfile.tempdir or "any folder that is tried"
    why = "No space left on device" if "No space left" in str(error) else getattr(error, "strerror", None)
    return OutputError(
        f"no room for temporary files in {place} ({why or type(error).__name__}). "
        "Set TMPDIR to a folder with more space."
    )
