"""Score retrieval logs at document level: both cuts, every query and row accounted for.

Start with `score`; `doc_recall` is the definition for one query. The command `docrecall` does the same on files.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from docrecall.version import __version__

if TYPE_CHECKING:
    from docrecall import stats
    from docrecall.compare import Comparison, compare
    from docrecall.convention_means import convention_means
    from docrecall.diagnose import Diagnosis, diagnose
    from docrecall.errors import (
        DataError,
        DocrecallError,
        InputError,
        InputTypeError,
        MeasureError,
        OutputError,
        UsageError,
    )
    from docrecall.funnel import Funnel, funnel
    from docrecall.options import Options
    from docrecall.reference import doc_recall
    from docrecall.score import score
    from docrecall.scores import Scores
    from docrecall.store import load

__all__ = [
    "Comparison",
    "DataError",
    "Diagnosis",
    "DocrecallError",
    "Funnel",
    "InputError",
    "InputTypeError",
    "MeasureError",
    "Options",
    "OutputError",
    "Scores",
    "UsageError",
    "__version__",
    "compare",
    "convention_means",
    "diagnose",
    "doc_recall",
    "funnel",
    "load",
    "score",
    "stats",
]

# Loaded on first use: `docrecall --help` answers before polars would have been imported.
_HOMES = {
    "Comparison": "compare",
    "compare": "compare",
    "Diagnosis": "diagnose",
    "Funnel": "funnel",
    "convention_means": "convention_means",
    "diagnose": "diagnose",
    "funnel": "funnel",
    "Options": "options",
    "Scores": "scores",
    "doc_recall": "reference",
    "load": "store",
    "score": "score",
    **dict.fromkeys((name for name in __all__ if name.endswith("Error")), "errors"),
}


def __getattr__(name: str) -> Any:
    if name == "stats":
        return import_module("docrecall.stats")
    if name not in _HOMES:
        raise AttributeError(f"module 'docrecall' has no attribute {name!r}")
    value = getattr(import_module(f"docrecall.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    def __setattr__(self, name: str, value: object) -> None:
        # Importing the module docrecall.score would bind it here, where the function of that name belongs.
        functions = ("score", "funnel", "compare", "diagnose", "convention_means")
        if not (name in functions and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
