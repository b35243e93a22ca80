"""Columns of any name, composite ids and constants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.convert import convert
from docrecall.sources.mapping import Source, TableMap, parse_mapping, to_toml
from docrecall.sources.read import read_table
from docrecall.tables import EVIDENCE, HITS, QRELS, QUERIES, TableSpec
from tests.small import MEASURE, hits, qrels, queries

MAP = {"hits.query_id": "qid", "hits.doc_id": "meta.source", "qrels.doc_id": "gold"}


def table(source: Any, spec: TableSpec, mapping: Any = None, read: Any = None) -> pl.DataFrame:
    """Read a table and give its known columns."""
    found = read_table(source, spec, tmap=parse_mapping(mapping, read).get(spec.name, TableMap()))
    return pl.concat([part.scan().select(part.schema.names()).collect() for part in found.parts])


def test_other_names_and_nested_fields(tmp_path: Path) -> None:
    """A frame, a Parquet file and JSON lines with other names score as the same table with ours does."""
    log = hits().select(
        pl.col("query_id").alias("qid"), "rank", pl.struct(pl.col("doc_id").alias("source"), page=1).alias("meta")
    )
    labels = qrels().rename({"doc_id": "gold"})
    log.write_parquet(tmp_path / "log.parquet")
    log.write_ndjson(tmp_path / "log.jsonl")
    expected = dr.score(hits(), qrels(), MEASURE).per_query

    for source in (log, log.lazy(), tmp_path / "log.parquet", tmp_path / "log.jsonl"):
        assert_frame_equal(dr.score(source, labels, MEASURE, map=MAP).per_query, expected)


def test_list_of_objects(tmp_path: Path) -> None:
    """One row per query with a list of objects: a field of the objects is the list, positions are ranks."""
    (tmp_path / "log.jsonl").write_text(
        '{"q": "q1", "hits": [{"id": "x"}, {"id": "a", "s": 2.5}]}\n'
        '{"q": "q2", "hits": []}\n{"q": "q3", "hits": [{"id": 7}]}\n'
    )
    mapping = {"hits.query_id": "q", "hits.doc_id": "hits.id", "hits.score": "hits.s"}

    found = table(tmp_path / "log.jsonl", HITS, mapping)

    assert found.select("query_id", "rank", "doc_id", "score").rows() == [
        ("q1", 1, "x", None),
        ("q1", 2, "a", 2.5),
        ("q3", 1, "7", None),
    ]
    frame = pl.DataFrame({"q": ["q1"], "hits": [[{"id": "x", "s": None}, {"id": "a", "s": 2.5}]]})
    assert_frame_equal(table(frame, HITS, mapping), found.head(2), check_column_order=False)


def test_constant_is_of_the_kind_of_its_column() -> None:
    """value: gives text to ids and numbers to numbers; what a column cannot hold is a usage error."""
    found = table(hits(), HITS, ["hits.run_id=value:bm25", "hits.n_tokens=value:256", "hits.in_context=value:true"])
    assert found.select("run_id", "n_tokens", "in_context").unique().rows() == [("bm25", 256, True)]
    with pytest.raises(dr.UsageError, match=r"hits\.n_tokens cannot be 'many'"):
        table(hits(), HITS, "hits.n_tokens=value:many")


def test_composite_ids(tmp_path: Path) -> None:
    """Named groups of a pattern become columns; sums of groups give spans in the document; a miss is a fault."""
    path = tmp_path / "labels.tsv"
    path.write_text("query-id\tcorpus-id\tscore\nq1\tdoc_7_100-300-20-50\t1\nq1\tdoc_7_400-500-0-100\t1\n")
    (tmp_path / "map.toml").write_text(
        '[evidence]\nquery_id = "query-id"\nevidence_id = "corpus-id"\nstart = "sum:base,from"\nend = "sum:base,to"\n'
        '[[evidence.split]]\ncolumn = "corpus-id"\n'
        "pattern = '(?P<doc_id>.+)_(?P<base>\\d+)-\\d+-(?P<from>\\d+)-(?P<to>\\d+)'\n"
    )

    found = table(path, EVIDENCE, tmp_path / "map.toml")

    assert found.select("doc_id", "start", "end").rows() == [("doc_7", 120, 150), ("doc_7", 400, 500)]
    labels = table(path, QRELS, r"qrels=corpus-id~(?P<doc_id>.+)_[-\d]+")
    assert labels.rows() == [("q1", "doc_7", 1)] * 2
    with pytest.raises(dr.DataError, match=r"qrels: 2 rows with an id .* in 1 query \(q1\), first in .*tsv, line 2"):
        dr.score(hits(), path, MEASURE, map=r"qrels=corpus-id~(?P<doc_id>[a-z]+)-\d+")


def test_whole_numbers_in_floats_and_text() -> None:
    """whole: reads 1.0 and "2"; a fraction is told with its query, or set aside."""
    labels = qrels(relevance=[1.0, 2.0])
    assert dr.score(hits(), labels, MEASURE, map="qrels.relevance=whole:relevance").summary()["mean"].to_list() == [1.0]
    assert table(qrels(relevance=["1", "2.0"]), QRELS, "qrels.relevance=whole:relevance")["relevance"].to_list() == [
        1,
        2,
    ]
    broken = qrels(relevance=[1.0, 1.5])
    with pytest.raises(dr.DataError, match=r"qrels\.relevance: 1 row with a value that is not a whole number .*\(q2\)"):
        dr.score(hits(), broken, MEASURE, map="qrels.relevance=whole:relevance")


def test_integers_as_text() -> None:
    """text: lets integer ids meet String ids; floats are refused, since they would not be what they show."""
    numbers = hits(query_id=[1, 1, 2])
    labels = qrels(query_id=["1", "2"])
    scores = dr.score(numbers, labels, MEASURE, map="hits.query_id=text:query_id")
    assert scores.per_query["query_id"].to_list() == ["1", "2"]
    with pytest.raises(dr.DataError, match=r"hits\.query_id is mapped to a column as text, which is Float64"):
        dr.score(hits(query_id=[1.0, 1.0, 2.0]), labels, MEASURE, map="hits.query_id=text:query_id")


@pytest.mark.parametrize(
    ("columns", "offer"),
    [
        ({"Query_ID": "query_id"}, "--map hits.query_id=Query_ID"),
        ({"qid": "query_id"}, "--map hits.query_id=qid"),
        ({"query-id": "query_id"}, "--map hits.query_id=query-id"),
        ({"docno": "doc_id"}, "--map hits.doc_id=docno"),
        ({"documentId": "doc_id"}, "--map hits.doc_id=documentId"),
        ({"position": "rank"}, "--map hits.rank=position"),
        ({"payload.source": "doc_id"}, "--map hits.doc_id=payload.source"),
        ({"qid": "query_id", "source": "doc_id"}, "--map hits.query_id=qid --map hits.doc_id=source"),
    ],
)
def test_near_name_is_offered(columns: dict[str, str], offer: str) -> None:
    """A missing column is told with the mapping to the one that is likely meant, ready to be pasted."""
    log = hits().rename({ours: theirs for theirs, ours in columns.items()})
    with pytest.raises(dr.DataError) as caught:
        dr.score(log, qrels(), MEASURE)
    assert offer in str(caught.value)
    pairs = [word for word in offer.split() if word != "--map"]
    assert_frame_equal(
        dr.score(log, qrels(), MEASURE, map=pairs).per_query, dr.score(hits(), qrels(), MEASURE).per_query
    )


def test_slices_stay() -> None:
    """Queries may have any further column, and one of another name becomes a slice."""
    found = table(
        pl.DataFrame({"qid": ["a"], "lang": ["de"], "n": [3]}),
        QUERIES,
        {"queries.query_id": "qid", "queries.size": "n"},
    )
    assert found.to_dicts() == [{"query_id": "a", "size": 3, "lang": "de"}]


def test_toml_is_read_back(tmp_path: Path) -> None:
    """What is printed is what was meant, with every kind of source, odd names, and quotes in patterns."""
    maps = parse_mapping(
        [
            "hits.doc_id=meta.source",
            'hits.run_id=value:bm25: the "best"',
            "hits.n_tokens=whole:n",
            "queries.größe=text:q'id",
            "evidence.start=sum:a,b",
            r"evidence=corpus-id~(?P<doc_id>[^'\"]+)-(?P<a>\d+)-(?P<b>\d+)",
            "qrels.doc_id=column:value:x",
        ],
        ["hits=trec:query_id,_,doc_id", "qrels=csv"],
    )
    path = tmp_path / "map.toml"
    path.write_text(to_toml(maps), encoding="utf-8")
    assert parse_mapping(path) == maps
    assert maps["qrels"].source("doc_id").names == ("value:x",)


def test_lists_inside_objects() -> None:
    """A way through an object, a list in it and objects in that is found in frames as it is in JSON lines."""
    answer = {"id": "r1", "hits": [{"meta": {"source": "x"}, "s": 2.0}, {"meta": {"source": "a"}, "s": 1.0}]}
    frame = pl.DataFrame({"request": [{"q": "q1"}], "response": [answer]})
    mapping = {
        "hits.query_id": "request.q",
        "hits.doc_id": "response.hits.meta.source",
        "hits.score": "response.hits.s",
    }
    expected = [("q1", 1, "x", 2.0), ("q1", 2, "a", 1.0)]
    assert table(frame, HITS, mapping).select("query_id", "rank", "doc_id", "score").rows() == expected
    arrays = pl.DataFrame(
        {"query_id": ["q1"], "doc_id": [["x", "a"]]}, schema_overrides={"doc_id": pl.Array(pl.String, 2)}
    )
    assert table(arrays, HITS).select("query_id", "rank", "doc_id").rows() == [row[:3] for row in expected]


def test_composite_ids_in_lists(tmp_path: Path) -> None:
    """Patterns, whole numbers and text apply to each element of a list; an empty list is still a unit."""
    (tmp_path / "h.jsonl").write_text(
        '{"q": "run1/q1", "ids": ["x#1", "a#20"], "n": ["1", "2.0"]}\n{"q": "run1/q2", "ids": [], "n": []}\n'
    )
    mapping = [
        r"hits=ids~(?P<doc_id>.+)#(?P<chunk_id>\d+)",
        r"hits=q~(?P<run_id>[^/]+)/(?P<query_id>.+)",
        "hits.n_tokens=whole:n",
    ]
    frame = pl.DataFrame({"q": ["run1/q1", "run1/q2"], "ids": [["x#1", "a#20"], []], "n": [["1", "2.0"], []]})
    for log in (tmp_path / "h.jsonl", frame):
        found = table(log, HITS, mapping).select("run_id", "query_id", "rank", "doc_id", "chunk_id", "n_tokens")
        assert found.rows() == [("run1", "q1", 1, "x", "1", 1), ("run1", "q1", 2, "a", "20", 2)]
        scores = dr.score(log, qrels(), MEASURE, map=mapping, universe="hits")
        assert scores.per_query.select("run_id", "query_id", MEASURE).rows() == [
            ("run1", "q1", 1.0),
            ("run1", "q2", 0.0),
        ]


def test_group_that_nothing_takes() -> None:
    """A group that is no column and that no mapping names is a usage error with the nearest column."""
    with pytest.raises(dr.UsageError, match=r"the group 'docid' is no column of hits.* Did you mean \"doc_id\""):
        dr.score(hits(), qrels(), MEASURE, map=r"hits=doc_id~(?P<docid>.+)")
    with pytest.raises(dr.DataError, match=r"hits\.n_tokens is mapped to whole numbers in 'd', which is Date"):
        dr.score(hits(d=pl.Series([0, 1, 2]).cast(pl.Date)), qrels(), MEASURE, map="hits.n_tokens=whole:d")


def test_sum_beyond_64_bits_is_a_fault() -> None:
    """A sum that does not fit is told, and never wraps around."""
    log = hits(a=[2**63 - 1, 1, 2], b=[5, 1, 1])
    with pytest.raises(dr.DataError, match=r"hits\.chunk_start: 1 row with a value that is not a whole number"):
        convert(Path("never"), hits=log, map="hits.chunk_start=sum:a,b")


def test_tilde_in_a_name(tmp_path: Path) -> None:
    """In TOML a column of any name can be split, and what is printed reads back."""
    (tmp_path / "m.toml").write_text("[[hits.split]]\ncolumn = 'a~b'\npattern = '(?P<doc_id>.+)-1'\n")
    maps = parse_mapping(tmp_path / "m.toml")
    assert (
        table(hits().select("query_id", "rank", pl.lit("x-1").alias("a~b")), HITS, tmp_path / "m.toml")["doc_id"][0]
        == "x"
    )
    (tmp_path / "again.toml").write_text(to_toml(maps))
    assert parse_mapping(tmp_path / "again.toml") == maps


@pytest.mark.parametrize("name", ["grade", "Relevance", "rel", "score"])
def test_grades_under_another_name_are_told(name: str) -> None:
    """Labels whose grades are not read count as 1: a column that looks like grades is told, until it is mapped."""
    labels = qrels(relevance=None, **{name: [1, 0]})
    found = dr.score(hits(), labels, MEASURE).findings.filter(code="likely_meant")
    assert found.select("severity", "table", "column", "examples").rows() == [("warning", "qrels", "relevance", [name])]
    mapped = dr.score(hits(), labels, MEASURE, map={"qrels.relevance": name})
    assert mapped.findings.filter(code="likely_meant").is_empty()
    assert dr.score(hits(), qrels(relevance=None), MEASURE).findings.filter(code="likely_meant").is_empty()


def test_ranks_inside_listed_objects() -> None:
    """Positions rank the hits of a list, unless a rank among the fields of its objects is mapped."""
    log = pl.DataFrame({"query_id": ["q1"], "r": [[{"rank": 2, "id": "x"}, {"rank": 1, "id": "a"}]]})
    by_place = dr.score(log, qrels(), "doc_recall@1", map="hits.doc_id=r.id")
    assert by_place.per_query["doc_recall@1"][0] == 0
    by_rank = dr.score(log, qrels(), "doc_recall@1", map=["hits.doc_id=r.id", "hits.rank=r.rank"])
    assert by_rank.per_query["doc_recall@1"][0] == 1


def test_ranks_inside_objects_of_json_lines_are_told(tmp_path: Path) -> None:
    """In JSON lines the fields are known by name, so that a rank among them is told."""
    (tmp_path / "h.jsonl").write_text('{"query_id": "q1", "r": [{"rank": 2, "id": "x"}, {"rank": 1, "id": "a"}]}\n')
    found = dr.score(tmp_path / "h.jsonl", qrels(), MEASURE, map="hits.doc_id=r.id").findings
    assert found.filter(code="likely_meant").select("table", "column", "examples").rows() == [
        ("hits", "rank", ["r.rank"])
    ]


def test_empty_list_of_a_request(tmp_path: Path) -> None:
    """A request with an empty list is a unit without hits, in frames and JSON lines, with its request_id."""
    log = pl.DataFrame({"id": ["r1", "r2"], "q": ["q1", "q2"], "docs": [["a", "b"], []]})
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in log.to_dicts()))
    names = {"hits.query_id": "q", "hits.request_id": "id", "hits.doc_id": "docs"}
    for given in (log, tmp_path / "log.jsonl"):
        scores = dr.score(given, qrels(), MEASURE, map=names)
        assert scores.per_query.select("request_id", "query_id", "n_hits").rows() == [("r1", "q1", 2), ("r2", "q2", 0)]
        assert scores.summary()["mean"].item() == 0.5


def test_flag_that_says_the_opposite(tmp_path: Path) -> None:
    """`not:` turns a flag round, of any form; what is no flag is refused."""
    asked = pl.DataFrame({"query_id": ["q1", "q2"], "declined": [True, False]})
    asked.write_csv(tmp_path / "r.csv")
    asked.write_ndjson(tmp_path / "r.jsonl")
    asked.with_columns(pl.col("declined").cast(pl.Int8)).write_csv(tmp_path / "numbers.csv")
    for given in (asked, asked.lazy(), *(tmp_path / name for name in ("r.csv", "r.jsonl", "numbers.csv"))):
        scores = dr.score(hits(), qrels(), MEASURE, requests=given, map="requests.answered=not:declined")
        assert scores.decided.select("query_id", "answered").collect().rows() == [("q1", False), ("q2", True)]
    assert parse_mapping("requests.answered=not:declined") == parse_mapping(
        {"requests.answered": Source("not", ("declined",))}
    )
    asked.with_columns(pl.lit("maybe").alias("declined")).write_csv(tmp_path / "r.csv")
    with pytest.raises(dr.DataError, match=r"requests\.answered: 2 rows with a value that is neither true nor false"):
        dr.score(hits(), qrels(), MEASURE, requests=tmp_path / "r.csv", map="requests.answered=not:declined")
    with pytest.raises(dr.UsageError, match=r"hits\.doc_id is no flag"):
        dr.score(hits(), qrels(), MEASURE, map="hits.doc_id=not:doc_id")
    with pytest.raises(dr.DataError, match="Float64"):
        dr.score(hits(odd=[1.5] * 3), qrels(), MEASURE, map="hits.in_context=not:odd")


@pytest.mark.parametrize(
    ("table", "column", "name", "values"),
    [
        ("queries", "weight", "weights", [2.0, 1.0]),
        ("queries", "label_status", "status", ["answerable", "answerable"]),
        ("qrels", "doc_version", "version", ["v1", "v1"]),
        ("requests", "answered", "declined", [True, False]),
        ("hits", "n_tokens", "token_count", [1, 2, 3]),
    ],
)
def test_columns_under_another_name_are_told(table: str, column: str, name: str, values: list[Any]) -> None:
    """A column that goes by a usual word for one of ours, and is not read, is a warning."""
    made: dict[str, Any] = {"hits": hits, "qrels": qrels, "queries": queries}
    frame = made[table](**{name: values}) if table in made else qrels(**{name: values}).select("query_id", name)
    frame = frame.drop(column, strict=False)
    tables = {"hits": hits(), "qrels": qrels()} | {table: frame}
    found = dr.score(tables.pop("hits"), tables.pop("qrels"), MEASURE, **tables).findings.filter(code="likely_meant")
    assert (table, column, [name]) in found.select("table", "column", "examples").rows()


def test_numbers_as_versions_are_told_with_the_mapping() -> None:
    """A version that is a number is refused with the mapping that reads it as text."""
    with pytest.raises(dr.DataError, match=r"hits\.doc_version is Int64.*--map hits\.doc_version=text:doc_version"):
        dr.score(hits(doc_version=[1, 1, 1]), qrels(doc_version=["1", "1"]), MEASURE)
    numbers = {"hits.doc_version": "text:doc_version"}
    scores = dr.score(hits(doc_version=[1, 2, 1]), qrels(doc_version=["1", "1"]), MEASURE, map=numbers)
    assert scores.per_query[MEASURE].to_list() == [0.0, 1.0]


def test_keywords_are_told_with_the_nearest() -> None:
    """A misspelled keyword is answered with the table or argument that is meant."""
    for wrong, meant in (("measure", "measures"), ("request", "requests"), ("min_relevanc", "min_relevance")):
        with pytest.raises(dr.UsageError, match=f'Did you mean "{meant}"'):
            dr.score(hits(), qrels(), **{wrong: None})
