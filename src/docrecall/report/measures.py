"""The list of measures, generated from the registry."""

from __future__ import annotations

from docrecall.measures.definition import Definition
from docrecall.measures.registry import DEFAULT_MEASURES, REGISTRY
from docrecall.report.markdown import escape, markdown_table
from docrecall.report.terminal import console, grid

_COLUMNS = ["measure", "meaning", "parameters", "range", "without hits"]
_CUTS = (
    "A measure is written with its cut: doc_recall@3 looks at the first 3 chunks, doc_recall@3docs at the first 3\n"
    "documents in order of first appearance, doc_recall@2000tokens at the chunks that fit 2,000 tokens,\n"
    "doc_recall@context at what was passed to the model, doc_recall@all at every hit. doc_recall@1,3,10 is three\n"
    "measures. Parameters stand in brackets: evidence_recall(coverage=0.5,gap=2)@10. Measures of chunks and evidence\n"
    "need the table of evidence.\n"
    f"Without --measure: {' '.join(DEFAULT_MEASURES)}"
)


def measure_rows() -> list[list[str]]:
    """One row per measure: name, meaning, parameters, range, value of a scored unit without hits."""
    return [
        [d.name, d.meaning, _parameters(d), _range(d), "null" if d.no_hits is None else f"{d.no_hits:g}"]
        for d in REGISTRY.values()
    ]


def measures_markdown() -> str:
    """The table as it stands in the README."""
    rows = [[f"`{name}`", *map(escape, cells)] for name, *cells in measure_rows()]
    return markdown_table(_COLUMNS, rows, left=len(_COLUMNS))


def print_measures(how: str) -> None:
    """Print the list to stdout, for people or as Markdown."""
    if how == "markdown":
        print(measures_markdown())
        return
    out = console()
    out.print(grid(_COLUMNS, measure_rows(), left=len(_COLUMNS)))
    out.print(f"\n{_CUTS}")


def _parameters(definition: Definition) -> str:
    """The parameters with their defaults."""
    return ", ".join(f"{name}={p.default:g}" for name, p in definition.params.items())


def _range(definition: Definition) -> str:
    return "0 and up" if definition.high is None else f"0 to {definition.high:g}"
