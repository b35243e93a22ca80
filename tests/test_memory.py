"""A bound on memory is kept by smaller batches, or refused before the work begins; plans are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.cli import main
from docrecall.memory import Expected, fit, parse_bytes
from docrecall.plan import Plan
from docrecall.proof import Layout
from docrecall.sources.read import read_table
from docrecall.tables import HITS
from tests.small import MEASURE, hits, log, qrels, write


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("1GB", 10**9),
        ("1.5 gb", 15 * 10**8),
        ("800MB", 8 * 10**8),
        ("2GiB", 2**31),
        ("512M", 512 * 10**6),
        (10**9, 10**9),
    ],
)
def test_numbers_of_bytes(text: Any, n: int) -> None:
    """Units are decimal, those with an i are binary, and a number alone is bytes."""
    assert parse_bytes(text) == n


@pytest.mark.parametrize("text", ["", "much", "-1GB", "0", "1XB", True, "GB", "1 G B"])
def test_what_is_no_number_of_bytes(text: Any) -> None:
    """It is refused by name."""
    with pytest.raises(dr.UsageError, match="memory is"):
        parse_bytes(text)


def plan(n_rows: int, batch_rows: int) -> Plan:
    table = read_table(pl.DataFrame({"query_id": ["q"], "rank": [1], "doc_id": ["d"]}), HITS)
    part = table.parts[0].__class__(**{**vars(table.parts[0]), "n_rows": n_rows})
    return Plan(table.__class__(**{**vars(table), "parts": [part]}), Layout(None, ""), batch_rows)


def test_batches_are_made_to_fit() -> None:
    """The largest batches whose peak stays inside the bound; never larger than asked for."""
    expected = Expected(now=300_000_000, results=0, per_row=100)
    (fitted,) = fit([plan(10**8, 2_000_000)], expected, 600_000_000)
    assert expected.peak(fitted.batch_rows) <= 600_000_000 < expected.peak(fitted.batch_rows + 10)
    (fitted,) = fit([plan(10**8, 2_000_000)], expected, 10**10)
    assert fitted.batch_rows == 2_000_000
    with pytest.raises(dr.UsageError, match=r"too little: this run needs about"):
        fit([plan(10**8, 2_000_000)], expected, 430_000_000)


def test_a_bound_that_cannot_be_kept_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is read or written, with what is needed."""
    paths = [f"--{n}={write(tmp_path / f'{n}.parquet', f)}" for n, f in (("hits", hits()), ("qrels", qrels()))]
    assert main(["score", *paths, f"--measure={MEASURE}", "--memory=20MB", f"--out={tmp_path / 'out'}"]) == 2
    assert "memory=20 MB is too little" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_bound_changes_no_result() -> None:
    """Batches follow the bound, and numbers do not."""
    docs = ["a", "b", "a", "c"]
    free = dr.score(log(500, docs), log(500, ["b", "x"], labelled=True), MEASURE)
    bound = dr.score(log(500, docs), log(500, ["b", "x"], labelled=True), MEASURE, memory="2GB")
    assert_frame_equal(free.per_query, bound.per_query)


@pytest.mark.parametrize(
    ("frame", "options", "says"),
    [
        (hits(), [], ["sorted by unit: ranks rise", "slices of the files are batches", "2 units"]),
        (hits().reverse(), [], ["not taken as sorted: inside a unit a rank falls", "read whole"]),
        (hits(query_id=["q1", "q2", "q1"]), [], ["not taken as sorted: units begin more than once"]),
        (hits(), ["--ranks=recount"], ["numbers hits anew"]),
        (hits(score=[3.0, 2.0, 1.0]), ["--order=score"], ['order="score" gives']),
        (hits(rank=[1.0, 2.0, 1.0]), [], ["not whole numbers by type"]),
        (hits(), ["--batch-rows=1"], ["about 3 of 1 rows"]),
        (hits().reverse(), ["--batch-rows=1"], ["a scan of all files"]),
    ],
)
def test_the_plan_is_told(
    frame: pl.DataFrame, options: list[str], says: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--explain-plan` says what was found and chosen, and why, and scores nothing."""
    paths = [f"--{n}={write(tmp_path / f'{n}.parquet', f)}" for n, f in (("hits", frame), ("qrels", qrels()))]
    assert main(["score", *paths, f"--measure={MEASURE}", "--explain-plan", *options]) == 0
    told = capsys.readouterr().out
    assert all(words in told for words in says), told
    assert "memory: about" in told
    assert MEASURE not in told
