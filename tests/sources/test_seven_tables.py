"""Passages, requests, documents and chunks from text files and under other names, through `score` and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.cli import main
from docrecall.convert import convert
from tests.seven import MEASURES, NAMES, table, tables
from tests.small import account, write

ASKED = (*MEASURES, "evidence_iou@3", "context_tokens@2docs")


def full() -> dict[str, pl.DataFrame]:
    """All seven tables with every column that docrecall knows, nulls among them, and an alias, a weight, a decision.

    The log lacks its tokens, which the chunks have.
    """
    return tables(
        hits={
            "run_id": ["r"] * 3,
            "request_id": ["1", "1", "2"],
            "doc_id": ["x", "mirror", "b"],
            "doc_version": ["v1", None, "v2"],
            "n_tokens": None,
            "in_context": [True, False, True],
            "chunk_id": ["x1", "m1", "b1"],
            "chunk_start": [None, 0, 0],
            "chunk_end": [None, 8, 10],
            "score": [1.5, 0.25, -1e-3],
            "note": None,
        },
        qrels={"doc_version": ["v1", None], "relevance": [2, 1], "note": None},
        evidence={
            "start": [0, None],
            "end": [10, None],
            "doc_version": [None, "v2"],
            "chunk_id": [None, "b1"],
            "note": None,
        },
        queries={"weight": [0.5, None], "note": None},
        requests={
            "run_id": ["r", "r"],
            "request_id": ["1", "2"],
            "answered": [None, False],
            "retrieved": [True, None],
            "note": None,
        },
        documents={
            "doc_id": ["a", "b", "b", "mirror"],
            "doc_version": ["v1", "v1", "v2", None],
            "title": ["A, or \u00e9", None, "B", None],
            "alias_of": [None, None, None, "a"],
            "note": None,
        },
        chunks={
            "chunk_id": ["x1", "m1", "b1"],
            "doc_id": ["x", "mirror", "b"],
            "run_id": ["r"] * 3,
            "doc_version": ["v1", None, "v2"],
            "note": None,
        },
    )


def score(given: dict[str, Any], measures: Any = ASKED, **options: Any) -> dr.Scores:
    rest = dict(given)
    return dr.score(rest.pop("hits"), rest.pop("qrels", None), measures, **rest, **options)


def alike(actual: dr.Scores, expected: dr.Scores) -> None:
    """Equal scores, means, decisions and accounts."""
    assert_frame_equal(actual.per_query, expected.per_query)
    assert_frame_equal(actual.summary(), expected.summary())
    assert_frame_equal(actual.decisions, expected.decisions)
    assert_frame_equal(actual.rows, expected.rows)
    assert_frame_equal(actual.findings.drop("file"), expected.findings.drop("file"))


def in_form(folder: Path, form: str, given: dict[str, pl.DataFrame]) -> dict[str, Path]:
    """Write tables in a form of text, or as Parquet."""
    paths = {}
    for name, frame in given.items():
        path = folder / f"{name}.{form}"
        match form:
            case "csv":
                frame.write_csv(path)
            case "tsv":
                frame.write_csv(path, separator="\t")
            case "jsonl":
                frame.write_ndjson(path)
            case _:
                write(path, frame)
        paths[name] = path
    return paths


def test_the_full_tables_tell_something() -> None:
    """Values between 0 and 1, nulls and both decisions occur, so that a lost column would be seen."""
    scores = score(full())
    assert scores.accounting["n_scored"].item() == 2
    assert scores.per_query.select("query_id", *ASKED).rows() == [
        ("q1", 1.0, 1.0, 0.0, None, 0.0, 0.8, 0.8, 10.0),
        ("q2", 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, None, 5.0),
    ]
    assert scores.decided.select("query_id", "answered").collect().rows() == [("q1", True), ("q2", False)]
    assert scores.decisions["declined_with_gold"].item() == 1
    assert scores.summary()["n_eff"][0] == 1.5**2 / (0.25 + 1)


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_every_form_scores_alike(form: str, tmp_path: Path) -> None:
    """A table is the same in CSV, TSV, JSON lines and Parquet: nulls, flags, weights and text with commas."""
    alike(score(in_form(tmp_path, form, full())), score(full()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_forms_mix(form: str, name: str, tmp_path: Path) -> None:
    """One table as text beside frames."""
    given = full()
    alike(score({**given, name: in_form(tmp_path, form, given)[name]}), score(given))


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_the_command_reads_them(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same through the command line, down to the last digit."""
    argv = [f"--{name}={path}" for name, path in in_form(tmp_path, form, full()).items()]
    assert main(["score", *argv, *(f"--measure={m}" for m in ASKED), "--format=json"]) == 0
    document = json.loads(capsys.readouterr().out)
    expected = score(full())
    means = {m: found["mean"] for m, found in document["runs"][0]["measures"].items()}
    assert means == dict(expected.summary().select("measure", "mean").rows())
    assert document["runs"][0]["decisions"] == expected.decisions.drop("run_id").to_dicts()[0]
    assert document["rows"] == expected.rows.to_dicts()


OTHER_NAMES = {
    "hits": {"chunk_id": "cid", "in_context": "used"},
    "qrels": {"doc_id": "gold"},
    "evidence": {"evidence_id": "passage", "start": "from", "end": "to", "doc_id": "page"},
    "queries": {"weight": "traffic"},
    "requests": {"request_id": "trace", "answered": "replied"},
    "documents": {"alias_of": "same_as", "doc_version": "revision"},
    "chunks": {"chunk_id": "cid", "n_tokens": "length"},
}
MAP = {f"{name}.{column}": other for name, names in OTHER_NAMES.items() for column, other in names.items()}


@pytest.mark.parametrize("form", ["frames", "csv", "jsonl", "parquet"])
def test_columns_of_other_names(form: str, tmp_path: Path) -> None:
    """Every table can be mapped."""
    given: dict[str, Any] = {name: frame.rename(OTHER_NAMES[name]) for name, frame in full().items()}
    if form != "frames":
        given = in_form(tmp_path, form, given)
    alike(score(given, map=MAP), score(full()))


def test_map_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--map` repeats, and takes a TOML file that `convert --explain` wrote."""
    given = {name: frame.rename(OTHER_NAMES[name]) for name, frame in full().items()}
    argv = [f"--{name}={path}" for name, path in in_form(tmp_path, "csv", given).items()]
    maps = [f"--map={column}={other}" for column, other in MAP.items()]
    assert main(["convert", *argv, *maps, "--explain"]) == 0
    (tmp_path / "map.toml").write_text(capsys.readouterr().out)
    shown = []
    for how in (maps, [f"--map={tmp_path / 'map.toml'}"]):
        assert main(["score", *argv, *how, "--measure=evidence_coverage@3", "--format=json"]) == 0
        shown.append(json.loads(capsys.readouterr().out)["runs"])
    assert shown[0] == shown[1]
    expected = score(full(), "evidence_coverage@3").summary()["mean"].item()
    assert shown[0][0]["measures"]["evidence_coverage@3"]["mean"] == expected


def test_constants_and_sums(tmp_path: Path) -> None:
    """A run by value, an end as the sum of offset and length, and offsets held as text."""
    lengths = table("evidence").with_columns(length=pl.col("end") - pl.col("start")).drop("end")
    chunks = table("chunks").with_columns(pl.col("n_tokens").cast(pl.String))
    given = {
        "hits": table("hits", n_tokens=None),
        "qrels": table("qrels"),
        "evidence": lengths,
        "chunks": chunks,
    }
    mapping = {
        "hits.run_id": "value:bm25",
        "chunks.run_id": "value:bm25",
        "chunks.n_tokens": "whole:n_tokens",
        "evidence.end": "sum:start,length",
    }
    expected = score({**tables("hits", "qrels", "evidence")}, MEASURES)
    for each in (given, in_form(tmp_path, "csv", given)):
        scores = score(each, MEASURES, map=mapping)
        assert_frame_equal(scores.per_query.drop("run_id"), expected.per_query.drop("run_id"))
        assert scores.accounting["run_id"].to_list() == ["bm25"]


def test_pattern_that_gives_document_and_span() -> None:
    """Passages named by composite ids: document, start and end are groups of a pattern."""
    composite = pl.DataFrame({"query_id": ["q1", "q2"], "evidence_id": ["e1", "e2"], "ref": ["a-0-10", "b-0-10"]})
    given = {**tables("hits", "qrels"), "evidence": composite}
    mapping = {"evidence": r"ref~(?P<doc_id>.+)-(?P<start>\d+)-(?P<end>\d+)"}
    scores = score(given, "evidence_recall@3", map=mapping)
    assert_frame_equal(scores.per_query, score(tables("hits", "qrels", "evidence"), "evidence_recall@3").per_query)


@pytest.mark.parametrize(
    ("name", "column", "value", "code"),
    [
        ("evidence", "start", "ten", "not_whole"),
        ("evidence", "end", "2.5", "not_whole"),
        ("queries", "weight", "heavy", "not_number"),
        ("requests", "answered", "perhaps", "not_flag"),
        ("hits", "in_context", "maybe", "not_flag"),
        ("hits", "n_tokens", "many", "not_whole"),
        ("chunks", "n_tokens", "1e", "not_whole"),
    ],
)
def test_text_that_is_no_value(name: str, column: str, value: str, code: str, tmp_path: Path) -> None:
    """A field that is not what its column holds names file and line, and can be set aside."""
    given = tables("hits", "qrels", "evidence", "queries", "requests", "chunks")
    if name == "chunks":
        given["hits"] = given["hits"].drop("n_tokens")
    values = [value if i == 0 else str(v).lower() for i, v in enumerate(given[name][column])]
    path = tmp_path / f"{name}.csv"
    given[name].with_columns(pl.Series(column, values)).write_csv(path)
    with pytest.raises(dr.DataError, match=rf"{name}\.{column}.*{name}\.csv, line 2") as caught:
        score({**given, name: path})
    assert code in caught.value.findings["code"]
    assert value not in str(caught.value)
    scores = score({**given, name: path}, on_bad_rows="reject")
    assert (name, column, code) in scores.rejected.collect().select("table", "column", "reason").rows()
    assert account(scores.rows)[name][3] == 1


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_converted_tables_score_alike(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`convert` writes all seven tables; the files that it wrote give the same scores, and so does the command."""
    paths = in_form(tmp_path / form, form, full()) if (tmp_path / form).mkdir() is None else {}
    assert main(["convert", *(f"--{name}={path}" for name, path in paths.items()), f"--out={tmp_path / 'out'}"]) == 0
    capsys.readouterr()

    written = {name: tmp_path / "out" / f"{name}.parquet" for name in NAMES}
    scores = score(written)

    alike(scores, score(full()))
    assert account(scores.rows) == {name: (frame.height, frame.height, 0, 0, 0) for name, frame in full().items()}
    argv = [f"--{name}={path}" for name, path in written.items()]
    assert main(["score", *argv, *(f"--measure={m}" for m in ASKED), "--format=csv"]) == 0
    shown = pl.read_csv(capsys.readouterr().out.encode()).select("measure", "mean", "n", "n_eff")
    expected = scores.summary().select("measure", "mean", "n", "n_eff")
    assert shown.rows() == expected.rows()


def test_converting_keeps_every_value(tmp_path: Path) -> None:
    """All columns, with their nulls, come out as they went in, in sorted order; converting again changes no byte."""
    given = full()
    for out, source in (("one", given), ("two", {name: tmp_path / "one" / f"{name}.parquet" for name in NAMES})):
        convert(tmp_path / out, **source)
    for name, frame in given.items():
        written = pl.read_parquet(tmp_path / "one" / f"{name}.parquet")
        assert sorted(written.select(frame.columns).rows(), key=str) == sorted(frame.rows(), key=str)
        assert (tmp_path / "one" / f"{name}.parquet").read_bytes() == (
            tmp_path / "two" / f"{name}.parquet"
        ).read_bytes()


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("evidence", {"end": [0, 10]}, "span_order"),
        ("evidence", {"start": [None, 0], "end": [None, 10], "chunk_id": [None, "b1"]}, "evidence_empty"),
        ("queries", {"weight": [-1.0, 1.0]}, "weight_invalid"),
        ("queries", {"label_status": ["maybe", None]}, "status_unknown"),
        ("requests", {"query_id": [None, "q2"]}, "null_id"),
        ("documents", {"doc_id": [None, "b", "x"]}, "null_id"),
        ("chunks", {"chunk_id": [None, "a1", "b1"]}, "null_id"),
    ],
)
def test_converting_checks_rows(name: str, change: dict[str, Any], code: str, tmp_path: Path) -> None:
    """A row that breaks a rule by itself stops the conversion, or is set aside and told."""
    source = table(name, **change)
    with pytest.raises(dr.DataError, match=f"{name}") as caught:
        convert(tmp_path / "out", **{name: source})
    assert caught.value.findings["code"].to_list() == [code]
    assert not (tmp_path / "out").exists()
    done = convert(tmp_path / "out", options=dr.Options(on_bad_rows="reject"), **{name: source})
    assert done.rows.select("read", "written", "rejected").row(0) == (source.height, source.height - 1, 1)
    assert done.rejected["reason"].to_list() == [code]
