"""The registry: every measure of this version, by name."""

from __future__ import annotations

from collections.abc import Mapping

from docrecall.measures.definition import Definition
from docrecall.measures.documents import DOCUMENTS
from docrecall.measures.passages import PASSAGES
from docrecall.measures.repeats import REPEATS

REGISTRY: Mapping[str, Definition] = {d.name: d for d in (*DOCUMENTS, *REPEATS, *PASSAGES)}

DEFAULT_MEASURES = (
    "naive_recall@10",
    "doc_recall@1,3,10",
    "doc_recall@10docs",
    "doc_ndcg@10docs",
    "repeat_share@10",
)
