"""Faults that are injected for real; `make faults` runs the large numbers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nightly import faults
from tests.nightly.nights import DAY, deliver, store_of


def needs(*programs: str) -> None:
    for program in programs:
        assert shutil.which(program), f"this test needs the system package of {program}"


def test_random_kills(tmp_path: Path) -> None:
    """Fifteen kills at random moments: old or new is published, whole, and the next run ends in the same bytes."""
    seen = faults.random_kills(tmp_path, 15)
    assert seen["killed"] > 5


def test_bit_flips(tmp_path: Path) -> None:
    """Fifty flips: all found by `verify`, by `load`, and by the next run that reads the file."""
    seen = faults.bit_flips(tmp_path, 50)
    assert seen["found by verify"] == 50
    assert seen["found by load"] > 30


def test_changed_inputs(tmp_path: Path) -> None:
    """Ten runs whose input is replaced, overwritten, truncated, appended to or deleted: never a wrong number."""
    seen = faults.changed_inputs(tmp_path, 10)
    assert sum(seen.values()) == 10


def test_nights_in_any_order(tmp_path: Path) -> None:
    """Six nights in random order, each twice, by two runners at once, are one clean pass to the byte."""
    seen = faults.nights_in_any_order(tmp_path, 6)
    assert seen["published"] == 6
    assert seen["unchanged"] == 18


@pytest.mark.system
def test_each_step(tmp_path: Path) -> None:
    """Every step of the commit with one fault, in turn a kill, an error of the disk, of rights, of space, a signal."""
    needs("strace")
    every = ("SIGKILL", "EIO", "EACCES", "ENOSPC", "SIGTERM")
    config, *_ = faults.variants(tmp_path / "count")
    deliver(tmp_path / "count", DAY, faults.hits(2_000, n=faults.N))
    n = len(faults.steps(config, tmp_path / "count"))
    for turn, fault in enumerate(every):
        folder = tmp_path / fault
        folder.mkdir()
        seen = faults.each_step(folder, [fault], lambda steps, turn=turn: steps[turn :: len(every)])
        assert sum(seen.values()) == len(range(turn, n, len(every)))


@pytest.mark.system
def test_full_disk(tmp_path: Path) -> None:
    """On a tmpfs that fills up at several moments: exit code 6 and the old result, or 0 and the new one."""
    needs("mount", "unshare")
    unshare = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    program = (
        "import sys; from pathlib import Path; from tests.nightly import faults\n"
        "print(faults.full_disk(Path(sys.argv[1]), [0, 20_000, 60_000, 90_000, 500_000]))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [*unshare, sys.executable, "-c", program, tmp_path], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "'old, exit 6'" in done.stdout
    assert "'new, exit 0'" in done.stdout


@pytest.mark.system
def test_order_of_system_calls(tmp_path: Path) -> None:
    """Files are synced, then the folder, then it is renamed, then its parent synced; then the manifest is replaced."""
    needs("strace")
    config, frames, _ = faults.variants(tmp_path)
    deliver(tmp_path, DAY, frames[0])
    trace = tmp_path / "trace"
    calls = "openat,fsync,rename,close"
    done = faults._piped(["strace", "-f", "-qq", "-o", trace, "-e", f"trace={calls}", *faults.WORKER], config)
    assert b'"published"' not in done.stdout
    assert b'"recomputed"' in done.stdout
    night = store_of(config).read(DAY)
    assert night is not None
    events, opened = [], {}
    main = trace.read_text().split()[0]
    for line in trace.read_text().splitlines():
        process = line.split()[0]
        if found := re.search(r'openat\([^,]+, "([^"]+)".* = (\d+)$', line):
            opened[process, found[2]] = found[1]
        elif process == main and (found := re.search(r"fsync\((\d+)\)\s+= 0", line)):
            events.append(("sync", opened[process, found[1]]))
        elif found := re.search(r'rename\("([^"]+)", "([^"]+)"\) = 0', line):
            events.append(("rename", found[1], found[2]))
    placed = next(n for n, e in enumerate(events) if e[0] == "rename" and e[2] == str(night.run))
    staged = events[placed][1]
    synced = [e[1] for e in events[:placed] if e[0] == "sync"]
    files = {f"{staged}/{path.name}" for path in night.run.iterdir()}
    assert files <= set(synced)
    assert synced[-1] == staged
    assert events[placed + 1] == ("sync", str(night.run.parent))
    manifest = str(night.folder / "manifest.json")
    (committed,) = (n for n, e in enumerate(events) if e[0] == "rename" and e[2] == manifest)
    assert committed > placed + 1
    assert events[committed - 1] == ("sync", events[committed][1])
    assert events[committed + 1] == ("sync", str(night.folder))
