"""Benchmark docrecall against a bare scan, DuckDB, pytrec_eval and ranx on logs that it writes itself.

python benchmarks/run.py [--rows 1_000_000 --rows 10_000_000] [--full] [--ids string --ids integer] [--repeat 3]

Every run is a fresh process; the peers take turns, so that a busy minute of the machine hits all of them. Answers are
compared before anything is printed: a difference ends the run with exit code 1, a missed goal does not.
"""

# This process imports the standard library alone: a child starts with its parent's peak memory as its own.
from __future__ import annotations

import argparse
import sys

import machine
from harness import (
    HERE,
    LOGS,
    BenchmarkError,
    Runs,
    logs,
    publish,
    require_docrecall,
    run_in_turns,
    run_script,
    same_answers,
)
from log import CUTS, LogFiles, LogSpec, row_count
from table import OURS, TITLES, Line, line_of, markdown, verdicts

RESULTS = HERE / "results.md"

IN_MEMORY = ("pytrec_eval_docs", "ranx_docs")
TOLERANCE = {"ranx_docs": 1e-9}
DEFAULT_TOLERANCE = 1e-12


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
    goals = "\n".join(f"- {goal}" for goal in verdicts(lines))
    publish("Results", [machine.describe(), markdown(lines), goals], RESULTS if arguments.write else None)
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
        help="the largest log that pytrec_eval and ranx are given (default 1_000_000; 10_000_000 with --full)",
    )
    parser.add_argument("--without-docrecall", action="store_true", help="compare the others among each other")
    parser.add_argument("--keep", action="store_true", help="do not remove the logs that this run wrote")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS.name} too")
    arguments = parser.parse_args()
    if arguments.in_memory_rows is None:
        arguments.in_memory_rows = 10_000_000 if arguments.full else 1_000_000
    if arguments.repeat < 1:
        parser.error("--repeat must be positive")
    if arguments.write and arguments.without_docrecall:
        parser.error("--write publishes our figures: it needs docrecall")
    return arguments


def wanted_rows(arguments: argparse.Namespace) -> list[int]:
    """Ascending, each size once."""
    rows = set(arguments.rows or [1_000_000, 10_000_000])
    return sorted(rows | {100_000_000} if arguments.full else rows)


def bench_log(spec: LogSpec, arguments: argparse.Namespace) -> list[Line]:
    """Write one log, run the peers on it in turns, check the answers."""
    folders = {spec: LogFiles(LOGS / spec.folder_name)}
    with logs(folders, folders[spec].holds, lambda spec: write_log(spec, folders[spec]), keep=arguments.keep) as files:
        jobs = {peer: (peer, files[spec]) for peer in peers_for(spec, arguments)}
        runs = run_in_turns(jobs, arguments.repeat)
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


def check_answers(runs: Runs) -> None:
    """Every recall of every run equals the first of ours for the same cut (of DuckDB's without docrecall)."""
    for unit in ("chunks", "docs"):
        own = f"docrecall_{unit}"
        reference = own if own in runs else f"duckdb_{unit}"
        expected = (reference, runs[reference][0]["means"])
        names = [f"recall at {k} {unit}" for k in CUTS]
        for peer in (peer for peer in runs if peer.endswith(f"_{unit}")):
            given = [(peer, run["means"]) for run in runs[peer]]
            same_answers([expected, *given], names, TOLERANCE.get(peer, DEFAULT_TOLERANCE))
        # The recalls of the run with all measures stand in the order of the two kinds of cut.
        part = slice(0, len(CUTS)) if unit == "chunks" else slice(len(CUTS), None)
        every = [("docrecall_all", run["means"][part]) for run in runs.get("docrecall_all", ())]
        same_answers([expected, *every], names, DEFAULT_TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
