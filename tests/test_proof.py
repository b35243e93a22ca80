"""Whether a log is sorted by unit, told slice by slice."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from docrecall import proof
from docrecall.measures.grammar import parse_all
from docrecall.options import Options
from docrecall.proof import prove_sorted
from docrecall.score import open_tables, prepare
from tests.small import MEASURE, qrels, write

UNITS = [("q1", [1, 2, 3, 5]), ("q2", [2, 3]), ("q3", [1]), ("q4", [1, 2, 3, 4, 5, 6, 7])]


def rows(units: list[tuple[str, list[int]]]) -> pl.DataFrame:
    listed = [(query, rank, f"d{rank}") for query, ranks in units for rank in ranks]
    return pl.DataFrame(listed, schema=["query_id", "rank", "doc_id"], orient="row")


def layout(paths: list[Path]) -> proof.Layout:
    inputs = open_tables(paths, {"qrels": qrels()})
    return prove_sorted(prepare(inputs, parse_all(MEASURE), Options()).inputs.logs[0], Options())


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("n_files", [1, 3])
def test_slices_change_nothing(size: int, n_files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit that a slice or a file cuts is one unit, with its hits and its gaps."""
    monkeypatch.setattr(proof, "_SLICE", size)
    monkeypatch.setattr(proof, "_AT_ONCE", 1)
    log = rows(UNITS)
    step = -(-log.height // n_files)
    paths = [write(tmp_path / f"{n}.parquet", log.slice(n * step, step)) for n in range(n_files)]
    units = layout(paths).units
    assert units is not None
    expected = pl.DataFrame(
        {"query_id": ["q1", "q2", "q3", "q4"], "n_hits": [4, 2, 1, 7], "n_gaps": [1, 1, 0, 0]},
    )
    assert_frame_equal(units.with_columns(pl.col("n_hits", "n_gaps").cast(pl.Int64)), expected)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("units", "why"),
    [
        ([*UNITS, ("q1", [9])], "some units begin more than once"),
        ([("q1", [1, 2, 2])], "inside a unit a rank falls or repeats"),
        ([("q1", [1, 2]), ("q2", [3, 1])], "inside a unit a rank falls or repeats"),
        ([("q1", [1, 0])], "some ranks are out of range"),
    ],
)
def test_disorder_is_seen_across_slices(
    units: list[tuple[str, list[int]]], why: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it shows only beside the slice before."""
    monkeypatch.setattr(proof, "_SLICE", size)
    monkeypatch.setattr(proof, "_probe_scattered", lambda *_: False)
    found = layout([write(tmp_path / "hits.parquet", rows(units))])
    assert found.units is None
    assert found.why.startswith(why)


def test_units_in_any_order_are_sorted_by_unit(tmp_path: Path) -> None:
    """What counts is that each unit stands together."""
    found = layout([write(tmp_path / "hits.parquet", rows(UNITS[::-1]))])
    assert found.units is not None
    assert found.units["query_id"].to_list() == ["q4", "q3", "q2", "q1"]
