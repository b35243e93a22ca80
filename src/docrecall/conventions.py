"""Why another tool says something else: the conventions of recall that are in the field, one query at a time.

Each is defined by what it does, as plainly as `reference.py`, on what a tool is handed: the ranked list of (document,
score) of one query, one entry per chunk, and the set of its relevant documents. Places are places in that list.

None means that the query leaves the mean. Where a convention says nothing else, a query for which nothing is relevant
leaves it, and a query without hits counts 0, as everywhere in docrecall.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Doc = Hashable
Ranked = Sequence[tuple[Doc, float]]
Rule = Callable[[Ranked, Collection[Doc], int], float | None]

CASE: Ranked = (("manual", 0.9), ("manual", 0.8), ("manual", 0.7), ("faq", 0.6), ("terms", 0.5))
CASE_RELEVANT = frozenset({"manual", "faq"})
CASE_K = 3


class Seen(NamedTuple):
    """An evaluator that was run. printed: its Recall@3 on `CASE`; None where it refused. note: what else was seen."""

    evaluator: str
    version: str
    printed: float | None
    note: str = ""


@dataclass(frozen=True)
class Convention:
    """One way to compute recall.

    rule: for queries of which something is relevant. empty: the value of the others; None, also where a tool has NaN,
    which its mean passes over. seen_in: evaluators that were seen to do so; other versions may do otherwise. of_mean:
    whether it is about queries that the mean treats apart; these evaluators then share that treatment, and not the way
    to cut.
    """

    name: str
    meaning: str
    rule: Rule
    seen_in: tuple[Seen, ...]
    of_mean: bool = False
    empty: float | None = None

    def value(self, hits: Ranked, relevant: Collection[Doc], k: int) -> float | None:
        """Give the value of one query, None where it leaves the mean. Raises ValueError for k < 1.

        hits: (document, score) in rank order, repeats kept. relevant: the ids of the relevant documents.
        """
        if k < 1:
            raise ValueError("k must be positive")
        return self.rule(hits, relevant, k) if relevant else self.empty


def every_hit(hits: Ranked, relevant: Collection[Doc], k: int) -> float:
    """Relevant hits among the first k, repeats counted, over the relevant documents. May exceed 1."""
    return sum(doc in relevant for doc, _ in hits[:k]) / len(relevant)


def grown(hits: Ranked, relevant: Collection[Doc], k: int) -> float:
    """Relevant hits among the first k, over all relevant hits at any rank and the relevant documents without a hit."""
    found = [doc for doc, _ in hits if doc in relevant]
    missed = len(relevant) - len(set(found))
    return sum(doc in relevant for doc, _ in hits[:k]) / (len(found) + missed)


def last_score(hits: Ranked, relevant: Collection[Doc], k: int) -> float:
    """Each document has the score of its last hit; documents are ranked by it, equal ones by first appearance."""
    scores = dict(hits)
    ranked = sorted(scores, key=lambda doc: -scores[doc])
    return sum(doc in relevant for doc in ranked[:k]) / len(relevant)


def dedupe_first(hits: Ranked, relevant: Collection[Doc], k: int) -> float:
    """Relevant documents among the first k distinct documents in order of first appearance."""
    ranked = list(dict(hits))
    return sum(doc in relevant for doc in ranked[:k]) / len(relevant)


def cut_first(hits: Ranked, relevant: Collection[Doc], k: int) -> float:
    """Distinct relevant documents among the first k hits."""
    return sum(doc in relevant for doc in dict(hits[:k])) / len(relevant)


def hits_only(hits: Ranked, relevant: Collection[Doc], k: int) -> float | None:
    """As `cut_first`, but a query without hits is not there."""
    return cut_first(hits, relevant, k) if hits else None


CONVENTIONS: tuple[Convention, ...] = (
    Convention(
        "every_hit_counted",
        "Every hit of a relevant document counts, over the relevant documents: can exceed 1.",
        every_hit,
        (
            Seen("Spark RankingMetrics", "4.3.0", 1.5),
            Seen("recommenders", "1.2.1", 1.5),
            Seen("ranx", "0.3.21", 1.5, "given raw arrays"),
            Seen("pyvespa", "1.2.9", 1.5, "its metric method alone, on these hits"),
            Seen("sentence-transformers", "6.2.0", 1.5, "its metric method alone, on these hits"),
        ),
    ),
    Convention(
        "denominator_grown_by_repeats",
        "Every hit of a relevant document counts, and enlarges what is to be found: stays inside [0, 1].",
        grown,
        (
            Seen("torchmetrics", "1.9.0", 0.75),
            Seen("RecTools", "0.19.0", 0.75),
            Seen("Evidently", "0.7.23", 0.75),
        ),
    ),
    Convention(
        "last_score_wins_then_cut",
        "A document keeps the score of its last hit, which demotes one whose best chunk came first; then the cut.",
        last_score,
        (
            Seen("pytrec_eval-terrier", "0.5.11", 1.0, "given a dict; its run parser refuses repeats"),
            Seen("ir_measures", "0.4.3", 1.0),
            Seen("ranx", "0.3.21", 1.0, "given a dict or a DataFrame"),
            Seen("BEIR", "2.2.0", 1.0),
            Seen("MTEB", "2.26.24", 1.0),
        ),
    ),
    Convention(
        "dedupe_then_cut",
        "Distinct documents by first appearance, then the cut: docrecall's doc_recall@kdocs.",
        dedupe_first,
        (Seen("retrieval-eval", "0.1.1", 1.0),),
    ),
    Convention(
        "cut_then_dedupe",
        "The cut through the chunks, then distinct documents: docrecall's doc_recall@k.",
        cut_first,
        (
            Seen("ragas", "0.4.3", 0.5, "by ids; the caller cuts"),
            Seen("LlamaIndex", "0.14.25", 0.5, "the caller cuts"),
            Seen("Haystack", "3.4.1", 0.5, "by meta.file_id; the caller cuts"),
            Seen("mlflow", "3.18.0", 0.5),
            Seen("TruLens", "2.16.0", 0.5),
            Seen("replay-rec", "0.22.0", 0.5),
            Seen("AutoRAG", "0.3.27", 0.5, "the caller cuts"),
        ),
    ),
    Convention(
        "no_hits_left_out",
        "Queries without hits leave the mean instead of counting 0; the others are cut, then deduped.",
        hits_only,
        (
            Seen("pytrec_eval-terrier", "0.5.11", 1.0, "drops them from its output"),
            Seen("BEIR", "2.2.0", 1.0, "its MRR divides by all queries"),
            Seen("MTEB", "2.26.24", 1.0),
            Seen("recommenders", "1.2.1", 1.5),
        ),
        of_mean=True,
    ),
    Convention(
        "empty_as_0",
        "Queries for which nothing is relevant count 0; the others are cut, then deduped.",
        cut_first,
        (
            Seen("trec_eval", "10.0-rc3 (f425365)", None, "queries whose grades are all 0; refuses repeats"),
            Seen("pytrec_eval-terrier", "0.5.11", 1.0, "queries whose grades are all 0"),
            Seen("ir_measures", "0.4.3", 1.0),
            Seen("ranx", "0.3.21", 1.0),
            Seen("Haystack", "3.4.1", 0.5, "with a warning"),
            Seen("Spark RankingMetrics", "4.3.0", 1.5, "with a line in the log"),
            Seen("replay-rec", "0.22.0", 0.5),
            Seen("AutoRAG", "0.3.27", 0.5),
        ),
        of_mean=True,
        empty=0.0,
    ),
    Convention(
        "empty_as_1",
        "Queries for which nothing is relevant count 1; the others are cut, then deduped.",
        cut_first,
        (
            Seen("torchmetrics", "1.9.0", 0.75, "with the option `pos`"),
            Seen("mlflow", "3.18.0", 0.5, "where nothing was retrieved; else 0"),
        ),
        of_mean=True,
        empty=1.0,
    ),
    Convention(
        "empty_as_nan",
        "Queries for which nothing is relevant are NaN, which the mean passes over; the others are cut, then deduped.",
        cut_first,
        (
            Seen("ragas", "0.4.3", 0.5, "does not say how many"),
            Seen("TruLens", "2.16.0", 0.5),
        ),
        of_mean=True,
    ),
)
