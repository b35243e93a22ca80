"""Score retrieval logs at document level: both cuts, every query and row accounted for.

Start with `score`; `doc_recall` is the definition for one query. The command `docrecall` does the same on files.
"""

from docrecall.errors import (
    DataError,
    DocrecallError,
    InputError,
    InputTypeError,
    MeasureError,
    OutputError,
    UsageError,
)
from docrecall.options import Options
from docrecall.reference import doc_recall
from docrecall.score import score
from docrecall.scores import Scores
from docrecall.store import load
from docrecall.version import __version__

__all__ = [
    "DataError",
    "DocrecallError",
    "InputError",
    "InputTypeError",
    "MeasureError",
    "Options",
    "OutputError",
    "Scores",
    "UsageError",
    "__version__",
    "doc_recall",
    "load",
    "score",
]
