"""A module imports only what stands above it; the core needs nothing that is heavy or optional."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "docrecall"

# The order in which data flows, and in which the code is best read. New modules take their place here.
ORDER = [
    name
    for line in (
        "version reference conventions show errors tables options",
        "measures.definition measures.documents measures.repeats measures.passages measures.foreign",
        "measures.registry measures.grammar",
        "findings exact parallel",
        "sources.formats sources.files sources.footers sources.mapping sources.table",
        "sources.lines sources.values sources.apply",
        "sources.beir sources.trec sources.delimited sources.jsonl sources.spool",
        "sources.text sources.read sources.inputs",
        "contract.frames contract.needs contract.schema contract.rules contract.ids contract.hits",
        "contract.evidence contract.pieces contract.labels contract.index contract.requests contract.lookup",
        "kernel.batch kernel.labels contract.known contract.overlap kernel.steps kernel.match kernel.spans",
        "kernel.family kernel.passages kernel.counts kernel.per_query kernel.lists",
        "stats.arguments stats.sample stats.streams stats.draws stats.student stats.signs stats.permutations",
        "stats.intervals stats.corrections stats.effects stats.orders stats",
        "stretches proof shards plan rowgroups memory universe tally accounting fingerprints decisions units slices",
        "summary scores ledger",
        "funnel convention_means",
        "cuts verdicts pairs diagnose",
        "report.words report.structured staging merge journal store flips parted score reopen compare",
        "writers convert",
        "plot.frames plot.theme plot.lines plot.dots plot.bars plot",
        "report.terminal report.blocks report.markdown report.latex report.files report.diagnosis report.comparison",
        "report.html report.display report.measures demo",
        "arguments printing commands",
        "nightly.toml nightly.days nightly.reader nightly.places nightly.config nightly.store nightly.histograms",
        "nightly.canary nightly.folder nightly.times nightly.inputs nightly.history nightly.numbers nightly.baseline",
        "nightly.gate nightly.job nightly.worker nightly.watch",
        "nightly.total nightly.verify nightly.outputs nightly.example report.nightly nightly.cli",
        "cli",
    )
    for name in line.split()
]
OUTSIDE = {
    "",
    "__main__",
    "measures",
    "sources",
    "contract",
    "kernel",
    "report",
    "nightly",
}  # names alone: they may import any


def modules() -> dict[str, ast.Module]:
    """Module name inside the package -> its syntax tree."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


MODULES = modules()


def ours(tree: ast.Module) -> set[str]:
    """What a module imports of the package, at any depth of its code."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where a name comes from"
            if (node.module or "").split(".")[0] == "docrecall":
                base = (node.module or "").removeprefix("docrecall").lstrip(".")
                inner = {f"{base}.{alias.name}".lstrip(".") for alias in node.names}
                found |= {name if name in MODULES else base for name in inner}
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("docrecall") for alias in node.names)
    return found


def test_every_module_has_its_place() -> None:
    """The order lists each module once."""
    assert sorted(ORDER) == sorted(set(MODULES) - OUTSIDE)


@pytest.mark.parametrize("name", ORDER)
def test_imports_point_upwards(name: str) -> None:
    """A module imports only what stands before it in the order, inside functions too."""
    assert ours(MODULES[name]) <= set(ORDER[: ORDER.index(name)])


@pytest.mark.parametrize("name", sorted(OUTSIDE - {"", "__main__"}))
def test_packages_hold_no_code(name: str) -> None:
    """The __init__ of a part is its docstring."""
    assert len(MODULES[name].body) == 1


def test_nothing_is_imported_by_name() -> None:
    """But for the public names, which load on first use, and for notebooks, which ask a result for its report."""
    callers = {
        name
        for name, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.alias) and getattr(node, "id", getattr(node, "name", "")) in _BY_NAME
    }
    assert callers == {"", "show"}


def test_reference_stands_alone() -> None:
    """The definition needs neither polars nor anything of ours, so that it can be read and copied by itself."""
    tree = MODULES["reference"]
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {str(name).split(".")[0] for name in imported} <= sys.stdlib_module_names | {"__future__"}


_BY_NAME = ("import_module", "__import__")
HEAVY = (
    "pandas", "duckdb", "scipy", "altair", "vl_convert", "narwhals", "great_tables", "pyspark", "deltalake",
    "pyiceberg", "matplotlib", "sklearn", "IPython", "pytest", "hypothesis", "pyarrow.parquet", "pyarrow.dataset",
)  # fmt: skip


@pytest.mark.parametrize(
    ("code", "also"),
    [
        ("import docrecall", ("cyclopts", "rich")),
        (
            "import docrecall as d; d.score(d_hits, d_qrels, 'doc_recall@3').summary()",
            ("cyclopts", "rich"),
        ),
        ("from docrecall.cli import main; main(['--help'])", ()),
        ("from docrecall.cli import main; main(['measures'])", ()),
        ("import docrecall as d; d.score(d_hits, d_qrels, 'doc_recall@3docs')", ("cyclopts", "rich")),
        ("import docrecall.reference", ()),
    ],
    ids=["import", "score", "--help", "measures", "documents", "reference"],
)
def test_nothing_heavy_is_loaded(code: str, also: tuple[str, ...]) -> None:
    """The package, the scoring of frames and the first commands load none of the optional or heavy packages."""
    program = (
        "import sys\n"
        "import polars as pl\n"
        "d_hits = pl.DataFrame({'query_id': ['q'], 'rank': [1], 'doc_id': ['a']})\n"
        "d_qrels = d_hits.drop('rank')\n"
        f"{code}\n"
        f"print([name for name in {HEAVY + also} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_import_leaves_logging_and_warnings_alone() -> None:
    """Importing sets up nothing for the whole process."""
    program = (
        "import logging, sys, warnings\n"
        "import cyclopts, numpy, polars, pyarrow, rich\n"
        "before = (list(logging.root.handlers), list(warnings.filters), sys.excepthook)\n"
        "import docrecall, docrecall.cli\n"
        "assert before == (list(logging.root.handlers), list(warnings.filters), sys.excepthook)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
