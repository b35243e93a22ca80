"""Compare results bit for bit: the same rows in other layouts, batches, threads, memory, and after a kill.

python benchmarks/bits.py [--rows 10_000_000] [--cell unsorted --cell ..]

Every run is a fresh process that writes its results; files must be equal to the last byte. Means are compared with
other tools by `layouts.py` and `run.py`; here our own results are compared with each other.
"""

# This process imports the standard library alone, as the others do.
from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import machine
from cells import CELLS, Cell
from harness import HERE, LOGS, BenchmarkError, logs, progress, publish, require_docrecall
from layouts import folders_of, write_cell
from log import LogFiles, row_count
from table import millions, table

RESULTS = HERE / "results-bits.md"
SAME_ROWS = [name for name, cell in CELLS.items() if cell.same_rows]
SORTED, SCATTERED = CELLS["ten-files"], CELLS["interleaved"]  # that take two ways through the code


@dataclass(frozen=True)
class Variation:
    """A run that must give the same bytes. killed_in: the batch in which a first try dies."""

    title: str
    cell: Cell
    options: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    killed_in: int = 0


def main() -> int:
    """Run all variations and print which files are equal; exit code 1 when one is not."""
    arguments = read_arguments()
    cells = [CELLS[name] for name in arguments.cell or SAME_ROWS]
    try:
        require_docrecall()
        found = hashes(variations(cells, arguments.rows), cells, arguments)
    except BenchmarkError as error:
        print(f"benchmark failed: {error}", file=sys.stderr)
        return 1
    expected = next(iter(found.values()))
    rows, n_other = [], 0
    for variation, files in found.items():
        other = [name for name in files if files[name] != expected[name]]
        n_other += bool(other)
        rows.append([variation.title, files["per_query"][:12], files["summary"][:12], ", ".join(other) or "none"])
    head = [f"{millions(arguments.rows)} rows", "per_query.parquet, SHA-256", "summary.parquet", "files that differ"]
    said = f"- {len(rows) - n_other} of {len(rows)} runs give the same bytes as the first."
    sections = [machine.describe(), table(head, rows, words=range(len(head))), said]
    publish("Results of bits.py", sections, RESULTS if arguments.write else None)
    return 1 if n_other else 0


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=row_count, default=10_000_000)
    parser.add_argument("--cell", choices=SAME_ROWS, action="append", help="layouts; may repeat; default all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="do not remove the logs that this run wrote")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS.name} too")
    return parser.parse_args()


def variations(cells: list[Cell], rows: int) -> list[Variation]:
    """List the runs, the one to compare with first."""
    small, third = ("--batch-rows", str(rows // 40)), ("--batch-rows", str(rows // 3))
    found = [Variation("ten files, as it comes", SORTED)]
    found += [Variation(cell.title, cell) for cell in cells if cell != SORTED]
    for cell, word in ((SORTED, "sorted"), (SCATTERED, "interleaved")):
        found += [
            Variation(f"{word}, 40 batches", cell, small),
            Variation(f"{word}, 3 batches", cell, third),
            Variation(f"{word}, one batch", cell, ("--batch-rows", str(rows))),
            Variation(f"{word}, 1 thread", cell, env=(("POLARS_MAX_THREADS", "1"),)),
            Variation(f"{word}, 2 threads", cell, env=(("POLARS_MAX_THREADS", "2"),)),
            Variation(f"{word}, 3 threads", cell, env=(("POLARS_MAX_THREADS", "3"),)),
            Variation(f"{word}, in 1 GB", cell, ("--memory", "1GB")),
            Variation(f"{word}, in 600 MB", cell, ("--memory", "600MB")),
            Variation(f"{word}, 40 batches, killed in batch 2", cell, small, killed_in=2),
            Variation(f"{word}, 40 batches, killed in batch 17", cell, small, killed_in=17),
            Variation(f"{word}, 3 batches, killed in batch 2", cell, third, killed_in=2),
        ]
    return found


def hashes(
    wanted: list[Variation], cells: list[Cell], arguments: argparse.Namespace
) -> dict[Variation, dict[str, str]]:
    """Write the logs and run the variations."""
    rows, seed = arguments.rows, arguments.seed
    folders = folders_of({SORTED: None, SCATTERED: None} | dict.fromkeys(cells), rows, seed)

    def is_there(cell: Cell) -> bool:
        return cell.is_in(folders[cell], rows, seed)

    found = {}
    with logs(folders, is_there, lambda c: write_cell(c, folders[c], rows, seed), keep=arguments.keep) as files:
        for variation in wanted:
            progress(f"  {variation.title}")
            with tempfile.TemporaryDirectory(dir=LOGS) as folder:
                found[variation] = result_of(variation, files[variation.cell], Path(folder))
    return found


def result_of(variation: Variation, files: LogFiles, folder: Path) -> dict[str, str]:
    """Run a variation, after a try that dies where it says so, and give the hashes of its files."""
    command = [sys.executable, str(HERE / "one_result.py"), str(files.folder), str(folder / "out"), *variation.options]
    environment = os.environ | dict(variation.env)
    if variation.killed_in:
        kill = ["--kill-in", str(variation.killed_in)]
        died = subprocess.run([*command, *kill], env=environment, capture_output=True, encoding="utf-8", check=False)
        if died.returncode != -signal.SIGKILL:
            raise BenchmarkError(f"{variation.title}: it should have been killed, but ended with {died.returncode}")
        # Were nothing left to go on with, the second try would be no other run than the first.
        if not list(folder.glob(f".docrecall-unfinished-*/batches/{variation.killed_in - 2:06}")):
            raise BenchmarkError(f"{variation.title}: the killed run left no batch to go on with")
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise BenchmarkError(f"{variation.title} ended with {done.returncode}\n{done.stderr}")
    return dict(json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main())
