"""Faults, injected for real. The tests run some of each; `make faults` runs the large numbers and prints a table.

Every function raises AssertionError at the first violation, and gives what it saw, counted by kind.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl

import docrecall as dr
from docrecall.errors import DocrecallError, InputError, LockedError
from docrecall.nightly.verify import verify
from docrecall.nightly.watch import Signals, supervise
from tests.nightly.nights import DAY, deliver, hits, job, leftovers, referenced, run, store_of
from tests.small import write

Seen = Counter[str]
WORKER = [sys.executable, "-P", "-m", "docrecall.nightly.worker"]
N = 3_000
CALLS = ("fsync", "rename", "mkdir", "unlink", "flock")


def variants(folder: Path) -> tuple[Path, list[pl.DataFrame], list[Any]]:
    """A job, two versions of its inputs, and what a clean run publishes of each."""
    config = job(folder, {}, n=N)
    frames = [hits(2_000, n=N), hits(1_500, n=N)]
    wanted = []
    for frame in frames:
        deliver(folder, DAY, frame)
        run(config)
        wanted.append(referenced(config))
    return config, frames, wanted


def request(config: Path, day: date = DAY) -> bytes:
    return (json.dumps({"config": str(config), "date": day.isoformat()}) + "\n").encode()


def check(config: Path, wanted: Iterable[Any], what: str) -> Any:
    """What is published is whole, and one of what may be published."""
    found = referenced(config)
    assert found in list(wanted), f"{what}: something else is published"
    faults = [f for f in verify(store_of(config)).faults if "the next run writes it again" not in f]
    assert not faults, f"{what}: {faults}"
    assert dr.load(store_of(config).folder(DAY)).accounting["n_total"].to_list() == [N]
    return found


def random_kills(folder: Path, n: int, seed: int = 0) -> Seen:
    """SIGKILL at random moments of a run that replaces what is published; the next run ends in the same bytes."""
    config, frames, wanted = variants(folder)
    rng, seen, longest = random.Random(seed), Seen(), 0.4
    for k in range(n):
        old, new = wanted[(k + 1) % 2], wanted[k % 2]
        deliver(folder, DAY, frames[k % 2])
        worker = subprocess.Popen(WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(request(config))
        worker.stdin.flush()
        assert b"started" in worker.stdout.readline()
        begun = time.monotonic()
        timer = threading.Timer(rng.uniform(0, longest * 1.1), worker.kill)
        timer.start()
        worker.stdout.read()
        worker.wait()
        timer.cancel()
        worker.stdin.close()
        worker.stdout.close()
        if worker.returncode == 0:
            longest = (longest + time.monotonic() - begun) / 2
        found = check(config, [old, new], f"kill {k}")
        seen["new" if found == new else "old"] += 1
        seen["killed" if worker.returncode else "ended before"] += 1
        run(config)
        check(config, [new], f"run after kill {k}")
        assert leftovers(config) == _superseded(config), f"kill {k}: {leftovers(config)}"
        _drop_superseded(config)
    return seen


def _superseded(config: Path) -> list[str]:
    """Runs that the manifest does not name, which stay for some days; nothing else may be left."""
    return [name for name in leftovers(config) if "/runs/" in name and ".docrecall" not in name]


def _drop_superseded(config: Path) -> None:
    for name in _superseded(config):
        shutil.rmtree(store_of(config).root / name)


def traced(config: Path, inject: str, trace: Path) -> tuple[int, dict[str, Any] | None]:
    """Run a worker under strace, with one system call that fails or a signal at it; give its status and its result."""
    fast = [] if "signal=" in inject else ["--seccomp-bpf"]  # strace 6.1 delivers no signal with it
    command = ["strace", "-f", *fast, "-qq", "-o", trace, "-e", f"trace={','.join(CALLS)}", "-e"]
    done = _piped([*command, f"inject={inject}", *WORKER], config)
    results = [json.loads(line)["result"] for line in done.stdout.splitlines() if b'"result"' in line]
    return done.returncode, results[0] if results else None


def _piped(command: list[Any], config: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a worker with its request, and keep its stdin open, as it ends when that is closed."""
    reader, writer = os.pipe()
    os.write(writer, request(config))
    try:
        return subprocess.run(command, stdin=reader, capture_output=True, check=False, timeout=120)
    finally:
        os.close(reader)
        os.close(writer)


def steps(config: Path, folder: Path) -> list[str]:
    """The system calls of a run that publishes, from the first that touches the store, as `name:when=N`."""
    trace = folder / "trace"
    command = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", trace, "-e", f"trace={','.join(CALLS)}", *WORKER]
    assert b'"recomputed"' in _piped(command, config).stdout
    lines = [re.match(r"(\d+) +([a-z0-9]+)\((.*)", line) for line in trace.read_text().splitlines()]
    calls = [(m[1], m[2], m[3]) for m in lines if m]
    main = calls[0][0]
    count: Counter[str] = Counter()
    found = []
    for process, name, _ in calls:
        if process == main:
            count[name] += 1
            found.append(f"{name}:when={count[name]}")
    return found


def each_step(folder: Path, faults: Iterable[str], some: Callable[[list[str]], list[str]] = list) -> Seen:
    """Each step of a run with each fault: SIGKILL, SIGTERM, EIO, EACCES, ENOSPC. Old or new is published, whole."""
    config, frames, wanted = variants(folder)
    deliver(folder, DAY, frames[0])
    seen = Seen()
    for step in some(steps(config, folder)):
        name, when = step.split(":")
        for fault in faults:
            run(config)
            check(config, [wanted[0]], "before")
            deliver(folder, DAY, frames[1])
            inject = f"{name}:signal={fault}:{when}" if fault.startswith("SIG") else f"{name}:error={fault}:{when}"
            status, result = traced(config, inject, folder / "trace")
            what = f"{fault} at {step}"
            found = check(config, wanted, what)
            if result is not None:
                assert result["exit_code"] in (0, 6), f"{what}: {result}"
                assert (result["exit_code"] == 0) <= (found == wanted[1]), f"{what}: said to be published, and is not"
            else:
                assert fault.startswith("SIG"), f"{what}: no result, status {status}"
            assert (status != 0) == fault.startswith("SIG"), f"{what}: status {status}; the fault was not injected"
            seen[f"{fault}: {'new' if found == wanted[1] else 'old'}"] += 1
            run(config)
            check(config, [wanted[1]], f"run after {what}")
            assert leftovers(config) == _superseded(config), f"{what}: {leftovers(config)}"
            deliver(folder, DAY, frames[0])
    return seen


DISK = """
set -eu
disk=$1 leave=$2 code=0
free=$(df --output=avail -B1 "$disk" | tail -1)
head -c $((free > leave ? free - leave : 0)) /dev/zero > "$disk/ballast"
shift 2
"$@" || code=$?
rm "$disk/ballast"
exit "$code"
"""


def full_disk(folder: Path, sizes: Iterable[int]) -> Seen:
    """A store on a small tmpfs with so many bytes left. To be run where tmpfs may be mounted at `folder`/store."""
    config, frames, wanted = variants(folder)
    shutil.rmtree(folder / "store")
    (folder / "store").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "docrecall-test", folder / "store"], check=True)
    seen = Seen()
    try:
        for size in sizes:
            deliver(folder, DAY, frames[0])
            run(config)
            _drop_superseded(config)
            deliver(folder, DAY, frames[1])
            command = [sys.executable, "-m", "docrecall", "nightly", config, "--date", str(DAY), "--format", "json"]
            done = subprocess.run(
                ["bash", "-c", DISK, "bash", folder / "store", str(size), *command], capture_output=True, check=False
            )
            found = check(config, wanted, f"{size} bytes left")
            assert done.returncode in (0, 6), f"{size} bytes left: {done.returncode} {done.stderr!r}"
            assert (done.returncode == 0) <= (found == wanted[1])
            if done.returncode:
                assert b"no space left on the device" in done.stderr, done.stderr
            seen[f"{'new' if found == wanted[1] else 'old'}, exit {done.returncode}"] += 1
    finally:
        subprocess.run(["umount", folder / "store"], check=True)
    return seen


def changed_inputs(folder: Path, n: int, seed: int = 0) -> Seen:
    """Inputs that are replaced, truncated, appended to or deleted while read: a consistent result or a named error."""
    size = 200_000
    config = job(folder, {}, n=size)
    plain = hits(size // 2, n=size).drop("query_text").sample(fraction=1.0, shuffle=True, seed=3)
    other = hits(size // 4, n=size).drop("query_text")
    file = deliver(folder, DAY, plain)
    contents = [file.read_bytes(), write(folder / "other.parquet", other).read_bytes()]
    rng, seen = random.Random(seed), Seen()

    def replace() -> None:
        (folder / "new").write_bytes(contents[1])
        (folder / "new").replace(file)

    def overwrite() -> None:
        file.write_bytes(contents[1])

    def truncate() -> None:
        os.truncate(file, len(contents[0]) // 2)

    def append() -> None:
        with file.open("ab") as handle:
            handle.write(contents[1])

    changes = [replace, overwrite, truncate, append, file.unlink]
    for k in range(n):
        shutil.rmtree(store_of(config).root, ignore_errors=True)
        file.write_bytes(contents[0])
        os.utime(file, (1_700_000_000, 1_700_000_000 + k))
        change = changes[k % len(changes)]
        timer = threading.Timer(rng.uniform(0, 2.0), change)

        def begin(event: dict[str, Any], timer: threading.Timer = timer) -> None:
            if event["event"] == "started":
                timer.start()

        with Signals() as signals:
            result = supervise(config, DAY, signals, begin)
        timer.join()
        what = f"run {k}, {getattr(change, '__name__', change)}"
        if result["exit_code"] == 0:
            mean = result["runs"][0]["measures"]["doc_recall@1"]["mean"]
            assert mean in (0.5, 0.25), f"{what}: a wrong number, {mean}"
            seen["published, as before" if mean == 0.5 else "published, as after"] += 1
        else:
            assert result["exit_code"] in (4, 5), f"{what}: {result}"
            assert store_of(config).read(DAY) is None, f"{what}: published in spite of exit {result['exit_code']}"
            seen[f"exit {result['exit_code']}"] += 1
        write(file, plain)
    return seen


def bit_flips(folder: Path, n: int, seed: int = 0) -> Seen:
    """One bit of a published file: found by `verify`, by `load` where it reads the file, and by the next run."""
    before = DAY - timedelta(days=1)
    gate = '[baseline]\nagainst = "last_good"\n[[gates]]\nmeasure = "doc_recall@1"\nmax_drop = 0.5\n'
    config = job(folder, {before: 70, DAY: 80}, gate, n=100)
    for day in (before, DAY):
        run(config, day)
    store = store_of(config)
    files = sorted(p for p in store.root.rglob("*") if p.is_file())
    rng, seen = random.Random(seed), Seen()
    for k in range(n):
        victim = files[k % len(files)]
        content = victim.read_bytes()
        place = rng.randrange(len(content))
        victim.write_bytes(content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :])
        what = f"flip {k} at {place} of {victim.relative_to(store.root)}"
        assert verify(store).faults, f"{what}: not found by verify"
        seen["found by verify"] += 1
        if victim.name not in ("verdict.json", "history.parquet"):
            day = victim.relative_to(store.root).parts[1]
            try:
                dr.load(store.root / "nights" / day)
            except InputError:
                seen["found by load"] += 1
            else:
                raise AssertionError(f"{what}: not found by load")
        if k % 8 == 0:
            try:
                outcome = run(config, DAY)["outcome"]
            except DocrecallError as error:
                outcome = f"exit {error.exit_code}"
            seen[f"next run: {outcome}"] += 1
            if victim.is_relative_to(store.folder(DAY) / "runs"):
                assert outcome == "recomputed", f"{what}: {outcome}"
            run(config, before)
            run(config, DAY)
            assert not verify(store).faults, f"{what}: not mended"
            for left in _superseded(config):
                shutil.rmtree(store.root / left)
            files = sorted(p for p in store.root.rglob("*") if p.is_file())
        else:
            victim.write_bytes(content)
    return seen


def nights_in_any_order(folder: Path, n: int, seed: int = 0) -> Seen:
    """So many nights, in random order, each twice, by two runners at once: one clean pass, to the byte."""
    rng = random.Random(seed)
    days = [date(2026, 10, 1) + timedelta(days=k) for k in range(n)]
    nights = {day: rng.randrange(40, 100) for day in days}
    clean = job(folder / "clean", nights, n=100)
    for day in days:
        run(clean, day)
    config = job(folder / "mixed", nights, n=100)
    orders = [rng.sample(days * 2, 2 * n) for _ in range(2)]
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    runners = [context.Process(target=_runner, args=(config, order, queue)) for order in orders]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
        assert runner.exitcode == 0
    seen: Seen = Seen()
    while not queue.empty():
        seen[queue.get()] += 1
    assert referenced(config) == referenced(clean), "what is published differs from one clean pass"
    assert seen["published"] == n, f"{seen}: a night was published twice, or never"
    history = [pl.read_parquet(store_of(c).history).drop("passed") for c in (config, clean)]
    assert history[0].equals(history[1])
    assert leftovers(config) == []
    return seen


def _runner(config: Path, order: list[date], queue: Any) -> None:
    for day in order:
        while True:
            try:
                queue.put(run(config, day)["outcome"])
                break
            except LockedError:
                queue.put("waited for the lock")
                time.sleep(0.01)


def main() -> None:
    """Run the large numbers, and print what was seen."""
    every = ("SIGKILL", "SIGTERM", "EIO", "EACCES", "ENOSPC")
    tasks: dict[str, Callable[[Path], Seen]] = {
        "bit flips, 2,000": lambda f: bit_flips(f, 2_000),
        "30 nights in random order, twice, two runners": lambda f: nights_in_any_order(f, 30),
        "inputs changed while read, 200": lambda f: changed_inputs(f, 200),
        "each step of the commit, each fault": lambda f: each_step(f, every),
        "small disk, 40 sizes": lambda f: full_disk(f, range(0, 400_000, 10_000)),
        "random kills, 1,000": lambda f: random_kills(f, 1_000),
    }
    wanted = sys.argv[1:]
    for name, task in tasks.items():
        if wanted and not any(word in name for word in wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            seen = task(Path(folder))
        told = ", ".join(f"{n:,} {kind}" for kind, n in sorted(seen.items()))
        print(f"{name}: no violation ({told}; {time.monotonic() - begun:,.0f} s)", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main()
