"""Units counted by what became of them: batches of units in, one small frame out, of which accounts are made."""

from __future__ import annotations

import polars as pl

_TOLD = ("run_id", "status", "answered", "gold")
TALLY_SCHEMA = pl.Schema(
    {
        "run_id": pl.String(),
        "status": pl.String(),
        "answered": pl.Boolean(),
        "gold": pl.Boolean(),
        "has_hits": pl.Boolean(),
        "n": pl.Int64(),
    }
)
_MOST_WAITING = 1 << 19  # units, some tens of bytes each: counting many at a time costs next to nothing


class Tally:
    """Adds up units as batches of them come in."""

    def __init__(self) -> None:
        self._counted = TALLY_SCHEMA.to_frame()
        self._waiting: list[pl.DataFrame] = []

    def add(self, units: pl.DataFrame) -> None:
        """Add units: run_id, status, answered, gold, n_hits."""
        self._waiting.append(units.select(*_TOLD, "n_hits"))
        if sum(map(len, self._waiting)) > _MOST_WAITING:
            self.table()

    def table(self) -> pl.DataFrame:
        """How many units (n) agree in run_id, status, answered, gold and has_hits; in no order."""
        if self._waiting:
            ones = pl.concat(self._waiting).select(*_TOLD, has_hits=pl.col("n_hits") > 0, n=pl.lit(1, pl.Int64))
            self._counted = pl.concat([self._counted, ones]).group_by(*_TOLD, "has_hits").agg(pl.col("n").sum())
            self._waiting = []
        return self._counted
