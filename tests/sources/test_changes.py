"""Files that are damaged, or change while they are read: exit code 4 and never a number."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import docrecall as dr
from docrecall.measures.grammar import parse_all
from docrecall.score import open_tables, score_inputs
from tests.small import MEASURE, hits, log, qrels, write


def files(folder: Path, *, scattered: bool = False) -> list[Path]:
    """Three files of ten units each; scattered, the rows of every unit lie in all of them."""
    rows = log(30, ["a", "b", "c"])
    pieces = [rows[i::3] for i in range(3)] if scattered else [rows[i * 30 : (i + 1) * 30] for i in range(3)]
    return [write(folder / f"{number}.parquet", piece) for number, piece in enumerate(pieces)]


LABELS = log(30, ["b"], labelled=True)


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def replace(path: Path) -> None:
    write(path.with_suffix(".new"), hits()).replace(path)


def delete(path: Path) -> None:
    path.unlink()


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


CHANGES = pytest.mark.parametrize("change", [touch, replace, delete, grow], ids=lambda change: change.__name__)


@CHANGES
@pytest.mark.parametrize("which", ["first", "last", "labels"])
def test_change_during_a_run(change: Callable[[Path], None], which: str, tmp_path: Path) -> None:
    """A file that is touched, replaced, deleted or extended after the first batch fails the run, and is named."""
    paths = files(tmp_path / "logs")
    labels = write(tmp_path / "labels.parquet", LABELS)
    victim = {"first": paths[0], "last": paths[2], "labels": labels}[which]
    done = []

    def progress(rows: int, _: int) -> None:
        if not done:
            change(victim)
        done.append(rows)

    with pytest.raises(dr.InputError, match=victim.name) as caught:
        dr.score(tmp_path / "logs", labels, MEASURE, batch_rows=30, progress=progress, out=tmp_path / "out")

    assert caught.value.exit_code == 4
    assert done
    assert not list(tmp_path.glob("out*")) + list(tmp_path.glob(".docrecall-*"))


@CHANGES
def test_change_between_listing_and_reading(change: Callable[[Path], None], tmp_path: Path) -> None:
    """A file that changes after its footer was read is not read as what it was."""
    paths = files(tmp_path)
    options = dr.Options()
    inputs = open_tables(str(tmp_path), {"qrels": LABELS})
    change(paths[1])
    with pytest.raises(dr.InputError, match=r"1\.parquet (changed while it was read|does not exist)"):
        score_inputs(inputs, parse_all(MEASURE), options)


@CHANGES
def test_change_before_matches(change: Callable[[Path], None], tmp_path: Path) -> None:
    """Matches are computed when they are asked for, and from the same files or not at all."""
    paths = files(tmp_path)
    scores = dr.score(tmp_path, LABELS, MEASURE)
    change(paths[0])
    with pytest.raises(dr.InputError, match=r"0\.parquet"):
        scores.matches.collect()


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("measure", ["doc_recall@3", "repeat_share@3"])
@pytest.mark.parametrize("column", ["query_id", "rank", "doc_id"])
def test_damaged_page(column: str, measure: str, scattered: bool, tmp_path: Path) -> None:
    """A page that cannot be decoded under a good footer fails the run and names its file among several."""
    paths = files(tmp_path, scattered=scattered)
    place = ["query_id", "doc_id", "rank"].index(column)
    chunk = pq.ParquetFile(paths[1]).metadata.row_group(0).column(place)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    data = bytearray(paths[1].read_bytes())
    data[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    paths[1].write_bytes(data)

    with pytest.raises(dr.InputError, match=r"1\.parquet is damaged"):
        dr.score(tmp_path, LABELS, measure)


def test_damage_of_every_kind(tmp_path: Path) -> None:
    """Flipped footers and cut pages never give anything but an error of ours or a result, and never end the process.

    In a process of its own: the engines would print their panics, and one of them once ended it.
    """
    write(tmp_path / "labels.parquet", LABELS)
    write(tmp_path / "hits.parquet", log(30, ["a", "b", "c"]))
    code = """
import random, sys
from pathlib import Path
import docrecall as dr
folder = Path(sys.argv[1])
good = (folder / "hits.parquet").read_bytes()
footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
rng, failed = random.Random(5), 0
for number in range(150):
    data = bytearray(good)
    low, high = ((4, footer), (footer, len(good) - 4))[number % 2]
    for _ in range(rng.choice((1, 5))):
        data[rng.randrange(low, high)] ^= 1 << rng.randrange(8)
    path = folder / f"{number}.parquet"
    path.write_bytes(data)
    try:
        dr.score(path, folder / "labels.parquet", ["doc_recall@3", "repeat_share@3"])
    except (dr.DataError, dr.InputError):
        failed += 1
print(failed)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 75


def test_footer_that_counts_other_rows(tmp_path: Path) -> None:
    """A footer whose row count is not what its pages hold is damage, not a fault of the planner."""
    path = write(tmp_path / "hits.parquet", hits())
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # num_rows of the file is the first field after the schema: field 3, a zigzag varint with the value 3.
    at = data.index(b"\x16\x06", footer)
    path.write_bytes(data[: at + 1] + b"\x08" + data[at + 2 :])
    for measure in ("doc_recall@3", "repeat_share@3"):
        with pytest.raises(dr.InputError, match=r"hits\.parquet is damaged"):
            dr.score(path, qrels(), measure)
