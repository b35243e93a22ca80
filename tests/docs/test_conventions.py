"""docs/conventions.md says what the code says, and runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from docrecall.cli import main
from docrecall.conventions import CASE, CASE_K, CASE_RELEVANT, CONVENTIONS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
def test_python_blocks_run(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the top of the repository, asserts included."""
    monkeypatch.chdir(ROOT)
    exec(compile(code, "conventions.md", "exec"), {})


def test_the_command_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """And shows the table that the page is about."""
    monkeypatch.chdir(ROOT)
    (command,) = re.findall(r"^\$ (docrecall .*)$", TEXT, re.MULTILINE)
    assert main(shlex.split(command)[1:]) == 0
    assert "cut_then_dedupe" in capsys.readouterr().out


def test_tables_are_those_of_the_code() -> None:
    """Every convention with its value or treatment, and every evaluator with its version, number and note."""
    for convention in CONVENTIONS:
        value = convention.value(CASE, CASE_RELEVANT, CASE_K)
        if convention.of_mean:
            row = _treatment(convention.value([], {"a"}, 1)), _treatment(convention.value([("a", 1.0)], set(), 1))
            assert f"| `{convention.name}` | {row[0]} | {row[1]} |" in TEXT
            seen_in = [f"{s.evaluator} {s.version}{f' ({s.note})' if s.note else ''}" for s in convention.seen_in]
            assert all(seen in TEXT for seen in seen_in)
        else:
            assert f"| `{convention.name}` | {value:.2f} | {convention.meaning} |" in TEXT
            for s in convention.seen_in:
                assert f"| {s.evaluator} | {s.version} | {s.printed:.2f} | `{convention.name}` | {s.note} |" in TEXT


def _treatment(value: float | None) -> str:
    return "left out" if value is None else f"{value:.0f}"
