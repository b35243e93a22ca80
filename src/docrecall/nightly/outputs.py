"""What a run tells other programs: a JSON document, a Prometheus textfile, a Markdown summary."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from docrecall.errors import InputError, OutputError
from docrecall.nightly import days
from docrecall.nightly.config import Config
from docrecall.nightly.store import ROWS, Night, Store
from docrecall.report.markdown import escape, markdown_table
from docrecall.report.structured import SCHEMA_VERSION
from docrecall.report.words import interval, number
from docrecall.show import printable
from docrecall.staging import TEMPORARY, named, write_whole

# Of several nights the first of these is the exit code of all: what needs a person comes before what time may mend.
_GRAVEST = (70, 6, 3, 2, 1, 4, 7, 5, 0)
_HOUR = 3_600
_GAUGES = {
    "last_exit_code": "exit code of the last run",
    "last_run_timestamp_seconds": "when the last run ended",
    "last_success_timestamp_seconds": "when a run last ended with exit code 0",
    "night_timestamp_seconds": "first moment of the newest published night",
    "mean": "mean of a measure in the newest published night",
    "mean_low": "lower end of its interval",
    "mean_high": "upper end of its interval",
    "values": "units with a value",
    "units": "units of the newest published night, by what became of them",
    "rows": "rows that were read for it, by what became of them",
    "gate_failed": "1 where a gate failed",
    "gate_judged": "0 where there was nothing to judge by",
}
_MARKS = {"passed": "passed", "failed": "**failed**", "not_judged": "not judged"}


def document(results: Sequence[Mapping[str, Any]], interrupted: int | None = None) -> dict[str, Any]:
    """What a run came to: its exit code, one line why, and each night."""
    code, reason = exit_code(results), ""
    bad = [r for r in results if r["exit_code"]]
    if len(results) == 1:
        reason = f"{results[0]['date']}: {results[0]['reason']}"
    elif results:
        reason = f"{len(results) - len(bad)} of {len(results)} nights are fine"
        reason += "".join(f"; {r['date']} ({r['exit_code']}): {r['reason']}" for r in bad[:3])
        reason += f"; and {len(bad) - 3} more" if len(bad) > 3 else ""
    if interrupted is not None:
        code = 128 + interrupted
        reason = (
            f"ended by {signal.Signals(interrupted).name}; what is published is whole{'; ' + reason if reason else ''}"
        )
    return {"schema_version": SCHEMA_VERSION, "exit_code": code, "reason": reason, "nights": list(results)}


def exit_code(results: Sequence[Mapping[str, Any]]) -> int:
    """The exit code of some nights together."""
    codes = {int(r["exit_code"]) for r in results}
    return next((code for code in _GRAVEST if code in codes), 0)


def as_json(told: Mapping[str, Any]) -> str:
    """JSON in ASCII: no letter of it can move a terminal's cursor or turn its text round."""
    return json.dumps(told, indent=2, allow_nan=False) + "\n"


def write(config: Config, told: Mapping[str, Any]) -> dict[str, Any]:
    """Write the outputs that are asked for, and give what they say.

    Where one cannot be written the exit code is that of it, the reason names it, and the others say so too.
    """
    store, out = Store(config.store), config.outputs
    texts: dict[Path | None, Callable[[Mapping[str, Any]], str]] = {
        out.json: as_json,
        out.markdown: markdown,
        out.prometheus: partial(prometheus, store),
    }
    wanted = {path: text for path, text in texts.items() if path is not None}
    failed = _write(wanted, told)
    if failed:
        code = exit_code([told, {"exit_code": OutputError.exit_code}])
        told = {**told, "exit_code": code, "reason": f"{' '.join(failed)} {told['reason']}"}
        _write(wanted, told)
    return dict(told)


def _write(texts: Mapping[Path, Callable[[Mapping[str, Any]], str]], told: Mapping[str, Any]) -> list[str]:
    """Write each, and say of which it failed."""
    failed = []
    for path, text in texts.items():
        try:
            with named(path), _signals_wait():
                _sweep(path.parent)
                write_whole(path, text(told).encode())
        except OutputError as error:
            failed.append(str(error))
    return failed


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """Let a signal end this process after the file is whole, and not with a temporary one beside it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _sweep(folder: Path) -> None:
    """Remove temporary files that a process left which was killed. None is in the making for an hour."""
    for left in folder.glob(f"{TEMPORARY}*"):
        with contextlib.suppress(OSError):
            if left.is_file() and time.time() - left.lstat().st_mtime > _HOUR:
                left.unlink()


def prometheus(store: Store, told: Mapping[str, Any], now: datetime | None = None) -> str:
    """The textfile: how the last run ended, and the newest published night.

    No two samples have the same name and labels: node_exporter would refuse the file.
    """
    samples: list[_Sample] = [
        ("last_exit_code", {}, told["exit_code"]),
        ("last_run_timestamp_seconds", {}, (now or datetime.now(UTC)).timestamp()),
    ]
    with contextlib.suppress(InputError):  # the exit code tells; a damaged store has no numbers to show
        samples = [*samples, *_of_store(store)]
    values: dict[str, dict[str, float]] = {name: {} for name in _GAUGES}
    for name, labels, value in samples:
        values[name].setdefault(_labels(labels), value)
    lines = []
    for name, found in values.items():
        if found:
            lines += [f"# HELP docrecall_{name} {_GAUGES[name]}", f"# TYPE docrecall_{name} gauge"]
            lines += [f"docrecall_{name}{labels} {value!r}" for labels, value in found.items()]
    return "\n".join(lines) + "\n"


_Sample = tuple[str, Mapping[str, object], float]


def _of_store(store: Store) -> Iterator[_Sample]:
    newest: Night | None = None
    verdict: Mapping[str, Any] | None = None
    succeeded = []
    for day in store.dates():
        newest = store.read(day)
        verdict = None if newest is None else store.verdict(newest)
        if verdict is not None and verdict["passed"]:
            succeeded.append(datetime.fromisoformat(verdict["judged_at"]).timestamp())
    if succeeded:
        yield "last_success_timestamp_seconds", {}, max(succeeded)
    if newest is None:
        return
    yield "night_timestamp_seconds", {}, days.bounds(newest.date)[0].timestamp()
    rows = newest.frame(ROWS).filter(pl.col("slice").is_null())
    for row in rows.to_dicts():
        labels = {"run": row["run_id"], "measure": row["measure"]}
        for metric, column in (("mean", "mean"), ("mean_low", "ci_low"), ("mean_high", "ci_high"), ("values", "n")):
            if row[column] is not None:
                yield metric, labels, row[column]
    for row in rows.unique("run_id", keep="first", maintain_order=True).to_dicts():
        for column in (c for c in row if c.startswith("n_") and c not in ("n_null", "n_eff")):
            yield "units", {"run": row["run_id"], "kind": column.removeprefix("n_")}, row[column]
    for table in newest.manifest["rows"]:
        for fate in ("read", "used", "duplicate", "rejected", "outside"):
            yield "rows", {"table": table["table"], "fate": fate}, table[fate]
    yield from _of_gates([] if verdict is None else verdict["gates"])


def _of_gates(gates: Iterable[Mapping[str, Any]]) -> Iterator[_Sample]:
    """The worst of the gates that have the same labels. by: the column of gates by slice; its values are no labels."""
    together: dict[tuple[str, ...], list[str]] = {}
    for gate in gates:
        key = tuple(gate[c] or "" for c in ("gate", "run_id", "measure", "slice"))
        together.setdefault(key, []).append(gate["status"])
    for key, found in together.items():
        labels = dict(zip(("gate", "run", "measure", "by"), key, strict=True))
        yield "gate_failed", labels, int("failed" in found)
        yield "gate_judged", labels, int("not_judged" not in found)


def _labels(labels: Mapping[str, object]) -> str:
    """Labels in braces; control and format characters, quotes and backslashes are written as escapes.

    What differs stays apart: long ones are not cut, and a backslash is doubled before others are made. Empty ones are
    those that are not there.
    """
    labels = {k: v for k, v in labels.items() if v != ""}
    if not labels:
        return ""
    texts = {k: printable(str(v).replace("\\", "\\\\"), sys.maxsize) for k, v in labels.items()}
    quoted = {k: v.replace("\\", "\\\\").replace('"', '\\"') for k, v in texts.items()}
    return "{" + ",".join(f'{k}="{v}"' for k, v in quoted.items()) + "}"


def markdown(told: Mapping[str, Any]) -> str:
    """A summary for a step of CI: how it ended, the gates, and the means with their n."""
    mark = "passed" if told["exit_code"] == 0 else f"exit code {told['exit_code']}"
    lines = [f"## docrecall nightly: {mark}", "", escape(printable(told["reason"], 2_000))]
    for night in told["nights"]:
        lines += ["", f"### {night['date']}", "", escape(printable(night["reason"], 2_000))]
        if night.get("gates"):
            rows = [[printable(g["gate"]), _MARKS[g["status"]], printable(g["why"], 500)] for g in night["gates"]]
            lines += ["", _table(["gate", "verdict", "why"], rows, 3)]
        if night.get("runs"):
            lines += ["", _table(["run", "measure", "mean", "interval", "n"], list(_means(night["runs"])), 2)]
    return "\n".join(lines) + "\n"


def _means(runs: Iterable[Mapping[str, Any]]) -> Iterator[list[Any]]:
    for run in runs:
        for measure, row in run["measures"].items():
            yield [printable(run["run_id"]), measure, number(row["mean"]), interval(row), row["n"]]


def _table(columns: list[str], rows: list[list[Any]], left: int) -> str:
    """A table of text that is shown as it is, but for our own marks."""
    cells = [[cell if cell in _MARKS.values() else escape(str(cell)) for cell in row] for row in rows]
    return markdown_table(columns, cells, left=left)
