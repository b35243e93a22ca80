"""Say where the time of a run goes, step by step, in CPU seconds and in bare scans of the same log.

python benchmarks/stages.py                # 10 M rows
python benchmarks/stages.py --full         # 100 M rows

One batch at a time, in one process: what threads do beside each other cannot be told apart. A run as it is takes less
wall and more CPU time. Steps are named functions of docrecall, and each second belongs to the innermost of them.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import machine
from harness import HERE, LOGS, BenchmarkError, logs, progress, publish, require_docrecall, run_script
from log import CUTS, LogFiles, LogSpec, row_count
from run import write_log
from table import digits, millions, table

RESULTS = HERE / "results-stages.md"
REST = "everything else"
# Step -> the functions that it stands for, by the place where they are called.
STEPS = {
    "labels: read and checked": ["score.check_known"],
    "labels: cut to each batch": ["kernel.labels.Labels.of"],
    "proof that the log is sorted and ranks are unique": ["score.layouts_of"],
    "rows that may hold a labelled document": ["kernel.match._read"],
    "exact match on the ids": ["kernel.match._exact"],
    "positions of documents": ["kernel.match.Matched.doc_places"],
    "values of each query": ["kernel.per_query._values", "kernel.per_query._with_values", "score.sorted_by"],
    "statuses, decisions, accounts": [
        "kernel.per_query.with_status",
        "kernel.per_query._decided",
        "ledger.Ledger.add",
        "kernel.labels.Labels.annotate",
        "kernel.per_query._count",
        "tally.Tally.add",
        "tally.Tally.table",
        "score.decided",
    ],
    "near misses, and whether hits and labels meet": ["ledger.Ledger.cross_check", "score.near_documents"],
    "results: encoded and written": [
        "store.OutputFolder.add",
        "store.OutputFolder.finish_units",
        "store.OutputFolder.commit",
    ],
    "means and intervals": ["scores.summarise"],
}
WORKS = {
    "doc_recall, 7 x `@k`": [f"doc_recall@{k}" for k in CUTS],
    "doc_recall, 7 x `@kdocs`": [f"doc_recall@{k}docs" for k in CUTS],
    "6 measures, both cuts, to disk": [
        f"doc_{name}@{k}{unit}"
        for name in ("recall", "precision", "hit", "rr", "ap", "ndcg")
        for unit in ("", "docs")
        for k in CUTS
    ],
}

T = TypeVar("T")
R = TypeVar("R")


class Clock:
    """CPU seconds by step."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._open = [REST]
        self._since = time.process_time()

    def turn(self) -> dict[str, float]:
        """Give what was spent since the last turn, and begin anew."""
        self._charge()
        spent, self.spent = self.spent, defaultdict(float)
        return dict(spent)

    def timed(self, step: str, function: Callable[..., R]) -> Callable[..., R]:
        """Let a function charge its time to a step."""

        @functools.wraps(function)
        def wrapped(*arguments: Any, **named: Any) -> R:
            self._charge()
            self._open.append(step)
            try:
                return function(*arguments, **named)
            finally:
                self._charge()
                self._open.pop()

        return wrapped

    def _charge(self) -> None:
        now = time.process_time()
        self.spent[self._open[-1]] += now - self._since
        self._since = now


class AtOnce:
    """What stands in for a pool of threads, and works when it is asked to."""

    def __init__(self, *_: Any) -> None:
        pass

    def submit(self, work: Callable[..., R], *arguments: Any) -> Future[R]:
        """Do the work, and give its result as a pool would."""
        done: Future[R] = Future()
        done.set_result(work(*arguments))
        return done

    def shutdown(self, **_: Any) -> None:
        """Nothing is left to be done."""


def main() -> int:
    """Write the log, measure in a fresh process, print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="100 M rows instead of 10 M")
    parser.add_argument("--rows", type=row_count, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keep the log for the next run")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS.name} too")
    parser.add_argument("--of", type=Path, help=argparse.SUPPRESS)  # the child: measure this log
    arguments = parser.parse_args()
    if arguments.of is not None:
        print(json.dumps(measure(LogFiles(arguments.of), arguments.repeat)))
        return 0
    try:
        require_docrecall()
        spec = LogSpec(100_000_000 if arguments.full else arguments.rows)
        wanted = {spec: LogFiles(LOGS / spec.folder_name)}
        with logs(wanted, wanted[spec].holds, lambda spec: write_log(spec, wanted[spec]), keep=arguments.keep):
            said = run_script("stages.py", "--of", str(wanted[spec].folder), "--repeat", str(arguments.repeat))
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    sections = [machine.describe(), report(json.loads(said), spec.rows, arguments.repeat)]
    publish("Results of stages.py", sections, RESULTS if arguments.write else None)
    return 0


def measure(files: LogFiles, repeat: int) -> dict[str, dict[str, float]]:
    """Work -> step -> median CPU seconds, with the bare scan among the works."""
    from docrecall import score  # noqa: PLC0415 - parents hold nothing of it
    from peers import bare_scan  # noqa: PLC0415

    clock = Clock()
    patch(clock)
    turns: dict[str, list[dict[str, float]]] = defaultdict(list)
    scan = bare_scan(files)
    with TemporaryDirectory() as folder:
        for turn in range(repeat + 1):  # the first warms up
            clock.turn()
            scan()
            turns["bare scan"].append(clock.turn())
            for work, measures in WORKS.items():
                out = Path(folder, f"{turn}") if work.endswith("to disk") else None
                clock.turn()
                score(files.hits, files.qrels, measures, out=out).summary()
                turns[work].append(clock.turn())
            progress(f"  turn {turn} of {repeat}")
    return {
        work: {step: median(turn.get(step, 0.0) for turn in each[1:]) for step in {s for turn in each for s in turn}}
        for work, each in turns.items()
    }


def patch(clock: Clock) -> None:
    """Time the named functions, and take threads away."""
    for step, names in STEPS.items():
        for name in names:
            holder, function = _find(name)
            setattr(holder, function, clock.timed(step, getattr(holder, function)))
    for name in ("parallel.ThreadPoolExecutor", "rowgroups.ThreadPoolExecutor"):
        setattr(*_find(name), AtOnce)
    for name in ("score.in_order", "summary.in_order"):
        setattr(*_find(name), one_by_one)


def one_by_one(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Map over items without threads."""
    return map(work, items)


def _find(name: str) -> tuple[Any, str]:
    """The module or class of a dotted name below the package, and the name in it."""
    *path, last = name.split(".")
    holder: Any = importlib.import_module("docrecall")
    for at, part in enumerate(path):
        try:
            holder = importlib.import_module(".".join(["docrecall", *path[: at + 1]]))
        except ModuleNotFoundError:
            holder = getattr(holder, part)
    if not hasattr(holder, last):
        raise BenchmarkError(f"docrecall has no {name} any more: say in {Path(__file__).name} what took its place.")
    return holder, last


def report(spent: dict[str, dict[str, float]], rows: int, repeat: int) -> str:
    """One row per step, one pair of columns per work."""
    bare = sum(spent["bare scan"].values())
    head = [f"{millions(rows)} rows, CPU s and x bare scan, median of {repeat}", *WORKS]

    def cell(seconds: float) -> str:
        return f"{digits(seconds)} ({seconds / bare:.2f})" if seconds >= 0.001 else "-"

    lines = [["bare scan", *[cell(bare)] * len(WORKS)]]
    lines += [[step, *(cell(spent[work].get(step, 0.0)) for work in WORKS)] for step in (*STEPS, REST)]
    lines.append(["**all**", *(cell(sum(spent[work].values())) for work in WORKS)])
    return table(head, lines)


if __name__ == "__main__":
    sys.exit(main())
