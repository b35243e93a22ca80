"""Gates, by hand: floors, drops with their intervals, data, and what there is to compare with."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from docrecall.nightly.gate import reason
from tests.nightly.nights import DAY, command, deliver, hits, job, qrels, run, store_of
from tests.small import write

DROP = '[baseline]\nagainst = "{against}"\n{more}[[gates]]\nmeasure = "doc_recall@1"\nmax_drop = 0.1\n'
LAST = DROP.format(against="last_good", more="")


def before(n: int) -> date:
    return DAY - timedelta(days=n)


def gates(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(g["gate"], g["status"]) for g in told["gates"]]


@pytest.mark.parametrize(("least", "status"), [(0.8, "passed"), (0.800001, "failed"), (0.3, "passed")])
def test_floor(least: float, status: str, tmp_path: Path) -> None:
    """A mean of 0.8 reaches a floor of 0.8, and not one above it."""
    told = run(job(tmp_path, more=f'[[gates]]\nmeasure = "doc_recall@1"\nmin = {least}\n'))
    assert gates(told) == [("min", status)]
    assert told["exit_code"] == (status == "failed")
    assert told["gates"][0]["value"] == 0.8


def test_a_failed_gate_publishes_and_stays_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The number is published, the exit code is 1, now and when the same night is run again; all forms say the same."""
    config = job(tmp_path, more='[[gates]]\nmeasure = "doc_recall@1"\nmin = 0.9\n[outputs]\njson = "out.json"\n')
    for outcome in ("published", "unchanged"):
        assert command(config, "--date", str(DAY), "--format", "json") == 1
        out, err = capsys.readouterr()
        told = json.loads(out)
        assert (told["exit_code"], told["nights"][0]["outcome"]) == (1, outcome)
        assert "1 of 1 gates failed: doc_recall@1 of run is 0.8000, below 0.9" in told["reason"]
        assert err.splitlines()[-1] == f"docrecall: {told['reason']}"
        assert json.loads((tmp_path / "out.json").read_text()) == told


def test_first_night_says_what_is_not_judged(tmp_path: Path) -> None:
    """Without a night before it a drop cannot be judged; the floor is, and the reason says both."""
    told = run(job(tmp_path, more=LAST + "min = 0.5\n"))
    assert gates(told) == [("min", "passed"), ("max_drop", "not_judged")]
    assert told["exit_code"] == 0
    assert told["reason"].endswith("1 of 2 gates passed; 1 not judged: no night before it passed its gates")


def test_a_sure_drop_fails_and_is_not_the_next_baseline(tmp_path: Path) -> None:
    """From 90 to 50 of 100 queries is surely more than 0.1; the night after is compared with the last good one."""
    config = job(tmp_path, {before(2): 90, before(1): 50, DAY: 89}, LAST, n=100)
    run(config, before(2))
    told = run(config, before(1))
    assert gates(told) == [("max_drop", "failed")]
    gate = told["gates"][0]
    assert (gate["baseline"], gate["delta"], gate["n_pairs"]) == (str(before(2)), -0.4, 100)
    assert gate["ci_high"] < -0.1
    assert "surely a drop of more than 0.1" in told["reason"]
    after = run(config)
    assert (gates(after), after["gates"][0]["baseline"]) == ([("max_drop", "passed")], str(before(2)))


def test_a_drop_that_may_be_chance_passes_and_says_so(tmp_path: Path) -> None:
    """From 8 to 6 of 10 is a drop of 0.2, and two queries that differ are no evidence of one."""
    config = job(tmp_path, {before(1): 8, DAY: 6}, LAST)
    run(config, before(1))
    told = run(config)
    assert gates(told) == [("max_drop", "passed")]
    assert "perhaps a drop of more than 0.1, which may be chance" in told["gates"][0]["why"]


def test_five_units_that_agree_are_too_few(tmp_path: Path) -> None:
    """All of five queries fell from 1 to 0: an interval of width 0, and no evidence at 95 % all the same."""
    config = job(tmp_path, {before(1): 5, DAY: 0}, LAST, n=5)
    run(config, before(1))
    assert gates(run(config)) == [("max_drop", "passed")]


def test_nights_of_other_queries_are_two_samples(tmp_path: Path) -> None:
    """Where fewer than nine in ten queries are asked on both nights, means are compared and not pairs."""
    config = job(tmp_path, {before(1): 90}, LAST, n=100)
    config.write_text(config.read_text().replace('"all"', '"hits"'))
    run(config, before(1))
    asked = hits(30, n=100).tail(80)
    deliver(tmp_path, DAY, asked)
    told = run(config)
    gate = told["gates"][0]
    assert (gate["status"], gate["n_pairs"]) == ("failed", None)
    assert gate["delta"] == pytest.approx(10 / 80 - 0.9)


def test_requests_of_two_nights_are_two_samples(tmp_path: Path) -> None:
    """Requests of other nights are other requests, also of the same queries."""
    config = job(tmp_path, {}, LAST, n=100)
    for day, found in ((before(1), 90), (DAY, 40)):
        deliver(tmp_path, day, hits(found, n=100, request_id=[f"{day}/{k}" for k in range(100)]))
        told = run(config, day)
    assert told["gates"][0]["n_pairs"] is None
    assert gates(told) == [("max_drop", "failed")]


def test_median_of_the_last_good_nights(tmp_path: Path) -> None:
    """Of 60, 95, 90 and 50 the last three have the median 90; its night is the baseline."""
    found = {before(4): 60, before(3): 95, before(2): 90, before(1): 50, DAY: 88}
    config = job(tmp_path, found, n=100)
    for day in list(found)[:4]:
        run(config, day)
    config.write_text(config.read_text() + DROP.format(against="median", more="nights = 3\n"))
    told = run(config)
    assert told["gates"][0]["baseline"] == str(before(2))
    assert told["gates"][0]["delta"] == pytest.approx(-0.02)


def test_another_run_of_the_same_night(tmp_path: Path) -> None:
    """The candidate is compared with the fixed run pair by pair; the fixed run is not compared with itself."""
    more = DROP.format(against="run", more='run = "old"\n')
    config = job(tmp_path, {}, more, n=100)
    for name, found in (("old", 90), ("new", 30)):
        deliver(tmp_path, DAY, hits(found, n=100, run_id=[name] * 100), f"{name}.parquet")
    told = run(config)
    assert [(g["run_id"], g["baseline"], g["status"]) for g in told["gates"]] == [("new", "old", "failed")]
    assert told["gates"][0]["n_pairs"] == 100


def test_other_labels_are_no_baseline(tmp_path: Path) -> None:
    """When the labels changed since, the drop is not judged and the reason says what to do."""
    config = job(tmp_path, {before(1): 8, DAY: 0}, LAST)
    run(config, before(1))
    write(tmp_path / "labels" / "qrels.parquet", qrels().head(9))
    told = run(config)
    assert gates(told) == [("max_drop", "not_judged")]
    assert f"labels changed after {before(1)}: run that night again to compare with it" in told["reason"]
    run(config, before(1))
    assert gates(run(config)) == [("max_drop", "failed")]


def test_a_later_night_is_no_baseline(tmp_path: Path) -> None:
    """A backfilled night is compared with what comes before it in time, not with what was run before it."""
    config = job(tmp_path, {before(1): 2, DAY: 8}, LAST)
    run(config)
    assert gates(run(config, before(1))) == [("max_drop", "not_judged")]


def test_a_run_or_value_that_is_missing_fails(tmp_path: Path) -> None:
    """A gate on a run that the night does not have fails; so does one on a mean that is null."""
    config = job(tmp_path, more='[[gates]]\nmeasure = "doc_recall@1"\nrun = "prod"\nmin = 0.1\n')
    told = run(config)
    assert gates(told) == [("value", "failed")]
    assert "doc_recall@1 of prod has no value" in told["reason"]


DATA = [
    ("max_unlabelled", {"qrels": qrels().head(9)}, 1 / 10, ""),
    ("max_no_hits", {"qrels": qrels(12)}, 2 / 12, ""),
    ("max_rejected", {"hits": hits(8, rank=[0] + [1] * 9)}, 1 / 10, "on_bad_rows = 'reject'\n"),
]


@pytest.mark.parametrize(("name", "tables", "share", "options"), DATA)
@pytest.mark.parametrize("fits", [True, False])
def test_shares(
    name: str, tables: dict[str, pl.DataFrame], share: float, options: str, fits: bool, tmp_path: Path
) -> None:
    """A share of units fails above its bound, and passes at it."""
    bound = share if fits else share - 0.01
    config = job(tmp_path, more=f"{options}[data]\n{name} = {bound}\n")
    if "qrels" in tables:
        write(tmp_path / "labels" / "qrels.parquet", tables["qrels"])
    if "hits" in tables:
        deliver(tmp_path, DAY, tables["hits"])
    told = run(config)
    assert gates(told) == [(name, "passed" if fits else "failed")]
    assert told["gates"][0]["value"] == pytest.approx(share)


def test_stale_and_version_mismatch(tmp_path: Path) -> None:
    """Labels of versions that the index no longer serves, and hits at other versions, are shares too."""
    config = job(tmp_path, {}, "[data]\nmax_stale = 0.05\nmax_version_mismatch = 0.05\n")
    config.write_text(config.read_text().replace("[score]", 'documents = "labels/documents.parquet"\n[score]'))
    versions = ["v1"] * 9 + ["v0"]
    write(tmp_path / "labels" / "qrels.parquet", qrels().with_columns(doc_version=pl.Series(versions)))
    served = [f"d{k}" for k in range(10)] + ["x", "d0"]
    index = pl.DataFrame({"doc_id": served, "doc_version": ["v1"] * 11 + ["v2"]})
    write(tmp_path / "labels" / "documents.parquet", index)
    deliver(tmp_path, DAY, hits(8, doc_version=["v2"] + ["v1"] * 9))
    told = run(config)
    assert [(g["gate"], g["status"], g["value"]) for g in told["gates"]] == [
        ("max_stale", "failed", 0.1),
        ("max_version_mismatch", "failed", 0.1),
    ]


def test_rows_against_the_median_of_nights_before(tmp_path: Path) -> None:
    """Half of a log is caught by its rows, though its mean is fine; a first night has nothing to be compared with."""
    bounds = "[data]\nmin_rows = 0.8\nmax_rows = 1.5\n"
    config = job(tmp_path, {before(2): 10, before(1): 10}, bounds)
    assert gates(run(config, before(2))) == [("min_rows", "not_judged"), ("max_rows", "not_judged")]
    assert gates(run(config, before(1))) == [("min_rows", "passed"), ("max_rows", "passed")]
    deliver(tmp_path, DAY, hits(10).head(5))
    told = run(config)
    assert gates(told) == [("min_rows", "failed"), ("max_rows", "passed")]
    assert "5 rows of hits are 0.50 of the median of the 2 nights before, outside the bound of 0.8" in told["reason"]


def test_a_new_gate_judges_what_is_published(tmp_path: Path) -> None:
    """A gate that is added later needs no new scores: the run is nothing to do, and the gate speaks."""
    config = job(tmp_path)
    run(config)
    config.write_text(config.read_text() + '[[gates]]\nmeasure = "doc_recall@1"\nmin = 0.9\n')
    told = run(config)
    assert (told["outcome"], gates(told)) == ("unchanged", [("min", "failed")])
    history = pl.read_parquet(store_of(config).history)
    assert history["passed"].to_list() == [False, False]


def test_reason_without_gates() -> None:
    """A job without gates says so."""
    assert reason([]) == "no gates are set"


FIXED = DROP.format(against="night", more=f"night = {DAY - timedelta(days=3)}\n")


def test_a_fixed_night_stays_the_baseline(tmp_path: Path) -> None:
    """Small drops from night to night add up against a fixed one, which itself has nothing to be judged by."""
    config = job(tmp_path, {before(3): 95, before(2): 88, before(1): 81, DAY: 70}, FIXED, n=100)
    told = [run(config, before(3)), run(config, before(2)), run(config, before(1)), run(config)]
    assert [gates(t)[0][1] for t in told] == ["not_judged", "passed", "passed", "failed"]
    assert "this night is the baseline" in told[0]["reason"]
    assert told[3]["gates"][0]["baseline"] == str(before(3))


def test_a_fixed_night_that_is_not_there(tmp_path: Path) -> None:
    """Not published, or scored with other labels: the gate fails, because it would never be judged again."""
    config = job(tmp_path, {before(3): 8, DAY: 8}, FIXED)
    told = run(config)
    assert gates(told) == [("max_drop", "failed")]
    assert f"the baseline, {before(3)}, is not published" in told["reason"]
    run(config, before(3))
    write(tmp_path / "labels" / "qrels.parquet", qrels().with_columns(relevance=2))
    told = run(config)
    assert gates(told) == [("max_drop", "failed")]
    assert "labels changed since the baseline" in told["reason"]


def test_a_measure_that_is_new_is_told(tmp_path: Path) -> None:
    """There is a good night before, and it has no such value: that is what the reason says."""
    config = job(tmp_path, {before(1): 8, DAY: 8}, LAST)
    run(config, before(1))
    config.write_text(
        config.read_text().replace('"doc_rr@3"]', '"doc_rr@3", "doc_hit@1"]').replace('recall@1"\nmax', 'hit@1"\nmax')
    )
    told = run(config)
    assert gates(told) == [("max_drop", "not_judged")]
    assert f"doc_hit@1 of run has no value on {before(1)}" in told["reason"]


def test_a_night_without_a_number_is_not_fine(tmp_path: Path) -> None:
    """No unit is scored: that fails, gates or no gates."""
    config = job(tmp_path)
    write(tmp_path / "labels" / "qrels.parquet", qrels().with_columns(relevance=0))
    told = run(config)
    assert gates(told) == [("scored", "failed")]
    assert told["exit_code"] == 1
    assert "run: none of its 10 units was scored" in told["reason"]


def test_three_requests_are_no_evidence(tmp_path: Path) -> None:
    """A bootstrap of three values of either night excludes chance, and an exact test of them cannot."""
    for n, status in ((3, "passed"), (5, "failed")):
        config = job(tmp_path / str(n), {}, LAST, n=5)
        for day, found in ((before(1), n), (DAY, 0)):
            deliver(tmp_path / str(n), day, hits(found, n=n, request_id=[f"{day}-{k}" for k in range(n)]))
            told = run(config, day)
        assert gates(told) == [("max_drop", status)]


def test_a_run_that_is_gone_is_told(tmp_path: Path) -> None:
    """Runs come and go: a gate on each run says that one of the night before is not there; one by name fails."""
    named = LAST[LAST.index("[[") :].replace("max_drop = 0.1", 'run = "b"\nmin = 0.1')
    config = job(tmp_path, {}, LAST + named)
    for day, runs in ((before(1), "ab"), (DAY, "a")):
        deliver(tmp_path, day, pl.concat([hits(8, run_id=[run_id] * 10) for run_id in runs]))
        told = run(config, day)
    assert gates(told) == [("max_drop", "passed"), ("max_drop", "not_judged"), ("value", "failed")]
    assert f"b was there on {before(1)} and is not tonight" in told["reason"]
