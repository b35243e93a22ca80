"""All kinds of tables give the same scores; what is no table is an InputTypeError."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from tests.small import MEASURE, SECRET, hits, qrels, write


class Stream:
    """An object that has nothing but an Arrow stream."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


class Broken:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise RuntimeError(SECRET)


def relation(frame: pl.DataFrame) -> duckdb.DuckDBPyRelation:
    return duckdb.from_arrow(frame.to_arrow())


def as_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(frame.to_dict(as_series=False))


def as_categorical(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("query_id", "doc_id").cast(pl.Categorical))


def as_dictionary(frame: pl.DataFrame) -> pa.Table:
    table = frame.to_arrow()
    for name in ("query_id", "doc_id"):
        table = table.set_column(table.column_names.index(name), name, table[name].dictionary_encode())
    return table


def as_enum(frame: pl.DataFrame) -> pl.DataFrame:
    enum = [pl.col(c).cast(pl.Enum(sorted(frame[c].unique()))) for c in ("query_id", "doc_id")]
    return frame.with_columns(enum)


KINDS: list[Callable[[pl.DataFrame], Any]] = [
    pl.DataFrame.lazy,
    pl.DataFrame.to_arrow,
    as_pandas,
    relation,
    Stream,
    as_categorical,
    as_dictionary,
    as_enum,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_scores_alike(kind: Callable[[pl.DataFrame], Any]) -> None:
    """A table is what is in it, not what holds it."""
    scores = dr.score(kind(hits()), kind(qrels()), MEASURE)
    expected = pl.DataFrame(
        {
            "run_id": ["run"] * 2,
            "query_id": ["q1", "q2"],
            "status": ["scored"] * 2,
            "n_hits": [2, 1],
            MEASURE: [1.0, 1.0],
        }
    )
    assert_frame_equal(scores.per_query, expected)
    assert_frame_equal(
        scores.matches.select("query_id", "first_rank").collect(),
        pl.DataFrame({"query_id": ["q1", "q2"], "first_rank": [2, 1]}),
    )


def test_dict_of_runs() -> None:
    """A dict names the runs; their tables may be of any kind."""
    scores = dr.score({"b": hits(), "a": as_pandas(hits(doc_id=["x", "y", "b"]))}, qrels(), MEASURE)
    assert scores.summary().select("run_id", "mean").rows() == [("a", 0.5), ("b", 1.0)]


def test_dict_name_against_column() -> None:
    """A table that names another run than the caller is an error, also when bad rows are set aside."""
    for how in ("error", "reject"):
        with pytest.raises(dr.DataError, match=r"hits\.run_id: 3 hits of another run .*\(a\)"):
            dr.score({"b": hits(run_id=["a"] * 3)}, qrels(), MEASURE, on_bad_rows=how)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        7,
        b"hits.parquet",
        [],
        {},
        [hits()],
        (x for x in ()),
        {"a", "b"},
        object(),
        hits,
        {"": hits()},
        {1: hits()},
    ],
    ids=lambda wrong: type(wrong).__name__,
)
def test_what_is_no_table(wrong: Any) -> None:
    """Anything else is an InputTypeError, which is a TypeError and exit code 2, and names the kinds."""
    with pytest.raises(dr.InputTypeError, match="hits") as caught:
        dr.score(wrong, qrels(), MEASURE)
    assert isinstance(caught.value, TypeError)
    assert caught.value.exit_code == 2


def test_labels_are_no_dict() -> None:
    """Only hits have runs."""
    with pytest.raises(dr.InputTypeError, match="qrels is a dict"):
        dr.score(hits(), {"a": qrels()}, MEASURE)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (Broken(), "the Broken given as hits could not be read as an Arrow stream"),
        (pd.DataFrame({"query_id": ["q1", 2], "rank": [1, 2], "doc_id": ["a", "b"]}), "the DataFrame given as hits"),
        (hits().lazy().with_columns(pl.col("doc_id").cast(pl.Int64)), "the LazyFrame given as hits failed"),
    ],
    ids=["stream", "pandas", "lazy"],
)
def test_table_that_fails_when_it_is_read(source: Any, says: str) -> None:
    """What its owner raises while a table is read is an InputError without the owner's text."""
    with pytest.raises(dr.InputError, match=says) as caught:
        dr.score(source, qrels(), MEASURE)
    assert SECRET not in str(caught.value)


def test_nothing_is_left_open(tmp_path: Path) -> None:
    """Handles and temporary folders are let go of without a warning, also after an error."""
    path = write(tmp_path / "hits.parquet", hits())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in (path, hits().lazy()):
            scores = dr.score(source, qrels(), MEASURE, out=tmp_path / "out")
            assert scores.matches.collect().height == 2
            assert scores.per_query.height == 2
            del scores
        with pytest.raises(dr.DataError):
            dr.score(hits(rank=[1, None, 1]).lazy(), qrels(), MEASURE)
        gc.collect()


def test_temporary_copy_of_a_lazy_frame_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary copy of a LazyFrame lives as long as scores that may read it again."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scores = dr.score(hits().lazy(), qrels(), MEASURE)
    assert scores.matches.collect().height == 2
    del scores
    gc.collect()
    assert list(tmp_path.iterdir()) == []
