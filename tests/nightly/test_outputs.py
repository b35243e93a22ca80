"""What other programs read: Prometheus, JSON lines, Markdown, and exit codes for retry or alarm."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from docrecall.nightly.outputs import document, exit_code, markdown, prometheus
from tests.nightly.nights import DAY, command, deliver, hits, job, run, store_of
from tests.small import write

METRICS = """[outputs]
prometheus = "docrecall.prom"
markdown = "summary.md"
[[gates]]
measure = "doc_recall@1"
min = 0.5
"""
LINE = re.compile(
    r'docrecall_[a-z_]+(\{[a-z]+="[^"\\]*(?:\\.[^"\\]*)*"(,[a-z]+="[^"\\]*(?:\\.[^"\\]*)*")*\})? [0-9.e+-]+'
)


def samples(folder: Path) -> dict[str, float]:
    """The samples of the textfile, by name and labels, after a look at the format of every line."""
    found = {}
    for line in (folder / "docrecall.prom").read_text().splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP docrecall_[a-z_]+ .+|TYPE docrecall_[a-z_]+ gauge)", line)
            continue
        assert LINE.fullmatch(line), line
        name, _, value = line.rpartition(" ")
        found[name] = float(value)
    return found


def test_textfile(tmp_path: Path) -> None:
    """Numbers of the newest night, gates, and when a run last succeeded; readable by all, and nothing beside it."""
    config = job(tmp_path, more=METRICS)
    old = os.umask(0o077)
    try:
        assert command(config, "--date", str(DAY)) == 0
    finally:
        os.umask(old)
    found = samples(tmp_path)
    assert found['docrecall_mean{run="run",measure="doc_recall@1"}'] == 0.8
    assert found['docrecall_gate_failed{gate="min",run="run",measure="doc_recall@1"}'] == 0
    assert found['docrecall_rows{table="hits",fate="used"}'] == 10
    assert found['docrecall_units{run="run",kind="scored"}'] == 10
    assert found["docrecall_last_exit_code"] == 0
    assert found["docrecall_night_timestamp_seconds"] == datetime(2026, 11, 30, tzinfo=UTC).timestamp()
    assert abs(found["docrecall_last_success_timestamp_seconds"] - datetime.now(UTC).timestamp()) < 60
    assert stat.S_IMODE((tmp_path / "docrecall.prom").stat().st_mode) == 0o644
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "docrecall.prom", "labels", "logs", "nightly.toml", "store", "summary.md",
    ]  # fmt: skip


def test_a_failure_keeps_the_last_success(tmp_path: Path) -> None:
    """A night that is not delivered changes the exit code and not the numbers, nor the time of the last success."""
    config = job(tmp_path, more=METRICS)
    assert command(config, "--date", str(DAY)) == 0
    before = samples(tmp_path)
    assert command(config, "--date", str(DAY + timedelta(days=1))) == 5
    after = samples(tmp_path)
    assert after.pop("docrecall_last_exit_code") == 5
    moving = {"docrecall_last_exit_code", "docrecall_last_run_timestamp_seconds"}
    assert {k: v for k, v in after.items() if k not in moving} == {k: v for k, v in before.items() if k not in moving}


def test_an_output_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 6, and the night is published all the same; JSON and stderr say the same."""
    config = job(tmp_path, more='[outputs]\nprometheus = "missing/docrecall.prom"\n')
    assert command(config, "--date", str(DAY), "--format", "json") == 6
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["exit_code"] == 6
    assert told["reason"].startswith("results were not written to ")
    assert told["reason"] in err
    assert store_of(config).read(DAY) is not None


def test_log_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--log json gives one JSON object per line on stderr, with time, night and event."""
    config = job(tmp_path)
    assert command(config, "--date", str(DAY), "--log", "json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    events = ["started", "inputs", "scored", "canary", "published", "judged", "ended", "done"]
    assert [line["event"] for line in lines] == events
    assert all({"time", "night"} <= line.keys() for line in lines[:-1])


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("", ["--date", str(DAY + timedelta(days=1))], 5),
        ("", ["--date", "today"], 2),
        ("", ["--until", str(DAY)], 2),
        ("[outputs]\njson = 'none/x.json'\n", ["--date", str(DAY)], 6),
        ("what is this", ["--date", str(DAY)], 2),
    ],
)
def test_every_line_is_json_when_it_fails(
    text: str, options: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A parser of the lines never meets another one; the last one has the exit code and the reason."""
    config = job(tmp_path, more=text)
    assert command(config, *options, "--log", "json") == code
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (lines[-1]["event"], lines[-1]["exit_code"]) == ("done", code)
    assert lines[-1]["reason"]


def test_totals_that_fail_are_lines_of_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nights that are not published are told as a line."""
    config = job(tmp_path)
    assert command("total", config, "--since", str(DAY), "--until", str(DAY), "--log", "json") == 5
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["exit_code"] == 5


def test_one_output_that_fails_does_not_silence_the_others(tmp_path: Path) -> None:
    """A folder that is not there for Markdown is exit code 6 for Prometheus and in the JSON file as well."""
    more = "[outputs]\njson = 'x.json'\nmarkdown = 'none/x.md'\nprometheus = 'docrecall.prom'\n"
    config = job(tmp_path, more=more)
    assert command(config, "--date", str(DAY)) == 6
    assert samples(tmp_path)["docrecall_last_exit_code"] == 6
    told = json.loads((tmp_path / "x.json").read_text())
    assert told["exit_code"] == 6
    assert "none/x.md" in told["reason"]


def test_gates_that_share_their_labels(tmp_path: Path) -> None:
    """Two gates on one measure, and one by slice: no two samples have the same name, or the file would be refused."""
    gate = '[[gates]]\nmeasure = "doc_recall@1"\n'
    more = (
        METRICS
        + gate
        + "min = 0.9\n"
        + gate
        + 'by = "lang"\nmin = 0.5\n'
        + gate
        + 'by = "kind"\nmin = 0.1\nmin_n = 2\n'
    )
    config = job(tmp_path, more=more)
    slices = 'queries = "labels/queries.parquet"\n[score]\nslices = ["lang", "kind"]'
    config.write_text(config.read_text().replace("[score]", slices))
    queries = {"query_id": [f"q{k:02}" for k in range(10)], "lang": ["de"] * 10, "kind": ["a", "b"] * 5}
    write(tmp_path / "labels" / "queries.parquet", pl.DataFrame(queries))
    assert command(config, "--date", str(DAY)) == 1
    text = [line.rpartition(" ")[0] for line in (tmp_path / "docrecall.prom").read_text().splitlines()]
    assert len(text) == len(set(text))
    found, of = samples(tmp_path), '{gate="min",run="run",measure="doc_recall@1"'
    assert found[f"docrecall_gate_failed{of}}}"] == 1
    assert found[f'docrecall_gate_judged{of},by="lang"}}'] == 0
    assert found[f'docrecall_gate_failed{of},by="kind"}}'] == 0


def test_long_names_stay_apart(tmp_path: Path) -> None:
    """Runs whose names differ after a thousand letters are two runs for Prometheus too."""
    names = ["x" * 1_000 + end for end in "ab"]
    config = job(tmp_path, {}, METRICS)
    deliver(tmp_path, DAY, pl.concat([hits(8, run_id=[name] * 10) for name in names]))
    assert command(config, "--date", str(DAY)) == 0
    found = samples(tmp_path)
    assert all(f'docrecall_mean{{run="{name}",measure="doc_recall@1"}}' in found for name in names)


def test_what_a_killed_run_left_beside_an_output(tmp_path: Path) -> None:
    """A temporary file of hours ago goes with the next run; one of now may be in the making."""
    config = job(tmp_path, more=METRICS)
    for name, age in (("old", 7_200), ("new", 60)):
        (tmp_path / f".docrecall-{name}").touch()
        os.utime(tmp_path / f".docrecall-{name}", (time.time() - age, time.time() - age))
    assert command(config, "--date", str(DAY)) == 0
    assert [p.name for p in tmp_path.glob(".docrecall-*")] == [".docrecall-new"]


def test_a_night_that_was_not_judged_has_no_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a run left that was killed before the gates: its numbers are shown, and nothing says that they are fine."""
    config = job(tmp_path)
    run(config)
    (store_of(config).folder(DAY) / "verdict.json").unlink()
    assert command("show", config, "--date", str(DAY), "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["exit_code"] is None
    assert "the gates have not spoken yet" in told["reason"]


def test_markdown(tmp_path: Path) -> None:
    """A heading with the verdict, the gates and the means; a failed gate stands out."""
    config = job(tmp_path, more=METRICS.replace("0.5", "0.9"))
    assert command(config, "--date", str(DAY)) == 1
    text = (tmp_path / "summary.md").read_text()
    assert text.startswith("## docrecall nightly: exit code 1\n\n")
    assert "| min | **failed** | doc_recall@1 of run is 0.8000, below 0.9 |" in text
    assert "| run | doc_recall@1 | 0.8000 |" in text


def result(day: int, code: int) -> dict[str, Any]:
    return {"date": date(2026, 11, day).isoformat(), "exit_code": code, "reason": f"r{code}"}


@pytest.mark.parametrize(
    ("codes", "wanted"),
    [
        ([0, 0], 0),
        ([0, 5], 5),
        ([5, 1], 1),
        ([1, 3, 5], 3),
        ([3, 6], 6),
        ([6, 70, 0], 70),
        ([5, 4], 4),
        ([5, 7], 7),
        ([], 0),
    ],
)
def test_exit_code_of_several_nights(codes: list[int], wanted: int) -> None:
    """What needs a person comes before what a retry may mend."""
    assert exit_code([result(1, c) for c in codes]) == wanted


def test_one_line_on_several_nights() -> None:
    """The reason counts the nights that are fine and names up to three that are not."""
    told = document([result(1, 0), *(result(d, 5) for d in range(2, 7))])
    assert told["reason"] == (
        "1 of 6 nights are fine; 2026-11-02 (5): r5; 2026-11-03 (5): r5; 2026-11-04 (5): r5; and 2 more"
    )


def test_an_ended_run_is_told_as_ended() -> None:
    """Signals have their own exit codes, whatever the nights before came to."""
    told = document([result(1, 3)], interrupted=15)
    assert told["exit_code"] == 143
    assert told["reason"] == "ended by SIGTERM; what is published is whole; 2026-11-01: r3"


def test_a_damaged_store_has_no_numbers_and_an_exit_code(tmp_path: Path) -> None:
    """The textfile is written all the same, so that the alarm of the exit code is heard."""
    config = job(tmp_path)
    run(config)
    manifest = store_of(config).folder(DAY) / "manifest.json"
    manifest.write_text(manifest.read_text().replace("2026", "2025"))
    text = prometheus(store_of(config), {"exit_code": 4})
    assert "docrecall_last_exit_code 4\n" in text
    assert "docrecall_mean{" not in text


def test_markdown_of_nothing() -> None:
    """A run that was ended before its first night has a summary too."""
    assert markdown(document([], interrupted=2)).startswith("## docrecall nightly: exit code 130")


def test_numbers_are_told_before_a_bad_night(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table of a backfill prints each night, and of one that failed its reason."""
    config = job(tmp_path, {DAY - timedelta(days=1): 8})
    deliver(tmp_path, DAY, hits(8, rank=[0] * 10))
    assert command(config, "--since", str(DAY - timedelta(days=1)), "--until", str(DAY)) == 3
    out = capsys.readouterr().out
    assert "2026-11-29: published" in out
    assert re.search(r"^2026-11-30: .*hits\.rank.*rank_base=0.*$", out, re.MULTILINE)
