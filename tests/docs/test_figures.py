"""The figures of the README are those of the code, and its words those of the diagnosis."""

from __future__ import annotations

import re
import runpy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DRAWN_BY = ("altair", "vl-convert-python")


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "figures.py"))


def test_figures_are_up_to_date(figures: dict[str, Any]) -> None:
    """`make figures` would write what is there; other versions than the locked ones may draw a little differently."""
    locked = (ROOT / "requirements" / "plots.txt").read_text(encoding="utf-8")
    if any(f"{package}=={version(package)} " not in locked for package in DRAWN_BY):
        pytest.skip("other versions of what draws than the locked ones")
    fresh = figures["draw"]()
    assert {path.name for path in figures["FIGURES"].iterdir()} == set(fresh)
    for name, svg in fresh.items():
        assert (figures["FIGURES"] / name).read_text(encoding="utf-8") == svg


def test_figures_are_shown(figures: dict[str, Any]) -> None:
    """Each figure stands in the README, small, and with words for those who cannot see it."""
    shown = dict(re.findall(r"!\[([^\]]{20,})\]\(docs/figures/([^)]+)\)", README))
    assert set(shown.values()) == {path.name for path in figures["FIGURES"].iterdir()}
    assert all(path.stat().st_size < 50_000 for path in figures["FIGURES"].iterdir())


def test_the_verdict_is_that_of_the_diagnosis(figures: dict[str, Any]) -> None:
    """The sentence below the figure is computed from the same data, and the words around it say what it says."""
    verdicts = figures["verdict"]().verdicts.filter(candidate="bm25-w32")
    (quoted,) = re.findall(r"^> (naive .*)$", README, re.MULTILINE)
    at_ten, at_512 = (verdicts.filter(cut=cut).row(0, named=True) for cut in ("10", "512tokens"))
    assert at_ten["verdict"].startswith(f"bm25-w32 against bm25-w256 at @10: {quoted} (")
    assert "documents prefer bm25-w32, whole passages prefer bm25-w256" in at_512["short"]
