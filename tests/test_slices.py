"""Intervals of means, by slice and by cluster: of scores in memory, in a folder, and read back."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall import stats

RECALL = "doc_recall@1"
N = 60


def found(n: int = N) -> list[bool]:
    """Every third query is missed."""
    return [i % 3 != 0 for i in range(n)]


def hits(n: int = N) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "query_id": [f"q{i:02}" for i in range(n)],
            "rank": [1] * n,
            "doc_id": ["a" if here else "x" for here in found(n)],
        }
    )


def qrels(n: int = N) -> pl.DataFrame:
    return pl.DataFrame({"query_id": [f"q{i:02}" for i in range(n)], "doc_id": ["a"] * n})


def queries(n: int = N, **columns: Any) -> pl.DataFrame:
    """A language that has two thirds of the queries, and none for the last."""
    base: dict[str, Any] = {
        "query_id": [f"q{i:02}" for i in range(n)],
        "lang": ["en" if i < 40 else "de" for i in range(n - 1)] + [None],
        "asked": [date(2026, 11, 30)] * n,
    }
    return pl.DataFrame(base | columns)


def requests() -> pl.DataFrame:
    """Ten queries, the i-th logged i + 1 times."""
    pairs = [(f"r{i}-{j}", f"q{i:02}", "app" if j % 2 else "web") for i in range(10) for j in range(i + 1)]
    return pl.DataFrame(pairs, schema=["request_id", "query_id", "channel"], orient="row")


def logged(**options: Any) -> dr.Scores:
    log = requests().select("request_id", "query_id").join(hits(), on="query_id")
    return dr.score(log, qrels(10), RECALL, requests=requests(), queries=queries(), **options)


def only(frame: pl.DataFrame, **where: Any) -> dict[str, Any]:
    (row,) = [row for row in frame.to_dicts() if all(row[column] == value for column, value in where.items())]
    return row


def test_means_have_intervals() -> None:
    """Each mean stands with the interval of its values, made as it says; the mean is inside."""
    row = only(dr.score(hits(), qrels(), RECALL).summary())
    expected = stats.bootstrap_mean(np.array(found(), dtype=float), unit_range=True)
    assert (row["ci_low"], row["ci_high"], row["ci_method"]) == expected
    assert row["ci_method"] == "bca"
    assert row["ci_low"] < row["mean"] < row["ci_high"]


def test_equal_values_are_not_certainty() -> None:
    """Fifty ones have the exact bound; a measure without an upper end has no range to think of, which is told."""
    scores = dr.score(hits(50).with_columns(doc_id=pl.lit("a")), qrels(50), [RECALL, "naive_recall@1"])
    row = only(scores.summary(), measure=RECALL)
    assert (row["mean"], row["ci_high"], row["ci_method"]) == (1.0, 1.0, "binomial")
    assert row["ci_low"] == pytest.approx(0.025 ** (1 / 50))
    assert only(scores.summary(), measure="naive_recall@1")["ci_method"] == "constant"


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_units_have_no_interval(n: int) -> None:
    """Null, and the method too."""
    scores = dr.score(hits(2).head(n), qrels(2).head(n), RECALL, universe="hits")
    assert only(scores.summary().select("n", "ci_low", "ci_high", "ci_method")) == {
        "n": n, "ci_low": None, "ci_high": None, "ci_method": None,
    }  # fmt: skip


def test_arguments_of_intervals() -> None:
    """Level, method, resamples and seed are those of the bootstrap; the same ones give the same bits."""
    scores = dr.score(hits(), qrels(), RECALL)
    how: dict[str, Any] = {"level": 0.9, "method": "percentile", "resamples": 500, "seed": 3}
    row = only(scores.summary(**how))
    expected = stats.bootstrap_mean(np.array(found(), dtype=float), unit_range=True, **how)
    assert (row["ci_low"], row["ci_high"], row["ci_method"]) == expected
    assert_frame_equal(scores.summary(**how), scores.summary(**how), check_exact=True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"level": 1.0}, "level is 1.0"),
        ({"level": "0.95"}, "level is '0.95'"),
        ({"resamples": 0}, "resamples is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"method": "bootstrap"}, "method is 'bootstrap'"),
        ({"min_n": 0}, "min_n is 0"),
        ({"by": "langg"}, 'have a column langg. Did you mean "lang"'),
        ({"by": 3}, "one column of queries or requests, or several"),
        ({"by": ["lang", "lang"]}, "one column of queries or requests, or several"),
        ({"by": "query_id"}, "query_id is a column of the result"),
        ({"by": "measure"}, "measure is a column of the result"),
        ({"by": "p"}, "p is a column of the result"),
        ({"cluster": "topic"}, "have a column topic"),
    ],
)
def test_arguments_without_meaning(arguments: dict[str, Any], says: str) -> None:
    """Each is refused by its name."""
    scores = dr.score(hits(), qrels(), RECALL, queries=queries())
    with pytest.raises(dr.UsageError, match=says):
        scores.summary(**arguments)


def test_slices_of_a_column() -> None:
    """Each value is a slice, a null too and last; the slices have the mean, n and interval of their own queries."""
    table = dr.score(hits(), qrels(), RECALL, queries=queries()).summary(by="lang")
    assert table.columns[:4] == ["run_id", "lang", "measure", "mean"]
    assert table.select("lang", "n").rows() == [("de", 19), ("en", 40), (None, 1)]
    english = np.array(found()[:40], dtype=float)
    row = only(table, lang="en")
    assert row["mean"] == english.sum() / 40
    assert (row["ci_low"], row["ci_high"], row["ci_method"]) == stats.bootstrap_mean(english, unit_range=True)


@pytest.mark.parametrize("values", [[["x"]], [{"f": "x"}], [b"x"]])
def test_a_column_that_makes_no_slices(values: list[Any], tmp_path: Path) -> None:
    """A list, a struct or a binary column is there, and is of a type that cannot part units."""
    table = queries().with_columns(odd=pl.Series(values * queries().height))
    table.write_parquet(tmp_path / "queries.parquet")
    for given in (table, tmp_path / "queries.parquet"):
        with pytest.raises(dr.UsageError, match="queries has a column odd, but lists, structs and binary"):
            dr.score(hits(), qrels(), RECALL, queries=given).summary(by="odd")
    renamed = dr.score(hits(), qrels(), RECALL, queries=queries(), map={"queries.tongue": "lang"})
    with pytest.raises(dr.UsageError, match="lang, but it is read as tongue"):
        renamed.summary(by="lang")


def test_small_slices_are_shown_and_not_judged() -> None:
    """19 queries are too few by default, and enough where that is asked for."""
    scores = dr.score(hits(), qrels(), RECALL, queries=queries())
    few = only(scores.summary(by="lang"), lang="de")
    assert few["mean"] is not None
    assert (few["ci_low"], few["ci_method"]) == (None, None)
    assert only(scores.summary(by="lang", min_n=19), lang="de")["ci_low"] is not None


def test_slices_are_judged_against_the_rest() -> None:
    """Each has the p of a permutation test of its values and all others; what is adjusted is all that was tested."""
    parts = queries(lang=["en"] * 24 + ["de"] * 20 + ["fr"] * 16)
    found_first = hits().with_columns(doc_id=pl.when(pl.int_range(N) < 24).then(pl.lit("a")).otherwise("doc_id"))
    runs = {"old": hits(), "new": found_first}
    table = dr.score(runs, qrels(), [RECALL, "doc_rr@1"], queries=parts).summary(by="lang", seed=4)
    values = found_first["doc_id"].eq("a").cast(pl.Float64).to_numpy()
    ps = stats.permutation_tests([values[24:44], values[:24], values[44:]], seed=4)
    new = table.filter(run_id="new", measure=RECALL).sort("lang")
    assert new["p"].to_list() == [ps[0], ps[1], None]
    assert ps[1] is not None
    assert ps[1] < 0.01
    assert table["p"].count() == 8  # two runs, two measures, two slices of at least 20
    assert table["p_adjusted"].to_list() == stats.benjamini_hochberg(table["p"].to_list())
    assert table.columns[-2:] == ["p", "p_adjusted"]


def test_a_slice_that_is_everything_is_not_tested() -> None:
    """There is no rest to differ from; whole runs have no such columns."""
    scores = dr.score(hits(), qrels(), RECALL, queries=queries())
    assert scores.summary(by="asked").select("p", "p_adjusted").rows() == [(None, None)]
    assert "p" not in scores.summary().columns


def test_requests_of_a_query_are_chosen_together() -> None:
    """A query that stands in a slice a thousand times is one unit of its test."""
    log = pl.concat([hits(40)] * 30).with_columns(request_id=pl.int_range(pl.len()).cast(pl.String))
    parts = queries(40, lang=["en"] * 20 + ["de"] * 20, asked=[None] * 40)
    scores = dr.score(log, qrels(40), RECALL, queries=parts)
    expected = dr.score(hits(40), qrels(40), RECALL, queries=parts).summary(by="lang")
    assert scores.summary(by="lang")["p"].to_list() == pytest.approx(expected["p"].to_list(), abs=0.02)


def test_several_columns_and_other_types() -> None:
    """Slices of two columns are their combinations; a date stays a date."""
    table = dr.score(hits(), qrels(), RECALL, queries=queries()).summary(by=["lang", "asked"])
    assert table.columns[:4] == ["run_id", "lang", "asked", "measure"]
    assert table["asked"].unique().to_list() == [date(2026, 11, 30)]
    assert table["n"].sum() == N


def test_slices_count_what_has_no_value() -> None:
    """Queries that are not scored have no value; a slice that has only such ones is shown with n 0."""
    status = ["unanswerable" if i >= 40 else None for i in range(N)]
    table = dr.score(hits(), qrels(), RECALL, queries=queries(label_status=status)).summary(by="lang")
    assert table.select("lang", "n", "mean").rows()[::2] == [("de", 0, None), (None, 0, None)]


def test_slices_do_not_depend_on_the_form(tmp_path: Path) -> None:
    """In memory, in batches, in a folder, from files and read back with the table given anew, slices are the same."""
    expected = dr.score(hits(), qrels(), RECALL, queries=queries()).summary(by="lang")
    path = tmp_path / "queries.parquet"
    queries().sample(fraction=1, shuffle=True, seed=1).write_parquet(path)
    shuffled = hits().sample(fraction=1, shuffle=True, seed=2)
    scores = dr.score(shuffled, qrels(), RECALL, queries=path, batch_rows=7, out=tmp_path / "out")
    assert_frame_equal(scores.summary(by="lang"), expected, check_exact=True)
    for table in (path, queries().lazy(), str(path)):
        loaded = dr.load(tmp_path / "out", queries=table)
        assert_frame_equal(loaded.summary(by="lang"), expected, check_exact=True)
    with pytest.raises(dr.UsageError, match=r"neither is at hand. Give the table .*queries\.parquet"):
        dr.load(tmp_path / "out").summary(by="lang")


def test_tables_given_anew_are_checked(tmp_path: Path) -> None:
    """Ids of another type, and a query that stands twice, would give slices of other queries."""
    dr.score(hits(), qrels(), RECALL, out=tmp_path / "out")
    numbers = pl.DataFrame({"query_id": [1, 2], "lang": ["en", "de"]})
    with pytest.raises(dr.DataError, match=r"queries\.query_id is Int64, but the results have String"):
        dr.load(tmp_path / "out", queries=numbers)
    twice = pl.concat([queries(), queries(1, lang=["fr"])])
    with pytest.raises(dr.DataError, match=r"queries names 2 rows .* such as q00"):
        dr.load(tmp_path / "out", queries=twice).summary(by="lang")


def test_a_column_changed_after_scoring(tmp_path: Path) -> None:
    """The table is read when slices are asked for, and then must be the one that was scored with."""
    path = tmp_path / "queries.parquet"
    queries().write_parquet(path)
    scores = dr.score(hits(), qrels(), RECALL, queries=path)
    queries(lang=["xx"] * N).head(50).write_parquet(path)
    with pytest.raises(dr.InputError, match=r"queries\.parquet"):
        scores.summary(by="lang")


def test_requests_of_a_query_are_resampled_together() -> None:
    """The interval is that of clusters, and wider than that of independent requests."""
    row = only(logged().summary())
    values = [float(here) for i, here in enumerate(found(10)) for _ in range(i + 1)]
    clusters = [i for i in range(10) for _ in range(i + 1)]
    assert (row["ci_low"], row["ci_high"], row["ci_method"]) == stats.bootstrap_mean(
        values, clusters=clusters, unit_range=True
    )


def test_a_column_of_requests() -> None:
    """Requests are parted by what is said of each of them."""
    table = logged().summary(by="channel")
    assert table.select("channel", "n").rows() == [("app", 25), ("web", 30)]


def test_means_of_queries_inside_slices() -> None:
    """With unit="query" a query that was asked over both channels counts once in each."""
    table = logged(unit="query").summary(by="channel")
    assert table.select("channel", "n").rows() == [("app", 9), ("web", 10)]


def test_a_cluster_column() -> None:
    """Queries of one conversation are resampled together, whatever the order of rows."""
    talks = [i // 6 for i in range(N)]
    scores = dr.score(hits(), qrels(), RECALL, queries=queries(talk=talks))
    row = only(scores.summary(cluster="talk"))
    expected = stats.bootstrap_mean(np.array(found(), dtype=float), clusters=talks, unit_range=True)
    assert (row["ci_low"], row["ci_high"], row["ci_method"]) == expected


def test_units_without_a_cluster_are_alone() -> None:
    """A null is no conversation that all these queries have in common; requests of one query stay together."""
    talks = [None if i % 2 else f"c{i // 6}" for i in range(N)]
    scores = dr.score(hits(), qrels(), RECALL, queries=queries(talk=talks))
    own = [talk or i for i, talk in enumerate(talks)]
    expected = stats.bootstrap_mean(np.array(found(), float), clusters=list(map(str, own)), unit_range=True)
    row = only(scores.summary(cluster="talk"))
    assert (row["ci_low"], row["ci_high"], row["ci_method"]) == expected
    none = dr.score(hits(), qrels(), RECALL, queries=queries(talk=pl.Series([None] * N, dtype=pl.String)))
    assert_frame_equal(none.summary(cluster="talk"), none.summary(), check_exact=True)
    log = requests().select("request_id", "query_id").join(hits(), on="query_id")
    told = requests().with_columns(talk=pl.lit(None, pl.String))
    by_null = dr.score(log, qrels(10), RECALL, requests=told).summary(cluster="talk")
    assert_frame_equal(by_null, logged().summary(), check_exact=True)


def test_a_column_of_both_tables() -> None:
    """Which of them is meant must be said."""
    log = requests().select("request_id", "query_id").join(hits(), on="query_id")
    both = queries().with_columns(channel=pl.lit("mail"))
    scores = dr.score(log, qrels(10), RECALL, requests=requests(), queries=both)
    with pytest.raises(dr.UsageError, match=r"both have a column channel: write queries\.channel"):
        scores.summary(by="channel")
    assert scores.summary(by="requests.channel")["channel"].to_list() == ["app", "web"]
    assert scores.summary(by="queries.channel")["channel"].to_list() == ["mail"]


def test_weights_weigh_intervals(tmp_path: Path) -> None:
    """In memory and after `load`, where weights stand beside the scores."""
    weights = [1.0 + i % 4 for i in range(N)]
    scores = dr.score(hits(), qrels(), RECALL, queries=queries(weight=weights), out=tmp_path / "out")
    expected = stats.bootstrap_mean(np.array(found(), dtype=float), weights=weights, unit_range=True, level=0.8)
    for some in (scores, dr.load(tmp_path / "out")):
        row = only(some.summary(level=0.8))
        assert (row["ci_low"], row["ci_high"], row["ci_method"]) == expected
        assert row["mean"] == pytest.approx(np.average(found(), weights=weights))
    assert "weight" not in scores.decided.collect_schema()


def test_ceilings_of_slices() -> None:
    """The ceiling is over the same units as the mean."""
    labels = qrels().with_columns(doc_id=pl.when(pl.col("query_id") < "q40").then(pl.lit("a")).otherwise(pl.lit("b")))
    index = pl.DataFrame({"doc_id": ["a", "x"]})
    table = dr.score(hits(), labels, RECALL, queries=queries(), documents=index).summary(by="lang")
    assert table.select("lang", "ceiling").rows() == [("de", 0.0), ("en", 1.0), (None, 0.0)]
