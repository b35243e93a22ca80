"""Every published byte, compared with what was written."""

from __future__ import annotations

from typing import NamedTuple

from docrecall.errors import InputError
from docrecall.nightly import history
from docrecall.nightly.store import Store
from docrecall.show import printable


class Verified(NamedTuple):
    """How much was looked at, and what is wrong, in sentences."""

    nights: int
    files: int
    faults: list[str]


def verify(store: Store) -> Verified:
    """Check every manifest, every file that one names, every verdict, and the history."""
    faults: list[str] = []
    days, n_files = store.dates(), 0
    for day in days:
        try:
            night = store.read(day)
            if night is None:
                continue
            faults += night.damage()
            n_files += len(night.manifest["files"]) + len(night.manifest["apart"]["files"])
            store.verdict(night)
        except InputError as error:
            faults.append(str(error))
    if days and not faults:
        faults += _of_history(store)
    return Verified(len(days), n_files, faults)


def _of_history(store: Store) -> list[str]:
    name = printable(store.history)
    with store.history_locked():
        try:
            found = store.history.read_bytes()
        except OSError as error:
            return [f"{name} cannot be read ({error.strerror}); the next run writes it again"]
        wanted = history.as_bytes(history.build(store))
    return [] if found == wanted else [f"{name} is not what the nights add up to; the next run writes it again"]
