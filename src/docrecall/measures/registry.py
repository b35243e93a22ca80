"""The registry: every measure of this version, by name."""

from __future__ import annotations

from collections.abc import Mapping

from docrecall.measures.definition import Definition
from docrecall.measures.documents import DOCUMENTS
from docrecall.measures.repeats import REPEATS

REGISTRY: Mapping[str, Definition] = {d.name: d for d in (*DOCUMENTS, *REPEATS)}

DEFAULT_MEASURES = (
    "naive_recall@10",
    "doc_recall@1,3,10",
    "doc_recall@10docs",
    "doc_ndcg@10docs",
    "repeat_share@10",
)

_OF_HITS_ALONE = frozenset({"docs", "chunks", "top_chunks"})


def depends_on_labels(name: str) -> bool:
    """Whether a measure would be wrong, and not only less, if hits and labels named documents differently."""
    return not _OF_HITS_ALONE.issuperset(REGISTRY[name].uses)
