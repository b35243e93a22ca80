"""Tables written back: our Parquet, TREC files, and the account of rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.cli import main
from docrecall.convert import convert, explain
from tests.small import MEASURE, hits, qrels

RUN = "q2 Q0 b 1 2.129133 STANDARD\nq1\tQ0\ta   2 -0.1000000001 STANDARD\nq1 Q0 x 1 1e-09 STANDARD\n"
LABELS = "q1 0 a 1\nq2 0 b -1\nq2 0 c 2\n"


@pytest.fixture
def trec(tmp_path: Path) -> Path:
    """A run and qrels in TREC's formats."""
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "a.qrels").write_text(LABELS)
    return tmp_path


def test_trec_to_parquet_and_back(trec: Path) -> None:
    """Every value comes back, in sorted order; writing again gives the same bytes."""
    convert(trec / "p", hits=trec / "a.run", qrels=trec / "a.qrels")
    convert(trec / "t", hits=trec / "p" / "hits.parquet", qrels=trec / "p" / "qrels.parquet", to="trec")
    convert(trec / "p2", hits=trec / "t" / "hits.trec", qrels=trec / "t" / "qrels.trec")

    text = (trec / "t" / "hits.trec").read_text()
    assert text == "q1 Q0 x 1 1e-9 STANDARD\nq1 Q0 a 2 -0.1000000001 STANDARD\nq2 Q0 b 1 2.129133 STANDARD\n"
    assert (trec / "t" / "qrels.trec").read_text() == LABELS
    for name in ("hits.parquet", "qrels.parquet"):
        assert (trec / "p" / name).read_bytes() == (trec / "p2" / name).read_bytes()


def test_parquet_that_is_written(trec: Path) -> None:
    """Sorted by unit, with statistics, dictionary ids, page checksums and the order in the footer."""
    convert(trec / "p", hits=trec / "a.run")
    path = trec / "p" / "hits.parquet"
    footer = pq.ParquetFile(path, page_checksum_verification=True)
    group = footer.metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    ids = [c for c in columns if c.path_in_schema.endswith("_id")]
    assert len(ids) == 3
    assert all(any("DICT" in e for e in c.encodings) for c in ids)
    assert all(c.is_stats_set for c in columns)
    assert [columns[s.column_index].path_in_schema for s in group.sorting_columns] == ["query_id", "run_id", "rank"]
    rows = pl.read_parquet(path)
    assert_frame_equal(rows, rows.sort("query_id", "run_id", "rank"))
    damaged = bytearray(path.read_bytes())
    damaged[40] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(path, page_checksum_verification=True).read()


def test_rows_are_accounted_for(trec: Path) -> None:
    """Rows read are rows written and rows rejected; rejected ones are written too, with file, line and reason."""
    (trec / "a.run").write_text(RUN + "q9 Q0 z zero 1 STANDARD\nq9 Q0\nq9 Q0 y 0 1 STANDARD\n")
    with pytest.raises(dr.DataError, match=r"The tables break 3 rules") as caught:
        convert(trec / "p", hits=trec / "a.run")
    assert not (trec / "p").exists()
    assert "a.run, line 5" in str(caught.value)

    done = convert(trec / "p", hits=trec / "a.run", options=dr.Options(on_bad_rows="reject"))

    assert done.rows.select("read", "written", "rejected").rows() == [(6, 3, 3)]
    rejected = pl.read_parquet(trec / "p" / "rejected.parquet")
    assert sorted(rejected.select("reason", "file").rows()) == [
        ("line_fields", f"{trec / 'a.run'}, line 5"),
        ("not_whole", f"{trec / 'a.run'}, line 4"),
        ("rank_zero", f"{trec / 'a.run'}, line 6"),
    ]
    assert pl.read_parquet(trec / "p" / "hits.parquet").height == 3


def test_sorting_in_parts_changes_nothing(tmp_path: Path) -> None:
    """A table that is sorted in ranges is the table that is sorted at once, whatever the order of its rows."""
    many = pl.concat([hits(query_id=[f"q{n % 97}"] * 3, rank=[n * 3 + 1, n * 3 + 2, n * 3 + 3]) for n in range(900)])
    shuffled = many.sample(fraction=1, shuffle=True, seed=1)
    convert(tmp_path / "a", hits=many)
    for seed, rows in ((0, 100), (1, 1000)):
        convert(tmp_path / "b", hits=shuffled.sample(fraction=1, shuffle=True, seed=seed), rows_at_a_time=rows)
        assert_frame_equal(
            pl.read_parquet(tmp_path / "a" / "hits.parquet"), pl.read_parquet(tmp_path / "b" / "hits.parquet")
        )


def test_scores_become_ranks(tmp_path: Path) -> None:
    """Hits without ranks are ranked by score when an order says so; logged ranks are never changed by it."""
    log = hits(rank=None, score=[1.0, 3.0, 2.0])
    with pytest.raises(dr.DataError, match=r"no column hits\.rank.*--order score"):
        convert(tmp_path / "p", hits=log)
    convert(tmp_path / "p", hits=log, options=dr.Options(order="score"))
    found = pl.read_parquet(tmp_path / "p" / "hits.parquet").select("query_id", "rank", "doc_id").rows()
    assert found == [("q1", 1, "a"), ("q1", 2, "x"), ("q2", 1, "b")]


def test_named_runs_are_one_table(tmp_path: Path) -> None:
    """Runs that the caller names are written with their names, and as one TREC file each."""
    runs = {"bm25": hits(), "den/se": hits(doc_id=["a", "x", "b"])}
    convert(tmp_path / "p", hits=runs)
    expected = dr.score(runs, qrels(), MEASURE).per_query
    assert_frame_equal(dr.score(tmp_path / "p" / "hits.parquet", qrels(), MEASURE).per_query, expected)
    convert(tmp_path / "t", hits=runs, to="trec")
    assert {p.name for p in (tmp_path / "t").glob("*.trec")} == {"hits-bm25.trec", "hits-den%2Fse.trec"}
    assert_frame_equal(dr.score(str(tmp_path / "t" / "*.trec"), qrels(), MEASURE).per_query, expected)


@pytest.mark.parametrize(
    ("column", "value"),
    [("doc_id", "a b"), ("query_id", "#1"), ("query_id", "\ufeffq"), ("doc_id", ""), ("run_id", "a\tb")],
)
def test_what_trec_cannot_hold(column: str, value: str, tmp_path: Path) -> None:
    """Ids with white space, empty ids and queries that would be comments are refused, and nothing is written."""
    log = hits(run_id=["r"] * 3, **({} if column == "run_id" else {column: [value] * 3}))
    if column == "run_id":
        log = log.with_columns(run_id=pl.lit(value))
    with pytest.raises(dr.DataError, match=rf"hits\.{column}: 3 values cannot stand in a TREC file"):
        convert(tmp_path / "t", hits=log.with_columns(rank=pl.Series([1, 2, 3])), to="trec")
    assert not (tmp_path / "t").exists()


def test_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    """Scores and other people's files are never replaced by tables; earlier tables are."""
    dr.score(hits(), qrels(), MEASURE, out=tmp_path / "scores")
    with pytest.raises(dr.OutputError, match="holds other files"):
        convert(tmp_path / "scores", hits=hits())
    convert(tmp_path / "p", hits=hits(), qrels=qrels())
    convert(tmp_path / "p", hits=hits())
    assert {p.name for p in (tmp_path / "p").iterdir()} == {"hits.parquet", "manifest.json"}


def test_command(trec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what was read, written and rejected; --explain prints a mapping that reads the same."""
    (trec / "log.csv").write_text("qid,docno,position,text\nq1,a,1,secret\n")
    argv = ["convert", f"--hits={trec / 'log.csv'}", "--map=hits.query_id=qid", "--map=hits.doc_id=docno"]
    argv.append("--map=hits.rank=position")
    assert main([*argv, "--explain"]) == 0
    toml = capsys.readouterr().out
    assert toml == (
        '# hits: not read: text\n[hits]\nread = "csv"\nquery_id = "qid"\nrank = "position"\ndoc_id = "docno"\n'
    )
    (trec / "map.toml").write_text(toml)
    assert explain(hits=trec / "log.csv", map=trec / "map.toml") == toml
    assert main(["convert", f"--hits={trec / 'log.csv'}", f"--map={trec / 'map.toml'}", f"--out={trec / 'p'}"]) == 0
    assert capsys.readouterr().out == f"hits: 1 rows read = 1 written to {trec / 'p'}/hits.parquet + 0 rejected\n"
    assert main(argv) == 2
    assert "convert needs --out" in capsys.readouterr().err


def test_slices_are_kept(tmp_path: Path) -> None:
    """Queries and requests keep their other columns, for slicing; files that differ in them are refused."""
    (tmp_path / "1.csv").write_text("query_id,lang,label_status\nq1,de,answerable\n")
    convert(tmp_path / "p", queries=tmp_path / "1.csv")
    assert pl.read_parquet(tmp_path / "p" / "queries.parquet").to_dicts() == [
        {"query_id": "q1", "label_status": "answerable", "lang": "de"}
    ]
    (tmp_path / "2.csv").write_text("query_id,label_status\nq2,\n")
    with pytest.raises(dr.DataError, match=r"other columns of queries differ .*2\.csv.*1\.csv"):
        convert(tmp_path / "p", queries=[tmp_path / "1.csv", tmp_path / "2.csv"])


def test_every_table_is_converted(tmp_path: Path) -> None:
    """Documents, chunks and requests are read from text, checked and written with their types."""
    (tmp_path / "d.csv").write_text('doc_id,title,alias_of\nd1,"a, b",\nd2,,d1\n')
    (tmp_path / "c.jsonl").write_text('{"chunk_id": "c1", "doc_id": "d1", "chunk_start": 0, "chunk_end": 5.0}\n')
    (tmp_path / "r.tsv").write_text("query_id\trequest_id\tanswered\tlang\nq1\tr1\tFalse\ten\n")
    done = convert(
        tmp_path / "p", documents=tmp_path / "d.csv", chunks=tmp_path / "c.jsonl", requests=tmp_path / "r.tsv"
    )
    assert done.rows.select("table", "written").rows() == [("documents", 2), ("chunks", 1), ("requests", 1)]
    assert pl.read_parquet(tmp_path / "p" / "documents.parquet").rows() == [("d1", "a, b", None), ("d2", None, "d1")]
    assert pl.read_parquet(tmp_path / "p" / "chunks.parquet").rows() == [("c1", "d1", 0, 5)]
    assert pl.read_parquet(tmp_path / "p" / "requests.parquet").rows() == [("q1", "r1", False, "en")]


def test_empty_lists_are_told(tmp_path: Path) -> None:
    """Queries that a log names with an empty list have no row in the table that is written, and that is said."""
    log = pl.DataFrame(
        {"query_id": ["q1", "q2"], "doc_id": [["a"], []]}, schema_overrides={"doc_id": pl.List(pl.String)}
    )
    done = convert(tmp_path / "p", hits=log)
    assert done.findings.select("code", "n_rows", "examples").rows() == [("empty_lists", 1, ["q2"])]


def test_explained_beir_folder(tmp_path: Path) -> None:
    """A folder that was recognised is explained as one, and the text reads it again."""
    (tmp_path / "b" / "qrels").mkdir(parents=True)
    (tmp_path / "b" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    (tmp_path / "b" / "queries.jsonl").write_text('{"_id": "q1", "text": "x"}\n')
    text = explain(qrels=tmp_path / "b", queries=tmp_path / "b")
    assert text.count('read = "beir"') == 2
    (tmp_path / "m.toml").write_text(text)
    assert explain(qrels=tmp_path / "b", queries=tmp_path / "b", map=tmp_path / "m.toml") == text
    assert convert(tmp_path / "p", qrels=tmp_path / "b", map=tmp_path / "m.toml").rows["written"].to_list() == [1]


def test_nan_scores_are_not_written_as_trec(tmp_path: Path) -> None:
    """A score that an order by score refuses does not go into a file that is ordered by score."""
    with pytest.raises(dr.DataError, match=r"hits\.score: 1 values cannot stand"):
        convert(tmp_path / "t", hits=hits(score=[1.0, float("nan"), 2.0]), to="trec")


def test_explanation_names_the_runs(tmp_path: Path) -> None:
    """Runs that the caller names, and further files, are notes: the TOML cannot hold them."""
    hits().write_parquet(tmp_path / "a.parquet")
    text = explain(hits={"x": [tmp_path / "a.parquet"] * 2, "y": tmp_path / "a.parquet"})
    assert "# hits.run_id is named by the caller: x, y; below is how x is read" in text
    assert "# hits: 2 files" in text


def test_order_without_effect_is_refused(trec: Path) -> None:
    """A conversion keeps logged ranks, so that an order by score would be an option that does nothing."""
    with pytest.raises(dr.UsageError, match="which a conversion keeps"):
        convert(trec / "p", hits=trec / "a.run", options=dr.Options(order="trec_eval"))


def test_run_too_long_for_a_file(tmp_path: Path) -> None:
    """A run that cannot name a file is told before anything is written."""
    runs = hits(run_id=["é" * 60, "é" * 60, "b"])
    with pytest.raises(dr.DataError, match=r"hits\.run_id: the run .* is too long to name a file"):
        convert(tmp_path / "t", hits=runs, to="trec")
