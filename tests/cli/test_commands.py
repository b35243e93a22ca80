"""What the commands print, in every format, with the account beside the means."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pytest

from docrecall.arguments import named_paths
from docrecall.cli import main
from docrecall.errors import UsageError
from docrecall.measures.registry import REGISTRY


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    """Two runs: one finds the document, one has no hits for the second query; one query is unlabelled."""
    hits = pl.DataFrame(
        {
            "run_id": ["a", "a", "a", "b", "b"],
            "query_id": ["q1", "q1", "q2", "q1", "q3"],
            "rank": [1, 2, 1, 1, 1],
            "doc_id": ["x", "d1", "d2", "d1", "d9"],
        }
    )
    qrels = pl.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["d1", "d2"]})
    hits.write_parquet(tmp_path / "hits.parquet")
    qrels.write_parquet(tmp_path / "qrels.parquet")
    return ["--hits", str(tmp_path / "hits.parquet"), "--qrels", str(tmp_path / "qrels.parquet")]


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 0
    return capsys.readouterr().out


def test_json_has_means_accounts_rows_and_findings(tables: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON document has the keys of the design."""
    document = json.loads(printed(capsys, "score", *tables, "--measure", "doc_recall@1,2", "--format", "json"))
    assert document["schema_version"] == 1
    a, b = document["runs"]
    assert a["run_id"] == "a"
    interval = {"ci_low": 0.0, "ci_high": 1.0, "ci_method": "bca"}  # of the two values 0 and 1
    wanted = {"mean": 0.5, "n": 2, "n_null": 0, "n_eff": 2.0, "ceiling": None} | interval
    assert a["measures"]["doc_recall@1"] == wanted
    assert a["decisions"]["answered_answerable"] == 2
    assert b["accounting"] == {
        "n_total": 3,
        "n_scored": 2,
        "n_no_hits": 1,
        "n_unlabelled": 1,
        "n_no_relevant": 0,
        "n_unanswerable": 0,
        "n_stale_labels": 0,
        "n_rejected": 0,
    }
    assert document["rows"][0] == {"table": "hits", "read": 5, "used": 5, "duplicate": 0, "rejected": 0, "outside": 0}
    assert [f["code"] for f in document["findings"]] == ["unlabelled_hits"]


def test_csv_and_parquet_have_the_account_in_every_row(
    tables: list[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """CSV and Parquet hold the same table: means and the accounting of their run."""
    frames = []
    for how, read in (("csv", pl.read_csv), ("parquet", pl.read_parquet)):
        assert main(["score", *tables, "--measure", "doc_recall@1,2", "--format", how]) == 0
        frames.append(read(io.BytesIO(capsysbinary.readouterr().out)))
    for frame in frames:
        got = frame.select("run_id", "measure", "mean", "n", "n_total", "n_scored", "n_no_hits", "n_unlabelled")
        assert got.rows() == [
            ("a", "doc_recall@1", 0.5, 2, 2, 2, 0, 0),
            ("a", "doc_recall@2", 1.0, 2, 2, 2, 0, 0),
            ("b", "doc_recall@1", 0.5, 2, 3, 2, 1, 1),
            ("b", "doc_recall@2", 0.5, 2, 3, 2, 1, 1),
        ]
        assert frame.select("hits_read", "hits_used", "hits_rejected", "qrels_read", "qrels_used").unique().rows() == [
            (5, 5, 0, 2, 2)
        ]


@pytest.mark.parametrize("how", ["table", "markdown"])
def test_text_has_means_and_accounts(how: str, tables: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Text for people says the means, what became of queries and rows, and what was noticed."""
    out = printed(capsys, "score", *tables, "--measure", "doc_recall@2", "--format", how)
    assert "1.0000" in out
    assert "b: 2 of 3 units scored (1 without hits, as 0); left out: 1 unlabelled" in out
    assert "hits: 5 rows read = 5 used" in out
    assert "1 hit of units without labels in 1 unit (q3)" in out


def test_csv_leaves_findings_to_stderr(tables: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A format without a place for sentences has its findings on stderr."""
    assert main(["score", *tables, "--format", "csv"]) == 0
    captured = capsys.readouterr()
    assert "without labels" not in captured.out
    assert "without labels" in captured.err


def test_out_holds_what_was_printed(tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """summary.json of --out is the document that --format json prints."""
    out = printed(capsys, "score", *tables, "--out", str(tmp_path / "o"), "--format", "json")
    assert json.loads((tmp_path / "o" / "summary.json").read_text()) == json.loads(out)


def test_check_passes_with_notices_and_strict_fails_on_warnings(
    tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Information does not fail a strict check; a warning does, with exit code 3."""
    assert "without labels" in printed(capsys, "check", *tables)
    assert main(["check", *tables, "--strict"]) == 0
    queries = pl.DataFrame({"query_id": ["q1", "q2"], "label_status": ["unanswerable", None]})
    queries.write_parquet(tmp_path / "queries.parquet")
    listed = [*tables, "--queries", str(tmp_path / "queries.parquet")]
    assert main(["check", *listed]) == 0
    capsys.readouterr()
    assert main(["check", *listed, "--strict"]) == 3
    captured = capsys.readouterr()
    assert "label_status the labels contradict" in captured.out
    assert "--strict" in captured.err


def test_check_tells_every_broken_rule_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One message names the broken rules of all tables, with counts and ids."""
    pl.DataFrame({"query_id": ["q1", "q2"], "rank": [None, 0], "doc_id": ["d", "d"]}).write_parquet(
        tmp_path / "h.parquet"
    )
    pl.DataFrame({"query_id": ["q1", None], "doc_id": ["d", "d"]}).write_parquet(tmp_path / "q.parquet")
    assert main(["check", "--hits", str(tmp_path / "h.parquet"), "--qrels", str(tmp_path / "q.parquet")]) == 3
    error = capsys.readouterr().err
    assert error.startswith("docrecall: The tables break 3 rules.")
    assert "hits.rank: 1 hit without a rank in 1 unit (q1)" in error
    assert "hits.rank: 1 hit with rank 0 in 1 unit (q2)" in error
    assert "qrels.query_id: 1 row without an id" in error


def test_measures_lists_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    """`docrecall measures` names every measure once, for people and as Markdown."""
    lines = printed(capsys, "measures").splitlines()
    assert [sum(line.startswith(f"{name} ") for line in lines) for name in REGISTRY] == [1] * len(REGISTRY)
    assert "| `doc_recall` |" in printed(capsys, "measures", "--format", "markdown")


def test_names_before_paths(tmp_path: Path) -> None:
    """NAME=PATH names a run; an existing path and a folder of a key=value tree are paths."""
    assert named_paths(["a=x.parquet", "b=y/", "a=z.parquet"]) == {"a": ["x.parquet", "z.parquet"], "b": ["y/"]}
    assert named_paths(["logs/date=1/x.parquet", "y"]) == ["logs/date=1/x.parquet", "y"]
    odd = tmp_path / "a=b.parquet"
    odd.touch()
    assert named_paths([str(odd)]) == [str(odd)]
    with pytest.raises(UsageError, match="some have none"):
        named_paths(["a=x.parquet", "y.parquet"])
