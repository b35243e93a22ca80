"""The definition of every measure: one query, lists and sets, nothing else.

This file is the specification. The columnar code is tested to agree with it bit for bit, so it is written to be
read and not to be fast.

    R      the relevant documents of the query: those with grade >= min_relevance
    D      the distinct documents of the cut, in order of first appearance
    p(d)   the position of d's first appearance, at its labelled version, in the cut
    K      the number of places of the cut: k under `@k` and `@kdocs`, else the number of its rows

Sources of the formulas
    recall, precision, F1    C. J. van Rijsbergen, Information Retrieval, 2nd ed., 1979, chapter 7
    average precision        C. Buckley, E. Voorhees, Evaluating evaluation measure stability, 2000; `map` of trec_eval
    reciprocal rank          E. Voorhees, The TREC-8 question answering track report, 1999; `recip_rank` of trec_eval
    nDCG                     K. Järvelin, J. Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002, with
                             linear gain and the discount 1 / log2(position + 1); `ndcg` and `ndcg_cut` of trec_eval
    intersection over union  P. Jaccard, The distribution of the flora in the alpine zone, 1912
    effective sample size    L. Kish, Survey Sampling, 1965, section 11.7
The cuts, the repeats, the shares, the passages and the decisions are docrecall's own and defined here alone.

Sums run left to right in plain double precision. Python's `sum` is not used on floats: since Python 3.12 it
compensates, and its last bit then differs from a plain sum.
"""

from __future__ import annotations

import math
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Doc = Hashable
Span = tuple[int, int]  # half-open: characters start to end - 1 of the document's text


@dataclass(frozen=True)
class Hit:
    """One row of the log, which is one chunk of a document. What nobody knows is None."""

    rank: int
    doc: Doc
    chunk: Hashable = None
    version: str | None = None
    span: Span | None = None
    tokens: int | None = None
    in_context: bool | None = None


@dataclass(frozen=True)
class Label:
    """What is said of a document. stale: the index no longer serves this version, so nothing can meet the label."""

    grade: int
    version: str | None = None
    stale: bool = False


@dataclass(frozen=True)
class Passage:
    """A row of evidence: a span, a gold chunk, or both. Passages that share their id are alternatives."""

    evidence_id: Any
    doc: Doc
    span: Span | None = None
    chunk: Hashable = None
    version: str | None = None
    stale: bool = False


@dataclass(frozen=True)
class Judged:
    """Everything that is known of the answers to one query."""

    labels: Mapping[Doc, Label]
    passages: Sequence[Passage] = ()
    min_relevance: int = 1

    @property
    def relevant(self) -> set[Doc]:
        """R."""
        return {doc for doc, label in self.labels.items() if label.grade >= self.min_relevance}


def doc_recall(hits: Sequence[Doc], relevant: Collection[Doc], k: int) -> float | None:
    """Share of the relevant documents that occur among the first k chunks.

    hits: document ids in rank order, one per chunk, repeats kept. relevant: the ids of the relevant documents.
    Returns 0.0 without hits and None when nothing is relevant. Raises ValueError for k < 1 or a k that is not whole.

    >>> doc_recall(["manual", "manual", "manual", "faq", "terms"], {"manual", "faq"}, k=3)
    0.5
    """
    cut = cut_chunks((Hit(rank, doc) for rank, doc in enumerate(hits, start=1)), k)
    return value("doc_recall", cut, Judged({doc: Label(1) for doc in relevant}))


# The cut: which rows count, and at which position each stands.


@dataclass(frozen=True)
class Cut:
    """What a cut took from the hits of one query.

    rows: in rank order, repeats kept: the chunks. places: the position of each row. size: K. depth: where the ideal
    order of nDCG is cut; None for not at all.
    """

    rows: tuple[Hit, ...]
    places: tuple[int, ...]
    size: int
    depth: int | None

    @property
    def docs(self) -> list[Doc]:
        """D, in order of first appearance."""
        return list(dict.fromkeys(row.doc for row in self.rows))


def cut_chunks(hits: Iterable[Hit], k: int) -> Cut:
    """`@k`: the rows with rank <= k. Positions are logged ranks, so a missing row leaves its place empty."""
    k = _positive(k)
    rows = [row for row in _in_order(hits) if row.rank <= k]
    return Cut(tuple(rows), tuple(row.rank for row in rows), k, k)


def cut_docs(hits: Iterable[Hit], k: int) -> Cut:
    """`@kdocs`: the first k distinct documents by best rank, with all their rows. Positions count documents."""
    k = _positive(k)
    rows = _in_order(hits)
    place = {doc: number for number, doc in enumerate(list(dict.fromkeys(row.doc for row in rows))[:k], start=1)}
    kept = [row for row in rows if row.doc in place]
    return Cut(tuple(kept), tuple(place[row.doc] for row in kept), k, k)


def cut_tokens(hits: Iterable[Hit], budget: int) -> Cut:
    """`@Ntokens`: the longest rank-order prefix whose tokens sum to at most the budget."""
    budget, rows, total = _positive(budget), [], 0
    for row in _in_order(hits):
        total += row.tokens or 0
        if total > budget:
            break
        rows.append(row)
    return _in_a_row(rows)


def cut_context(hits: Iterable[Hit]) -> Cut:
    """`@context`: the rows that were passed to the model, in rank order."""
    return _in_a_row([row for row in _in_order(hits) if row.in_context])


def cut_all(hits: Iterable[Hit]) -> Cut:
    """`@all`: every row, in rank order; gaps between ranks are closed."""
    return _in_a_row(_in_order(hits))


def _in_a_row(rows: Sequence[Hit]) -> Cut:
    """Positions number the rows; there are as many places as rows."""
    return Cut(tuple(rows), tuple(range(1, len(rows) + 1)), len(rows), None)


def _in_order(hits: Iterable[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: hit.rank)


def _positive(k: int) -> int:
    if k < 1:
        raise ValueError("k must be positive")
    if k != int(k):
        raise ValueError("k must be a whole number")
    return int(k)


# The order: how hits get their ranks when the logged ones are not to be used as they are.


def recount(hits: Iterable[Hit]) -> list[Hit]:
    """`ranks="recount"`: number the rows 1, 2, 3 by their logged rank."""
    return _ranked(_in_order(hits))


def order_by_score(scored: Iterable[tuple[float, Hit]]) -> list[Hit]:
    """`order="score"`: rank by score descending, ties by document, then by what else is known, ascending."""
    ordered = sorted(scored, key=lambda hit: (-hit[0], hit[1].doc, _content(hit[1])))
    return _ranked([hit for _, hit in ordered])


def order_as_trec_eval(scored: Iterable[tuple[float, Hit]]) -> list[Hit]:
    """`order="trec_eval"`: rank by score in single precision, ties by document, both descending.

    Documents are compared as the bytes of their UTF-8 text, integers as their decimal text. Chunks of one document with
    one score, which trec_eval does not know, come by what else is known of them, ascending.
    """
    by_content = sorted(scored, key=lambda hit: _content(hit[1]))
    ordered = sorted(by_content, key=lambda hit: (_single(hit[0]), str(hit[1].doc).encode()), reverse=True)
    return _ranked([hit for _, hit in ordered])


def _content(hit: Hit) -> list[tuple[bool, Any]]:
    """Chunk, version, span, tokens and context of a hit, to tell ties apart; what nobody knows comes first."""
    known = (hit.chunk, hit.version, *(hit.span or (None, None)), hit.tokens, hit.in_context)
    return [(value is not None, value) for value in known]


def _ranked(hits: Sequence[Hit]) -> list[Hit]:
    return [replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1)]


def _single(score: float) -> float:
    # ctypes and numpy round an overflow to infinity; struct refuses it, so it is done here.
    try:
        return float(struct.unpack("f", struct.pack("f", score))[0])
    except OverflowError:
        return math.copysign(math.inf, score)


# Meeting: a row counts for a label or a passage only at its version; a version that is not known fits any.


def _meets(row: Hit, wanted: Label | Passage) -> bool:
    fits = row.version is None or wanted.version is None or row.version == wanted.version
    return fits and not wanted.stale


def _found(cut: Cut, judged: Judged) -> dict[Doc, int]:
    """p(d) of every judged document that is met in the cut, by position."""
    place: dict[Doc, int] = {}
    for row, position in zip(cut.rows, cut.places, strict=True):
        if row.doc in judged.labels and _meets(row, judged.labels[row.doc]):
            place.setdefault(row.doc, position)
    return dict(sorted(place.items(), key=lambda item: item[1]))


def _relevant_rows(cut: Cut, judged: Judged) -> int:
    return sum(row.doc in judged.relevant and _meets(row, judged.labels[row.doc]) for row in cut.rows)


# Measures of documents.


def recall(cut: Cut, judged: Judged) -> float:
    """|D n R| / |R|."""
    return len(_found(cut, judged).keys() & judged.relevant) / len(judged.relevant)


def precision(cut: Cut, judged: Judged) -> float:
    """|D n R| / K: distinct relevant documents per place. A repeat wastes its place; 0 when there are no places."""
    return len(_found(cut, judged).keys() & judged.relevant) / cut.size if cut.size else 0.0


def f1(cut: Cut, judged: Judged) -> float:
    """2 |D n R| / (K + |R|): the harmonic mean of precision and recall."""
    return 2 * len(_found(cut, judged).keys() & judged.relevant) / (cut.size + len(judged.relevant))


def hit(cut: Cut, judged: Judged) -> float:
    """1 if any relevant document is in D."""
    return 1.0 if _found(cut, judged).keys() & judged.relevant else 0.0


def all_found(cut: Cut, judged: Judged) -> float:
    """1 if every relevant document is in D."""
    return 1.0 if judged.relevant <= _found(cut, judged).keys() else 0.0


def reciprocal_rank(cut: Cut, judged: Judged) -> float:
    """1 / the smallest p(d) of a relevant document, else 0."""
    places = [position for doc, position in _found(cut, judged).items() if doc in judged.relevant]
    return 1 / min(places) if places else 0.0


def average_precision(cut: Cut, judged: Judged) -> float:
    """Sum over found d of (relevant documents at positions <= p(d)) / p(d), over |R|."""
    found, total = 0, 0.0
    for doc, position in _found(cut, judged).items():
        if doc in judged.relevant:
            found += 1
            total += found / position
    return total / len(judged.relevant)


def ndcg(cut: Cut, judged: Judged) -> float:
    """Sum of max(grade, 0) / log2(p(d) + 1) over D, over the same of the ideal order of all judged documents."""
    ideal = sorted((label.grade for label in judged.labels.values()), reverse=True)[: cut.depth]
    return _discounted((judged.labels[doc].grade, place) for doc, place in _found(cut, judged).items()) / _discounted(
        (grade, position) for position, grade in enumerate(ideal, start=1)
    )


def _discounted(gains: Iterable[tuple[int, int]]) -> float:
    total = 0.0
    for grade, position in gains:
        total += max(grade, 0) / math.log2(position + 1)
    return total


def judged_share(cut: Cut, judged: Judged) -> float | None:
    """Share of D that has a judgement, whatever its grade; None when D is empty."""
    return len(_found(cut, judged)) / len(cut.docs) if cut.docs else None


# Measures of repeats and of the context.


def naive_recall(cut: Cut, judged: Judged) -> float:
    """Every row of a relevant document, repeats counted, / |R|. A diagnosis of repeats, never a result."""
    return _relevant_rows(cut, judged) / len(judged.relevant)


def relevant_share(cut: Cut, judged: Judged) -> float | None:
    """Share of the chunks that come from relevant documents; None for an empty cut."""
    return _relevant_rows(cut, judged) / len(cut.rows) if cut.rows else None


def distinct_docs(cut: Cut, _: Judged) -> float:
    """|D|."""
    return float(len(cut.docs))


def repeat_share(cut: Cut, _: Judged) -> float | None:
    """(chunks - |D|) / chunks: the share of chunks that repeat a document; None for an empty cut."""
    return (len(cut.rows) - len(cut.docs)) / len(cut.rows) if cut.rows else None


def top_doc_share(cut: Cut, _: Judged) -> float | None:
    """The largest share of the chunks held by one document; None for an empty cut."""
    return max(Counter(row.doc for row in cut.rows).values()) / len(cut.rows) if cut.rows else None


def context_chunks(cut: Cut, _: Judged) -> float:
    """Chunks that are there, which may be fewer than k."""
    return float(len(cut.rows))


def context_tokens(cut: Cut, _: Judged) -> float:
    """The tokens of the chunks that are there."""
    return float(sum(row.tokens or 0 for row in cut.rows))


# Measures of gold chunks. A chunk is known by document and chunk id.


def _is_gold(row: Hit, passage: Passage) -> bool:
    same = (row.doc, row.chunk) == (passage.doc, passage.chunk)
    return passage.chunk is not None and same and _meets(row, passage)


def chunk_recall(cut: Cut, judged: Judged) -> float | None:
    """Evidence ids with a gold chunk in the cut / evidence ids that name a chunk; None when none does."""
    ids = {p.evidence_id for p in judged.passages if p.chunk is not None}
    found = {p.evidence_id for p in judged.passages if any(_is_gold(row, p) for row in cut.rows)}
    return len(found) / len(ids) if ids else None


def chunk_hit(cut: Cut, judged: Judged) -> float | None:
    """1 if any gold chunk is in the cut; None when no passage names a chunk."""
    share = chunk_recall(cut, judged)
    return None if share is None else float(share > 0)


def chunk_precision(cut: Cut, judged: Judged) -> float | None:
    """Distinct gold chunks in the cut / K, 0 when there are no places; None when no passage names a chunk."""
    if chunk_recall(cut, judged) is None:
        return None
    gold = {(row.doc, row.chunk) for row in cut.rows if any(_is_gold(row, p) for p in judged.passages)}
    return len(gold) / cut.size if cut.size else 0.0


def chunk_rr(cut: Cut, judged: Judged) -> float | None:
    """1 / the first position of a gold chunk, else 0; None when no passage names a chunk."""
    if chunk_recall(cut, judged) is None:
        return None
    placed = zip(cut.rows, cut.places, strict=True)
    places = [position for row, position in placed if any(_is_gold(row, p) for p in judged.passages)]
    return 1 / min(places) if places else 0.0


# Measures of passages: how much of the gold text the cut gives to its reader.


def _union(spans: Iterable[Span], gap: int = 0) -> list[Span]:
    """Join spans that overlap, touch, or are at most `gap` characters apart. A span without a character is none."""
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _within(span: Span, others: Iterable[Span]) -> list[Span]:
    """The parts of some spans that lie inside another."""
    clipped = [(max(span[0], start), min(span[1], end)) for start, end in others]
    return [(start, end) for start, end in clipped if start < end]


def _length(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)


def _covered_parts(cut: Cut, passage: Passage, gap: int = 0) -> list[Span]:
    """What the cut gives of the span of a passage."""
    rows = [row for row in cut.rows if row.doc == passage.doc and _meets(row, passage)]
    return _within(passage.span, _union([row.span for row in rows if row.span], gap)) if passage.span else []


def _share(cut: Cut, passage: Passage, gap: int) -> float:
    """The covered share of a passage; one that is a chunk alone is covered when that chunk is there."""
    if passage.span is None:
        return 1.0 if any(_is_gold(row, passage) for row in cut.rows) else 0.0
    return _length(_covered_parts(cut, passage, gap)) / _length([passage.span])


def _best_shares(cut: Cut, judged: Judged, gap: int) -> list[float]:
    """The share of the best alternative of each evidence id, by id."""
    best: defaultdict[Any, float] = defaultdict(float)
    for passage in judged.passages:
        best[passage.evidence_id] = max(best[passage.evidence_id], _share(cut, passage, gap))
    return [best[evidence_id] for evidence_id in sorted(best)]


def evidence_coverage(cut: Cut, judged: Judged, gap: int = 0) -> float | None:
    """Mean over evidence ids of the covered share of their best alternative; None without evidence."""
    shares, total = _best_shares(cut, judged, gap), 0.0
    for share in shares:
        total += share
    return total / len(shares) if shares else None


def evidence_recall(cut: Cut, judged: Judged, coverage: float = 1.0, gap: int = 0) -> float | None:
    """Share of evidence ids that are covered at least to `coverage`; None without evidence."""
    shares = _best_shares(cut, judged, gap)
    return sum(share >= coverage for share in shares) / len(shares) if shares else None


def evidence_hit(cut: Cut, judged: Judged, coverage: float = 1.0, gap: int = 0) -> float | None:
    """1 if any evidence id is covered at least to `coverage`; None without evidence."""
    shares = _best_shares(cut, judged, gap)
    return float(any(share >= coverage for share in shares)) if shares else None


def evidence_all(cut: Cut, judged: Judged, coverage: float = 1.0, gap: int = 0) -> float | None:
    """1 if every evidence id is covered at least to `coverage`; None without evidence."""
    shares = _best_shares(cut, judged, gap)
    return float(all(share >= coverage for share in shares)) if shares else None


def _gold(cut: Cut, judged: Judged) -> list[Passage]:
    """One alternative for each evidence id with a span: the best covered, then the shorter, earlier, smaller doc_id."""
    chosen: dict[Any, tuple[Any, Passage]] = {}
    for passage in judged.passages:
        if passage.span is not None:
            length = _length([passage.span])
            key = (-_share(cut, passage, 0), length, passage.span[0], passage.doc, passage.version or "")
            if passage.evidence_id not in chosen or key < chosen[passage.evidence_id][0]:
                chosen[passage.evidence_id] = key, passage
    return [passage for _, passage in chosen.values()]


def _characters(texts: Iterable[tuple[Doc, str | None, Span]]) -> int:
    """The number of distinct characters; each version of a document is a text of its own."""
    by_text: defaultdict[tuple[Doc, str | None], list[Span]] = defaultdict(list)
    for doc, version, span in texts:
        by_text[doc, version].append(span)
    return sum(_length(_union(spans)) for spans in by_text.values())


def _covered_gold(cut: Cut, gold: Sequence[Passage]) -> int:
    return _characters((p.doc, p.version, part) for p in gold for part in _covered_parts(cut, p))


def evidence_precision(cut: Cut, judged: Judged) -> float | None:
    """Covered gold characters / characters of the cut, text given twice counted twice; None without gold spans."""
    gold = _gold(cut, judged)
    if not gold:
        return None
    text = _length(row.span for row in cut.rows if row.span)
    return _covered_gold(cut, gold) / text if text else 0.0


def evidence_iou(cut: Cut, judged: Judged) -> float | None:
    """Covered gold characters / characters that are gold or in the cut, as sets; None without gold spans."""
    gold = _gold(cut, judged)
    if not gold:
        return None
    text = _characters((row.doc, row.version, row.span) for row in cut.rows if row.span)
    covered = _covered_gold(cut, gold)
    return covered / (_characters((p.doc, p.version, p.span) for p in gold if p.span) + text - covered)


MEASURES: Mapping[str, Callable[..., float | None]] = {
    "doc_recall": recall,
    "doc_precision": precision,
    "doc_f1": f1,
    "doc_hit": hit,
    "doc_all": all_found,
    "doc_rr": reciprocal_rank,
    "doc_ap": average_precision,
    "doc_ndcg": ndcg,
    "doc_judged": judged_share,
    "naive_recall": naive_recall,
    "relevant_share": relevant_share,
    "distinct_docs": distinct_docs,
    "repeat_share": repeat_share,
    "top_doc_share": top_doc_share,
    "context_chunks": context_chunks,
    "context_tokens": context_tokens,
    "chunk_recall": chunk_recall,
    "chunk_hit": chunk_hit,
    "chunk_precision": chunk_precision,
    "chunk_rr": chunk_rr,
    "evidence_coverage": evidence_coverage,
    "evidence_recall": evidence_recall,
    "evidence_hit": evidence_hit,
    "evidence_all": evidence_all,
    "evidence_precision": evidence_precision,
    "evidence_iou": evidence_iou,
}


def value(measure: str, cut: Cut, judged: Judged, **params: float) -> float | None:
    """The value of one measure for one query, or None when nothing is relevant: such a query has no value at all.

    measure: a name of MEASURES. params: its parameters, such as `coverage` and `gap`.
    """
    return MEASURES[measure](cut, judged, **params) if judged.relevant else None


def ceiling(judged: Judged, index: Collection[Doc]) -> float:
    """The largest doc_recall that can be reached: relevant documents that the index serves / |R|."""
    reachable = [doc for doc in judged.relevant if doc in index and not judged.labels[doc].stale]
    return len(reachable) / len(judged.relevant)


# From units to means.


def mean(values: Iterable[float | None], weights: Iterable[float] | None = None) -> float | None:
    """The exactly rounded sum of the values that are there, over their number; None when there are none.

    With weights: the exactly rounded sum of the rounded products over that of the weights; None when that is 0.
    """
    if weights is None:
        present = [v for v in values if v is not None]
        return math.fsum(present) / len(present) if present else None
    pairs = [(v, w) for v, w in zip(values, weights, strict=True) if v is not None]
    total = math.fsum(w for _, w in pairs)
    return math.fsum(v * w for v, w in pairs) / total if total else None


def effective_size(weights: Iterable[float]) -> float | None:
    """(sum w)^2 / sum w^2: how many equal weights would tell as much; None when all are 0."""
    weights = list(weights)
    squares = math.fsum(w * w for w in weights)
    return math.fsum(weights) ** 2 / squares if squares else None


def decision_rates(
    answered_answerable: int, declined_answerable: int, answered_unanswerable: int, declined_unanswerable: int
) -> dict[str, float | None]:
    """The rates of the decision table; None where there is nothing to divide by."""

    def rate(part: int, whole: int) -> float | None:
        return part / whole if whole else None

    declined, unanswerable = declined_answerable + declined_unanswerable, answered_unanswerable + declined_unanswerable
    answerable = answered_answerable + declined_answerable
    return {
        "decline_rate": rate(declined, answerable + unanswerable),
        "false_answer_rate": rate(answered_unanswerable, unanswerable),
        "over_refusal_rate": rate(declined_answerable, answerable),
        "decline_precision": rate(declined_unanswerable, declined),
        "decline_recall": rate(declined_unanswerable, unanswerable),
        "decline_f1": rate(2 * declined_unanswerable, declined + unanswerable),
    }
