"""The list of measures, generated from the registry."""

from __future__ import annotations

from docrecall.measures.definition import Definition
from docrecall.measures.registry import DEFAULT_MEASURES, REGISTRY
from docrecall.report.files import markdown_table
from docrecall.report.terminal import console, grid

_COLUMNS = ["measure", "meaning", "range", "without hits"]
_CUTS = (
    "A measure is written with its cut: doc_recall@3 looks at the first 3 chunks, doc_recall@3docs at the first 3\n"
    "documents in order of first appearance, doc_recall@all at every hit. doc_recall@1,3,10 is three measures.\n"
    f"Without --measure: {' '.join(DEFAULT_MEASURES)}"
)


def measure_rows() -> list[list[str]]:
    """One row per measure: name, meaning, range, value of a scored unit without hits."""
    return [
        [d.name, d.meaning, _range(d), "null" if d.no_hits is None else f"{d.no_hits:g}"] for d in REGISTRY.values()
    ]


def measures_markdown() -> str:
    """The table as it stands in the README."""
    return markdown_table(_COLUMNS, [[f"`{name}`", *cells] for name, *cells in measure_rows()])


def print_measures(how: str) -> None:
    """Print the list to stdout, for people or as Markdown."""
    if how == "markdown":
        print(measures_markdown())
        return
    out = console()
    out.print(grid(_COLUMNS, measure_rows(), left=len(_COLUMNS)))
    out.print(f"\n{_CUTS}")


def _range(definition: Definition) -> str:
    return "0 and up" if definition.high is None else f"0 to {definition.high:g}"
