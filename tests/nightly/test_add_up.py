"""Nights add up: the mean of several is that of scoring them at once, to the last bit, without reading a hit."""

from __future__ import annotations

import json
import shutil
from contextlib import chdir
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import docrecall as dr
from docrecall.errors import DataError, IncompleteError
from docrecall.nightly.histograms import add_up, count, means_of, samples_of
from docrecall.nightly.total import add_nights
from tests.nightly.nights import CONFIG, command, run, store_of
from tests.small import write

DAYS = [date(2026, 11, 1) + timedelta(days=k) for k in range(6)]
MEASURES = ["doc_recall@5", "doc_ndcg@10docs", "doc_ap@all", "doc_judged@5", "naive_recall@5"]
_QUERIES = 40


def logs(seed: int, day: date, *, by_request: bool) -> pl.DataFrame:
    """Random hits: some queries are asked several times a night, some never."""
    rng = np.random.default_rng([seed, day.toordinal()])
    frames = []
    for request in range(60):
        query = int(rng.integers(0, _QUERIES)) if by_request else request
        if query >= _QUERIES or rng.random() < 0.1:
            continue
        docs = rng.choice(25, size=int(rng.integers(1, 12)), replace=False)
        frames.append(
            pl.DataFrame({"doc_id": [f"d{d}" for d in docs]}).select(
                pl.lit(f"{day}/{request}").alias("request_id"),
                pl.lit(f"q{query}").alias("query_id"),
                pl.int_range(1, pl.len() + 1).alias("rank"),
                "doc_id",
            )
        )
    rows = pl.concat(frames)
    return rows if by_request else rows.drop("request_id")


def qrels() -> pl.DataFrame:
    rng = np.random.default_rng(7)
    rows = [
        (f"q{q}", f"d{d}", int(rng.integers(0, 4))) for q in range(_QUERIES) for d in rng.choice(25, 5, replace=False)
    ]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "relevance"], orient="row")


def month(folder: Path, options: str = "", *, by_request: bool = True, weights: bool = False) -> Path:
    """Six nights, run one by one."""
    text = CONFIG.replace('["doc_recall@1", "doc_rr@3"]', str(MEASURES)) + options
    if weights:
        weight = [0.1 * (q % 7 + 1) for q in range(_QUERIES)]
        write(
            folder / "labels" / "queries.parquet",
            pl.DataFrame({"query_id": [f"q{q}" for q in range(_QUERIES)], "weight": weight}),
        )
        text = text.replace("[score]", 'queries = "labels/queries.parquet"\n[score]')
    write(folder / "labels" / "qrels.parquet", qrels())
    for day in DAYS:
        write(folder / "logs" / f"date={day}" / "x.parquet", logs(1, day, by_request=by_request))
    config = folder / "nightly.toml"
    config.write_text(text)
    for day in DAYS:
        run(config, day)
    return config


def at_once(folder: Path, *, weights: bool = False, **options: Any) -> pl.DataFrame:
    """All nights scored in one call; the date is part of the unit."""
    frames = [pl.read_parquet(folder / "logs" / f"date={day}" / "x.parquet") for day in DAYS]
    if "request_id" not in frames[0].columns:
        frames = [f.with_columns(request_id=pl.lit(str(day))) for f, day in zip(frames, DAYS, strict=True)]
    queries = folder / "labels" / "queries.parquet" if weights else None
    return dr.score(pl.concat(frames), qrels(), MEASURES, queries=queries, **options).summary()


def same_bits(one: pl.DataFrame, other: pl.DataFrame) -> None:
    columns = ["run_id", "measure", "mean", "n", "n_null", "n_eff", "ceiling"]
    assert one.select(columns).rows() == other.select(columns).rows()


@pytest.mark.parametrize("weights", [False, True])
def test_a_month_of_requests(tmp_path: Path, weights: bool) -> None:
    """Six nights of requests, added up after the hits are gone, are bit for bit the six nights scored at once."""
    config = month(tmp_path, weights=weights)
    wanted = at_once(tmp_path, weights=weights)
    shutil.rmtree(tmp_path / "logs")
    same_bits(add_nights(store_of(config), DAYS, 0.95), wanted)


def test_a_month_of_queries(tmp_path: Path) -> None:
    """Queries that are asked every night count every night."""
    config = month(tmp_path, by_request=False)
    config.write_text(config.read_text().replace('"all"', '"hits"'))
    for day in DAYS:
        run(config, day)
    same_bits(add_nights(store_of(config), DAYS, 0.95), at_once(tmp_path, universe="hits"))


def test_means_inside_queries_are_taken_each_night(tmp_path: Path) -> None:
    """With unit="query" a night has one value per query, and a month has one per query and night."""
    config = month(tmp_path, 'unit = "query"\n')
    table = add_nights(store_of(config), DAYS, 0.95)
    nights = [dr.load(store_of(config).folder(day)).summary() for day in DAYS]
    recall = pl.col("measure") == "doc_recall@5"
    assert table.filter(recall)["n"].item() == sum(n.filter(recall)["n"].item() for n in nights)
    one = add_nights(store_of(config), DAYS[:1], 0.95)
    same_bits(one, nights[0])


def test_one_night_alone_is_its_summary(tmp_path: Path) -> None:
    """A total of one night is that night, also where a measure has no value in some units."""
    config = month(tmp_path)
    same_bits(add_nights(store_of(config), DAYS[2:3], 0.95), dr.load(store_of(config).folder(DAYS[2])).summary())


def test_nights_of_other_labels_are_refused_and_recomputed_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels that changed in between are told with the nights; --recompute scores those again, and then they add up."""
    config = month(tmp_path)
    labels = qrels().with_columns(relevance=pl.when(pl.col("query_id") == "q3").then(1).otherwise("relevance"))
    write(tmp_path / "labels" / "qrels.parquet", labels)
    run(config, DAYS[-1])
    with pytest.raises(DataError, match="5 of 6 nights, from 2026-11-01 to 2026-11-05, were scored with other labels"):
        add_nights(store_of(config), DAYS, 0.95)
    span = ["--since", str(DAYS[0]), "--until", str(DAYS[-1])]
    assert command("total", config, *span) == 3
    history = pl.read_parquet(store_of(config).history)
    assert set(history.filter("labels_changed")["date"]) == {DAYS[-1]}
    assert not history["options_changed"].any()
    capsys.readouterr()
    assert command("total", config, *span, "--recompute", "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    frames = [pl.read_parquet(tmp_path / "logs" / f"date={day}" / "x.parquet") for day in DAYS]
    wanted = dr.score(pl.concat(frames), labels, MEASURES).summary()
    assert [row["mean"] for row in told] == wanted["mean"].to_list()
    assert not pl.read_parquet(store_of(config).history)["labels_changed"].any()


def test_labels_are_compared_by_what_they_say(tmp_path: Path) -> None:
    """The same labels in another order, with a repeat and in two files are the same; the night is scored anew."""
    config = month(tmp_path)
    before = store_of(config).read(DAYS[0])
    rows = qrels()
    (tmp_path / "labels" / "qrels.parquet").unlink()
    config.write_text(config.read_text().replace("labels/qrels.parquet", "labels/q*.parquet"))
    write(tmp_path / "labels" / "q1.parquet", rows.tail(100).reverse())
    write(tmp_path / "labels" / "q2.parquet", rows.head(101))
    assert run(config, DAYS[0])["outcome"] == "recomputed"
    after = store_of(config).read(DAYS[0])
    assert before is not None
    assert after is not None
    assert before.manifest["label_digest"] == after.manifest["label_digest"]
    assert before.manifest["content"] != after.manifest["content"]


def test_other_options_are_refused(tmp_path: Path) -> None:
    """Means of other options, and of other measures, are not added."""
    config = month(tmp_path)
    config.write_text(config.read_text() + "min_relevance = 2\n")
    run(config, DAYS[-1])
    with pytest.raises(DataError, match="other options"):
        add_nights(store_of(config), DAYS, 0.95)
    config.write_text(config.read_text().replace("min_relevance = 2\n", "").replace("doc_ap@all", "doc_ap@5"))
    run(config, DAYS[-1])
    with pytest.raises(DataError, match="other measures"):
        add_nights(store_of(config), DAYS, 0.95)


def test_a_missing_night_is_incomplete(tmp_path: Path) -> None:
    """A month with a hole is no month."""
    config = month(tmp_path)
    with pytest.raises(IncompleteError, match="2 of 8 nights are not published: 2026-11-07, 2026-11-08"):
        add_nights(store_of(config), [*DAYS, *(DAYS[-1] + timedelta(days=k) for k in (1, 2))], 0.95)


def test_intervals_of_a_night_and_a_month(tmp_path: Path) -> None:
    """A night's interval is that of `stats` over its queries; six nights together have a narrower one."""
    config = month(tmp_path)
    history = pl.read_parquet(store_of(config).history).filter(measure="doc_recall@5", date=DAYS[0])
    units = dr.load(store_of(config).folder(DAYS[0])).per_query.filter(pl.col("doc_recall@5").is_not_null())
    low, high, method = dr.stats.bootstrap_mean(
        units["doc_recall@5"].to_numpy(), clusters=units["query_id"].to_numpy(), unit_range=True
    )
    assert history.select("ci_low", "ci_high", "ci_method").row(0) == (low, high, method)
    whole = add_nights(store_of(config), DAYS, 0.95).filter(measure="doc_recall@5").row(0, named=True)
    assert whole["ci_high"] - whole["ci_low"] < high - low


def test_history_has_the_account(tmp_path: Path) -> None:
    """One row per night, run and measure, with exclusions and digests; the dates are dates."""
    config = month(tmp_path)
    history = pl.read_parquet(store_of(config).history)
    assert history.height == len(DAYS) * len(MEASURES)
    assert history["date"].dtype == pl.Date
    assert (history["n_total"] == history["n_scored"] + history["n_no_relevant"]).all()
    assert history["label_digest"].n_unique() == 1


def test_counts_are_those_of_the_values() -> None:
    """A histogram by hand: one query finds both documents, two one of them, and the unlabelled one takes no part."""
    hits = pl.DataFrame(
        {"query_id": ["a", "a", "b", "c", "x"], "rank": [1, 2, 1, 1, 1], "doc_id": ["d", "e", "d", "e", "d"]}
    )
    qrels = pl.DataFrame({"query_id": ["a", "a", "b", "b", "c", "c"], "doc_id": ["d", "e"] * 3})
    queries = pl.DataFrame({"query_id": ["a", "b", "c", "x"], "lang": ["en", "en", None, "en"]})
    scores = dr.score(hits, qrels, "doc_recall@2", queries=queries)
    found, samples = count(scores, ["lang"])
    assert found.drop("run_id", "measure", "weight").rows() == [
        (None, None, 0.5, 2),
        (None, None, 1.0, 1),
        ("lang", None, 0.5, 1),
        ("lang", "en", 0.5, 1),
        ("lang", "en", 1.0, 1),
    ]
    assert means_of(add_up([found, found]))["run", None, None, "doc_recall@2"] == (4 / 6, 6, 6.0)
    assert samples_of(samples)["run", "lang", "en", "doc_recall@2"].mean == 0.75


def test_the_folder_it_is_called_from_does_not_matter(tmp_path: Path) -> None:
    """Relative sources start at the configuration, wherever the command is called."""
    config = month(tmp_path / "job")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with chdir(elsewhere):
        assert command(Path("../job/nightly.toml"), "--date", str(DAYS[0])) == 0
    assert config.is_file()
