"""Bad input in the newer tables, as files: an exit code, one clear message, nothing on stdout and nothing written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from docrecall.cli import main
from tests.cli.test_bad_input import refused
from tests.seven import MEASURES, NAMES, table, tables
from tests.small import SECRET, write

ALL = tuple(f"--measure={m}" for m in MEASURES)


class Fault(NamedTuple):
    """What is wrong: the changes of tables (None: not given), more arguments, the exit code and what is said."""

    name: str
    changes: Mapping[str, Mapping[str, Any] | None]
    exit_code: int
    says: tuple[str, ...]
    argv: Sequence[str] = ALL


def data(name: str, *says: str, argv: Sequence[str] = ALL, **changes: Mapping[str, Any] | None) -> Fault:
    """A fault of the data: exit code 3."""
    return Fault(name, changes, 3, says, argv)


def usage(name: str, *says: str, argv: Sequence[str], **changes: Mapping[str, Any] | None) -> Fault:
    """A fault of what was asked: exit code 2."""
    return Fault(name, changes, 2, says, argv)


NO_TOKENS: Mapping[str, Any] = {"n_tokens": None}
FAULTS = [
    data("end before start", "evidence.end: 1 row", "(q1)", "evidence.parquet", evidence={"end": [-1, 10]}),
    data("end at start", "evidence.end: 1 row", "(q2)", "evidence.parquet", evidence={"start": [0, 10]}),
    data("half a passage", "evidence.end: 1 row with one end", "(q2)", evidence={"end": [10, None]}),
    data(
        "neither span nor chunk",
        "evidence: 1 row with neither a span nor a chunk in 1 query (q1)",
        "evidence.parquet",
        evidence={"start": [None, 0], "end": [None, 10], "chunk_id": [None, "b1"]},
    ),
    data("evidence of nothing at all", "evidence: 2 rows", evidence={"start": None, "end": None, "chunk_id": None},
         argv=["--measure=doc_recall@3"]),
    data("evidence without ids", "evidence.evidence_id", "evidence.parquet", evidence={"evidence_id": None}),
    data("text as offsets", "evidence.start is String", evidence={"start": [SECRET, "0"]}),
    data("chunk ends before it starts", "hits.chunk_end: 1 row", "(q1)", "hits.parquet",
         hits={"chunk_end": [10, -1, 10]}),
    data("unknown status", "queries.label_status: 1 row", "(q1)", "queries.parquet",
         queries={"label_status": [SECRET, None]}),
    data("negative weight", "queries.weight: 1 row", "negative", "(q2)", "queries.parquet",
         queries={"weight": [1.0, -0.5]}),
    data("text as weight", "queries.weight is String", queries={"weight": [SECRET, "1"]}),
    data("request twice", "requests.query_id: 2 rows with a repeated request", "(q1)", "requests.parquet",
         requests={"query_id": ["q1", "q2", "q1"]}),
    data("logged request twice", "requests.request_id: 2 rows with a repeated request", "(q1)",
         hits={"request_id": ["r", "r", "s"]},
         requests={"query_id": ["q1", "q1", "q2"], "request_id": ["r", "r", "s"]}),
    data("request_id in hits alone", "requests has no column requests.request_id", "requests.parquet", "hits.parquet",
         hits={"request_id": ["r", "r", "s"]}),
    data("request_id in requests alone", "hits has no column hits.request_id", "requests.parquet", "hits.parquet",
         requests={"request_id": ["r", "s"]}),
    data("answers as numbers", "requests.answered is Int64", "Boolean", requests={"answered": [1, 0]}),
    data("alias cycle", "documents.alias_of: 2 documents", "circle (a, b)", documents={"alias_of": ["b", "a", None]}),
    data("alias cycle, with rows set aside", "documents.alias_of", "circle", documents={"alias_of": ["a", None, None]},
         argv=[*ALL, "--on-bad-rows=reject"]),
    data("two aliases", "documents.alias_of: 2 rows", "(x)", "documents.parquet",
         documents={"doc_id": ["x", "x", "a"], "doc_version": ["v1", "v2", "v1"], "alias_of": ["a", "b", None]}),
    data("one version twice", "documents.doc_id: 2 rows with a document repeated at the same version", "(a)",
         "documents.parquet", documents={"doc_id": ["a", "a", "b"]}),
    data("two versions of a label", "qrels.doc_version: 2 labels", "(q1)", "qrels.parquet",
         qrels={"query_id": ["q1", "q1"], "doc_id": ["a", "a"], "doc_version": ["v1", "v2"]}),
    data("chunk that nobody knows", "hits.chunk_id: 1 hit of a chunk", "(chunks zz)", "hits.parquet",
         hits={"chunk_id": ["x1", "zz", "b1"], **NO_TOKENS}),
    data("chunk twice", "chunks.chunk_id: 2 rows with a repeated chunk_id", "(chunks zz)", "chunks.parquet",
         chunks={"chunk_id": ["x1", "a1", "b1", "zz", "zz"], "doc_id": ["x", "a", "b", "z", "z"]}, hits=NO_TOKENS),
    data("chunk ids of two kinds", "hits.chunk_id is String", "chunks.chunk_id is Int64",
         chunks={"chunk_id": [1, 2, 3]}, hits=NO_TOKENS),
    data("no tokens", "hits.n_tokens", "hits.parquet", "doc_recall@10tokens", hits=NO_TOKENS, chunks=None),
    data("no tokens, with chunks", "hits.n_tokens", "doc_recall@10tokens", hits=NO_TOKENS, chunks=NO_TOKENS),
    data("null tokens", "hits.n_tokens: 1 row without", "(q2)", "hits.parquet", hits={"n_tokens": [1, 1, None]}),
    data("negative tokens", "hits.n_tokens: 1 row with a negative", "(q1)", hits={"n_tokens": [-1, 1, 1]}),
    data("no context", "hits.in_context", "doc_recall@context", hits={"in_context": None}),
    data("null context", "hits.in_context: 1 hit", "(q1)", hits={"in_context": [True, None, True]}),
    usage("passages without evidence", "evidence_recall@3", "--evidence", argv=["--measure=evidence_recall@3"],
          evidence=None),
    usage("gold chunks without evidence", "chunk_hit@3", "--evidence", argv=["--measure=chunk_hit@3"], evidence=None),
    usage("no labels", "--qrels", "--evidence", argv=["--measure=doc_recall@3"], qrels=None, evidence=None),
    usage("chunks in places of documents", "chunk_rr", "3docs", argv=["--measure=chunk_rr@3docs"]),
    usage("chunk precision of documents", "chunk_precision", "3docs", argv=["--measure=chunk_precision@3docs"]),
    usage("coverage of 2", "coverage", "2", argv=["--measure=evidence_recall(coverage=2)@3"]),
    usage("coverage of -1", "coverage", argv=["--measure=evidence_recall(coverage=-1)@3"]),
    usage("coverage of 0", "coverage", argv=["--measure=evidence_recall(coverage=0)@3"]),
    usage("coverage that is no number", "coverage", argv=["--measure=evidence_recall(coverage=nan)@3"]),
    usage("gap of -1", "gap", argv=["--measure=evidence_recall(gap=-1)@3"]),
    usage("gap of half", "gap", argv=["--measure=evidence_recall(gap=0.5)@3"]),
    usage("gap where it means nothing", "gap", argv=["--measure=evidence_iou(gap=2)@3"]),
    usage("coverage of documents", "coverage", argv=["--measure=doc_recall(coverage=0.5)@3"]),
    usage("no tokens at all", "must be positive", argv=["--measure=doc_recall@0tokens"]),
    usage("unknown versions", "--versions", argv=["--versions=newest"]),
    usage("unknown stale", "--stale", argv=["--stale=drop"]),
    usage("unknown unit", "--unit", argv=["--unit=user"]),
    usage("funnel at no cut", "'10'", "@10", argv=["--funnel", "--cut=10"]),
    usage("funnel at an unknown cut", "@10pages", argv=["--funnel", "--cut=@10pages"]),
    usage("funnel at 0", "is not a cut", argv=["--funnel", "--cut=@0"]),
    usage("funnel with a bad budget", "@x", argv=["--funnel", "--budget=@xtokens"]),
    usage("funnel with a budget of 0", "is not a cut", argv=["--funnel", "--budget=@0tokens"]),
    usage("funnel that needs most", "--need", argv=["--funnel", "--need=most"]),
    usage("funnel with coverage of 2", "coverage", argv=["--funnel", "--coverage=2"]),
]  # fmt: skip


def files(folder: Path, changes: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
    """Write the tables that are given; the arguments that name them."""
    given = {name: changes.get(name, {}) for name in NAMES}
    made = {name: table(name, **change) for name, change in given.items() if change is not None}
    return [f"--{name}={write(folder / f'{name}.parquet', frame)}" for name, frame in made.items()]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_on_disk(fault: Fault, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each fault has its exit code and one message that names what is wrong, and nothing is written."""
    out = [] if "--funnel" in fault.argv else [f"--out={tmp_path / 'new' / 'out'}"]
    argv = ["score", *files(tmp_path, fault.changes), *fault.argv, *out]
    before = sorted(tmp_path.iterdir())

    message = refused(argv, fault.exit_code, capsys)

    for words in fault.says:
        assert words in message
    assert sorted(tmp_path.iterdir()) == before


def test_the_seven_tables_are_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a fault the same command succeeds, so each fault above is the one thing that is wrong."""
    assert main(["score", *files(tmp_path, {}), *ALL, "--funnel"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[2 : 2 + len(MEASURES)]] == [[m, "1.0000"] for m in MEASURES]


@pytest.mark.parametrize(
    "changes",
    [
        {"evidence": {"end": [0, 10]}},
        {"requests": {"query_id": ["q1", "q2", "q1"]}},
        {"documents": {"alias_of": ["b", "a", None]}},
        {"queries": {"weight": [-1.0, 1.0]}},
    ],
    ids=str,
)
def test_check_finds_the_same_faults(
    changes: Mapping[str, Mapping[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` stops at broken rows of all tables, and names their file."""
    (name,) = changes
    message = refused(["check", *files(tmp_path, changes)], 3, capsys)
    assert f"{name}." in message


@pytest.mark.parametrize(
    ("measure", "change"),
    [
        ("doc_recall@10tokens", {"n_tokens": [1, None, 1]}),
        ("doc_recall@context", {"in_context": [True, None, True]}),
        ("evidence_recall@3", {"chunk_start": [11, 0, 0]}),
    ],
)
def test_check_looks_at_what_a_measure_reads(
    measure: str, change: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the measure the column may hold anything; with it the same fault stops `check`; no number is printed."""
    for code, more in ((0, []), (3, [f"--measure={measure}"])):
        given = tables("hits", "qrels", "evidence", hits=change)
        paths = [f"--{name}={write(tmp_path / f'{name}.parquet', frame)}" for name, frame in given.items()]
        assert main(["check", *paths, *more]) == code
    good = [f"--{name}={write(tmp_path / f'{name}.parquet', frame)}" for name, frame in tables().items()]
    capsys.readouterr()
    assert main(["check", *good, f"--measure={measure}"]) == 0
    assert measure not in capsys.readouterr().out
