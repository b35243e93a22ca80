"""One night, from its inputs to its verdict; it reads like the protocol in `nightly.store`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from docrecall.contract.known import check_known
from docrecall.errors import DocrecallError, InputError, OutputError
from docrecall.memory import parse_bytes
from docrecall.nightly import gate, history
from docrecall.nightly.canary import Canary
from docrecall.nightly.config import Config
from docrecall.nightly.folder import NightFolder
from docrecall.nightly.histograms import count, means_of, tags_of
from docrecall.nightly.inputs import Fingerprints, label_digest, open_night
from docrecall.nightly.store import HISTOGRAMS, ROWS, RUNS, SAMPLES, TAGS, Night, Store
from docrecall.score import Settled, Work, evaluate, prepare
from docrecall.scores import Scores
from docrecall.staging import MANIFEST, digest, fingerprint, named
from docrecall.store import RESULTS, load
from docrecall.summary import How, Intervals
from docrecall.version import __version__

Log = Callable[..., None]  # an event and what is to be said of it; never ids, never text of queries


class _Job(NamedTuple):
    """One night and where it goes. prints: what is read."""

    config: Config
    store: Store
    night: date
    prints: Fingerprints
    log: Log


def run_night(config: Config, night: date, log: Log) -> dict[str, Any]:
    """Score and publish one night, or find that nothing changed; judge it; bring the history up to date.

    The working directory must be the folder of the configuration. Returns what is told of the night. Errors leave what
    was published before as it was.
    """
    store = Store(config.store)
    with store.locked(night):
        store.prepare(night)
        store.tidy(night, config.keep_days)
        log("started", date=night.isoformat())
        inputs = open_night(config, night)
        prints = Fingerprints(inputs)
        log("inputs", files=len(prints.entries), rows=sum(e["rows"] for e in prints.entries))
        key = _key(config, prints)
        old, damage = _published(store, night)
        if damage:
            log("damaged", found=damage)
        if old is not None and not damage and old.manifest["key"] == key:
            outcome, published = "unchanged", old
        else:
            job = _Job(config, store, night, prints, log)
            with _blaming_changes(prints):
                published = _publish(job, prepare(inputs, config.measures, config.options), key)
            outcome = "published" if old is None and not damage else "recomputed"
        log(outcome, content=published.manifest["content"])
        judged = gate.judge(config, store, published)
        verdict = gate.verdict_of(night, judged, datetime.now(UTC).isoformat(timespec="seconds"))
        store.judge(published, verdict)
        log("judged", passed=verdict["passed"], reason=verdict["reason"])
    history.refresh(store)
    return told_of(published, outcome, verdict)


def told_of(night: Night, outcome: str, verdict: dict[str, Any]) -> dict[str, Any]:
    """A published night as plain values: what the JSON and the exit code say of it (null until it is judged)."""
    manifest = night.manifest
    first = {"published": "published", "unchanged": "nothing to do, inputs and configuration are the same"}
    words = first.get(outcome, "published again, inputs or configuration changed")
    rows = night.frame(ROWS)
    runs = [
        {
            "run_id": run,
            "accounting": {c: part[c].item(0) for c in part.columns if c.startswith("n_") and c not in _OF_MEASURES},
            "measures": {row["measure"]: {c: row[c] for c in _NUMBERS} for row in part.filter(_WHOLE).to_dicts()},
            "slices": [
                {c: row[c] for c in ("slice", "slice_value", "measure", *_NUMBERS)}
                for row in part.filter(~_WHOLE).to_dicts()
            ],
        }
        for (run,), part in rows.partition_by("run_id", as_dict=True, maintain_order=True).items()
    ]
    return {
        "date": night.date.isoformat(),
        "outcome": outcome,
        "exit_code": None if verdict["passed"] is None else 0 if verdict["passed"] else 1,
        "reason": f"{words}; {verdict['reason']}",
        "runs": runs,
        "gates": verdict["gates"],
        "findings": night.frame("findings.parquet").drop("examples", "file").to_dicts(),
        "canary": manifest["canary"],
        **{c: manifest[c] for c in ("content", "label_digest", "options_digest")},
    }


_OF_MEASURES = ("n", "n_null", "n_eff")
_NUMBERS = ("mean", *_OF_MEASURES, "ci_low", "ci_high", "ci_method", "ceiling")
_WHOLE = pl.col("slice").is_null()


def _key(config: Config, prints: Fingerprints) -> str:
    """Equal for a run that would give the same bytes."""
    told = {"config": config.digest, "inputs": prints.entries, "versions": [__version__, pl.__version__]}
    return digest(told)


def _published(store: Store, night: date) -> tuple[Night | None, list[str]]:
    """What is published of a night, and what is wrong with it."""
    try:
        found = store.read(night)
    except InputError as error:
        return None, [str(error)]
    return found, [] if found is None else found.damage()


@contextmanager
def _blaming_changes(prints: Fingerprints) -> Iterator[None]:
    """Say that inputs changed where they did: whatever else fails then, from rows to panics, fails for that reason."""
    try:
        yield
    except OutputError:
        raise
    except BaseException:
        prints.check_unchanged()
        raise


def _publish(job: _Job, settled: Settled, key: str) -> Night:
    """Stage, check and publish the results of a night."""
    config, store, night, prints, log = job
    canary = Canary(config.canary, night.isoformat(), config.measures)
    memory = None if config.memory is None else parse_bytes(config.memory)
    work = Work(memory=memory, progress=partial(log, "progress", quiet=True))
    labels = label_digest(settled.inputs, config.sources)
    target = store.new_run(night)
    with NightFolder(target, store.staging, canary) as folder:
        shown = Intervals(how=How(level=config.level))
        scores = replace(evaluate(settled, config.measures, config.options, work, folder), intervals=shown)
        log("scored", units=int(scores.accounting["n_scored"].sum()))
        known = check_known(settled.inputs, settled.needs, config.options)
        n_again = canary.check(known.labels, config.options)
        log("canary", units=n_again)
        histograms, samples = count(scores, config.slices)
        rows = history.rows_of(night, scores, config.slices)
        _check_sums(scores, histograms, rows)
        tags = {TAGS[name]: frame for name, frame in tags_of(scores, config.slices).items()}
        with named(config.store):
            for name, frame in {HISTOGRAMS: histograms, SAMPLES: samples, ROWS: rows, **tags}.items():
                frame.write_parquet(folder.files / name)
        prints.check_unchanged()
        folder.commit(scores)
    try:
        load(target)  # every file once more, from where readers will find it
        prints.check_unchanged()
        told = {"key": key, "label_digest": labels, "canary": n_again, "rows": scores.rows.to_dicts()}
        return store.publish(night, _manifest(job, target, told))
    except BaseException:
        _drop(store, night, target)
        raise


def _drop(store: Store, night: date, target: Path) -> None:
    """Remove results that were not published. A failure to sync can come after the manifest names them: they stay."""
    try:
        published = store.read(night)
    except (DocrecallError, OSError):
        return
    if published is None or published.run != target:
        shutil.rmtree(target, ignore_errors=True)


def _check_sums(scores: Scores, histograms: pl.DataFrame, rows: pl.DataFrame) -> None:
    """Refuse results that do not add up. That would be a fault of ours, and must not be published."""
    counted = means_of(histograms)
    for row in rows.to_dicts():
        found = counted.get((row["run_id"], row["slice"], row["slice_value"], row["measure"]))
        if (None if found is None else found.mean) != row["mean"] or (0 if found is None else found.n) != row["n"]:
            raise DocrecallError(f"the histogram of {row['measure']} does not give its mean. Please report this.")
    for table in scores.rows.to_dicts():
        if table["read"] != table["used"] + table["duplicate"] + table["rejected"] + table["outside"]:
            raise DocrecallError(f"the rows of {table['table']} are not accounted for. Please report this.")
    reasons = [c for c in scores.accounting.columns if c.startswith("n_") and c not in ("n_total", "n_no_hits")]
    if not scores.accounting.select((pl.col("n_total") == pl.sum_horizontal(reasons)).all()).item():
        raise DocrecallError("the units are not accounted for. Please report this.")


def _manifest(job: _Job, run: Path, told: dict[str, Any]) -> dict[str, Any]:
    """What readers open. Times, and the file that holds them, are apart: the rest is the same for the same inputs.

    told: key, label_digest, rows and canary, the number of units that were scored twice.
    """
    files = {p.name: fingerprint(p) for p in sorted(run.iterdir())}
    own = {MANIFEST: files.pop(MANIFEST)}
    content = {
        "date": job.night.isoformat(),
        "docrecall": __version__,
        "polars": pl.__version__,
        "measures": job.config.names,
        "slices": list(job.config.slices),
        "options": job.config.options.changed,
        "options_digest": job.config.options.digest,
        "inputs": job.prints.entries,
        "files": files,
        **told,
    }
    published = {"published_at": datetime.now(UTC).isoformat(timespec="seconds"), "files": own}
    return {**content, "content": digest(content), RESULTS: f"{RUNS}/{run.name}", "apart": published}
