"""What each chart draws, as a small tidy frame. Runs stand in the order people count in: w32, w64, w128, w256."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import polars as pl

from docrecall import cuts as planning
from docrecall import stats
from docrecall.compare import Comparison
from docrecall.convention_means import check_ks
from docrecall.diagnose import Diagnosis
from docrecall.errors import InputTypeError, UsageError
from docrecall.funnel import Funnel
from docrecall.measures.grammar import Cut, Measure, parse
from docrecall.scores import Scores
from docrecall.show import printable
from docrecall.summary import MIN_N

SHARE = "share"
NO_VALUE = "(no value)"
_KS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_ENDS = {"ci_low": pl.Float64(), "ci_high": pl.Float64()}
_INTERVAL = {**_ENDS, "level": pl.Float64()}
_LEVEL = 0.95
RECALL_SCHEMA = pl.Schema(
    {"run_id": pl.String(), "cut": pl.String(), "k": pl.Int64(), "recall": pl.Float64(), **_INTERVAL}
    | {"n": pl.Int64()}
)
FRONTIER_SCHEMA = pl.Schema(
    {
        "run_id": pl.String(),
        "measure": pl.String(),
        "budget": pl.Int64(),
        "tokens": pl.Float64(),
        "recall": pl.Float64(),
        **_INTERVAL,
        "n": pl.Int64(),
        "best": pl.Boolean(),
    }
)
DIFFERENCES_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("baseline", "candidate", "measure", "cut", "slice"), pl.String()),
        "n_pairs": pl.Int64(),
        "delta": pl.Float64(),
        **_ENDS,
        "prefers": pl.String(),
        "judged": pl.Boolean(),
        "unit": pl.String(),
    }
)
SLICES_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("run_id", "slice"), pl.String()),
        "n": pl.Int64(),
        "mean": pl.Float64(),
        **_INTERVAL,
        "judged": pl.Boolean(),
        "p_adjusted": pl.Float64(),
        "family": pl.Int64(),
    }
)
FUNNEL_SCHEMA = pl.Schema(
    {
        "run_id": pl.String(),
        "step": pl.String(),
        "meaning": pl.String(),
        "n": pl.Int64(),
        "share": pl.Float64(),
        "lost": pl.Int64(),
        "unknown": pl.Int64(),
    }
)


def recall(scores: Scores, ks: Sequence[int] | None = None, runs: Sequence[str] | None = None) -> pl.DataFrame:
    """Give doc_recall under both cuts: run_id, cut ("chunks" or "docs"), k, recall, ci_low, ci_high, level, n.

    ks: None takes 1, 2, 3, 5, 10, 20, .. as far as the longest list of hits goes, or, after `load`, the written ones.
    runs: which, and in which order; None takes all. recall is null where a run has nothing scored, the interval where
    it has fewer than two units.

    Raises UsageError for a k below 1, for runs that are not there, and after `load` for measures that were not written.
    """
    _check_kind(scores, Scores)
    wanted = _default_ks(scores) if ks is None else check_ks(ks)
    measures = [Measure("doc_recall", Cut(unit, k)) for unit in ("chunks", "docs") for k in wanted]
    means = _means(scores.under(measures))
    rows = [
        {"run_id": run, "cut": m.cut.unit, "k": m.cut.k, "recall": row["mean"], **_interval(row), "n": row["n"]}
        for run in chosen(scores.accounting["run_id"], runs)
        for m in measures
        for row in [means[run, str(m)]]
    ]
    return pl.DataFrame(rows, schema=RECALL_SCHEMA)


def _default_ks(scores: Scores) -> list[int]:
    if scores.opened is None:
        by_unit = {unit: _written(scores, unit) for unit in ("chunks", "docs")}
        if not (both := by_unit["chunks"] & by_unit["docs"]):
            raise UsageError(
                "no k has doc_recall@k and doc_recall@kdocs among the written results. Score the tables again with "
                "both, such as doc_recall@10 and doc_recall@10docs."
            )
        return sorted(both)
    longest = scores.scan().select(pl.col("n_hits").max()).collect().item() or 1
    return [k for k in _KS if k <= max(longest, 1)]


def _written(scores: Scores, unit: str) -> set[int]:
    found = [parse(name) for name in scores.measures]
    return {m.cut.k for m in found if m.name == "doc_recall" and m.cut.unit == unit and m.cut.k is not None}


def frontier(scores: Scores, budgets: Sequence[int] | None = None, runs: Sequence[str] | None = None) -> pl.DataFrame:
    """Give recall at several budgets of tokens: run_id, measure, budget, tokens, recall, ci_low, ci_high, level, ..

    .. n, best. measure: doc_recall, and evidence_recall where passages were given (after `load`: where it was written).
    tokens: the mean that was given. best: no other of these runs has a higher mean at that budget; null without a mean.
    budgets: None takes 1, 2, 4 and 8 of the largest chunk, or, after `load`, the written ones. runs: as for `recall`.

    Raises UsageError where nobody counted tokens, and as `recall` does.
    """
    _check_kind(scores, Scores)
    plan = planning.plan_diagnosis(scores, scores.opened, [1], budgets, written=scores.measures)
    if not plan.budgets:
        raise UsageError(
            "; ".join(note for note in plan.notes if note.startswith("tokens:")) or "no budgets were given."
        )
    columns = {cut: plan.by_cut[cut] for cut in plan.by_cut if cut.unit == "tokens"}
    drawn = ["doc_recall"]
    if all(_at_hand(scores, of.get("evidence_recall")) for of in columns.values()):
        drawn.append("evidence_recall")
    means = _means(scores.under([of[c] for of in columns.values() for c in (*drawn, "context_tokens")]))
    rows = [
        {
            "run_id": run,
            "measure": column,
            "budget": cut.k,
            "tokens": means[run, str(of["context_tokens"])]["mean"],
            "recall": row["mean"],
            **_interval(row),
            "n": row["n"],
            "best": None,
        }
        for run in chosen(scores.accounting["run_id"], runs)
        for column in drawn
        for cut, of in columns.items()
        for row in [means[run, str(of[column])]]
    ]
    best = pl.col("recall") == pl.col("recall").max().over("measure", "budget")
    return pl.DataFrame(rows, schema=FRONTIER_SCHEMA).with_columns(best=best)


def _at_hand(scores: Scores, measure: Measure | None) -> bool:
    """Whether a measure can be had: it was written, or the tables are there to be read once more."""
    return measure is not None and (scores.opened is not None or str(measure) in scores.measures)


def slices(
    scores: Scores,
    by: str | Sequence[str],
    measure: str | None = None,
    runs: Sequence[str] | None = None,
    *,
    min_n: int = MIN_N,
) -> pl.DataFrame:
    """Give the means of one measure by slice: run_id, slice, n, mean, ci_low, ci_high, level, judged, p_adjusted, ..

    .. family.

    by: a column of queries or requests, or several, whose values are then joined. measure: None takes the first that
    was scored, but for naive_recall. judged: whether a slice has at least min_n values; others have no interval.
    p_adjusted: of "this slice is like the rest of its run", adjusted over the slices of these runs, which are `family`.
    runs: as for `recall`. Slices stand in the order of their values, a null last.

    Raises UsageError for columns, measures and runs that are not there.
    """
    _check_kind(scores, Scores)
    if not by:
        raise UsageError("by= names no column of queries or requests.")
    wanted = first_real(scores) if measure is None else parse(measure)
    told = scores.under([wanted])
    order = chosen(scores.accounting["run_id"], runs)
    summary = told.summary(by=by, min_n=min_n, level=_LEVEL).filter(pl.col("run_id").is_in(order), measure=str(wanted))
    # What is drawn together is judged together, and nothing else.
    adjusted = stats.benjamini_hochberg(summary["p"].to_list())
    parts = summary.with_columns(
        pl.Series("p_adjusted", adjusted, pl.Float64),
        slice=_slice(summary, summary.columns[1 : summary.columns.index("measure")]),
        judged=pl.col("n") >= min_n,
        level=pl.lit(_LEVEL),
        family=pl.col("p").count().cast(pl.Int64),
    ).partition_by("run_id", as_dict=True)
    there = [parts[run,].select(*SLICES_SCHEMA) for run in order if (run,) in parts]
    return pl.concat([SLICES_SCHEMA.to_frame(), *there])


def first_real(scores: Scores) -> Measure:
    """The first measure that was scored, but for naive_recall."""
    for name in scores.measures:
        if (measure := parse(name)).name != "naive_recall":
            return measure
    raise UsageError("nothing was scored that has slices: name a measure, such as doc_recall@10.")


def _slice(table: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """The values of a slice as one text; a null is named, and told from the word."""
    spans = pl.selectors.duration()
    named = table.select(columns).with_columns(spans.dt.to_string())  # a span of time is cast to no text
    return named.select(
        pl.concat_str([pl.col(c).cast(pl.String).fill_null(NO_VALUE) for c in columns], separator=", ")
    ).to_series()


def differences(
    found: Diagnosis | Comparison, pairs: Sequence[tuple[str, str]] | None = None, cuts: Sequence[str] | None = None
) -> pl.DataFrame:
    """Give paired differences: baseline, candidate, measure (without its cut), cut, slice, n_pairs, delta, ci_low, ..

    .. ci_high, prefers (the side that is higher, "baseline" or "candidate", for both may have a run of the same name;
    null where the two cannot be told apart), judged (whether there are enough pairs: slices with fewer than min_n are
    not tested), unit (what a difference of 1 is). Runs of a comparison are told apart where the adjusted p is below
    1 - level, those of a diagnosis by its own rule. slice: null without slices. Rows stand in the order of `found`.
    pairs: (baseline, candidate), in order; None takes all. cuts: such as `10`, `10docs` or `512tokens`; None takes all.

    Raises UsageError for pairs and cuts that are not there.
    """
    _check_kind(found, Diagnosis, Comparison)
    frame = pl.DataFrame(map(_difference, _deltas(found)), schema=DIFFERENCES_SCHEMA)
    if pairs is not None:
        there = frame.select("baseline", "candidate").unique(maintain_order=True).rows()
        for pair in pairs:
            if pair not in there:
                raise UsageError(
                    f"pairs= has {printable(repr(pair))}, which was not compared. A pair is (baseline, candidate); "
                    f"there are {_listed([repr(known) for known in there], most=5)}."
                )
        frame = pl.concat([frame.clear(), *(frame.filter(baseline=a, candidate=b) for a, b in pairs)])
    if cuts is not None:
        asked = [cut.removeprefix("@") for cut in ([cuts] if isinstance(cuts, str) else cuts)]
        known = frame["cut"].unique(maintain_order=True).to_list()
        for cut in asked:
            if cut not in known:
                raise UsageError(f"nothing was compared at @{printable(cut)}; there is {_listed(known)}.")
        frame = frame.filter(pl.col("cut").is_in(asked))
    if frame.is_empty():
        raise UsageError("there are no differences to draw: it takes two runs, a pair of them and a cut.")
    return frame


def _deltas(found: Diagnosis | Comparison) -> list[dict[str, Any]]:
    if isinstance(found, Diagnosis):
        side = pl.when(pl.col("prefers") == pl.col("candidate")).then(pl.lit("candidate")).otherwise(pl.lit("baseline"))
        return found.deltas.with_columns(
            slice=pl.lit(None, pl.String),
            prefers=pl.when(pl.col("prefers").is_not_null()).then(side),
            judged=pl.col("n_pairs") > 0,
        ).to_dicts()
    table = found.table
    by = table.columns[table.columns.index("measure") + 1 : table.columns.index("n_pairs")]
    told = pl.col("p_adjusted") < 1 - found.level
    higher = pl.when(pl.col("delta") > 0).then(pl.lit("candidate")).otherwise(pl.lit("baseline"))
    return table.with_columns(
        slice=_slice(table, by) if by else pl.lit(None, pl.String),
        prefers=pl.when(told).then(higher),
        judged=pl.col("p").is_not_null(),
    ).to_dicts()


def _difference(row: dict[str, Any]) -> dict[str, Any]:
    measure = parse(row["measure"])
    same = ("baseline", "candidate", "slice", "n_pairs", "delta", "ci_low", "ci_high", "prefers", "judged")
    family = str(measure).removesuffix(f"@{measure.cut}")
    return {name: row[name] for name in same} | {"measure": family, "cut": str(measure.cut), "unit": unit_of(measure)}


def unit_of(measure: Measure | str) -> str:
    """What a value of 1 is."""
    units = {
        "naive_recall": "hits per relevant document",
        "distinct_docs": "documents",
        "context_chunks": "chunks",
        "context_tokens": "tokens",
    }
    return units.get((parse(measure) if isinstance(measure, str) else measure).name, SHARE)


def funnel(found: Funnel, runs: Sequence[str] | None = None) -> pl.DataFrame:
    """Give one row per run and step, in order: run_id, step, meaning, n, share, lost, unknown, as in `Funnel.table`."""
    _check_kind(found, Funnel)
    meanings = {step.name: step.meaning for step in found.steps}
    table = found.table.with_columns(meaning=pl.col("step").replace_strict(meanings, return_dtype=pl.String))
    parts = table.partition_by("run_id", as_dict=True)
    order = chosen(table["run_id"], runs)
    return pl.concat([table.clear(), *(parts[run,] for run in order)]).select(*FUNNEL_SCHEMA)


def chosen(known: pl.Series, runs: Sequence[str] | None) -> list[str]:
    """The runs that were asked for, in that order; by default all, numbers in their names counted as numbers."""
    there = known.unique().to_list()
    if runs is None:
        return sorted(there, key=_counted)
    names = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
    if not names:
        raise UsageError(f"runs= names no run. The runs are {_listed(sorted(there))}.")
    for run in names:
        if run not in there:
            raise UsageError.no_such_run(run, there)
    return list(dict.fromkeys(names))


def _counted(name: str) -> list[tuple[int, str]]:
    """A key by which w32 comes before w128: of two numbers without leading zeros the longer is the larger."""
    pieces = re.split(r"([0-9]+)", name)
    digits = [piece.lstrip("0") for piece in pieces[1::2]]
    numbers = [(len(number), number) for number in digits]
    words = [(0, piece) for piece in pieces[::2]]
    return [part for pair in zip_longest(words, numbers, fillvalue=(0, "")) for part in pair]


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(map(printable, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _check_kind(given: object, *kinds: type) -> None:
    if not isinstance(given, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise InputTypeError(f"this is drawn of {wanted}; it was given a {type(given).__name__}.")


def _means(scores: Scores) -> dict[tuple[str, str], dict[str, Any]]:
    level = scores.intervals.how.level  # of what `summary` shows: results may have been written at another one
    return {(row["run_id"], row["measure"]): row | {"level": level} for row in scores.summary().to_dicts()}


def _interval(row: dict[str, Any]) -> dict[str, Any]:
    return {column: row[column] for column in ("ci_low", "ci_high", "level")}
