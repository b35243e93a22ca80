"""Where answers get lost: each step of one log is the conjunction with those before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import polars as pl

from docrecall.errors import UsageError
from docrecall.measures.grammar import Cut, Measure, parse
from docrecall.scores import Scores
from docrecall.show import Displayed

Need = Literal["any", "all"]
DEFAULT_BUDGET = "@2000tokens"
NO_SPANS = "neither hits nor chunks say where chunks begin and end (chunk_start, chunk_end)"
NO_TOKENS = "neither hits nor chunks say how many tokens chunks have (n_tokens)"

FUNNEL_SCHEMA = pl.Schema(
    {
        "run_id": pl.String(),
        "step": pl.String(),
        "measure": pl.String(),
        "n": pl.Int64(),
        "share": pl.Float64(),
        "of_previous": pl.Float64(),
        "lost": pl.Int64(),
        "unknown": pl.Int64(),
    }
)


class Given(Protocol):
    """What is known of the tables: those that are about to be read, or those that scores came from."""

    def reads(self, table: str, *columns: str) -> bool:
        """Whether a table was given, with some columns in all of its files."""


@dataclass(frozen=True)
class Step:
    """A step: its name, the measure that must be 1, and what it says. The first and the last have no measure."""

    name: str
    measure: Measure | None
    meaning: str


@dataclass(frozen=True)
class FunnelPlan:
    """The steps of a funnel, in order, and a sentence for each that was left out, and why."""

    steps: tuple[Step, ...]
    left_out: tuple[str, ...]

    @property
    def measures(self) -> list[Measure]:
        """What must be scored for it, each measure once."""
        return list(dict.fromkeys(step.measure for step in self.steps if step.measure is not None))


@dataclass(frozen=True)
class Funnel(Displayed):
    """One funnel for each run.

    table: run_id, step, measure (null for the first and the last step), n (units that passed this step and all before
      it), share (of the labelled ones; null when there are none), of_previous (of those that passed the step before),
      lost (units that passed the step before, and not this one; for the first step those that are not scored), unknown
      (units that passed because they have no label for this step, such as no gold passage).
    lost: the key of each unit that was lost, with the step: a frame to join on, sorted.
    steps: what the steps mean, in order. left_out: a sentence for each step that the tables cannot answer to.
    """

    table: pl.DataFrame
    lost: pl.DataFrame
    steps: tuple[Step, ...]
    left_out: tuple[str, ...] = ()


def funnel(
    scores: Scores,
    cut: str = "@10",
    budget: str | None = DEFAULT_BUDGET,
    coverage: float = 1.0,
    need: Need = "any",
) -> Funnel:
    """Follow the units of each run from their labels to the answer, and say where they get lost.

    Steps: labelled (scored) -> retrieved (a relevant document anywhere in the log) -> in_cut (inside `cut`) -> passage
    (a gold passage covered to `coverage` inside `cut`; where evidence was given) -> in_budget (the same inside the
    token budget) -> answered (by `scores.decided`). need: whether any relevant document or passage is enough, or all
    are needed. budget: None leaves its step out, and so does the default where nobody counted tokens; passages are left
    out where neither hits nor chunks have what covers them. Where the scores lack a measure of these the tables are
    read once more.

    Raises UsageError for words that have no meaning here, and after `load` when measures are missing; DataError when
    another budget is asked for and the log does not say how many tokens its chunks have.
    """
    plan = plan_steps(scores, cut, budget, coverage, need)
    told = scores.under(plan.measures)
    key = told.key
    units = told.scan().select(*key, "status", *map(str, plan.measures))
    answered = told.decided.select(*key, "answered")
    followed = units.join(answered, on=key, how="left", validate="1:1").sort(key).collect()
    return _follow(followed, key, plan, sorted(scores.accounting["run_id"]))


def plan_steps(given: Given, cut: str, budget: str | None, coverage: float, need: Need) -> FunnelPlan:
    """Decide which steps the tables can answer to."""
    if need not in get_args(Need):
        raise UsageError(f"need is {need!r}; it may be {' or '.join(get_args(Need))}.")
    if not isinstance(coverage, int | float) or isinstance(coverage, bool) or not 0 < coverage <= 1:
        raise UsageError(f"coverage is {coverage!r}; it must be a number above 0 and at most 1.")
    left_out = []
    passages = covers_passages(given)
    if given.reads("evidence") and not passages:
        left_out.append(f"passage: {NO_SPANS}")
    tokens = counts_tokens(given)
    if budget == DEFAULT_BUDGET and not tokens:
        left_out.append(f"in_budget: {NO_TOKENS}")
        budget = None
    answered = "that were answered" if answers_logged(given) else "with any hit to answer from (nobody logged answers)"
    steps = _steps(_cut(cut), None if budget is None else _cut(budget), coverage, need, passages=passages)
    return FunnelPlan((*steps, Step("answered", None, answered)), tuple(left_out))


def covers_passages(given: Given) -> bool:
    """Whether gold passages were given, and the hits have what covers them."""
    spans = given.reads("hits", "chunk_start", "chunk_end") or given.reads("chunks", "chunk_start", "chunk_end")
    whole = given.reads("hits", "chunk_id") and not given.reads("evidence", "start")
    return given.reads("evidence") and (spans or whole)


def counts_tokens(given: Given) -> bool:
    """Whether somebody counted the tokens of chunks."""
    return given.reads("hits", "n_tokens") or given.reads("chunks", "n_tokens")


def answers_logged(given: Given) -> bool:
    """Whether somebody logged what was answered."""
    return given.reads("requests", "answered") or given.reads("requests", "retrieved")


def _steps(cut: Cut, budget: Cut | None, coverage: float, need: Need, *, passages: bool) -> Iterator[Step]:
    which, how_many = ("hit", "a") if need == "any" else ("all", "every")
    document, passage = f"{how_many} relevant document", f"{how_many} gold passage"
    covered = f"covered to {coverage:.0%} "
    share = (("coverage", coverage),)
    yield Step("labelled", None, "whose labels say what is relevant")
    yield Step("retrieved", Measure(f"doc_{which}", Cut("all")), f"with {document} anywhere in the log")
    yield Step("in_cut", Measure(f"doc_{which}", cut), f"with {document} inside @{cut}")
    if passages:
        yield Step("passage", Measure(f"evidence_{which}", cut, share), f"with {passage} {covered}inside @{cut}")
    if budget is not None and passages:
        at = Measure(f"evidence_{which}", budget, share)
        yield Step("in_budget", at, f"with {passage} {covered}inside @{budget}")
    elif budget is not None:
        yield Step("in_budget", Measure(f"doc_{which}", budget), f"with {document} inside @{budget}")


def _cut(text: str) -> Cut:
    try:
        return parse(f"doc_hit{text}").cut
    except UsageError:
        raise UsageError(
            f"{text!r} is not a cut. Write for example @10, @10docs, @2000tokens, @context or @all."
        ) from None


def _follow(units: pl.DataFrame, key: list[str], plan: FunnelPlan, runs: list[str]) -> Funnel:
    """Take the steps one after the other; a unit without a value for a step passes it, and is counted."""
    rows: list[dict[str, Any]] = []
    lost: list[pl.DataFrame] = []
    left = units
    start = dict.fromkeys(runs, 0) | _per_run(units.filter(pl.col("status") == "scored"))
    before = dict.fromkeys(runs, 0) | _per_run(units)
    for step in plan.steps:
        passes, unknown = _passes(step)
        gone = left.filter(~passes)
        unsure = _per_run(left.filter(unknown))
        left = left.filter(passes)
        n = dict.fromkeys(runs, 0) | _per_run(left)
        lost.append(gone.select(*key, pl.lit(step.name).alias("step")))
        rows += [
            {
                "run_id": run,
                "step": step.name,
                "measure": None if step.measure is None else str(step.measure),
                "n": n[run],
                "share": n[run] / start[run] if start[run] else None,
                "of_previous": n[run] / before[run] if before[run] else None,
                "lost": before[run] - n[run],
                "unknown": unsure.get(run, 0),
            }
            for run in runs
        ]
        before = n
    table = pl.DataFrame(rows, schema=FUNNEL_SCHEMA).sort("run_id", maintain_order=True)
    return Funnel(table, pl.concat(lost).sort(key), plan.steps, plan.left_out)


def _passes(step: Step) -> tuple[pl.Expr, pl.Expr]:
    """Which units pass a step, and which of them only because they have no value there."""
    if step.measure is not None:
        value = pl.col(str(step.measure))
        return value.fill_null(1.0) == 1, value.is_null()
    if step.name == "labelled":
        return pl.col("status") == "scored", pl.lit(False)
    return pl.col("answered"), pl.lit(False)


def _per_run(units: pl.DataFrame) -> dict[str, int]:
    return dict(units.group_by("run_id").len().iter_rows())
