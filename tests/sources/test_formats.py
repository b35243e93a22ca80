"""CSV, TSV, JSON lines, TREC, BEIR and ranx, and one row per query."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.sources import lines
from tests.small import MEASURE, hits, qrels

MEASURES = ["doc_recall@1,3", "doc_ndcg@10docs", "repeat_share@all"]
LOG = pl.DataFrame(
    {
        "query_id": ["007", "007", "007", "q,2", "q,2"],
        "rank": [1, 2, 4, 1, 2],
        "doc_id": ["a", "a", "b#1", 'say "x"', "ü"],
        "score": [3.5, 2.25, -1e-7, 2.0, 1.0],
    }
)
LABELS = pl.DataFrame({"query_id": ["007", "q,2", "q,2"], "doc_id": ["b#1", "ü", "c"], "relevance": [2, 1, 1]})


def as_lists(log: pl.DataFrame) -> pl.DataFrame:
    """One row per query, ranks by position."""
    return log.group_by("query_id", maintain_order=True).agg("doc_id", "score")


def test_same_bits_from_every_form(tmp_path: Path) -> None:
    """The same table as CSV, TSV, JSON lines, lists, pandas, pyarrow, DuckDB and packed text gives the same frame."""
    log = LOG.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id"))
    expected = dr.score(log, LABELS, MEASURES).per_query
    plain = log.with_columns(pl.col("doc_id").str.replace_all('"', "'"))  # TSV has no quotes to quote
    log.write_csv(tmp_path / "log.csv")
    plain.write_csv(tmp_path / "log.tsv", separator="\t", quote_style="never")
    log.write_ndjson(tmp_path / "log.jsonl")
    as_lists(log).write_ndjson(tmp_path / "lists.jsonl")
    as_lists(log).write_parquet(tmp_path / "lists.parquet")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes()))
    (tmp_path / "crlf.csv").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "log.csv").read_bytes().replace(b"\n", b"\r\n"))
    LABELS.write_csv(tmp_path / "qrels.csv")
    LABELS.write_ndjson(tmp_path / "qrels.jsonl")
    names = ("log.csv", "log.tsv", "log.jsonl", "lists.jsonl", "lists.parquet", "log.csv.gz", "crlf.csv")
    forms = [tmp_path / name for name in names]
    forms += [as_lists(log), log.lazy(), log.to_arrow(), log.to_pandas(), as_lists(log).to_pandas()]
    forms.append(duckdb.sql("SELECT * FROM log"))

    for form in forms:
        for labels in (LABELS, tmp_path / "qrels.csv", tmp_path / "qrels.jsonl"):
            assert_frame_equal(dr.score(form, labels, MEASURES).per_query, expected, check_exact=True)


def test_ids_stay_text(tmp_path: Path) -> None:
    """007, 1e3 and a 30-digit number are ids as they stand, also as a JSON number."""
    (tmp_path / "log.csv").write_text("query_id,rank,doc_id\n007,1,1e3\n007,2,123456789012345678901234567890\n")
    (tmp_path / "log.jsonl").write_text(
        '{"query_id": "007", "rank": 1, "doc_id": "1e3"}\n'
        '{"query_id": "007", "rank": 2.0, "doc_id": 123456789012345678901234567890}\n'
    )
    labels = pl.DataFrame({"query_id": ["007"], "doc_id": ["123456789012345678901234567890"]})
    for name in ("log.csv", "log.jsonl"):
        scores = dr.score(tmp_path / name, labels, ["doc_recall@1,2"])
        assert scores.per_query.select("query_id", "doc_recall@1", "doc_recall@2").rows() == [("007", 0.0, 1.0)]


def test_empty_field_is_null(tmp_path: Path) -> None:
    """An empty field is null, quoted or not; words such as NA are text."""
    (tmp_path / "q.csv").write_text('query_id,doc_id,relevance\nq1,a,\nq2,NA,""\nNA,b,1\n')
    with pytest.raises(dr.DataError, match=r"qrels\.relevance: 2 labels without a relevance .* \(q1, q2\).*line 2"):
        dr.score(hits(), tmp_path / "q.csv", MEASURE)


def test_quoted_line_ends_and_the_lines_after(tmp_path: Path) -> None:
    """A line end inside quotes is part of the field, and the lines after it keep their numbers."""
    (tmp_path / "h.csv").write_text('text,query_id,rank,doc_id\n"two\nlines",q1,1,a\n\n"so ""it"" is",q1,two,b\n')
    with pytest.raises(dr.DataError, match=r"hits\.rank: 1 row with a value that is not a whole number.*csv, line 5"):
        dr.score(tmp_path / "h.csv", qrels(), MEASURE)


def test_blocks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files read in many small blocks, through temporary files, give what they give as one."""
    many = pl.concat([hits(query_id=[f"q{n}"] * 3, rank=[1, 2, 3]) for n in range(300)])
    many.write_csv(tmp_path / "h.csv", quote_style="always")
    many.select("query_id", "rank", "doc_id").write_ndjson(tmp_path / "h.jsonl")
    expected = dr.score(many, qrels(), MEASURE).per_query
    monkeypatch.setattr("docrecall.sources.text.BLOCK_BYTES", 1000)
    monkeypatch.setattr("docrecall.sources.text._SMALL", 10)
    for name in ("h.csv", "h.jsonl"):
        assert_frame_equal(dr.score(tmp_path / name, qrels(), MEASURE).per_query, expected)


def test_trec_ids_and_spaces(tmp_path: Path) -> None:
    """Any white space parts fields; #, quotes and no-break spaces are letters; a comment begins its line."""
    (tmp_path / "a.run").write_text(
        '# a comment\n\n q1\tQ0  x#1   1 2.5 tag\r\nq1 Q0 "a 2 2.0 tag\n#q1 Q0 hidden 3 1 tag\nq1 Q0 b\u00a0c 3 1 tag',
        "utf-8",
    )
    labels = pl.DataFrame({"query_id": ["q1"] * 3, "doc_id": ["x#1", '"a', "b\u00a0c"]})
    scores = dr.score(tmp_path / "a.run", labels, ["doc_recall@1,3"])
    assert scores.per_query.select("run_id", "n_hits", "doc_recall@1", "doc_recall@3").rows() == [
        ("tag", 3, 1 / 3, 1.0)
    ]


def test_declared_trec_fields(tmp_path: Path) -> None:
    """Other layouts are read as declared and never guessed; without that the line is told."""
    (tmp_path / "run.txt").write_text("q1 x 1\nq1 a 2\nq2 b 1\n")
    assert (
        dr.score(tmp_path / "run.txt", qrels(), MEASURE, read="hits=trec:query_id,doc_id,rank").summary()["mean"][0]
        == 1
    )
    with pytest.raises(dr.DataError, match=r"3 lines with another number of fields.*line 1.*--read hits=trec:"):
        dr.score(tmp_path / "run.txt", qrels(), MEASURE, read="hits=trec")
    with pytest.raises(dr.InputError, match=r"run\.txt is no Parquet file.*--read hits=trec"):
        dr.score(tmp_path / "run.txt", qrels(), MEASURE)


def test_several_tags_are_several_runs(tmp_path: Path) -> None:
    """The tag of a line is its run."""
    (tmp_path / "two.run").write_text("q1 Q0 a 1 1 bm25\nq1 Q0 a 1 1 dense\nq2 Q0 x 1 1 dense\n")
    assert dr.score(tmp_path / "two.run", qrels(), MEASURE).summary().select("run_id", "mean").rows() == [
        ("bm25", 0.5),
        ("dense", 0.5),
    ]


def test_rejected_lines_reject_their_query(tmp_path: Path) -> None:
    """With reject, a line that cannot be read is set aside with file and line, and its query is not scored."""
    (tmp_path / "a.run").write_text("q1 Q0 a 1 1 t\nq1 Q0 b 2\nq2 Q0 b 1 1 t\n")
    scores = dr.score(tmp_path / "a.run", qrels(), MEASURE, on_bad_rows="reject")
    assert scores.per_query.select("query_id", "status").rows() == [("q1", "rejected_rows"), ("q2", "scored")]
    assert scores.rows.row(0) == ("hits", 3, 2, 0, 1, 0)
    rejected = scores.rejected.collect().select("reason", "file", "query_id").rows()
    assert rejected == [("line_fields", f"{tmp_path / 'a.run'}, line 2", "q1")]


@pytest.mark.parametrize("universe", ["all", "hits"])
def test_empty_list_is_a_unit_without_hits(universe: str) -> None:
    """A query that the log names with an empty list is in the mean as 0, also where only logged queries are scored."""
    log = pl.DataFrame(
        {"query_id": ["q1", "q2"], "doc_id": [["a"], []]}, schema_overrides={"doc_id": pl.List(pl.String)}
    )
    labels = qrels(query_id=["q1", "q2", "q3"], doc_id=["a", "b", "c"])
    scores = dr.score(log, labels, MEASURE, universe=universe)
    wanted = {"q1": 1.0, "q2": 0.0} | ({"q3": 0.0} if universe == "all" else {})
    assert dict(scores.per_query.select("query_id", MEASURE).iter_rows()) == wanted
    assert scores.accounting["n_no_hits"].item() == len(wanted) - 1


def test_unequal_lists_name_the_query() -> None:
    """Parallel lists of different lengths, and a null list, are errors that name the query."""
    log = pl.DataFrame({"query_id": ["q1", "q2"], "doc_id": [["a", "b"], None], "score": [[1.0], [1.0]]})
    with pytest.raises(dr.DataError) as caught:
        dr.score(log, qrels(), MEASURE)
    found = caught.value.findings.select("code", "n_rows", "examples").rows()
    assert found == [("list_lengths", 1, ["q1"]), ("list_null", 1, ["q2"])]


def beir_folder(folder: Path) -> Path:
    """A folder as BEIR has them, with two splits."""
    (folder / "qrels").mkdir(parents=True)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\t1\n2\td2\t2\n")
    (folder / "queries.jsonl").write_text(
        '{"_id": "1", "text": "a"}\n{"_id": "2", "text": "b"}\n{"_id": "3", "text": "c"}\n'
    )
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "t", "text": "x"}\n')
    return folder


def test_beir_folder(tmp_path: Path) -> None:
    """A folder gives its qrels and queries; a Parquet mirror with integer ids gives the same; a split is chosen."""
    folder = beir_folder(tmp_path / "beir")
    run = pl.DataFrame({"query_id": ["1", "2"], "rank": [1, 1], "doc_id": ["d1", "d1"]})
    scores = dr.score(run, folder, MEASURE, queries=folder)
    assert scores.per_query.select("query_id", "status", MEASURE).rows() == [
        ("1", "scored", 1.0), ("2", "scored", 0.0), ("3", "unlabelled", None),
    ]  # fmt: skip

    mirror = tmp_path / "mirror"
    (mirror / "qrels").mkdir(parents=True)
    (mirror / "queries").mkdir()
    pl.DataFrame({"query-id": [1, 2], "corpus-id": ["d1", "d2"], "score": [1.0, 2.0]}).write_parquet(
        mirror / "qrels" / "test-00000-of-00001.parquet"
    )
    pl.DataFrame({"_id": [1, 2, 3]}).write_parquet(mirror / "queries" / "queries-00000-of-00001.parquet")
    assert_frame_equal(dr.score(run, mirror, MEASURE, queries=mirror).per_query, scores.per_query)

    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n1\td9\t1\n")
    with pytest.raises(dr.UsageError, match=r"splits dev, test; choose one.*--read qrels=beir:test"):
        dr.score(run, folder, MEASURE)
    assert dr.score(run, folder, MEASURE, read="qrels=beir:test").summary()["mean"].to_list() == [0.5]


def test_ranx_files(tmp_path: Path) -> None:
    """Ranx JSON gives scores and no ranks: an order by score is asked for; a query without documents is a unit."""
    (tmp_path / "run.json").write_text(json.dumps({"q1": {"x": 0.5, "a": 0.9}, "q2": {}}))
    (tmp_path / "qrels.json").write_text(json.dumps({"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}}))
    with pytest.raises(dr.DataError, match=r"hits has no column hits\.rank.*--order score"):
        dr.score(tmp_path / "run.json", tmp_path / "qrels.json", MEASURE)
    scores = dr.score(
        tmp_path / "run.json", tmp_path / "qrels.json", "doc_recall@1", order="trec_eval", universe="hits"
    )
    assert scores.per_query.select("query_id", "doc_recall@1").rows() == [("q1", 1.0), ("q2", 0.0)]
    (tmp_path / "run.json").write_text('{"q1": {"a": 1, "a": 2}}')
    with pytest.raises(dr.InputError, match="twice"):
        dr.score(tmp_path / "run.json", tmp_path / "qrels.json", MEASURE, order="score")


def test_expansion_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gzip that grows beyond its limit is refused while it is read; one that does not is read."""
    monkeypatch.setattr(lines, "_FREE_EXPANSION", 1000)
    path = tmp_path / "h.csv.gz"
    path.write_bytes(gzip.compress(b"query_id,rank,doc_id\n" + b"q1,1,a\n" * 1_000_000))
    with pytest.raises(dr.InputError, match=r"h\.csv\.gz unpacks to more than 200 times its size"):
        dr.score(path, qrels(), MEASURE)
    path.write_bytes(gzip.compress(b"query_id,rank,doc_id\nq1,1,a\n"))
    assert dr.score(path, qrels(), MEASURE).summary()["mean"].to_list() == [0.5]


def test_partition_folders_of_text(tmp_path: Path) -> None:
    """key=value folders above text files are columns, as above Parquet."""
    for run, doc in (("bm25", "a"), ("dense", "x")):
        (tmp_path / f"run_id={run}").mkdir()
        (tmp_path / f"run_id={run}" / "h.csv").write_text(f"query_id,rank,doc_id\nq1,1,{doc}\n")
    assert dr.score(tmp_path, qrels(), MEASURE).summary().select("run_id", "mean").rows() == [
        ("bm25", 0.5),
        ("dense", 0.0),
    ]


def test_log_of_empty_lists(tmp_path: Path) -> None:
    """A log in which no query found anything has units and no rows, in every form."""
    (tmp_path / "h.jsonl").write_text('{"query_id": "q1", "doc_id": []}\n')
    frame = pl.DataFrame({"query_id": ["q1"], "doc_id": [[]]}, schema_overrides={"doc_id": pl.List(pl.String)})
    for log in (tmp_path / "h.jsonl", frame):
        assert dr.score(log, qrels(), MEASURE, universe="hits").per_query.rows() == [("run", "q1", "scored", 0, 0.0)]


def test_gzip_of_several_members(tmp_path: Path) -> None:
    """Packed files that were put together are one file."""
    parts = (b"query_id,rank,doc_id\nq1,1,a\n", b"q2,1,b\n")
    (tmp_path / "h.csv.gz").write_bytes(b"".join(gzip.compress(part) for part in parts))
    assert dr.score(tmp_path / "h.csv.gz", qrels(), MEASURE).summary()["mean"].to_list() == [1.0]


def test_arguments_that_are_no_mapping() -> None:
    """Values of other types are usage errors, and a dict of columns is told from a dict of runs."""
    for arguments in ({"map": 3}, {"read": 3}):
        with pytest.raises(dr.UsageError, match="expected"):
            dr.score(hits(), qrels(), MEASURE, **arguments)
    with pytest.raises(dr.InputTypeError, match="a dict is run name -> table"):
        dr.score({"query_id": ["q1"], "rank": [1], "doc_id": ["a"]}, qrels(), MEASURE)


@pytest.mark.parametrize("start", ["x\u0681", "x\x01", "x^", "\x1f"])
def test_text_that_begins_like_packed_data(start: str, tmp_path: Path) -> None:
    """Ids whose first bytes are those of zlib or gzip are ids: the engine would unpack such a block unasked."""
    labels = pl.DataFrame({"query_id": [f"{start}1"], "doc_id": ["a"]})
    (tmp_path / "h.run").write_text(f"{start}1 Q0 a 1 2.0 t\n", encoding="utf-8")
    (tmp_path / "h2.run").write_text(f"{start}1  Q0 a 1 2.0 t\n", encoding="utf-8")
    (tmp_path / "h.csv").write_text(f"{start}2,query_id,rank,doc_id\n0,{start}1,1,a\n", encoding="utf-8")
    for name in ("h.run", "h2.run", "h.csv"):
        assert dr.score(tmp_path / name, labels, MEASURE).summary()["mean"].to_list() == [1.0]


def test_long_quoted_field(tmp_path: Path) -> None:
    """A quoted text of more than 128 KiB, where Python's csv module stops by itself, is a field like any other."""
    (tmp_path / "h.csv").write_text(f'text,query_id,rank,doc_id\n"{"long " * 40_000}",q1,1,a\n')
    assert dr.score(tmp_path / "h.csv", qrels(), MEASURE).summary()["mean"].to_list() == [0.5]
