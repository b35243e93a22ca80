"""Measure how long `docrecall --help` takes against the bare import of polars.

python benchmarks/start_up.py [--repeat 7]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import machine
from harness import HERE, publish
from table import table, verdict

RESULTS = HERE / "results-start-up.md"
GOAL_SECONDS = 0.2


def main() -> int:
    """Run both commands in turns; print the medians and their difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="runs of either command (default 7)")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS.name} too")
    arguments = parser.parse_args()
    repeat = arguments.repeat
    command = installed_command()
    if command is None:
        print("there is no `docrecall` command in this environment: install docrecall there", file=sys.stderr)
        return 1

    commands = {
        "python -c 'import polars'": [sys.executable, "-c", "import polars"],
        "docrecall --help": [command, "--help"],
    }
    try:
        polars, ours = (median(walls) for walls in time_in_turns(list(commands.values()), repeat))
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(error.cmd[-2:])} ended with {error.returncode}\n{error.stderr}", file=sys.stderr)
        return 1

    rows = [[f"`{name}`", f"{wall:.3f}"] for name, wall in zip(commands, (polars, ours), strict=True)]
    said = f"- {verdict('the difference', ours - polars, GOAL_SECONDS, 's')}"
    sections = [machine.describe(), table([f"command, median of {repeat}", "wall s"], rows), said]
    publish("Results of start_up.py", sections, RESULTS if arguments.write else None)
    return 0


def installed_command() -> str | None:
    """Find the command beside this interpreter first: another environment's on the PATH is not what we measure."""
    here = Path(sys.executable).parent
    return shutil.which("docrecall", path=here) or shutil.which("docrecall")


def time_in_turns(commands: list[list[str]], repeat: int) -> list[list[float]]:
    """Time each command `repeat` times, after one run of each that fills the page cache and the bytecode cache."""
    for command in commands:
        wall_seconds(command)
    turns = [[wall_seconds(command) for command in commands] for _ in range(repeat)]
    return [list(walls) for walls in zip(*turns, strict=True)]


def wall_seconds(command: list[str]) -> float:
    """Time one run from start to exit; fail when it fails."""
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
