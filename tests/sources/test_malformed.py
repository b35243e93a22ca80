"""Malformed input in every format: an exit code and one message with file, line and what was expected."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from docrecall.cli import main
from tests.small import MEASURE, SECRET

RUN = b"q1 Q0 a 1 2.0 t\nq2 Q0 b 1 1.5 t\n"
CSV = b"query_id,rank,doc_id\nq1,1,a\nq2,1,b\n"
LABELS = b"query_id,doc_id,relevance\nq1,a,1\nq2,b,1\n"
JSON = b'{"query_id": "q1", "rank": 1, "doc_id": "a"}\n'
PACKED = gzip.compress(CSV)
FIELDS, WHOLE = "another number of fields than expected", "not a whole number"
BROKEN, NO_JSON = "against the rules of CSV", "without a JSON object"


class Bad(NamedTuple):
    """A log or labels that cannot be read, how the command reads them, and what it must answer."""

    name: str
    code: int
    says: tuple[str, ...]
    hits: tuple[str, bytes] = ("h.csv", CSV)
    qrels: tuple[str, bytes] = ("q.csv", LABELS)
    more: tuple[str, ...] = ()
    others: Mapping[str, bytes] = MappingProxyType({})


def log(file: str, content: bytes, code: int, *says: str, more: tuple[str, ...] = ()) -> Bad:
    """A malformed log."""
    return Bad(f"log {file}: {says[0]}", code, says, hits=(file, content), more=more)


def labels(file: str, content: bytes, code: int, *says: str, more: tuple[str, ...] = ()) -> Bad:
    """Malformed labels."""
    return Bad(f"labels {file}: {says[0]}", code, says, qrels=(file, content), more=more)


def mapped(code: int, *says: str, more: tuple[str, ...], **others: bytes) -> Bad:
    """Good tables and a mapping, or a declared format, that does not fit them."""
    return Bad(f"{' '.join(more)}: {says[0]}", code, says, more=more, others=others)


BAD = [
    # TREC runs
    log("h.run", RUN + b"q3 Q0 c 1 1.0\n", 3, f"1 line with {FIELDS}", "(q3)", "h.run, line 3", "query Q0 document"),
    log("h.run", b"q1 a 1\nq2 b 1\n", 3, f"2 lines with {FIELDS}", "line 1", "--read hits=trec:"),
    log("h.run", RUN + b"q3\n", 3, f"1 line with {FIELDS}", "(q3)", "line 3"),
    log("h.run", b"# note\n\nq1 Q0 a first 2.0 t\n", 3, f"hits.rank: 1 row with a value that is {WHOLE}", "line 3"),
    log("h.run", b"q1 Q0 a 1.5 2.0 t\n", 3, f"hits.rank: 1 row with a value that is {WHOLE}", "line 1"),
    log("h.run", b"q1 Q0 a 99999999999999999999 2.0 t\n", 3, WHOLE, "hits.rank", "line 1"),
    log("h.run", b"q1 Q0 a 0 2.0 t\n", 3, "hits.rank: 1 hit with rank 0", "line 1", "--rank-base 0"),
    log("h.run", b"q1 Q0 a -1 2.0 t\n", 3, "hits.rank: 1 hit with a rank below the first", "line 1"),
    log("h.run", b"q1 Q0 a 1 2,0 t\n", 3, "hits.score: 1 row with a value that is not a number", "line 1",
        more=("--order=score",)),
    log("h.run", b"q1 Q0 a 1 nan t\n", 3, "hits.score: 1 hit with a NaN score", "line 1", more=("--order=trec_eval",)),
    log("h.run", b"q1 Q0 a 1 2.0 t\nq1 Q0 b 1 1.0 t\n", 3, "on the rank of another", "(q1)", "line 1"),
    log("h.run", b"q1 Q0 \xff\xfe 1 2.0 t\n", 3, "1 line with text that is not UTF-8", "line 1"),
    log("h.run", b"\xff\xfeq\x001\x00", 4, "h.run is UTF-16 text"),
    log("h.run", b"", 4, "h.run is empty (0 bytes)"),
    log("h.run", b"PAR1 and the rest", 4, "h.run is a Parquet file, not text", "read=parquet"),
    log("h.txt", RUN, 4, "h.txt is no Parquet file", "--read hits=trec"),
    log("h.run", b"x9 Q0 a 1 2.0 t\n", 3, "have no id in common", "'x9'"),
    # TREC qrels
    labels("q.qrels", b"q1 0 a 1\nq2 0 b\n", 3, f"1 line with {FIELDS}", "(q2)", "q.qrels, line 2", "query 0 document"),
    labels("q.qrels", b"q1 0 a 1 extra\n", 3, f"1 line with {FIELDS}", "line 1"),
    labels("q.qrels", b"q1 0 a yes\n", 3, f"qrels.relevance: 1 row with a value that is {WHOLE}", "(q1)", "line 1"),
    labels("q.qrels", b"q1 0 a 0.5\n", 3, WHOLE, "qrels.relevance", "line 1"),
    labels("q.qrels", b"q1 0 a 1\nq1 0 a 2\n", 3, "several grades", "(q1)", "line 1"),
    labels("q.qrels", b"q1 0 a 1\rq2 0 b 1\n", 3, f"1 line with {FIELDS}", "(q1)", "line 1"),
    # CSV and TSV
    log("h.csv", b"", 4, "h.csv is empty (0 bytes)"),
    log("h.csv", b"\n", 4, "h.csv, line 1: a header line"),
    log("h.csv", b"q1,1,a\nq2,1,b\n", 3, "no columns hits.query_id and hits.rank and hits.doc_id", "q1, 1, a"),
    log("h.csv", b"query_id,rank,rank,doc_id\nq1,1,1,a\n", 3, "h.csv, line 1: the header names 'rank' more than once"),
    log("h.csv", CSV + b"q3,1\n", 3, f"1 line with {FIELDS}", "(q3)", "h.csv, line 4"),
    log("h.csv", CSV + b"q3,1,c,d\n", 3, f"1 line with {FIELDS}", "(q3)", "line 4"),
    log("h.csv", CSV + b'"q3,1,c\n', 3, f"1 record {BROKEN}", "line 4"),
    log("h.csv", CSV + b'"q3"x,1,c\n', 3, BROKEN, "line 4", "doubled"),
    log("h.csv", b'query_id,rank,doc_id\n"q\n1",one,a\nq2,two,b\n', 3, f"2 rows with a value that is {WHOLE}",
        "line 2"),
    log("h.csv", CSV + b"q3,,c\n", 3, "hits.rank: 1 hit without a rank", "(q3)", "line 4"),
    log("h.csv", CSV + b",1,c\n", 3, "hits.query_id: 1 row without an id", "line 4"),
    log("h.csv", CSV + b"q3,1,\n", 3, "hits.doc_id: 1 row without an id", "(q3)", "line 4"),
    log("h.csv", CSV.replace(b"q2", b"q\xe9"), 3, "not UTF-8", "line 3"),
    log("h.csv", CSV.replace(b"rank", b"Rank"), 3, "no column hits.rank", "--map hits.rank=Rank"),
    log("h.csv", CSV.replace(b",", b";"), 3, "no columns", "query_id;rank;doc_id"),
    log("h.csv", CSV.replace(b"\n", b"\r"), 4, "h.csv: its lines end with a carriage return alone"),
    log("h.run", RUN.replace(b"\n", b"\r"), 4, "h.run: its lines end with a carriage return alone"),
    log("h.run", RUN.replace(b"\n", b"\r", 1), 3, f"1 line with {FIELDS}", "(q1)", "line 1"),
    log("h.csv", CSV.replace(b"\n", b"\r", 1), 4, "h.csv, line 1: a header line"),
    log("h.tsv", b"query_id\trank\tdoc_id\nq1\t1\n", 3, f"1 line with {FIELDS}", "(q1)", "h.tsv, line 2"),
    log("h.tsv", CSV, 3, "no columns hits.query_id", "query_id,rank,doc_id"),
    labels("q.csv", b"query_id,doc_id,relevance\nq1,a,high\n", 3, WHOLE, "qrels.relevance", "(q1)", "line 2"),
    labels("q.csv", b"query_id,doc_id,relevance\nq1,a,\n", 3, "1 label without a relevance", "line 2"),
    # JSON lines
    log("h.jsonl", JSON + b'{"query_id": "q2"', 3, f"1 line {NO_JSON}", "h.jsonl, line 2"),
    log("h.jsonl", JSON + b"[1, 2]\n", 3, NO_JSON, "line 2"),
    log("h.jsonl", JSON + b'{"query_id": "q2", "query_id": "q3", "rank": 1, "doc_id": "b"}\n', 3, NO_JSON, "line 2"),
    log("h.jsonl", JSON + b'{"query_id": 2.5, "rank": 1, "doc_id": "b"}\n', 3, "neither text nor a whole", "line 2"),
    log("h.jsonl", JSON + b'{"query_id": "q2", "rank": 1, "doc_id": true}\n', 3, "neither text nor", "(q2)", "line 2"),
    log("h.jsonl", JSON + b'{"query_id": "q2", "rank": 1, "doc_id": {"a": 1}}\n', 3, "neither text nor", "line 2"),
    log("h.jsonl", JSON + b'{"query_id": "q2", "rank": "x", "doc_id": "b"}\n', 3, WHOLE, "hits.rank", "line 2"),
    log("h.jsonl", JSON + b'{"query_id": "q2", "rank": 1}\n', 3, "hits.doc_id: 1 row without an id", "(q2)", "line 2"),
    log("h.jsonl", b'{"qid": "q1", "rank": 1, "doc_id": "a"}\n', 3, "no column hits.query_id",
        "--map hits.query_id=qid"),
    log("h.jsonl", b"[" * 100_000, 3, "no column"),
    # one row per query
    log("h.jsonl", b'{"query_id": "q1", "doc_id": ["a", "b"], "score": [1]}\n', 3, "lists differ in length", "(q1)"),
    log("h.jsonl", b'{"query_id": "q1", "doc_id": ["a"]}\n{"query_id": "q2", "doc_id": null}\n', 3,
        "1 row without a list", "(q2)", "line 2", "empty list"),
    log("h.jsonl", b'{"query_id": "q1", "doc_id": ["a"]}\n{"query_id": "q2", "doc_id": "b"}\n', 3,
        "1 row without a list", "(q2)", "line 2"),
    log("h.jsonl", b'{"query_id": "q1", "doc_id": ["a", null]}\n', 3, "1 row without an id", "(q1)", "line 1"),
    log("h.jsonl", b'{"query_id": "q1", "doc_id": [["a"]]}\n', 3, "neither text nor", "(q1)", "line 1"),
    log("h.jsonl", b'{"query_id": "q1", "rank": 1, "doc_id": "a\\ud83d"}\n', 3, "not UTF-8", "(q1)", "h.jsonl, line 1"),
    log("h.json", b'{"q1": {"a\\ud83d": 1}}', 4, "half a letter", more=("--order=score",)),
    # gzip
    log("h.csv.gz", gzip.compress(PACKED), 4, "h.csv.gz is packed twice"),
    log("h.csv.gz", CSV, 4, "h.csv.gz is not a gzip file"),
    log("h.csv.gz", PACKED[:-9], 4, "h.csv.gz is damaged or cut short"),
    log("h.csv.gz", PACKED[:20] + bytes(9) + PACKED[29:], 4, "h.csv.gz is damaged or cut short"),
    log("h.csv.gz", gzip.compress(b""), 4, "h.csv.gz is empty (0 bytes after unpacking)"),
    log("h.csv.gz", gzip.compress(b"q1,1,a\n" * 9_000_000), 4, "unpacks to more than 200 times its size"),
    log("h.parquet.gz", PACKED, 4, "h.parquet.gz is no Parquet file"),
    # ranx JSON
    log("h.json", b"{", 4, "h.json, line 1: not JSON here"),
    log("h.json", b'{"q1": [1]}', 4, "h.json is not ranx JSON", "expected {"),
    log("h.json", b'{"q1": {"a": 1, "a": 2}}', 4, "twice"),
    log("h.json", b'{"q1": {"a": 1}}', 3, "no column hits.rank", "--order score"),
    log("h.json", b'{"q1": {"a": "high"}}', 3, "not a number", "(q1)", more=("--order=score",)),
    labels("q.json", b'{"q1": {"a": 0.5}}', 3, WHOLE, "qrels.relevance", "(q1)"),
    # mappings and declared formats
    mapped(2, "is no mapping", "TABLE.COLUMN=SOURCE", more=("--map=doc_id",)),
    mapped(2, "there is no table 'hit'", 'Did you mean "hits"?', more=("--map=hit.doc_id=x",)),
    mapped(2, "hits has no column 'docid'", 'Did you mean "doc_id"?', more=("--map=hits.docid=x",)),
    mapped(2, "names no source", more=("--map=hits.doc_id=",)),
    mapped(2, "cannot be 'many'", "hits.n_tokens", more=("--map=hits.n_tokens=value:many",)),
    mapped(2, "no named group", more=("--map=hits=doc_id~[",)),
    mapped(2, "no named group", more=(r"--map=hits=doc_id~(\d+)",)),
    mapped(2, "no named group", more=("--map=hits=doc_id~a)|(?P<chunk_id>b",)),
    mapped(3, "hits.doc_id is mapped to 'docid', which is not there", 'Did you mean "doc_id"?',
           more=("--map=hits.doc_id=docid",)),
    mapped(3, "that the pattern of the mapping does not match", "(q1, q2)", "line 2",
           more=(r"--map=hits=doc_id~(?P<chunk_id>\d+)",)),
    mapped(2, "'tvs' is no format", 'Did you mean "tsv"?', more=("--read=hits=tvs",)),
    mapped(2, "there is no table 'hit'", more=("--read=hit=csv",)),
    mapped(2, "columns cannot be declared for jsonl", more=("--read=hits=jsonl:a,b",)),
    mapped(2, "each once", more=("--read=hits=trec:query_id,doc_id,doc_id",)),
    mapped(4, "m.toml cannot be read", more=("--map=m.toml",)),
    mapped(2, "m.toml is not a TOML file", "line 1", more=("--map=m.toml",), **{"m.toml": b"[hits\n"}),
    mapped(2, "there is no table 'hit'", more=("--map=m.toml",), **{"m.toml": b"[hit]\n"}),
    mapped(2, "doc_id is not a text", more=("--map=m.toml",), **{"m.toml": b"[hits]\ndoc_id = 3\n"}),
    mapped(2, "split has a column and a pattern", more=("--map=m.toml",),
           **{"m.toml": b"[[hits.split]]\ncolumn = 'a'\n"}),
    mapped(3, "hits.query_id is String (h.csv) but qrels.query_id is Int64", more=("--qrels=q.parquet",)),
    # BEIR
    mapped(2, "has the splits dev, test", "--read qrels=beir:test", more=("--qrels=beir",),
           **{"beir/qrels/dev.tsv": b"x\n", "beir/qrels/test.tsv": b"x\n", "beir/corpus.jsonl": b""}),
    mapped(4, "no queries in beir", more=("--queries=beir",),
           **{"beir/qrels/test.tsv": b"query-id\tcorpus-id\tscore\n", "beir/corpus.jsonl": b""}),
    mapped(3, FIELDS, "(q1)", "test.tsv, line 2", more=("--qrels=beir/qrels/test.tsv",),
           **{"beir/qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\ta\n"}),
]  # fmt: skip


def test_enough_cases() -> None:
    """There are at least 60 of them, in all formats."""
    assert len(BAD) >= 60


@pytest.mark.parametrize("bad", BAD, ids=[bad.name for bad in BAD])
def test_malformed(
    bad: Bad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has its exit code and one message that says where and what was expected; nothing is written."""
    import polars as pl  # noqa: PLC0415

    monkeypatch.chdir(tmp_path)
    for name, content in (bad.hits, bad.qrels, *bad.others.items()):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
    pl.DataFrame({"query_id": [1], "doc_id": ["a"], "note": [SECRET]}).write_parquet("q.parquet")
    argv = ["score", f"--hits={bad.hits[0]}", f"--measure={MEASURE}", "--out=out"]
    argv += [] if any(a.startswith("--qrels") for a in bad.more) else [f"--qrels={bad.qrels[0]}"]

    assert main([*argv, *bad.more]) == bad.code

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("docrecall: ")
    assert err.count("docrecall: ") == 1
    assert "Traceback" not in err
    for words in bad.says:
        assert words in err
    assert not Path("out").exists()
