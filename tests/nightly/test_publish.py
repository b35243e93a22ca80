"""A night is published as a whole or not at all, once for the same inputs, and again when they change."""

from __future__ import annotations

import fcntl
import json
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import docrecall as dr
from docrecall.errors import DataError, IncompleteError, InputError, LockedError
from docrecall.nightly import days
from docrecall.nightly.store import Night, Store
from tests.nightly.nights import DAY, command, deliver, hits, job, leftovers, qrels, referenced, run, store_of
from tests.small import write

NEXT = DAY + timedelta(days=1)


def published(config: Path, day: date = DAY) -> Night:
    night = store_of(config).read(day)
    assert night is not None
    return night


def mean(config: Path, day: date = DAY) -> float:
    loaded = dr.load(store_of(config).folder(day))
    return float(loaded.summary().filter(measure="doc_recall@1")["mean"].item())


def test_a_night_is_published(tmp_path: Path) -> None:
    """The first run publishes: `load` reads the night, and it holds what scoring the same tables gives."""
    config = job(tmp_path)
    assert run(config)["outcome"] == "published"
    loaded = dr.load(store_of(config).folder(DAY))
    scored = dr.score(tmp_path / "logs", tmp_path / "labels", ["doc_recall@1", "doc_rr@3"])
    assert loaded.per_query.equals(scored.per_query)
    assert loaded.summary().equals(scored.summary())
    assert leftovers(config) == []


def test_same_again_is_nothing(tmp_path: Path) -> None:
    """The same inputs and configuration change not one byte of what is published, and the result says so."""
    config = job(tmp_path)
    first = run(config)
    before = published(config).manifest
    again = run(config)
    assert (again["outcome"], again["content"]) == ("unchanged", first["content"])
    assert "nothing to do" in again["reason"]
    assert published(config).manifest == before


@pytest.mark.parametrize("change", ["late rows", "labels", "measures", "options"])
def test_changes_recompute(change: str, tmp_path: Path) -> None:
    """Late rows, new labels, other measures and other options publish the night again; the old run stays a while."""
    config = job(tmp_path)
    run(config)
    old = published(config).run
    if change == "late rows":
        late = hits(2, n=2).with_columns(rank=pl.lit(2, pl.Int64), doc_id=pl.lit("y"))
        deliver(tmp_path, DAY, late, "part-1.parquet")
    elif change == "labels":
        write(tmp_path / "labels" / "qrels.parquet", qrels().head(9))
    else:
        words = {
            "measures": ('"doc_rr@3"', '"doc_rr@2"'),
            "options": ("[options]", "[options]\nmin_relevance = 1\nranks = 'recount'"),
        }
        config.write_text(config.read_text().replace(*words[change]))
    assert run(config)["outcome"] == "recomputed"
    assert published(config).run != old
    assert old.is_dir()


def test_old_result_stays_when_the_new_one_fails(tmp_path: Path) -> None:
    """Inputs that break the contract leave what is published, and its exit code is that of the contract."""
    config = job(tmp_path)
    run(config)
    before = referenced(config)
    deliver(tmp_path, DAY, hits(8, rank=[0] * 10))
    with pytest.raises(DataError):
        run(config)
    assert referenced(config) == before
    assert leftovers(config) == []


@pytest.mark.parametrize("what", ["folder", "no file", "only hidden files", "marker", "no rows"])
def test_not_delivered(what: str, tmp_path: Path) -> None:
    """A night that is not there, or is there without a hit, is incomplete and never an empty night."""
    config = job(tmp_path, {})
    folder = tmp_path / "logs" / f"date={DAY}"
    if what == "no file":
        folder.mkdir(parents=True)
    elif what == "only hidden files":
        write(folder / "_part.parquet", hits(8))
    elif what == "marker":
        deliver(tmp_path, DAY, hits(8))
        config.write_text(config.read_text().replace("[sources]", "[sources]\nmarker = 'logs/date={date}/_SUCCESS'"))
    elif what == "no rows":
        deliver(tmp_path, DAY, hits(8).clear())
    with pytest.raises(IncompleteError) as caught:
        run(config)
    assert caught.value.exit_code == 5
    assert str(DAY) in str(caught.value)
    assert store_of(config).read(DAY) is None


@pytest.mark.parametrize("table", ["hits.b", "requests", "queries"])
def test_a_part_of_the_night_without_rows(table: str, tmp_path: Path) -> None:
    """One run of two, or a dated list, that came empty is a night that is not whole: its zeros are not published."""
    config = job(tmp_path, {})
    runs = 'hits = { a = "a/{date}.parquet", b = "b/{date}.parquet" }\nrequests = "asked/{date}.parquet"\n'
    runs += 'queries = "list/{date}.parquet"'
    config.write_text(config.read_text().replace('hits = "logs/date={date}"', runs))
    ids = hits(8).select("query_id")
    for name, rows in {"hits.a": hits(8), "hits.b": hits(8), "requests": ids, "queries": ids}.items():
        place = {"hits.a": "a", "hits.b": "b", "requests": "asked", "queries": "list"}[name]
        write(tmp_path / place / f"{DAY}.parquet", rows.clear() if name == table else rows)
    with pytest.raises(IncompleteError, match="no rows"):
        run(config)
    assert store_of(config).read(DAY) is None


MIDNIGHT = datetime(2026, 11, 30)


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
@pytest.mark.parametrize(
    ("time", "zone", "told"),
    [
        (MIDNIGHT, None, None),
        (MIDNIGHT + timedelta(hours=23, minutes=59, seconds=59.999), None, None),
        (MIDNIGHT - timedelta(milliseconds=1), None, "1 rows are not of 2026-11-30 (1 before;"),
        (MIDNIGHT + timedelta(days=1), None, "1 rows are not of 2026-11-30 (1 after;"),
        (None, None, "1 rows are not of 2026-11-30 (1 null;"),
        (MIDNIGHT, "UTC", None),
        (MIDNIGHT + timedelta(hours=1), "Europe/Vienna", None),
        (MIDNIGHT + timedelta(minutes=59), "Europe/Vienna", "1 rows are not of 2026-11-30 (1 before;"),
        (MIDNIGHT, "America/New_York", None),
        (MIDNIGHT + timedelta(hours=19), "America/New_York", "1 rows are not of 2026-11-30 (1 after;"),
    ],
)
def test_rows_of_another_day(
    unit: Any, time: datetime | None, zone: str | None, told: str | None, tmp_path: Path
) -> None:
    """The first moment of the day belongs to it and that of the next does not, in UTC, whatever zone was logged."""
    config = job(tmp_path, {})
    config.write_text(config.read_text().replace("[sources]", '[sources]\ntime = "ts"'))
    times = pl.Series("ts", [MIDNIGHT + timedelta(hours=12)] * 9 + [time]).dt.cast_time_unit(unit)
    deliver(tmp_path, DAY, hits(8, ts=times if zone is None else times.dt.replace_time_zone(zone)))
    if told is None:
        assert run(config)["outcome"] == "published"
        return
    with pytest.raises(DataError) as caught:
        run(config)
    assert f"hits.ts: {told}" in str(caught.value)
    assert store_of(config).read(DAY) is None


def test_the_last_nanosecond_of_the_day(tmp_path: Path) -> None:
    """It is of this night, and one later is not."""
    config = job(tmp_path, {})
    config.write_text(config.read_text().replace("[sources]", '[sources]\ntime = "ts"'))
    end = int((MIDNIGHT - datetime(1970, 1, 1)).total_seconds() + 86_400) * 10**9
    for last, wanted in ((end - 1, "published"), (end, None)):
        deliver(tmp_path, DAY, hits(8, ts=pl.Series([end - 1] * 9 + [last], dtype=pl.Datetime("ns"))))
        if wanted:
            assert run(config)["outcome"] == wanted
        else:
            with pytest.raises(DataError, match="1 after"):
                run(config)


@pytest.mark.parametrize("column", ["rank", "query_id", "gone"])
def test_a_time_that_is_none(column: str, tmp_path: Path) -> None:
    """A column that is absent, or holds numbers or text, is told by its name."""
    config = job(tmp_path)
    config.write_text(config.read_text().replace("[sources]", f'[sources]\ntime = "{column}"'))
    with pytest.raises(DataError, match=column):
        run(config)


def test_a_file_that_was_written_over_and_dated_back(tmp_path: Path) -> None:
    """The same place, size and time, and other content: found by what nobody can set."""
    config = job(tmp_path, {})
    file = deliver(tmp_path, DAY, hits(8))
    os.utime(file, (1_700_000_000, 1_700_000_000))

    def write_over(event: str, *_: Any, **__: Any) -> None:
        if event == "scored":
            content = file.read_bytes()
            file.write_bytes(content)  # even where not one byte differs: another reader may have seen it cut off
            os.utime(file, (1_700_000_000, 1_700_000_000))

    with pytest.raises(InputError, match="changed while it was read"):
        run(config, log=write_over)
    assert store_of(config).read(DAY) is None


def test_marker_delivers(tmp_path: Path) -> None:
    """With the marker there, the night is read."""
    config = job(tmp_path)
    config.write_text(config.read_text().replace("[sources]", "[sources]\nmarker = 'logs/date={date}/_SUCCESS'"))
    (tmp_path / "logs" / f"date={DAY}" / "_SUCCESS").touch()
    assert run(config)["outcome"] == "published"


def test_a_missing_table_of_no_date_is_an_input_error(tmp_path: Path) -> None:
    """Labels that are gone are not a night that comes later."""
    config = job(tmp_path)
    (tmp_path / "labels" / "qrels.parquet").unlink()
    with pytest.raises(InputError):
        run(config)


def test_a_night_is_a_whole_utc_day() -> None:
    """It is half-open: it is over from the first moment of the next one on, and not before."""
    start, end = days.bounds(DAY)
    assert (start.isoformat(), end.isoformat()) == ("2026-11-30T00:00:00+00:00", "2026-12-01T00:00:00+00:00")
    days.refuse_unfinished(DAY, end)
    with pytest.raises(IncompleteError, match="is not over yet"):
        days.refuse_unfinished(DAY, end - timedelta(microseconds=1))
    assert days.last_whole(end) == DAY
    assert days.last_whole(end - timedelta(microseconds=1)) == DAY - timedelta(days=1)


def test_a_night_that_is_not_over_is_not_read(tmp_path: Path) -> None:
    """Tomorrow's log is refused though its files are there."""
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    config = job(tmp_path, {tomorrow: 3})
    with pytest.raises(IncompleteError, match="is not over yet"):
        run(config, tomorrow)


def test_a_locked_night_is_left_to_its_owner(tmp_path: Path) -> None:
    """Exit code 7 while another run has the lock, also for another process; then it is free again."""
    config = job(tmp_path)
    run(config)
    handle = os.open(store_of(config).folder(DAY), os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(LockedError):
        run(config)
    assert command(config, "--date", str(DAY)) == 7
    os.close(handle)
    assert command(config, "--date", str(DAY)) == 0


def test_backfill_isolates_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of three nights the second is missing and the third breaks the contract: the first is published all the same."""
    config = job(tmp_path, {DAY - timedelta(days=2): 8})
    deliver(tmp_path, DAY, hits(8, rank=[0] * 10))
    code = command(config, "--since", str(DAY - timedelta(days=2)), "--until", str(DAY), "--format", "json")
    told = json.loads(capsys.readouterr().out)
    assert [n["exit_code"] for n in told["nights"]] == [0, 5, 3]
    assert (code, told["exit_code"]) == (3, 3)
    assert told["reason"].startswith("1 of 3 nights are fine; 2026-11-29 (5): ")
    assert store_of(config).dates() == [DAY - timedelta(days=2)]


def test_changed_inputs_are_seen_before_the_commit(tmp_path: Path) -> None:
    """A file that is replaced after it was read, and before the manifest, stops the run; nothing is published."""
    config = job(tmp_path)

    def change(event: str, *_: Any, **__: Any) -> None:
        if event == "canary":
            deliver(tmp_path, DAY, hits(3))

    with pytest.raises(InputError, match="changed while it was read"):
        run(config, log=change)
    assert store_of(config).read(DAY) is None
    assert leftovers(config) == []


def test_a_young_file_that_changes_within_a_tick_is_read_again(tmp_path: Path) -> None:
    """A change that keeps inode, size and time is found by its bytes, as the file was young when it was listed."""
    config = job(tmp_path)
    file = tmp_path / "logs" / f"date={DAY}" / "part-0.parquet"

    def change(event: str, *_: Any, **__: Any) -> None:
        if event == "canary":
            stat, content = file.stat(), bytearray(file.read_bytes())
            content[10] ^= 1
            with file.open("r+b") as handle:
                handle.write(content)
            os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    with pytest.raises(InputError, match="changed while it was read"):
        run(config, log=change)
    assert store_of(config).read(DAY) is None


def test_damage_is_found_and_mended(tmp_path: Path) -> None:
    """A published file with other bytes is told by `verify` and `load`, and the next run publishes the night again."""
    config = job(tmp_path)
    run(config)
    before = referenced(config)
    victim = published(config).run / "per_query.parquet"
    victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    assert command("verify", config) == 4
    with pytest.raises(InputError):
        dr.load(store_of(config).folder(DAY))
    assert run(config)["outcome"] == "recomputed"
    assert referenced(config) == before
    assert command("verify", config) == 0


@pytest.mark.parametrize("name", ["manifest.json", "verdict.json", "../../history.parquet"])
def test_damage_to_what_names_the_files(name: str, tmp_path: Path) -> None:
    """The manifest, the verdict and the history are watched too, and the next run mends them."""
    config = job(tmp_path)
    run(config)
    victim = store_of(config).folder(DAY) / name
    victim.write_bytes(victim.read_bytes().replace(b"1", b"2"))
    assert command("verify", config) == 4
    run(config)
    assert command("verify", config) == 0


def test_janitor(tmp_path: Path) -> None:
    """Staging of dead runs goes at once, results that nobody names after some days by the time in their names."""
    config = job(tmp_path)
    run(config)
    store = store_of(config)
    now = datetime(2026, 12, 20, tzinfo=UTC)
    for name in ("20261201T000000-0123456789ab", "20261219T000000-0123456789ab", "not-ours"):
        (store.folder(DAY) / "runs" / name).mkdir()
    (store.staging / ".docrecall-dead").mkdir()
    (store.folder(DAY) / ".docrecall-dead").touch()
    alive = store.staging / ".docrecall-alive"
    alive.mkdir()
    handle = os.open(alive, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    store.tidy(DAY, keep_days=7, now=now)
    os.close(handle)
    kept = {p.name for p in (store.folder(DAY) / "runs").iterdir()}
    assert kept == {published(config).run.name, "20261219T000000-0123456789ab", "not-ours"}
    assert [p.name for p in store.staging.iterdir()] == [".docrecall-alive"]
    assert not (store.folder(DAY) / ".docrecall-dead").exists()


def test_replaced_results_stay_from_the_day_they_were_replaced(tmp_path: Path) -> None:
    """A night that stood for weeks and was replaced now is kept for its readers, also when it is run again at once."""
    config = job(tmp_path)
    run(config)
    store = store_of(config)
    runs = store.folder(DAY) / "runs"
    for name in ("20261001T000000-0123456789ab", "20261101T000000-0123456789ab"):
        (runs / name).mkdir()
    named = published(config).run.name
    made = datetime.strptime(named[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    store.tidy(DAY, keep_days=7, now=made + timedelta(days=6))
    assert {p.name for p in runs.iterdir()} == {"20261101T000000-0123456789ab", named}
    store.tidy(DAY, keep_days=7, now=made + timedelta(days=8))
    assert {p.name for p in runs.iterdir()} == {named}


def test_a_folder_that_is_called_like_no_day(tmp_path: Path) -> None:
    """Something else among the nights is no night, whatever it is called and holds."""
    config = job(tmp_path)
    run(config)
    for name in ("2026-13-99", "2026-11-3x", "x"):
        (store_of(config).root / "nights" / name).mkdir()
        (store_of(config).root / "nights" / name / "manifest.json").touch()
    assert store_of(config).dates() == [DAY]
    assert run(config)["outcome"] == "unchanged"


def test_the_level_of_intervals_is_that_of_the_results(tmp_path: Path) -> None:
    """What `load` reads, the JSON beside it and the history have the intervals that the configuration asks for."""
    config = job(tmp_path)
    config.write_text(config.read_text().replace("[score]", "[score]\nlevel = 0.5"))
    told = run(config)["runs"][0]["measures"]["doc_recall@1"]
    night = published(config)
    found = dr.load(night.folder)
    assert found.intervals.how.level == 0.5
    written = json.loads((night.run / "summary.json").read_text())["runs"][0]["measures"]["doc_recall@1"]
    kept = pl.read_parquet(store_of(config).history).row(0, named=True)
    wide = found.summary(level=0.95).row(0, named=True)
    for end in ("ci_low", "ci_high"):
        assert told[end] == found.summary()[end][0] == written[end] == kept[end] != wide[end]


def test_a_damaged_baseline_is_told_with_its_night(tmp_path: Path) -> None:
    """Exit code 4 names the night that is to be run again; that mends it, and this night is judged by it."""
    gate = '[baseline]\nagainst = "last_good"\n[[gates]]\nmeasure = "doc_recall@1"\nmax_drop = 0.5\n'
    before = DAY - timedelta(days=1)
    config = job(tmp_path, {before: 8, DAY: 8}, gate)
    run(config, before)
    night = store_of(config).read(before)
    assert night is not None
    (night.run / "per_query.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=f"not what was published; run `docrecall nightly` for {before} again"):
        run(config)
    assert run(config, before)["outcome"] == "recomputed"
    assert run(config)["gates"][0]["status"] == "passed"


def test_moving_the_store(tmp_path: Path) -> None:
    """Folder, labels and logs moved as a whole: the night is read there, and running it again is nothing to do."""
    config = job(tmp_path / "a")
    run(config)
    (tmp_path / "a").rename(tmp_path / "b [2]")
    moved = tmp_path / "b [2]" / "nightly.toml"
    assert mean(moved) == 0.8
    assert run(moved)["outcome"] == "unchanged"
    assert command("verify", moved) == 0


def test_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A published night is printed with its gates; one that is not published is exit code 5."""
    config = job(tmp_path, more='[[gates]]\nmeasure = "doc_recall@1"\nmin = 0.5\n')
    run(config)
    assert command("show", config, "--date", str(DAY), "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"][0]["measures"]["doc_recall@1"]["mean"] == 0.8
    assert [g["status"] for g in told["gates"]] == ["passed"]
    assert command("show", config, "--date", str(DAY)) == 0
    assert "doc_recall@1" in capsys.readouterr().out
    assert command("show", config, "--date", str(NEXT)) == 5


def test_links_in_the_store_are_not_followed(tmp_path: Path) -> None:
    """A night's folder that is a link to elsewhere is refused, and nothing is written there."""
    config = job(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    nights = store_of(config).root / "nights"
    nights.mkdir(parents=True)
    (nights / str(DAY)).symlink_to(outside)
    assert command(config, "--date", str(DAY)) == 6
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("where", ["runs/../../../x", "/etc", "runs/a/../b", ""])
def test_a_manifest_cannot_lead_out_of_its_night(where: str, tmp_path: Path) -> None:
    """A sealed manifest that names a folder of results elsewhere is no manifest of a night."""
    config = job(tmp_path)
    run(config)
    night = published(config)
    forged = {k: v for k, v in night.manifest.items() if k != "schema_version"} | {"results": where}
    with pytest.raises(InputError):
        Store(store_of(config).root).publish(DAY, forged)
    with pytest.raises(InputError):
        dr.load(night.folder)


def test_links_out_of_a_source_are_refused(tmp_path: Path) -> None:
    """A file below a source that links to somewhere else is refused; links that stay inside are read."""
    config = job(tmp_path, {})
    secret = write(tmp_path / "secret" / "hits.parquet", hits(8))
    folder = tmp_path / "logs" / f"date={DAY}"
    folder.mkdir(parents=True)
    (folder / "part.parquet").symlink_to(secret)
    with pytest.raises(InputError, match="leads out of the folder"):
        run(config)
    (folder / "part.parquet").unlink()
    folder.rmdir()
    folder.symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="leads out of the folder"):
        run(config)
    folder.unlink()
    write(tmp_path / "logs" / "all" / "hits.parquet", hits(8))
    folder.symlink_to(tmp_path / "logs" / "all")
    assert run(config)["outcome"] == "published"


def test_parts_of_the_date_in_a_path(tmp_path: Path) -> None:
    """`{date:year=%Y/month=%m/day=%d}` is a place for the date too."""
    config = job(tmp_path, {})
    config.write_text(config.read_text().replace("date={date}", "{date:year=%Y/month=%m/day=%d}"))
    write(tmp_path / "logs" / "year=2026" / "month=11" / "day=30" / "x.parquet", hits(8))
    assert run(config)["outcome"] == "published"
