"""Repeated measurements to a Markdown table and a verdict per goal. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from harness import Runs
from log import LogSpec

TITLES = {
    "bare_scan": "bare scan",
    "docrecall_chunks": "**docrecall**, 7 x `@k`",
    "duckdb_chunks": "DuckDB SQL, 7 x `@k`",
    "docrecall_docs": "**docrecall**, 7 x `@kdocs`",
    "duckdb_docs": "DuckDB SQL, 7 x `@kdocs`",
    "docrecall_all": "**docrecall**, 6 measures, 7 x `@k`, 7 x `@kdocs`, to disk",
    "pytrec_eval_docs": "pytrec_eval, 7 x `@kdocs`",
    "ranx_docs": "ranx, 7 x `@kdocs`",
}
OURS = ("docrecall_chunks", "docrecall_docs", "docrecall_all")


@dataclass(frozen=True)
class Goal:
    """What may be spent on a work: bare scans, and gigabytes at the peak."""

    scans: float
    peak_gb: float | None = None


GOALS = {
    10_000_000: {"docrecall_chunks": Goal(6.0), "docrecall_docs": Goal(10.0)},
    100_000_000: {
        "docrecall_chunks": Goal(3.2, 0.8),
        "docrecall_docs": Goal(5.5, 1.0),
        "docrecall_all": Goal(7.5, 1.5),
    },
}
RIVALS = {"docrecall_chunks": "duckdb_chunks", "docrecall_docs": "duckdb_docs"}
GOAL_RIVAL = 1.0  # times the rival, which checks nothing
GOALS_FASTER = {"pytrec_eval_docs": 12.0, "ranx_docs": 80.0}  # than these, from the same rows
GOAL_LEANER = 0.2  # of their memory
COMPARED_ROWS = 10_000_000


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
        return [
            self.title,
            millions(self.spec.rows),
            self.spec.ids,
            seconds(self.walls),
            f"{self.wall_ratio:.1f}",
            digits(median(self.cpus)),
            f"{self.cpu_ratio:.1f}",
            f"{max(self.peaks_gb):.2f}",
        ]


def line_of(peer: str, title: str, bare: str, spec: LogSpec, runs: Runs) -> Line:
    """Collect the runs of a peer, and of the bare scan of the columns that it needs."""

    def figures(of: str, name: str) -> tuple[float, ...]:
        return tuple(run[name] for run in runs[of])

    return Line(
        peer=peer,
        title=title,
        spec=spec,
        walls=figures(peer, "wall"),
        cpus=figures(peer, "cpu"),
        peaks_gb=figures(peer, "peak_gb"),
        bare_walls=figures(bare, "wall"),
        bare_cpus=figures(bare, "cpu"),
    )


def markdown(lines: Iterable[Line]) -> str:
    """Lay out the lines, in their order."""
    head = ["work", "rows", "ids", "wall s: median (min-max)", "x bare, wall", "CPU s", "x bare, CPU", "peak GB"]
    return table(head, [line.cells() for line in lines], words=(0, 2))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: Iterable[int] = (0,)) -> str:
    """Lay out a table. words: the columns that hold no numbers."""
    rule = ["---" if column in set(words) else "--:" for column in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows])


def verdicts(lines: Iterable[Line]) -> list[str]:
    """Write a sentence per goal and log that the goal speaks of."""
    lines = list(lines)
    of = {(line.peer, line.spec): line for line in lines}
    found = []
    for line in lines:
        name = f"{line.title}, {millions(line.spec.rows)} rows, {line.spec.ids} ids"
        goal = GOALS.get(line.spec.rows, {}).get(line.peer)
        if goal is not None:
            found.append(verdict(name, line.wall_ratio, goal.scans, "x the bare scan"))
        if goal is not None and goal.peak_gb is not None:
            found.append(verdict(name, max(line.peaks_gb), goal.peak_gb, "GB at the peak"))
        rival = of.get((RIVALS.get(line.peer, ""), line.spec))
        if rival is not None and line.spec.rows >= COMPARED_ROWS:
            ratio = median(line.walls) / median(rival.walls)
            found.append(verdict(name, ratio, GOAL_RIVAL, "x the time of DuckDB"))
    for (peer, spec), line in of.items():
        ours = of.get(("docrecall_docs", spec))
        if peer in GOALS_FASTER and ours is not None and spec.rows >= COMPARED_ROWS:
            found += against(ours, line)
    return found or [f"No goal speaks of logs under {millions(COMPARED_ROWS)} rows, or of others without docrecall."]


def against(ours: Line, theirs: Line) -> list[str]:
    """Say how much faster and leaner we are than an evaluator that holds everything in memory."""
    name = f"{ours.title} against {theirs.title}, {millions(ours.spec.rows)} rows, {ours.spec.ids} ids"
    times = median(theirs.walls) / median(ours.walls)
    share = max(ours.peaks_gb) / max(theirs.peaks_gb)
    goal = GOALS_FASTER[theirs.peer]
    word = "reached" if times >= goal else "not reached"
    return [
        f"{name}: {times:.1f} x faster, goal at least {goal:g}: {word}",
        verdict(name, share, GOAL_LEANER, "of the memory"),
    ]


def verdict(name: str, value: float, goal: float, unit: str) -> str:
    """Say whether a goal was reached."""
    # Compared as measured, not as printed: 6.04 is not 6.
    word = "reached" if value <= goal else "not reached"
    return f"{name}: {value:.2f} {unit}, goal at most {goal:g}: {word}"


def seconds(values: Sequence[float]) -> str:
    """Repeated runs as the tables print them."""
    return f"{digits(median(values))} ({digits(min(values))}-{digits(max(values))})"


def digits(value: float) -> str:
    """Three digits: a bare scan of 1 M rows takes a few hundredths."""
    return f"{value:#.3g}".removesuffix(".")


def millions(rows: int) -> str:
    """A number of rows as the tables print it."""
    return f"{rows / 1e6:g} M"
