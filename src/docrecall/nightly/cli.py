"""`docrecall nightly` and what goes with it."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from docrecall.errors import DocrecallError, IncompleteError, InputError, UsageError
from docrecall.printing import printing
from docrecall.show import printable

if TYPE_CHECKING:
    from docrecall.nightly.config import Config

# Commands import what they use when they run: `docrecall --help` loads neither polars nor numpy.

nightly = App(name="nightly", help="Score, publish and judge one night of a log.")
ConfigPath = Annotated[str, Parameter(help="The configuration, a TOML file; `docrecall nightly init` writes one.")]
Day = Annotated[str | None, Parameter(help="A date, as in 2026-11-30.")]
LogLines = Annotated[Literal["text", "json"], Parameter(help="How progress is told on stderr.")]
Results = Annotated[Literal["table", "json"], Parameter(help="How results are printed on stdout.")]


@nightly.default
def run(
    config: ConfigPath,
    *,
    date: Annotated[
        str | None, Parameter(help="The night, a UTC day, as in 2026-11-30. By default the last that is over.")
    ] = None,
    since: Annotated[str | None, Parameter(help="The first of several nights, which go on when one fails.")] = None,
    until: Annotated[str | None, Parameter(help="The last of several nights.")] = None,
    dry_run: Annotated[bool, Parameter(negative="", help="Print what would be read and done; do nothing.")] = False,
    log: LogLines = "text",
    format: Results = "table",
) -> int:
    """Score one night, or several, publish each as a whole, and judge it by the gates."""
    from docrecall.nightly.config import load_config  # noqa: PLC0415

    with _logging(log) as ended:
        found = load_config(config)
        chosen = _nights(date, since, until)
        ended.code = _plan(found, chosen) if dry_run else _tell(found, _work(found, chosen, log), format, log)
    return ended.code


@nightly.command
def init(
    path: Annotated[str, Parameter(help="Where to write it.")] = "nightly.toml",
) -> int:
    """Write a commented configuration that runs on the data of docrecall."""
    from docrecall.nightly.example import write_example  # noqa: PLC0415

    write_example(path)
    with printing():
        print(f"{printable(path)} is written. Try: docrecall nightly {printable(path)} --dry-run")
    return 0


@nightly.command
def verify(config: ConfigPath) -> int:
    """Compare every published byte with what was written; exit code 4 when any is not."""
    from docrecall.nightly.config import load_config  # noqa: PLC0415
    from docrecall.nightly.store import Store  # noqa: PLC0415
    from docrecall.nightly.verify import verify as check  # noqa: PLC0415

    found = check(Store(load_config(config).store))
    with printing():
        for fault in found.faults:
            print(fault)
    if found.faults:
        raise InputError(f"{len(found.faults)} faults in {found.nights} nights.")
    with printing():
        print(f"{found.nights} nights, {found.files} files: all as they were published.")
    return 0


@nightly.command
def show(config: ConfigPath, *, date: Day = None, format: Results = "table") -> int:
    """Print a published night, and what the gates said of it."""
    from docrecall.nightly.config import load_config  # noqa: PLC0415
    from docrecall.nightly.days import last_whole, parse_date  # noqa: PLC0415
    from docrecall.nightly.job import told_of  # noqa: PLC0415
    from docrecall.nightly.outputs import as_json  # noqa: PLC0415
    from docrecall.nightly.store import Store  # noqa: PLC0415
    from docrecall.report.nightly import print_night  # noqa: PLC0415
    from docrecall.report.terminal import console  # noqa: PLC0415

    store = Store(load_config(config).store)
    day = last_whole() if date is None else parse_date("--date", date)
    night = store.read(day)
    if night is None:
        raise IncompleteError(f"{day} is not published in {printable(store.root)}.")
    if night.damage():
        raise InputError(f"{night.damage()[0]}. `docrecall nightly verify` tells everything that is damaged.")
    verdict = store.verdict(night) or {"passed": None, "reason": "the gates have not spoken yet", "gates": []}
    told = told_of(night, "published", verdict)
    with printing():
        if format == "json":
            print(as_json(told), end="")
        else:
            print_night(told, console())
    return 0


@nightly.command
def total(
    config: ConfigPath,
    *,
    since: Annotated[str, Parameter(help="The first night.")],
    until: Annotated[str, Parameter(help="The last night.")],
    recompute: Annotated[
        bool, Parameter(negative="", help="Work on all these nights first; those that are up to date cost little.")
    ] = False,
    by: Annotated[str | None, Parameter(help="A slice of the configuration, to part the means by.")] = None,
    log: LogLines = "text",
    format: Annotated[Literal["table", "json", "csv"], Parameter(help="How results are printed on stdout.")] = "table",
) -> int:
    """Print the means of several published nights together, without reading a hit again."""
    from docrecall.nightly.config import load_config  # noqa: PLC0415
    from docrecall.nightly.outputs import exit_code  # noqa: PLC0415
    from docrecall.nightly.store import Store  # noqa: PLC0415
    from docrecall.nightly.total import add_nights  # noqa: PLC0415
    from docrecall.report.files import to_csv  # noqa: PLC0415
    from docrecall.report.nightly import print_total  # noqa: PLC0415
    from docrecall.report.terminal import console  # noqa: PLC0415

    with _logging(log) as ended:
        found = load_config(config)
        chosen = _nights(None, since, until)
        if recompute:
            told = _work(found, chosen, log)
            if exit_code(told["nights"]) not in (0, 1) or told["exit_code"] > 128:
                ended.code = _tell(found, told, "table", log)
                return ended.code
        table = add_nights(Store(found.store), chosen, found.level, by)
        with printing():
            if format == "json":
                print(json.dumps(table.to_dicts(), indent=2, allow_nan=False))
            elif format == "csv":
                print(to_csv(table), end="")
            else:
                print_total(table, console())
    return ended.code


def _nights(date: str | None, since: str | None, until: str | None) -> list[datetime.date]:
    from docrecall.nightly.days import last_whole, nights, parse_date  # noqa: PLC0415

    if date is not None and (since is not None or until is not None):
        raise UsageError("--date names one night, --since and --until several; give one of the two.")
    if until is not None and since is None:
        raise UsageError("--until needs --since.")
    if since is None:
        return [last_whole() if date is None else parse_date("--date", date)]
    first = parse_date("--since", since)
    last = last_whole() if until is None else parse_date("--until", until)
    return nights("--since", first, last)


def _work(config: Config, chosen: list[datetime.date], log: str) -> dict[str, Any]:
    """Work on nights, each in a process of its own, and give the document of all of them."""
    from docrecall.nightly.outputs import document  # noqa: PLC0415
    from docrecall.nightly.watch import Interrupted, Signals, supervise  # noqa: PLC0415
    from docrecall.report import nightly  # noqa: F401, PLC0415 - after a signal there is no time to load it

    results: list[dict[str, Any]] = []
    with Signals() as signals:
        try:
            for night in chosen:
                say = _json_lines(night) if log == "json" else _text_lines(night)
                result = supervise(config.file, night, signals, say)
                results.append(result)
                if log == "json" or len(chosen) > 1:
                    say({"event": "ended", "exit_code": result["exit_code"], "reason": result["reason"]})
        except Interrupted as interrupted:
            return document(results, interrupted.number)
    return document(results)


class _Ended:
    """The exit code that a command comes to."""

    code = 0


@contextlib.contextmanager
def _logging(log: str) -> Iterator[_Ended]:
    """Where lines of JSON are asked for, a failure is one too."""
    ended = _Ended()
    try:
        yield ended
    except DocrecallError as error:
        if log != "json":
            raise
        ended.code = error.exit_code
        _json({"event": "done", "exit_code": ended.code, "reason": " ".join(str(error).split())})


def _tell(config: Config, told: dict[str, Any], format: str, log: str) -> int:
    """Write the outputs and print the results; the exit code, the last line on stderr and the JSON say the same."""
    from docrecall.nightly import outputs  # noqa: PLC0415
    from docrecall.report.nightly import print_night  # noqa: PLC0415
    from docrecall.report.terminal import console  # noqa: PLC0415

    if told["exit_code"] < 128:
        told = outputs.write(config, told)
    with printing():
        if format == "json":
            print(outputs.as_json(told), end="")
        else:
            for night in told["nights"]:
                print_night(night, console())
    if log == "json":
        _json({"event": "done", "exit_code": told["exit_code"], "reason": told["reason"]})
    elif told["exit_code"]:
        print(f"docrecall: {printable(told['reason'], 2_000)}", file=sys.stderr)
    return int(told["exit_code"])


def _json_lines(night: datetime.date) -> Any:
    def say(event: dict[str, Any]) -> None:
        if not event.get("quiet"):
            _json({"night": night.isoformat(), **event})

    return say


def _json(line: dict[str, Any]) -> None:
    time = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    print(json.dumps({"time": time, **line}), file=sys.stderr, flush=True)


def _text_lines(night: datetime.date) -> Any:
    def say(event: dict[str, Any]) -> None:
        if event.get("quiet"):
            return
        fields = {k: v for k, v in event.items() if k not in ("event", "date")}
        told = ", ".join(f"{k} {v}" for k, v in fields.items())
        print(printable(f"docrecall: {night}: {event['event']}{': ' + told if told else ''}", 500), file=sys.stderr)

    return say


def _plan(config: Config, chosen: list[datetime.date]) -> int:
    """Print what would be read and done. Inputs are listed and opened; of text files that means read."""
    from docrecall.nightly.inputs import open_night, told_of_inputs  # noqa: PLC0415
    from docrecall.nightly.outputs import exit_code  # noqa: PLC0415
    from docrecall.nightly.store import Store  # noqa: PLC0415

    os.chdir(config.folder)
    store, codes = Store(config.store), []
    with printing():
        print(f"store: {printable(store.root)}")
        print(f"measures: {', '.join(config.names)}")
        options = {"universe": config.options.universe, **config.options.changed}
        print(f"options: {', '.join(f'{name}={value!r}' for name, value in options.items())}")
        print(f"gates: {len(config.gates)} of measures, baseline {config.baseline.against}")
        for night in chosen:
            published = (
                "is published; it is replaced if inputs or configuration changed" if store.read(night) else "is new"
            )
            print(f"{night} {published}")
            try:
                for line in told_of_inputs(open_night(config, night)):
                    print(f"  {line}")
                codes.append({"exit_code": 0})
            except DocrecallError as error:
                print(f"  {error}")
                codes.append({"exit_code": error.exit_code})
    return exit_code(codes)
