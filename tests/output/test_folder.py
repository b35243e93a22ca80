"""`out=DIR`: all of a result or nothing of it, whatever stands there and whatever goes wrong."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.cli import main
from tests.small import MEASURE, hits, log, qrels, write

FILES = {
    "accounting.parquet",
    "findings.parquet",
    "manifest.json",
    "per_query.parquet",
    "decided.parquet",
    "decisions.parquet",
    "summary.json",
    "summary.parquet",
}


def content(folder: Path) -> dict[str, bytes]:
    """Everything below a folder, hidden names too."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def older(out: Path) -> dict[str, bytes]:
    """Put a result with rejected rows in place: its mean is that of q2 alone."""
    dr.score(hits(rank=[1, None, 1], doc_id=["x", "a", "z"]), qrels(), MEASURE, on_bad_rows="reject", out=out)
    return content(out)


def test_new_folder(tmp_path: Path) -> None:
    """A folder that is not there is made, with those above it, and holds these files and nothing else."""
    out = tmp_path / "a" / "b" / "out"
    dr.score(hits(), qrels(), MEASURE, out=out)
    assert set(content(tmp_path / "a")) == {f"b/out/{name}" for name in FILES}


def test_empty_folder(tmp_path: Path) -> None:
    """A folder without files is filled."""
    dr.score(hits(), qrels(), MEASURE, out=str(tmp_path))
    assert set(content(tmp_path)) == FILES


def test_earlier_results_are_replaced_as_a_whole(tmp_path: Path) -> None:
    """Nothing of an older run stays, its rejected rows neither."""
    assert set(older(tmp_path / "out")) == FILES | {"rejected.parquet"}
    dr.score(hits(), qrels(), MEASURE, out=tmp_path / "out")
    assert set(content(tmp_path / "out")) == FILES
    assert dr.load(tmp_path / "out").summary()["mean"].to_list() == [1.0]


@pytest.mark.parametrize("strange", ["notes.txt", "data.parquet", ".gitkeep", "summary.json/x"])
@pytest.mark.parametrize("with_results", [False, True])
def test_foreign_files_are_never_touched(strange: str, with_results: bool, tmp_path: Path) -> None:
    """A folder with anything of somebody else is refused, also beside earlier results, and named."""
    out = tmp_path / "out"
    if with_results:
        older(out)
        (out / "summary.json").unlink()
    path = out / strange
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    before = content(tmp_path)
    with pytest.raises(dr.OutputError, match=strange.split("/", maxsplit=1)[0]) as caught:
        dr.score(hits(), qrels(), MEASURE, out=out)
    assert caught.value.exit_code == 6
    assert isinstance(caught.value, OSError)
    assert content(tmp_path) == before


def test_files_of_ours_without_a_manifest_are_foreign(tmp_path: Path) -> None:
    """Without a manifest nobody can say that they are results."""
    older(tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(dr.OutputError, match="holds other files"):
        dr.score(hits(), qrels(), MEASURE, out=tmp_path)


@pytest.mark.parametrize("below", [".", "out"])
def test_file_in_the_way(below: str, tmp_path: Path) -> None:
    """A file where a folder is wanted, or above it, is refused and stays."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(dr.OutputError, match="file"):
        dr.score(hits(), qrels(), MEASURE, out=tmp_path / "file" / below)
    assert content(tmp_path) == {"file": b"mine"}


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"], ids=["too long", "NUL"])
def test_name_that_no_folder_can_have(name: str, tmp_path: Path) -> None:
    """Such a name is an OutputError, before any work is done."""
    with pytest.raises(dr.OutputError):
        dr.score(hits(), qrels(), MEASURE, out=tmp_path / name)
    assert content(tmp_path) == {}


FAILURES: list[tuple[type[dr.DocrecallError], dict[str, Any]]] = [
    (dr.DataError, {"hits": hits(rank=[1, None, 1])}),
    (dr.DataError, {"hits": hits(rank=[1, 1, 1])}),
    (dr.DataError, {"qrels": qrels(query_id=["a", "b"])}),
    (dr.InputTypeError, {"qrels": 7}),
    (dr.MeasureError, {"measures": "doc_recall"}),
    (dr.UsageError, {"order": "none"}),
]


@pytest.mark.parametrize(("error", "change"), FAILURES)
def test_failing_run_leaves_everything(error: type[Exception], change: dict[str, Any], tmp_path: Path) -> None:
    """After a run that fails the older result is there byte for byte, and nothing else is."""
    before = older(tmp_path / "out")
    with pytest.raises(error):
        dr.score(**({"hits": hits(), "qrels": qrels(), "measures": MEASURE} | change), out=tmp_path / "out")
    assert content(tmp_path / "out") == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_failure_inside_the_commit_leaves_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is when syncing fails, after all files were written."""
    before = older(tmp_path / "out")

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(dr.OutputError, match="out: Input/output error"):
        dr.score(hits(), qrels(), MEASURE, out=tmp_path / "out")
    assert content(tmp_path / "out") == before


def test_interrupt_leaves_everything(tmp_path: Path) -> None:
    """An exception that is not ours removes the staging too."""
    before = older(tmp_path / "out")

    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dr.score(hits(), qrels(), MEASURE, out=tmp_path / "out", progress=interrupt)
    assert content(tmp_path / "out") == before


NOBODY = 65534
DROP = f"os.setgroups([]); os.setresgid(*[{NOBODY}] * 3); os.setresuid(*[{NOBODY}] * 3)"


def as_nobody(argv: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the command as an unprivileged user: root may write anywhere. Everything is imported before."""
    code = "import os, sys, pyarrow.parquet, docrecall.score, docrecall.cli as cli\n"
    code += "import docrecall.report.files, docrecall.report.terminal\n"
    code += f"{DROP if os.geteuid() == 0 else ''}\nassert os.geteuid() != 0\nsys.exit(cli.main(sys.argv[1:]))"
    return subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, check=False)


@pytest.fixture
def open_path(tmp_path: Path) -> Path:
    """A folder that every user may enter: pytest's own are closed to others."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("place", ["out", "closed/out"])
def test_folder_that_may_not_be_written(place: str, open_path: Path) -> None:
    """Exit code 6 and one message that names the folder; nothing changes. Really without the right, as root too."""
    tables = [f"--hits={write(open_path / 'h.parquet', hits())}", f"--qrels={write(open_path / 'q.parquet', qrels())}"]
    (open_path / "closed").mkdir()
    older(open_path / place)
    for folder in (open_path / place, open_path / "closed"):
        folder.chmod(0o555)
    before = content(open_path)

    done = as_nobody(["score", *tables, f"--out={open_path / place}"])

    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr.startswith(f"docrecall: results were not written to {open_path / place}: Permission denied.")
    assert done.stderr.count("\n") == 1
    assert content(open_path) == before
    for folder in (open_path / place, open_path / "closed"):
        folder.chmod(0o755)


def test_folder_may_not_be_made(open_path: Path) -> None:
    """So it is for a new folder in one that may not be written."""
    open_path.chmod(0o555)
    tables = [f"--hits={open_path / 'h.parquet'}", f"--qrels={open_path / 'q.parquet'}"]
    open_path.chmod(0o755)
    write(open_path / "h.parquet", hits())
    write(open_path / "q.parquet", qrels())
    open_path.chmod(0o555)

    done = as_nobody(["score", *tables, f"--out={open_path / 'new' / 'out'}"])

    assert done.returncode == 6
    assert f"{open_path / 'new' / 'out'}: Permission denied" in done.stderr
    open_path.chmod(0o755)


@pytest.mark.parametrize("closed", ["h.parquet", "logs/h.parquet", "logs"])
def test_input_that_may_not_be_read(closed: str, open_path: Path) -> None:
    """A file without the right to read it, or behind a folder that may not be entered, is exit code 4."""
    labels = write(open_path / "q.parquet", qrels())
    path = open_path / closed
    write(path if path.suffix else path / "h.parquet", hits())
    (path.parent if path.parent.name == "logs" else path).chmod(0o000)

    done = as_nobody(["score", f"--hits={path}", f"--qrels={labels}"])

    (path.parent if path.parent.name == "logs" else path).chmod(0o755)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"docrecall: {path} cannot be read: permission denied.\n"


def big(folder: Path) -> tuple[Path, Path]:
    """A log whose run takes a while, in rows that are not sorted."""
    rows = log(2000, [f"d{i}" for i in range(10)]).sample(fraction=1, shuffle=True, seed=1)
    return write(folder / "h.parquet", rows), write(folder / "q.parquet", log(2000, ["d3", "z"], labelled=True))


def test_kill_at_any_moment(tmp_path: Path) -> None:
    """After kill -9 the old result is whole, or the new one; the next run removes what the dead one left.

    Fifteen kills at times spread over a run. `load` never gives a mix, and only in the blink in which files are
    being replaced may it give none.
    """
    out, (log_path, labels) = tmp_path / "out", big(tmp_path)
    older(out)
    old = dr.load(out).summary()
    code = (
        "import sys, docrecall as dr, docrecall.score, pyarrow.parquet\n"
        "while True:\n"
        "    print('begins', flush=True)\n"
        "    dr.score(sys.argv[1], sys.argv[2], 'doc_recall@3', batch_rows=5_000, out=sys.argv[3])\n"
    )
    began = time.monotonic()
    new = dr.score(log_path, labels, MEASURE, batch_rows=5_000, out=tmp_path / "other").summary()
    one_run = time.monotonic() - began
    seen, stale, mixed = set(), 0, 0
    for number in range(15):
        process = subprocess.Popen([sys.executable, "-c", code, log_path, labels, out], stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(1 + number % 2):  # in every other process the second run is the one that is killed
            process.stdout.readline()
        time.sleep(one_run * number / 15)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        stale += len(list(out.glob(".docrecall-*")))
        try:
            summary = dr.load(out).summary()
        except dr.InputError:
            mixed += 1
            continue
        assert summary.equals(old) or summary.equals(new)
        seen.add("new" if summary.equals(new) else "old")
    assert stale, "no kill came while a run had its staging"
    assert "new" in seen
    assert mixed <= 3

    dr.score(log_path, labels, MEASURE, out=out)

    assert set(content(out)) == FILES
    assert_frame_equal(dr.load(out).summary(), new)


def test_kill_between_two_renames(tmp_path: Path) -> None:
    """A folder in which files of two runs stand is refused by `load`, and made good by the next run."""
    out = tmp_path / "out"
    older(out)
    code = (
        "import os, sys, docrecall as dr, polars as pl, pathlib\n"
        "from tests.small import hits, qrels\n"
        "plain, count = pathlib.Path.replace, [0]\n"
        "def replace(self, target):\n"
        "    count[0] += 1\n"
        "    if count[0] == int(sys.argv[2]): os.kill(os.getpid(), 9)\n"
        "    return plain(self, target)\n"
        "pathlib.Path.replace = replace\n"
        "dr.score(hits(), qrels(), 'doc_recall@3', out=sys.argv[1])\n"
    )
    root = Path(__file__).parents[2]
    for number in (2, 4, 6):
        done = subprocess.run([sys.executable, "-c", code, out, str(number)], cwd=root, check=False)
        assert done.returncode == -signal.SIGKILL
        with pytest.raises(dr.InputError, match="not the file that this manifest lists"):
            dr.load(out)
    dr.score(hits(), qrels(), MEASURE, out=out)
    assert set(content(out)) == FILES
    assert dr.load(out).summary()["mean"].to_list() == [1.0]


def test_staging_of_a_run_that_lives_is_not_swept(tmp_path: Path) -> None:
    """A second run into the same folder, or beside it, leaves the first one's staging alone."""
    inner: list[dr.Scores] = []

    def progress(*_: int) -> None:
        if not inner:
            inner.append(dr.score(hits(), qrels(), MEASURE, out=tmp_path / "out"))

    scores = dr.score(hits(doc_id=["x", "y", "b"]), qrels(), MEASURE, out=tmp_path / "out", progress=progress)

    assert dr.load(tmp_path / "out").summary()["mean"].to_list() == [0.5]
    assert scores.per_query.height == 2
    assert set(content(tmp_path)) == {f"out/{name}" for name in FILES}


def many_runs(out: str, mean: float, times: int) -> None:
    doc = ["x", "a", "b"] if mean == 1.0 else ["x", "y", "b"]
    for _ in range(times):
        dr.score(hits(doc_id=doc), qrels(), MEASURE, out=out)


def test_two_runs_at_once_into_one_folder(tmp_path: Path) -> None:
    """Whoever ends last wins as a whole; a reader meanwhile gets one of the two results, or an InputError."""
    out = tmp_path / "out"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=many_runs, args=(str(out), mean, 25)) for mean in (1.0, 0.5)]
    for worker in workers:
        worker.start()
    means = []
    while any(worker.is_alive() for worker in workers):
        try:
            scores = dr.load(out)
            mean = scores.summary()["mean"].item()
            assert scores.per_query[MEASURE].mean() == mean
            means.append(mean)
        except dr.InputError:
            time.sleep(0.01)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert set(means) <= {1.0, 0.5}
    assert dr.load(out).summary()["mean"].item() in (1.0, 0.5)
    assert set(content(tmp_path)) == {f"out/{name}" for name in FILES}


def test_leftover_without_an_owner_goes(tmp_path: Path) -> None:
    """Staging of a run that died at once, before it wrote anything, is removed too; other names are not ours."""
    (tmp_path / ".docrecall-dead").mkdir()
    (tmp_path / ".other-tool").mkdir()
    dr.score(hits(), qrels(), MEASURE, out=tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".other-tool", "out"]


def test_command_says_where_it_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message of the command names the folder, in one line."""
    (tmp_path / "out").write_text("mine")
    tables = [f"--hits={write(tmp_path / 'h.parquet', hits())}", f"--qrels={write(tmp_path / 'q.parquet', qrels())}"]
    assert main(["score", *tables, f"--out={tmp_path / 'out'}"]) == 6
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"docrecall: {tmp_path / 'out'} is a file; a folder was expected.\n"


def test_manifest_has_what_a_reader_needs(tmp_path: Path) -> None:
    """Policies, their digest, measures, inputs and the hash of every file."""
    scores = dr.score(write(tmp_path / "h.parquet", hits()), qrels(), MEASURE, min_relevance=1, out=tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert set(manifest["files"]) == FILES - {"manifest.json"}
    assert manifest["options_digest"] == scores.options.digest
    assert manifest["measures"] == [MEASURE]
    assert manifest["inputs"][0]["file"] == str(tmp_path / "h.parquet")
