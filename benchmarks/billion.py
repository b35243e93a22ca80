"""Score a billion rows, and as many as a tenth of them for the time per row: a chore, run once by hand.

python benchmarks/billion.py [--rows 1_000_000_000] [--base 100_000_000] [--repeat 3]

`doc_recall` at 7 values of k under both cuts, written to disk batch by batch. The large log is generated row group by
row group, scored once, and removed whatever happens. DuckDB answers for both cuts of the base log, and for chunks of
the large one: its SQL for documents would need thirty gigabytes there.
"""

# This process imports the standard library alone: a child starts with its parent's peak memory as its own.
from __future__ import annotations

import argparse
import shutil
import sys
from statistics import median

import machine
from harness import HERE, LOGS, BenchmarkError, Run, logs, publish, require_docrecall, run_in_turns, same_answers
from log import CUTS, HITS_PER_QUERY, LogFiles, LogSpec, row_count
from run import write_log
from table import digits, millions, seconds, table, verdict

RESULTS = HERE / "results-billion.md"
BYTES_PER_ROW = 4  # of the log, some 2.5; and what is written for its queries
RESULT_BYTES_PER_UNIT = 300  # results and the batches that they are made of, uncompressed
TOLERANCE = 1e-12  # for a million queries: DuckDB adds up doubles one by one, and errs by more where they are more
GOAL_GB = 2.0
GOAL_PER_ROW = 1.15  # times the base log


def main() -> int:
    """Measure both logs and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=row_count, default=1_000_000_000)
    parser.add_argument("--base", type=row_count, default=100_000_000)
    parser.add_argument("--repeat", type=int, default=3, help="runs on the base log (default 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS.name} too")
    arguments = parser.parse_args()
    base, large = (LogSpec(rows, "string", arguments.seed) for rows in (arguments.base, arguments.rows))
    try:
        require_docrecall()
        require_room(base.rows + large.rows)
        runs = {spec: bench(spec, repeat) for spec, repeat in ((base, arguments.repeat), (large, 1))}
    except BenchmarkError as error:
        print(f"benchmark failed: {error}", file=sys.stderr)
        return 1
    name = f"{millions(large.rows)} rows, 7 x `@k` and 7 x `@kdocs`"
    peak = max(float(run["peak_gb"]) for run in runs[large]["ours"])
    grown = per_row(runs[large]["ours"], large) / per_row(runs[base]["ours"], base)
    verdicts = [
        verdict(name, peak, GOAL_GB, "GB at the peak"),
        verdict(name, grown, GOAL_PER_ROW, f"x the time per row at {millions(base.rows)}"),
    ]
    sections = [machine.describe(), markdown(runs), "\n".join(f"- {line}" for line in verdicts)]
    publish("Results of billion.py", sections, RESULTS if arguments.write else None)
    return 0


def require_room(rows: int) -> None:
    """Fail before anything is written when the disk is too small."""
    LOGS.mkdir(exist_ok=True)
    needed = rows * BYTES_PER_ROW + rows // HITS_PER_QUERY * RESULT_BYTES_PER_UNIT
    free = shutil.disk_usage(LOGS).free
    if free < needed:
        raise BenchmarkError(f"{needed / 1e9:.0f} GB of disk are needed, {free / 1e9:.0f} GB are free.")


def bench(spec: LogSpec, repeat: int) -> dict[str, list[Run]]:
    """Write a log, run ours and the scan in turns, then DuckDB once; compare, and remove the log."""
    folders = {spec: LogFiles(LOGS / spec.folder_name)}
    with logs(folders, folders[spec].holds, lambda spec: write_log(spec, folders[spec]), keep=False) as files:
        log = files[spec]
        runs = run_in_turns({"bare": ("bare_scan", log), "ours": ("docrecall_both", log)}, repeat)
        units = ("chunks",) if spec.rows > 100_000_000 else ("chunks", "docs")
        theirs = run_in_turns({unit: (f"duckdb_{unit}", log) for unit in units}, 1)
    for unit, part in zip(units, (slice(0, len(CUTS)), slice(len(CUTS), None)), strict=False):
        given = [("DuckDB", theirs[unit][0]["means"])]
        given += [("docrecall", run["means"][part]) for run in runs["ours"]]
        tolerance = TOLERANCE * max(1.0, spec.n_units / 1e6)
        same_answers(given, [f"{millions(spec.rows)} rows, recall at {k} {unit}" for k in CUTS], tolerance)
    return runs


def per_row(runs: list[Run], spec: LogSpec, clock: str = "wall") -> float:
    """Nanoseconds of a row."""
    return median(float(run[clock]) for run in runs) / spec.rows * 1e9


def markdown(runs: dict[LogSpec, dict[str, list[Run]]]) -> str:
    """Lay out a row per log and work."""
    head = ["work", "rows", "wall s: median (min-max)", "CPU s", "ns per row", "CPU ns per row", "peak GB"]
    titles = {"bare": "bare scan", "ours": "**docrecall**, 7 x `@k` and 7 x `@kdocs`, to disk"}
    rows = [
        [
            title,
            millions(spec.rows),
            seconds([run["wall"] for run in of[work]]),
            digits(median(run["cpu"] for run in of[work])),
            f"{per_row(of[work], spec):.1f}",
            f"{per_row(of[work], spec, 'cpu'):.1f}",
            f"{max(run['peak_gb'] for run in of[work]):.2f}",
        ]
        for spec, of in runs.items()
        for work, title in titles.items()
    ]
    return table(head, rows)


if __name__ == "__main__":
    sys.exit(main())
