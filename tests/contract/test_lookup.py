"""What the table of chunks says of hits, and documents that go by other names."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from tests.seven import MEASURES, table, tables
from tests.small import account, codes, write

SUPPLIED = ("doc_id", "chunk_start", "chunk_end", "n_tokens")


def score(given: dict[str, Any], measures: Any = MEASURES, **options: Any) -> dr.Scores:
    rest = dict(given)
    return dr.score(rest.pop("hits"), rest.pop("qrels", None), measures, **rest, **options)


def alike(actual: dr.Scores, expected: dr.Scores) -> None:
    """The same scores, means and matches."""
    assert_frame_equal(actual.per_query, expected.per_query)
    assert_frame_equal(actual.summary(), expected.summary())
    assert_frame_equal(actual.matches.collect(), expected.matches.collect())
    assert_frame_equal(actual.decisions, expected.decisions)


@pytest.mark.parametrize(
    "lacking",
    [("doc_id",), ("chunk_start", "chunk_end"), ("n_tokens",), SUPPLIED],
    ids="+".join,
)
@pytest.mark.parametrize("where", ["frames", "files", "lazy"])
def test_chunks_supply_what_hits_lack(lacking: tuple[str, ...], where: str, tmp_path: Any) -> None:
    """Documents, spans and tokens by chunk_id: the scores are those of a log that has the columns itself."""
    expected = score(tables("hits", "qrels", "evidence"))
    given: dict[str, Any] = tables("hits", "qrels", "evidence", "chunks", hits=dict.fromkeys(lacking))
    if where == "files":
        given = {name: write(tmp_path / f"{name}.parquet", frame) for name, frame in given.items()}
    elif where == "lazy":
        given = {name: frame.lazy() for name, frame in given.items()}

    scores = score(given)

    alike(scores, expected)
    assert account(scores.rows)["chunks"] == (3, 3, 0, 0, 0)


def test_what_hits_have_themselves_stays() -> None:
    """A column of the log is never replaced by that of the chunks."""
    other = {"chunk_start": [90] * 3, "chunk_end": [99] * 3, "n_tokens": [10**6] * 3}
    alike(
        score(tables("hits", "qrels", "evidence", "chunks", chunks=other)), score(tables("hits", "qrels", "evidence"))
    )


def test_chunks_supply_versions() -> None:
    """A version by chunk counts as that of the hit."""
    changes = {"qrels": {"doc_version": ["v1", "v1"]}, "chunks": {"doc_version": ["v1", "v2", "v1"]}}
    scores = score(tables("hits", "qrels", "chunks", **changes), "doc_recall@3")
    assert scores.per_query["doc_recall@3"].to_list() == [0.0, 1.0]
    assert codes(scores.findings) == [("version_mismatch", "warning", "hits", "doc_version", 1, 1)]
    ignored = score(tables("hits", "qrels", "chunks", **changes), "doc_recall@3", versions="ignore")
    assert ignored.per_query["doc_recall@3"].to_list() == [1.0, 1.0]


def test_versions_of_chunks_and_of_evidence() -> None:
    """Passages are met at their version alone, wherever the version of a hit comes from."""
    changes = {"evidence": {"doc_version": ["v1", None]}, "chunks": {"doc_version": ["v1", "v2", "v2"]}}
    by_chunk = score(tables("hits", "evidence", "chunks", **changes), ["evidence_recall@3", "chunk_recall@3"])
    assert by_chunk.per_query.select(by_chunk.measures).rows() == [(0.0, 0.0), (1.0, 1.0)]
    logged = tables("hits", "evidence", hits={"doc_version": ["v1", "v2", "v2"]}, evidence=changes["evidence"])
    alike(score(logged, ["evidence_recall@3", "chunk_recall@3"]), by_chunk)


def test_chunks_that_nothing_is_asked_of_are_not_looked_up() -> None:
    """A chunk that the table lacks is no fault where hits have all that measures read."""
    strange = tables("hits", "qrels", "chunks", hits={"chunk_id": ["?", None, "?"]})
    assert score(strange, "doc_recall@10tokens").findings.is_empty()


def test_a_fault_of_the_table_is_told_as_its_own() -> None:
    """Tokens that the table does not know break the contract there, and hits of the chunk are not told once more."""
    given = tables("hits", "qrels", "chunks", hits={"n_tokens": None}, chunks={"n_tokens": [5, None, 5]})
    with pytest.raises(dr.DataError, match=r"contract\.\n  chunks\.n_tokens: 1 row without .* \(chunks a1\)"):
        score(given, "doc_recall@10tokens")


TWO_RUNS = {
    "chunk_id": ["1", "2", "3", "1", "2", "3"],
    "run_id": ["r"] * 3 + ["s"] * 3,
    "doc_id": ["x", "a", "b", "b", "x", "a"],
}


def one_log(run: str) -> pl.DataFrame:
    return table("hits", doc_id=None, chunk_id=["1", "2", "3"], run_id=[run] * 3)


@pytest.mark.parametrize("how", ["one table", "by name"])
def test_each_run_has_its_own_index(how: str) -> None:
    """With run_id in `chunks` the same chunk id leads to another document in another run."""
    made = {"r": one_log("r"), "s": one_log("s")}
    named = {run: log.drop("run_id") for run, log in made.items()}
    logs = pl.concat(made.values()) if how == "one table" else named
    more = {"chunk_start": [0] * 6, "chunk_end": [10] * 6, "n_tokens": [5] * 6}
    scores = score({"hits": logs, "qrels": table("qrels"), "chunks": table("chunks", **TWO_RUNS, **more)}, "doc_rr@3")
    rows = scores.per_query.select("run_id", "query_id", "doc_rr@3").rows()
    assert rows == [("r", "q1", 0.5), ("r", "q2", 1.0), ("s", "q1", 0.0), ("s", "q2", 0.0)]


def test_a_log_without_a_name_is_the_run_run() -> None:
    """It takes the chunks of that run; those of others do not exist for it."""
    mine = table("chunks", run_id=["run", "run", "run"])
    given = tables("hits", "qrels", hits={"doc_id": None})
    assert score({**given, "chunks": mine}, "doc_recall@3").summary()["mean"].item() == 1.0
    with pytest.raises(dr.DataError, match=r"hits\.chunk_id: 3 hits of a chunk"):
        score({**given, "chunks": table("chunks", run_id=["other"] * 3)}, "doc_recall@3")


def test_an_unknown_run_knows_no_chunk() -> None:
    """The chunks of one run are not those of another; rows of it are set aside and the others scored."""
    logs = pl.concat([one_log("r"), one_log("z")])
    given = {
        "hits": logs,
        "qrels": table("qrels"),
        "chunks": table("chunks", **{k: v[:3] for k, v in TWO_RUNS.items()}),
    }
    scores = score(given, "doc_recall@3", on_bad_rows="reject")
    rejected = scores.rejected.collect()
    assert rejected.select("run_id", "reason").unique().rows() == [("z", "chunk_unknown")]
    assert dict(scores.accounting.select("run_id", "n_scored").rows()) == {"r": 2, "z": 0}


def test_chunk_ids_that_begin_anew_in_each_document() -> None:
    """Where hits name documents, a chunk is known by document and chunk id together."""
    numbered = {"chunk_id": [0, 0, 0], "doc_id": ["x", "a", "b"], "n_tokens": [30, 5, 7]}
    log = {"chunk_id": [0, 0, 0], "n_tokens": None}
    given = tables("hits", "qrels", "chunks", hits=log, chunks=numbered)
    scores = score(given, ["context_tokens@3", "doc_recall@30tokens"])
    assert scores.per_query.select(scores.measures).rows() == [(35.0, 0.0), (7.0, 1.0)]
    with pytest.raises(dr.DataError, match=r"chunks\.chunk_id: 3 rows with a repeated chunk_id"):
        score(tables("hits", "qrels", "chunks", hits={**log, "doc_id": None}, chunks=numbered), "doc_recall@3")


def test_gold_chunks_that_begin_anew_in_each_document() -> None:
    """A gold chunk is the one of its document."""
    given = tables(
        "hits", "evidence", hits={"chunk_id": [0, 1, 0]}, evidence={"chunk_id": [0, 0], "start": None, "end": None}
    )
    scores = score(given, ["chunk_recall@3", "evidence_recall@3"])
    assert scores.per_query.select(scores.measures).rows() == [(0.0, 0.0), (1.0, 1.0)]


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_lookup_does_not_depend_on_batches_or_order(batch_rows: int, tmp_path: Any) -> None:
    """Files, batches and the order of rows change nothing."""
    expected = score(tables("hits", "qrels", "evidence"))
    given = tables("hits", "qrels", "evidence", "chunks", hits=dict.fromkeys(SUPPLIED))
    paths = [write(tmp_path / f"{i}.parquet", given["hits"][i : i + 1]) for i in range(3)]
    again = given | {"chunks": given["chunks"].reverse()}
    alike(score({**again, "hits": paths[::-1]}, batch_rows=batch_rows), expected)
    alike(score({**again, "hits": given["hits"].reverse()}, batch_rows=batch_rows), expected)


def test_funnel_and_folder_with_chunks(tmp_path: Any) -> None:
    """A second pass looks chunks up as well, and written results are those in memory."""
    given = tables("hits", "qrels", "evidence", "chunks", hits=dict.fromkeys(SUPPLIED))
    scores = score(given, "doc_recall@3", out=tmp_path / "out")
    assert_frame_equal(
        dr.funnel(scores).table, dr.funnel(score(tables("hits", "qrels", "evidence"), "doc_recall@3")).table
    )
    assert_frame_equal(dr.load(tmp_path / "out").per_query, scores.per_query)


# Aliases: a mirror or a renamed document is the same document on every table.

ALIASES = {
    "doc_id": ["a", "b", "x", "mirror", "old"],
    "doc_version": ["v1"] * 5,
    "alias_of": [None, None, None, "a", "mirror"],
}


@pytest.mark.parametrize("name", ["mirror", "old"])
@pytest.mark.parametrize("at", ["hits", "qrels", "evidence", "chunks"])
def test_aliases_on_each_table(at: str, name: str) -> None:
    """Another name of a document, at the end of a chain too, on one table alone: the scores stay as they were."""
    lacking = {"hits": {"doc_id": None}} if at == "chunks" else {}
    expected = score(tables("hits", "qrels", "evidence", "documents", "chunks", **lacking))
    renamed = {"doc_id": [name if doc == "a" else doc for doc in table(at)["doc_id"]]}
    changes = {**lacking, at: renamed | lacking.get(at, {}), "documents": ALIASES}
    scores = score(tables("hits", "qrels", "evidence", "documents", "chunks", **changes))
    alike(scores, expected)
    assert scores.findings.is_empty()


def test_aliases_on_all_tables_at_once() -> None:
    """Labels, passages and chunks that each use another name of one document meet."""
    changes = {
        "hits": {"doc_id": None},
        "qrels": {"doc_id": ["mirror", "b"]},
        "evidence": {"doc_id": ["a", "b"]},
        "chunks": {"doc_id": ["x", "old", "b"]},
        "documents": ALIASES,
    }
    alike(score(tables("hits", "qrels", "evidence", "documents", "chunks", **changes)), score(tables()))


def test_names_of_one_document_are_one_document() -> None:
    """Under @kdocs they take one place, and a repeat through an alias is a repeat."""
    log = {"query_id": ["q1"] * 3, "rank": [1, 2, 3], "doc_id": ["x", "mirror", "a"]}
    given = tables("hits", "qrels", "documents", hits=log, documents=ALIASES)
    scores = score(given, ["distinct_docs@3", "doc_recall@2docs", "naive_recall@3"])
    assert scores.per_query.select(scores.measures).row(0) == (2.0, 1.0, 2.0)
    assert scores.matches.collect().select("doc_id", "first_rank", "doc_position").row(0) == ("a", 2, 2)


def test_alias_to_a_document_without_a_row() -> None:
    """The target need not stand in the table; it is in the index through its other name."""
    documents = {"doc_id": ["x", "mirror", "b"], "doc_version": ["v1"] * 3, "alias_of": [None, "a", None]}
    scores = score(tables("hits", "qrels", "documents", documents=documents), "doc_recall@3")
    assert scores.findings.is_empty()
    assert scores.summary()["ceiling"].item() == 1.0


def test_integer_names() -> None:
    """Aliases of integer ids, whose width differs between the columns."""
    given = tables(
        "hits",
        "qrels",
        "documents",
        hits={"doc_id": pl.Series([9, 7, 2], dtype=pl.UInt16)},
        qrels={"doc_id": pl.Series([1, 2], dtype=pl.Int64)},
        documents={
            "doc_id": pl.Series([1, 2, 7, 9], dtype=pl.Int32),
            "alias_of": pl.Series([None, None, 1, None], dtype=pl.Int8),
        },
    )
    assert score(given, "doc_recall@3").summary()["mean"].item() == 1.0


def test_logs_of_which_one_names_documents() -> None:
    """Where one log names documents and another only chunks, chunk ids must stand once for both to be looked up."""
    named = pl.DataFrame({"query_id": ["q"], "rank": [1], "doc_id": ["a"], "chunk_id": ["1"]})
    logs = {"x": named, "y": named.drop("doc_id")}
    labels = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"]})
    chunks = pl.DataFrame({"chunk_id": ["1", "1"], "doc_id": ["a", "b"], "n_tokens": [3, 4]})
    with pytest.raises(dr.DataError, match=r"chunks\.chunk_id: 2 rows with a repeated chunk_id \(chunks 1\)"):
        dr.score(logs, labels, "context_tokens@3", chunks=chunks)
    tokens = dr.score(logs, labels, "context_tokens@3", chunks=chunks.head(1)).per_query["context_tokens@3"]
    assert tokens.to_list() == [3.0, 3.0]


@pytest.mark.parametrize(("logged", "indexed"), [("a", "m"), ("m", "a"), ("m", "m")])
def test_chunks_are_looked_up_by_the_names_that_aliases_lead_to(logged: str, indexed: str) -> None:
    """Hits and chunks may name a document differently, as long as aliases lead to one name."""
    log = pl.DataFrame({"query_id": ["q"], "rank": [1], "doc_id": [logged], "chunk_id": ["1"]})
    labels = pl.DataFrame({"query_id": ["q"], "doc_id": ["m"]})
    documents = pl.DataFrame({"doc_id": ["a", "m"], "alias_of": [None, "a"]})
    chunks = pl.DataFrame({"chunk_id": ["1"], "doc_id": [indexed], "n_tokens": [3]})
    measures = ["context_tokens@3", "doc_recall@3tokens"]
    assert dr.score(log, labels, measures, documents=documents, chunks=chunks).summary()["mean"].to_list() == [3.0, 1.0]


@pytest.mark.parametrize(
    ("hits", "chunks", "says", "not_says"),
    [
        ({"n_tokens": None}, None, "Or pass the table of chunks", "either"),
        ({"n_tokens": None}, {"n_tokens": None}, "The table of chunks has no n_tokens either", "Or pass"),
        ({"n_tokens": None, "chunk_id": None}, {}, "gives it by chunk_id, which hits lack too", "Or pass"),
        ({"n_tokens": None, "chunk_id": None}, None, "hits.n_tokens=COLUMN", "chunks"),
    ],
)
def test_what_is_said_of_the_table_of_chunks(
    hits: dict[str, Any], chunks: dict[str, Any] | None, says: str, not_says: str
) -> None:
    """It is offered where it would help, and spoken of where it was given and does not."""
    given = tables("hits", "qrels", hits=hits)
    if chunks is not None:
        given["chunks"] = table("chunks", **chunks)
    with pytest.raises(dr.DataError) as caught:
        score(given, "doc_recall@10tokens")
    assert says in str(caught.value)
    assert not_says not in str(caught.value)


def test_columns_of_chunks_that_nothing_is_asked_of_may_hold_anything() -> None:
    """Neither values nor types of columns that no hit needs are looked at."""
    odd = table("chunks", n_tokens=["x", None, "-1"], chunk_start=[9, None, -5])
    scores = score({**tables("hits", "qrels", "evidence"), "chunks": odd}, ["doc_recall@10tokens", "evidence_recall@3"])
    assert scores.per_query.select(scores.measures).rows() == [(1.0, 1.0), (1.0, 1.0)]


@pytest.mark.parametrize("dtype", [pl.Null, pl.Int64])
def test_spans_that_are_columns_of_nulls(dtype: Any) -> None:
    """Evidence of gold chunks alone asks hits for no spans, also where empty columns for them are written."""
    evidence = table("evidence").with_columns(pl.lit(None, dtype).alias("start"), pl.lit(None, dtype).alias("end"))
    given = tables("hits", "qrels", hits={"chunk_start": None, "chunk_end": None}) | {"evidence": evidence}
    assert score(given, "evidence_recall@3").per_query["evidence_recall@3"].to_list() == [1.0, 1.0]
