"""Printing results: a failure to print is an error with a name, a reader that has had enough is none."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from docrecall.errors import DocrecallError, OutputError


@contextmanager
def printing() -> Iterator[None]:
    """Turn failures to print into an OutputError. A reader that has had enough is not one."""
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, DocrecallError):
        raise
    except OSError as error:
        drop_stdout()
        raise OutputError(f"the results could not be printed: {error.strerror or type(error).__name__}.") from None


def drop_stdout() -> None:
    """Send what is left in the buffer nowhere: Python would fail on it once more when it closes stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
