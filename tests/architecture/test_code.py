"""Sizes, prints, tests and the table of errors."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from docrecall import errors

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "docrecall").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
MOST_LINES = 400


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_file_is_small(path: Path) -> None:
    """A file of more than 400 lines holds more than one thing. The definition is one thing, to be read at one go."""
    most = 600 if path.name == "reference.py" else MOST_LINES
    assert len(path.read_text(encoding="utf-8").splitlines()) <= most


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_only_what_prints_prints(path: Path) -> None:
    """Only the command and the reports print; everything else gives values back."""
    if path.name in ("cli.py", "demo.py") or path.parent.name == "report":
        return
    calls = [n.func for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Call)]
    assert "print" not in {call.id for call in calls if isinstance(call, ast.Name)}


@pytest.mark.parametrize("path", TESTS, ids=label)
def test_every_test_says_what_it_holds(path: Path) -> None:
    """Each test has a docstring that says what must be so."""
    functions = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.FunctionDef)]
    silent = [f.name for f in functions if f.name.startswith("test_") and not ast.get_docstring(f)]
    assert silent == []


@pytest.mark.parametrize(
    ("error", "exit_code", "kinds"),
    [
        (errors.DocrecallError, 70, (Exception,)),
        (errors.UsageError, 2, (ValueError,)),
        (errors.MeasureError, 2, (ValueError, errors.UsageError)),
        (errors.DataError, 3, (ValueError,)),
        (errors.InputError, 4, (OSError,)),
        (errors.IncompleteError, 5, (OSError,)),
        (errors.LockedError, 7, ()),
        (errors.CanaryError, 70, ()),
        (errors.WorkerError, 70, ()),
        (errors.InputTypeError, 2, (TypeError,)),
        (errors.OutputError, 6, (OSError,)),
        (errors.ExtraError, 2, (ImportError,)),
        (errors.SplitUnitError, 70, ()),
    ],
)
def test_error_tree(error: type[errors.DocrecallError], exit_code: int, kinds: tuple[type[Exception], ...]) -> None:
    """Each class has its exit code, and is what Python users would catch; the module's table says the same."""
    assert error.exit_code == exit_code
    assert issubclass(error, (errors.DocrecallError, *kinds)[0])
    assert all(issubclass(error, kind) for kind in kinds)
    assert str(error("what happened")) == "what happened"
    assert re.search(rf"^ +{error.__name__} +{exit_code}\b", errors.__doc__ or "", re.MULTILINE)


def test_no_other_error_classes() -> None:
    """The table above is complete."""
    tree: set[type] = set()
    todo: list[type] = [errors.DocrecallError]
    while todo:
        tree.add(todo[-1])
        todo += todo.pop().__subclasses__()
    assert len(tree) == 13


def test_data_errors_always_have_findings() -> None:
    """A fault of columns has an empty frame with the columns of every other."""
    assert errors.DataError("x").findings.schema == errors.findings_schema()
    assert errors.DataError("x").findings.is_empty()
