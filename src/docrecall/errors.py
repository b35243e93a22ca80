"""The error tree. Every failure that a user can cause is one of these, and each class has its exit code.

    DocrecallError            70 when raised bare: a fault of ours
      UsageError               2 a policy or an argument is not what it may be (a ValueError)
        MeasureError           2 a measure that does not parse (a ValueError)
      DataError                3 the tables broke the contract; `.findings` says where (a ValueError)
      InputError               4 a file is absent, unreadable, damaged, or changed while it was read (an OSError)
      IncompleteError          5 a night that was not delivered, or not yet as a whole (an OSError)
      InputTypeError           2 an argument of a kind that is no table (a TypeError)
      OutputError              6 the results could not be written (an OSError)
      ExtraError               2 an optional part that is not installed (an ImportError)
      LockedError              7 another run works on the same night
      SplitUnitError          70 a batch holds a part of a unit: the planner is wrong, never the number
      CanaryError             70 a sample that was scored a second time, by the definition, has other values
      WorkerError             70 the process that does the work died

Messages say what was found, what was expected and what to do. They name files, tables, columns, counts and ids,
and never print other cell text.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from docrecall.show import printable

if TYPE_CHECKING:
    import polars as pl

_SHOWN = 20  # runs of a log that an error names


class DocrecallError(Exception):
    """The root of everything that docrecall raises on purpose."""

    exit_code = 70


class UsageError(DocrecallError, ValueError):
    """A policy, an argument or a combination of them that has no meaning."""

    exit_code = 2

    @classmethod
    def no_such_run(cls, name: object, known: Iterable[str]) -> UsageError:
        """Name the runs that there are, and the nearest. name: what was asked for, which may be no text."""
        asked = repr(printable(name)) if isinstance(name, str) else printable(repr(name))
        runs = sorted(known)
        shown = ", ".join(map(printable, runs[:_SHOWN]))
        more = f" and {len(runs) - _SHOWN:,} more" if len(runs) > _SHOWN else ""
        return cls(f"no run is called {asked}.{nearest(str(name), runs)} The runs are {shown}{more}.")


class MeasureError(UsageError):
    """A measure that is not in the grammar, or not in this version."""


class DataError(DocrecallError, ValueError):
    """The tables broke the contract. `findings` has one row per broken rule (columns of `Scores.findings`)."""

    exit_code = 3

    def __init__(self, message: str, findings: pl.DataFrame | None = None) -> None:
        super().__init__(message)
        self._findings = findings

    @property
    def findings(self) -> pl.DataFrame:
        """The broken rules as a frame; empty when the fault is in columns or types, before any row was read."""
        return findings_schema().to_frame() if self._findings is None else self._findings


class InputError(DocrecallError, OSError):
    """A file that cannot be read as what it should be."""

    exit_code = 4

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class IncompleteError(DocrecallError, OSError):
    """Input that is not there yet: a night was not delivered, or a month has a night that was not published."""

    exit_code = 5

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class InputTypeError(DocrecallError, TypeError):
    """An argument that is neither a path, a frame nor an Arrow stream."""

    exit_code = 2


class OutputError(DocrecallError, OSError):
    """The results could not be written; what stood there before still stands."""

    exit_code = 6

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ExtraError(DocrecallError, ImportError):
    """An optional part of docrecall that is not installed."""

    exit_code = 2

    @classmethod
    def not_installed(cls, what: str, package: str, extra: str) -> ExtraError:
        """Name the extra that brings a package which is not there."""
        return cls(f"{what} need {package}, which is not installed. Install it with: pip install 'docrecall[{extra}]'")


class LockedError(DocrecallError):
    """Another run holds the lock of what this one would write."""

    exit_code = 7


class SplitUnitError(DocrecallError):
    """A unit (one query of one run) reached the kernel in parts."""


class CanaryError(DocrecallError):
    """The fast path and `reference.py` disagree on a unit. Nothing is published then."""


class WorkerError(DocrecallError):
    """The process that does the work of a night died of a signal, for want of memory, or of a panic."""


def findings_schema() -> pl.Schema:
    """Give the columns of `DataError.findings` and `Scores.findings`."""
    import polars as pl  # noqa: PLC0415 - `docrecall --help` answers before polars would be loaded

    return pl.Schema(
        {
            "code": pl.String(),
            "severity": pl.String(),
            "table": pl.String(),
            "column": pl.String(),
            "n_rows": pl.Int64(),
            "n_queries": pl.Int64(),
            "examples": pl.List(pl.String()),
            "file": pl.String(),
        }
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Give ` Did you mean "x"?` for the closest known name, or an empty string."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f' Did you mean "{close[0]}"?' if close else ""
