"""Time docrecall.compare over two runs of ten million units: from results to the row, pairing included.

python benchmarks/comparing.py [--pairs 10_000_000] [--resamples 100_000]

Results are written as `score --out` writes them and compared in a process of their own, from the files and from
memory, with the same units in both runs and with units of which a few are in one alone. Peak memory is that of the
whole process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

import docrecall as dr
import machine
from docrecall.sources.files import FileRef

GOAL_SECONDS, GOAL_GB = 3.0, 2.0
MEASURE = "doc_recall@3"
RECALLS = np.array([0, 1 / 3, 1 / 2, 2 / 3, 1])
TASKS = ("files", "memory", "files-shifted")


def main() -> int:
    """Print how long each comparison takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--resamples", type=int, default=100_000)
    parser.add_argument("--one", nargs=2, metavar=("TASK", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one[0], Path(given.one[1]), given.resamples)))
        return 0

    print(machine.describe())
    size = f"{given.pairs:,} pairs, {given.resamples:,} resamples"
    print(f"\n| {size} | seconds | CPU seconds | peak GB |\n|---|--:|--:|--:|")
    reached = True
    with tempfile.TemporaryDirectory() as folder:
        for shift in (0, 5):
            write(Path(folder) / str(shift), given.pairs, shift)
        for task in TASKS:
            where = str(Path(folder) / ("5" if task.endswith("shifted") else "0"))
            command = [sys.executable, __file__, "--resamples", str(given.resamples), "--one", task, where]
            done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True)
            seconds, cpu, peak = json.loads(done.stdout)
            print(f"| {task} | {seconds:.2f} | {cpu:.2f} | {peak:.2f} |")
            if task == "files":
                reached = seconds <= GOAL_SECONDS and peak <= GOAL_GB
    word = "reached" if reached else "not reached"
    print(f"\nGoal, the same units from files in at most {GOAL_SECONDS:g} s and {GOAL_GB:g} GB: {word}")
    return 0


def write(folder: Path, pairs: int, shift: int) -> None:
    """Write what is known of the units of two runs; those of the second begin later by so many."""
    folder.mkdir()
    runs = []
    for run, first in (("new", shift), ("old", 0)):
        ids = pl.int_range(first, pairs + first, eager=True).cast(pl.String).str.zfill(9)
        values = pl.Series(MEASURE, np.random.default_rng(len(runs)).choice(RECALLS, pairs))
        runs.append(pl.DataFrame({"query_id": "q" + ids, MEASURE: values}).with_columns(run_id=pl.lit(run)))
    constant = pl.lit("scored").alias("status"), pl.lit(10).alias("n_hits")
    units = pl.concat(runs).select("run_id", "query_id", *constant, MEASURE)
    units.write_parquet(folder / "per_query.parquet")
    units.select("run_id", "query_id", "status").write_parquet(folder / "decided.parquet")


def measure(task: str, folder: Path, resamples: int) -> tuple[float, float, float]:
    """Seconds, CPU seconds and peak memory in GB of this process."""
    hits = pl.DataFrame({"run_id": ["old", "new"], "query_id": ["q", "q"], "rank": [1, 1], "doc_id": ["a", "b"]})
    small = dr.score(hits, pl.DataFrame({"query_id": ["q"], "doc_id": ["a"]}), MEASURE)
    files = [folder / "per_query.parquet", folder / "decided.parquet"]
    held = [pl.read_parquet(f) if task == "memory" else FileRef.of(str(f)) for f in files]
    dr.compare(small, baseline="old")  # leaves lazy imports out of the seconds
    scores = replace(small, _per_query=held[0], _decided=held[1])
    start, cpu = time.perf_counter(), time.process_time()
    dr.compare(scores, baseline="old", resamples=resamples)
    took = time.perf_counter() - start, time.process_time() - cpu
    return *took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    sys.exit(main())
