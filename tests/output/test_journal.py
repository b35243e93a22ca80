"""What a killed run left is taken over as far as it is whole, and each value is written once while batches follow."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

from docrecall import journal, rowgroups
from docrecall.journal import DECIDED, PER_QUERY, Columns, Journal
from docrecall.kernel.batch import Batch
from docrecall.kernel.per_query import BatchScores

COLUMNS = Columns(["run_id", "query_id"], ["doc_hit@1"], [])
N, SIZE = 100, 7


def units(first: int, last: int) -> pl.DataFrame:
    """Units of these numbers, as the kernel gives them."""
    numbers = range(first, last)
    frame = pl.DataFrame({"run_id": "r", "query_id": [f"q{n:03}" for n in numbers], "status": "scored"})
    return frame.with_columns(
        n_hits=pl.lit(3, pl.Int64),
        n_judged=pl.lit(1, pl.Int64),
        weight=pl.lit(1.0),
        answered=pl.lit(True),
        gold=pl.lit(True),
        ceiling=pl.lit(None, pl.Float64),
    ).with_columns(pl.Series("doc_hit@1", [float(n % 3 == 0) for n in numbers], dtype=pl.Float64))


def batches(scattered: bool) -> list[pl.DataFrame]:
    cut = [units(first, min(first + SIZE, N)) for first in range(0, N, SIZE)]
    return cut[3:6] + cut[:3] + cut[6:] if scattered else cut


def add(to: Journal, frame: pl.DataFrame) -> None:
    counts = dict.fromkeys(("outside", "n_matches", "labelled_hit_units", "hit_units", "mismatched_units"), 0)
    scores = BatchScores(units=frame, gold_chunks=pl.DataFrame(), findings=[], met=True, **counts)
    to.add(scores, Batch(frame.select("run_id", "query_id"), pl.LazyFrame(), read=3 * frame.height))


def begun(folder: Path) -> tuple[Journal, list[pl.DataFrame]]:
    """A journal, and the units of the batches that it took over."""
    found = Journal(folder / "batches", COLUMNS)
    return found, [scores.units for _, scores in found.again()]


def run(folder: Path, scattered: bool, until: int | None = None) -> int:
    """Go on with a run, up to a batch; give how many were there."""
    folder.mkdir(exist_ok=True)
    to, done = begun(folder)
    given = batches(scattered)
    for taken, frame in zip(done, given, strict=False):
        assert_frame_equal(taken, frame.drop(COLUMNS.measures))
    for frame in given[len(done) : until]:
        add(to, frame)
    if until is None:
        shutil.rmtree(folder / "files", ignore_errors=True)
        (folder / "files").mkdir()
        to.finish(folder / "files")
    to.stop()
    return len(done)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "files").iterdir()}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowgroups, "MOST", 16)


@pytest.mark.parametrize("beside", [True, False], ids=["values beside batches", "batches scored again"])
@pytest.mark.parametrize("scattered", [False, True], ids=["in order", "scattered"])
def test_any_batch_may_be_the_last(
    scattered: bool, beside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes after a kill behind any batch; what is not in a row group is lost only where it is not kept."""
    monkeypatch.setattr(journal, "_FEW", 0 if beside else 100)
    run(tmp_path / "clean", scattered=scattered)
    whole = pl.read_parquet(tmp_path / "clean" / "files" / PER_QUERY)
    assert_frame_equal(whole, COLUMNS.of(units(0, N))[PER_QUERY])
    assert pq.read_metadata(tmp_path / "clean" / "files" / PER_QUERY).num_row_groups == -(-N // 16)
    pq.read_table(tmp_path / "clean" / "files" / DECIDED, page_checksum_verification=True)

    for until in range(1, len(batches(scattered)) + 1):
        folder = tmp_path / f"{until}"
        run(folder, scattered, until)
        done = run(folder, scattered)
        assert content(folder) == content(tmp_path / "clean")
        if beside or (scattered and until > 3):  # from the first on that does not follow, each is kept by itself
            assert done == until
        else:
            assert until - 3 <= done <= until


@pytest.mark.parametrize("lost", [None, "rows", "batches"])
@pytest.mark.parametrize("scattered", [False, True], ids=["in order", "scattered"])
def test_killed_while_it_ends(scattered: bool, lost: str | None, tmp_path: Path) -> None:
    """A run that died after its results were put in place goes on, and never writes into what was published."""
    folder, published = tmp_path / "run", tmp_path / "published"
    run(folder, scattered)
    (folder / "files").rename(published)
    before = {path.name: path.read_bytes() for path in published.iterdir()}
    if lost == "rows":
        for record in (folder / "rows").glob("*.json"):
            record.unlink()
    elif lost == "batches":
        shutil.rmtree(folder / "batches" / "000000")

    done = run(folder, scattered)

    assert lost or done == len(batches(scattered))
    assert content(folder) == before
    assert {path.name: path.read_bytes() for path in published.iterdir()} == before
    assert not any(path.samefile(published / path.name) for path in (folder / "files").iterdir())


@pytest.mark.parametrize("damage", ["row group", "record", "values", "batch"])
def test_what_is_damaged_is_scored_again(damage: str, tmp_path: Path) -> None:
    """A page that the disk lost ends what is taken over; nothing that is not whole comes into results."""
    run(tmp_path / "clean", scattered=False)
    folder = tmp_path / "run"
    run(folder, scattered=False, until=12)
    damaged = {
        "row group": folder / "rows" / PER_QUERY,
        "record": folder / "rows" / "000002.json",
        "values": folder / "batches" / "000011" / "values.arrow",
        "batch": folder / "batches" / "000005" / "units.arrow",
    }[damage]
    whole = damaged.read_bytes()
    middle = len(whole) // 2
    damaged.write_bytes(whole[:middle] + bytes(9) + whole[middle + 9 :] if damage != "record" else b"{")

    assert run(folder, scattered=False) < 12
    assert content(folder) == content(tmp_path / "clean")


def test_a_file_of_row_groups_is_that_of_one_writer(tmp_path: Path) -> None:
    """Row groups that were encoded for their places, and joined footers, are what one writer makes, to the byte."""
    rows = units(0, N).select("query_id", "doc_hit@1")
    groups = rowgroups.RowGroups(tmp_path)
    for first in range(0, N, SIZE):
        groups.add({"a.parquet": rows.slice(first, SIZE)})
    path = groups.close()["a.parquet"]

    arrow = rows.to_arrow()
    with pq.ParquetWriter(tmp_path / "one", arrow.schema, compression="zstd", write_page_checksum=True) as writer:
        for first in range(0, N, 16):
            writer.write_table(rows.slice(first, 16).rechunk().to_arrow())
    assert path.read_bytes() == (tmp_path / "one").read_bytes()
