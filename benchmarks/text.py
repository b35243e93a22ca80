"""Measure reading a TREC run against polars reading the same file as CSV.

python benchmarks/text.py [--lines 10_000_000] [--repeat 3] [--irregular]

Every run is a fresh process, and the two take turns. The sums of ranks must agree before anything is printed.
`--irregular` writes two spaces before every score, which polars then reads as an empty field.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import machine
from harness import HERE, publish
from table import seconds, table, verdict

RESULTS = HERE / "results-text.md"
GOAL_TIME, GOAL_MEMORY = 3.0, 2.5
PER_QUERY = 100

# Each prints seconds, peak gigabytes, size of a table in memory (polars alone), and a sum that shows that all was read.
PEERS = {
    "polars.read_csv": """
table = pl.read_csv(path, separator=" ", has_header=False)
size, check = table.estimated_size(), table["column_3"].sum()
""",
    "docrecall": """
from docrecall.sources.read import read_table
from docrecall.tables import HITS
log = read_table(path, HITS)
size, check = 0, log.parts[0].scan().select(pl.col("rank").sum()).collect().item()
""",
}
_AROUND = """
import json, resource, sys, time
import polars as pl
import docrecall.score
path, start = sys.argv[1], time.perf_counter()
{work}
wall = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
print(json.dumps([wall, peak, size / 1e9, int(check)]))
"""


def main() -> int:
    """Write the run, time both readers in turns, and print the ratio of their medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=lambda text: int(text.replace("_", "")), default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--irregular", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS.name} too")
    arguments = parser.parse_args()
    if arguments.write and arguments.irregular:
        parser.error("--write publishes the regular lines, which polars can read too")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.run"
        write_run(path, arguments.lines, "  " if arguments.irregular else " ")
        names = [n for n in PEERS if n == "docrecall" or not arguments.irregular]
        taken = {name: [] for name in names}
        for _ in range(arguments.repeat):
            for name in names:
                taken[name].append(run(PEERS[name], path))
    if len({run[3] for runs in taken.values() for run in runs}) != 1:
        print("benchmark failed: the readers read different ranks", file=sys.stderr)
        return 1
    head = [f"{arguments.lines / 1e6:g} M lines", "wall s: median (min-max)", "peak GB"]
    rows = [[n, seconds([r[0] for r in runs]), f"{max(r[1] for r in runs):.2f}"] for n, runs in taken.items()]
    said = [] if arguments.irregular else ["\n".join(f"- {line}" for line in verdicts(taken))]
    sections = [machine.describe(), table(head, rows), *said]
    publish("Results of text.py", sections, RESULTS if arguments.write else None)
    return 0


def verdicts(taken: dict[str, list[list[float]]]) -> list[str]:
    """Say of both goals whether they were reached."""
    csv, ours = (median(r[0] for r in taken[name]) for name in ("polars.read_csv", "docrecall"))
    in_memory, peak = taken["polars.read_csv"][0][2], max(r[1] for r in taken["docrecall"])
    return [
        verdict("time", ours / csv, GOAL_TIME, "x polars.read_csv"),
        verdict("peak memory", peak / in_memory, GOAL_MEMORY, "x the table that polars makes"),
    ]


def write_run(path: Path, lines: int, gap: str) -> None:
    """Write queries of 100 hits each, scores falling, documents among five million."""
    rng = random.Random(0)
    with path.open("w", encoding="ascii") as file:
        for query in range(lines // PER_QUERY):
            scores = sorted((rng.random() * 30 for _ in range(PER_QUERY)), reverse=True)
            file.writelines(
                f"q{query:06} Q0 doc-{rng.randrange(5_000_000):07} {rank}{gap}{score:.6f} bm25\n"
                for rank, score in enumerate(scores, 1)
            )


def run(work: str, path: Path) -> list[float]:
    """Run one reader in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _AROUND.format(work=work), str(path)], capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main())
