"""Flips of results that were read back: the files that were scored are opened once more, if they are the same."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.cli import main
from docrecall.sources.mapping import from_toml, parse_mapping, to_toml
from tests.test_compare import NEW, OLD, RECALL, log, qrels

LOGS = {"old": log(OLD), "new": log(NEW)}


def scored(folder: Path, hits: dict[str, Any], **tables: Any) -> dict[str, Path]:
    """Score each run by itself, into a folder of its own."""
    folders = {run: folder / f"out-{run}" for run in hits}
    for run, given in hits.items():
        dr.score({run: given}, measures=RECALL, universe="hits", out=folders[run], **tables)
    return folders


def expected() -> pl.DataFrame:
    return dr.compare(dr.score(LOGS, qrels(), RECALL, universe="hits"), baseline="old").flips


def write(path: Path, frame: pl.DataFrame) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_csv(path) if path.suffix == ".csv" else frame.write_parquet(path)
    return path


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_flips_of_folders(suffix: str, tmp_path: Path) -> None:
    """They are those of scores in memory: gained, lost, and equal by other documents."""
    paths = {run: write(tmp_path / f"{run}.{suffix}", frame) for run, frame in LOGS.items()}
    folders = scored(tmp_path, paths, qrels=write(tmp_path / "qrels.parquet", qrels()))
    told = dr.compare(folders["old"], folders["new"])
    assert_frame_equal(told.flips, expected())
    assert told.flip_notes == ()
    assert told.flips["change"].to_list() == ["gained", "gained", "lost", "other documents"]


def test_one_side_from_a_folder(tmp_path: Path) -> None:
    """The other one is in memory."""
    paths = {run: write(tmp_path / f"{run}.parquet", frame) for run, frame in LOGS.items()}
    labels = write(tmp_path / "qrels.parquet", qrels())
    folders = scored(tmp_path, paths, qrels=labels)
    new = dr.score({"new": LOGS["new"]}, labels, RECALL, universe="hits")
    assert_frame_equal(dr.compare(folders["old"], new).flips, expected())


def test_flips_of_mapped_tables(tmp_path: Path) -> None:
    """Columns of other names, and the split of an id, are read as they were."""
    frames = {
        run: frame.select(qid="query_id", place="rank", chunk=pl.col("doc_id") + "#1") for run, frame in LOGS.items()
    }
    paths = {run: write(tmp_path / f"{run}.parquet", frame) for run, frame in frames.items()}
    mapped = {"hits.query_id": "qid", "hits.rank": "place", "hits": r"chunk~(?P<doc_id>.+)#\d"}
    folders = scored(tmp_path, paths, qrels=write(tmp_path / "qrels.parquet", qrels()), map=mapped)
    assert_frame_equal(dr.compare(folders["old"], folders["new"]).flips, expected())


def test_flips_of_files_whose_format_was_declared(tmp_path: Path) -> None:
    """What their names do not say stands in the manifest, also where no column was renamed."""
    for run, frame in LOGS.items():
        score = 10 - pl.col("rank").cast(pl.Float64)
        lines = frame.select("query_id", q0=pl.lit("Q0"), doc="doc_id", rank="rank", score=score, tag=pl.lit(run))
        lines.write_csv(tmp_path / run, separator=" ", include_header=False)
    paths = {run: tmp_path / run for run in LOGS}
    labels = write(tmp_path / "qrels.parquet", qrels())
    folders = scored(tmp_path, paths, qrels=labels, read="hits=trec:query_id,_,doc_id,rank,score,_")
    told = dr.compare(folders["old"], folders["new"])
    assert told.flip_notes == ()
    assert_frame_equal(told.flips, expected())


def test_flips_of_a_tree(tmp_path: Path) -> None:
    """Folders such as run_id=old say the run, also when their files are opened one by one."""
    for run, frame in LOGS.items():
        write(tmp_path / "log[1]" / f"run_id={run}" / "day=1" / "part.parquet", frame)
    out = tmp_path / "out"
    dr.score(tmp_path / "log[1]", write(tmp_path / "q.parquet", qrels()), RECALL, universe="hits", out=out)
    told = dr.compare(out, baseline="old")
    assert told.flip_notes == ()
    assert_frame_equal(told.flips, expected())


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("gone", r"old\.parquet does not exist"),
        ("touched", r"old\.parquet is not what it was when these results were written"),
        ("rewritten", r"old\.parquet is not what it was"),
    ],
)
def test_files_that_are_not_the_same(fault: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lists are null, what is equal in value is left out, and every form says why; nothing fails."""
    paths = {run: write(tmp_path / f"{run}.parquet", frame) for run, frame in LOGS.items()}
    folders = scored(tmp_path, paths, qrels=write(tmp_path / "qrels.parquet", qrels()))
    if fault == "gone":
        paths["old"].unlink()
    elif fault == "touched":
        os.utime(paths["old"], (1, 1))
    else:
        write(paths["old"], log(["ab"] * 9))
    told = dr.compare(folders["old"], folders["new"])
    assert told.flips["change"].to_list() == ["gained", "gained", "lost"]
    assert told.flips["docs_baseline"].null_count() == 3
    (note,) = told.flip_notes
    assert re.fullmatch(f"the documents of old are not known: .*{says}.*", note)
    for form, stream in (("table", "out"), ("json", "out"), ("markdown", "out"), ("csv", "err")):
        assert main(["compare", str(folders["old"]), str(folders["new"]), "--flips", f"--format={form}"]) == 0
        assert "are not known" in getattr(capsys.readouterr(), stream)


def test_frames_cannot_be_read_again(tmp_path: Path) -> None:
    """Which is said by the names of their tables."""
    folders = scored(tmp_path, LOGS, qrels=qrels())
    told = dr.compare(folders["old"], folders["new"])
    assert told.flips["docs_baseline"].null_count() == 3
    assert told.flip_notes == tuple(
        f"the documents of {run} are not known: hits, qrels came from memory, not from files." for run in ("old", "new")
    )


def test_a_mapping_is_read_back_from_its_text() -> None:
    """`from_toml` is the inverse of `to_toml`."""
    mapped = parse_mapping(
        {"hits.doc_id": "meta.source", "qrels": r"id~(?P<doc_id>.+)-\d+", "qrels.query_id": "text:q"}
    )
    assert from_toml(to_toml(mapped)) == mapped
