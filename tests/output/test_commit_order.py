"""What the kernel sees while results are put in place: every byte is synced before any name changes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

pytestmark = pytest.mark.system

CALLS = "openat,fsync,rename,renameat,renameat2,unlink,close"


def traced(tmp_path: Path, out: Path) -> list[str]:
    """Score a small log into `out` under strace; give the system calls of the whole process in order."""
    assert shutil.which("strace"), "this test needs the system package strace"
    hits, qrels, trace = tmp_path / "hits.parquet", tmp_path / "qrels.parquet", tmp_path / "trace"
    pl.DataFrame({"query_id": ["q"], "rank": [1], "doc_id": ["d"]}).write_parquet(hits)
    pl.DataFrame({"query_id": ["q"], "doc_id": ["d"]}).write_parquet(qrels)
    command = [sys.executable, "-m", "docrecall", "score", "--hits", hits, "--qrels", qrels, "--out", out]
    subprocess.run(
        ["strace", "-f", "-e", f"trace={CALLS}", "-o", trace, *command], check=True, capture_output=True, timeout=120
    )
    return trace.read_text().splitlines()


def synced_before(calls: list[str], end: int) -> set[str]:
    """Names of the paths that were synced before a call. Descriptors are followed from openat to fsync."""
    opened: dict[tuple[str, str], str] = {}
    synced: set[str] = set()
    for call in calls[:end]:
        process = call.split()[0]
        if found := re.search(r'openat\([^,]+, "([^"]+)".* = (\d+)$', call):
            opened[process, found[2]] = found[1]
        elif found := re.search(r"fsync\((\d+)\)\s+= 0", call):
            synced.add(opened[process, found[1]])
    return synced


def test_new_folder_is_synced_then_renamed(tmp_path: Path) -> None:
    """A new folder gets its name in one rename, after each file and the folder were synced; then its parent is."""
    out = tmp_path / "results"
    calls = traced(tmp_path, out)
    renames = [i for i, call in enumerate(calls) if "rename" in call and f'"{out}"' in call]
    assert len(renames) == 1
    staging = re.search(r'"([^"]+)"', calls[renames[0]].split("rename")[1])[1]
    synced = synced_before(calls, renames[0])
    assert {f"{staging}/{path.name}" for path in out.iterdir()} | {staging} <= synced
    assert str(tmp_path) in synced_before(calls, len(calls)) - synced


def test_manifest_is_replaced_last(tmp_path: Path) -> None:
    """In a folder that exists every file is synced first, then replaced, the manifest last, then the folder synced."""
    out = tmp_path / "results"
    traced(tmp_path, out)
    calls = traced(tmp_path, out)
    renames = [(i, re.search(rf'"{out}/([^"/]+)"[^"]*$', call)) for i, call in enumerate(calls) if "rename" in call]
    placed = [(i, found[1]) for i, found in renames if found]
    assert [name for _, name in placed][-1] == "manifest.json"
    assert {name for _, name in placed} == {path.name for path in out.iterdir()}
    synced = {Path(path).name for path in synced_before(calls, placed[0][0])}
    assert {name for _, name in placed} <= synced
    assert str(out) in synced_before(calls, len(calls))
