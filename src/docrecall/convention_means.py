"""The same log under each convention of `conventions`: a second pass over the batches, unit by unit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from docrecall.contract.known import check_known
from docrecall.contract.needs import needs_of
from docrecall.contract.schema import settle
from docrecall.conventions import CONVENTIONS, Ranked
from docrecall.errors import UsageError
from docrecall.exact import exact_sum
from docrecall.kernel.lists import UnitLists, lists_of
from docrecall.ledger import every_batch
from docrecall.options import Options
from docrecall.scores import Scores
from docrecall.sources.inputs import Inputs
from docrecall.sources.table import Table, collect

DEFAULT_KS = (1, 3, 10)
CONVENTIONS_SCHEMA = pl.Schema(
    {
        "run_id": pl.String(),
        "convention": pl.String(),
        "k": pl.Int64(),
        "value": pl.Float64(),
        "n": pl.Int64(),
        "ordered_by": pl.String(),
    }
)
BATCH_ROWS = 250_000  # as Python objects a row takes some 200 bytes
_LAST_SCORE = "last_score_wins_then_cut"


def convention_means(scores: Scores, ks: Sequence[int] = DEFAULT_KS, *, batch_rows: int = BATCH_ROWS) -> pl.DataFrame:
    """Give the mean of a log under each convention of recall that is in the field, read once more from its tables.

    ks: where the lists are cut. Hits are checked and put in order as they were for the scores, and labels are relevant
    from `min_relevance` on. What other tools do not know is left aside: gaps between ranks, versions of documents,
    weights, means inside queries. Units are those that are scored, and those that are judged or stated to have nothing
    relevant, which some conventions count. batch_rows: about how many hits are held as Python objects at a time.

    Returns run_id, convention, k, value (the plain mean; null when n is 0), n (units in the mean), ordered_by: "score"
    where a convention ordered the documents by logged scores, else "rank". "last score wins" goes by rank, a smaller
    one being the higher score, in a log without a score in every row.

    Raises UsageError for a k below 1 and after `load`; InputError when an input changed in the meantime.
    """
    cuts = check_ks(ks)
    if scores.opened is None:
        raise UsageError("the hits are not among the written results. Score the tables again to try conventions.")
    sums: defaultdict[tuple[str, str, int], Fraction] = defaultdict(Fraction)
    n: defaultdict[tuple[str, str, int], int] = defaultdict(int)
    by_score: dict[str, bool] = {}
    for units in _unit_batches(scores.opened, scores.options, batch_rows):
        values: defaultdict[tuple[str, str, int], list[float]] = defaultdict(list)
        for unit in units:
            hits = _ranked(unit)
            if unit.docs:
                by_score[unit.run] = unit.scores is not None or scores.options.by_score
            for convention in CONVENTIONS:
                for k in cuts:
                    value = convention.value(hits, unit.relevant, k)
                    if value is not None:
                        values[unit.run, convention.name, k].append(value)
        for key, found in values.items():
            sums[key] += exact_sum(np.array(found))
            n[key] += len(found)
    rows = [
        {
            "run_id": run,
            "convention": convention.name,
            "k": k,
            "value": float(sums[key]) / n[key] if n[key] else None,
            "n": n[key],
            "ordered_by": "score" if convention.name == _LAST_SCORE and by_score.get(run, False) else "rank",
        }
        for run in sorted(scores.accounting["run_id"])
        for convention in CONVENTIONS
        for k in cuts
        for key in [(run, convention.name, k)]
    ]
    return pl.DataFrame(rows, schema=CONVENTIONS_SCHEMA)


def check_ks(ks: Any, what: str = "k", *, least: int = 1) -> list[int]:
    """Give the ks in rising order, each once. Raises UsageError for what is no list of whole numbers of at least 1.

    least: how many there must be.
    """
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        raise UsageError(f"{what}s are {ks!r}; a list of whole numbers was expected, such as [1, 3, 10].")
    given = list(ks)
    for k in given:
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
            raise UsageError(f"{what} must be positive and whole, and one is {k!r}.")
    if len(given) < least:
        raise UsageError(f"no {what} was given: pass for example [1, 3, 10].")
    return sorted({int(k) for k in given})


def _ranked(unit: UnitLists) -> Ranked:
    scores: Any = range(0, -len(unit.docs), -1) if unit.scores is None else unit.scores
    return list(zip(unit.docs, scores, strict=True))


def _unit_batches(inputs: Inputs, options: Options, batch_rows: int) -> Iterator[Iterator[UnitLists]]:
    """Go through the batches once more; with the scores, where a log has one in every row and ranks order it."""
    inputs.check_unchanged()
    needs = needs_of(inputs, (), options)
    if not options.by_score:
        needs = replace(needs, columns={**needs.columns, "hits": {**needs.hits, "score": False}})
    settled = settle(inputs, needs, options)
    known = check_known(settled, needs, options)
    known = known._replace(logs=[_without_bad_scores(log) for log in known.logs])
    for batch in every_batch(settled, known, options, batch_rows):
        yield lists_of(batch, known.labels, options)


def _without_bad_scores(log: Table) -> Table:
    """A log whose scores are not used where any row lacks one."""
    if "score" not in log.used or log.requires("score") or "score" not in log.columns:
        return log
    bad = pl.col("score").is_null() | pl.col("score").is_nan()
    for parts in log.handfuls():
        if collect(log.scan(parts, ["score"]).filter(bad).head(1), parts).height:
            return replace(log, used={c: must for c, must in log.used.items() if c != "score"})
    return log
