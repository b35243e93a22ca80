"""A small nightly job: ten queries, a log per night in which some of them find their document, and a configuration."""

from __future__ import annotations

import json
import os
from contextlib import chdir
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from docrecall.cli import main
from docrecall.nightly.config import Config, load_config
from docrecall.nightly.job import run_night
from docrecall.nightly.store import Store
from tests.small import SECRET, write

N = 10
DAY = date(2026, 11, 30)
CONFIG = """
[store]
path = "store"
[sources]
hits = "logs/date={date}"
qrels = "labels/qrels.parquet"
[score]
measures = ["doc_recall@1", "doc_rr@3"]
[options]
universe = "all"
"""


def hits(found: int, *, n: int = N, **columns: Any) -> pl.DataFrame:
    """One hit for each query, the relevant document for the first `found` of them."""
    base = {
        "query_id": [f"q{k:02}" for k in range(n)],
        "rank": [1] * n,
        "doc_id": [f"d{k}" if k < found else "x" for k in range(n)],
        "query_text": [SECRET] * n,
    }
    return pl.DataFrame(base | columns)


def qrels(n: int = N) -> pl.DataFrame:
    """Each query has one relevant document."""
    return pl.DataFrame({"query_id": [f"q{k:02}" for k in range(n)], "doc_id": [f"d{k}" for k in range(n)]})


def job(folder: Path, nights: dict[date, int] | None = None, more: str = "", n: int = N) -> Path:
    """Write labels, a log for each night with so many queries found, and the configuration; give its path."""
    write(folder / "labels" / "qrels.parquet", qrels(n))
    for day, found in ({DAY: 8} if nights is None else nights).items():
        deliver(folder, day, hits(found, n=n))
    config = folder / "nightly.toml"
    config.write_text(CONFIG + more, encoding="utf-8")
    return config


def deliver(folder: Path, day: date, rows: pl.DataFrame, name: str = "part-0.parquet") -> Path:
    """Put a file of hits where a night's are looked for."""
    return write(folder / "logs" / f"date={day}" / name, rows)


def run(config: Path, day: date = DAY, log: Any = None) -> dict[str, Any]:
    """Run a night in this process."""
    with chdir(config.parent):
        return run_night(load_config(config), day, log or (lambda *_, **__: None))


def command(*argv: str | Path) -> int:
    """Run `docrecall nightly` with a worker process."""
    return main(["nightly", *map(str, argv)])


def store_of(config: Path) -> Store:
    """The store that a configuration names."""
    return Store(loaded(config).store)


def loaded(config: Path) -> Config:
    return load_config(config)


def referenced(config: Path) -> dict[str, Any]:
    """What the manifests name, to the byte, without what is kept apart: the times, and the names of runs."""
    store, found = store_of(config), {}
    for day in store.dates():
        night = store.read(day)
        assert night is not None
        told = {k: v for k, v in night.manifest.items() if k not in ("apart", "results")}
        files = {name: (night.run / name).read_bytes() for name in night.manifest["files"]}
        found[day.isoformat()] = (json.dumps(told, sort_keys=True), files)
    return found


def leftovers(config: Path) -> list[str]:
    """Names below the store that belong to no published run: staging, temporary files, runs that nobody names."""
    store = store_of(config)
    named = {night.run for day in store.dates() if (night := store.read(day)) is not None}
    runs = [p for p in store.root.glob("nights/*/runs/*") if p not in named]
    return sorted(os.path.relpath(p, store.root) for p in [*runs, *store.root.rglob(".docrecall-*")])
