"""The commands `compare` and `score --by`: what they print in every form, what they read, and their exit codes."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.cli import main
from tests.small import write

MEASURE = "doc_recall@1"
N = 30


def hits(run: str, missed: int) -> pl.DataFrame:
    """Each query has one hit, and every so many miss."""
    docs = ["x" if i % missed == 0 else "a" for i in range(N)]
    return pl.DataFrame({"run_id": run, "query_id": [f"q{i:02}" for i in range(N)], "rank": 1, "doc_id": docs})


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    frames = {
        "hits": pl.concat([hits("old", 2), hits("new", 5)]),
        "qrels": pl.DataFrame({"query_id": [f"q{i:02}" for i in range(N)], "doc_id": "a"}),
        "queries": pl.DataFrame(
            {
                "query_id": [f"q{i:02}" for i in range(N)],
                "lang": ["en"] * 20 + ["d[e]"] * 10,
                "talk": [i // 3 for i in range(N)],
            }
        ),
    }
    return {name: write(tmp_path / f"{name}.parquet", frame) for name, frame in frames.items()}


@pytest.fixture
def argv(tables: dict[str, Path]) -> list[str]:
    return [*(f"--{name}={path}" for name, path in tables.items()), f"--measure={MEASURE}"]


@pytest.fixture
def folders(tables: dict[str, Path], tmp_path: Path) -> list[str]:
    out = []
    for run in ("old", "new"):
        log = write(tmp_path / f"{run}.parquet", pl.read_parquet(tables["hits"]).filter(run_id=run))
        out.append(str(tmp_path / f"out-{run}"))
        given = [f"--hits={log}", f"--qrels={tables['qrels']}", f"--measure={MEASURE}", f"--out={out[-1]}"]
        assert main(["score", *given]) == 0
    return out


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    capsys.readouterr()
    assert main(list(argv)) == 0
    return capsys.readouterr().out


def test_table(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The difference, its test, and how both were made, with resamples, seed and the size of the family."""
    out = printed(capsys, "compare", *argv, "--baseline=old", "--seed=4", "--resamples=2000")
    line = next(line for line in out.splitlines() if line.startswith(MEASURE))
    assert "+0.3000 [" in line
    assert "12 / 15 / 3" in line
    assert "new less old, paired by query" in out
    assert "old: 30 of 30 units scored" in out
    assert "2,000 resamples, seed 4" in out
    assert "sign-flip (exact); adjusted by Holm over 1 test" in out


def test_json_is_the_python_twin(tables: dict[str, Path], argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The rows of the table, the flips, and how they were made."""
    told = json.loads(printed(capsys, "compare", *argv, "--baseline=old", "--format=json", "--flips"))["comparison"]
    twin = dr.compare(dr.score(tables["hits"], tables["qrels"], MEASURE, queries=tables["queries"]), baseline="old")
    assert told["rows"] == twin.table.to_dicts()
    assert told["flips"] == twin.flips.to_dicts()
    assert (told["test"], told["resamples"], told["seed"], told["family"]) == ("sign-flip", 10_000, 0, 1)


def test_csv_markdown_and_parquet(argv: list[str], capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """CSV and Parquet hold one table, with seed and accounts in every row; or the flips, where these are asked for."""

    def out(*flags: str) -> bytes:
        assert main(["compare", *argv, "--baseline=old", *flags]) == 0
        return capsysbinary.readouterr().out

    (row,) = csv.DictReader(io.StringIO(out("--format=csv").decode()))
    assert (float(row["delta"]), row["resamples"], row["seed"]) == (pytest.approx(0.3), "10000", "0")
    assert (row["baseline_n_scored"], row["candidate_n_total"]) == ("30", "30")
    assert pl.read_parquet(out("--format=parquet"))["delta"].to_list() == [pytest.approx(0.3)]
    flips = list(csv.DictReader(io.StringIO(out("--format=csv", "--flips").decode())))
    assert [flips[0][c] for c in ("query_id", "change", "docs_candidate")] == ["q02", "gained", "a"]
    assert pl.read_parquet(out("--format=parquet", "--flips"))["change"].len() == len(flips)
    text = out("--format=markdown", "--by=lang", "--min-n=5").decode()
    assert r"| doc_recall@1 | d\[e\] | 10 |" in text


def test_more_is_not_better_in_print(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Heads and lists say higher and lower, which holds for repeats and tokens too."""
    argv = [flag for flag in argv if not flag.startswith("--measure")]
    for shown in ("table", "markdown"):
        out = printed(
            capsys, "compare", *argv, "--baseline=old", "--measure=repeat_share@1", "--measure=doc_recall@1", "--flips",
            f"--format={shown}",
        )  # fmt: skip
        assert "higher / equal / lower" in out
        assert "12 higher, 3 lower" in out
        for word in ("better", "worse", "gained", "lost"):
            assert word not in out


def test_folders(
    folders: list[str], tables: dict[str, Path], argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two folders give the rows that the tables give; columns of queries come from the table, given again."""
    of_tables = json.loads(printed(capsys, "compare", *argv, "--baseline=old", "--by=lang", "--format=json"))
    given = [*folders, f"--queries={tables['queries']}", "--by=lang"]
    of_folders = json.loads(printed(capsys, "compare", *given, "--format=json"))
    assert of_folders["comparison"] == of_tables["comparison"]
    assert [row["side"] for row in of_folders["accounting"]] == ["baseline", "candidate"]
    flips = [
        printed(capsys, "compare", *given, "--flips").split("\n\n")[-1]
        for given in (folders, [*argv, "--baseline=old"])
    ]
    assert flips[0] == flips[1]


@pytest.mark.parametrize(
    ("flags", "code", "says"),
    [
        (["FOLDERS", "--by=lang"], 2, "Give the table that has it"),
        (["FOLDERS", "--qrels=x"], 2, "folders were scored already, and --qrels would not be read"),
        (["FOLDERS", "--min-relevance=2"], 2, "a policy would not be read"),
        (["FOLDERS", "FOLDERS"], 2, "takes one folder or two, and 4 were given"),
        (["FOLDERS", "--measure=doc_recall@3"], 2, "not among the written results"),
        (["FOLDERS", "--candidate=newer"], 2, "Did you mean"),
        (["FOLDERS", "--level=95"], 2, "level is 95.0"),
        (["FOLDERS", "--format=xml"], 2, "xml"),
        ([], 2, "needs two folders of results, or --hits"),
        (["nowhere"], 4, "cannot be read"),
    ],
)
def test_what_has_no_meaning(
    flags: list[str], code: int, says: str, folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One message, and the exit code of its kind."""
    argv = [one for flag in flags for one in (folders if flag == "FOLDERS" else [flag])]
    capsys.readouterr()
    assert main(["compare", *argv]) == code
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_runs_scored_otherwise_are_refused(
    folders: list[str], tables: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit code 2 and what differs; runs without a common unit with 3."""
    few = write(tmp_path / "few.parquet", pl.read_parquet(tables["qrels"]).head(20))
    log = write(tmp_path / "some.parquet", hits("new", 5).tail(5))
    argv = ["score", f"--hits={log}", f"--measure={MEASURE}", "--universe=hits"]
    assert main([*argv, f"--qrels={tables['qrels']}", f"--out={tmp_path / 'some'}"]) == 0
    assert main(["compare", folders[0], str(tmp_path / "some")]) == 2
    assert "universe ('all' and 'hits')" in capsys.readouterr().err
    assert (
        main(
            ["score", f"--hits={tables['hits']}", f"--qrels={few}", f"--measure={MEASURE}", f"--out={tmp_path / 'few'}"]
        )
        == 0
    )
    assert main(["compare", folders[0], str(tmp_path / "few"), "--candidate=new"]) == 2
    assert "qrels (digest" in capsys.readouterr().err
    first = write(tmp_path / "first.parquet", hits("old", 2).head(5))
    given = [f"--hits={first}", f"--qrels={tables['qrels']}", f"--measure={MEASURE}", "--universe=hits"]
    assert main(["score", *given, f"--out={tmp_path / 'first'}"]) == 0
    assert main(["compare", str(tmp_path / "first"), str(tmp_path / "some")]) == 3
    assert "no unit has a value in both runs" in capsys.readouterr().err


def test_notes_of_pairs(tables: dict[str, Path], argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One request that two runs have in common is told in every form, of csv on stderr."""
    once = pl.when(pl.col("query_id") == "q00").then(pl.lit("r")).otherwise(pl.format("{}-{}", "run_id", "query_id"))
    write(tables["hits"], pl.read_parquet(tables["hits"]).with_columns(request_id=once))
    for form, stream in (("table", "out"), ("json", "out"), ("latex", "out"), ("csv", "err")):
        assert main(["compare", *argv, "--baseline=old", f"--format={form}"]) == 0
        assert "1 of 30 requests of old and of 30 of new are the same" in getattr(capsys.readouterr(), stream)


def test_score_by_slices(argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Slices stand below the means, in JSON and in the folder; CSV holds them with the account of their run."""
    flags = ["--by=lang", "--min-n=15", "--level=0.9", "--seed=2", f"--out={tmp_path / 'out'}"]
    out = printed(capsys, "score", *argv, *flags)
    line = next(line for line in out.splitlines() if "d[e]" in line)
    assert "[0." not in line
    assert "intervals: 90% bootstrap" in out
    assert "not judged: 2 slices and measures with fewer than 15 values" in out
    assert "adjusted by Benjamini-Hochberg over 2 tests" in out
    document = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert document["intervals"]["level"] == 0.9
    loaded = dr.load(tmp_path / "out")
    assert loaded.slices is not None
    assert document["slices"] == loaded.slices.to_dicts()
    assert document["slice_tests"] == {"test": "permutation", "adjustment": "benjamini-hochberg", "family": 2}
    assert loaded.summary().row(0, named=True)["ci_low"] == document["runs"][0]["measures"][MEASURE]["ci_low"]
    rows = list(csv.DictReader(io.StringIO(printed(capsys, "score", *argv, "--by=lang", "--format=csv"))))
    assert [(r["run_id"], r["lang"], r["n"], r["n_total"], r["family"]) for r in rows][:2] == [
        ("new", "d[e]", "10", "30", "2"), ("new", "en", "20", "30", "2"),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["date", "duration", "float", "flag", "enum"])
def test_slices_of_any_type_are_printed(
    kind: str, tables: dict[str, Path], argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What JSON has no word for is text there, NaN is null, and nothing fails."""
    column = {
        "date": pl.Series([date(2026, 11, 1 + i % 2) for i in range(N)]),
        "duration": pl.Series([timedelta(days=i % 2) for i in range(N)]),
        "float": pl.Series([math.nan if i % 2 else 0.5 for i in range(N)]),
        "flag": pl.Series([i % 2 == 0 for i in range(N)]),
        "enum": pl.Series(["a", "b"] * 15, dtype=pl.Enum(["b", "a"])),
    }[kind]
    write(tables["queries"], pl.read_parquet(tables["queries"]).with_columns(column.alias("kind")))
    expected = {"date": "2026-11-01", "duration": "PT0S", "float": 0.5, "flag": True, "enum": "a"}[kind]
    for command in ("score", "compare"):
        document = json.loads(printed(capsys, command, *argv, "--by=kind", "--format=json"))
        rows = document["slices"] if command == "score" else document["comparison"]["rows"]
        assert expected in {row["kind"] for row in rows}
        assert len({row["kind"] for row in rows}) == 2
        for shown in ("table", "csv", "markdown"):
            assert printed(capsys, command, *argv, "--by=kind", f"--format={shown}")
    printed(capsys, "score", *argv, "--by=kind", f"--out={tmp_path / 'out'}")
    assert dr.load(tmp_path / "out").slices is not None


def test_intervals_of_a_run_are_kept(argv: list[str], tables: dict[str, Path], tmp_path: Path) -> None:
    """Read back, `summary()` shows what was written, and any other interval on demand, of the same clusters."""
    assert main(["score", *argv, "--cluster=talk", "--level=0.5", f"--out={tmp_path / 'out'}"]) == 0
    with pytest.raises(dr.UsageError, match="talk is a column of queries or requests, and neither is at hand"):
        dr.load(tmp_path / "out").summary(level=0.9)
    loaded = dr.load(tmp_path / "out", queries=tables["queries"])
    assert_frame_equal(loaded.summary(), pl.read_parquet(tmp_path / "out" / "summary.parquet"))
    wide, usual, narrow = (loaded.summary(level=level).row(0, named=True)["ci_low"] for level in (0.99, 0.95, None))
    assert wide <= usual < narrow


def test_a_column_that_is_not_there_stops_before_the_work(argv: list[str], tmp_path: Path, capsys: Any) -> None:
    """Nothing is scored for a slice that cannot be made."""
    assert main(["score", *argv, "--by=langg", f"--out={tmp_path / 'out'}"]) == 2
    assert 'have a column langg. Did you mean "lang"?' in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
