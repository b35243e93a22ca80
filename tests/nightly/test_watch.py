"""The worker process: ended by signals within two seconds, and never dead without a word."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from docrecall.nightly.watch import Signals, death, supervise
from tests.nightly.nights import DAY, command, deliver, hits, job, leftovers, qrels, referenced, run, store_of
from tests.small import write


def started(config: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "docrecall", "nightly", str(config), "--date", str(DAY), "--log", "json", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(process: subprocess.Popen[str], event: str) -> None:
    """Read the log up to an event."""
    assert process.stderr is not None
    for line in process.stderr:
        if json.loads(line)["event"] == event:
            return
    raise AssertionError(f"no {event}: exit code {process.wait()}")


def children(pid: int) -> list[int]:
    """The workers that a process has started; a process of tests may have other children too."""
    started = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(p) for p in started if b"docrecall.nightly.worker" in Path(f"/proc/{p}/cmdline").read_bytes()]


def large(folder: Path, n: int = 400_000) -> Path:
    """A night that takes a while: so many queries with one hit each, in no order."""
    config = job(folder, {})
    rows = hits(n // 2, n=n, query_text=None).drop("query_text").sample(fraction=1, shuffle=True, seed=1)
    deliver(folder, DAY, rows)
    write(folder / "labels" / "qrels.parquet", qrels(n))
    return config


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("event", ["started", "inputs"])
def test_signals_end_the_run(number: signal.Signals, code: int, event: str, tmp_path: Path) -> None:
    """With their own exit code in every form; the worker is gone and nothing is published.

    The run book promises two seconds; a machine that is busy with other things is given ten.
    """
    config = large(tmp_path)
    process = started(config, "--format", "json")
    wait_for(process, event)
    worker = children(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert process.returncode == code
    assert json.loads(out)["exit_code"] == code
    last = json.loads(err.splitlines()[-1])
    assert (last["event"], last["exit_code"]) == ("done", code)
    assert last["reason"].startswith(f"ended by {number.name}")
    assert not any(Path(f"/proc/{pid}").exists() for pid in worker)
    assert store_of(config).read(DAY) is None


def test_a_run_after_a_signal_gives_the_same(tmp_path: Path) -> None:
    """What an ended run left is tidied up by the next, which publishes what a clean one does."""
    config = job(tmp_path / "a")
    process = started(config)
    wait_for(process, "inputs")
    process.terminate()
    process.communicate()
    run(config)
    clean = job(tmp_path / "b")
    run(clean)
    assert referenced(config) == referenced(clean)
    assert leftovers(config) == []


def test_the_worker_goes_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    """After SIGKILL the worker sees that nobody is there, and the lock is free."""
    config = large(tmp_path)
    process = started(config)
    wait_for(process, "inputs")
    (worker,) = children(process.pid)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{worker}").exists()
    with store_of(config).locked(DAY):
        pass


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (signal.SIGKILL, 70, "it was killed (SIGKILL), most likely for want of memory"),
        (signal.SIGBUS, 4, "it died of SIGBUS: an input was cut short while it was read"),
        (signal.SIGSEGV, 70, "it died of SIGSEGV"),
        (signal.SIGABRT, 70, "it died of SIGABRT"),
    ],
)
def test_a_worker_that_dies_of_a_signal_is_named(number: signal.Signals, code: int, words: str, tmp_path: Path) -> None:
    """The supervisor says of what, with an exit code, and without a traceback."""
    config = large(tmp_path)

    def kill(event: dict[str, Any]) -> None:
        if event["event"] == "inputs":
            os.kill(children(os.getpid())[0], number)

    with Signals() as signals:
        result = supervise(config, DAY, signals, kill)
    assert result["exit_code"] == code
    assert words in result["reason"]
    assert "Traceback" not in result["reason"]


def test_a_worker_without_memory_is_named(tmp_path: Path) -> None:
    """Under a limit on address space the engine aborts; the message says memory, not a signal."""
    config = large(tmp_path, 2_000_000)
    limited = f"ulimit -v 1500000; exec {sys.executable} -m docrecall nightly {config} --date {DAY}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert "memory" in done.stderr
    assert "Traceback" not in done.stderr
    assert store_of(config).read(DAY) is None


def test_a_panic_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A panic of the engine, which is no Exception, becomes a result with exit code 70."""
    from docrecall.nightly import worker  # noqa: PLC0415

    def panic(*_: Any) -> None:
        raise pl.exceptions.PanicException("secret cell text")

    monkeypatch.setattr("docrecall.nightly.job.run_night", panic)
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "out").open("w") as out:
        result = worker._work({"config": str(job(tmp_path)), "date": str(DAY)}, out)
    assert (result["exit_code"], result["error"]) == (70, "WorkerError")
    assert "the engine panicked" in result["reason"]
    assert "secret" not in result["reason"]


def test_a_worker_that_says_nothing_is_named() -> None:
    """A worker that ends without a result is told with its status; what it printed is not passed on."""
    told = death(3, "secret text")
    assert told["exit_code"] == 70
    assert "status 3" in told["reason"]
    assert "secret" not in told["reason"]


def test_one_dead_worker_does_not_stop_a_backfill(tmp_path: Path) -> None:
    """The worker of the first night is killed; the second night is published."""
    config = job(tmp_path, {DAY - timedelta(days=1): 8, DAY: 8})
    results: list[int] = []

    def kill(event: dict[str, Any]) -> None:
        if event == {"event": "started", "date": str(DAY - timedelta(days=1))}:
            os.kill(children(os.getpid())[0], signal.SIGKILL)

    with Signals() as signals:
        results += (supervise(config, day, signals, kill)["exit_code"] for day in (DAY - timedelta(days=1), DAY))
    assert results == [70, 0]


def test_the_folder_of_the_call_is_no_place_to_import_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A polars.py beside the configuration is not run."""
    config = job(tmp_path)
    for name in ("polars.py", "json.py", "docrecall.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    assert command(config, "--date", str(DAY)) == 0
