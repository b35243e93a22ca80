"""The folder of one run of one night: what `--out` writes, and what nights are added up and judged from."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from docrecall.kernel.batch import Batch
from docrecall.kernel.per_query import BatchScores
from docrecall.nightly.canary import Canary
from docrecall.nightly.histograms import count_values, sample_values, scored_units
from docrecall.sources.files import FileRef
from docrecall.staging import named
from docrecall.store import OutputFolder

HISTOGRAMS, SAMPLES = "histograms.parquet", "samples.parquet"


class NightFolder(OutputFolder):
    """Results of a night. canary: looks at every batch on its way to disk."""

    def __init__(self, target: Path, home: Path, canary: Canary, *, by_query: bool) -> None:
        """by_query: whether means are taken inside queries first. home: where staging is made."""
        super().__init__(target, home=home)
        self._canary, self._by_query = canary, by_query

    def add(self, scores: BatchScores, batch: Batch | None = None) -> None:
        """Write the scores of a batch aside, and let the canary look at it."""
        self._canary.look(scores, batch)
        super().add(scores, batch)

    def finish_units(self, key: list[str], measures: list[str]) -> tuple[FileRef, FileRef]:
        """Bring the batches together, and count their values."""
        written = super().finish_units(key, measures)
        by_request = "request_id" in key
        rows = scored_units(self.scan_parts(), measures, by_query=self._by_query and by_request)
        frames: dict[str, pl.DataFrame] = {
            HISTOGRAMS: count_values(rows, measures),
            SAMPLES: sample_values(rows, measures, clustered=by_request and not self._by_query),
        }
        with named(self.target):
            for name, frame in frames.items():
                frame.write_parquet(self.files / name)
        return written
