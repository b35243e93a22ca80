"""Why a number moved: lines, differences, verdicts and orders of small logs, and of the data in the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall import stats

TOPICS = Path(__file__).parents[1] / "data" / "topics"
N = 10


def log(docs: list[str], n: int = N, tokens: int | None = None, **columns: list[Any]) -> pl.DataFrame:
    """The same documents in rank order for each of n queries; each chunk has its own place in its document."""
    size = len(docs)
    frame = pl.DataFrame(
        {
            "query_id": [f"q{i:02}" for i in range(n) for _ in docs],
            "rank": list(range(1, size + 1)) * n,
            "doc_id": docs * n,
            **{name: values * n for name, values in columns.items()},
        }
    )
    return frame if tokens is None else frame.with_columns(n_tokens=pl.lit(tokens))


def qrels(n: int = N) -> pl.DataFrame:
    """Two relevant documents for each query."""
    return pl.DataFrame({"query_id": [f"q{i:02}" for i in range(n) for _ in "ab"], "doc_id": ["a", "b"] * n})


def diagnose(logs: Any, ks: Any = (3,), budgets: Any = None, labels: Any = None, **how: Any) -> dr.Diagnosis:
    options = {name: how.pop(name) for name in ("baseline", "level", "resamples", "seed") if name in how}
    scores = dr.score(logs, qrels() if labels is None else labels, "doc_recall@1", **how)
    return dr.diagnose(scores, ks, budgets, **options)


def row(frame: pl.DataFrame, **where: Any) -> dict[str, Any]:
    (found,) = frame.filter(**where).to_dicts()
    return found


def test_lines_stand_side_by_side() -> None:
    """One line per run and cut: three chunks of a give 1.5 naive, one of two documents, and all in the first three."""
    told = diagnose(log(["a", "a", "a", "b", "x"], tokens=10), budgets=[20])

    expected = {
        "run_id": "run", "n": N, "n_passages": None, "evidence_coverage": None, "evidence_recall": None,
        "distinct_docs": 1.0, "doc_recall": 0.5,
    }  # fmt: skip
    at_3 = {"cut": "3", "naive_recall": 1.5, "doc_recall_docs": 1.0, "context_tokens": 30.0, "repeat_share": 2 / 3}
    at_20 = {"cut": "20tokens", "naive_recall": 1.0, "doc_recall_docs": None, "context_tokens": 20.0}
    assert row(told.lines, cut="3") == expected | at_3
    assert row(told.lines, cut="20tokens") == expected | at_20 | {"repeat_share": 0.5}
    assert told.deltas.is_empty()
    assert told.verdicts.is_empty()
    assert told.orders.is_empty()


def test_a_gain_that_is_repeats() -> None:
    """The fine log gives a three times where the coarse one gave a and b: naive +0.5, documents -0.5 in every query."""
    told = diagnose({"coarse": log(["a", "b", "x"]), "fine": log(["a", "a", "a"])})

    assert row(told.deltas, measure="naive_recall@3") == {
        "baseline": "coarse", "candidate": "fine", "cut": "3", "measure": "naive_recall@3", "n_pairs": N,
        "n_differ": N, "delta": 0.5, "ci_low": 0.5, "ci_high": 0.5, "ci_method": "constant", "prefers": "fine",
    }  # fmt: skip
    verdict = row(told.verdicts)
    assert (verdict["naive_delta"], verdict["doc_delta"], verdict["doc_high"]) == (0.5, -0.5, -0.5)
    assert verdict["verdict"] == (
        "fine against coarse at @3: naive +0.500 [+0.500, +0.500], doc_recall -0.500 [-0.500, -0.500]: the whole gain "
        "is repeats. The naive measure prefers fine, and every real one prefers coarse (the first 3 documents -0.500 "
        "[-0.500, -0.500])."
    )
    order = row(told.orders, second="doc_recall@3")
    assert (order["first"], order["tau"], order["n_runs"]) == ("naive_recall@3", -1.0, 2)
    assert order["swapped"] == [{"higher": "fine", "lower": "coarse", "told_apart": True}]


def test_intervals_are_those_of_the_paired_differences() -> None:
    """Whatever the order of rows, each query is compared with itself."""
    fine = pl.concat([log(["a", "b"], 4), log(["x", "y"], N).filter(pl.col("query_id") > "q03")])
    coarse = log(["a", "x"])
    told = diagnose({"coarse": coarse, "fine": fine.sample(fraction=1, shuffle=True, seed=1)}, seed=7, level=0.9)

    interval = stats.bootstrap_mean([0.5] * 4 + [-0.5] * 6, level=0.9, seed=7)
    assert interval is not None
    found = row(told.deltas, measure="doc_recall@3")
    assert found["delta"] == pytest.approx(-0.1)
    assert (found["ci_low"], found["ci_high"], found["ci_method"]) == tuple(interval)
    assert found["prefers"] is None
    assert (told.level, told.resamples, told.seed) == (0.9, 10_000, 7)


def test_few_units_tell_nothing() -> None:
    """Five queries that all say the same could be chance, and the verdict says that they cannot tell."""
    told = diagnose({"coarse": log(["a", "b"], 5), "fine": log(["x", "y"], 5)}, labels=qrels(5))
    found = row(told.deltas, measure="doc_recall@3")
    assert (found["delta"], found["ci_high"], found["prefers"]) == (-1.0, -1.0, None)
    assert row(told.verdicts)["short"] == "no measure can tell fine from coarse"


def test_runs_without_a_common_unit() -> None:
    """Nothing is paired, nothing is preferred, and it is said."""
    first = log(["a", "b"]).filter(pl.col("query_id") < "q05")
    second = log(["a", "b"]).filter(pl.col("query_id") >= "q05")
    told = diagnose({"one": first, "two": second}, universe="hits")
    assert told.deltas["n_pairs"].to_list() == [0] * told.deltas.height
    assert row(told.verdicts)["short"] == "no unit is scored in both runs"
    assert told.lines["n"].to_list() == [5, 5]


def test_all_pairs_or_one_baseline() -> None:
    """By default each run is compared with each; the first by name is the baseline of a pair."""
    logs = {"c": log(["a"]), "a": log(["x"]), "b": log(["b", "a"])}
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    assert diagnose(logs).verdicts.select("baseline", "candidate").rows() == pairs
    told = diagnose(logs, baseline="c")
    assert told.verdicts.select("baseline", "candidate").rows() == [("c", "a"), ("c", "b")]
    with pytest.raises(dr.UsageError, match=r'no run is called .*Did you mean "baseline"'):
        diagnose({"baseline": log(["a"]), "x": log(["a"])}, baseline="basline")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"ks": 3}, r"ks are 3; a list"),
        ({"ks": "3"}, r"ks are '3'; a list"),
        ({"ks": [2.0]}, r"k must be positive and whole, and one is 2\.0"),
        ({"ks": []}, "no k was given"),
        ({"budgets": 512}, "budgets are 512; a list"),
        ({"budgets": [0]}, "budget must be positive and whole, and one is 0"),
        ({"baseline": 1}, r'no run is called 1\. Did you mean "1"\?'),
        ({"level": "x"}, "level is 'x'"),
    ],
)
def test_arguments_without_meaning(arguments: dict[str, Any], says: str) -> None:
    """Each is refused by its name."""
    with pytest.raises(dr.UsageError, match=says):
        dr.diagnose(dr.score({"1": log(["a"]), "2": log(["b"])}, qrels(), "doc_recall@1"), **arguments)


def test_ks_may_be_of_numpy() -> None:
    """Whole numbers are whole numbers."""
    scores = dr.score({"1": log(["a"]), "2": log(["b"])}, qrels(), "doc_recall@1")
    assert dr.diagnose(scores, np.array([2, 1])).lines["cut"].unique(maintain_order=True).to_list() == ["1", "2"]


def test_swaps_between_runs_that_were_not_compared() -> None:
    """With a baseline the others are not compared with one another, so it is not known whether a swap is chance."""
    logs = {"base": log(["x"]), "fine": log(["a", "a", "a"]), "wide": log(["a", "b", "x"])}
    told = diagnose(logs, baseline="base")
    assert row(told.orders, second="doc_recall@3")["swapped"] == [
        {"higher": "fine", "lower": "wide", "told_apart": None}
    ]


def passages(n: int = N) -> dict[str, Any]:
    """A passage in document a, from 0 to 20."""
    return {
        "evidence": pl.DataFrame(
            {"query_id": [f"q{i:02}" for i in range(n)], "evidence_id": 1, "doc_id": "a", "start": 0, "end": 20}
        )
    }


def test_documents_and_passages_may_part() -> None:
    """With 20 tokens the fine log reaches both documents, and the coarse one the whole passage."""
    coarse = log(["a", "b"], tokens=20, chunk_start=[0, 0], chunk_end=[20, 20])
    fine = log(["a", "b"], tokens=10, chunk_start=[0, 0], chunk_end=[10, 10])

    told = diagnose({"coarse": coarse, "fine": fine}, **passages())

    assert told.lines.filter(run_id="fine")["cut"].to_list() == [
        "3",
        "20tokens",
        "40tokens",
        "80tokens",
        "160tokens",
    ]
    line = row(told.lines, run_id="fine", cut="20tokens")
    assert (line["doc_recall"], line["evidence_coverage"], line["evidence_recall"], line["n_passages"]) == (
        1,
        0.5,
        0,
        N,
    )
    assert row(told.verdicts, cut="20tokens")["short"] == (
        "repeats have no part in the gain; the naive measure and documents prefer fine, and parts of passages and "
        "whole passages prefer coarse"
    )
    assert row(told.verdicts, cut="20tokens")["verdict"].endswith("fine gives 20.0 tokens, coarse 20.0.")


def test_what_the_tables_do_not_tell_is_left_out_and_said() -> None:
    """Without tokens there are no budgets; passages need to know what chunks cover."""
    told = diagnose(log(["a"]), **passages())
    assert [note.partition(":")[0] for note in told.notes] == ["passages", "tokens"]
    assert told.lines["cut"].to_list() == ["3"]
    assert told.lines.select("context_tokens", "evidence_recall").row(0) == (None, None)
    assert diagnose(log(["a"], tokens=5), budgets=[]).notes == ()
    assert diagnose(log(["a"], tokens=0)).notes == ("tokens: no chunk has any, so there is no budget to compare at",)


@pytest.mark.parametrize("counts", [[None, None], [5, None]])
def test_tokens_that_are_not_in_every_row_are_left_out(counts: list[int | None]) -> None:
    """As where nobody counted them: budgets cannot be had, and everything else is said. Asked for, they are missing."""
    hits = log(["a", "b"], chunk_id=[1, 2])
    counted = hits.with_columns(n_tokens=pl.Series(counts * N, dtype=pl.Int64))
    told = diagnose(counted)
    assert told.notes == (f"tokens: {N * counts.count(None)} rows of hits have no n_tokens",)
    assert told.lines.select("cut", "doc_recall", "context_tokens").rows() == [("3", 1.0, None)]
    chunks = pl.DataFrame({"chunk_id": [1, 2], "doc_id": ["a", "b"], "n_tokens": pl.Series(counts, dtype=pl.Int64)})
    assert diagnose(hits, chunks=chunks).notes == (f"tokens: {counts.count(None)} rows of chunks have no n_tokens",)
    with pytest.raises(dr.DataError, match="n_tokens"):
        diagnose(counted, budgets=[100])


def test_budgets_that_cannot_be_had() -> None:
    """A budget that is asked for needs tokens."""
    with pytest.raises(dr.DataError, match="n_tokens"):
        diagnose(log(["a"]), budgets=[100])
    with pytest.raises(dr.UsageError, match="positive"):
        diagnose(log(["a"], tokens=5), budgets=[0])


def test_the_largest_chunk_may_stand_in_the_table_of_chunks() -> None:
    """Where hits do not say tokens, the largest chunk of the index counts."""
    hits = log(["a", "b"], chunk_id=[1, 2])
    chunks = pl.DataFrame({"chunk_id": [1, 2, 3], "doc_id": ["a", "b", "c"], "n_tokens": [4, 5, 6]})
    cuts = diagnose(hits, chunks=chunks).lines["cut"].to_list()
    assert cuts == ["3", "6tokens", "12tokens", "24tokens", "48tokens"]


def requests(ids: list[str], docs: list[str]) -> pl.DataFrame:
    """Each query is asked by two requests."""
    frames = [log(docs, 6).with_columns(request_id=f"{i}-" + pl.col("query_id")) for i in ids]
    return pl.concat(frames)


def test_requests_are_paired_and_resampled_by_query() -> None:
    """Two requests of a query are two pairs and one cluster, of which at least six must differ."""
    labels = qrels(6)
    told = diagnose({"a": requests(["r", "s"], ["x"]), "b": requests(["r", "s"], ["a"])}, labels=labels)
    found = row(told.deltas, measure="doc_recall@3")
    assert (found["n_pairs"], found["n_differ"], found["delta"], found["prefers"]) == (12, 6, 0.5, "b")


@pytest.mark.parametrize("ids", [["t", "u"], ["r", "s"]])
def test_queries_are_paired_where_requests_do_not_meet(ids: list[str]) -> None:
    """The mean of the requests of a query stands for it; so it does under `unit="query"`."""
    unit: dict[str, Any] = {"unit": "query"} if ids == ["r", "s"] else {}
    other = pl.concat([requests(ids[:1], ["a"]), requests(ids[1:], ["a", "b"])])
    told = diagnose({"a": requests(["r", "s"], ["x"]), "b": other}, labels=qrels(6), **unit)
    found = row(told.deltas, measure="doc_recall@3")
    assert (found["n_pairs"], found["n_differ"], found["delta"]) == (6, 6, 0.75)


def test_weights_weigh_means_and_differences() -> None:
    """A query that gains a document and weighs 5 among nine of 1 that gain none pulls the difference."""
    queries = pl.DataFrame({"query_id": [f"q{i:02}" for i in range(N)], "weight": [1.0] * 9 + [5.0]})
    fine = pl.concat([log(["x"], 9), log(["a"]).filter(pl.col("query_id") == "q09")])
    told = diagnose({"a": log(["x"]), "b": fine}, queries=queries)
    assert row(told.deltas, measure="doc_recall@3")["delta"] == pytest.approx(0.5 * 5 / 14)


def test_weights_that_are_all_0() -> None:
    """Units are in both runs, and none weighs anything."""
    queries = pl.DataFrame({"query_id": [f"q{i:02}" for i in range(N)], "weight": [0.0] * N})
    found = row(diagnose({"a": log(["x"]), "b": log(["a"])}, queries=queries).verdicts, cut="3")
    assert (found["short"], found["n_pairs"]) == ("all units in both runs have weight 0", N)


def test_scores_that_have_all_measures_are_not_read_again(tmp_path: Path) -> None:
    """Written results can be diagnosed where they hold what it takes, at the budgets that they hold."""
    names = ("naive_recall", "doc_recall", "context_tokens", "distinct_docs", "repeat_share")
    measures = [f"{name}@{cut}" for name in names for cut in ("3", "20tokens")]
    logs = {"a": log(["x"], tokens=10), "b": log(["a"], tokens=10)}
    dr.score(logs, qrels(), [*measures, "doc_recall@3docs"], out=tmp_path / "out")
    told = dr.diagnose(dr.load(tmp_path / "out"), [3])
    assert_frame_equal(told.verdicts, diagnose(logs, budgets=[20]).verdicts)
    with pytest.raises(dr.UsageError, match="naive_recall@5"):
        dr.diagnose(dr.load(tmp_path / "out"), [5])


@pytest.mark.parametrize("how", [{"level": 1.0}, {"resamples": 0}, {"seed": -1}, {"ks": [0]}, {"ks": []}])
def test_arguments_without_a_meaning(how: dict[str, Any]) -> None:
    """They are refused by name before anything is read again."""
    with pytest.raises(dr.UsageError):
        diagnose(log(["a"]), **how)


def test_the_data_in_the_repository() -> None:
    """At ten chunks the naive measure prefers 32 words and every real one 256; at equal tokens the two part."""
    tables: dict[str, Any] = {
        name: TOPICS / f"{name}.parquet" for name in ("qrels", "queries", "evidence", "documents", "requests")
    }
    told = dr.diagnose(dr.score(TOPICS / "hits", **tables), baseline="bm25-w256")
    of = told.verdicts.filter(candidate="bm25-w32")
    assert row(of, cut="10")["short"] == (
        "the whole gain is repeats; the naive measure prefers bm25-w32, and every real one prefers bm25-w256"
    )
    budgets = of.filter(pl.col("cut").str.ends_with("tokens"))
    assert budgets.height == 4
    for verdict in budgets["short"]:
        assert "the naive measure and documents prefer bm25-w32" in verdict
        assert "whole passages prefer bm25-w256" in verdict
    swapped = row(told.orders, cut="10", first="naive_recall@10", second="doc_recall@10")["swapped"]
    assert {"higher": "bm25-w32", "lower": "bm25-w256", "told_apart": True} in swapped
