"""What a nightly job is told: one TOML file, checked as a whole before anything is read.

Every fault is told at once, each with its line and the nearest known name.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from docrecall.errors import InputError, UsageError
from docrecall.measures.grammar import Measure, parse_all
from docrecall.memory import parse_bytes
from docrecall.nightly import days
from docrecall.nightly.places import clashes
from docrecall.nightly.reader import Reader
from docrecall.options import Options
from docrecall.show import printable
from docrecall.staging import digest
from docrecall.tables import TABLES

Against = Literal["nothing", "last_good", "median", "night", "run"]
_LABELS = ("qrels", "evidence", "queries", "requests", "documents", "chunks")


@dataclass(frozen=True)
class Sources:
    """Where the tables of a night are, as the file says it; `of` puts a date in.

    hits: paths, or run -> paths. tables: name -> paths. marker: a file that is there when the night is delivered. time:
    the column of hits that says when, which is then checked.
    """

    hits: tuple[str, ...] | Mapping[str, tuple[str, ...]]
    tables: Mapping[str, tuple[str, ...]]
    marker: str | None = None
    map: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    time: str | None = None

    def all(self) -> dict[str, tuple[str, ...]]:
        """Every source by a name for messages: `hits`, `hits.RUN` or the table's."""
        hits = {f"hits.{run}": p for run, p in self.hits.items()} if isinstance(self.hits, Mapping) else {}
        return {**(hits or {"hits": tuple(self.hits)}), **self.tables}

    def hits_of(self, night: date) -> list[str] | dict[str, list[str]]:
        """The hits of a night, as `docrecall.score` takes them."""
        if isinstance(self.hits, Mapping):
            return {run: [days.fill(p, night) for p in paths] for run, paths in self.hits.items()}
        return [days.fill(p, night) for p in self.hits]

    def tables_of(self, night: date) -> dict[str, list[str]]:
        """The other tables of a night."""
        return {name: [days.fill(p, night) for p in paths] for name, paths in self.tables.items()}


@dataclass(frozen=True)
class Baseline:
    """What gates compare a night with.

    against: "last_good": the last night before it that passed its gates; "median": of the last `nights` such nights the
    one with the median mean; "night": a fixed one; "run": another run of the same night; "nothing".
    """

    against: Against = "nothing"
    run: str | None = None
    night: date | None = None
    nights: int = 7


@dataclass(frozen=True)
class Gate:
    """What a measure of a run must keep. run: None for each run but the baseline's.

    min: the lowest mean. max_drop: the largest drop below the baseline. by: a slice column; the gate then looks at each
    slice with at least min_n values, and `fdr` bounds the expected share of false alarms among them.
    """

    measure: str
    run: str | None = None
    min: float | None = None
    max_drop: float | None = None
    by: str | None = None
    min_n: int = 30
    fdr: float = 0.05


@dataclass(frozen=True)
class DataGates:
    """Bounds on the data itself: shares of units, and rows against the median of the nights before."""

    max_unlabelled: float | None = None
    max_stale: float | None = None
    max_rejected: float | None = None
    max_no_hits: float | None = None
    max_version_mismatch: float | None = None
    min_rows: float | None = None
    max_rows: float | None = None


@dataclass(frozen=True)
class Outputs:
    """Files beside the store, each replaced as a whole after every run."""

    prometheus: Path | None = None
    markdown: Path | None = None
    json: Path | None = None


@dataclass(frozen=True)
class Config:
    """A checked configuration. Paths of outputs are absolute; sources are relative to `folder` unless they are not."""

    file: Path
    store: Path
    sources: Sources
    measures: tuple[Measure, ...]
    options: Options
    slices: tuple[str, ...] = ()
    canary: int = 50
    memory: str | None = None
    level: float = 0.95
    keep_days: int = 7
    baseline: Baseline = field(default_factory=Baseline)
    gates: tuple[Gate, ...] = ()
    data: DataGates = field(default_factory=DataGates)
    outputs: Outputs = field(default_factory=Outputs)

    @property
    def folder(self) -> Path:
        """The folder of the file, which relative paths start from."""
        return self.file.parent

    @property
    def names(self) -> list[str]:
        """The measures by name."""
        return [str(m) for m in self.measures]

    @property
    def digest(self) -> str:
        """Equal for configurations that give the same numbers from the same inputs; gates and outputs take no part."""
        told = {
            "measures": self.names,
            "options": asdict(self.options),
            "slices": self.slices,
            "level": self.level,
            "map": self.sources.map,
            "read": self.sources.read,
        }
        return digest(told)


def load_config(path: str | os.PathLike[str]) -> Config:
    """Read and check a configuration. UsageError tells every fault with its line; InputError: there is no such file."""
    file = Path(os.path.abspath(path))  # noqa: PTH100 - resolve would follow the link that deployments swap
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(f"{printable(path)} cannot be read: {reason}. `docrecall nightly init` writes one.") from None
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{printable(path)} is not TOML: {printable(error)}.") from None
    reader = Reader(text, file.parent)
    config = _config(file, reader)
    reader.finish(printable(path))
    return config


def _config(file: Path, r: Reader) -> Config:
    r.sections("store", "sources", "score", "options", "baseline", "gates", "data", "outputs")
    sources = _sources(r)
    level: float | None = None
    measures: tuple[Measure, ...] = ()
    with r.table("store", required=True) as t:
        store = t.path("path", required=True)
        keep_days = t.whole("keep_days", 7, least=1, most=36_500)
    with r.table("score", required=True) as t:
        names = t.texts("measures", required=True)
        measures = t.checked("measures", lambda: parse_all(list(names)), ()) if names else ()
        slices = t.texts("slices")
        canary = t.whole("canary", 50, least=0, most=1_000_000)
        memory = t.text("memory")
        if memory is not None:
            t.checked("memory", partial(parse_bytes, memory), 0)
        level = t.share("level", 0.95)
    options = _options(r)
    known = [str(m) for m in measures]
    baseline, outputs = _baseline(r, sources), _outputs(r)
    for section, key, fault in clashes(file, store, asdict(outputs), _all_paths(sources)):
        r.note((section, key), fault)
    return Config(
        file,
        store or file.parent,
        sources,
        measures,
        options,
        tuple(slices),
        canary,
        memory,
        level or 0.95,
        keep_days,
        baseline,
        _gates(r, sources, known, tuple(slices), baseline),
        _data(r),
        outputs,
    )


def _sources(r: Reader) -> Sources:
    with r.table("sources", required=True) as t:
        runs = t.runs("hits")
        hits = runs if runs is not None else t.paths("hits", required=True)
        tables = {name: paths for name in _LABELS if (paths := t.paths(name))}
        if not t.broken and not {"qrels", "evidence"} & tables.keys():
            t.fault(None, "no labels: name qrels, evidence, or both")
        marker = t.paths("marker")
        first = marker[0] if marker else None
        found = Sources(hits, tables, first, tuple(t.texts("map")), tuple(t.texts("read")), t.text("time"))
        if not t.flag("undated") and not t.broken and not _is_dated(found):
            t.fault(
                "hits",
                "hits do not say the whole date, so that nights would be scored from the same files: write {date} or "
                "its parts, or undated = true if that is meant",
            )
        if not t.broken:
            t.checked("map", lambda: _mapping(found), None)
    return found


def _is_dated(sources: Sources) -> bool:
    """Whether each night has hits of its own. One run of several may be the same every night, to compare with."""
    if not isinstance(sources.hits, Mapping):
        return all(map(days.names_a_day, sources.hits))
    runs = [[days.names_a_day(p) for p in paths] for paths in sources.hits.values()]
    return any(map(any, runs)) and all(all(dated) for dated in runs if any(dated))


def _mapping(sources: Sources) -> None:
    from docrecall.sources.mapping import parse_mapping  # noqa: PLC0415 - loads polars, which --help need not

    parse_mapping(list(sources.map) or None, list(sources.read) or None)


def _options(r: Reader) -> Options:
    with r.table("options", required=True) as t:
        if "universe" not in t.values:
            t.fault(None, 'universe is not stated. "all": every labelled query is scored; "hits": only what was asked')
        found: dict[str, Any] = {}
        for name, value in t.rest().items():  # one by one, so that each fault has its line
            one = {name: value}
            if t.checked(name, partial(Options.of, ("measures", "memory"), **one), None) is not None:
                found |= one
        return Options(**found)


def _baseline(r: Reader, sources: Sources) -> Baseline:
    with r.table("baseline") as t:
        words = get_args(Against)
        against: Any = t.word("against", words, "nothing")
        run, night, n = t.text("run"), t.day("night"), t.whole("nights", 7, least=1, most=3_660)
        for name, found, like in (("run", run, '"NAME"'), ("night", night, "2026-11-30")):
            if (against == name) != (found is not None) and not t.broken:
                t.fault(name if found else "against", f'against = "{name}" and {name} = {like} go together')
        if run is not None and isinstance(sources.hits, Mapping) and run not in sources.hits:
            t.unknown("run", run, list(sources.hits), "run")
    return Baseline(against, run, night, n)


def _gates(
    r: Reader, sources: Sources, measures: list[str], slices: tuple[str, ...], baseline: Baseline
) -> tuple[Gate, ...]:
    gates = []
    for t in r.tables("gates"):
        with t:
            measure = t.text("measure", required=True) or ""
            if measure and measure not in measures and measures:
                t.unknown("measure", measure, measures, "measure of [score]")
            run = t.text("run")
            if run is not None and isinstance(sources.hits, Mapping) and run not in sources.hits:
                t.unknown("run", run, list(sources.hits), "run")
            low, drop = t.number("min"), t.number("max_drop", least=0)
            by = t.text("by")
            if by is not None and by not in slices:
                t.unknown("by", by, list(slices), "slice of [score]")
            if low is None and drop is None:
                t.fault(None, "this gate asks for nothing: set min, max_drop, or both")
            if drop is not None and baseline.against == "nothing":
                t.fault("max_drop", 'there is nothing to drop below: set against in [baseline], such as "last_good"')
            gates.append(
                Gate(
                    measure,
                    run,
                    low,
                    drop,
                    by,
                    t.whole("min_n", 30, least=2, most=1_000_000_000),
                    t.share("fdr", 0.05) or 0.05,
                )
            )
    return tuple(gates)


def _data(r: Reader) -> DataGates:
    with r.table("data") as t:
        shares = {name: t.share(name) for name in DataGates.__dataclass_fields__ if not name.endswith("_rows")}
        return DataGates(**shares, min_rows=t.number("min_rows", least=0), max_rows=t.number("max_rows", least=0))


def _outputs(r: Reader) -> Outputs:
    with r.table("outputs") as t:
        return Outputs(**{name: t.path(name) for name in Outputs.__dataclass_fields__})


def _all_paths(sources: Sources) -> dict[str, tuple[str, ...]]:
    marker = {} if sources.marker is None else {"marker": (sources.marker,)}
    return {**sources.all(), **marker}


assert set(_LABELS) == set(TABLES) - {"hits"}
