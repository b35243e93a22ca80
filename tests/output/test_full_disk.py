"""A full disk under --out, on a real file system of 1 MB."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import polars as pl
import pytest

import docrecall as dr
from tests.small import MEASURE, hits, qrels, write

COMMAND = Path(sysconfig.get_path("scripts")) / "docrecall"

# The mount point, a folder with a result to put there, bytes to leave free, where to tell what is there; the command.
SCRIPT = """
set -eu
disk=$1 old=$2 leave=$3 state=$4
shift 4
mount -t tmpfs -o size=1m,mode=777 docrecall-test "$disk"
trap 'umount "$disk"' EXIT
cp -r "$old" "$disk/out"
free=$(df --output=avail -B1 "$disk" | tail -1)
head -c $((free - leave)) /dev/zero > "$disk/ballast"
find "$disk" -type f ! -name ballast -exec sha256sum {} + | sort > "$state.before"
code=0; "$@" || code=$?
find "$disk" -type f ! -name ballast -exec sha256sum {} + | sort > "$state.after"
find "$disk" > "$state.names"
exit "$code"
"""


def with_small_disk(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the script where tmpfs may be mounted: as root, else in a user namespace."""
    unshare = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    for program in ("mount", *unshare[:1]):
        assert shutil.which(program), f"this test needs {program} (util-linux)"
    return subprocess.run(
        [*unshare, "bash", "-c", SCRIPT, "bash", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.system
@pytest.mark.parametrize("free", [0, 8_192, 65_536, 300_000], ids=lambda free: f"{free} bytes free")
@pytest.mark.parametrize("place", ["out", "new/out"])
def test_full_disk(place: str, free: int, tmp_path: Path) -> None:
    """Exit code 6, one message that names the folder, no staging left, and the old result as it was."""
    disk = tmp_path / "disk"
    disk.mkdir()
    dr.score(hits(), qrels(), MEASURE, out=tmp_path / "old")
    # Scores that do not compress: random ids, 40,000 units.
    ids = pl.Series("query_id", [os.urandom(16).hex() for _ in range(40_000)])
    rows = pl.DataFrame([ids]).with_columns(rank=pl.lit(1, pl.Int64), doc_id=pl.lit("a"))
    tables = [write(tmp_path / "h.parquet", rows), write(tmp_path / "q.parquet", rows.drop("rank"))]
    command = [COMMAND, "score", f"--hits={tables[0]}", f"--qrels={tables[1]}", f"--measure={MEASURE}"]

    done = with_small_disk(disk, tmp_path / "old", str(free), tmp_path / "state", *command, f"--out={disk / place}")

    assert "mount:" not in done.stderr, f"no tmpfs could be mounted: {done.stderr}"
    assert done.returncode == 6, done.stderr
    assert done.stdout == ""
    assert done.stderr == (
        f"docrecall: results were not written to {disk / place}: no space left on the device. "
        "What stood there is as it was.\n"
    )
    assert (tmp_path / "state.before").read_text() == (tmp_path / "state.after").read_text() != ""
    assert ".docrecall-" not in (tmp_path / "state.names").read_text()
