"""A TOML text read key by key: what is wrong is noted with its line, and told all together at the end."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from docrecall.errors import UsageError, nearest
from docrecall.nightly import days
from docrecall.nightly.toml import Path as Keys
from docrecall.nightly.toml import key_lines, nearest_line
from docrecall.show import printable

T = TypeVar("T")
_MAGIC = re.compile(r"[*?\[]")


class Reader:
    """A whole text. folder: where relative paths start."""

    def __init__(self, text: str, folder: Path) -> None:
        self.values: dict[str, Any] = tomllib.loads(text)
        self.folder = folder
        self._text = text
        self._faults: list[tuple[Keys, str]] = []

    def sections(self, *known: str) -> None:
        """Note every top-level name that is none of these."""
        for name in self.values:
            if name not in known:
                self.note((name,), f"unknown section '{printable(name)}'.{nearest(name, known)}")

    def table(self, name: str, *, required: bool = False) -> Section:
        """Open a table; what is absent reads as empty."""
        values = self.values.get(name, {})
        if required and name not in self.values:
            self.note((), f"[{name}] is missing")
        elif not isinstance(values, dict):
            self.note((name,), f"[{name}] must be a table of keys")
        return Section(self, (name,), values if isinstance(values, dict) else {})

    def tables(self, name: str) -> Iterator[Section]:
        """Open each table of an array."""
        values = self.values.get(name, [])
        if not isinstance(values, list) or not all(isinstance(v, dict) for v in values):
            self.note((name,), f"write each of the {name} as a table of its own: [[{name}]]")
            return
        for number, one in enumerate(values):
            yield Section(self, (name, number), one)

    def note(self, where: Keys, fault: str) -> None:
        """Remember a fault, a sentence."""
        self._faults.append((where, fault if fault.endswith((".", "?")) else f"{fault}."))

    @property
    def n_faults(self) -> int:
        """Faults so far."""
        return len(self._faults)

    def finish(self, name: str) -> None:
        """Raise a UsageError that tells every fault, in the order of the lines."""
        if not self._faults:
            return
        lines = key_lines(self._text)
        told = sorted((nearest_line(lines, where) or 0, fault) for where, fault in self._faults)
        some = "1 fault" if len(told) == 1 else f"{len(told)} faults"
        rows = [f"  line {line}: {fault}" if line else f"  {fault}" for line, fault in told]
        raise UsageError("\n".join([f"{name} has {some}:", *rows]))


class Section:
    """One table. `with` it: keys that nobody asked for are faults."""

    def __init__(self, reader: Reader, where: Keys, values: dict[str, Any]) -> None:
        self.values = values
        self._reader, self._where = reader, where
        self._asked: list[str] = []
        self._before = reader.n_faults

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            for key in self.values:
                if key not in self._asked:
                    self.fault(key, f"unknown key '{printable(key)}'.{nearest(key, self._asked)}")

    @property
    def broken(self) -> bool:
        """Whether a fault was found in this table."""
        return self._reader.n_faults > self._before

    def fault(self, key: str | None, fault: str) -> None:
        """Note a fault of a key, or of the table."""
        self._reader.note(self._where if key is None else (*self._where, key), fault)

    def unknown(self, key: str, found: str, known: Sequence[str], what: str) -> None:
        """Note a name that is none of those that there are."""
        there = ", ".join(known) if known else "there is none"
        self.fault(key, f"{key} is '{printable(found)}', no {what} ({there}).{nearest(found, known)}")

    def checked(self, key: str | None, make: Callable[[], T], otherwise: T) -> T:
        """Make a value; what refuses it becomes a fault here."""
        try:
            return make()
        except (UsageError, ValueError) as error:
            self.fault(key, str(error))
            return otherwise

    def rest(self) -> dict[str, Any]:
        """All keys that nobody asked for yet."""
        found = {key: value for key, value in self.values.items() if key not in self._asked}
        self._asked += found
        return found

    def _get(self, key: str, wanted: str, fits: Callable[[Any], bool], *, required: bool = False) -> Any:
        self._asked.append(key)
        value = self.values.get(key)
        if value is None:
            if required:
                self.fault(None, f"{key} is missing: {wanted}")
            return None
        if not fits(value):
            self.fault(key, f"{key} must be {wanted}")
            return None
        return value

    def text(self, key: str, *, required: bool = False) -> str | None:
        """A text that is not empty."""
        found: str | None = self._get(key, "a text", lambda v: isinstance(v, str) and v != "", required=required)
        return found

    def texts(self, key: str, *, required: bool = False) -> list[str]:
        """A text or a list of texts."""
        found = self._get(key, "a text or a list of texts", _are_texts, required=required)
        return [] if found is None else [found] if isinstance(found, str) else list(found)

    def word(self, key: str, words: Sequence[str], default: str) -> str:
        """One of some words."""
        found = self.text(key)
        if found is not None and found not in words:
            self.unknown(key, found, words, "word that stands here")
        return default if found is None else found

    def flag(self, key: str) -> bool:
        """True or false; what is absent is false."""
        return bool(self._get(key, "true or false", lambda v: isinstance(v, bool)))

    def day(self, key: str) -> date | None:
        """A date, as a text or as TOML writes it."""
        wanted = "a date, as in 2026-11-30"
        found = self._get(key, wanted, lambda v: isinstance(v, str | date) and not isinstance(v, datetime))
        if isinstance(found, str):
            return self.checked(key, lambda: days.parse_date(key, found), None)
        return found if isinstance(found, date) else None

    def whole(self, key: str, default: int, *, least: int, most: int) -> int:
        """A whole number."""
        wanted = f"a whole number from {least} to {most:,}"
        found = self._get(key, wanted, lambda v: _is_whole(v) and least <= v <= most)
        return default if found is None else int(found)

    def number(self, key: str, *, least: float = -math.inf) -> float | None:
        """A finite number."""
        wanted = "a number" if least == -math.inf else f"a number of at least {least:g}"
        found = self._get(key, wanted, lambda v: _is_number(v) and v >= least)
        return None if found is None else float(found)

    def share(self, key: str, default: float | None = None) -> float | None:
        """A number from 0 to 1; without 0 and 1 themselves where there is a default, which then is a level."""
        inner = default is not None
        wanted = "a number between 0 and 1" if inner else "a number from 0 to 1"
        found = self._get(key, wanted, lambda v: _is_number(v) and (0 < v < 1 if inner else 0 <= v <= 1))
        return default if found is None else float(found)

    def path(self, key: str, *, required: bool = False) -> Path | None:
        """A path to write to, made absolute."""
        found = self.text(key, required=required)
        if found is None:
            return None
        if days.is_dated(found) or days.stray_braces(found):
            self.fault(key, f"{key} may not depend on the date: it is replaced by every run")
        self._inside(key, found)
        return Path(os.path.normpath(self._reader.folder / found))

    def paths(self, key: str, *, required: bool = False) -> tuple[str, ...]:
        """A path to read from, or a list of them, with places for the date."""
        found = self.texts(key, required=required)
        for path in found:
            self._source(key, path)
        return tuple(found)

    def runs(self, key: str) -> dict[str, tuple[str, ...]] | None:
        """Run -> paths; None where the key holds no table."""
        values = self.values.get(key)
        if not isinstance(values, dict):
            return None
        self._asked.append(key)
        with Section(self._reader, (*self._where, key), values) as inner:
            found = {run: inner.paths(run, required=True) for run in values}
        if not found or "" in found:
            self.fault(key, "give each run a name and a path")
        return found

    def _source(self, key: str, path: str) -> None:
        if "\0" in path or "://" in path:
            self.fault(key, f"{key} must be the path of local files")
        elif days.stray_braces(path):
            self.fault(
                key,
                f"{key} has braces that are no date: write {{date}}, or its parts as in {{date:%Y/%m/%d}}"
                f"{_nearest_place(path)}",
            )
        else:
            self._inside(key, _MAGIC.split(days.fill(path, days.parse_date("", "2000-01-01")))[0])

    def _inside(self, key: str, path: str) -> None:
        """A relative path stays below the folder of the file, also through links; an absolute one is meant."""
        if os.path.isabs(path) or "\0" in path:  # noqa: PTH117
            if "\0" in path:
                self.fault(key, f"{key} holds a null byte")
            return
        home = os.path.realpath(self._reader.folder)
        real = os.path.realpath(self._reader.folder / path)
        if os.path.commonpath([home, real]) != home:
            self.fault(key, f"{key} leaves the folder of this file; write an absolute path if that is meant")


def _nearest_place(path: str) -> str:
    inside = re.search(r"\{([^{}]*)\}", path)
    return f", not {{{printable(inside[1])}}}" if inside else ""


def _are_texts(value: Any) -> bool:
    if isinstance(value, str):
        return value != ""
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) and v for v in value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
