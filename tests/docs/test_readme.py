"""Documentation runs."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import polars as pl
import pytest

from docrecall import errors
from docrecall.cli import app, main
from docrecall.convert import convert
from docrecall.measures.registry import REGISTRY
from docrecall.sources.mapping import parse_mapping

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


CHUNK_SIZES = (ROOT / "docs" / "chunk-sizes.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands() -> list[str]:
    shown = [*blocks("console"), *blocks("console", CHUNK_SIZES)]
    return [line[2:] for block in shown for line in block.splitlines() if line.startswith("$ docrecall")]


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each Python block of the README runs from the top of the repository, asserts included."""
    monkeypatch.chdir(ROOT)
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("command", commands())
def test_commands_run(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each docrecall command of the README and its parts ends well when it is given from the top of the repository."""
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)[1:]) == 0
    out = capsys.readouterr().out
    if "--explain" in command:
        assert "[hits]" in out
    else:
        # Ten questions have labels for pages that the index serves in another version only.
        assert f"{148 if '--documents' in command else 158} of 173 units scored" in out
    assert ("in_budget" in out) == ("--funnel" in command)


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


def test_mappings_of_the_docs_are_mappings(tmp_path: Path) -> None:
    """Every TOML block of docs/formats.md is a mapping, and the first reads labels of its shape."""
    blocks_ = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "formats.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks_) >= 4
    for number, text in enumerate(blocks_):
        (tmp_path / f"{number}.toml").write_text(text)
        assert parse_mapping(tmp_path / f"{number}.toml")
    labels = tmp_path / "cloud.tsv"
    labels.write_text("query-id\tcorpus-id\tscore\nq1\tdoc_7-10-25\t1\nq1\tdoc_7-30-45\t1\nq2\tdoc_8-0-5\t1\n")
    converted = convert(tmp_path / "out", qrels=labels, evidence=labels, map=tmp_path / "0.toml")
    assert converted.rows["written"].to_list() == [3, 3]
    assert pl.read_parquet(tmp_path / "out" / "qrels.parquet").select("query_id", "doc_id").n_unique() == 2
    evidence = pl.read_parquet(tmp_path / "out" / "evidence.parquet")
    assert evidence.select("doc_id", "start", "end").row(0) == ("doc_7", 10, 25)
