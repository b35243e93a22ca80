"""The rules of passages, requests, documents, chunks and of the columns that only some measures read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.findings import KINDS
from tests.seven import BASE, MEASURES, NAMES, tables
from tests.small import SECRET, account, codes, log, write

INF, NAN = float("inf"), float("nan")
OF_QUERIES = ("hits", "qrels", "evidence", "queries", "requests")
ONE_MORE = {"chunk_id": ["x1", "a1", "b1", "c1"], "doc_id": ["x", "a", "b", "c"]}  # a chunk that nobody hits
NO_SPANS = {"hits": {"chunk_start": None, "chunk_end": None}}
NO_TOKENS = {"hits": {"n_tokens": None}}  # so that the table of chunks is asked for them
BY_REQUEST = {"hits": {"request_id": ["r1", "r1", "r2"]}}


class Broken(NamedTuple):
    """A rule, the change of a table that breaks it, and what becomes of rows and units."""

    rule: str
    table: str
    column: str | None
    n_rows: int
    examples: list[str]
    touched: list[str]  # queries whose unit is out of the mean
    changes: dict[str, dict[str, Any]]
    options: dict[str, Any]


def rule(
    name: str,
    place: str,
    n_rows: int,
    examples: Sequence[str],
    change: dict[str, Any],
    *,
    touched: Sequence[str] | None = None,
    others: dict[str, dict[str, Any]] | None = None,
    **options: Any,
) -> Broken:
    """touched: the examples, where they are queries. others: changes of other tables, which break nothing."""
    where, _, column = place.partition(".")
    changes = {where: change}
    for table, more in (others or {}).items():
        changes[table] = more | changes.get(table, {})
    out = list(examples if touched is None else touched)
    return Broken(name, where, column or None, n_rows, list(examples), out, changes, options)


RULES = [
    rule("tokens_null", "hits.n_tokens", 1, ["q1"], {"n_tokens": [5, None, 5]}),
    rule("tokens_negative", "hits.n_tokens", 2, ["q1", "q2"], {"n_tokens": [5, -1, -(2**62)]}),
    rule("tokens_too_large", "hits.n_tokens", 1, ["q2"], {"n_tokens": [5, 5, 2**31]}),
    rule("context_null", "hits.in_context", 2, ["q1", "q2"], {"in_context": [None, True, None]}),
    rule("span_half", "hits.chunk_start", 1, ["q1"], {"chunk_start": [0, None, 0]}),
    rule("span_half", "hits.chunk_end", 2, ["q1"], {"chunk_end": [None, None, 10]}),
    rule("span_negative", "hits.chunk_start", 1, ["q1"], {"chunk_start": [-1, 0, 0]}),
    rule("span_order", "hits.chunk_end", 1, ["q2"], {"chunk_start": [0, 0, 11]}),
    rule("span_too_large", "hits.chunk_end", 1, ["q2"], {"chunk_end": [10, 10, 2**40 + 1]}),
    rule("null_id", "hits.request_id", 1, ["q2"], {"request_id": ["r1", "r1", None]},
         others={"requests": {"request_id": ["r1", "r2"]}}),
    rule("null_id", "hits.chunk_id", 1, ["q1"], {"chunk_id": ["x1", None, "b1"], "n_tokens": None}),
    rule("chunk_unknown", "hits.chunk_id", 2, ["y1", "z1"], {"chunk_id": ["z1", "y1", "b1"], "n_tokens": None},
         touched=["q1"]),
    rule("label_two_versions", "qrels.doc_version", 2, ["q1"],
         {"query_id": ["q1", "q1", "q2"], "doc_id": ["a", "a", "b"], "doc_version": ["v1", "v2", "v1"]}),
    rule("label_two_versions", "qrels.doc_version", 2, ["q1"],
         {"query_id": ["q1", "q1", "q2"], "doc_id": ["a", "a", "b"], "doc_version": ["v1", None, "v1"]}),
    rule("null_id", "evidence.query_id", 1, [], {"query_id": ["q1", "q2", None]}),
    rule("null_id", "evidence.evidence_id", 1, ["q1"], {"evidence_id": [None, "e2"]}),
    rule("null_id", "evidence.doc_id", 1, ["q2"], {"doc_id": ["a", None]}),
    rule("evidence_empty", "evidence", 1, ["q1"],
         {"start": [None, 0], "end": [None, 10], "chunk_id": [None, "b1"]}),
    rule("span_half", "evidence.start", 1, ["q1"], {"start": [None, 0]}),
    rule("span_half", "evidence.end", 1, ["q2"], {"end": [10, None]}),
    rule("span_negative", "evidence.start", 1, ["q1"], {"start": [-5, 0]}),
    rule("span_order", "evidence.end", 1, ["q1"], {"start": [10, 0]}),
    rule("span_order", "evidence.end", 1, ["q2"], {"end": [10, -1]}),
    rule("span_too_large", "evidence.end", 1, ["q2"], {"end": [10, 2**40 + 1]}),
    rule("weight_invalid", "queries.weight", 1, ["q1"], {"weight": [-1e-300, 1.0]}),
    rule("weight_invalid", "queries.weight", 2, ["q1", "q2"], {"weight": [INF, NAN]}),
    rule("null_id", "requests.query_id", 1, [], {"query_id": ["q1", "q2", None]}),
    rule("null_id", "requests.request_id", 1, ["q2"],
         {"query_id": ["q1", "q2", "q2"], "request_id": ["r1", "r2", None]}, touched=[], others=BY_REQUEST),
    rule("null_id", "requests.run_id", 1, ["q1"],
         {"query_id": ["q1", "q2", "q1"], "run_id": ["r", "r", None]}, touched=[],
         others={"hits": {"run_id": ["r"] * 3}}),
    rule("request_repeated", "requests.query_id", 2, ["q1"], {"query_id": ["q1", "q2", "q1"]}),
    rule("request_repeated", "requests.query_id", 3, ["q2"],
         {"query_id": ["q2", "q2", "q1", "q2"], "answered": [True, False, True, None]}),
    rule("request_repeated", "requests.request_id", 2, ["q1"],
         {"query_id": ["q1", "q1", "q2"], "request_id": ["r1", "r1", "r2"]}, others=BY_REQUEST),
    rule("null_id", "documents.doc_id", 1, [], {"doc_id": ["a", "b", "x", None]}),
    rule("document_repeated", "documents.doc_id", 2, ["x"], {"doc_id": ["x", "x", "a", "b"]}, touched=[]),
    rule("document_repeated", "documents.doc_id", 3, ["x"],
         {"doc_id": ["a", "b", "x", "x", "x"], "doc_version": ["v1", "v1", None, None, None]}, touched=[]),
    rule("alias_conflict", "documents.alias_of", 2, ["x"],
         {"doc_id": ["a", "b", "x", "x"], "doc_version": ["v1", "v1", "v1", "v2"], "alias_of": [None, None, "a", "b"]},
         touched=[]),
    rule("null_id", "chunks.doc_id", 1, ["c1"],
         {"chunk_id": ["x1", "a1", "b1", "c1"], "doc_id": ["x", "a", "b", None]}, touched=[],
         others=NO_TOKENS),
    rule("tokens_null", "chunks.n_tokens", 1, ["c1"], ONE_MORE | {"n_tokens": [5, 5, 5, None]}, touched=[],
         others=NO_TOKENS),
    rule("tokens_negative", "chunks.n_tokens", 1, ["c1"], ONE_MORE | {"n_tokens": [5, 5, 5, -1]}, touched=[],
         others=NO_TOKENS),
    rule("span_half", "chunks.chunk_start", 1, ["c1"], ONE_MORE | {"chunk_start": [0, 0, 0, None]}, touched=[],
         others=NO_SPANS),
    rule("span_order", "chunks.chunk_end", 1, ["c1"], ONE_MORE | {"chunk_start": [0, 0, 0, 11]}, touched=[],
         others=NO_SPANS),
    rule("chunk_repeated", "chunks.chunk_id", 2, ["z1"],
         {"chunk_id": ["x1", "a1", "b1", "z1", "z1"], "doc_id": ["x", "a", "b", "z", "z"]}, touched=[],
         others=NO_TOKENS),
]  # fmt: skip
each_rule = pytest.mark.parametrize("broken", RULES, ids=lambda b: f"{b.rule}-{b.table}.{b.column}")


def score(given: dict[str, pl.DataFrame], measures: Any = MEASURES, **options: Any) -> dr.Scores:
    rest = dict(given)
    return dr.score(rest.pop("hits"), rest.pop("qrels", None), measures, **rest, **options)


def expected_n_queries(broken: Broken) -> int:
    """How many units or queries a finding counts: those of its examples, or of the chunks that nobody knows."""
    return len(broken.touched) if broken.rule == "chunk_unknown" else len(broken.examples)


@pytest.mark.parametrize("where", ["frames", "files"])
@each_rule
def test_error_stops(broken: Broken, where: str, tmp_path: Any) -> None:
    """The run stops with one finding: table.column, rule, counts, ids and file, and no other text of a cell."""
    given: dict[str, Any] = tables(**broken.changes)
    if where == "files":
        given = {name: write(tmp_path / f"{name}.parquet", frame) for name, frame in given.items()}
    place = broken.table if broken.column is None else f"{broken.table}.{broken.column}"

    with pytest.raises(dr.DataError) as caught:
        score(given, **broken.options)

    found, said = caught.value.findings, str(caught.value)
    assert [c[:5] for c in codes(found)] == [(broken.rule, "error", broken.table, broken.column, broken.n_rows)]
    assert found["examples"].to_list() == [broken.examples]
    if broken.table in OF_QUERIES:
        assert found["n_queries"].to_list() == [expected_n_queries(broken)]
    assert f"{place}: {broken.n_rows} " in said
    assert KINDS[broken.rule].means in said
    assert all(example in said for example in broken.examples)
    assert (f"{broken.table}.parquet" in said) == (where == "files")
    assert SECRET not in said


@pytest.mark.parametrize("backwards", [False, True], ids=["as logged", "backwards"])
@each_rule
def test_reject_sets_rows_aside(broken: Broken, backwards: bool) -> None:
    """Bad rows are given with their reason, units that they touch leave the mean, every row is accounted for."""
    given = tables(**broken.changes)
    if backwards:
        given = {name: frame.reverse() for name, frame in given.items()}

    scores = score(given, on_bad_rows="reject", **broken.options)

    rejected = scores.rejected.collect()
    assert set(rejected.select("table", "column", "reason", "file").rows()) == {
        (broken.table, broken.column, broken.rule, None)
    }
    assert account(scores.rows)[broken.table][3] == rejected.height == broken.n_rows
    assert SECRET not in str(rejected.to_dicts())
    status = dict(scores.per_query.select("query_id", "status").rows())
    assert status == {q: "rejected_rows" if q in broken.touched else "scored" for q in ("q1", "q2")}
    values = dict(zip(scores.per_query["query_id"], scores.per_query.select(MEASURES).rows(), strict=True))
    assert values == {q: ((None if q in broken.touched else 1.0),) * len(MEASURES) for q in ("q1", "q2")}
    noticed = scores.findings.filter(pl.col("code") == broken.rule)
    assert noticed.select("severity", "n_rows").rows() == [("warning", broken.n_rows)]


def test_the_tables_are_good() -> None:
    """Without a change all seven tables keep the contract and score 1, so each change above is what breaks it."""
    scores = score(tables())
    assert scores.findings.is_empty()
    assert scores.per_query.select(MEASURES).rows() == [(1.0,) * len(MEASURES)] * 2
    assert account(scores.rows) == {name: (n := len(BASE[name][min(BASE[name])]), n, 0, 0, 0) for name in NAMES}


@pytest.mark.parametrize("how", ["error", "reject"])
@pytest.mark.parametrize(
    ("alias_of", "round_"),
    [
        (["b", "a", None], ["a", "b"]),
        (["a", None, None], ["a"]),
        (["b", "x", "b"], ["a", "b", "x"]),
        ([None, "x", "b"], ["b", "x"]),
    ],
)
def test_alias_cycle_always_stops(how: str, alias_of: list[str | None], round_: list[str]) -> None:
    """Aliases that lead round, or into a circle, or to themselves, cannot be set aside."""
    with pytest.raises(dr.DataError, match=rf"documents\.alias_of: {len(round_)} documents? whose aliases") as caught:
        score(tables(documents={"alias_of": alias_of}), on_bad_rows=how)
    assert caught.value.findings["code"].to_list() == ["alias_cycle"]
    assert caught.value.findings["examples"].to_list() == [round_]


def test_hits_of_a_repeated_chunk_are_unknown() -> None:
    """A chunk that stands twice supplies nothing: its hits are rejected too, and their unit with them."""
    changes = {"chunks": {"chunk_id": ["x1", "a1", "b1", "a1"], "doc_id": ["x", "a", "b", "a"]}, **NO_TOKENS}
    with pytest.raises(dr.DataError) as caught:
        score(tables(**changes))
    assert caught.value.findings["code"].to_list() == ["chunk_repeated"]

    scores = score(tables(**changes), on_bad_rows="reject")

    rejected = scores.rejected.collect().select("table", "reason", "chunk_id").rows()
    assert sorted(rejected) == [("chunks", "chunk_repeated", "a1")] * 2 + [("hits", "chunk_unknown", "a1")]
    assert dict(scores.per_query.select("query_id", "status").rows()) == {"q1": "rejected_rows", "q2": "scored"}
    assert account(scores.rows)["chunks"] == (4, 2, 0, 2, 0)


def test_one_chunk_id_in_two_runs_stands_once_in_each() -> None:
    """With run_id the table of chunks repeats a chunk only where run and chunk are the same."""
    twice = {"chunk_id": ["x1", "a1", "b1"] * 2, "run_id": ["r"] * 3 + ["s"] * 3}
    given = tables("hits", "qrels", "chunks", hits={"run_id": ["r"] * 3, "n_tokens": None}, chunks=twice)
    assert score(given, "doc_recall@10tokens").findings.is_empty()
    same = twice | {"run_id": ["r"] * 4 + ["s"] * 2}
    given = tables("hits", "qrels", "chunks", hits={"run_id": ["r"] * 3, "n_tokens": None}, chunks=same)
    with pytest.raises(dr.DataError, match=r"chunks\.chunk_id: 2 rows with a repeated chunk_id"):
        score(given, "doc_recall@10tokens")


@pytest.mark.parametrize(
    "change",
    [
        {"n_tokens": [None, -1, None]},
        {"in_context": [None] * 3},
        {"chunk_start": [9, 9, None], "chunk_end": [0, None, -1]},
        {"n_tokens": ["x", "y", "z"]},
        {"chunk_id": [None] * 3},
    ],
)
def test_columns_that_no_measure_reads_may_hold_anything(change: dict[str, Any]) -> None:
    """Tokens, context, spans and chunks are checked only where a measure uses them."""
    scores = score(tables("hits", "qrels", hits=change), "doc_recall@3")
    assert scores.per_query["doc_recall@3"].to_list() == [1.0, 1.0]
    assert scores.findings.is_empty()


def test_hits_without_a_span_or_with_an_empty_one_are_good() -> None:
    """They cover nothing and break no rule; a null chunk_id meets no gold chunk."""
    change = {"chunk_start": [None, 3, 0], "chunk_end": [None, 3, 10], "chunk_id": ["x1", None, "b1"]}
    scores = score(tables("hits", "qrels", "evidence", hits=change), ["evidence_coverage@3", "chunk_recall@3"])
    assert scores.per_query.select("evidence_coverage@3", "chunk_recall@3").rows() == [(0.0, 0.0), (1.0, 1.0)]
    assert scores.findings.filter(pl.col("severity") != "info").is_empty()


@pytest.mark.parametrize(
    ("measure", "without", "says"),
    [
        ("doc_recall@10tokens", ["n_tokens"], "hits.n_tokens"),
        ("context_tokens@3", ["n_tokens"], "hits.n_tokens"),
        ("doc_recall@context", ["in_context"], "hits.in_context"),
        ("chunk_recall@3", ["chunk_id"], "hits.chunk_id"),
        ("evidence_recall@3", ["chunk_start", "chunk_end"], "hits.chunk_start and hits.chunk_end"),
        ("evidence_iou@3", ["chunk_end"], "hits.chunk_end"),
    ],
)
def test_column_that_a_measure_lacks(measure: str, without: list[str], says: str) -> None:
    """The error names the column and the measure that reads it."""
    given = tables("hits", "qrels", "evidence", hits=dict.fromkeys(without))
    with pytest.raises(dr.DataError) as caught:
        score(given, measure)
    assert says in str(caught.value)
    assert measure in str(caught.value)


def test_evidence_of_chunks_alone_needs_chunk_ids_and_no_spans() -> None:
    """Where no passage has a span, measures of passages read chunk_id, and say so when hits lack it."""
    alone = {"start": None, "end": None}
    no_spans = {"chunk_start": None, "chunk_end": None}
    given = tables("hits", "evidence", hits=no_spans, evidence=alone)
    scores = score(given, ["evidence_recall@1", "evidence_precision@1", "evidence_iou@1"])
    assert scores.per_query.select(scores.measures).rows() == [(0.0, None, None), (1.0, None, None)]
    given = tables("hits", "evidence", hits={**no_spans, "chunk_id": None}, evidence=alone)
    with pytest.raises(dr.DataError, match=r"hits\.chunk_id.*evidence_recall@1"):
        score(given, "evidence_recall@1")


def test_version_mismatch_is_counted_in_units_of_any_status() -> None:
    """Hits of a labelled document at another version do not count; the finding counts rows and units."""
    versions = {"hits": {"doc_version": ["v2", "v2", "v1"]}, "qrels": {"doc_version": ["v1", "v1"]}}
    given = tables("hits", "qrels", "queries", **versions, queries={"label_status": ["unanswerable", None]})
    scores = score(given, "doc_recall@3")
    mismatch = scores.findings.filter(pl.col("code") == "version_mismatch")
    assert codes(mismatch) == [("version_mismatch", "warning", "hits", "doc_version", 1, 1)]
    assert mismatch["examples"].to_list() == [["q1"]]
    assert (
        score(given, "doc_recall@3", versions="ignore").findings.filter(pl.col("code") == "version_mismatch").is_empty()
    )


def versioned(n_units: int, hit: str) -> dict[str, pl.DataFrame]:
    """Units that hit their document at a version, and labels of version v1."""
    return {
        "hits": log(n_units, ["a"]).with_columns(doc_version=pl.lit(hit)),
        "qrels": log(n_units, ["a"], labelled=True).with_columns(doc_version=pl.lit("v1")),
    }


def test_no_hit_at_a_labelled_version_is_an_error_from_20_units_on() -> None:
    """Below 20 units it is a warning; from there on an error for measures of labels, and for no others."""
    few = score(versioned(19, "v2"), "doc_recall@3")
    assert codes(few.findings) == [("version_mismatch", "warning", "hits", "doc_version", 19, 19)]
    with pytest.raises(dr.DataError, match='versions="ignore"') as caught:
        score(versioned(20, "v2"), "doc_recall@3")
    assert codes(caught.value.findings) == [("version_mismatch", "error", "hits", "doc_version", 20, 20)]
    score(versioned(20, "v2"), "distinct_docs@3")
    score(versioned(20, "v1"), "doc_recall@3")
    one_met = versioned(20, "v2")
    one_met["hits"] = one_met["hits"].with_columns(
        doc_version=pl.when(pl.col("query_id") == "q007").then(pl.lit("v1")).otherwise("doc_version")
    )
    assert score(one_met, "doc_recall@3").summary()["mean"].item() == 1 / 20


def test_gold_not_in_index() -> None:
    """Relevant labels of absent documents are counted, of grade 0 not; the hits of such documents still count."""
    labels = {"query_id": ["q1", "q1", "q2", "q2"], "doc_id": ["a", "z", "b", "y"], "relevance": [1, 1, 1, 0]}
    given = tables("hits", "qrels", "documents", qrels=labels, documents={"doc_id": ["a", "x"]})
    scores = score(given, "doc_recall@3")
    assert codes(scores.findings) == [("gold_not_in_index", "warning", "qrels", "doc_id", 2, 2)]
    assert scores.findings["examples"].to_list() == [["b", "z"]]
    assert scores.per_query["doc_recall@3"].to_list() == [0.5, 1.0]
    higher = score(
        given | {"qrels": given["qrels"].with_columns(pl.col("relevance") * 2)}, "doc_recall@3", min_relevance=3
    )
    assert "gold_not_in_index" not in higher.findings["code"]


def test_labels_never_requested() -> None:
    """Labelled queries that no logged request asks are counted, of the listed ones alone where there is a list."""
    labels = {"query_id": ["q1", "q2", "q3", "q4"], "doc_id": ["a", "b", "c", "d"]}
    change = {"hits": {"request_id": ["r1", "r1", "r2"]}, "qrels": labels}
    scores = score(tables("hits", "qrels", **change), "doc_recall@3")
    assert codes(scores.findings) == [("labels_never_requested", "info", "qrels", None, 2, 2)]
    assert scores.findings["examples"].to_list() == [["q3", "q4"]]
    assert scores.per_query["query_id"].to_list() == ["q1", "q2"]
    listed = tables("hits", "qrels", "queries", **change, queries={"query_id": ["q1", "q2", "q3"]})
    assert score(listed, "doc_recall@3").findings["examples"].to_list() == [["q3"]]


@pytest.mark.parametrize(
    ("gap", "measure", "counted"),
    [
        (1, "evidence_recall@3", True),
        (2, "evidence_coverage@3", True),
        (2, "evidence_hit(coverage=0.5)@3", True),
        (2, "evidence_all(gap=1)@3", True),
        (1, "evidence_recall(gap=1)@3", False),
        (2, "evidence_recall(gap=2)@3", False),
        (3, "evidence_recall@3", False),
        (2, "evidence_recall@1", False),
        (2, "evidence_iou@3", False),
        (2, "doc_recall@3", False),
    ],
)
def test_narrow_gaps(gap: int, measure: str, counted: bool) -> None:
    """A passage that only a gap of at most 2 characters keeps from being covered in an asked cut is counted, once."""
    halves = {"query_id": ["q1", "q1", "q2"], "doc_id": ["a", "a", "b"], "chunk_start": [0, 4 + gap, 0]}
    given = tables("hits", "qrels", "evidence", hits=halves | {"chunk_end": [4, 10, 10]})
    found = score(given, [measure, "doc_recall@3"]).findings
    expected = [("narrow_gaps", "warning", "evidence", None, 1, 1)] if counted else []
    assert codes(found.filter(pl.col("code") == "narrow_gaps")) == expected
    assert found.filter(pl.col("code") == "narrow_gaps")["examples"].to_list() == ([["q1"]] if counted else [])


def strangers(n_units: int, *, chunk: str = "y1") -> dict[str, pl.DataFrame]:
    """Units with a gold chunk a1, and hits of another chunk of its document."""
    gold = log(n_units, ["a"], labelled=True).with_columns(evidence_id=pl.lit("e"), chunk_id=pl.lit("a1"))
    return {"hits": log(n_units, ["a"]).with_columns(chunk_id=pl.lit(chunk)), "evidence": gold}


def test_no_shared_chunks() -> None:
    """A finding; from 20 units on an error for measures of chunks, and still a finding for other ones of passages."""
    few = score(strangers(19), "chunk_recall@3")
    expected = ("no_shared_chunks", "warning", "hits", "chunk_id", 19, 19)
    assert expected in codes(few.findings)
    assert few.summary()["mean"].item() == 0
    with pytest.raises(dr.DataError, match=r"hits\.chunk_id and evidence\.chunk_id have no chunk in common") as caught:
        score(strangers(20), "chunk_recall@3")
    assert codes(caught.value.findings) == [("no_shared_chunks", "error", "hits", "chunk_id", 20, 20)]
    assert ("no_shared_chunks", "warning", "hits", "chunk_id", 20, 20) in codes(
        score(strangers(20), "evidence_recall@3").findings
    )
    assert "no_shared_chunks" not in score(strangers(20), "doc_recall@3").findings["code"]
    assert "no_shared_chunks" not in score(strangers(20, chunk="a1"), "chunk_recall@3").findings["code"]


def test_chunks_that_the_index_knows_are_shared() -> None:
    """A gold chunk that is in `chunks`, though never hit, is known to the run."""
    index = pl.DataFrame({"chunk_id": ["a1", "y1"], "doc_id": ["a", "a"]})
    scores = score({**strangers(20), "chunks": index}, "chunk_recall@3")
    assert "no_shared_chunks" not in scores.findings["code"]
    other = pl.DataFrame({"chunk_id": ["a1", "y1"], "doc_id": ["c", "a"]})
    with pytest.raises(dr.DataError, match="no chunk in common"):
        score({**strangers(20), "chunks": other}, "chunk_recall@3")


def test_each_run_must_know_a_gold_chunk() -> None:
    """The units of runs that know none are added up: 10 + 10 are 20, and a run that knows one is not among them."""
    gold = strangers(10)["evidence"]
    runs = {run: strangers(10, chunk=chunk)["hits"] for run, chunk in (("r", "y1"), ("s", "y1"), ("t", "a1"))}
    with pytest.raises(dr.DataError, match="20 units with hits and gold chunks"):
        score({"hits": runs, "evidence": gold}, "chunk_recall@3")
    scores = score({"hits": {run: runs[run] for run in ("r", "t")}, "evidence": gold}, "chunk_recall@3")
    assert ("no_shared_chunks", "warning", "hits", "chunk_id", 10, 10) in codes(scores.findings)


def test_evidence_without_label() -> None:
    """Documents of passages that the labels of their query do not name are counted, each once; their passages count."""
    passages = {
        "query_id": ["q1", "q1", "q1", "q2"],
        "evidence_id": ["e1", "e2", "e3", "e4"],
        "doc_id": ["a", "x", "x", "b"],
        "chunk_id": None,
    }
    scores = score(tables("hits", "qrels", "evidence", evidence=passages), ["evidence_recall@3", "doc_recall@1"])
    assert codes(scores.findings) == [("evidence_without_label", "info", "evidence", "doc_id", 1, 1)]
    assert scores.per_query.select(scores.measures).rows() == [(1.0, 0.0), (1.0, 1.0)]


def test_labels_from_evidence() -> None:
    """Queries without labels, bad ones among them, take the documents of their passages, with grade 1."""
    labels = pl.DataFrame({"query_id": ["q1"], "doc_id": ["a"], "relevance": [0]})
    scores = score(tables("hits", "evidence") | {"qrels": labels}, "doc_recall@3")
    assert scores.per_query.select("status", "doc_recall@3").rows() == [("no_relevant", None), ("scored", 1.0)]
    assert "evidence_without_label" not in scores.findings["code"]
    bad = pl.DataFrame({"query_id": ["q1"], "doc_id": ["a"], "relevance": [None]})
    scores = score(tables("hits", "evidence") | {"qrels": bad}, "doc_recall@3", on_bad_rows="reject")
    assert scores.per_query["status"].to_list() == ["rejected_rows", "scored"]


def test_copies_of_passages_collapse() -> None:
    """Passages that are alike in all known columns, after aliases, stand once and are counted as duplicates."""
    passages = {"query_id": ["q1", "q1", "q2"], "evidence_id": ["e1", "e1", "e2"], "doc_id": ["a", "m", "b"]}
    documents = {"doc_id": ["a", "b", "x", "m"], "alias_of": [None, None, None, "a"]}
    given = tables(
        "hits", "qrels", "evidence", "documents", evidence=passages | {"chunk_id": None}, documents=documents
    )
    scores = score(given, "evidence_recall@3")
    assert codes(scores.findings) == [("duplicate_labels", "info", "evidence", None, 1, 1)]
    assert account(scores.rows)["evidence"] == (3, 2, 1, 0, 0)


def test_every_table_has_an_account() -> None:
    """Rows of queries that nobody asks are outside; the order of the tables is fixed."""
    asked = {"requests": {"query_id": ["q1"]}}
    scores = score(tables(**asked), "doc_recall@3")
    assert account(scores.rows) == {
        "hits": (3, 2, 0, 0, 1),
        "qrels": (2, 1, 0, 0, 1),
        "evidence": (2, 1, 0, 0, 1),
        "queries": (2, 2, 0, 0, 0),
        "requests": (1, 1, 0, 0, 0),
        "documents": (3, 3, 0, 0, 0),
        "chunks": (3, 3, 0, 0, 0),
    }
    assert scores.rows["table"].to_list() == list(NAMES)


def test_requests_and_bad_hits_that_name_them() -> None:
    """A bad row with a full key rejects its unit; where requests are listed it makes none."""
    log_ = pl.DataFrame({"query_id": ["q1"] * 2, "request_id": ["r1", "r9"], "rank": [1, None], "doc_id": ["a"] * 2})
    labels = pl.DataFrame({"query_id": ["q1"], "doc_id": ["a"]})
    seen = dr.score(log_, labels, "doc_recall@3", on_bad_rows="reject")
    assert seen.per_query.select("request_id", "status").rows() == [("r1", "scored"), ("r9", "rejected_rows")]
    listed = pl.DataFrame({"query_id": ["q1"], "request_id": ["r1"]})
    asked = dr.score(log_, labels, "doc_recall@3", requests=listed, on_bad_rows="reject")
    assert asked.per_query.select("request_id", "status").rows() == [("r1", "scored")]
    assert account(asked.rows)["hits"] == (2, 1, 0, 1, 0)


@pytest.mark.parametrize(
    ("grades", "versions", "met"),
    [
        ([1, 2], ["v1", "v2"], ["v2"]),
        ([2, 1], ["v1", "v2"], ["v1"]),
        ([2, 1], ["v1", None], ["v1"]),
        ([1, 1], ["v1", None], ["v1", "v2", "v9"]),
        ([1, 1], ["v2", "v1"], ["v1"]),
        ([1, 1, 1], ["v2", None, "v1"], ["v1", "v2", "v9"]),
    ],
    ids=str,
)
def test_version_of_labels_that_meet_through_an_alias(
    grades: list[int], versions: list[str | None], met: list[str]
) -> None:
    """That of the highest grade; among equal grades null, which fits any, else the smallest."""
    names = ["a", "m", "n"]
    documents = pl.DataFrame({"doc_id": names, "alias_of": [None, "a", "a"]})
    size = len(grades)
    labels = pl.DataFrame(
        {"query_id": ["q"] * size, "doc_id": names[:size], "relevance": grades, "doc_version": versions}
    )
    found = []
    for version in ("v1", "v2", "v9"):
        hit = pl.DataFrame({"query_id": ["q"], "rank": [1], "doc_id": ["a"], "doc_version": [version]})
        if dr.score(hit, labels, "doc_recall@3", documents=documents).summary()["mean"].item():
            found.append(version)
    assert found == met


def passages(*versions: str) -> pl.DataFrame:
    """Alternatives of one passage in the documents a and b, each at a version."""
    n = len(versions)
    return pl.DataFrame(
        {
            "query_id": ["q"] * n,
            "evidence_id": ["e"] * n,
            "doc_id": ["a", "b"][:n],
            "start": [0] * n,
            "end": [5] * n,
            "doc_version": versions,
        }
    )


@pytest.mark.parametrize(
    ("evidence", "labelled", "stale", "status", "values"),
    [
        (passages("v1", "v1"), True, "exclude", "scored", (1.0, 1.0)),
        (passages("v1"), True, "exclude", "stale_labels", (None, None)),
        (passages("v1"), True, "keep", "scored", (1.0, 0.0)),
        (passages("v2"), True, "exclude", "scored", (1.0, 0.0)),
        (passages("v1", "v1"), False, "exclude", "stale_labels", (None, None)),
        (passages("v1", "v1"), False, "keep", "scored", (0.5, 1.0)),
    ],
    ids=["one alternative left", "none left", "kept", "served", "derived label", "derived label kept"],
)
def test_stale_passages(
    evidence: pl.DataFrame, labelled: bool, stale: str, status: str, values: tuple[float | None, ...]
) -> None:
    """A passage is stale when the index serves none of its alternatives: it takes its unit with it, or is a miss."""
    hit = pl.DataFrame(
        {"query_id": ["q"], "rank": [1], "doc_id": ["b"], "doc_version": ["v1"], "chunk_start": [0], "chunk_end": [5]}
    )
    labels = pl.DataFrame({"query_id": ["q"], "doc_id": ["b"]}) if labelled else None
    index = pl.DataFrame({"doc_id": ["a", "b"], "doc_version": ["v2", "v1"]})
    scores = dr.score(
        hit, labels, ["doc_recall@3", "evidence_recall@3"], evidence=evidence, documents=index, stale=stale
    )
    assert scores.per_query.select("status", *scores.measures).row(0) == (status, *values)


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "null-typed"])
@pytest.mark.parametrize("name", NAMES)
def test_a_table_without_rows(name: str, typed: bool) -> None:
    """Any table may be empty, with columns of the type Null too: no fault, and what it says of no unit is null or 0."""
    given = tables()
    empty = given[name].clear() if typed else pl.DataFrame({c: [] for c in given[name].columns})
    scores = score({**given, name: empty})
    passages_, others = ("evidence_recall@3", "evidence_coverage@3", "chunk_recall@3"), ("doc_recall@3",)
    expected: dict[str, float | None] = dict.fromkeys((*passages_, *others), 1.0)
    if name == "hits":
        expected = dict.fromkeys(expected, 0.0)
    elif name == "evidence":
        expected |= dict.fromkeys(passages_, None)
    elif name == "requests":
        expected = dict.fromkeys(expected, None)
    assert {m: v for m, v in scores.summary().select("measure", "mean").rows() if m in expected} == expected
    assert account(scores.rows)[name] == (0, 0, 0, 0, 0)


NUMBERS = {name: n for n, name in enumerate(["q1", "q2", "x", "a", "b", "x1", "a1", "b1", "e1", "e2", "r1", "r2"])}
ID_TYPES = [pl.Int8, pl.UInt64, pl.Int128, pl.Categorical, pl.Enum(list(NUMBERS))]


@pytest.mark.parametrize("kind", ID_TYPES, ids=str)
def test_ids_of_any_kind(kind: Any) -> None:
    """Ids of all tables may be integers of any width, or text in a dictionary; aliases and lookups go by them too."""
    asked = {"hits": {"request_id": ["r1", "r1", "r2"], "doc_id": None}, "requests": {"request_id": ["r1", "r2"]}}
    text = tables(**asked, documents={"alias_of": [None, "x", None]})
    given = {}
    for name, frame in text.items():
        ids = [c for c in frame.columns if c.endswith("_id") or c == "alias_of"]
        numbers = frame.with_columns(pl.col(ids).replace_strict(NUMBERS, default=None, return_dtype=pl.Int64))
        given[name] = (numbers if isinstance(kind, type) and kind.is_integer() else frame).with_columns(
            pl.col(ids).cast(kind)
        )
    scores = score(given)
    assert scores.per_query.select(MEASURES).rows() == [(1.0,) * len(MEASURES)] * 2
    assert_frame_equal(scores.summary(), score(text).summary())


def test_ids_of_two_kinds_are_refused() -> None:
    """Aliases, chunks, passages and requests name things as the other tables do."""
    for name, column, met in (
        ("documents", "alias_of", "doc_id"),
        ("documents", "doc_id", "doc_id"),
        ("chunks", "chunk_id", "chunk_id"),
        ("evidence", "doc_id", "doc_id"),
        ("evidence", "chunk_id", "chunk_id"),
        ("requests", "query_id", "query_id"),
    ):
        change = {column: list(range(len(BASE[name]["query_id" if name in OF_QUERIES else "doc_id"])))}
        with pytest.raises(dr.DataError, match=rf"{name}\.{column} is Int64") as caught:
            score(tables(**{name: change}))
        assert f".{met} is String" in str(caught.value)


def test_normalised_ids_meet_on_all_tables() -> None:
    """NFC goes for aliases, chunks, passages and requests as well."""
    one, two = "\u00e9", "e\u0301"
    given = tables(
        hits={"doc_id": ["x", two, "b"], "chunk_id": ["x1", two, "b1"], "request_id": [two, two, "s"]},
        qrels={"doc_id": [one, "b"]},
        evidence={"doc_id": ["m" + two, "b"], "chunk_id": [one, "b1"]},
        requests={"request_id": [one, "s"]},
        documents={"doc_id": [one, "b", "m" + one], "alias_of": [None, None, two]},
    )
    del given["chunks"]
    assert score(given, normalize_ids="NFC").per_query.select(MEASURES).rows() == [(1.0,) * len(MEASURES)] * 2
    assert score(given).summary()["mean"].to_list() == [0.5] * len(MEASURES)


def test_hits_without_a_single_span_are_told() -> None:
    """They cover nothing; where that is all of a log, a warning says why every passage is missed."""
    bare = {"chunk_start": [None] * 3, "chunk_end": [None] * 3}
    scores = score(tables("hits", "qrels", "evidence", hits=bare), "evidence_recall@3")
    assert scores.per_query["evidence_recall@3"].to_list() == [0.0, 0.0]
    assert codes(scores.findings.filter(pl.col("code") == "no_spans")) == [
        ("no_spans", "warning", "hits", "chunk_start", 3, 0)
    ]
    for given, measure in ((bare, "doc_recall@3"), ({}, "evidence_recall@3")):
        scores = score(tables("hits", "qrels", "evidence", hits=given), measure)
        assert "no_spans" not in scores.findings["code"].to_list()


@pytest.mark.parametrize("null_typed", [False, True])
def test_evidence_without_rows(null_typed: bool) -> None:
    """An empty table of evidence, with types or without, asks for no chunk ids: measures of passages are null."""
    empty = tables("evidence")["evidence"].clear()
    if null_typed:
        empty = empty.cast(pl.Null)
    given = tables("hits", "qrels", hits={"chunk_id": None}) | {"evidence": empty}
    scores = score(given, "evidence_recall@3")
    assert scores.per_query["evidence_recall@3"].to_list() == [None, None]
    bare = {"chunk_start": [None] * 3, "chunk_end": [None] * 3}
    spans = {"start": pl.Int64, "end": pl.Int64}
    given = tables("hits", "qrels", hits=bare) | {"evidence": tables("evidence")["evidence"].clear().cast(spans)}
    assert "no_spans" not in score(given, "evidence_recall@3").findings["code"].to_list(), "no passage looks for one"


def test_a_stale_alternative_without_qrels_is_told() -> None:
    """Its document is relevant, so that its unit is stale, and the finding says so."""
    versions = {"doc_version": ["v1", "v1", "v0"], "evidence_id": ["e1", "e2", "e2"], "query_id": ["q1", "q2", "q2"]}
    rest = {"doc_id": ["a", "b", "x"], "start": [0] * 3, "end": [10] * 3, "chunk_id": None}
    scores = score(tables("hits", "evidence", "documents", evidence=versions | rest), "doc_recall@3")
    assert dict(scores.per_query.select("query_id", "status").rows()) == {"q1": "scored", "q2": "stale_labels"}
    told = scores.findings.filter(pl.col("code") == "stale_labels")
    assert told.select("table", "n_rows", "examples").rows() == [("evidence", 1, ["q2"])]
