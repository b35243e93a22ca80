"""Do two runs differ: unit by unit, with intervals and tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import polars as pl

from docrecall import stats
from docrecall.errors import DataError, InputTypeError, UsageError
from docrecall.flips import Flips, Side, find_flips
from docrecall.measures.grammar import Cut, Measure, parse_all
from docrecall.pairs import Both, Pairs, difference
from docrecall.parted import Parted
from docrecall.reopen import found_again
from docrecall.scores import Scores
from docrecall.show import Displayed, printable
from docrecall.slices import Tags, open_tags
from docrecall.sources.mapping import parse_mapping
from docrecall.stats.effects import standard_error
from docrecall.stats.signs import sign_flip
from docrecall.store import load
from docrecall.summary import MIN_N, How, Parting, rows_of
from docrecall.tables import UNIT

COMPARISON_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("baseline", "candidate", "measure"), pl.String()),
        **dict.fromkeys(("n_pairs", "only_in_baseline", "only_in_candidate"), pl.Int64()),
        **dict.fromkeys(("mean_baseline", "mean_candidate", "delta", "ci_low", "ci_high"), pl.Float64()),
        "ci_method": pl.String(),
        **dict.fromkeys(("p", "p_adjusted"), pl.Float64()),
        **dict.fromkeys(("wins", "ties", "losses"), pl.Int64()),
        **dict.fromkeys(("effect_size", "smallest_difference"), pl.Float64()),
        **dict.fromkeys(("paired_by", "test"), pl.String()),
    }
)
# Policies that say how a log is written, or what happens to a faulty one, and not what is measured.
_OF_THE_LOG = ("rank_base", "on_bad_rows")
POWER = 0.8


@dataclass(frozen=True)
class Comparison(Displayed):
    """Paired differences of runs, candidate less baseline.

    table: one row per pair of runs, measure and slice: baseline, candidate, measure, [slice], n_pairs (units with a
      value in both runs), only_in_baseline, only_in_candidate (units with a value in one alone), mean_baseline,
      mean_candidate (over the pairs, weighed where queries have weights), delta, ci_low, ci_high, ci_method, p,
      p_adjusted, wins, ties, losses (pairs in which the candidate is higher, equal, lower), effect_size (the mean
      difference over its standard deviation), smallest_difference (the true difference that this many pairs would have
      shown with a power of 80 %), paired_by ("request" or "query"), test. Nulls stand where there is too little to say.
    accounting: what became of the units of each run that was compared: side ("baseline" or "candidate"; null where both
      are of the same scores) and the columns of `Scores.accounting`.
    by, cluster, min_n: how units were parted. Slices with fewer pairs than min_n are shown and not judged.
    adjustment: "holm" over all measures and pairs of runs, or "benjamini-hochberg" where there are slices.
    family: how many tests were adjusted for each other. level, resamples, seed: of intervals and tests.
    notes: a sentence for each two runs of which few requests meet.
    """

    table: pl.DataFrame
    accounting: pl.DataFrame
    by: tuple[str, ...]
    cluster: str | None
    min_n: int
    adjustment: str
    family: int
    level: float
    resamples: int
    seed: int
    notes: tuple[str, ...]
    _find: Callable[[], Flips] = field(repr=False)

    @property
    def flips(self) -> pl.DataFrame:
        """The pairs that changed: gained, lost, and equal in value but by different documents.

        Gained means a higher value, which of measures such as repeat_share is nothing to wish for.
        One row per pair of runs, measure and unit: baseline, candidate, measure, [request_id], query_id, change
        ("gained", "lost", "other documents"), value_baseline, value_candidate, docs_baseline, docs_candidate: the
        relevant documents that were found inside the cut, best first, for which the tables are read once more, also
        those of results that were loaded. Where these tables were frames, or their files are gone or changed, the lists
        are null and units of equal value are left out; `flip_notes` says so.
        """
        return self._flips.frame

    @property
    def flip_notes(self) -> tuple[str, ...]:
        """A sentence for each side whose documents are not known, and why."""
        return self._flips.notes

    @cached_property
    def _flips(self) -> Flips:
        return self._find()

    def __repr__(self) -> str:
        pairs = self.table.select("baseline", "candidate").n_unique()
        return f"<Comparison: {pairs} pairs of runs, {self.table['measure'].n_unique()} measures, {self.family} tests>"


def compare(
    first: Scores | str | os.PathLike[str],
    second: Scores | str | os.PathLike[str] | None = None,
    *,
    baseline: str | None = None,
    candidate: str | Sequence[str] | None = None,
    measures: str | Iterable[str | Measure] | None = None,
    by: str | Sequence[str] | None = None,
    cluster: str | None = None,
    min_n: int = MIN_N,
    method: stats.Method | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    queries: Any = None,
    requests: Any = None,
    map: Any = None,
    read: Any = None,
) -> Comparison:
    """Compare runs over the units that are scored in both.

    first, second: `Scores`, or folders of results. With one of them its runs are compared: `candidate` (one or several)
    with `baseline`; all others with it where only that is named; all pairs where neither is. With two, runs of the
    second are compared with one of the first: those that are named, or the only ones, or those of equal names.
    measures: those to compare; by default all, which must be the same on both sides.

    Units are paired by what names them. Runs logged by request are paired by query, each with the mean of its requests,
    where their request ids do not meet (or fewer than one in ten of the smaller run do), and with `unit="query"`;
    `notes` says where fewer than half meet. Pairs weigh as their query does. Requests of one query are resampled and
    flipped together, or what has an equal value in the column `cluster` (null: alone).
    p is that of the two-sided sign-flip test: exact up to 20 pairs that differ, else by `resamples` random patterns.
    Runs that are identical have delta 0 and p 1. by, min_n: as for `Scores.summary`; slices are those of the baseline.
    queries, requests, map, read: the tables with such columns, where results were loaded; as for `load`.

    The same seed gives the same bits for any number of threads. Raises UsageError for runs that were not scored alike
    (measures, labels, policies or versions; it says which), DataError for runs without a common unit.
    """
    parting = Parting.of(by, cluster, min_n, [*COMPARISON_SCHEMA, *UNIT])
    how = How(level, resamples, seed, method).check()
    old, new = _opened(first), None if second is None else _opened(second)
    wanted = None if measures is None else parse_all(measures)
    if wanted is not None:
        old, new = old.under(wanted), None if new is None else new.under(wanted)
    if new is not None:
        refuse_unlike(old, new, measures_named=wanted is not None)
    couples = _couples(old, new, baseline, candidate)
    new = old if new is None else new
    names = old.measures if wanted is None else tuple(str(m) for m in wanted)
    opened = {"queries": queries, "requests": requests}
    key = old.scan().collect_schema()
    given = Tags.of(open_tags(opened, parse_mapping(map, read), key, old.options), old.options)
    of_old = next((tags for tags in (given, old.tags) if tags.tables), new.tags)
    tags = of_old, next((tags for tags in (given, new.tags) if tags.tables), of_old)
    units = [old.units(), *([] if new is old else [new.units()])]
    sides = [(Side(old, a), Side(new, b)) for a, b in couples]
    by_query = old.means_of_queries or new.means_of_queries
    paired = [Pairs.of(units[0][a], units[-1][b], by_query=by_query) for a, b in couples]
    table = pl.concat([_compared(pairs, names, tags, parting, how) for pairs in paired])
    ps = table["p"].to_list()
    adjusted = stats.benjamini_hochberg(ps) if parting.by else stats.holm(ps)
    return Comparison(
        table.with_columns(pl.Series("p_adjusted", adjusted, dtype=pl.Float64)),
        _accounts(old, new, couples),
        parting.by,
        cluster,
        min_n,
        "benjamini-hochberg" if parting.by else "holm",
        sum(p is not None for p in ps),
        level,
        resamples,
        seed,
        tuple(pairs.note for pairs in paired if pairs.note),
        partial(find_flips, sides, paired, names, _look),
    )


def _look(scores: Scores, cuts: Sequence[Cut]) -> pl.DataFrame:
    """The documents that were found, of scores in memory or of results that were read back."""
    found = scores.found(cuts)
    return found_again(scores, cuts) if found is None else found


def _accounts(old: Scores, new: Scores, couples: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """The accounts of the runs that are compared."""
    befores, afters = ({couple[side] for couple in couples} for side in (0, 1))
    wanted: list[tuple[str | None, Scores, set[str]]] = [("baseline", old, befores), ("candidate", new, afters)]
    if new is old:
        wanted = [(None, old, befores | afters)]
    return pl.concat(
        scores.accounting.filter(pl.col("run_id").is_in(runs)).select(pl.lit(side, pl.String).alias("side"), pl.all())
        for side, scores, runs in wanted
    )


def _opened(given: Scores | str | os.PathLike[str]) -> Scores:
    if isinstance(given, Scores):
        return given
    if isinstance(given, str | os.PathLike):
        return load(given)
    raise InputTypeError(f"compare takes Scores or folders of results; this is a {type(given).__name__}.")


def refuse_unlike(old: Scores, new: Scores, *, measures_named: bool) -> None:
    """Raise UsageError for scores that cannot be put side by side, and say why."""
    unlike = []
    if not measures_named and set(old.measures) != set(new.measures):
        alone = [", ".join(m for m in a.measures if m not in b.measures) for a, b in ((old, new), (new, old))]
        sides = zip(alone, ("baseline", "candidate"), strict=True)
        told = [f"{names} only in the {side}" for names, side in sides if names]
        unlike.append(f"measures ({'; '.join(told)}; measures= (--measure) names those to compare)")
    for name in ("qrels", "evidence"):
        digests = [scores.labels.get(name) for scores in (old, new)]
        if digests[0] != digests[1]:
            unlike.append(f"{name} (digest {digests[0] or 'none'} and {digests[1] or 'none'})")
    for name, (one, other) in old.options.unlike(new.options).items():
        if name not in _OF_THE_LOG:
            unlike.append(f"{name} ({one!r} and {other!r})")
    for name, version in old.versions.items():
        if version != new.versions[name]:
            unlike.append(f"the version of {name} ({version} and {new.versions[name]})")
    types = [scores.scan().collect_schema()["query_id"] for scores in (old, new)]
    if types[0] != types[1]:
        unlike.append(f"the type of query_id ({types[0]} and {types[1]})")
    if unlike:
        raise UsageError(
            f"the runs were not scored alike and cannot be compared. They differ in {'; in '.join(unlike)}. Score both "
            "in the same way."
        )


def _couples(
    old: Scores, new: Scores | None, baseline: str | None, candidate: str | Sequence[str] | None
) -> list[tuple[str, str]]:
    """The runs to compare: baseline and candidate."""
    runs = [sorted(scores.accounting["run_id"]) for scores in (old, new or old)]
    wanted: list[Any] | None = None
    if candidate is not None:
        one = isinstance(candidate, str) or not isinstance(candidate, Iterable)
        wanted = [candidate] if one else list(dict.fromkeys(candidate))
    if wanted is not None and not wanted:
        raise UsageError("candidate names no run. Leave it out to compare all.")
    for name, known in [(baseline, runs[0]), *((c, runs[1]) for c in wanted or ())]:
        if name is not None and name not in known:
            raise UsageError.no_such_run(name, known)
    return _within(runs[0], baseline, wanted) if new is None else _across(runs[0], runs[1], baseline, wanted)


def _within(runs: Sequence[str], baseline: str | None, wanted: Sequence[str] | None) -> list[tuple[str, str]]:
    """Pairs among the runs of one log."""
    if len(runs) < 2:
        raise UsageError(f"there is one run ({', '.join(map(printable, runs))}); two are needed to compare.")
    if baseline is None:
        if wanted is not None:
            raise UsageError("a candidate was named and no baseline to compare it with: name baseline= (--baseline).")
        return list(combinations(runs, 2))
    if wanted is not None and baseline in wanted:
        raise UsageError(f"{printable(baseline)} is both baseline and candidate.")
    return [(baseline, run) for run in wanted or runs if run != baseline]


def _across(
    old: Sequence[str], new: Sequence[str], baseline: str | None, wanted: Sequence[str] | None
) -> list[tuple[str, str]]:
    """Pairs of runs of two logs: named, or the only ones, or of equal names."""
    if baseline is None and len(old) == 1:
        baseline = old[0]
    if baseline is None:
        found = [(run, run) for run in wanted or new if run in old]
    else:
        same = [baseline] if baseline in new else []
        found = [(baseline, run) for run in wanted or same or new]
    if not found:
        raise UsageError(
            f"which runs are to be compared? The baseline has {', '.join(map(printable, old))}, the candidate "
            f"{', '.join(map(printable, new))}, and no name stands on both sides: name baseline= and candidate=."
        )
    return found


def _compared(
    pairs: Pairs, measures: Sequence[str], tags: tuple[Tags, Tags], parting: Parting, how: How
) -> pl.DataFrame:
    """The rows of two runs."""
    parted = Parted.of(pairs, tags, parting)
    frames, n_pairs = [], 0
    for measure in measures:
        both = pairs.both(measure, parted.clusters)
        n_pairs += len(both.before)
        least = parting.min_n if parting.by else 1
        rows = [_row(part, how, judged=len(part.before) >= least) for part in parted.parts(both)]
        same = {
            "baseline": pairs.before.run,
            "candidate": pairs.after.run,
            "measure": measure,
            "paired_by": pairs.paired_by,
        }
        frames.append(rows_of(parted.slices, same, rows, COMPARISON_SCHEMA).with_row_index("__slice"))
    if not n_pairs:
        raise DataError(_nothing_shared(pairs))
    first, *rest = ("baseline", "candidate", "measure"), *tags[0].names(parting.by)
    others = [c for c in COMPARISON_SCHEMA if c not in first]
    return pl.concat(frames).sort("__slice", maintain_order=True).select(*first, *rest, *others)


def _row(both: Both, how: How, *, judged: bool) -> dict[str, Any]:
    found = difference(both, how if judged else None)
    low, high, method = found.interval or (None, None, None)
    p = effect = least = test = None
    if judged and found.sample is not None and found.pairs is not None:
        p, kind = sign_flip(found.sample, how.resamples, how.seed)
        test = f"sign-flip ({kind})"
        effect = stats.effect_size(found.pairs)
        error, n = standard_error(found.sample), found.sample.n
        if error is not None:
            least = stats.smallest_difference(sd=error * n**0.5, n=n, level=how.level, power=POWER)
    return {
        "n_pairs": found.n,
        "only_in_baseline": int(both.only_before.sum()),
        "only_in_candidate": int(both.only_after.sum()),
        "mean_baseline": found.before,
        "mean_candidate": found.after,
        "delta": found.delta,
        "ci_low": low,
        "ci_high": high,
        "ci_method": method,
        "p": p,
        "p_adjusted": None,
        "wins": found.wins,
        "ties": found.n - found.wins - found.losses,
        "losses": found.losses,
        "effect_size": effect,
        "smallest_difference": least,
        "test": test,
    }


def _nothing_shared(pairs: Pairs) -> str:
    shown = []
    for units in (pairs.before, pairs.after):
        scored = units.keys["query_id"].filter(pl.Series(units.scored))
        examples = ", ".join(map(printable, scored.cast(pl.String).unique().sort().head(3))) or "none"
        shown.append(f"{printable(units.run)} has {len(scored):,} scored units ({examples})")
    return f"no unit has a value in both runs, so there is nothing to compare: {', '.join(shown)}."
