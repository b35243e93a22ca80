"""What a diagnosis looks at: which cuts, which measures under each, and what the tables cannot answer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from docrecall.convention_means import check_ks
from docrecall.funnel import NO_SPANS, NO_TOKENS, Given, counts_tokens, covers_passages
from docrecall.measures.grammar import LARGEST_K, Cut, Measure, parse
from docrecall.sources.inputs import Inputs
from docrecall.sources.table import Table, collect
from docrecall.tables import fits

_LARGEST_CHUNKS = (1, 2, 4, 8)  # budgets where none are named
_PASSAGES, _TOKENS = ("evidence_coverage", "evidence_recall"), "context_tokens"
COMPARED = ("naive_recall", "doc_recall", "doc_recall_docs", *_PASSAGES)
COLUMNS = (*COMPARED, _TOKENS, "distinct_docs", "repeat_share")


@dataclass(frozen=True)
class DiagnosisPlan:
    """The measures of each cut by column, and a sentence for each thing that cannot be said."""

    by_cut: Mapping[Cut, Mapping[str, Measure]]
    notes: tuple[str, ...]

    @property
    def measures(self) -> list[Measure]:
        """What must be scored for it, each measure once."""
        return list(dict.fromkeys(m for columns in self.by_cut.values() for m in columns.values()))

    @property
    def budgets(self) -> list[int]:
        """The cuts in tokens."""
        return [cut.k for cut in self.by_cut if cut.unit == "tokens" and cut.k is not None]


def plan_diagnosis(
    given: Given,
    opened: Inputs | None,
    ks: Sequence[int],
    budgets: Sequence[int] | None,
    written: Collection[str] = (),
) -> DiagnosisPlan:
    """Decide what to look at. opened: the tables; None after `load`, where the cuts that were written are taken.

    budgets: None takes multiples of the largest chunk, where every row says its tokens. An empty list leaves out
    everything that reads tokens.
    """
    notes = []
    asked = None if budgets is None else check_ks(budgets, "budget", least=0)
    passages = covers_passages(given)
    if given.reads("evidence") and not passages:
        notes.append(f"passages: {NO_SPANS}")
    tokens = counts_tokens(given) and asked != []
    if asked is None:
        gaps = _uncounted(opened) if tokens and opened is not None else ""
        tokens = tokens and not gaps
        found = [] if not tokens else _budgets(opened) if opened is not None else _written(written)
        if not tokens:
            notes.append(f"tokens: {gaps or NO_TOKENS}")
        elif not found:
            notes.append("tokens: no chunk has any, so there is no budget to compare at")
        asked = found
    cuts = [*(Cut("chunks", k) for k in check_ks(ks)), *(Cut("tokens", n) for n in asked)]
    left_out = {*(() if passages else _PASSAGES), *(() if tokens else (_TOKENS,))}
    return DiagnosisPlan({cut: dict(_measures(cut, left_out)) for cut in cuts}, tuple(notes))


def _measures(cut: Cut, left_out: Collection[str]) -> Iterator[tuple[str, Measure]]:
    for column in COLUMNS:
        if column in left_out:
            continue
        if column != "doc_recall_docs":
            yield column, Measure(column, cut)
        elif cut.unit == "chunks":
            yield column, Measure("doc_recall", Cut("docs", cut.k))


def _counting(opened: Inputs) -> list[Table]:
    """The tables that say the tokens of hits: logs, and the table of chunks where a log does not."""
    chunks = opened.tables.get("chunks")
    own = [log for log in opened.logs if all("n_tokens" in part.schema for part in log.parts)]
    return own if len(own) == len(opened.logs) or chunks is None else [*own, chunks]


def _uncounted(opened: Inputs) -> str:
    """Say how many rows have no number of tokens, which a budget needs in each; nothing where all have."""
    nulls: Counter[str] = Counter()
    for table in _counting(opened):
        nulls[table.spec.name] += sum(p.null_count("n_tokens") for p in table.parts if "n_tokens" in p.schema)
    return " and ".join(f"{n:,} rows of {name} have no n_tokens" for name, n in nulls.items() if n)


def _budgets(opened: Inputs) -> list[int]:
    """Several of the largest chunk of all runs; none where no chunk has tokens."""
    largest = max(map(_largest, _counting(opened)), default=0)
    return [n * largest for n in _LARGEST_CHUNKS if 0 < n * largest <= LARGEST_K]


def _largest(table: Table) -> int:
    """The most tokens of a chunk; numbers that break the contract are left to it."""
    tokens = pl.col("n_tokens")
    largest = 0
    for part in table.parts:
        if fits("whole", part.schema["n_tokens"]):
            found = part.scan().select(tokens.filter(tokens.is_between(1, LARGEST_K)).max())
            largest = max(largest, collect(found, [part]).item() or 0)
    return largest


def _written(measures: Collection[str]) -> list[int]:
    cuts = {parse(name).cut for name in measures}
    return sorted(cut.k for cut in cuts if cut.unit == "tokens" and cut.k is not None)
