"""`load` gives back what was written, or an InputError: never a mix, never changed numbers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.cli import main
from tests.small import MEASURE, hits, log, qrels, queries, write

MEASURES = ["doc_recall@1,3", "doc_judged@3"]


def scores_into(out: Path, **change: Any) -> dr.Scores:
    """A result with rejected rows, warnings and nulls."""
    given: dict[str, Any] = {"hits": hits(rank=[1, None, 1], doc_id=["x", "a", " b"]), "qrels": qrels()}
    given |= {"queries": queries(query_id=["q1", "q2", "q3"], label_status=[None, "answerable", "answerable"])}
    return dr.score(**(given | change), measures=MEASURES, on_bad_rows="reject", out=out)


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, dr.Scores]:
    return tmp_path / "out", scores_into(tmp_path / "out")


@pytest.mark.parametrize(
    "change", [{}, {"hits": hits()}, {"hits": hits().clear(), "qrels": qrels().clear(), "queries": None}]
)
def test_round_trip(change: dict[str, Any], tmp_path: Path) -> None:
    """Every frame, the policies and the inputs come back equal, with rejected rows, without, and without units."""
    scores = scores_into(tmp_path / "out", **change)

    loaded = dr.load(tmp_path / "out")

    assert_frame_equal(loaded.per_query, scores.per_query)
    assert_frame_equal(loaded.scan().collect(), scores.scan().collect())
    assert_frame_equal(loaded.summary(), scores.summary())
    assert_frame_equal(loaded.accounting, scores.accounting)
    assert_frame_equal(loaded.findings, scores.findings)
    assert_frame_equal(loaded.rows, scores.rows)
    assert_frame_equal(loaded.rejected.collect(), scores.rejected.collect())
    assert (loaded.measures, loaded.options, loaded.inputs) == (scores.measures, scores.options, scores.inputs)
    with pytest.raises(dr.UsageError, match="matches are not among the written results"):
        _ = loaded.matches


def test_with_and_without_a_folder_alike(written: tuple[Path, dr.Scores]) -> None:
    """What goes to disk batch by batch is what stays in memory."""
    inside = dr.score(
        hits(rank=[1, None, 1], doc_id=["x", "a", " b"]),
        qrels(),
        MEASURES,
        queries=queries(query_id=["q1", "q2", "q3"], label_status=[None, "answerable", "answerable"]),
        on_bad_rows="reject",
    )
    assert_frame_equal(written[1].per_query, inside.per_query)
    assert_frame_equal(written[1].findings, inside.findings)


def test_batches_do_not_change_a_byte(tmp_path: Path) -> None:
    """The file of scores is the same for any batch size and any order of rows."""
    rows, labels = log(200, ["a", "b", "c"]), log(200, ["b", "z"], labelled=True)
    contents = set()
    for number, (source, batch_rows) in enumerate(
        [(rows, 10**6), (rows, 7), (rows.sample(fraction=1, shuffle=True), 50)]
    ):
        dr.score(source, labels, MEASURES, batch_rows=batch_rows, out=tmp_path / str(number))
        contents.add((tmp_path / str(number) / "per_query.parquet").read_bytes())
    assert len(contents) == 1


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def same_json(data: bytes, good: bytes) -> bool:
    try:
        return bool(json.loads(data) == json.loads(good))
    except ValueError:
        return False


def test_one_flipped_bit_in_any_file(written: tuple[Path, dr.Scores]) -> None:
    """A bit that flips in any file, the manifest too, is noticed wherever it is, and the file is named."""
    out, _ = written
    assert len(names(out)) == 9
    for name in names(out):
        good = (out / name).read_bytes()
        for at in range(0, len(good), max(1, len(good) // 40)):
            data = bytearray(good)
            data[at] ^= 1
            (out / name).write_bytes(data)
            if name == "manifest.json" and same_json(bytes(data), good):
                continue  # white space
            with pytest.raises(dr.InputError, match=name):
                dr.load(out)
        (out / name).write_bytes(good)
    dr.load(out)


def test_any_file_missing(written: tuple[Path, dr.Scores]) -> None:
    """A file that the manifest lists and that is not there is named; so is the manifest."""
    out, _ = written
    for name in names(out):
        (out / name).rename(out.parent / "kept")
        with pytest.raises(dr.InputError, match=name):
            dr.load(out)
        (out.parent / "kept").rename(out / name)


def test_mix_of_two_runs(tmp_path: Path) -> None:
    """Any half of one run's files beside the other half of another's is refused."""
    first, second, mix = (tmp_path / name for name in ("first", "second", "mix"))
    scores_into(first)
    scores_into(second, hits=hits(doc_id=["a", "x", "b"], rank=[None, 2, 1]))
    differ = [n for n in names(first) if (first / n).read_bytes() != (second / n).read_bytes()]
    assert {"per_query.parquet", "summary.parquet", "summary.json", "manifest.json"} <= set(differ)
    for number in range(1, len(differ)):
        shutil.rmtree(mix, ignore_errors=True)
        shutil.copytree(first, mix)
        for name in differ[:number]:
            shutil.copy(second / name, mix / name)
        with pytest.raises(dr.InputError):
            dr.load(mix)


MANIFESTS: list[str] = [
    "",
    "{",
    "[]",
    "3",
    "null",
    "{}",
    '{"schema_version": 1}',
    '{"schema_version": 2, "sha256": ""}',
    "\xff",
]


@pytest.mark.parametrize("text", MANIFESTS)
def test_foreign_manifest(text: str, tmp_path: Path) -> None:
    """A manifest of another tool, or of another version, is told as such."""
    (tmp_path / "manifest.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(dr.InputError, match=r"manifest\.json is (not a manifest of docrecall|of schema version 2)"):
        dr.load(tmp_path)


@pytest.mark.parametrize("path", ["nothing", "file", "x" * 300, "a\0b"])
def test_no_folder(path: str, tmp_path: Path) -> None:
    """A folder that is not there, or a file, is an InputError."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(dr.InputError) as caught:
        dr.load(tmp_path / path)
    assert caught.value.exit_code == 4


def change_nothing(out: Path) -> None:
    scores_into(out, hits=hits(doc_id=["a", "x", "b"]))


def remove(out: Path) -> None:
    shutil.rmtree(out)


@pytest.mark.parametrize("change", [change_nothing, remove])
@pytest.mark.parametrize("how", [dr.load, scores_into])
def test_scores_on_disk_that_are_replaced(
    how: Callable[[Path], dr.Scores], change: Callable[[Path], None], tmp_path: Path
) -> None:
    """Scores whose folder another run replaces refuse to read its numbers as their own."""
    scores_into(tmp_path / "out")
    scores = how(tmp_path / "out")
    assert scores.per_query.height == 3
    change(tmp_path / "out")
    with pytest.raises(dr.InputError, match=r"per_query\.parquet"):
        _ = scores.per_query


def test_replaced_while_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that puts its files in place between the check and the reading of `load` is noticed."""
    scores_into(tmp_path / "out")
    plain, done = pl.read_parquet, []

    def slow(*args: Any, **kwargs: Any) -> pl.DataFrame:
        if not done:
            done.append(1)
            monkeypatch.setattr(pl, "read_parquet", plain)
            scores_into(tmp_path / "out", hits=hits(doc_id=["a", "x", "b"]))
        return plain(*args, **kwargs)

    monkeypatch.setattr(pl, "read_parquet", slow)
    with pytest.raises(dr.InputError, match="changed while it was read"):
        dr.load(tmp_path / "out")


def test_intervals_and_slices_come_back(tmp_path: Path) -> None:
    """What the command was told to show is what results show again."""
    listed = write(tmp_path / "l.parquet", queries(language=["en", "de"]))
    argv = [f"--hits={write(tmp_path / 'h.parquet', hits())}", f"--qrels={write(tmp_path / 'q.parquet', qrels())}"]
    asked = ["--by=language", "--min-n=1", "--level=0.8", "--seed=7", f"--queries={listed}"]
    assert main(["score", *argv, *asked, f"--measure={MEASURE}", f"--out={tmp_path / 'out'}"]) == 0
    scores = dr.load(tmp_path / "out")
    assert (scores.intervals.how.level, scores.intervals.how.seed) == (0.8, 7)
    assert scores.slices is not None
    assert scores.slices.select("language", "n").rows() == [("de", 1), ("en", 1)]
