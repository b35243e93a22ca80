"""The history: one row per night, run, slice and measure, made of what is published, and made again after each run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import date

import polars as pl

from docrecall.accounting import ACCOUNTING_SCHEMA
from docrecall.nightly.histograms import GROUP
from docrecall.nightly.store import ROWS, Night, Store
from docrecall.scores import Scores
from docrecall.staging import named, write_whole
from docrecall.summary import SUMMARY_SCHEMA, Intervals
from docrecall.version import __version__

_NUMBERS = [c for c in SUMMARY_SCHEMA if c not in ("run_id", "measure")]
ROWS_SCHEMA = pl.Schema(
    {
        "date": pl.Date(),
        **dict.fromkeys(GROUP, pl.String()),
        **{c: SUMMARY_SCHEMA[c] for c in _NUMBERS},
        **{c: t for c, t in ACCOUNTING_SCHEMA.items() if c != "run_id"},
    }
)
HISTORY_SCHEMA = pl.Schema(
    {
        **ROWS_SCHEMA,
        "label_digest": pl.String(),
        "options_digest": pl.String(),
        "content": pl.String(),
        "passed": pl.Boolean(),
        "labels_changed": pl.Boolean(),
        "options_changed": pl.Boolean(),
    }
)


def rows_of(night: date, scores: Scores, slices: Sequence[str]) -> pl.DataFrame:
    """The rows of one night: the summary, whole and by each slice column, with the account of the run beside it."""
    tables = []
    for by in (None, *slices):
        # Untested: the history keeps no p, as gates compare nights and not the slices of one.
        wanted = Intervals.of({**scores.intervals.plain(), "by": by})
        table = scores.summary() if by is None else scores.summarised(wanted, tested=False)
        value = pl.lit(None, pl.String) if by is None else pl.col(scores.tags.names([by])[0]).cast(pl.String)
        tables.append(
            table.select(
                pl.lit(night).alias("date"),
                "run_id",
                pl.lit(by, pl.String).alias("slice"),
                value.alias("slice_value"),
                "measure",
                *_NUMBERS,
            )
        )
    means = pl.concat(tables)
    return means.join(scores.accounting, on="run_id", how="left", maintain_order="left").select(*ROWS_SCHEMA)


def build(store: Store) -> pl.DataFrame:
    """The history of all nights, as HISTORY_SCHEMA, sorted by date; empty where none is published.

    `passed` is null for a night whose gates have not spoken. `labels_changed` and `options_changed` mark the nights
    that were scored with other labels or options than the published night before.
    """
    frames = [pl.DataFrame(schema=HISTORY_SCHEMA)]
    before: Night | None = None
    for day in store.dates():
        night = store.read(day)
        if night is None:
            continue
        verdict, manifest = store.verdict(night), night.manifest
        named_by = {c: manifest[c] for c in ("label_digest", "options_digest", "content")}
        columns = {**named_by, "passed": None if verdict is None else verdict["passed"], **_changes(before, night)}
        rows = night.frame(ROWS).with_columns(pl.lit(v, HISTORY_SCHEMA[c]).alias(c) for c, v in columns.items())
        frames.append(rows.select(*HISTORY_SCHEMA))
        before = night
    return pl.concat(frames)


def _changes(before: Night | None, night: Night) -> dict[str, bool]:
    def differs(name: str) -> bool:
        return before is not None and before.manifest[name] != night.manifest[name]

    return {"labels_changed": differs("label_digest"), "options_changed": differs("options_digest")}


def as_bytes(frame: pl.DataFrame) -> bytes:
    """The history as the Parquet file that is written."""
    out = io.BytesIO()
    frame.write_parquet(out, compression="zstd", metadata={"docrecall": __version__, "polars": pl.__version__})
    return out.getvalue()


def refresh(store: Store) -> pl.DataFrame:
    """Write the history again, unless it says the same already."""
    with store.history_locked(), named(store.history):
        frame = build(store)
        content = as_bytes(frame)
        if not store.history.exists() or store.history.read_bytes() != content:
            write_whole(store.history, content)
    return frame
