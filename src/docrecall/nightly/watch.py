"""Supervision: each night is worked on in a process of its own, which is ended at once by a signal to this one.

A handler only sets a flag and a loop looks at it: a Python handler in the working process would run when the engine
returns, and waiting for a child inside a handler deadlocks. What was being written is left to the next run's janitor.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from types import FrameType
from typing import IO, Any

Event = Callable[[dict[str, Any]], None]
_LOOK = 0.1  # seconds between looks at the flag
_TAIL = 8_192


class Interrupted(Exception):  # noqa: N818 - it is no error
    """A signal asked this process to end. number: which."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """Whether SIGTERM or SIGINT came. `with` it: the handlers of before are put back."""

    def __init__(self) -> None:
        self.seen: int | None = None

    def __enter__(self) -> Signals:
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.seen = self.seen or number

    def check(self) -> None:
        """Raise Interrupted when a signal came."""
        if self.seen is not None:
            raise Interrupted(self.seen)


def supervise(config: Path, night: date, signals: Signals, event: Event) -> dict[str, Any]:
    """Run one night in a worker and give its result, or an error that says how the worker died.

    event: called with each event of the worker. Raises Interrupted within a fraction of a second of a signal, when the
    worker is gone.
    """
    request = json.dumps({"config": str(config), "date": night.isoformat()}) + "\n"
    result: dict[str, Any] | None = None
    with tempfile.TemporaryFile() as errors:
        # -P: the folder that the command was called in is no place to import from.
        command = [sys.executable, "-P", "-m", "docrecall.nightly.worker"]
        worker = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("DOCRECALL_DEBUG") else errors,
            start_new_session=True,
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                worker.stdin.write(request.encode())
                worker.stdin.flush()
            for message in _messages(worker.stdout, signals):
                if "result" in message:
                    result = message["result"]
                else:
                    event(message)
            while worker.poll() is None:  # it closed its end, and is about to go
                signals.check()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    worker.wait(_LOOK)
        finally:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
            worker.stdin.close()
            worker.stdout.close()
        if result is None:
            result = death(worker.returncode, _tail(errors))
    return {"date": night.isoformat(), **result}


def _messages(pipe: IO[bytes], signals: Signals) -> Iterator[dict[str, Any]]:
    """The lines of a worker as they come, until it closes its end. A line that is cut off is left out."""
    held = b""
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while True:
            signals.check()
            if not ready.select(_LOOK):
                continue
            chunk = os.read(pipe.fileno(), 65_536)
            if not chunk:
                return
            *lines, held = (held + chunk).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):
                    yield json.loads(line)


def death(code: int, said: str) -> dict[str, Any]:
    """Say how a worker died, from its exit status and the end of what it wrote to stderr, which is never passed on."""
    name = signal.Signals(-code).name if code < 0 and -code in set(signal.Signals) else str(-code)
    memory = "memory allocation" in said or "Cannot allocate memory" in said or "MemoryError" in said
    kind, exit_code = "WorkerError", 70
    if -code == signal.SIGBUS:
        kind, exit_code = "InputError", 4
        why = "it died of SIGBUS: an input was cut short while it was read. Run again when the files stay as they are."
    elif memory:
        why = "it ran out of memory. Set memory in [score] below what there is, or give the job more."
    elif -code == signal.SIGKILL:
        why = "it was killed (SIGKILL), most likely for want of memory. Set memory in [score], or give the job more."
    elif code < 0:
        why = f"it died of {name}. Please report this, with the output under DOCRECALL_DEBUG=1."
    else:
        why = f"it ended with status {code} and without a result. Look again under DOCRECALL_DEBUG=1."
    return {
        "exit_code": exit_code,
        "error": kind,
        "reason": f"the worker is gone: {why} What is published is whole.",
    }


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL))
    return file.read().decode("utf-8", "replace")
