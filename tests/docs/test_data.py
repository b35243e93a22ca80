"""The example data is what data/README.md says of it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

DATA = Path(__file__).parents[2] / "data"
TOPICS = DATA / "topics"
VERSION = ["doc_id", "doc_version"]


def table(name: str) -> pl.DataFrame:
    return pl.read_parquet(TOPICS / f"{name}.parquet")


def all_hits() -> pl.DataFrame:
    return pl.read_parquet(TOPICS / "hits" / "*.parquet")


@pytest.mark.parametrize("path", sorted(TOPICS.rglob("*.parquet")), ids=lambda path: path.name)
def test_rows_and_nulls(path: Path) -> None:
    """The README has a line for each table with its number of rows, and no table has a null."""
    frame = pl.read_parquet(path)
    lines = (DATA / "README.md").read_text(encoding="utf-8").splitlines()
    name = path.relative_to(TOPICS).as_posix()
    assert any(line.startswith(f"| `{name}` |") and line.endswith(f" {frame.height} |") for line in lines)
    assert sum(frame.null_count().row(0)) == 0


def test_some_labels_are_stale() -> None:
    """Ten questions have one label each on a version that is no longer served; two have no other relevant page."""
    served = table("documents")
    stale = table("qrels").join(served, on=VERSION, how="anti")
    current = table("qrels").join(served, on=VERSION, how="semi")
    assert stale.height == stale["query_id"].n_unique() == 10
    assert set(stale["query_id"]) - set(current["query_id"]) == {"q091", "q098"}
    assert table("evidence").join(served, on=VERSION, how="anti").height == 13


def test_one_page_is_served_in_two_versions() -> None:
    """`augassign` has two versions, all hits are of a served version, and a chunk id belongs to one of them."""
    served = table("documents")
    assert served.filter(pl.col("doc_id").is_duplicated())["doc_id"].to_list() == ["augassign"] * 2
    assert all_hits().join(served, on=VERSION, how="anti").is_empty()
    assert all_hits().group_by("doc_id", "chunk_id").agg(pl.col("doc_version").n_unique())["doc_version"].max() == 1


def test_context_is_what_fits() -> None:
    """The hits that were passed on are the longest run from rank 1 on with at most 512 words."""
    hits = all_hits().sort("run_id", "query_id", "rank")
    fits = pl.col("n_tokens").cum_sum().over("run_id", "query_id") <= 512
    assert hits.filter(pl.col("in_context") != fits).is_empty()


def test_requests_are_every_question_of_every_run() -> None:
    """A request without hits or with a best score below 4 is declined, among them some of each kind."""
    best = all_hits().group_by("run_id", "query_id").agg(pl.col("score").max())
    requests = table("requests").join(best, on=["run_id", "query_id"], how="left").join(table("queries"), on="query_id")
    assert requests.select("run_id", "query_id").n_unique() == requests.height == 4 * 173
    assert requests.filter(pl.col("retrieved") != pl.col("score").is_not_null()).is_empty()
    assert requests.filter(pl.col("answered") != (pl.col("score").fill_null(0) >= 4)).is_empty()
    counts = requests.group_by("label_status", "answered").len().sort("label_status", "answered").rows()
    assert counts == [
        ("answerable", False, 98),
        ("answerable", True, 534),
        ("unanswerable", False, 17),
        ("unanswerable", True, 23),
        ("unlabelled", False, 2),
        ("unlabelled", True, 18),
    ]
