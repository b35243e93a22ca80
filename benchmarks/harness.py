"""What benchmarks do alike: fresh processes in turns, logs that are removed again, a report. Standard library only.

A process that imports this is the parent: a child starts with its parent's peak memory as its own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from log import LogFiles

HERE = Path(__file__).resolve().parent
LOGS = HERE / "logs"

K = TypeVar("K", bound=Hashable)
S = TypeVar("S", bound=Hashable)
Run = dict[str, Any]  # what `measure.py` prints
Runs = dict[str, list[Run]]  # by peer


class BenchmarkError(Exception):
    """A peer failed, or two answers differ."""


def require_docrecall(code: str = "from docrecall import score") -> None:
    """Fail before any log is written. code: needs what the run needs of docrecall."""
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    if asked.returncode:
        said = asked.stderr.strip().rpartition("\n")[2]
        raise BenchmarkError(
            f"docrecall is not in this environment, or cannot do what this run needs ({said}). Install it there, "
            "or, where a script takes it, pass --without-docrecall to compare the others among each other."
        )


def run_in_turns(jobs: Mapping[K, tuple[str, LogFiles]], repeat: int) -> dict[K, list[Run]]:
    """Run each peer on its log once, then all again: A B C, A B C, ..."""
    runs: dict[K, list[Run]] = defaultdict(list)
    for turn in range(repeat):
        for key, (peer, files) in jobs.items():
            run = json.loads(run_script("measure.py", peer, str(files.folder)))
            progress(f"  {turn + 1}/{repeat} {files.folder.name} {peer}: {run['wall']:.2f} s")
            runs[key].append(run)
    return runs


def run_script(name: str, *arguments: str) -> str:
    """Run a script of this folder in a fresh interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, str(HERE / name), *arguments], capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise BenchmarkError(f"{name} {' '.join(arguments)} ended with {done.returncode}\n{done.stderr}")
    return done.stdout


@contextmanager
def logs(
    wanted: Mapping[S, LogFiles], is_there: Callable[[S], bool], write: Callable[[S], None], *, keep: bool
) -> Iterator[Mapping[S, LogFiles]]:
    """Have logs on disk; at the end, remove those that were not there before."""
    new = [log for log in wanted if not is_there(log)]
    try:
        for log in wanted:
            progress(f"log {wanted[log].folder.name}")
            if log in new:
                shutil.rmtree(wanted[log].folder, ignore_errors=True)  # what an earlier run left half done
                write(log)
        yield wanted
    finally:
        for log in new if not keep else []:
            shutil.rmtree(wanted[log].folder, ignore_errors=True)


def same_answers(answers: Iterable[tuple[str, Sequence[float]]], measures: Sequence[str], tolerance: float) -> None:
    """Compare the means that several gave with those of the first, measure by measure. answers: who, and the means."""
    (reference, expected), *others = answers
    for who, means in others:
        for measure, mean, wanted in zip(measures, means, expected, strict=True):
            # Written so that NaN differs from everything.
            if not abs(mean - wanted) <= tolerance:
                raise BenchmarkError(f"{measure}: {who} says {mean!r}, {reference} {wanted!r}")


def publish(title: str, sections: Iterable[str], into: Path | None) -> None:
    """Print a report, and put it into a file of results where one is named."""
    report = "\n\n".join(sections)
    print(report)
    if into is not None:
        into.write_text(f"# {title}\n\n{report}\n", encoding="utf-8")


def progress(message: str) -> None:
    """Say on stderr what is going on; the report alone goes to stdout."""
    print(message, file=sys.stderr, flush=True)
