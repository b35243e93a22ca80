"""Documentation runs."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

from docrecall import errors
from docrecall.cli import app, main
from docrecall.measures.registry import REGISTRY

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands() -> list[str]:
    return [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ docrecall")]


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code: str) -> None:
    """Each Python block of the README runs, asserts included."""
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("command", commands())
def test_commands_run(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each docrecall command of the README ends well when it is given from the top of the repository."""
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)[1:]) == 0
    expected = "[hits]" if "--explain" in command else "158 of 173 units scored"
    assert expected in capsys.readouterr().out


def test_there_is_something_to_run() -> None:
    """The README has a Python example and a command, so the tests above look at something."""
    assert blocks("python")
    assert commands()


def test_measures_are_those_of_the_registry() -> None:
    """The table in the README is what `make docs` would write."""
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    assert generate["with_measures"](README) == README
    assert all(f"`{name}`" in README for name in REGISTRY)


def test_exit_codes_are_those_of_the_errors() -> None:
    """Every exit code of an error class stands in the README's table."""
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.DocrecallError)]
    assert classes
    for error in classes:
        assert re.search(rf"^\| {error.exit_code} \|", README, re.MULTILINE), error


def test_every_command_is_documented() -> None:
    """Each command has a first line of help, and the README or its parts name it."""
    names = [name for name in app if not name.startswith("-")]
    assert names
    assert all(app[name].help for name in names)
    assert all(f"docrecall {name}" in README for name in names)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each example runs and prints something."""
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
