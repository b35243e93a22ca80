"""Why the number moved: naive and real measures side by side, at the same k and at the same number of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import polars as pl

from docrecall import stats
from docrecall.convention_means import DEFAULT_KS
from docrecall.cuts import COLUMNS, COMPARED, DiagnosisPlan, plan_diagnosis
from docrecall.errors import UsageError
from docrecall.measures.grammar import Cut
from docrecall.pairs import Pairs, as_delta, difference
from docrecall.scores import Scores
from docrecall.show import Displayed, printable
from docrecall.summary import How
from docrecall.verdicts import Delta, sentence, short

LINES_SCHEMA = pl.Schema(
    {
        "run_id": pl.String(),
        "cut": pl.String(),
        "n": pl.Int64(),
        "n_passages": pl.Int64(),
        **dict.fromkeys(COLUMNS, pl.Float64()),
    }
)
DELTAS_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("baseline", "candidate", "cut", "measure"), pl.String()),
        **dict.fromkeys(("n_pairs", "n_differ"), pl.Int64()),
        **dict.fromkeys(("delta", "ci_low", "ci_high"), pl.Float64()),
        **dict.fromkeys(("ci_method", "prefers"), pl.String()),
    }
)
VERDICTS_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("baseline", "candidate", "cut"), pl.String()),
        "n_pairs": pl.Int64(),
        **dict.fromkeys((f"{m}_{part}" for m in ("naive", "doc") for part in ("delta", "low", "high")), pl.Float64()),
        **dict.fromkeys(("short", "verdict"), pl.String()),
    }
)
# By cut and column of the lines: the difference, and how its interval was made.
Deltas = Mapping[Cut, Mapping[str, tuple[Delta, str | None]]]
_PARTS = (("delta", "value"), ("low", "low"), ("high", "high"))
_SWAP = {"higher": pl.String(), "lower": pl.String(), "told_apart": pl.Boolean()}
ORDERS_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("cut", "first", "second"), pl.String()),
        "n_runs": pl.Int64(),
        "tau": pl.Float64(),
        "swapped": pl.List(pl.Struct(_SWAP)),
    }
)


@dataclass(frozen=True)
class Diagnosis(Displayed):
    """Why the number moved. Nulls stand where the tables do not tell.

    lines: one row per run and cut: run_id, cut (what stands after the @: `3`, `512tokens`), n, n_passages (units with a
      value for passages), and the means naive_recall, doc_recall, doc_recall_docs (under `@kdocs`; null for budgets),
      evidence_coverage, evidence_recall, context_tokens, distinct_docs, repeat_share.
    deltas: baseline, candidate, cut, measure, n_pairs, n_differ, delta (the mean paired difference, candidate less
      baseline), ci_low, ci_high, ci_method, prefers (a run, or null where the two cannot be told apart).
    verdicts: baseline, candidate, cut, n_pairs, naive_delta, naive_low, naive_high, doc_delta, doc_low, doc_high, short
      (the verdict in words), verdict (with its numbers).
    orders: whether two measures put the runs in the same order: cut, first, second, n_runs, tau (Kendall's tau-b of the
      means; null where one side has ties alone), swapped (pairs of runs of which `first` puts one higher and `second`
      lower; told_apart: both measures tell the two apart; null where the two runs were not compared).
    notes: sentences on what is left out, and on runs of which few requests meet.
    level, resamples, seed: how the intervals were made.
    """

    lines: pl.DataFrame
    deltas: pl.DataFrame
    verdicts: pl.DataFrame
    orders: pl.DataFrame
    notes: tuple[str, ...]
    level: float
    resamples: int
    seed: int


def diagnose(
    scores: Scores,
    ks: Sequence[int] = DEFAULT_KS,
    budgets: Sequence[int] | None = None,
    *,
    baseline: str | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Diagnosis:
    """Say what a change of the naive number is made of, and which run each measure prefers.

    ks: cuts in chunks. budgets: cuts in tokens; None takes 1, 2, 4 and 8 of the largest chunks of all runs, an empty
    list leaves tokens out. baseline: the run that the others are compared with; None compares all pairs.
    level, resamples, seed: of the bootstrap intervals of the paired differences. Units are paired by what names them,
    and requests of one query are resampled together; with `unit="query"`, and where runs share no request, queries are
    paired. A run is preferred where the interval excludes 0 and at least 6 units differ (at 95 %), since a sign test of
    fewer could not tell. Where the scores lack a measure the tables are read once more; passages are left out where no
    evidence was given or nothing says what chunks cover, tokens where nobody counted them in every row.

    Raises UsageError for arguments that have no meaning, and after `load` when measures are missing; DataError when
    budgets are asked for and the log does not say how many tokens its chunks have.
    """
    how = How(level, resamples, seed).check()
    runs = sorted(scores.accounting["run_id"])
    if baseline is not None and baseline not in runs:
        raise UsageError.no_such_run(baseline, runs)
    plan = plan_diagnosis(scores, scores.opened, ks, budgets, written=scores.measures)
    told = scores.under(plan.measures)
    lines = _lines(told, plan, runs)
    others = [run for run in runs if run != baseline]
    compared = list(combinations(runs, 2)) if baseline is None else [(baseline, run) for run in others]
    units = told.units() if compared else {}
    found: dict[tuple[str, str], Deltas] = {}
    notes = list(plan.notes)
    for a, b in compared:
        pairs = Pairs.of(units[a], units[b], by_query=scores.options.unit == "query")
        found[a, b] = _differences(pairs, plan, how)
        notes += [pairs.note] if pairs.note else []
    return Diagnosis(
        lines,
        pl.DataFrame(list(_delta_rows(found, plan)), schema=DELTAS_SCHEMA),
        pl.DataFrame(list(_verdict_rows(found, lines)), schema=VERDICTS_SCHEMA),
        pl.DataFrame(list(_order_rows(found, plan, lines)), schema=ORDERS_SCHEMA),
        tuple(notes),
        level,
        resamples,
        seed,
    )


def _lines(scores: Scores, plan: DiagnosisPlan, runs: Sequence[str]) -> pl.DataFrame:
    means = {(row["run_id"], row["measure"]): row for row in scores.summary().to_dicts()}
    rows = []
    for run in runs:
        for cut, columns in plan.by_cut.items():
            of = {column: means[run, str(measure)] for column, measure in columns.items()}
            n_passages = of["evidence_recall"]["n"] if "evidence_recall" in of else None
            values = {column: row["mean"] for column, row in of.items()}
            rows.append(
                {"run_id": run, "cut": str(cut), "n": of["doc_recall"]["n"], "n_passages": n_passages, **values}
            )
    return pl.DataFrame(rows, schema=LINES_SCHEMA)


def _differences(pairs: Pairs, plan: DiagnosisPlan, how: How) -> Deltas:
    """The differences of two runs, by cut and column."""
    return {
        cut: {
            column: as_delta(difference(pairs.both(str(measure)), how), _noun(column, cut), how.level)
            for column, measure in of.items()
            if column in COMPARED
        }
        for cut, of in plan.by_cut.items()
    }


def _noun(column: str, cut: Cut) -> str:
    """What a measure counts, for sentences."""
    return {
        "naive_recall": "hits",
        "doc_recall": "documents",
        "doc_recall_docs": "the first document" if cut.k == 1 else f"the first {cut.k} documents",
        "evidence_coverage": "parts of passages",
        "evidence_recall": "whole passages",
    }[column]


def _delta_rows(found: Mapping[tuple[str, str], Deltas], plan: DiagnosisPlan) -> Iterator[dict[str, Any]]:
    for (a, b), by_cut in found.items():
        for cut, deltas in by_cut.items():
            for column, (delta, method) in deltas.items():
                yield {
                    "baseline": a,
                    "candidate": b,
                    "cut": str(cut),
                    "measure": str(plan.by_cut[cut][column]),
                    "n_pairs": delta.n,
                    "n_differ": delta.n_differ,
                    "delta": delta.value,
                    "ci_low": delta.low,
                    "ci_high": delta.high,
                    "ci_method": method,
                    "prefers": {1: b, -1: a}.get(delta.way),
                }


def _verdict_rows(found: Mapping[tuple[str, str], Deltas], lines: pl.DataFrame) -> Iterator[dict[str, Any]]:
    tokens = {(run, cut): n for run, cut, n in lines.select("run_id", "cut", "context_tokens").iter_rows()}
    for (a, b), by_cut in found.items():
        for cut, deltas in by_cut.items():
            naive, docs = deltas["naive_recall"][0], deltas["doc_recall"][0]
            real = [delta for column, (delta, _) in deltas.items() if column != "naive_recall"]
            at = str(cut)
            given = (tokens[a, at], tokens[b, at])
            names = printable(a), printable(b)
            yield {
                "baseline": a,
                "candidate": b,
                "cut": at,
                "n_pairs": docs.n,
                **{f"naive_{part}": getattr(naive, of) for part, of in _PARTS},
                **{f"doc_{part}": getattr(docs, of) for part, of in _PARTS},
                "short": short(*names, naive, real),
                "verdict": f"{names[1]} against {names[0]} at @{at}: {sentence(*names, naive, real, given)}",
            }


def _order_rows(
    found: Mapping[tuple[str, str], Deltas], plan: DiagnosisPlan, lines: pl.DataFrame
) -> Iterator[dict[str, Any]]:
    for cut, columns in plan.by_cut.items():
        rows = lines.filter(pl.col("cut") == str(cut))
        for first, second in combinations([c for c in columns if c in COMPARED], 2):
            there = rows.filter(pl.col(first).is_not_null(), pl.col(second).is_not_null())
            if there.height < 2:
                continue
            runs = there["run_id"].to_list()
            tau, swapped = stats.kendall_tau(there[first].to_numpy(), there[second].to_numpy())
            swaps = []
            for i, j in swapped:
                higher, lower = (i, j) if there[first][i] > there[first][j] else (j, i)
                told = _told_apart(found.get((runs[i], runs[j])) or found.get((runs[j], runs[i])), cut, first, second)
                swaps.append({"higher": runs[higher], "lower": runs[lower], "told_apart": told})
            yield {
                "cut": str(cut),
                "first": str(columns[first]),
                "second": str(columns[second]),
                "n_runs": there.height,
                "tau": tau,
                "swapped": swaps,
            }


def _told_apart(by_cut: Deltas | None, cut: Cut, first: str, second: str) -> bool | None:
    """Whether the intervals say so too: both measures prefer a run, and not the same one."""
    if by_cut is None:
        return None
    return by_cut[cut][first][0].way * by_cut[cut][second][0].way < 0
