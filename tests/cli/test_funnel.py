"""`docrecall score --funnel` in every format."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.cli import main
from tests.seven import tables
from tests.small import write

GIVEN = ("hits", "qrels", "evidence", "requests")
ARGV = ("--cut=@1", "--budget=@5tokens", "--coverage=0.5", "--need=all")


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    """A command over four small tables: q1 finds its passage too late, q2 at once."""
    paths = [f"--{name}={write(tmp_path / f'{name}.parquet', frame)}" for name, frame in tables(*GIVEN).items()]
    return ["score", *paths, "--measure=doc_recall@3", "--funnel", *ARGV]


@pytest.fixture
def expected() -> pl.DataFrame:
    """The same in Python."""
    given = tables(*GIVEN)
    scores = dr.score(given.pop("hits"), given.pop("qrels"), "doc_recall@3", **given)
    return dr.funnel(scores, cut="@1", budget="@5tokens", coverage=0.5, need="all").table


def test_expected(expected: pl.DataFrame) -> None:
    """What the formats below must show: one of two units has its document at once."""
    assert expected.select("step", "measure", "n", "share", "of_previous", "lost", "unknown").rows() == [
        ("labelled", None, 2, 1.0, 1.0, 0, 0),
        ("retrieved", "doc_all@all", 2, 1.0, 1.0, 0, 0),
        ("in_cut", "doc_all@1", 1, 0.5, 0.5, 1, 0),
        ("passage", "evidence_all(coverage=0.5)@1", 1, 0.5, 1.0, 0, 0),
        ("in_budget", "evidence_all(coverage=0.5)@5tokens", 1, 0.5, 1.0, 0, 0),
        ("answered", None, 1, 0.5, 1.0, 0, 0),
    ]


def test_table(argv: list[str], expected: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    """After the means there is one line for each step, with count and share of the labelled."""
    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:2] == ["doc_recall@3", "1.0000"] for line in lines)
    for row in expected.to_dicts():
        (line,) = [line for line in lines if line.split()[:1] == [row["step"]]]
        assert line.split()[-2:] == [str(row["n"]), f"{row['share']:.1%}"]


def test_json(argv: list[str], expected: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    """The document has the funnel beside the runs, and its measures among theirs."""
    assert main([*argv, "--format=json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["funnel"] == expected.to_dicts()
    of_steps = {row["measure"] for row in document["funnel"]} - {None}
    assert document["runs"][0]["measures"].keys() == {"doc_recall@3"} | of_steps


def test_csv(argv: list[str], expected: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    """CSV holds one table, which is the funnel."""
    assert main([*argv, "--format=csv"]) == 0
    read = pl.read_csv(io.StringIO(capsys.readouterr().out), schema=expected.schema)
    assert_frame_equal(read, expected)


def test_markdown(argv: list[str], expected: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    """Markdown has the means, then a table of steps."""
    assert main([*argv, "--format=markdown"]) == 0
    out = capsys.readouterr().out
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines() if line.startswith("|")]
    head = cells.index(["run_id", "step", "measure", "n", "share", "lost", "unknown"])
    assert [row[1] for row in cells[head + 2 :]] == expected["step"].to_list()
    assert [row[3] for row in cells[head + 2 :]] == [str(n) for n in expected["n"]]
    assert cells[0][:3] == ["run_id", "measure", "mean"]


def test_parquet(argv: list[str], expected: pl.DataFrame, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Parquet holds the funnel, to the byte of its values."""
    assert main([*argv, "--format=parquet"]) == 0
    assert_frame_equal(pl.read_parquet(io.BytesIO(capfdbinary.readouterr().out)), expected)


@pytest.mark.parametrize("shown", ["table", "json", "csv", "markdown"])
def test_without_the_word_there_is_no_funnel(shown: str, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Nor do its other options bring it in: they are refused where they would do nothing."""
    without = [word for word in argv if word != "--funnel"]
    assert main([*without, f"--format={shown}"]) == 2
    assert "add --funnel" in capsys.readouterr().err
    plain = [word for word in without if not word.startswith(("--cut", "--budget", "--coverage", "--need"))]
    assert main([*plain, f"--format={shown}"]) == 0
    assert "in_cut" not in capsys.readouterr().out


def test_written_results_can_be_followed_again(argv: list[str], expected: pl.DataFrame, tmp_path: Path) -> None:
    """`--out` keeps what the funnel is made of: the frame of lost queries can be had later, without the tables."""
    assert main([*argv, f"--out={tmp_path / 'out'}"]) == 0
    words = dict(
        text.removeprefix("--").split("=", 1) for text in argv if text.startswith(("--cut", "--budget", "--need"))
    )
    again = dr.funnel(dr.load(tmp_path / "out"), coverage=0.5, **words)
    assert_frame_equal(again.table, expected)
    assert again.lost.height == sum(expected["lost"])


@pytest.mark.parametrize("shown", ["table", "markdown", "json"])
def test_the_budget_can_be_left_out(shown: str, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`--budget none` follows documents and passages alone."""
    words = [word for word in argv if not word.startswith("--budget")]
    assert main([*words, "--budget=none", f"--format={shown}"]) == 0
    told = capsys.readouterr().out
    assert "in_cut" in told
    assert "in_budget" not in told


@pytest.mark.parametrize("shown", ["table", "markdown", "json"])
def test_steps_that_are_left_out_are_told(shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log without spans is followed by its documents, and says that passages are not looked at."""
    given = tables("hits", "qrels", "evidence", hits={"chunk_start": None, "chunk_end": None})
    paths = [f"--{name}={write(tmp_path / f'{name}.parquet', frame)}" for name, frame in given.items()]
    assert main(["score", *paths, "--funnel", f"--format={shown}"]) == 0
    assert "passage: neither hits nor chunks say" in capsys.readouterr().out.replace("\\", "")
