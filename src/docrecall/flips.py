"""Which queries have a higher or a lower value after a change, and which keep their value by other documents.

`gained` is a higher value and `lost` a lower one, whatever the measure: of repeats or tokens more is not better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import polars as pl

from docrecall.errors import DocrecallError
from docrecall.measures.grammar import Cut, parse
from docrecall.pairs import ROUNDING, Pairs
from docrecall.scores import Scores
from docrecall.show import printable

_DOCS = ("docs_baseline", "docs_candidate")
_KEYS = ("baseline", "candidate", "measure")
CHANGES = pl.Enum(["gained", "lost", "other documents"])


Look = Callable[[Scores, Sequence[Cut]], pl.DataFrame]


class Side(NamedTuple):
    """One run of some scores."""

    scores: Scores
    run: str


class Flips(NamedTuple):
    """The pairs that changed, and for each side whose documents are not known a sentence that says why."""

    frame: pl.DataFrame
    notes: tuple[str, ...]


def find_flips(
    sides: Sequence[tuple[Side, Side]], paired: Sequence[Pairs], measures: Sequence[str], look: Look
) -> Flips:
    """The pairs that changed, with the documents that were found; see `Comparison.flips`. paired: one for each."""
    cuts = list(dict.fromkeys(parse(measure).cut for measure in measures))
    # Each log is read once, however many runs of it are compared.
    found = {id(side.scores): side.scores for couple in sides for side in couple}
    documents: dict[int, pl.DataFrame | None] = {}
    notes = []
    for at, scores in found.items():
        documents[at] = None
        try:
            documents[at] = look(scores, cuts)
        except DocrecallError as error:
            runs = ", ".join(
                printable(run) for run in dict.fromkeys(s.run for c in sides for s in c if id(s.scores) == at)
            )
            notes.append(f"the documents of {runs} are not known: {error}")
    frames = []
    for (old, new), pairs in zip(sides, paired, strict=True):
        docs = [_of_run(documents[id(side.scores)], side.run) for side in (old, new)]
        frames += [_flips(pairs, measure, old.run, new.run, docs) for measure in measures]
    return Flips(pl.concat(frames, how="diagonal"), tuple(notes))


def _of_run(found: pl.DataFrame | None, run: str) -> pl.DataFrame | None:
    return None if found is None else found.filter(pl.col("run_id") == run).drop("run_id")


def _flips(
    pairs: Pairs, measure: str, baseline: str, candidate: str, found: Sequence[pl.DataFrame | None]
) -> pl.DataFrame:
    both = pairs.both(measure)
    keys = pairs.keys if both.which is None else pairs.keys[both.which]
    rise = both.after - both.before
    rows = keys.with_columns(
        pl.Series("value_baseline", both.before), pl.Series("value_candidate", both.after), pl.Series("_rise", rise)
    )
    change = pl.when(pl.col("_rise") > ROUNDING).then(pl.lit("gained")).when(pl.col("_rise") < -ROUNDING)
    rows = rows.with_columns(change.then(pl.lit("lost")).alias("change"))
    known = [frame for frame in found if frame is not None]
    if len(known) < len(found):
        rows = rows.filter(pl.col("change").is_not_null())
        id_type = known[0].schema["doc_id"] if known else pl.String()
        rows = rows.with_columns(pl.lit(None, pl.List(id_type)).alias(name) for name in _DOCS)
    else:
        for name, frame in zip(_DOCS, known, strict=True):
            lists = _lists(frame, parse(measure).cut, keys.columns)
            rows = rows.join(lists.rename({"docs": name}), on=keys.columns, how="left", maintain_order="left")
        rows = rows.with_columns(pl.col(_DOCS).fill_null([]))
        differ = pl.col(_DOCS[0]).list.sort() != pl.col(_DOCS[1]).list.sort()
        rows = rows.with_columns(
            pl.coalesce("change", pl.when(differ).then(pl.lit("other documents"))).alias("change")
        ).filter(pl.col("change").is_not_null())
    names = [pl.lit(v).alias(n) for n, v in zip(_KEYS, (baseline, candidate, measure), strict=True)]
    rows = rows.with_columns(pl.col("change").cast(CHANGES)).sort("change", *keys.columns)
    return rows.select(*names, *keys.columns, "change", "value_baseline", "value_candidate", *_DOCS)


def _lists(found: pl.DataFrame, cut: Cut, key: Sequence[str]) -> pl.DataFrame:
    """The documents of each unit under a cut, the best first; of the requests of a query together, each once."""
    inside = found.filter(pl.col("cut") == str(cut))
    best = inside.group_by(*key, "doc_id").agg(pl.col("place").min())
    return best.sort(*key, "place", "doc_id").group_by(key, maintain_order=True).agg(pl.col("doc_id").alias("docs"))
