"""Run one peer once, in this process and nothing else, and print what it took as JSON.

python benchmarks/measure.py PEER LOG_FOLDER
"""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from context_peers import CONTEXT_PEERS
from log import LogFiles
from lookup_peers import LOOKUP_PEERS
from peers import PEERS, Work


@dataclass(frozen=True)
class Measurement:
    """One run: wall and CPU seconds of the work, peak memory of the whole process, and the answer."""

    wall: float
    cpu: float
    peak_gb: float
    means: list[float]


def run_once(work: Work) -> Measurement:
    """Time the work; children of this process count, should a peer start any."""
    cpu, wall = _cpu_seconds(), time.perf_counter()
    means = work()
    return Measurement(
        wall=time.perf_counter() - wall,
        cpu=_cpu_seconds() - cpu,
        peak_gb=_peak_gb(),
        means=means,
    )


def _usages() -> list[resource.struct_rusage]:
    return [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]


def _cpu_seconds() -> float:
    return sum(usage.ru_utime + usage.ru_stime for usage in _usages())


def _peak_gb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return sum(usage.ru_maxrss for usage in _usages()) * unit / 1e9


if __name__ == "__main__":
    peer, folder = sys.argv[1:]
    prepare = {**PEERS, **CONTEXT_PEERS, **LOOKUP_PEERS}[peer]
    print(json.dumps(asdict(run_once(prepare(LogFiles(Path(folder)))))))
