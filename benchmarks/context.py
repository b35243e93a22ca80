"""Benchmark context and token cuts, evidence coverage, and requests as units, against bare scans and DuckDB.

python benchmarks/context.py [--rows 1_000_000 --rows 10_000_000] [--full] [--ids string] [--repeat 3]

Works as `run.py` does. Before anything is measured, all tools answer on small logs beside plain Python.
"""

# This process imports the standard library alone: a child starts with its parent's peak memory as its own.
from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from statistics import median

import machine
from harness import HERE, LOGS, BenchmarkError, Runs, logs, publish, require_docrecall, run_in_turns, same_answers
from log import IdKind, LogFiles, LogSpec, Variant, row_count
from run import wanted_rows, write_log
from table import Line, line_of, markdown, millions, verdict
from tasks import TASKS, TOOL_TITLES, TOOLS, Tool

RESULTS = HERE / "results-context.md"
SMALL_ROWS = 20_000
VARIANTS: tuple[Variant, ...] = ("plain", "context", "requests")
GOAL_CONTEXT_ROWS = 100_000_000  # from here on the bare scans and peaks of `tasks.py` are goals
GOAL_REQUESTS_ROWS = 10_000_000
GOAL_REQUESTS = 1.2  # times queries as units

# Fails where docrecall does not know the measures or takes no evidence.
PROBE = """
import polars as pl
from docrecall import score
hits = pl.DataFrame({"request_id": ["r"], "query_id": ["q"], "rank": [1], "doc_id": ["d"], "n_tokens": [1],
                     "in_context": [True], "chunk_start": [0], "chunk_end": [1]})
evidence = pl.DataFrame({"query_id": ["q"], "evidence_id": ["e"], "doc_id": ["d"], "start": [0], "end": [1]})
measures = ["doc_recall@context", "doc_recall@2000tokens", "evidence_coverage@10"]
scores = score(hits, hits.select("query_id", "doc_id"), measures=measures, evidence=evidence)
assert "request_id" in scores.per_query.columns
"""


def main() -> int:
    """Check the tools on small logs, measure every log asked for and print the table."""
    arguments = read_arguments()
    tools: list[Tool] = [tool for tool in TOOLS if tool != "docrecall" or not arguments.without_docrecall]
    timed: list[Tool] = [tool for tool in tools if tool != "python"]
    try:
        if not arguments.without_docrecall:
            require_docrecall(PROBE)
        lines = []
        for ids in arguments.ids or ["string"]:
            bench(SMALL_ROWS, ids, tools, 1, arguments)
            for rows in wanted_rows(arguments):
                lines += bench(rows, ids, timed, arguments.repeat, arguments)
    except BenchmarkError as error:
        print(f"benchmark failed: {error}", file=sys.stderr)
        return 1
    sections = [machine.describe(), markdown(lines), "\n".join(f"- {goal}" for goal in verdicts(lines))]
    publish("Results of context.py", sections, RESULTS if arguments.write else None)
    return 0


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=row_count, action="append", help="may repeat; default 1_000_000 and 10_000_000")
    parser.add_argument("--full", action="store_true", help="100_000_000 rows as well")
    parser.add_argument("--ids", choices=("string", "integer"), action="append", help="may repeat; default string")
    parser.add_argument("--repeat", type=int, default=3, help="runs of every peer (default 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without-docrecall", action="store_true", help="compare the others among each other")
    parser.add_argument("--keep", action="store_true", help="do not remove the logs that this run wrote")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS.name} too")
    arguments = parser.parse_args()
    if arguments.repeat < 1:
        parser.error("--repeat must be positive")
    if arguments.write and arguments.without_docrecall:
        parser.error("--write publishes our figures: it needs docrecall")
    return arguments


def bench(rows: int, ids: IdKind, tools: Iterable[Tool], repeat: int, arguments: argparse.Namespace) -> list[Line]:
    """Write the logs of one size, run the tools on them in turns, check the answers."""
    specs = {variant: LogSpec(rows, ids, arguments.seed, variant) for variant in VARIANTS}
    folders = {spec: LogFiles(LOGS / spec.folder_name) for spec in specs.values()}

    def is_there(spec: LogSpec) -> bool:
        return folders[spec].holds(spec)

    with logs(folders, is_there, lambda spec: write_log(spec, folders[spec]), keep=arguments.keep) as files:
        jobs = {}
        for task in TASKS:
            # The scan of a work runs next to it; works that need the same columns share one.
            for peer in [task.scan, *(f"{tool}_{task.name}" for tool in tools)]:
                jobs[peer] = (peer, files[specs[task.variant]])
        runs = run_in_turns(jobs, repeat)
    check_answers(runs, tools)
    lines = []
    for task in TASKS:
        spec = specs[task.variant]
        if not any(line.peer == task.scan for line in lines):
            columns = ", ".join(task.columns)
            title = f"bare scan{' + ' + columns if columns else ''}"
            lines.append(line_of(task.scan, title, task.scan, spec, runs))
        for tool in tools:
            title = f"{TOOL_TITLES[tool]}, {task.title}"
            lines.append(line_of(f"{tool}_{task.name}", title, task.scan, spec, runs))
    return lines


def check_answers(runs: Runs, tools: Iterable[Tool]) -> None:
    """Every mean of every run equals the first that was given: docrecall's, or DuckDB's without it."""
    for task in TASKS:
        answers = [(tool, run["means"]) for tool in tools for run in runs[f"{tool}_{task.name}"]]
        same_answers(answers, [f"{measure}, {task.variant} log" for measure in task.measures], task.tolerance)


def verdicts(lines: Iterable[Line]) -> list[str]:
    """Write a sentence per goal and log that the goal speaks of."""
    task_of = {f"docrecall_{task.name}": task for task in TASKS}
    ours = [line for line in lines if line.peer in task_of]
    queries = {(line.spec.rows, line.spec.ids): line for line in ours if line.peer == "docrecall_queries"}
    found = []
    for line in ours:
        size = (line.spec.rows, line.spec.ids)
        name = f"{line.title}, {millions(line.spec.rows)} rows, {line.spec.ids} ids"
        task = task_of[line.peer]
        if task.goal is not None and line.spec.rows >= GOAL_CONTEXT_ROWS:
            found.append(verdict(name, line.wall_ratio, task.goal, "x the bare scan of its columns"))
        if line.peer == "docrecall_requests" and line.spec.rows >= GOAL_REQUESTS_ROWS:
            ratio = median(line.walls) / median(queries[size].walls)
            found.append(verdict(name, ratio, GOAL_REQUESTS, "x queries as units"))
        if line.spec.rows >= GOAL_CONTEXT_ROWS:
            found.append(verdict(name, max(line.peaks_gb), task.peak_gb, "GB at the peak"))
    return found or ["No goal speaks of docrecall in this run." if ours else "Without docrecall there are no goals."]


if __name__ == "__main__":
    sys.exit(main())
