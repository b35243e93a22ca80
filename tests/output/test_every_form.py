"""What stands beside a mean in every printed form: its ceiling, the decisions, the policies."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from docrecall.cli import main
from tests.small import write

HITS = pl.DataFrame({"query_id": ["q1", "q2", "q2"], "rank": [1, 1, 2], "doc_id": ["a", "x", "b"]})
GIVEN = {
    "hits": HITS,
    "qrels": pl.DataFrame({"query_id": ["q1", "q1", "q2"], "doc_id": ["a", "gone", "b"]}),
    "queries": pl.DataFrame(
        {"query_id": ["q1", "q2", "u1", "u2"], "label_status": [None, None, *["unanswerable"] * 2]}
    ),
    "documents": pl.DataFrame({"doc_id": ["a", "b", "x"]}),
    "requests": pl.DataFrame({"query_id": ["q1", "q2", "u1", "u2"], "answered": [True, False, True, False]}),
}


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    paths = [f"--{name}={write(tmp_path / f'{name}.parquet', frame)}" for name, frame in GIVEN.items()]
    return ["score", *paths, "--measure=doc_recall@3,1", "--stale=keep"]


def printed(argv: list[str], capsys: Any, shown: str) -> str:
    assert main([*argv, f"--format={shown}"]) == 0
    text: str = capsys.readouterr().out
    return text.replace("\\", "")


@pytest.mark.parametrize("shown", ["table", "markdown"])
def test_for_people(shown: str, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The ceiling is in the table of means, the rates in one of their own, the policies in a line."""
    text = printed(argv, capsys, shown)
    lines = text.splitlines()
    for measure in ("doc_recall@3", "doc_recall@1"):
        assert "0.7500" in next(line for line in lines if measure in line)  # the index has 1/2 and 1/1
    rates = next(i for i, line in enumerate(lines) if "over_refusal_rate" in line)
    assert "0.5000" in lines[rates + 2]
    assert "options: stale='keep'" in text


def test_json(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """All policies are in the document, and their digest."""
    document = json.loads(printed(argv, capsys, "json"))
    assert document["options"]["stale"] == "keep"
    assert document["options"]["order"] == "rank"
    assert document["runs"][0]["decisions"]["decline_f1"] == 0.5


@pytest.mark.parametrize("shown", ["csv", "parquet"])
def test_flat(shown: str, argv: list[str], capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Decisions and policies are columns, the same in every row of a run."""
    assert main([*argv, f"--format={shown}"]) == 0
    out = io.BytesIO(capfdbinary.readouterr().out)
    frame = pl.read_csv(out) if shown == "csv" else pl.read_parquet(out)
    assert frame["ceiling"].to_list() == [0.75, 0.75]
    assert frame["stale"].to_list() == ["keep", "keep"]
    assert frame["unit"].to_list() == ["request", "request"]
    assert frame["decline_precision"].to_list() == [0.5, 0.5]
    assert frame["declined_unanswerable"].to_list() == [1, 1]
