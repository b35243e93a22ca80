"""Slices of a night: counted, added up, and judged with a bound on the share of false alarms."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import docrecall as dr
from docrecall.errors import UsageError
from docrecall.nightly.numbers import Drop, p_below
from docrecall.nightly.total import add_nights
from docrecall.stats import Sample
from docrecall.stats.student import student_below
from tests.nightly.nights import DAY, command, deliver, hits, job, run, store_of
from tests.small import SECRET, write

N = 200
BEFORE = DAY - timedelta(days=1)


def sliced(folder: Path, nights: dict[date, dict[str, int]], gate: str, sizes: dict[str, int] | None = None) -> Path:
    """A job with a column `lang`: of each language so many queries find their document. Sizes: 50 each."""
    langs = sizes or dict.fromkeys(("de", "en", "fr", "it"), 50)
    names = [(lang, k) for lang, n in langs.items() for k in range(n)]
    config = job(folder, {}, gate)
    slices = 'queries = "labels/queries.parquet"\n[score]\nslices = ["lang"]'
    config.write_text(config.read_text().replace("[score]", slices))
    ids = [f"{lang}{k}" for lang, k in names]
    labels = {"query_id": ids, "lang": [lang for lang, _ in names], "query": [SECRET] * len(ids)}
    write(folder / "labels" / "queries.parquet", pl.DataFrame(labels))
    write(folder / "labels" / "qrels.parquet", pl.DataFrame({"query_id": ids, "doc_id": ids}))
    for day, found in nights.items():
        docs = [f"{lang}{k}" if k < found.get(lang, 45) else "x" for lang, k in names]
        deliver(folder, day, pl.DataFrame({"query_id": ids, "rank": [1] * len(ids), "doc_id": docs}))
    return config


def gate(told: dict[str, Any]) -> tuple[str, str | None]:
    (found,) = told["gates"]
    return found["status"], found["slice_value"]


FLOOR = '[[gates]]\nmeasure = "doc_recall@1"\nby = "lang"\nmin = 0.8\n'
DROP = '[baseline]\nagainst = "last_good"\n[[gates]]\nmeasure = "doc_recall@1"\nby = "lang"\nmax_drop = 0.1\n'


def test_worst_slice_below_the_floor(tmp_path: Path) -> None:
    """One language of four is surely below the floor, though the whole run is above it."""
    told = run(sliced(tmp_path, {DAY: {"fr": 25, "de": 50, "en": 50, "it": 50}}, FLOOR))
    assert told["runs"][0]["measures"]["doc_recall@1"]["mean"] > 0.8
    assert gate(told) == ("failed", "fr")
    assert "doc_recall@1 of run is worst in lang=fr: 0.5000, surely below 0.8" in told["reason"]


def test_a_slice_a_little_below_the_floor_may_be_chance(tmp_path: Path) -> None:
    """39 of 50 is below 0.8, and no evidence of it."""
    told = run(sliced(tmp_path, {DAY: {"fr": 39}}, FLOOR))
    assert gate(told) == ("passed", "fr")
    assert "not surely below 0.8" in told["gates"][0]["why"]


def test_small_slices_are_not_judged_and_counted(tmp_path: Path) -> None:
    """A slice with fewer than min_n values cannot fail a gate; how many are left aside is said."""
    config = sliced(tmp_path, {DAY: {"fr": 0}}, FLOOR, {"de": 50, "fr": 29})
    told = run(config)
    assert gate(told)[0] == "passed"
    assert "1 of 2 slices by lang are too small to judge" in told["gates"][0]["why"]
    config.write_text(config.read_text() + "min_n = 29\n")
    assert gate(run(config)) == ("failed", "fr")


def test_no_slice_is_large_enough(tmp_path: Path) -> None:
    """Where all slices are small nothing is judged."""
    assert gate(run(sliced(tmp_path, {DAY: {}}, FLOOR, {"de": 5, "fr": 5}))) == ("not_judged", None)


def test_worst_drop(tmp_path: Path) -> None:
    """A slice that fell from 45 to 20 of 50 fails; the same gate has nothing to say on the first night."""
    config = sliced(tmp_path, {BEFORE: {}, DAY: {"it": 20}}, DROP)
    assert gate(run(config, BEFORE)) == ("not_judged", None)
    told = run(config)
    assert gate(told) == ("failed", "it")
    assert told["gates"][0]["value"] == pytest.approx(-0.5)
    assert told["gates"][0]["baseline"] == str(BEFORE)


def test_many_slices_do_not_raise_false_alarms(tmp_path: Path) -> None:
    """Of 60 slices at the floor some fall below it by chance; none of them is called sure."""
    import numpy as np  # noqa: PLC0415

    rng = np.random.default_rng(5)
    found = {f"s{k:02}": int(rng.binomial(40, 0.8)) for k in range(60)}
    told = run(sliced(tmp_path, {DAY: found}, FLOOR, dict.fromkeys(found, 40)))
    below = sum(n < 32 for n in found.values())
    assert below > 15
    assert gate(told)[0] == "passed"


def test_slices_are_published_and_added_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The history has a row per slice, and two nights add up slice by slice to what scoring both gives."""
    config = sliced(tmp_path, {BEFORE: {"fr": 10}, DAY: {"fr": 30}}, FLOOR)
    for day in (BEFORE, DAY):
        run(config, day)
    history = pl.read_parquet(store_of(config).history).filter(measure="doc_recall@1", date=DAY)
    assert history.select("slice", "slice_value", "n").rows() == [
        (None, None, N), ("lang", "de", 50), ("lang", "en", 50), ("lang", "fr", 50), ("lang", "it", 50),
    ]  # fmt: skip
    both = [
        pl.read_parquet(tmp_path / "logs" / f"date={day}" / "part-0.parquet").with_columns(request_id=pl.lit(str(day)))
        for day in (BEFORE, DAY)
    ]
    labels = tmp_path / "labels"
    scores = dr.score(
        pl.concat(both), labels / "qrels.parquet", ["doc_recall@1", "doc_rr@3"], queries=labels / "queries.parquet"
    )
    columns = ["run_id", "lang", "measure", "mean", "n", "n_null"]
    wanted = scores.summary("lang").sort("run_id", "lang", "measure").select(columns)
    found = add_nights(store_of(config), [BEFORE, DAY], 0.95, "lang").sort("run_id", "lang", "measure").select(columns)
    assert found.rows() == wanted.rows()
    with pytest.raises(UsageError, match="has no slices by 'land'; it has lang"):
        add_nights(store_of(config), [DAY], 0.95, "land")
    assert command("total", config, "--since", str(BEFORE), "--until", str(DAY), "--by", "lang") == 0
    assert "run      fr" in capsys.readouterr().out


def test_a_slice_column_that_is_not_there(tmp_path: Path) -> None:
    """It is exit code 2, with the columns that there are, and nothing is published."""
    config = sliced(tmp_path, {DAY: {}}, FLOOR)
    config.write_text(config.read_text().replace('["lang"]', '["land"]').replace('by = "lang"', 'by = "land"'))
    with pytest.raises(UsageError, match='have a column land\\. Did you mean "lang"'):
        run(config)
    assert store_of(config).read(DAY) is None


def test_slices_are_compared_pair_by_pair(tmp_path: Path) -> None:
    """9 of 50 queries of one slice lose their document: that is sure of pairs, and may be chance of two samples."""
    drop = DROP.replace("max_drop = 0.1", "max_drop = 0.02")
    config = sliced(tmp_path, {BEFORE: {}, DAY: {"it": 36}}, drop)
    run(config, BEFORE)
    (found,) = run(config)["gates"]
    assert (found["status"], found["slice_value"], found["n"], found["n_pairs"]) == ("failed", "it", 50, 50)
    assert found["delta"] == pytest.approx(-0.18)
    assert found["ci_low"] < found["delta"] < found["ci_high"] < 0
    old, new = (Sample.of([1.0] * n + [0.0] * (50 - n)) for n in (45, 36))
    alone = Drop.of_samples(old, new, unit_range=True)
    assert alone is not None
    assert 4 * (alone.p_below(-0.02) or 0) > 0.05


def test_a_night_that_asks_other_queries_is_two_samples(tmp_path: Path) -> None:
    """Without the same queries on both sides there are no pairs, and slices are judged all the same."""
    config = sliced(tmp_path, {BEFORE: {}, DAY: {"it": 20}}, DROP)
    config.write_text(config.read_text().replace('"all"', '"hits"'))
    half = pl.read_parquet(tmp_path / "logs" / f"date={BEFORE}" / "part-0.parquet").gather_every(2)
    deliver(tmp_path, BEFORE, half)
    run(config, BEFORE)
    (found,) = run(config)["gates"]
    assert (found["status"], found["slice_value"], found["n_pairs"]) == ("failed", "it", None)


def test_two_queries_are_no_evidence(tmp_path: Path) -> None:
    """Both queries of each slice lose their document. No test of two can tell, nor of four in the whole night."""
    gates = DROP.replace("max_drop = 0.1", "max_drop = 0.1\nmin_n = 2\n") + DROP[DROP.index("[[") :].replace(
        'by = "lang"\n', ""
    )
    config = sliced(tmp_path, {BEFORE: {}, DAY: {"de": 0, "en": 0}}, gates, {"de": 2, "en": 2})
    run(config, BEFORE)
    assert [g["status"] for g in run(config)["gates"]] == ["passed", "passed"]


def test_a_slice_of_requests_under_queries_is_two_samples(tmp_path: Path) -> None:
    """A query that is the mean of its requests is in several slices of requests: such slices have no pairs."""
    gate = DROP.replace("lang", "device")
    config = job(tmp_path, {}, gate, n=60)
    text = config.read_text().replace("[score]", 'requests = "asked/{date}.parquet"\n[score]\nslices = ["device"]')
    config.write_text(text.replace('universe = "all"', 'universe = "all"\nunit = "query"'))
    for day, found in ((BEFORE, 60), (DAY, 10)):
        rows = pl.concat([hits(found, n=60, request_id=[f"{day}-{d}{k}" for k in range(60)]) for d in "ab"])
        deliver(tmp_path, day, rows)
        asked = rows.select("request_id", "query_id").with_columns(device=pl.Series(["phone"] * 60 + ["desk"] * 60))
        write(tmp_path / "asked" / f"{day}.parquet", asked)
        told = run(config, day)
    (found_gate,) = told["gates"]
    assert (found_gate["status"], found_gate["n_pairs"]) == ("failed", None)


def test_only_named_columns_are_kept(tmp_path: Path) -> None:
    """What parts the units stands beside the night; the text of queries, in the same table, does not."""
    config = sliced(tmp_path, {DAY: {}}, "")
    run(config)
    night = store_of(config).read(DAY)
    assert night is not None
    assert night.frame("queries.parquet").columns == ["query_id", "lang"]


def test_p_values_by_hand() -> None:
    """Values 0, 1, 2 with mean 1 and standard error 1/sqrt(3) are 1.732 errors above 0: p 0.8873 at 2 degrees."""
    sample = Sample.of([0.0, 1.0, 2.0])
    assert p_below(sample, 0.0, None) == pytest.approx(0.88729833, abs=1e-8)
    assert p_below(sample, 2.0, None) == pytest.approx(1 - 0.88729833, abs=1e-8)
    assert p_below(Sample.of([0.5]), 0.0, None) is None
    assert p_below(Sample.of([0.5, 0.5]), 0.5, None) == 1.0
    same = Drop.of_samples(sample, sample, unit_range=False)
    assert same is not None
    assert same.p_below(0.0) == pytest.approx(0.5)


def test_p_values_without_spread() -> None:
    """Zeros under a floor of 0.8 come of chance with 0.2^5, as binary values do; without limits signs speak."""
    zeros = Sample.of([0.0] * 5)
    assert p_below(zeros, 0.8, (0.0, 1.0)) == pytest.approx(0.2**5)
    assert p_below(Sample.of([0.5, 0.5]), 0.75, (0.0, 1.0)) == pytest.approx(0.25)
    assert p_below(zeros, 1.0, (0.0, 1.0)) == 0.0
    assert p_below(Sample.of([3.0] * 5), 4.0, None) == 0.5**5
    ones = Sample.of([1.0] * 5)
    three = Drop.of_samples(Sample.of([1.0] * 3), Sample.of([0.0] * 3), unit_range=True)
    assert three is not None
    assert three.p_below(-0.1) == pytest.approx(1 / 20)  # one of the 20 ways to part six values in two threes
    five = Drop.of_samples(ones, zeros, unit_range=True)
    assert five is not None
    assert 1 / 252 <= (five.p_below(-0.1) or 0) < 0.01
    assert (five.p_below(-0.9) or 0) > 0.2  # 0.1 below none at all is no news in five


@pytest.mark.parametrize("freedom", [1, 2, 7, 50, 199, 200, 201, 5_000])
def test_student_below_agrees_with_scipy(freedom: int) -> None:
    """Within 2e-5 beyond 200 degrees, where it is approximated, and to nine digits below."""
    from scipy.stats import t  # noqa: PLC0415

    for x in (-6.0, -2.5, -1.0, 0.0, 0.3, 2.0, 5.0):
        close = 2e-5 if freedom > 200 else 1e-9
        assert student_below(x, freedom) == pytest.approx(t.cdf(x, freedom), abs=close)
