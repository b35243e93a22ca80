"""Time the resampling of docrecall.stats at ten million pairs, and beside scipy at a size that scipy can do.

python benchmarks/resampling.py [--pairs 10_000_000] [--resamples 100_000] [--peer-pairs 10_000] [--peer-resamples 5000]

flip: the sign-flip test; mean: the interval; -distinct: of differences of which no two are equal. Every task runs in a
process of its own; seconds cover the work from an array of differences on, and peak memory is that of the whole
process, imports and the array included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import machine
from docrecall import stats

GOAL_SECONDS, GOAL_GB = 3.0, 2.0
RECALLS = np.array([0, 1 / 3, 1 / 2, 2 / 3, 1])


def main() -> int:
    """Print how long each task takes, then ours against scipy's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--resamples", type=int, default=100_000)
    parser.add_argument("--peer-pairs", type=int, default=10_000, help="pairs for the comparison with scipy")
    parser.add_argument("--peer-resamples", type=int, default=5000, help="resamples for the comparison with scipy")
    parser.add_argument("--one", nargs=3, metavar=("TASK", "PAIRS", "RESAMPLES"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one[0], int(given.one[1]), int(given.one[2]))))
        return 0

    print(machine.describe())
    size = f"{given.pairs:,} pairs, {given.resamples:,} resamples"
    print(f"\n| {size} | seconds | peak GB |\n|---|--:|--:|")
    tasks_ = ("flip", "mean", "mean-bca", "flip-distinct", "mean-distinct")
    ours = {task: run(task, given.pairs, given.resamples) for task in tasks_}
    for task, (seconds, peak) in ours.items():
        print(f"| {task} | {seconds:.2f} | {peak:.2f} |")

    print(f"\n| {given.peer_pairs:,} pairs, {given.peer_resamples:,} resamples | ours s | scipy s | ratio |")
    print("|---|--:|--:|--:|")
    for task in ("flip", "mean", "mean-bca"):
        quick, _ = run(task, given.peer_pairs, given.peer_resamples)
        peer, _ = run(f"scipy-{task}", given.peer_pairs, given.peer_resamples)
        print(f"| {task} | {quick:.4f} | {peer:.3f} | {peer / quick:.0f} |")

    seconds, peak = max(s for s, _ in ours.values()), max(p for _, p in ours.values())
    word = "reached" if seconds <= GOAL_SECONDS and peak <= GOAL_GB else "not reached"
    print(f"\nGoal, {size} in at most {GOAL_SECONDS:g} s and {GOAL_GB:g} GB: {seconds:.2f} s, {peak:.2f} GB: {word}")
    return 0


def run(task: str, pairs: int, resamples: int) -> tuple[float, float]:
    """Measure one task in a process of its own."""
    command = [sys.executable, __file__, "--one", task, str(pairs), str(resamples)]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    seconds, peak = json.loads(done.stdout)
    return seconds, peak


def measure(task: str, pairs: int, resamples: int) -> tuple[float, float]:
    """Seconds and peak memory in GB of this process. A first, small call leaves lazy imports out of the seconds."""
    rng = np.random.default_rng(1)
    if task.endswith("-distinct"):
        differences = rng.normal(0.001, 0.4, pairs)
    else:
        differences = rng.choice(RECALLS, pairs) - rng.choice(RECALLS, pairs)
    work = tasks()[task.removesuffix("-distinct")]
    work(differences[:50], 10)
    start = time.perf_counter()
    work(differences, resamples)
    seconds = time.perf_counter() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def tasks() -> dict[str, Callable[[np.ndarray, int], object]]:
    """What is measured: name -> a function of differences and resamples."""

    def scipy_flip(d: np.ndarray, resamples: int) -> object:
        from scipy.stats import permutation_test  # noqa: PLC0415 - loaded by the peers' processes alone

        return permutation_test(
            (d,), np.mean, permutation_type="samples", n_resamples=resamples, vectorized=True, batch=100, rng=1
        )

    def scipy_mean(d: np.ndarray, resamples: int, method: str = "percentile") -> object:
        from scipy.stats import bootstrap  # noqa: PLC0415 - as above

        return bootstrap((d,), np.mean, method=method, n_resamples=resamples, vectorized=True, batch=100, rng=1)

    return {
        "flip": lambda d, resamples: stats.sign_flip_test(d, resamples=resamples),
        "mean": lambda d, resamples: stats.bootstrap_mean(d, resamples=resamples, method="percentile"),
        "mean-bca": lambda d, resamples: stats.bootstrap_mean(d, resamples=resamples, method="bca"),
        "scipy-flip": scipy_flip,
        "scipy-mean": scipy_mean,
        "scipy-mean-bca": lambda d, resamples: scipy_mean(d, resamples, "BCa"),
    }


if __name__ == "__main__":
    sys.exit(main())
