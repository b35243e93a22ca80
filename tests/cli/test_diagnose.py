"""`docrecall diagnose` in every format, and what it refuses."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.cli import main
from docrecall.conventions import CONVENTIONS
from tests.small import SECRET, write
from tests.test_diagnose import log, qrels

SHORT = "the whole gain is repeats; the naive measure prefers fine, and every real one prefers coarse"


def logs() -> dict[str, pl.DataFrame]:
    """Ten queries; the fine log repeats the document that it found."""
    secret = pl.lit(SECRET).alias("note")
    return {
        "coarse": log(["a", "b", "x"], tokens=10).with_columns(secret),
        "fine": log(["a", "a", "a"], tokens=5).with_columns(secret),
    }


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    paths = [f"--hits={name}={write(tmp_path / f'{name}.parquet', frame)}" for name, frame in logs().items()]
    return ["diagnose", *paths, f"--qrels={write(tmp_path / 'qrels.parquet', qrels())}", "--k=1,3"]


@pytest.fixture
def expected() -> dr.Diagnosis:
    """The same in Python."""
    return dr.diagnose(dr.score(logs(), qrels()), [1, 3])


def accounted(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.join(dr.score(logs(), qrels()).accounting, on="run_id", how="left", maintain_order="left")


def test_table(argv: list[str], expected: dr.Diagnosis, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines, differences with intervals, verdicts, orders, and the accounts below."""
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert SHORT in expected.verdicts["short"].to_list()
    assert f"@3: {SHORT}" in out
    assert "+0.500 [+0.500, +0.500]" in out
    assert "@3: fine above coarse by naive_recall, not by doc_recall, doc_recall_docs" in out
    assert "fine: 10 of 10 units scored" in out
    assert "10,000 resamples, seed 0" in out
    assert SECRET not in out


def test_swaps_of_runs_that_were_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a baseline the others are not compared with each other, and it is said that chance may have swapped them."""
    runs = {**logs(), "base": next(iter(logs().values())).with_columns(doc_id=pl.lit("nothing"))}
    paths = [f"--hits={name}={write(tmp_path / f'{name}.parquet', frame)}" for name, frame in runs.items()]
    argv = ["diagnose", *paths, f"--qrels={write(tmp_path / 'qrels.parquet', qrels())}", "--k=3"]
    for baseline, said in ((["--baseline=base"], True), ([], False)):
        assert main([*argv, *baseline]) == 0
        out = capsys.readouterr().out
        assert "@3: fine above coarse by naive_recall" in out
        assert ("not compared with each other may change places by chance" in out) == said


def test_json(argv: list[str], expected: dr.Diagnosis, capsys: pytest.CaptureFixture[str]) -> None:
    """The document of a scoring, with every frame of the diagnosis and how its intervals were made."""
    assert main([*argv, "--format=json", "--conventions", "--seed=3"]) == 0
    document = json.loads(capsys.readouterr().out)
    told = document["diagnosis"]
    for name in ("lines", "deltas", "verdicts", "orders"):
        assert told[name] == getattr(expected, name).to_dicts()
    assert (told["level"], told["resamples"], told["seed"], told["notes"]) == (0.95, 10_000, 3, [])
    assert [run["accounting"]["n_scored"] for run in document["runs"]] == [10, 10]
    assert document["conventions"] == dr.convention_means(dr.score(logs(), qrels()), [1, 3]).to_dicts()


@pytest.mark.parametrize("conventions", [False, True])
def test_csv_and_parquet(
    conventions: bool, argv: list[str], expected: dr.Diagnosis, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """One table: the lines, or the conventions, with the account of its run in every row."""
    scores = dr.score(logs(), qrels())
    table = accounted(dr.convention_means(scores, [1, 3]) if conventions else expected.lines)
    words = [*argv, *(["--conventions"] if conventions else [])]
    assert main([*words, "--format=parquet"]) == 0
    assert_frame_equal(pl.read_parquet(io.BytesIO(capfdbinary.readouterr().out)), table)
    assert main([*words, "--format=csv"]) == 0
    read = pl.read_csv(io.BytesIO(capfdbinary.readouterr().out), schema=table.schema)
    assert_frame_equal(read, table)


def test_markdown(argv: list[str], expected: dr.Diagnosis, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables, and the verdicts with their numbers."""
    assert main([*argv, "--format=markdown", "--conventions"]) == 0
    out = capsys.readouterr().out.replace("\\", "").replace("`", "")
    for verdict in expected.verdicts["verdict"]:
        assert f"- {verdict}" in out
    heads = [line for line in out.splitlines() if line.startswith(("| run_id", "| convention"))]
    assert [head.split(" | ")[:3] for head in heads] == [["| run_id", "cut", "n"], ["| convention", "k", "coarse"]]
    assert "- coarse: 10 of 10 units scored" in out


def test_conventions(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each convention with its meaning, the evaluators that it was seen in, and its value by run."""
    assert main([*argv, "--conventions"]) == 0
    out = capsys.readouterr().out
    for convention in CONVENTIONS:
        assert f"{convention.name}: {convention.meaning}" in out
        for seen in convention.seen_in:
            assert f"{seen.evaluator} {seen.version}" in out
    (line,) = [line.split() for line in out.splitlines() if line.split()[:2] == ["every_hit_counted", "3"]]
    assert line[2:] == ["1.0000", "1.5000"]


def test_without_the_word_there_are_no_conventions(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """They take a pass of their own."""
    assert main(argv) == 0
    assert "every_hit_counted" not in capsys.readouterr().out


def test_level_and_resamples(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As in Python."""
    assert main([*argv, "--level=0.5", "--resamples=200", "--format=json"]) == 0
    told = json.loads(capsys.readouterr().out)["diagnosis"]
    assert (told["level"], told["resamples"]) == (0.5, 200)


def test_budgets(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """By default multiples of the largest chunk; those that are named; or none."""
    for words, cuts in (
        ([], ["10tokens", "20tokens", "40tokens", "80tokens"]),
        (["--budget=15"], ["15tokens"]),
        (["--budget=none"], []),
    ):
        assert main([*argv, *words, "--format=json"]) == 0
        lines = json.loads(capsys.readouterr().out)["diagnosis"]["lines"]
        assert [line["cut"] for line in lines if line["run_id"] == "fine"] == ["1", "3", *cuts]
        assert (lines[0]["context_tokens"] is None) == (words == ["--budget=none"])


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--k=0"], 2, "k must be positive"),
        (["--k=a"], 2, "--k is 'a'; whole numbers were expected"),
        (["--k=1,,3"], 2, "whole numbers"),
        (["--budget=1.5"], 2, "--budget"),
        (["--budget=0"], 2, "budget must be positive"),
        (["--seed=-1"], 2, "seed is -1"),
        (["--level=95"], 2, "level is 95"),
        (["--resamples=0"], 2, "resamples is 0"),
        (["--baseline=fin"], 2, 'Did you mean "fine"?'),
        (["--k=99999999999"], 2, "whole numbers"),
        (["--qrels=nowhere.parquet"], 4, "nowhere.parquet"),
        (["--on-bad-rows=maybe"], 2, "--on-bad-rows"),
    ],
)
def test_failures(words: list[str], code: int, told: str, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One message, the exit code of its class, and nothing on stdout."""
    named = {word.partition("=")[0] for word in words}
    assert main([*(word for word in argv if word.partition("=")[0] not in named), *words]) == code
    out, err = capsys.readouterr()
    assert told in err
    assert out == ""
    assert "Traceback" not in err


def test_broken_rows(argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log that breaks the contract is not diagnosed, unless its bad rows are set aside."""
    broken = logs()["fine"].with_columns(n_tokens=pl.when(pl.col("query_id") == "q00").then(-1).otherwise(5))
    write(tmp_path / "fine.parquet", broken)
    assert main(argv) == 3
    assert "n_tokens" in capsys.readouterr().err
    assert main([*argv, "--on-bad-rows=reject", "--conventions"]) == 0
    assert "fine: 9 of 10 units scored" in capsys.readouterr().out


def test_a_run_in_which_nothing_is_scored(argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its means are null, never 0, and nothing can be said of it against the others."""
    write(tmp_path / "empty.parquet", logs()["fine"].clear())
    assert main([*argv, f"--hits=none={tmp_path / 'empty.parquet'}", "--universe=hits"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line.split() for line in lines if line.split()[:2] == ["none", "@3"]]
    assert line[2:4] == ["0", "null"]
    assert "@3: no unit is scored in both runs" in lines
