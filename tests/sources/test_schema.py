"""Files of one table that differ: what is the same, what is an error, and that the order of files never matters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from tests.small import MEASURE, hits, qrels, write


def parts(folder: Path, odd: dict[str, Any], place: int) -> list[pl.DataFrame]:
    """Three files with one unit each; the one at `place` differs."""
    made = []
    for number in range(3):
        base: dict[str, Any] = {"query_id": [f"q{number}"], "rank": [1], "doc_id": ["a"], "run_id": ["r"]}
        columns = {k: v for k, v in (base | (odd if number == place else {})).items() if v is not None}
        made.append(pl.DataFrame(columns))
        write(folder / f"{number}.parquet", made[-1])
    return made


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("odd", "says"),
    [
        ({"rank": None}, r"hits has no column hits\.rank .*{n}\.parquet"),
        ({"run_id": None}, r"hits\.run_id is missing in .*{n}\.parquet\) but present in"),
        ({"score": [1.0]}, r"hits\.score is missing in .* but present in .*{n}\.parquet"),
        ({"doc_id": [7]}, r"hits\.doc_id is .*(Int64|String).*{n}\.parquet"),
        ({"doc_id": [7.0]}, r"hits\.doc_id is Float64 .*{n}\.parquet"),
        ({"rank": ["1"]}, r"hits\.rank is String .*{n}\.parquet"),
        ({"rank": [1.0]}, r"hits\.rank is (Float64|Int64) .*{n}\.parquet"),
    ],
    ids=["missing", "optional missing", "extra", "integer ids", "float ids", "text", "float ranks"],
)
def test_one_file_differs(odd: dict[str, Any], says: str, place: int, tmp_path: Path) -> None:
    """One file of many with other columns or types is the same error wherever it stands, and is named."""
    parts(tmp_path, odd, place)
    with pytest.raises(dr.DataError, match=says.format(n=place)):
        dr.score(tmp_path, qrels(query_id=["q0", "q1"]), MEASURE)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    "odd",
    [
        {"unknown": ["x"]},
        {"rank": pl.Series([1], dtype=pl.UInt8)},
        {"rank": pl.Series([1], dtype=pl.UInt64)},
        {"doc_id": pl.Series(["a"], dtype=pl.Categorical)},
        {"query_id": pl.Series([], dtype=pl.Null), "rank": [], "doc_id": [], "run_id": []},
    ],
    ids=["unknown column", "u8", "u64", "categorical", "zero rows of Null"],
)
def test_one_file_is_written_otherwise(odd: dict[str, Any], place: int, tmp_path: Path) -> None:
    """Integer widths, encodings, unknown columns and empty files of any type do not matter, in any place."""
    frames = parts(tmp_path, odd, place)
    plain = [
        f.select(pl.col("query_id", "doc_id", "run_id").cast(pl.String), pl.col("rank").cast(pl.Int64)) for f in frames
    ]
    labels = qrels(query_id=["q0", "q1"], doc_id=["a", "z"])

    scores = dr.score(tmp_path, labels, MEASURE)

    assert_frame_equal(scores.per_query, dr.score(pl.concat(plain), labels, MEASURE).per_query)


def test_integer_widths_mix_between_tables() -> None:
    """Int64 ids meet UInt16 ids; both are whole numbers."""
    log = hits(query_id=pl.Series([1, 1, 2], dtype=pl.UInt16), doc_id=pl.Series([9, 1, 2], dtype=pl.Int8))
    labels = qrels(query_id=pl.Series([1, 2], dtype=pl.UInt64), doc_id=[1, 2])
    assert dr.score(log, labels, MEASURE).per_query[MEASURE].to_list() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", [pl.UInt64, pl.Int128, pl.UInt128])
def test_columns_that_nobody_reads_may_hold_anything(dtype: Any) -> None:
    """Numbers beyond 64 bits in unused columns are kept apart, not cast."""
    log = hits(n_tokens=pl.Series([2**63, 2**63 + 1, 1], dtype=dtype), chunk_id=pl.Series([2**63] * 3, dtype=dtype))
    twice = pl.concat([log, log.tail(1)])  # not sorted, so that rows are compared in full
    scores = dr.score(twice, qrels(), MEASURE)
    assert scores.rows["duplicate"].to_list() == [1, 0]
    assert scores.per_query[MEASURE].to_list() == [1.0, 1.0]


@pytest.mark.parametrize(
    "values", [[[1], [2], [3]], [{"a": 1}] * 3, [b"x", b"y", b"z"]], ids=["list", "struct", "bytes"]
)
@pytest.mark.parametrize("column", ["n_tokens", "score", "chunk_id", "in_context", "doc_version"])
def test_unused_columns_of_any_type(column: str, values: list[Any]) -> None:
    """Lists, structs and bytes in unused columns stop nothing, rejected rows included."""
    log = hits(**{column: values}, rank=[1, None, 1])
    scores = dr.score(log, qrels(), MEASURE, on_bad_rows="reject")
    assert scores.rejected.collect()["reason"].to_list() == ["rank_null"]


def test_decimal_scores() -> None:
    """Decimal scores order hits as other numbers do."""
    log = hits(score=pl.Series(["0.5", "2", "1"]).cast(pl.Decimal(10, 2)))
    assert dr.score(log, qrels(), "doc_recall@1", order="score").per_query["doc_recall@1"].to_list() == [1.0, 1.0]
