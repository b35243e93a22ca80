"""Benchmark docrecall against a bare scan, DuckDB, pytrec_eval and ranx on logs that it writes itself.

python benchmarks/run.py [--rows 1_000_000 --rows 10_000_000] [--full] [--ids string --ids integer] [--repeat 3]

Every run is a fresh process; the peers take turns, so that a busy minute of the machine hits all of them. Answers are
compared before anything is printed: a difference ends the run with exit code 1, a missed goal does not.
"""

# This process imports the standard library alone: a child starts with its parent's peak memory as its own.
from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import machine
from log import CUTS, LogFiles, LogSpec, row_count
from table import TITLES, Line, markdown, verdicts

HERE = Path(__file__).resolve().parent
LOGS = HERE / "logs"
RESULTS = HERE / "results.md"

OURS = ("docrecall_chunks", "docrecall_docs")
IN_MEMORY = ("pytrec_eval_docs", "ranx_docs")
TOLERANCE = {"ranx_docs": 1e-9}
DEFAULT_TOLERANCE = 1e-12

Runs = dict[str, list[dict[str, Any]]]


class BenchmarkError(Exception):
    """A peer failed, or two answers differ."""


def main() -> int:
    """Measure every log asked for and print the table."""
    arguments = read_arguments()
    try:
        if not arguments.without_docrecall:
            require_docrecall()
        lines = [
            line
            for rows in wanted_rows(arguments)
            for ids in arguments.ids or ["string", "integer"]
            for line in bench_log(LogSpec(rows, ids, arguments.seed), arguments)
        ]
    except BenchmarkError as error:
        print(f"benchmark failed: {error}", file=sys.stderr)
        return 1
    report = "\n\n".join([machine.describe(), markdown(lines), "\n".join(f"- {goal}" for goal in verdicts(lines))])
    print(report)
    if arguments.write:
        RESULTS.write_text(f"# Results\n\n{report}\n", encoding="utf-8")
    return 0


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=row_count, action="append", help="may repeat; default 1_000_000 and 10_000_000")
    parser.add_argument("--full", action="store_true", help="100_000_000 rows as well")
    parser.add_argument("--ids", choices=("string", "integer"), action="append", help="may repeat; default both")
    parser.add_argument("--repeat", type=int, default=3, help="runs of every peer (default 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--in-memory-rows",
        type=row_count,
        default=1_000_000,
        help="the largest log that pytrec_eval and ranx are given (default 1_000_000)",
    )
    parser.add_argument("--without-docrecall", action="store_true", help="compare the others among each other")
    parser.add_argument("--keep", action="store_true", help="do not remove the logs that this run wrote")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS.name} too")
    arguments = parser.parse_args()
    if arguments.repeat < 1:
        parser.error("--repeat must be positive")
    if arguments.write and arguments.without_docrecall:
        parser.error("--write publishes our figures: it needs docrecall")
    return arguments


def wanted_rows(arguments: argparse.Namespace) -> list[int]:
    """Ascending, each size once."""
    rows = set(arguments.rows or [1_000_000, 10_000_000])
    return sorted(rows | {100_000_000} if arguments.full else rows)


def require_docrecall(code: str = "from docrecall import score") -> None:
    """Fail before any log is written. code: needs what the run needs of docrecall."""
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    if asked.returncode:
        said = asked.stderr.strip().rpartition("\n")[2]
        raise BenchmarkError(
            f"docrecall is not in this environment, or cannot do what this run needs ({said}). Install it there, "
            "or pass --without-docrecall to compare the others among each other."
        )


def bench_log(spec: LogSpec, arguments: argparse.Namespace) -> list[Line]:
    """Write one log, run the peers on it in turns, check the answers."""
    files = LogFiles(LOGS / spec.folder_name)
    was_there = files.holds(spec)
    progress(f"log {spec.folder_name}")
    write_log(spec, files)
    try:
        runs = run_in_turns(dict.fromkeys(peers_for(spec, arguments), files), arguments.repeat)
    finally:
        if not (was_there or arguments.keep):
            shutil.rmtree(files.folder)
    check_answers(runs)
    return [line_of(peer, TITLES[peer], "bare_scan", spec, runs) for peer in runs]


def write_log(spec: LogSpec, files: LogFiles) -> None:
    """Generate in a child, see the note at the imports."""
    command = ["generate.py", "--rows", str(spec.rows), "--ids", spec.ids, "--seed", str(spec.seed)]
    variant = [] if spec.variant == "plain" else [f"--{spec.variant}"]
    run_script(*command, *variant, "--out", str(files.folder))


def peers_for(spec: LogSpec, arguments: argparse.Namespace) -> list[str]:
    """Name the peers that can hold a log of this size."""
    left_out: set[str] = set()
    if arguments.without_docrecall:
        left_out.update(OURS)
    if spec.rows > arguments.in_memory_rows:
        left_out.update(IN_MEMORY)
    return [peer for peer in TITLES if peer not in left_out]


def run_in_turns(peers: Mapping[str, LogFiles], repeat: int) -> Runs:
    """Run all peers once, each on its log, then all again: A B C, A B C, ..."""
    runs: Runs = defaultdict(list)
    for turn in range(repeat):
        for peer, files in peers.items():
            run = json.loads(run_script("measure.py", peer, str(files.folder)))
            progress(f"  {turn + 1}/{repeat} {peer}: {run['wall']:.2f} s")
            runs[peer].append(run)
    return runs


def check_answers(runs: Runs) -> None:
    """Every answer of every run equals the first of ours for the same cut (of DuckDB's without docrecall)."""
    for unit in ("chunks", "docs"):
        reference = f"docrecall_{unit}" if f"docrecall_{unit}" in runs else f"duckdb_{unit}"
        expected = runs[reference][0]["means"]
        for peer in (peer for peer in runs if peer.endswith(f"_{unit}")):
            for run in runs[peer]:
                check_answer(peer, unit, run["means"], reference, expected)


def check_answer(peer: str, unit: str, means: list[float], reference: str, expected: list[float]) -> None:
    """Compare cut by cut; written so that NaN differs from everything."""
    for k, mean, wanted in zip(CUTS, means, expected, strict=True):
        if not abs(mean - wanted) <= TOLERANCE.get(peer, DEFAULT_TOLERANCE):
            raise BenchmarkError(f"recall at {k} {unit}: {peer} says {mean!r}, {reference} {wanted!r}")


def line_of(peer: str, title: str, bare: str, spec: LogSpec, runs: Runs) -> Line:
    """Collect the runs of a peer, and of the bare scan of the columns that it needs."""

    def figures(of: str, name: str) -> tuple[float, ...]:
        return tuple(run[name] for run in runs[of])

    return Line(
        peer=peer,
        title=title,
        spec=spec,
        walls=figures(peer, "wall"),
        cpus=figures(peer, "cpu"),
        peaks_gb=figures(peer, "peak_gb"),
        bare_walls=figures(bare, "wall"),
        bare_cpus=figures(bare, "cpu"),
    )


def run_script(name: str, *arguments: str) -> str:
    """Run a script of this folder in a fresh interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, str(HERE / name), *arguments], capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise BenchmarkError(f"{name} {' '.join(arguments)} ended with {done.returncode}\n{done.stderr}")
    return done.stdout


def progress(message: str) -> None:
    """Say on stderr what is going on; the table alone goes to stdout."""
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
