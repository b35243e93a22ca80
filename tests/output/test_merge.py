"""Sorted pieces on disk come together as one sorted stream, however the rows were cut."""

from __future__ import annotations

from pathlib import Path
from random import Random

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from docrecall import merge

KEY = ["run_id", "query_id"]


def pieces(folder: Path, frames: list[pl.DataFrame]) -> list[Path]:
    paths = []
    for number, frame in enumerate(frames):
        paths.append(folder / f"{number}.parquet")
        frame.sort(KEY).write_parquet(paths[-1])
    return paths


def rows(n: int) -> pl.DataFrame:
    """N units of three runs."""
    return pl.DataFrame({"run_id": [f"r{i % 3}" for i in range(n)], "query_id": [f"q{i:05}" for i in range(n)]})


@pytest.mark.parametrize("how", ["whole", "one after the other", "scattered", "with empty ones"])
def test_rows_come_in_order(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row stands once, by key; few are held at a time."""
    monkeypatch.setattr(merge, "_STRIDE", 8)
    monkeypatch.setattr(merge, "_AT_A_TIME", 2)
    whole = rows(500).sort(KEY)
    if how == "whole":
        cut = [whole]
    elif how == "one after the other":
        cut = [whole.slice(start, 70) for start in range(0, 500, 70)]
    else:
        by = pl.Series("by", [Random(i).randrange(7) for i in range(500)])
        cut = whole.with_columns(by).partition_by("by", include_key=False)
    if how == "with empty ones":
        cut = [whole.clear(), *cut, whole.clear()]

    frames = list(merge.in_order(pieces(tmp_path, cut), KEY))

    assert_frame_equal(pl.concat(frames), whole)
    assert len(frames) > 10
    assert max(frame.height for frame in frames) < 200


def test_nothing_is_one_empty_frame(tmp_path: Path) -> None:
    """A result without units has its columns all the same."""
    empty = rows(0).with_columns(pl.col(KEY).cast(pl.String))
    frames = list(merge.in_order(pieces(tmp_path, [empty, empty]), KEY))
    assert [frame.shape for frame in frames] == [(0, 2)]
