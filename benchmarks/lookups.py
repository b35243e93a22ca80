"""Measure what looking things up costs: documents by `chunk_id`, and mirrors by `alias_of`.

python benchmarks/lookups.py [--rows 10_000_000] [--repeat 3]

One log three times: with chunk_id and doc_id; with chunk_id alone, beside a table `chunks`; and with other names for
half of its documents, beside a table `documents`. All three have the same answer, DuckDB's for the first.
"""

# This process imports the standard library alone: a child starts with its parent's peak memory as its own.
from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

import machine
from harness import (
    HERE,
    LOGS,
    BenchmarkError,
    Run,
    logs,
    publish,
    require_docrecall,
    run_in_turns,
    run_script,
    same_answers,
)
from log import CUTS, LogFiles, LogSpec, row_count
from run import write_log
from table import digits, millions, seconds, table

RESULTS = HERE / "results-lookups.md"
INLINE, CHUNKS, MIRRORS = KINDS = ("inline", "chunks", "mirrors")
TITLES = {INLINE: "doc_id in the log", CHUNKS: "doc_id by `chunk_id`", MIRRORS: "half of doc_id through `alias_of`"}
UNITS = {"chunks": "7 x `@k`", "docs": "7 x `@kdocs`"}
CHUNKS_PER_DOCUMENT = 8
TOLERANCE = 1e-12


def tables(folder: Path) -> dict[str, Path]:
    """The table that a log needs besides."""
    name = {CHUNKS: "chunks", MIRRORS: "documents"}.get(folder.name)
    return {} if name is None else {name: folder / f"{name}.parquet"}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=row_count, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="do not remove the plain log if this run wrote it")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS.name} too")
    arguments = parser.parse_args()
    try:
        require_docrecall()
        report = bench(arguments)
    except BenchmarkError as error:
        print(f"benchmark failed: {error}", file=sys.stderr)
        return 1
    publish("Results of lookups.py", [machine.describe(), report], RESULTS if arguments.write else None)
    return 0


def bench(arguments: argparse.Namespace) -> str:
    """Write the logs, run everything in turns, check the answers, lay out the table."""
    spec = LogSpec(arguments.rows, "string", arguments.seed)
    plain = {spec: LogFiles(LOGS / spec.folder_name)}
    with (
        logs(plain, plain[spec].holds, lambda spec: write_log(spec, plain[spec]), keep=arguments.keep),
        tempfile.TemporaryDirectory(dir=LOGS, prefix="lookups-") as folder,
    ):
        run_script("write_lookups.py", str(plain[spec].folder), folder)
        files = {kind: LogFiles(Path(folder) / kind) for kind in KINDS}
        theirs = run_in_turns({unit: (f"duckdb_{unit}", files[INLINE]) for unit in UNITS}, 1)
        jobs = {(kind, unit): (f"lookup_{unit}", files[kind]) for kind in KINDS for unit in UNITS}
        runs = run_in_turns(jobs | {(kind, ""): ("lookup_scan", files[kind]) for kind in KINDS}, arguments.repeat)
    for unit in UNITS:
        given = [("DuckDB", theirs[unit][0]["means"])]
        given += [(f"docrecall, {kind}", run["means"]) for kind in KINDS for run in runs[kind, unit]]
        same_answers(given, [f"recall at {k} {unit}" for k in CUTS], TOLERANCE)
    return markdown(runs, arguments.rows)


def markdown(runs: dict[tuple[str, str], list[Run]], rows: int) -> str:
    """A row for each log and kind of cut."""

    def taken(kind: str, unit: str, clock: str) -> float:
        return median(run[clock] for run in runs[kind, unit])

    head = [f"{millions(rows)} rows", "cuts", "wall s: median (min-max)", "CPU s", "x inline, wall", "x inline, CPU"]
    head += ["x its scan, CPU", "peak GB"]
    lines = [
        [
            TITLES[kind],
            title,
            seconds([run["wall"] for run in runs[kind, unit]]),
            digits(taken(kind, unit, "cpu")),
            f"{taken(kind, unit, 'wall') / taken(INLINE, unit, 'wall'):.2f}",
            f"{taken(kind, unit, 'cpu') / taken(INLINE, unit, 'cpu'):.2f}",
            f"{taken(kind, unit, 'cpu') / taken(kind, '', 'cpu'):.1f}",
            f"{max(run['peak_gb'] for run in runs[kind, unit]):.2f}",
        ]
        for unit, title in UNITS.items()
        for kind in KINDS
    ]
    return table(head, lines, words=(0, 1))


if __name__ == "__main__":
    sys.exit(main())
