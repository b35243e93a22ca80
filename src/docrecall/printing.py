"""What commands print besides results: progress for whoever watches, and failures to print as errors of ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from docrecall.errors import DocrecallError, OutputError

if TYPE_CHECKING:
    from docrecall.score import Progress


@contextmanager
def progress() -> Iterator[Progress | None]:
    """Give a function that shows rows, rate and time left on stderr, or None where nobody watches."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich import progress as bars  # noqa: PLC0415

    from docrecall.report.terminal import console  # noqa: PLC0415

    columns = (
        bars.TextColumn("{task.completed:,} of {task.total:,} rows"),
        bars.BarColumn(),
        bars.TextColumn("{task.fields[rate]}"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=1, rate="", visible=False)

        def report(done: int, total: int) -> None:
            speed = shown.tasks[task].speed
            rate = f"{speed / 1e6:.1f} M rows/s" if speed else ""
            shown.update(task, completed=done, total=total, rate=rate, visible=done < total)

        yield report


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
