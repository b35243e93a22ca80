"""Two runs unit by unit: pairs, tests, refusals and the queries that changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats as scipy_stats

import docrecall as dr
from docrecall import pairs, stats

RECALL = "doc_recall@2"
ROOT = Path(__file__).parents[1]


def log(found: list[str], n: int | None = None, start: int = 0) -> pl.DataFrame:
    """For each query the documents that it finds, one letter each."""
    found = found if n is None else found * n
    rows = [(f"q{i:02}", rank, doc) for i, docs in enumerate(found, start) for rank, doc in enumerate(docs, 1)]
    return pl.DataFrame(rows, schema={"query_id": pl.String, "rank": pl.Int64, "doc_id": pl.String}, orient="row")


def qrels(n: int = 40) -> pl.DataFrame:
    """Two relevant documents, a and b, for each query."""
    return pl.DataFrame({"query_id": [f"q{i:02}" for i in range(n) for _ in "ab"], "doc_id": ["a", "b"] * n})


def runs(measures: Any = RECALL, labels: Any = None, **logs: pl.DataFrame) -> dr.Scores:
    return dr.score(logs, qrels() if labels is None else labels, measures, universe="hits")


def only(frame: pl.DataFrame, **where: Any) -> dict[str, Any]:
    (row,) = [row for row in frame.to_dicts() if all(row[column] == value for column, value in where.items())]
    return row


OLD = ["ax", "xy", "ax", "ab", "xa", "xy"]
NEW = ["ab", "xa", "xb", "xy", "xa", "xy"]  # better, better, another document, worse, and twice the same
LOGS = {"old": log(OLD), "new": log(NEW)}


def test_a_row_by_hand() -> None:
    """Six pairs with the differences 1/2, 1/2, 0, -1, 0, 0."""
    row = only(dr.compare(runs(old=log(OLD), new=log(NEW)), baseline="old", candidate="new").table)
    differences = [0.5, 0.5, 0.0, -1.0, 0.0, 0.0]
    low, high, method = stats.bootstrap_mean(differences) or (None, None, None)
    assert row == {
        "baseline": "old", "candidate": "new", "measure": RECALL, "n_pairs": 6, "only_in_baseline": 0,
        "only_in_candidate": 0, "mean_baseline": 2.5 / 6, "mean_candidate": 2.5 / 6, "delta": 0.0, "ci_low": low,
        "ci_high": high, "ci_method": method, "p": 1.0, "p_adjusted": 1.0, "wins": 2, "ties": 3, "losses": 1,
        "effect_size": 0.0, "smallest_difference": stats.smallest_difference(differences), "paired_by": "query",
        "test": "sign-flip (exact)",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "p"),
    [(["x"] * 3, ["a"] * 3, 0.25), (["x"] * 4, ["a", "a", "ab", "ab"], 0.125)],
)
def test_golden_p_values(old: list[str], new: list[str], p: float) -> None:
    """Three equal differences have p 0.25; two and two twice as large 0.125."""
    row = only(dr.compare(runs(old=log(old), new=log(new)), baseline="old").table)
    assert (row["p"], row["p_adjusted"]) == (p, p)


def test_equal_differences_have_an_interval_of_width_0() -> None:
    """And no effect size, since there is no spread to measure it by."""
    row = only(dr.compare(runs(old=log(["x"] * 3), new=log(["a"] * 3)), baseline="old").table)
    assert (row["ci_low"], row["ci_high"], row["ci_method"], row["effect_size"]) == (0.5, 0.5, "constant", None)


def test_identical_runs() -> None:
    """Delta 0, p 1, and no NaN anywhere."""
    table = dr.compare(runs([RECALL, "doc_rr@2"], old=log(NEW), new=log(NEW))).table
    assert (
        table.select("delta", "ci_low", "ci_high", "p", "p_adjusted", "ties").rows()
        == [(0.0, 0.0, 0.0, 1.0, 1.0, 6)] * 2
    )
    assert not any(table[c].is_nan().any() for c, t in table.schema.items() if t.is_float())


def test_pairs_are_found_by_id_whatever_the_order() -> None:
    """Shuffled rows give the same comparison, bit for bit."""
    mixed = {name: frame.sample(fraction=1, shuffle=True, seed=4) for name, frame in LOGS.items()}
    tables = [dr.compare(runs(**logs), baseline="old").table for logs in (LOGS, mixed)]
    assert_frame_equal(*tables, check_exact=True)


def test_hashes_that_agree_by_chance_pair_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs are found by hashes of ids, and the ids decide."""
    scores = runs(old=log(OLD), new=log(NEW[1:], start=1))
    expected = dr.compare(scores, baseline="old").table
    hashed = pairs._hashed
    monkeypatch.setattr(
        pairs, "_hashed", lambda keys, name: hashed(keys, name).with_columns(_hash=pl.lit(7, pl.UInt64))
    )
    assert_frame_equal(dr.compare(scores, baseline="old").table, expected, check_exact=True)
    assert expected["n_pairs"].item() == 5


def test_only_shared_units_are_compared() -> None:
    """Means are over the pairs; what is in one run alone is counted on its side."""
    row = only(dr.compare(runs(old=log(["ab"] * 5), new=log(["ax"] * 4, start=3)), baseline="old").table)
    assert (row["n_pairs"], row["only_in_baseline"], row["only_in_candidate"]) == (2, 3, 2)
    assert (row["mean_baseline"], row["mean_candidate"], row["delta"]) == (1.0, 0.5, -0.5)


def test_no_shared_unit_is_an_error() -> None:
    """It names examples of both sides."""
    scores = runs(old=log(["ab"] * 3), new=log(["ax"] * 3, start=10))
    with pytest.raises(dr.DataError, match=r"old has 3 scored units \(q00, q01, q02\), new has 3 .*q10"):
        dr.compare(scores, baseline="old", candidate="new")


def test_a_measure_without_pairs_is_null() -> None:
    """Where other measures have some: repeat_share has no value for a unit without hits."""
    new = log(["a"] * 3, start=3)
    table = dr.compare(
        dr.score({"old": log(["a"] * 3), "new": new}, qrels(6), [RECALL, "repeat_share@2"]), baseline="old"
    ).table
    row = only(table, measure="repeat_share@2")
    assert (row["n_pairs"], row["delta"], row["p"], row["p_adjusted"], row["test"]) == (0, None, None, None, None)
    assert only(table, measure=RECALL)["n_pairs"] == 6


def test_many_runs_against_one_or_each_other() -> None:
    """All pairs by default; with a baseline the others against it; with candidates those that are named."""
    scores = runs(a=log(OLD), b=log(NEW), c=log(["a"] * 6))

    def couples(**named: Any) -> list[tuple[str, str]]:
        return dr.compare(scores, **named).table.select("baseline", "candidate").rows()

    assert couples() == [("a", "b"), ("a", "c"), ("b", "c")]
    assert couples(baseline="b") == [("b", "a"), ("b", "c")]
    assert couples(baseline="b", candidate="c") == [("b", "c")]
    assert couples(baseline="c", candidate=["b", "a"]) == [("c", "b"), ("c", "a")]


def test_holm_over_measures_and_runs() -> None:
    """The family is all that was tested at once."""
    told = dr.compare(runs([RECALL, "doc_rr@2"], a=log(["x"] * 8), b=log(["a"] * 8), c=log(["xa"] * 8)), baseline="a")
    assert told.family == 4
    assert told.adjustment == "holm"
    assert told.table["p_adjusted"].to_list() == stats.holm(told.table["p"].to_list())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"baseline": "olld"}, "no run is called 'olld'. Did you mean \"old\""),
        ({"baseline": "old", "candidate": "older"}, "no run is called 'older'"),
        ({"candidate": "new"}, "no baseline to compare it with"),
        ({"baseline": "old", "candidate": "old"}, "both baseline and candidate"),
        ({"level": 2}, "level is 2"),
        ({"resamples": 1.5}, "resamples is 1.5"),
        ({"by": "p_adjusted"}, "p_adjusted is a column of the result"),
        ({"level": "0.95"}, "level is '0.95'"),
        ({"baseline": "old", "candidate": 3}, "no run is called 3. The runs are new, old"),
        ({"baseline": 3}, "no run is called 3"),
        ({"by": "lang"}, "neither is at hand"),
    ],
)
def test_arguments_without_meaning(arguments: dict[str, Any], says: str) -> None:
    """Each is refused by its name."""
    with pytest.raises(dr.UsageError, match=says):
        dr.compare(runs(old=log(OLD), new=log(NEW)), **arguments)


def test_an_exact_test_has_no_resamples() -> None:
    """Where all patterns are counted nothing is drawn, and print does not say so."""
    few, many = (dr.compare(runs(old=log(["x"] * n), new=log(["a"] * n)))._repr_html_() for n in (9, 30))
    assert "p: two-sided test, sign-flip (exact); adjusted by Holm over 1 test<" in few
    assert "sign-flip (Monte Carlo), 10,000 resamples, seed 0; adjusted" in many


def test_one_run_cannot_be_compared() -> None:
    """And what is no scores at all is told by its type."""
    with pytest.raises(dr.UsageError, match="there is one run"):
        dr.compare(runs(old=log(OLD)))
    with pytest.raises(dr.InputTypeError, match="this is a DataFrame"):
        dr.compare(log(OLD))  # type: ignore[arg-type]


def test_two_scores_and_two_folders(tmp_path: Path) -> None:
    """Scores of their own, in memory or in folders, compare as runs of one log do."""
    expected = dr.compare(runs(old=log(OLD), new=log(NEW)), baseline="old", candidate="new").table
    old, new = runs(old=log(OLD)), runs(new=log(NEW))
    assert_frame_equal(dr.compare(old, new).table, expected, check_exact=True)
    for name, frame in (("old", log(OLD)), ("new", log(NEW))):
        dr.score({name: frame}, qrels().sample(fraction=1, shuffle=True), RECALL, universe="hits", out=tmp_path / name)
    assert_frame_equal(dr.compare(tmp_path / "old", str(tmp_path / "new")).table, expected, check_exact=True)
    assert_frame_equal(dr.compare(tmp_path / "old", new).table, expected, check_exact=True)


def test_which_runs_of_two_scores() -> None:
    """Those that are named, else those of equal names; else it must be said."""
    first, second = runs(a=log(OLD), b=log(NEW)), runs(b=log(OLD), c=log(NEW))
    assert dr.compare(first, second).table.select("baseline", "candidate").rows() == [("b", "b")]
    named = dr.compare(first, second, baseline="a", candidate="c")
    assert named.table.select("baseline", "candidate").rows() == [("a", "c")]
    with pytest.raises(dr.UsageError, match="no name stands on both sides"):
        dr.compare(first, runs(c=log(OLD), d=log(NEW)))


SPANS = pl.DataFrame({"query_id": ["q00"], "evidence_id": ["e"], "doc_id": ["a"], "start": [0], "end": [1]})
TWOS = qrels().with_columns(relevance=2)


def score_new(**changes: Any) -> dr.Scores:
    given: dict[str, Any] = {"labels": qrels(), "measures": RECALL, "universe": "hits"} | changes
    return dr.score({"new": log(NEW)}, given.pop("labels"), given.pop("measures"), **given)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"measures": "doc_recall@2docs"}, r"measures \(doc_recall@2 only in the baseline; doc_recall@2docs only in"),
        ({"labels": qrels(39)}, r"qrels \(digest [0-9a-f]{12} and [0-9a-f]{12}\)"),
        ({"labels": qrels().with_columns(relevance=pl.lit(2))}, "qrels"),
        ({"min_relevance": 1, "labels": qrels().with_columns(relevance=pl.lit(1)), "versions": "ignore"}, "versions"),
        ({"min_relevance": 2, "on_bad_rows": "reject", "labels": TWOS}, r"min_relevance \(1 and 2\)"),
        ({"universe": "all"}, r"universe \('hits' and 'all'\)"),
        (
            {"evidence": SPANS},
            r"evidence \(digest none and",
        ),
    ],
)  # fmt: skip
def test_runs_that_were_not_scored_alike_are_refused(changes: dict[str, Any], says: str) -> None:
    """Cuts, labels, passages, relevance levels and policies: what differs is named."""
    with pytest.raises(dr.UsageError, match=rf"were not scored alike.*{says}"):
        dr.compare(runs(old=log(OLD)), score_new(**changes))


def test_versions_that_differ_are_refused() -> None:
    """Another release may count otherwise."""
    other = score_new()
    object.__setattr__(other, "versions", {**other.versions, "docrecall": "0.0.9"})
    with pytest.raises(dr.UsageError, match=r"the version of docrecall \(0\.1\.0 and 0\.0\.9\)"):
        dr.compare(runs(old=log(OLD)), other)


def test_what_only_says_how_a_log_is_written_may_differ() -> None:
    """A log that counts from 0 can be compared with one that counts from 1; grade 1 is what labels without one have."""
    from_0 = log(NEW).with_columns(pl.col("rank") - 1)
    other = dr.score({"new": from_0}, qrels().with_columns(relevance=1), RECALL, universe="hits", rank_base=0)
    assert only(dr.compare(runs(old=log(OLD)), other).table)["n_pairs"] == 6


def test_named_measures_may_be_some_of_many() -> None:
    """Measures that are named need not be all; what is missing is scored from the tables."""
    told = dr.compare(runs([RECALL, "doc_rr@2"], old=log(OLD)), score_new(), measures="doc_rr@2")
    assert told.table["measure"].to_list() == ["doc_rr@2"]


def logged(run: str, found: dict[str, list[str]]) -> pl.DataFrame:
    """Requests r0, r1, .. of each query, named for the run or not."""
    rows = [
        (f"{run}{query}-{i}", query, rank, doc)
        for query, lists in found.items()
        for i, docs in enumerate(lists)
        for rank, doc in enumerate(docs, 1)
    ]
    return pl.DataFrame(rows, schema=["request_id", "query_id", "rank", "doc_id"], orient="row")


def test_requests_are_paired_and_resampled_by_query() -> None:
    """The same requests meet; those of one query are one cluster."""
    found = {"q00": ["ab", "ax"], "q01": ["ab"], "q02": ["xy", "xa", "xb"], "q03": ["ab"]}
    other = {"q00": ["ax", "ax"], "q01": ["ax"], "q02": ["xa", "xa", "ab"], "q03": ["ab"]}
    row = only(dr.compare(runs(old=logged("", found), new=logged("", other)), baseline="old").table)
    differences, clusters = [-0.5, 0.0, -0.5, 0.5, 0.0, 0.5, 0.0], [0, 0, 1, 2, 2, 2, 3]
    assert (row["paired_by"], row["n_pairs"], row["wins"], row["losses"]) == ("request", 7, 2, 2)
    low, high, _ = stats.bootstrap_mean(differences, clusters=clusters) or (None,) * 3
    assert (row["ci_low"], row["ci_high"]) == (low, high)
    assert row["p"] == stats.sign_flip_test([-0.5, -0.5, 1.0, 0.0])


def test_pairs_without_a_cluster_are_alone() -> None:
    """All nulls are as no cluster at all."""
    talks = pl.DataFrame({"query_id": [f"q{i:02}" for i in range(30)], "talk": pl.Series([None] * 30, dtype=pl.String)})
    scores = dr.score({"old": log(OLD * 5), "new": log(NEW * 5)}, qrels(30), RECALL, queries=talks)
    assert_frame_equal(dr.compare(scores, cluster="talk").table, dr.compare(scores).table, check_exact=True)


def test_requests_that_meet_by_chance_are_paired_by_query() -> None:
    """One request of thirty in common is no pairing; ten are one, which is told, and thirty need no word."""
    old = log(["ab"] * 30).with_columns(request_id="r" + pl.col("query_id"))
    for n, paired_by, n_pairs, says in (
        (1, "query", 30, "1 of 30 requests of old and of 30 of new are the same, which may be chance"),
        (2, "query", 30, "2 of 30 requests"),
        (10, "request", 10, "10 of 30 requests of old and of 30 of new are the same, and only these are paired"),
        (30, "request", 30, ""),
    ):
        same = pl.col("query_id") < f"q{n:02}"
        new = log(["ax"] * 30).with_columns(
            request_id=pl.when(same).then("r" + pl.col("query_id")).otherwise("s" + pl.col("query_id"))
        )
        scores = runs(old=old, new=new)
        told = dr.compare(scores, baseline="old")
        assert told.table["paired_by", "n_pairs"].rows() == [(paired_by, n_pairs)]
        assert len(told.notes) == bool(says)
        assert all(says in note for note in told.notes)
        assert dr.diagnose(scores, [2], baseline="old").notes[-len(told.notes) or 99 :] == told.notes
        assert says in "".join(told._repr_html_().split("<li>"))


def test_requests_that_do_not_meet_are_paired_by_query() -> None:
    """Each query has the mean of its requests in either run; a query counts once."""
    found = {"q00": ["ab", "ax"], "q01": ["ab"]}
    other = {"q00": ["ax"], "q01": ["ax", "xy"], "q05": ["ab"]}
    told = dr.compare(runs(old=logged("o", found), new=logged("n", other)), baseline="old")
    row = only(told.table)
    assert (row["paired_by"], row["n_pairs"], row["only_in_candidate"]) == ("query", 2, 1)
    assert (row["mean_baseline"], row["mean_candidate"]) == (0.875, 0.375)
    flip = only(told.flips, query_id="q00")
    assert (flip["change"], flip["value_baseline"], flip["docs_baseline"]) == ("lost", 0.75, ["a", "b"])


def test_weights_weigh_pairs() -> None:
    """The mean, the interval and the test are of weighed differences; weights on another scale are the same weights."""
    weights = [1.0, 2.0, 4.0, 8.0, 1.0, 1.0]
    queries = pl.DataFrame({"query_id": [f"q{i:02}" for i in range(6)], "weight": weights})
    huge = queries.with_columns(pl.col("weight") * 2.0**300)
    differences = np.array([0.5, 0.5, 0.0, -1.0, 0.0, 0.0])
    old = dr.score({"old": log(OLD)}, qrels(), RECALL, queries=queries)
    row = only(dr.compare(old, dr.score({"new": log(NEW)}, qrels(), RECALL, queries=huge)).table)
    assert row["delta"] == pytest.approx(np.average(differences, weights=weights))
    low, high, _ = stats.bootstrap_mean(differences, weights=weights) or (None,) * 3
    assert (row["ci_low"], row["ci_high"]) == (low, high)
    assert row["p"] == stats.sign_flip_test(differences * weights)
    other = queries.with_columns(weight=pl.lit(2.0))
    with pytest.raises(dr.DataError, match="pairs have another weight in either run"):
        dr.compare(old, dr.score({"new": log(NEW)}, qrels(), RECALL, queries=other))
    with pytest.raises(dr.DataError, match="weights in one of the runs alone"):
        dr.compare(old, dr.score({"new": log(NEW)}, qrels(), RECALL, queries=queries.drop("weight")))


def test_flips() -> None:
    """What was gained and lost, and what keeps its value by another document, with the documents, best first."""
    flips = dr.compare(runs(old=log(OLD), new=log(NEW)), baseline="old").flips
    assert flips.columns == [
        "baseline", "candidate", "measure", "query_id", "change", "value_baseline", "value_candidate", "docs_baseline",
        "docs_candidate",
    ]  # fmt: skip
    assert flips.select("query_id", "change", "docs_baseline", "docs_candidate").rows() == [
        ("q00", "gained", ["a"], ["a", "b"]),
        ("q01", "gained", [], ["a"]),
        ("q03", "lost", ["a", "b"], []),
        ("q02", "other documents", ["a"], ["b"]),
    ]


@pytest.mark.parametrize(
    ("measure", "docs"),
    [
        ("doc_recall@1", ["a"]),
        ("doc_recall@3", ["a"]),
        ("doc_recall@2docs", ["a", "b"]),
        ("doc_recall@30tokens", ["a"]),
        ("doc_recall@40tokens", ["a", "b"]),
        ("doc_recall@context", ["b"]),
        ("doc_recall@all", ["a", "b"]),
    ],
)
def test_documents_of_flips_are_those_inside_the_cut(measure: str, docs: list[str]) -> None:
    """Under every kind of cut."""
    full = log(["aaab"]).with_columns(n_tokens=10, in_context=pl.col("doc_id") == "b")
    none = log(["x"]).with_columns(n_tokens=10, in_context=True)
    flips = dr.compare(runs(measure, old=full, new=none), baseline="old").flips
    assert only(flips)["docs_baseline"] == docs
    assert only(flips)["change"] == "lost"


def test_flips_of_written_results(tmp_path: Path) -> None:
    """They have values and no documents, so only changed values are told."""
    dr.score({"old": log(OLD), "new": log(NEW)}, qrels(6), RECALL, out=tmp_path / "out")
    flips = dr.compare(tmp_path / "out", baseline="old").flips
    assert flips["change"].to_list() == ["gained", "gained", "lost"]
    assert flips["docs_baseline"].to_list() == [None] * 3


def sliced(**arguments: Any) -> dr.Comparison:
    n = 40
    rng = np.random.default_rng(5)
    docs = [["ab", "ax", "xy"][i] for i in rng.integers(0, 3, n)]
    better = ["ab" if i < 25 else d for i, d in enumerate(docs)]
    lang = ["en"] * 25 + ["de"] * 10 + ["fr"] * 5
    queries = pl.DataFrame(
        {"query_id": [f"q{i:02}" for i in range(n)], "lang": lang, "talk": [i // 2 for i in range(n)]}
    )
    scores = dr.score({"old": log(docs), "new": log(better)}, qrels(), RECALL, queries=queries)
    return dr.compare(scores, baseline="old", **arguments)


def test_slices_are_compared_each_for_itself() -> None:
    """Benjamini-Hochberg over the slices that are judged; the others are shown with their n."""
    told = sliced(by="lang", min_n=10)
    assert told.table.columns[:5] == ["baseline", "candidate", "measure", "lang", "n_pairs"]
    assert told.table.select("lang", "n_pairs").rows() == [("de", 10), ("en", 25), ("fr", 5)]
    assert (told.adjustment, told.family) == ("benjamini-hochberg", 2)
    ps = told.table["p"].to_list()
    assert ps[0] == 1.0
    assert ps[1] < 0.001
    assert ps[2] is None
    assert told.table["p_adjusted"].to_list() == stats.benjamini_hochberg(ps)
    few = only(told.table, lang="fr")
    assert (few["delta"], few["ci_low"], few["test"]) == (0.0, None, None)


def test_clusters_of_pairs() -> None:
    """Pairs of one conversation are flipped and resampled together."""
    whole, together = only(sliced().table), only(sliced(cluster="talk").table)
    assert whole["delta"] == together["delta"]
    assert (whole["ci_low"], whole["smallest_difference"]) != (together["ci_low"], together["smallest_difference"])


def test_units_alone_are_counted_in_their_slice() -> None:
    """Also in a slice that has no pair."""
    queries = pl.DataFrame({"query_id": [f"q{i:02}" for i in range(4)], "lang": ["en", "en", "de", "fr"]})
    given = {"old": log(["a", "a", "a"]), "new": log(["a", "a"]).vstack(log(["b"], start=3))}
    scores = dr.score(given, qrels(), RECALL, queries=queries, universe="hits")
    table = dr.compare(scores, baseline="old", by="lang", min_n=1).table
    counts = table.select("lang", "n_pairs", "only_in_baseline", "only_in_candidate").rows()
    assert counts == [("de", 0, 1, 0), ("en", 2, 0, 0), ("fr", 0, 0, 1)]


def test_slices_of_folders(tmp_path: Path) -> None:
    """The table of queries is given to compare; a column of requests cannot part pairs of queries."""
    queries = pl.DataFrame({"query_id": [f"q{i:02}" for i in range(6)], "lang": ["en", "de"] * 3})
    for name, docs in (("old", OLD), ("new", NEW)):
        dr.score(
            {name: logged(name, {f"q{i:02}": [d] for i, d in enumerate(docs)})}, qrels(6), RECALL, out=tmp_path / name
        )
    folders = tmp_path / "old", tmp_path / "new"
    table = dr.compare(*folders, by="lang", queries=queries, min_n=1).table
    assert table.select("lang", "n_pairs", "paired_by").rows() == [("de", 3, "query"), ("en", 3, "query")]
    requests = pl.DataFrame({"request_id": ["oldq00-0"], "query_id": ["q00"], "channel": ["web"]})
    with pytest.raises(dr.UsageError, match="channel is a column of requests, and these runs are paired by query"):
        dr.compare(*folders, by="channel", requests=requests)


def test_agrees_with_scipy() -> None:
    """On forty pairs p and interval are those of scipy's permutation test and bootstrap, within what chance allows."""
    rng = np.random.default_rng(1)
    old, new = ([["x", "a", "ba"][i] for i in rng.integers(0, 3, 40)] for _ in range(2))
    scores = runs("doc_recall@3", old=log(old), new=log(new))
    row = only(dr.compare(scores, baseline="old", resamples=20_000).table)
    table = scores.per_query.pivot("run_id", index="query_id", values="doc_recall@3")
    values = (table["old"].to_numpy(), table["new"].to_numpy())
    d = values[1] - values[0]
    expected = scipy_stats.permutation_test(
        (d,), lambda x, axis: x.mean(axis=axis), permutation_type="samples", n_resamples=20_000, rng=2
    )
    assert row["p"] == pytest.approx(expected.pvalue, abs=0.02)
    interval = scipy_stats.bootstrap((d,), np.mean, method="percentile", n_resamples=20_000, rng=2).confidence_interval
    told = only(dr.compare(scores, baseline="old", method="percentile", resamples=20_000).table)
    assert (told["ci_low"], told["ci_high"]) == pytest.approx((interval.low, interval.high), abs=0.015)


def test_the_number_of_threads_does_not_show() -> None:
    """The same seed gives the same bits with one thread and with several, in processes of their own."""
    program = (
        "import docrecall as dr, polars as pl\n"
        f"hits = '{ROOT}/data/topics/hits'\n"
        f"s = dr.score(hits, '{ROOT}/data/topics/qrels.parquet', ['doc_recall@3', 'doc_ndcg@10docs'])\n"
        "t = dr.compare(s, baseline='bm25-w32', seed=9).table\n"
        "print([x.hex() if isinstance(x, float) else x for row in t.rows() + s.summary().rows() for x in row])\n"
    )
    found = set()
    for threads in ("1", "4"):
        environment = {"POLARS_MAX_THREADS": threads, "OMP_NUM_THREADS": threads, "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
        )
        found.add(done.stdout)
    assert len(found) == 1


def test_shown_as() -> None:
    """The comparison says what it holds, in short."""
    assert repr(sliced()) == "<Comparison: 1 pairs of runs, 1 measures, 1 tests>"


def test_rounding_is_no_difference() -> None:
    """Three fifths over three are not one fifth to the last bit: a run that does not differ has p = 1 all the same."""
    labels = pl.DataFrame({"query_id": [f"q{i:02}" for i in range(30) for _ in range(5)], "doc_id": list("abcde") * 30})
    once = log(["a"] * 30)
    thrice = pl.concat([once.with_columns(request_id=pl.col("query_id") + f"-{r}") for r in range(3)])
    found = dr.compare(dr.score(thrice, labels, "doc_recall@1"), dr.score(once, labels, "doc_recall@1")).table
    row = only(found.select("delta", "ci_low", "ci_high", "p", "wins", "ties", "losses"))
    assert row == {"delta": 0.0, "ci_low": 0.0, "ci_high": 0.0, "p": 1.0, "wins": 0, "ties": 30, "losses": 0}


def test_requests_by_number_and_by_text_are_paired_by_query() -> None:
    """They name nothing in common, as ids of another run would not."""
    by_number = log(["a", "x"]).with_columns(request_id=pl.Series([1, 2]))
    by_text = by_number.with_columns(pl.col("request_id").cast(pl.String))
    one, other = (dr.score(frame, qrels(2), "doc_recall@1") for frame in (by_number, by_text))
    assert dr.compare(one, other).table["paired_by", "n_pairs"].rows() == [("query", 2)]


@pytest.mark.parametrize("other", [pl.Int32, pl.Float64, pl.Null])
def test_slices_of_both_sides_in_types_of_one_kind(other: Any) -> None:
    """Whole numbers of another width, decimals and nothing at all are slices like those of the baseline."""
    lang = pl.DataFrame({"query_id": ["q00", "q01"], "lang": [1, 2]})
    theirs = lang.with_columns(pl.lit(None).alias("lang") if other == pl.Null else pl.col("lang").cast(other))
    one, two = (dr.score(log(["a", "x"]), qrels(2), "doc_recall@1", queries=table) for table in (lang, theirs))
    table = dr.compare(one, two, by="lang").table
    assert table.filter(pl.col("n_pairs") > 0)["lang"].to_list() == [1, 2]


def test_slices_of_both_sides_of_other_kinds_are_refused() -> None:
    """Numbers and text are not made one."""
    lang = pl.DataFrame({"query_id": ["q00", "q01"], "lang": [1, 2]})
    theirs = lang.with_columns(pl.col("lang").cast(pl.String))
    one, two = (dr.score(log(["a", "x"]), qrels(2), "doc_recall@1", queries=table) for table in (lang, theirs))
    with pytest.raises(dr.DataError, match="lang is Int64 on the side of the baseline and String on that"):
        dr.compare(one, two, by="lang")


def test_a_candidate_named_twice_is_one_of_the_family() -> None:
    """Naming it again adjusts nothing; naming none is refused."""
    scores = runs(**LOGS)
    assert_frame_equal(
        dr.compare(scores, baseline="old", candidate=["new", "new"]).table,
        dr.compare(scores, baseline="old", candidate="new").table,
    )
    with pytest.raises(dr.UsageError, match="names no run"):
        dr.compare(scores, baseline="old", candidate=[])


@pytest.mark.parametrize("name", ["_at", "_slice", "_tag"])
def test_columns_may_have_any_name(name: str) -> None:
    """Names that are used inside are not taken from anybody."""
    table = pl.DataFrame({"query_id": ["q00", "q01"], name: ["x", "y"]})
    scores = dr.score({"old": log(["a", "x"]), "new": log(["x", "a"])}, qrels(2), "doc_recall@1", queries=table)
    assert scores.summary(by=name).height == dr.compare(scores, by=name).table.height * 2 == 4
    assert scores.summary(cluster=name)["n"].to_list() == [2, 2]
