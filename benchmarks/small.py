"""Measure small work: 10,000 hits in a notebook cell, and the demo.

python benchmarks/small.py [--repeat 20]

The cell is `score(hits, qrels)` and its summary on frames in memory, in one process after the import, as a notebook
runs it; the first call, which warms the engine up, is told apart. The demo is a process from start to exit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from statistics import median

import machine
from harness import HERE, BenchmarkError, publish, require_docrecall
from start_up import installed_command, time_in_turns
from table import seconds, table, verdict

RESULTS = HERE / "results-small.md"
GOAL_CELL, GOAL_DEMO = 50.0, 2.0  # milliseconds, seconds
ASKED = {
    "what `score` asks for by itself": [],
    "`doc_recall`, 7 x `@k`": ["doc_recall@1,3,5,10,20,50,100"],
    "`doc_recall`, 7 x `@kdocs`": ["doc_recall@1docs,3docs,5docs,10docs,20docs,50docs,100docs"],
}

# Draws the log of generate.py, times one cell again and again, and computes one mean from sets beside it.
CELL = """
import json, math, sys, time
import polars as pl
import docrecall
from draw import draw
from generate import hits_table, qrels_table
from ids import Ids

asked, repeat = json.loads(sys.argv[1]), int(sys.argv[2])
batch, ids = draw(0, 100, 0), Ids("string")
hits, qrels = hits_table(batch, ids), qrels_table(batch, ids)
taken = []
for _ in range(repeat + 1):
    start, cpu = time.perf_counter(), time.process_time()
    summary = (docrecall.score(hits, qrels, asked) if asked else docrecall.score(hits, qrels)).summary()
    taken.append((1000 * (time.perf_counter() - start), 1000 * (time.process_time() - cpu)))

top = {}
for query, rank, document in hits.iter_rows():
    top.setdefault(query, {}).setdefault(document, rank)
gold = {}
for query, document, _ in qrels.iter_rows():
    gold.setdefault(query, set()).add(document)
measure = next(m for m in summary["measure"] if m in ("doc_recall@10", "doc_recall@10docs"))
def inside(found):
    return list(found)[:10] if measure.endswith("docs") else [d for d, rank in found.items() if rank <= 10]
mean = math.fsum(len(gold[q].intersection(inside(top[q]))) / len(gold[q]) for q in gold) / len(gold)
said = summary.filter(measure=measure)["mean"].item()
assert abs(mean - said) < 1e-12, f"{measure}: docrecall says {said!r}, sets say {mean!r}"
print(json.dumps(taken))
"""


def main() -> int:
    """Time the cells and the demo, and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=20, help="calls of each cell (default 20)")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULTS.name} too")
    arguments = parser.parse_args()
    command = installed_command()
    if command is None:
        print("there is no `docrecall` command in this environment: install docrecall there", file=sys.stderr)
        return 1
    try:
        require_docrecall()
        cells = {title: cell(asked, arguments.repeat) for title, asked in ASKED.items()}
        (demo,) = time_in_turns([[command, "demo"]], 3)
    except (BenchmarkError, subprocess.CalledProcessError) as error:
        print(f"benchmark failed: {getattr(error, 'stderr', None) or error}", file=sys.stderr)
        return 1
    head = ["10,000 hits in memory, 100 queries", "first call, ms", "others, ms: median (min-max)", "their CPU ms"]
    rows = [
        [title, f"{first[0]:.0f}", seconds([wall for wall, _ in others]), f"{median(cpu for _, cpu in others):.1f}"]
        for title, (first, *others) in cells.items()
    ]
    verdicts = [
        *(verdict(title, median(wall for wall, _ in others), GOAL_CELL, "ms") for title, (_, *others) in cells.items()),
        verdict("`docrecall demo`, start to exit", median(demo), GOAL_DEMO, "s"),
    ]
    sections = [machine.describe(), table(head, rows), "\n".join(f"- {line}" for line in verdicts)]
    publish("Results of small.py", sections, RESULTS if arguments.write else None)
    return 0


def cell(asked: list[str], repeat: int) -> list[tuple[float, float]]:
    """Run one cell in a notebook of its own: wall and CPU milliseconds of the first call, then of the others."""
    command = [sys.executable, "-c", CELL, json.dumps(asked), str(repeat)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, cwd=HERE)
    return [(float(wall), float(cpu)) for wall, cpu in json.loads(done.stdout)]


if __name__ == "__main__":
    sys.exit(main())
