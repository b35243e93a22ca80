"""The process that does the work of one night. It is started by `nightly.watch`, and ends with it.

It reads one line of JSON from stdin, writes events and one result as lines of JSON to stdout, and lives as long as
stdin is open: when its supervisor dies, however it dies, so does the worker.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import IO, Any


def main() -> None:
    """Do what the line on stdin says."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor decides; a terminal signals both
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else prints shall not look like an event
    request = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_supervisor, daemon=True).start()
    result = _work(request, out)
    _say(out, {"result": result})
    # Not sys.exit: threads of the engine that a panic left behind would keep the process.
    os._exit(0)


def _end_with_supervisor() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)


def _work(request: dict[str, Any], out: IO[str]) -> dict[str, Any]:
    from docrecall.errors import DocrecallError  # noqa: PLC0415 - the thread above watches while this loads
    from docrecall.nightly.config import load_config  # noqa: PLC0415
    from docrecall.nightly.days import parse_date  # noqa: PLC0415
    from docrecall.nightly.job import run_night  # noqa: PLC0415

    def log(event: str, *counts: int, **fields: Any) -> None:
        _say(out, {"event": event, **({"done": counts[0], "of": counts[1]} if counts else {}), **fields})

    try:
        config = load_config(request["config"])
        os.chdir(config.folder)
        return run_night(config, parse_date("--date", request["date"]), log)
    except DocrecallError as error:
        one_line = " ".join(str(error).split())
        return {"exit_code": error.exit_code, "error": type(error).__name__, "reason": one_line}
    except MemoryError:
        return {"exit_code": 70, "error": "WorkerError", "reason": "the worker ran out of memory."}
    except BaseException as error:  # a panic of the engine is no Exception
        if os.environ.get("DOCRECALL_DEBUG"):
            raise
        what = "the engine panicked" if type(error).__name__ == "PanicException" else type(error).__name__
        return {
            "exit_code": 70,
            "error": "WorkerError",
            "reason": f"this is a fault of docrecall ({what}). What is published is whole. Please report it, with the "
            "output of the same command under DOCRECALL_DEBUG=1.",
        }


def _say(out: IO[str], message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
