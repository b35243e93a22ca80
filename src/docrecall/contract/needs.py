"""Which columns a run reads: what its measures, its policies and the tables beside the log ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from docrecall.errors import MeasureError
from docrecall.measures.grammar import Measure
from docrecall.measures.registry import REGISTRY
from docrecall.options import Options
from docrecall.sources.inputs import Inputs
from docrecall.tables import TABLES

SPAN = ("chunk_start", "chunk_end")
FROM_CHUNKS = ("doc_id", *SPAN, "n_tokens", "doc_version")  # what the table of chunks can say of a hit


@dataclass(frozen=True)
class Needs:
    """Columns by table, and whether each must be there. why: the first measure that asks for a column of hits."""

    columns: Mapping[str, Mapping[str, bool]]
    why: Mapping[str, str]

    @property
    def hits(self) -> Mapping[str, bool]:
        """The columns of hits."""
        return self.columns["hits"]


def needs_of(inputs: Inputs, measures: Sequence[Measure], options: Options) -> Needs:
    """Work out the columns. Raises MeasureError for a measure of passages without the table of evidence."""
    why: dict[str, str] = {}
    for measure in measures:
        if REGISTRY[measure.name].labels in ("evidence", "chunks") and "evidence" not in inputs.tables:
            raise MeasureError(
                f"{measure} needs the table of evidence, which names gold passages or gold chunks: "
                "pass evidence= (--evidence)."
            )
        for column in _columns(measure, inputs):
            why.setdefault(column, str(measure))
    columns = {name: _of_table(name, options) for name in TABLES} | {"hits": _of_hits(inputs, why, options)}
    if any(REGISTRY[m.name].labels == "chunks" for m in measures):
        columns["evidence"]["chunk_id"] = True
    return Needs(columns, why)


def _columns(measure: Measure, inputs: Inputs) -> Iterable[str]:
    """What a measure reads of hits. Where no evidence has spans, passages are whole chunks."""
    ends = [column for column in ("start", "end") if inputs.has("evidence", column)]
    spans = any(inputs.says("evidence", column) for column in ends) or (
        bool(ends) and not inputs.says("evidence", "chunk_id")
    )
    if REGISTRY[measure.name].labels == "evidence" and not spans:
        return [*(c for c in measure.columns if c not in SPAN), "chunk_id"]
    return measure.columns


def _of_hits(inputs: Inputs, why: Mapping[str, str], options: Options) -> dict[str, bool]:
    used = dict.fromkeys(TABLES["hits"].required, True) | {"run_id": False, "request_id": False}
    if options.by_score:
        used.pop("rank")
        used |= {"score": True, "chunk_id": False}
    labelled = inputs.has("qrels", "doc_version") or inputs.has("evidence", "doc_version")
    if options.versions == "match" and labelled:
        used["doc_version"] = False
    used["in_context"] = False  # decisions look at the context where it is logged
    if "chunk_start" in why and inputs.has("evidence", "chunk_id"):
        used["chunk_id"] = False
    return used | dict.fromkeys(why, True)


def _of_table(name: str, options: Options) -> dict[str, bool]:
    optional = {
        "qrels": ("relevance", "doc_version"),
        "evidence": ("start", "end", "chunk_id", "doc_version"),
        "queries": ("label_status", "weight"),
        "requests": ("run_id", "request_id", "retrieved", "answered"),
        "documents": ("doc_version", "alias_of"),
        "chunks": ("run_id", *FROM_CHUNKS[1:]),
    }.get(name, ())
    if options.versions == "ignore":
        optional = tuple(c for c in optional if c != "doc_version" or name == "documents")
    return dict.fromkeys(TABLES[name].required, True) | dict.fromkeys(optional, False)
