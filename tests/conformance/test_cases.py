"""Small inputs with their expected outcome, one JSON file each, in every form in which tables may come."""

from __future__ import annotations

import builtins
import json
import math
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import docrecall as dr

CASES = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(Path(__file__).parent.glob("cases/*.json"))
}
TABLES = ("hits", "qrels", "queries", "evidence", "documents", "requests", "chunks")
EXPECTATIONS = {
    "per_query", "n_rows", "mean", "n", "accounting", "findings", "matches", "decisions", "slices", "compare", "error",
}  # fmt: skip
FORMS = ("as given", "shuffled", "lazy", "files in batches of 1", "files in batches of 2")
TOLERANCE = 1e-12
REASONS = ("n_unlabelled", "n_no_relevant", "n_unanswerable", "n_stale_labels", "n_rejected")


def frame(table: dict[str, Any], rows: list[list[Any]]) -> pl.DataFrame:
    """Rows as a DataFrame of the schema that the case names."""
    series = []
    for number, (column, kind) in enumerate(table["schema"].items()):
        cells = [row[number] for row in rows]
        if kind.startswith("Float"):
            cells = [math.nan if cell == "NaN" else cell for cell in cells]
        dtype = pl.Enum(sorted({c for c in cells if c is not None})) if kind == "Enum" else getattr(pl, kind)
        series.append(pl.Series(column, cells, dtype=dtype))
    return pl.DataFrame(series)


def score(case: dict[str, Any], form: str, folder: Path) -> dr.Scores:
    """Call `score` with the tables of a case in one form."""
    given: dict[str, Any] = {}
    options = dict(case.get("options", {}))
    for name, table in case["tables"].items():
        rows = list(table["rows"])
        if form == "shuffled":
            Random(7).shuffle(rows)
        full = frame(table, rows)
        if form == "lazy":
            given[name] = full.lazy()
        elif form.startswith("files") and full.columns:
            given[name] = _two_files(full, folder / name)
        else:
            given[name] = full
    if form.startswith("files"):
        options["batch_rows"] = int(form[-1])
    hits, qrels = given.pop("hits"), given.pop("qrels", None)
    return dr.score(hits, qrels, measures=case["measures"], **given, **options)


def _two_files(full: pl.DataFrame, folder: Path) -> Path:
    folder.mkdir()
    half = (full.height + 1) // 2
    full.head(half).write_parquet(folder / "a.parquet")
    full.slice(half).write_parquet(folder / "b.parquet")
    return folder


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_case(case: dict[str, Any], form: str, tmp_path: Path):
    """A case has the outcome that its file states, whatever the form of its tables."""
    expected = case["expect"]
    if "error" in expected:
        _raises(case, form, tmp_path)
        return
    scores = score(case, form, tmp_path)
    _keeps_the_account(scores)
    _holds_rows(scores.per_query, expected.get("per_query", []), ("run_id", "request_id", "query_id"))
    assert scores.per_query.height == expected.get("n_rows", scores.per_query.height)
    for part in ("mean", "n"):
        for run, values in _by_run(expected.get(part, {}), scores).items():
            wanted = [{"run_id": run, "measure": measure, part: value} for measure, value in values.items()]
            _holds_rows(scores.summary(), wanted, ("run_id", "measure"))
    for run, values in _by_run(expected.get("accounting", {}), scores).items():
        _holds_rows(scores.accounting, [{"run_id": run, **values}], ("run_id",))
    for code, count in expected.get("findings", {}).items():
        found = scores.findings.filter(code=code)["n_rows"].sum()
        assert found > 0 if count == ">0" else found == count, code
    if "decisions" in expected:
        _holds_rows(scores.decisions, [expected["decisions"]], ())
    if "matches" in expected:
        _holds_rows(scores.matches.collect(), expected["matches"], ("run_id", "query_id", "doc_id"))
    if "slices" in expected:
        by = expected["slices"]["by"]
        _holds_rows(scores.summary(by=by), expected["slices"]["rows"], ("run_id", by, "measure"))
    if "compare" in expected:
        wanted = expected["compare"]
        compared = dr.compare(scores, baseline=wanted["baseline"], candidate=wanted["candidate"])
        _holds_rows(compared.table, wanted["rows"], ("measure",))


def _raises(case: dict[str, Any], form: str, folder: Path) -> None:
    wanted = case["expect"]["error"]
    kind = getattr(dr, wanted["type"], None) or getattr(builtins, wanted["type"])
    with pytest.raises(kind) as caught:
        score(case, form, folder)
    message = str(caught.value).lower()
    assert [text for text in wanted.get("mentions", []) if text.lower() not in message] == [], message


def _keeps_the_account(scores: dr.Scores) -> None:
    """What holds for every result: no NaN, and every unit and row accounted for."""
    floats = scores.per_query.select(pl.selectors.float())
    assert not any(column.is_nan().any() for column in floats)
    a, r = scores.accounting, scores.rows
    assert (a["n_total"] == a["n_scored"] + a.select(REASONS).sum_horizontal()).all()
    assert (r["read"] == r.select("used", "duplicate", "rejected", "outside").sum_horizontal()).all()
    assert a["n_total"].sum() == scores.per_query.height


def _by_run(expected: dict[str, Any], scores: dr.Scores) -> dict[str, dict[str, Any]]:
    """Expectations by run; flat ones speak of the only run."""
    if any(not isinstance(value, dict) for value in expected.values()):
        assert scores.accounting.height == 1
        return {scores.accounting["run_id"].item(): expected}
    return expected


def _holds_rows(got: pl.DataFrame, expected: list[dict[str, Any]], key: tuple[str, ...]) -> None:
    """Each expected row is found once by its key columns, and has the values that it names."""
    for wanted in expected:
        found = [row for row in got.iter_rows(named=True) if all(row[c] == wanted[c] for c in key if c in wanted)]
        assert len(found) == 1, wanted
        for column, value in wanted.items():
            cell = found[0][column]
            if isinstance(value, int | float) and not isinstance(value, bool):
                assert cell is not None, (wanted, column)
                assert abs(cell - value) <= TOLERANCE, (wanted, column, cell)
            else:
                assert cell == value, (wanted, column, cell)


def test_cases_are_all_there_and_understood():
    """The folder holds the cases, and none of them asks for what this module does not check."""
    assert len(CASES) >= 220
    for name, case in CASES.items():
        assert case["id"] == name
        assert set(case["tables"]) <= set(TABLES), name
        assert set(case["expect"]) <= EXPECTATIONS, name
        assert case["expect"], name
