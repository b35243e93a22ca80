"""What is printed: safe for spreadsheets, terminals and parsers, whatever the ids hold."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from docrecall.cli import main
from tests.small import MEASURE, hits, qrels, queries, write

NASTY = "[red]\x1b[31mdrop\x07\n| `x` *y*\u202e\u2028\x9b"


def printed(folder: Path, capsys: pytest.CaptureFixture[str], run: str, *flags: str, **columns: Any) -> tuple[str, str]:
    """Score one run of this name; what came out."""
    log = write(folder / "h.parquet", hits(run_id=[run] * 3, **columns))
    labels = write(folder / "q.parquet", qrels())
    assert main(["score", f"--hits={log}", f"--qrels={labels}", f"--measure={MEASURE}", *flags]) == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


@pytest.mark.parametrize("start", list("=+-@\t\r"))
def test_spreadsheets_run_nothing(start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text that a spreadsheet would take for a formula gets an apostrophe in CSV; numbers stay numbers."""
    run = f'{start}cmd|"/c calc"!A1'
    out, _ = printed(tmp_path, capsys, run, "--format=csv")
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert [row["run_id"] for row in rows] == [f"'{run}"]
    assert float(rows[0]["mean"]) == 1.0


@pytest.mark.parametrize("run", ["a=b", "1", " =x", "é"])
def test_other_text_stays_as_it_is(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only what starts so is guarded."""
    out, _ = printed(tmp_path, capsys, run, "--format=csv")
    assert next(csv.DictReader(io.StringIO(out)))["run_id"] == run


def test_parquet_and_json_stay_exact(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """No apostrophe where a program reads."""
    log, labels = write(tmp_path / "h.parquet", hits(run_id=["=x"] * 3)), write(tmp_path / "q.parquet", qrels())
    argv = ["score", f"--hits={log}", f"--qrels={labels}", f"--measure={MEASURE}"]
    assert main([*argv, "--format=parquet"]) == 0
    assert pl.read_parquet(capsysbinary.readouterr().out)["run_id"].to_list() == ["=x"]
    assert main([*argv, "--format=json"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["runs"][0]["run_id"] == "=x"


def test_json_has_no_nan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What has no value is null, also a mean over nothing."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    listed = write(tmp_path / "l.parquet", queries(label_status=["unlabelled"] * 2))
    out, _ = printed(tmp_path, capsys, "r", "--format=json", "--measure=doc_judged@all", f"--queries={listed}")
    document = json.loads(out, parse_constant=refuse)
    nulls = dict.fromkeys(("mean", "n_eff", "ci_low", "ci_high", "ci_method", "ceiling"))
    expected = {**nulls, "n": 0, "n_null": 0}
    assert document["runs"][0]["measures"] == {MEASURE: expected, "doc_judged@all": expected}


@pytest.mark.parametrize("fmt", ["table", "markdown"])
@pytest.mark.parametrize("colour", [False, True])
def test_terminals_are_told_nothing(
    fmt: str, colour: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Escape sequences, line breaks and direction marks in ids are printed as text, and markup means nothing."""
    if colour:
        monkeypatch.setenv("FORCE_COLOR", "1")
    out, err = printed(tmp_path, capsys, NASTY, f"--format={fmt}", "--on-bad-rows=reject", rank=[1, None, 1])
    assert err == ""
    assert "red" in out
    assert "\\x1b" in out.replace("\\\\", "\\")
    for raw in ("\x1b[31mdrop", "\x07", "\u202e", "\u2028", "\x9b"):
        assert raw not in out
    assert ("[red]" if fmt == "table" else "\\[red\\]") in out


def test_messages_tell_terminals_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So it is in error messages: ids, column names and paths."""
    log = hits(query_id=[NASTY, NASTY, "q2"], rank=[1, None, 1]).rename({"query_text": NASTY})
    path = write(tmp_path / "a\x1b[31mb.parquet", log)
    labels = write(tmp_path / "q.parquet", qrels())
    assert main(["score", f"--hits={path}", f"--qrels={labels}", f"--measure={MEASURE}"]) == 3
    assert main(["score", f"--hits={labels}", f"--qrels={path}", f"--measure={MEASURE}", "--order=score"]) == 3
    assert main(["score", f"--hits={path}", f"--qrels={labels}", f"--measure={NASTY}@3"]) == 2
    assert main(["score", f"--hits={path}", f"--qrels={labels}", f"--{NASTY}=3"]) == 2
    err = capsys.readouterr().err
    assert err.count("docrecall: ") == 4
    for raw in ("\x1b", "\x07", "\u202e", "\u2028", "\x9b"):
        assert raw not in err


def test_notices_of_data_formats_go_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CSV holds the table alone; what was noticed is said beside it."""
    out, err = printed(tmp_path, capsys, "r", "--format=csv", "--on-bad-rows=reject", rank=[1, None, 1])
    assert len(out.splitlines()) == 2
    assert err.startswith("warning: hits.rank: 1 hit without a rank")
