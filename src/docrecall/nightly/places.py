"""Where a job reads and where it writes: what it writes may not stand where it reads."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from docrecall.nightly import days

_FREE = re.compile(r"[*?\[{]")  # where a path stops to say one thing
_DIGIT = "\x01"  # a digit of a date; no path of a configuration holds it by itself


def fixed_folder(pattern: str) -> str:
    """The folder that a source stays in: what its path says before a pattern or a date begins."""
    fixed = _FREE.split(pattern)[0]
    return (fixed if fixed == pattern else os.path.dirname(fixed)) or "."  # noqa: PTH120


def is_free(pattern: str) -> bool:
    """Whether a path has a pattern or a place for a date."""
    return _FREE.search(pattern) is not None


def reads(pattern: str, home: Path, place: Path) -> bool:
    """Whether a source, on any night, could look at a place, or at something below it.

    pattern: a path, a folder (which is read with all that is below it) or a glob, with places for a date. home: where
    relative ones start. Links are followed on both sides.
    """
    return _meets(_parts(pattern, home), Path(os.path.realpath(place)).parts)


def _parts(pattern: str, home: Path) -> tuple[str, ...]:
    root = fixed_folder(pattern)  # the name of `home` may look like a pattern, and is none
    rest = os.path.relpath(days.with_digits(pattern, _DIGIT), root)
    real = os.path.realpath(os.path.join(home, root))  # noqa: PTH118
    return (*Path(real).parts, *(() if rest == "." else Path(rest).parts))


def _meets(pattern: tuple[str, ...], place: tuple[str, ...]) -> bool:
    """Part by part. Where the pattern ends first it names a folder above; where the place does, one is in it."""
    for wanted, name in zip(pattern, place, strict=False):
        if wanted == "**":
            return True
        if wanted != name and not _part_matches(wanted, name):
            return False
    return True


def _part_matches(wanted: str, name: str) -> bool:
    text = fnmatch.translate(wanted) if glob.has_magic(wanted) else re.escape(wanted)
    return re.fullmatch(text.replace(_DIGIT, "[0-9]"), name) is not None


def clashes(
    file: Path, store: Path | None, outputs: Mapping[str, Path | None], sources: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, str, str]]:
    """Say what is written where something else stands: section, key, and a sentence for each.

    file: the configuration. sources: the paths of each by the name that messages have for it.
    """
    home = file.parent
    if store is not None:
        # Not the folder itself: `store/..` may hold what is read, as long as none of it is looked for in the store.
        own = [store / name for name in ("nights", ".staging", "history.parquet")]
        if name := next((n for n, ps in sources.items() if any(reads(p, home, o) for p in ps for o in own)), None):
            yield "store", "path", f"the store lies where {name} is read; it would be read as data. Put it elsewhere"
    seen: dict[Path, str] = {}
    for key, path in outputs.items():
        if path is None:
            continue
        real = Path(os.path.realpath(path))
        if real == Path(os.path.realpath(file)):
            yield "outputs", key, f"{key} would replace this configuration"
        elif store is not None and real.is_relative_to(os.path.realpath(store)):
            yield "outputs", key, f"{key} lies in the store, which holds nothing but what is published"
        elif name := next((n for n, ps in sources.items() if any(reads(p, home, path) for p in ps)), None):
            yield "outputs", key, f"{key} lies where {name} is read"
        elif real in seen:
            yield "outputs", key, f"{key} and {seen[real]} are the same file"
        seen.setdefault(real, key)
