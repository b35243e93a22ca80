"""The tables behind results that were read back, where their files still lie as they were when they were scored."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from docrecall.contract.known import check_known
from docrecall.errors import InputError
from docrecall.measures.grammar import Cut, parse_all
from docrecall.plan import BATCH_ROWS
from docrecall.score import find_documents, open_tables, prepare
from docrecall.scores import Scores
from docrecall.show import printable
from docrecall.sources.inputs import Inputs
from docrecall.sources.mapping import TableMap, from_toml
from docrecall.tables import TABLES

Entry = Mapping[str, Any]


def found_again(scores: Scores, cuts: Sequence[Cut]) -> pl.DataFrame:
    """What `Scores.found` gives, of results that were read back: their files are opened once more.

    Raises InputError where tables were frames, and where a file is gone or not the one that was scored; DataError where
    it broke the contract after all.
    """
    inputs = _reopened(scores.inputs)
    settled = prepare(inputs, parse_all(scores.measures), scores.options)
    known = check_known(settled.inputs, settled.needs, scores.options)
    return find_documents(settled.inputs, known, scores.options, BATCH_ROWS, cuts)


def _reopened(entries: Sequence[Entry]) -> Inputs:
    """Open what a manifest lists. The files must be the same to the nanosecond, and be read in the same way."""
    frames = [entry["table"] for entry in entries if entry["file"] is None]
    if frames:
        raise InputError(f"{', '.join(dict.fromkeys(frames))} came from memory, not from files.")
    paths = {name: [_path(e["file"]) for e in entries if e["table"] == name and e["run"] is None] for name in TABLES}
    runs: dict[str, list[str]] = {}
    for entry in entries:
        if entry["run"] is not None:
            runs.setdefault(entry["run"], []).append(_path(entry["file"]))
    hits = paths.pop("hits")
    found = open_tables(runs or hits, {name: given or None for name, given in paths.items()}, _maps(entries))
    changed = _as_text(found.fingerprints()) ^ _as_text(entries)
    if changed:
        file = printable(min(json.loads(text)["file"] for text in changed))
        raise InputError(f"{file} is not what it was when these results were written.")
    return found


def _as_text(entries: Iterable[Entry]) -> set[str]:
    return {json.dumps(entry, sort_keys=True) for entry in entries}


def _maps(entries: Sequence[Entry]) -> dict[str, TableMap]:
    maps: dict[str, TableMap] = {}
    for entry in entries:
        if entry["mapping"] is not None:
            maps |= from_toml(entry["mapping"])
    return maps


def _path(file: str) -> str:
    """The path of a file; as a pattern where a folder is `key=value`, for such folders count below a root alone."""
    folder = re.search(r"[^/=]+=[^/]*/", file)
    if folder is None:
        return file
    at = file.index("=", folder.start())
    return f"{glob.escape(file[:at])}[=]{glob.escape(file[at + 1 :])}"
