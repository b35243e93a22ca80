"""The definition of every measure: one query, lists and sets, nothing else.

This file is the specification. The columnar code is tested to agree with it bit for bit, so it is written to be
read and not to be fast.

    R      the relevant documents of the query: those with grade >= min_relevance
    D      the distinct documents of the cut, in order of first appearance
    p(d)   the position of d's first appearance in the cut
    K      the number of places of the cut: k under `@k` and `@kdocs`, else the number of its rows

Sources of the formulas
    recall, precision, F1    C. J. van Rijsbergen, Information Retrieval, 2nd ed., 1979, chapter 7
    average precision        C. Buckley, E. Voorhees, Evaluating evaluation measure stability, 2000; `map` of trec_eval
    reciprocal rank          E. Voorhees, The TREC-8 question answering track report, 1999; `recip_rank` of trec_eval
    nDCG                     K. Järvelin, J. Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002, with
                             linear gain and the discount 1 / log2(position + 1); `ndcg` and `ndcg_cut` of trec_eval
The cuts, the repeats and the shares are docrecall's own and defined here alone.

Sums run left to right in plain double precision. Python's `sum` is not used on floats: since Python 3.12 it
compensates, and its last bit then differs from a plain sum.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Doc = Hashable
Hit = tuple[int, Doc]  # (rank, document): one row of the log, which is one chunk of that document


def doc_recall(hits: Sequence[Doc], relevant: Collection[Doc], k: int) -> float | None:
    """Share of the relevant documents that occur among the first k chunks.

    hits: document ids in rank order, one per chunk, repeats kept. relevant: the ids of the relevant documents.
    Returns 0.0 without hits and None when nothing is relevant. Raises ValueError for k < 1 or a k that is not whole.

    >>> doc_recall(["manual", "manual", "manual", "faq", "terms"], {"manual", "faq"}, k=3)
    0.5
    """
    cut = cut_chunks(enumerate(hits, start=1), k)
    return value("doc_recall", cut, dict.fromkeys(relevant, 1)) if relevant else None


# The cut: which rows count, and at which position each document stands.


@dataclass(frozen=True)
class Cut:
    """What a cut took from the hits of one query.

    docs: the document of every row in the cut, in rank order, repeats kept: the chunks.
    place: p(d) for each d in D; its keys are D in order.
    size: K. depth: where the ideal order of nDCG is cut; None for not at all.
    """

    docs: tuple[Doc, ...]
    place: dict[Doc, int]
    size: int
    depth: int | None


def cut_chunks(hits: Iterable[Hit], k: int) -> Cut:
    """`@k`: the rows with rank <= k. Positions are logged ranks, so a missing row leaves its place empty."""
    k = _positive(k)
    rows = [(rank, doc) for rank, doc in _in_order(hits) if rank <= k]
    return Cut(tuple(doc for _, doc in rows), _first_places(rows), k, k)


def cut_docs(hits: Iterable[Hit], k: int) -> Cut:
    """`@kdocs`: the first k distinct documents by best rank, with all their rows. Positions count documents."""
    k = _positive(k)
    docs = [doc for _, doc in _in_order(hits)]
    first_k = list(dict.fromkeys(docs))[:k]
    return Cut(tuple(doc for doc in docs if doc in first_k), _first_places(enumerate(first_k, start=1)), k, k)


def cut_all(hits: Iterable[Hit]) -> Cut:
    """`@all`: every row. Positions number the rows in rank order, so gaps between ranks are closed."""
    docs = tuple(doc for _, doc in _in_order(hits))
    return Cut(docs, _first_places(enumerate(docs, start=1)), len(docs), None)


def _in_order(hits: Iterable[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: hit[0])


def _first_places(placed: Iterable[Hit]) -> dict[Doc, int]:
    place: dict[Doc, int] = {}
    for position, doc in placed:
        place.setdefault(doc, position)
    return place


def _positive(k: int) -> int:
    if k < 1:
        raise ValueError("k must be positive")
    if k != int(k):
        raise ValueError("k must be a whole number")
    return int(k)


# The order: how hits get their ranks when the logged ones are not to be used as they are.


def recount(hits: Iterable[Hit]) -> list[Hit]:
    """`ranks="recount"`: number the rows 1, 2, 3 by their logged rank."""
    return list(enumerate((doc for _, doc in _in_order(hits)), start=1))


def order_by_score(scored: Iterable[tuple[float, Any, Any]]) -> list[Hit]:
    """`order="score"`: rank (score, document, chunk) by score descending, ties by document, then chunk, ascending."""
    ordered = sorted(scored, key=lambda hit: (-hit[0], hit[1], hit[2]))
    return [(rank, doc) for rank, (_, doc, _) in enumerate(ordered, start=1)]


def order_as_trec_eval(scored: Iterable[tuple[float, Any]]) -> list[Hit]:
    """`order="trec_eval"`: rank (score, document) by score in single precision, ties by document, both descending.

    Documents are compared as the bytes of their UTF-8 text, integers as their decimal text.
    """
    ordered = sorted(scored, key=lambda hit: (_single(hit[0]), str(hit[1]).encode()), reverse=True)
    return [(rank, doc) for rank, (_, doc) in enumerate(ordered, start=1)]


def _single(score: float) -> float:
    # ctypes and numpy round an overflow to infinity; struct refuses it, so it is done here.
    try:
        return float(struct.unpack("f", struct.pack("f", score))[0])
    except OverflowError:
        return math.copysign(math.inf, score)


# The measures. Each takes the cut, the relevant documents R and all grades (judged documents, also those <= 0).

Grades = Mapping[Doc, int]


def recall(cut: Cut, relevant: set[Doc], _: Grades) -> float:
    """|D n R| / |R|."""
    return len(cut.place.keys() & relevant) / len(relevant)


def precision(cut: Cut, relevant: set[Doc], _: Grades) -> float:
    """|D n R| / K: distinct relevant documents per place. A repeat wastes its place; 0 when there are no places."""
    return len(cut.place.keys() & relevant) / cut.size if cut.size else 0.0


def f1(cut: Cut, relevant: set[Doc], _: Grades) -> float:
    """2 |D n R| / (K + |R|): the harmonic mean of precision and recall."""
    return 2 * len(cut.place.keys() & relevant) / (cut.size + len(relevant))


def hit(cut: Cut, relevant: set[Doc], _: Grades) -> float:
    """1 if any relevant document is in D."""
    return 1.0 if cut.place.keys() & relevant else 0.0


def all_found(cut: Cut, relevant: set[Doc], _: Grades) -> float:
    """1 if every relevant document is in D."""
    return 1.0 if relevant <= cut.place.keys() else 0.0


def reciprocal_rank(cut: Cut, relevant: set[Doc], _: Grades) -> float:
    """1 / the smallest p(d) of a relevant document, else 0."""
    places = [position for doc, position in cut.place.items() if doc in relevant]
    return 1 / min(places) if places else 0.0


def average_precision(cut: Cut, relevant: set[Doc], _: Grades) -> float:
    """Sum over found d of (relevant documents at positions <= p(d)) / p(d), over |R|."""
    found, total = 0, 0.0
    for doc, position in cut.place.items():
        if doc in relevant:
            found += 1
            total += found / position
    return total / len(relevant)


def ndcg(cut: Cut, _: set[Doc], grades: Grades) -> float:
    """Sum of max(grade, 0) / log2(p(d) + 1) over D, over the same of the ideal order of all judged documents."""
    ideal = sorted(grades.values(), reverse=True)[: cut.depth]
    return _discounted((grades.get(doc, 0), position) for doc, position in cut.place.items()) / _discounted(
        (grade, position) for position, grade in enumerate(ideal, start=1)
    )


def _discounted(gains: Iterable[tuple[int, int]]) -> float:
    total = 0.0
    for grade, position in gains:
        total += max(grade, 0) / math.log2(position + 1)
    return total


def judged(cut: Cut, _: set[Doc], grades: Grades) -> float | None:
    """Share of D that has a judgement, whatever its grade; None when D is empty."""
    return len(cut.place.keys() & grades.keys()) / len(cut.place) if cut.place else None


def naive_recall(cut: Cut, relevant: set[Doc], _: Grades) -> float:
    """Every row of a relevant document, repeats counted, / |R|. A diagnosis of repeats, never a result."""
    return sum(doc in relevant for doc in cut.docs) / len(relevant)


def relevant_share(cut: Cut, relevant: set[Doc], _: Grades) -> float | None:
    """Share of the chunks that come from relevant documents; None for an empty cut."""
    return sum(doc in relevant for doc in cut.docs) / len(cut.docs) if cut.docs else None


def distinct_docs(cut: Cut, _: set[Doc], __: Grades) -> float:
    """|D|."""
    return float(len(cut.place))


def repeat_share(cut: Cut, _: set[Doc], __: Grades) -> float | None:
    """(chunks - |D|) / chunks: the share of chunks that repeat a document; None for an empty cut."""
    return (len(cut.docs) - len(cut.place)) / len(cut.docs) if cut.docs else None


def top_doc_share(cut: Cut, _: set[Doc], __: Grades) -> float | None:
    """The largest share of the chunks held by one document; None for an empty cut."""
    return max(Counter(cut.docs).values()) / len(cut.docs) if cut.docs else None


def context_chunks(cut: Cut, _: set[Doc], __: Grades) -> float:
    """Chunks that are there, which may be fewer than k."""
    return float(len(cut.docs))


MEASURES: Mapping[str, Callable[[Cut, set[Doc], Grades], float | None]] = {
    "doc_recall": recall,
    "doc_precision": precision,
    "doc_f1": f1,
    "doc_hit": hit,
    "doc_all": all_found,
    "doc_rr": reciprocal_rank,
    "doc_ap": average_precision,
    "doc_ndcg": ndcg,
    "doc_judged": judged,
    "naive_recall": naive_recall,
    "relevant_share": relevant_share,
    "distinct_docs": distinct_docs,
    "repeat_share": repeat_share,
    "top_doc_share": top_doc_share,
    "context_chunks": context_chunks,
}


def value(measure: str, cut: Cut, grades: Grades, min_relevance: int = 1) -> float | None:
    """The value of one measure for one query, or None when nothing is relevant: such a query has no value at all.

    measure: a name of MEASURES. grades: every judged document with its grade.
    """
    relevant = {doc for doc, grade in grades.items() if grade >= min_relevance}
    return MEASURES[measure](cut, relevant, grades) if relevant else None


def mean(values: Iterable[float | None]) -> float | None:
    """The exactly rounded sum of the values that are there, over their number; None when there are none."""
    present = [v for v in values if v is not None]
    return math.fsum(present) / len(present) if present else None
