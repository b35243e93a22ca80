"""The folder of one run of one night: what `--out` writes, watched by the canary on its way."""

from __future__ import annotations

from pathlib import Path

from docrecall.kernel.batch import Batch
from docrecall.kernel.per_query import BatchScores
from docrecall.nightly.canary import Canary
from docrecall.store import OutputFolder


class NightFolder(OutputFolder):
    """Results of a night. home: where staging is made."""

    def __init__(self, target: Path, home: Path, canary: Canary) -> None:
        super().__init__(target, home=home)
        self._canary = canary

    def add(self, scores: BatchScores, batch: Batch | None = None) -> None:
        """Write the scores of a batch aside, and let the canary look at it."""
        self._canary.look(scores, batch)
        super().add(scores, batch)
