"""Benchmark docrecall on logs that lie in many ways on disk, and hold many kinds of rows: the layout matrix.

python benchmarks/layouts.py [--rows 10_000_000] [--cell unsorted --cell ..] [--full] [--repeat 3]

Works as `run.py` does. All logs are written first, and turns go round all of them, so that a busy minute of the
machine hits every cell. `--full` measures the interleaved log of 100 M rows besides.
"""

# This process imports the standard library alone: a child starts with its parent's peak memory as its own.
from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import machine
from cells import CELLS, INTERLEAVED, Cell
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
from log import CUTS, LogFiles, row_count
from table import millions, seconds, table, verdict

RESULTS = HERE / "results-layouts.md"
UNITS = ("chunks", "docs")
TITLES = {"chunks": "7 x `@k`", "docs": "7 x `@kdocs`"}
TOLERANCE = 1e-12
GOAL_SPREAD = 4.0  # times the best cell, per row
FULL_ROWS = 100_000_000
GOALS_FULL = {"chunks": 5.5, "docs": 8.0}  # bare scans of its own files
GOAL_FULL_GB = 1.5


@dataclass(frozen=True)
class Figures:
    """The runs of docrecall on a cell under one kind of cut, and the bare scans of the cell's own files."""

    cell: Cell
    unit: str
    rows: int
    ours: Sequence[Run]
    bare: Sequence[Run]

    def per_row(self, clock: str) -> float:
        """Nanoseconds of a row. clock: `wall` or `cpu`."""
        return median(run[clock] for run in self.ours) / self.rows * 1e9

    def scans(self, clock: str) -> float:
        """In bare scans."""
        return median(run[clock] for run in self.ours) / median(run[clock] for run in self.bare)

    @property
    def peak_gb(self) -> float:
        """The highest of all runs."""
        return max(float(run["peak_gb"]) for run in self.ours)


def main() -> int:
    """Measure the matrix and print it."""
    arguments = read_arguments()
    cells = [CELLS[name] for name in arguments.cell or CELLS]
    try:
        require_docrecall()
        matrix = bench(cells, arguments.rows, arguments)
        large = bench([INTERLEAVED], FULL_ROWS, arguments) if arguments.full else []
    except BenchmarkError as error:
        print(f"benchmark failed: {error}", file=sys.stderr)
        return 1
    tables = [markdown([f for f in some if f.unit == unit]) for some in (matrix, large) for unit in UNITS if some]
    verdicts = "\n".join(f"- {line}" for line in [*spread(matrix), *verdicts_large(large)])
    into = RESULTS if arguments.write else None
    publish("Results of layouts.py", [machine.describe(), *tables, verdicts], into)
    return 0


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=row_count, default=10_000_000)
    parser.add_argument("--cell", choices=CELLS, action="append", help="may repeat; default all")
    parser.add_argument("--full", action="store_true", help="the interleaved log of 100_000_000 rows as well")
    parser.add_argument("--repeat", type=int, default=3, help="runs of docrecall and of the scan (default 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="do not remove the logs that this run wrote")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS.name} too")
    arguments = parser.parse_args()
    if arguments.repeat < 1:
        parser.error("--repeat must be positive")
    return arguments


def bench(cells: Sequence[Cell], rows: int, arguments: argparse.Namespace) -> list[Figures]:
    """Write the logs, run everything in turns, check the answers. DuckDB answers once."""
    seed = arguments.seed
    folders = folders_of(cells, rows, seed)

    def is_there(cell: Cell) -> bool:
        return cell.is_in(folders[cell], rows, seed)

    with logs(folders, is_there, lambda c: write_cell(c, folders[c], rows, seed), keep=arguments.keep) as files:
        theirs = run_in_turns({(c, unit): (f"duckdb_{unit}", files[c]) for c in cells for unit in UNITS}, 1)
        peers = {"bare": "bare_scan", **{unit: f"docrecall_{unit}" for unit in UNITS}}
        ours = run_in_turns(
            {(c, name): (peer, files[c]) for c in cells for name, peer in peers.items()}, arguments.repeat
        )
    for (cell, unit), answers in theirs.items():
        given = [("DuckDB", run["means"]) for run in answers]
        given += [("docrecall", run["means"]) for run in ours[cell, unit]]
        same_answers(given, [f"{cell.name}, recall at {k} {unit}" for k in CUTS], TOLERANCE)
    return [Figures(cell, unit, rows, ours[cell, unit], ours[cell, "bare"]) for cell in cells for unit in UNITS]


def folders_of(cells: Iterable[Cell], rows: int, seed: int) -> dict[Cell, LogFiles]:
    """Say where the logs lie."""
    return {cell: LogFiles(LOGS / cell.folder_name(rows, seed)) for cell in cells}


def write_cell(cell: Cell, files: LogFiles, rows: int, seed: int) -> None:
    """Write a log in a child, see the note at the imports."""
    run_script("lay_out.py", cell.name, "--rows", str(rows), "--seed", str(seed), "--out", str(files.folder))


def markdown(figures: Sequence[Figures]) -> str:
    """Lay out the cells of one kind of cut."""
    head = [f"{TITLES[figures[0].unit]}, {millions(figures[0].rows)} rows", "wall s: median (min-max)", "ns per row"]
    head += ["x best", "CPU ns per row", "x best, CPU", "x its scan, wall", "x its scan, CPU", "peak GB"]
    best = {clock: min(f.per_row(clock) for f in figures) for clock in ("wall", "cpu")}
    rows = [
        [
            f.cell.title,
            seconds([run["wall"] for run in f.ours]),
            f"{f.per_row('wall'):.0f}",
            f"{f.per_row('wall') / best['wall']:.1f}",
            f"{f.per_row('cpu'):.0f}",
            f"{f.per_row('cpu') / best['cpu']:.1f}",
            f"{f.scans('wall'):.1f}",
            f"{f.scans('cpu'):.1f}",
            f"{f.peak_gb:.2f}",
        ]
        for f in figures
    ]
    return table(head, rows)


def spread(matrix: Iterable[Figures]) -> list[str]:
    """Say for each kind of cut how far the worst cell is from the best, and which cells are too far."""
    found = []
    for unit in UNITS:
        figures = [f for f in matrix if f.unit == unit]
        for clock, word in (("wall", ""), ("cpu", ", CPU")):
            times = {f.cell.title: f.per_row(clock) / min(g.per_row(clock) for g in figures) for f in figures}
            worst = max(times, key=lambda title: times[title])
            above = [title for title, value in times.items() if value > GOAL_SPREAD]
            said = verdict(f"{TITLES[unit]}{word}, {worst}", times[worst], GOAL_SPREAD, "x the best cell per row")
            found.append(f"{said} ({'; '.join(above)})" if above else said)
    return found


def verdicts_large(large: Iterable[Figures]) -> list[str]:
    """Write a sentence per goal of the large log."""
    found = []
    for f in large:
        name = f"{TITLES[f.unit]}, {f.cell.title}, {millions(f.rows)} rows"
        found.append(verdict(name, f.scans("wall"), GOALS_FULL[f.unit], "x the bare scan of its files"))
        found.append(verdict(name, f.peak_gb, GOAL_FULL_GB, "GB at the peak"))
    return found


if __name__ == "__main__":
    sys.exit(main())
