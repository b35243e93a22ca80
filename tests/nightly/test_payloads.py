"""Text from data and paths reaches no terminal, spreadsheet, label or file system as more than text."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import unicodedata
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest

from tests.nightly.nights import DAY, command, job, store_of
from tests.nightly.test_outputs import LINE
from tests.small import SECRET, write

PAYLOADS = [
    # ANSI and other control sequences
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b[2J\x1b[H", "\x9b31m", "a\rb", "a\nb", "a\x08b", "\x00nul", "a\tb",
    "\x7f", "\u2028line", "\u2029par", "\u202egnp.exe", "\u2066x\u2069", "\ufeffbom", "\u200bzero", "\x85next",
    # formulas of spreadsheets
    "=1+1", "=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "=HYPERLINK(\"http://x\",\"y\")", "\t=1", "\r=1", "'=1",
    # paths
    "../../etc/passwd", "..", ".", "/etc/passwd", "C:\\x", "a/../b", "~root", "file://x", "%2e%2e%2f", "%00", "a[b]*?",
    "[", "]", "{date}", "date=2026-11-30", "__HIVE_DEFAULT_PARTITION__", "run_id=x",
    # markup, templates, shells, SQL, JSON, Prometheus
    "<script>alert(1)</script>", "<img src=x onerror=y>", "[x](javascript:y)", "![i](http://x)", "|a|b|", "`x`",
    "$(touch x)", "`touch x`", "; touch x", "${HOME}", "{{7*7}}", "' OR 1=1 --", '"}', '\\', '\\"', 'a"b', "a\\nb",
    "**b**", 'x"} 1\ndocrecall_mean{run="forged', "[bold]x[/bold]", "%s%n", "é", "e\u0301", "\U0001f600",
    "x" * 5_000, " ", "  x ",
]  # fmt: skip


def test_there_are_enough() -> None:
    """At least fifty payloads, each once."""
    assert len(PAYLOADS) == len(set(PAYLOADS)) >= 50


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A night whose runs, queries, documents and slices are called by the payloads, with every output."""
    more = '[data]\nmax_stale = 0.5\n[[gates]]\nmeasure = "doc_recall@1"\nmin = 0.9\n[[gates]]\nmeasure = "doc_rr@3"\n'
    more += 'by = "lang"\nmin_n = 2\nmin = 0.5\n[outputs]\nprometheus = "x.prom"\nmarkdown = "x.md"\njson = "x.json"\n'
    config = job(tmp_path / "job", {}, more)
    text = config.read_text().replace('"all"', '"hits"')
    text = text.replace("[score]", 'queries = "labels/queries.parquet"\n[score]\nslices = ["lang"]')
    config.write_text(text)
    ids = PAYLOADS
    docs = [q if n % 2 else "x" for n, q in enumerate(ids)]
    hits = pl.DataFrame({"run_id": ids, "query_id": ids, "rank": [1] * len(ids), "doc_id": docs})
    write(tmp_path / "job" / "logs" / f"date={DAY}" / "x.parquet", hits.with_columns(query_text=pl.lit(SECRET)))
    write(tmp_path / "job" / "labels" / "qrels.parquet", pl.DataFrame({"query_id": ids, "doc_id": ids}))
    queries = pl.DataFrame({"query_id": ids, "lang": ids, "query": [SECRET] * len(ids)})
    write(tmp_path / "job" / "labels" / "queries.parquet", queries)
    return config


def safe(text: str) -> None:
    """No character that a terminal would act upon, and no text of a query."""
    bad = {c for c in text if c != "\n" and (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp"))}
    assert not bad, f"{sorted(map(ascii, bad))}"
    assert SECRET not in text


def test_every_output(hostile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Terminal, JSON, log lines, Prometheus, Markdown and CSV hold the payloads as text and nothing else."""
    before = everything(hostile.parent.parent)
    seen: dict[str, str] = {}
    for name, options in {"table": [], "json": ["--format", "json"], "log": ["--log", "json"]}.items():
        assert command(hostile, "--date", str(DAY), *options) == 1
        out, err = capsys.readouterr()
        seen |= {name: out, f"{name}, stderr": err}
    for name, options in {"show": ["show"], "show json": ["show", "--format", "json"]}.items():
        assert command(options[0], hostile, "--date", str(DAY), *options[1:]) == 0
        seen[name] = capsys.readouterr().out
    assert command("total", hostile, "--since", str(DAY), "--until", str(DAY), "--by", "lang") == 0
    seen["total"] = capsys.readouterr().out
    for name in ("x.prom", "x.md", "x.json"):
        seen[name] = (hostile.parent / name).read_text()
    for name, text in seen.items():
        assert text, name
        safe(text)
    told = json.loads(seen["json"])
    assert {r["run_id"] for r in told["nights"][0]["runs"]} == set(PAYLOADS)
    for line in seen["log, stderr"].splitlines():
        json.loads(line)
    new = everything(hostile.parent.parent) - before
    assert all(path.startswith(("job/store/", "job/x.")) or path in ("job/store",) for path in new), new


def test_prometheus_has_one_sample_per_line(hostile: Path) -> None:
    """No label ends a line or a label, so that nobody forges a sample."""
    assert command(hostile, "--date", str(DAY)) == 1
    lines = (hostile.parent / "x.prom").read_text().splitlines()
    assert all(line.startswith("# ") or LINE.fullmatch(line) for line in lines)
    assert sum(line.startswith('docrecall_mean{run="') for line in lines) == 2 * len(PAYLOADS)
    assert not any(line.startswith('docrecall_mean{run="forged') for line in lines)


def test_csv_runs_nothing(hostile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cell that a spreadsheet would run begins with an apostrophe, and rows stay rows."""
    assert command(hostile, "--date", str(DAY)) == 1
    capsys.readouterr()
    span = ["--since", str(DAY), "--until", str(DAY)]
    assert command("total", hostile, *span, "--by", "lang", "--format", "csv") == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(rows) == 1 + 2 * len(PAYLOADS)
    for row in rows[1:]:
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row[:3]), row


def test_markdown_shows_text(hostile: Path) -> None:
    """No tag, link or image, and every table row has its columns."""
    assert command(hostile, "--date", str(DAY)) == 1
    text = (hostile.parent / "x.md").read_text()
    bare = re.sub(r"\\.", "", text)
    assert not re.search(r"[<>]|\]\(|!\[", bare)
    rows = [line for line in bare.splitlines() if line.startswith("| ")]
    assert {row.count("|") for row in rows} == {4, 6}


def test_partition_values_stay_in_their_folder(tmp_path: Path) -> None:
    """A run that a folder names is a name: percent-encoded paths in it are decoded, and lead nowhere."""
    config = job(tmp_path / "job", {})
    before = everything(tmp_path)
    named = [p for p in PAYLOADS if p != "__HIVE_DEFAULT_PARTITION__" and len(p) < 80]
    rows = pl.DataFrame({"query_id": ["q00"], "rank": [1], "doc_id": ["d0"]})
    for number, payload in enumerate(named):
        folder = f"run_id={quote(payload, safe='')}"
        write(tmp_path / "job" / "logs" / f"date={DAY}" / folder / f"{number}.parquet", rows)
    assert command(config, "--date", str(DAY)) == 0
    night = store_of(config).read(DAY)
    assert night is not None
    assert set(night.frame("night.parquet")["run_id"]) == set(named)
    new = everything(tmp_path) - before
    assert all(path.startswith(("job/store", "job/logs")) for path in new)


def test_brackets_in_the_path_of_the_job(tmp_path: Path) -> None:
    """A folder called [ab] is not read as a or b, and one called {x} holds no place for a date."""
    for name in ("a", "[ab]", "{x}", "*"):
        config = job(tmp_path / name, {DAY: 3 if name == "a" else 8})
        config.write_text(config.read_text().replace("date={date}", "date={date}/*.parquet"))
    for name, mean in (("[ab]", 0.8), ("{x}", 0.8), ("*", 0.8), ("a", 0.3)):
        config = tmp_path / name / "nightly.toml"
        assert command(config, "--date", str(DAY)) == 0
        night = store_of(config).read(DAY)
        assert night is not None
        assert night.frame("night.parquet")["mean"][0] == mean


@pytest.mark.parametrize("payload", [p for p in PAYLOADS if "\x00" not in p and len(p) < 100])
def test_dates_and_configurations_are_never_paths(
    payload: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A payload as a date, or as the name of a configuration, is one safe message with exit code 2 or 4."""
    config = job(tmp_path, {})
    assert command(config, f"--date={payload}") == 2
    safe(capsys.readouterr().err)
    missing = tmp_path / "none" / f"{payload}.toml"
    assert command(str(missing), "--date", str(DAY)) == 4
    safe(capsys.readouterr().err)
    assert not (tmp_path / "store").exists()


def test_errors_name_ids_and_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A contract that broke, in a row whose other cells hold text of queries, prints none of them."""
    config = job(tmp_path, {DAY - timedelta(days=1): 3})
    rows = pl.DataFrame({"query_id": [PAYLOADS[0]], "rank": [0], "doc_id": ["d"], "query_text": [SECRET]})
    write(tmp_path / "logs" / f"date={DAY}" / "x.parquet", rows)
    assert command(config, "--date", str(DAY), "--log", "json") == 3
    out, err = capsys.readouterr()
    safe(out)
    safe(err)
    assert "red" in out


def everything(folder: Path) -> set[str]:
    """All names below a folder."""
    found: Any = set()
    for at, folders, files in os.walk(folder):
        found |= {os.path.relpath(Path(at) / name, folder) for name in (*folders, *files)}
    return found
