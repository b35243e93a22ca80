"""Repeated measurements to a Markdown table and a verdict per goal. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from log import LogSpec

TITLES = {
    "bare_scan": "bare scan",
    "docrecall_chunks": "**docrecall**, 7 x `@k`",
    "duckdb_chunks": "DuckDB SQL, 7 x `@k`",
    "docrecall_docs": "**docrecall**, 7 x `@kdocs`",
    "duckdb_docs": "DuckDB SQL, 7 x `@kdocs`",
    "pytrec_eval_docs": "pytrec_eval, 7 x `@kdocs`",
    "ranx_docs": "ranx, 7 x `@kdocs`",
}
GOAL_RATIO = {"docrecall_chunks": 6.0, "docrecall_docs": 10.0}
GOAL_ROWS = 10_000_000
GOAL_PEAK_GB = 2.0
GOAL_PEAK_ROWS = 100_000_000


@dataclass(frozen=True)
class Line:
    """All runs of one peer on one log, beside the bare scans that ran between them."""

    peer: str
    title: str
    spec: LogSpec
    walls: tuple[float, ...]
    cpus: tuple[float, ...]
    peaks_gb: tuple[float, ...]
    bare_walls: tuple[float, ...]
    bare_cpus: tuple[float, ...]

    @property
    def wall_ratio(self) -> float:
        """Median wall time, in bare scans."""
        return median(self.walls) / median(self.bare_walls)

    @property
    def cpu_ratio(self) -> float:
        """Median CPU time, in bare scans; steadier than wall time when the machine is shared."""
        return median(self.cpus) / median(self.bare_cpus)

    def cells(self) -> list[str]:
        """One row of the table."""
        wall = f"{_seconds(median(self.walls))} ({_seconds(min(self.walls))}-{_seconds(max(self.walls))})"
        return [
            self.title,
            millions(self.spec.rows),
            self.spec.ids,
            wall,
            f"{self.wall_ratio:.1f}",
            _seconds(median(self.cpus)),
            f"{self.cpu_ratio:.1f}",
            f"{max(self.peaks_gb):.2f}",
        ]


def markdown(lines: Iterable[Line]) -> str:
    """Lay out the table, in the order of the lines."""
    head = ["work", "rows", "ids", "wall s: median (min-max)", "x bare, wall", "CPU s", "x bare, CPU", "peak GB"]
    rule = ["---", "--:", "---", "--:", "--:", "--:", "--:", "--:"]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *(line.cells() for line in lines)])


def verdicts(lines: Iterable[Line]) -> list[str]:
    """Write a sentence per goal and log that the goal speaks of."""
    found = []
    for line in lines:
        if line.peer not in GOAL_RATIO:
            continue
        name = f"{line.title}, {millions(line.spec.rows)} rows, {line.spec.ids} ids"
        if line.spec.rows >= GOAL_ROWS:
            found.append(verdict(name, line.wall_ratio, GOAL_RATIO[line.peer], "x the bare scan"))
        if line.spec.rows >= GOAL_PEAK_ROWS:
            found.append(verdict(name, max(line.peaks_gb), GOAL_PEAK_GB, "GB at the peak"))
    return found or [f"No goal speaks of logs under {millions(GOAL_ROWS)} rows."]


def verdict(name: str, value: float, goal: float, unit: str) -> str:
    """Say whether a goal was reached."""
    # Compared as measured, not as printed: 6.04 is not 6.
    word = "reached" if value <= goal else "not reached"
    return f"{name}: {value:.2f} {unit}, goal at most {goal:g}: {word}"


def _seconds(value: float) -> str:
    return f"{value:#.3g}"  # three digits: a bare scan of 1 M rows takes a few hundredths


def millions(rows: int) -> str:
    """A number of rows as the tables print it."""
    return f"{rows / 1e6:g} M"
