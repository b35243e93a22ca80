"""Names that other evaluators use, answered with ours."""

from __future__ import annotations

import re

# Folded to lower case, without separators.
_FAMILIES = {
    "doc_recall": ("recall", "r", "contextrecall", "idbasedcontextrecall"),
    "doc_precision": ("precision", "p", "prec", "contextprecision", "idbasedcontextprecision"),
    "doc_f1": ("f1", "f", "fscore", "fmeasure"),
    "doc_hit": ("hit", "hits", "hitrate", "success", "accuracy", "acc"),
    "doc_rr": ("mrr", "rr", "reciprank", "reciprocalrank", "meanreciprocalrank"),
    "doc_ap": ("map", "ap", "mapcut", "averageprecision", "meanaverageprecision"),
    "doc_ndcg": ("ndcg", "ndcgcut"),
    "doc_judged": ("judged", "judgedk"),
}
_OURS = {foreign: ours for ours, names in _FAMILIES.items() for foreign in names}
_SHAPE = re.compile(r"(?P<name>[A-Za-z][A-Za-z1 _-]*?)[@_. ]?(?P<k>[0-9]+)?")


def our_names(text: str) -> tuple[str, str] | None:
    """Give (our name with the chunk cut, our name with the documents cut), or None for a name that nobody uses.

    A name without a number stands for the whole list of hits, and ten documents are offered beside it.
    """
    match = _SHAPE.fullmatch(text.strip())
    ours = our_name(match["name"]) if match else None
    if match is None or ours is None:
        return None
    if match["k"] is None:
        return f"{ours}@all", f"{ours}@10docs"
    return f"{ours}@{match['k']}", f"{ours}@{match['k']}docs"


def our_name(name: str) -> str | None:
    """Give our measure for the bare name of another tool's, or None for a name that nobody uses."""
    return _OURS.get(re.sub(r"[^a-z0-9]", "", name.lower()))
