"""A run with `out` that was killed carries on with the next call, and ends with the same bytes."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import docrecall as dr
from tests.small import log, write

N_UNITS, BATCH = 400, 60
MEASURES = ["doc_recall@1,3", "doc_ndcg@3docs", "repeat_share@3"]


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    """400 units of 5 hits; one query has a bad grade, one no hit, one no label."""
    hits = log(N_UNITS, ["a", "a", "b", "c", "d"]).filter(pl.col("query_id") != "q007")
    qrels = log(N_UNITS, ["a", "c", "x"], labelled=True).filter(pl.col("query_id") != "q009")
    qrels = qrels.with_columns(relevance=pl.when(pl.col("query_id") == "q011").then(None).otherwise(1))
    return {"hits": write(tmp_path / "hits.parquet", hits), "qrels": write(tmp_path / "qrels.parquet", qrels)}


def content(out: Path) -> dict[str, Any]:
    """The bytes of all files; of the manifest everything but the time."""
    found: dict[str, Any] = {p.name: p.read_bytes() for p in out.iterdir()}
    manifest = json.loads(found.pop("manifest.json"))
    del manifest["created_at"], manifest["sha256"]
    return found | {"manifest.json": manifest}


def run(tables: dict[str, Path], out: Path, die_after: int | None = None, **options: Any) -> dr.Scores:
    """Score into a folder; with die_after the process kills itself when so many batches were taken in."""
    taken = 0

    def progress(*_: int) -> None:
        nonlocal taken
        taken += 1
        if taken == die_after:
            os.kill(os.getpid(), signal.SIGKILL)

    policies = {"on_bad_rows": "reject", "batch_rows": BATCH} | options
    return dr.score(tables["hits"], tables["qrels"], MEASURES, out=out, progress=progress, **policies)


def killed(tables: dict[str, Path], out: Path, die_after: int, **options: Any) -> None:
    child = multiprocessing.get_context("spawn").Process(target=run, args=(tables, out, die_after), kwargs=options)
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL


def unfinished(folder: Path) -> list[Path]:
    return list(folder.glob(".docrecall-unfinished-*"))


@pytest.mark.parametrize("order", ["rank", "score"])
@pytest.mark.parametrize("die_after", [2, 9, 30])
def test_a_killed_run_carries_on(die_after: int, order: str, tables: dict[str, Path], tmp_path: Path) -> None:
    """Batches before the kill are not scored again, whether the log is sorted or cut into shards."""
    if order == "score":
        hits = pl.read_parquet(tables["hits"]).with_columns(score=-pl.col("rank").cast(pl.Float64))
        write(tables["hits"], hits)
    run(tables, tmp_path / "clean", order=order)
    killed(tables, tmp_path / "out", die_after, order=order)
    assert not (tmp_path / "out").exists()
    (left,) = unfinished(tmp_path)
    done = sorted(p.name for p in (left / "batches").iterdir() if p.name.isdigit())
    assert len(done) == die_after - 1

    calls: list[tuple[int, int]] = []
    policies: dict[str, Any] = {"on_bad_rows": "reject", "batch_rows": BATCH, "order": order}
    dr.score(*tables.values(), MEASURES, out=tmp_path / "out", progress=lambda *n: calls.append(n), **policies)

    assert content(tmp_path / "out") == content(tmp_path / "clean")
    assert calls[-1][0] == calls[-1][1]
    assert unfinished(tmp_path) == []


def test_killed_again_and_again(tables: dict[str, Path], tmp_path: Path) -> None:
    """Each try goes further than the one before."""
    run(tables, tmp_path / "clean")
    for die_after in (3, 6, 12):
        killed(tables, tmp_path / "out", die_after)
    run(tables, tmp_path / "out")
    assert content(tmp_path / "out") == content(tmp_path / "clean")


@pytest.mark.parametrize("change", ["inputs", "options", "measures"])
def test_another_run_starts_anew_and_says_so(
    change: str, tables: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of a run about other inputs, measures or options is used."""
    killed(tables, tmp_path / "out", 9)
    options: dict[str, Any] = {"on_bad_rows": "reject", "batch_rows": BATCH}
    measures = MEASURES
    if change == "inputs":
        time.sleep(0.01)
        write(tables["qrels"], log(N_UNITS, ["b"], labelled=True))
    elif change == "options":
        options["min_relevance"] = 2
    else:
        measures = [*MEASURES, "doc_hit@2"]
    with caplog.at_level(logging.WARNING):
        dr.score(*tables.values(), measures, out=tmp_path / "out", **options)
    clean = tmp_path / "clean"
    dr.score(*tables.values(), measures, out=clean, **options)
    assert content(tmp_path / "out") == content(clean)
    assert f"with other {change}" in caplog.text


def test_a_damaged_record_ends_what_is_taken_over(tables: dict[str, Path], tmp_path: Path) -> None:
    """What a power failure left half written is scored again."""
    run(tables, tmp_path / "clean")
    killed(tables, tmp_path / "out", 9)
    (left,) = unfinished(tmp_path)
    (left / "batches" / "000004" / "record.json").write_text("")
    (left / "batches" / "000006" / "units.arrow").write_bytes(b"")
    run(tables, tmp_path / "out")
    assert content(tmp_path / "out") == content(tmp_path / "clean")


def test_two_targets_side_by_side(tables: dict[str, Path], tmp_path: Path) -> None:
    """What is left for one target is neither swept away nor taken by a run for another."""
    killed(tables, tmp_path / "out", 9)
    run(tables, tmp_path / "other")
    assert len(unfinished(tmp_path)) == 1
    run(tables, tmp_path / "out")
    assert content(tmp_path / "out") == content(tmp_path / "other")
    assert unfinished(tmp_path) == []


def test_a_failure_leaves_nothing(tables: dict[str, Path], tmp_path: Path) -> None:
    """A run that the contract ends would end so again."""
    with pytest.raises(dr.DataError):
        run(tables, tmp_path / "out", on_bad_rows="error")
    assert unfinished(tmp_path) == []
    assert not (tmp_path / "out").exists()
