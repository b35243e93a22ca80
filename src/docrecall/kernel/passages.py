"""Gold chunks and gold passages under a cut: which chunks are there, and how much of each passage their text covers."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from docrecall.kernel.family import Family, within
from docrecall.kernel.match import fits
from docrecall.kernel.spans import Spans, by_group
from docrecall.kernel.steps import Steps, sums
from docrecall.measures.definition import Floats, Ints, Mask
from docrecall.measures.grammar import Cut


class Passages:
    """The passages of a batch and the hits that could give them, under one kind of cut."""

    def __init__(self, family: Family) -> None:
        self.f = family
        assert family.m.passages is not None, "a measure of passages was asked for without them"
        self.rows = family.m.passages
        self.unit: Ints = self.rows["unit"].to_numpy()
        self.start: Ints = self.rows["start"].fill_null(0).to_numpy()
        self.end: Ints = self.rows["end"].fill_null(0).to_numpy()
        self.length = self.end - self.start  # 0: no span

    @cached_property
    def id_begin(self) -> Ints:
        """The first passage of each evidence id: its alternatives stand together."""
        if self.rows.is_empty():
            return np.zeros(0, dtype=np.int64)
        same = pl.all_horizontal(pl.col(c) == pl.col(c).shift() for c in ("unit", "evidence_id"))
        return np.flatnonzero(~self.rows.select(same.fill_null(False)).to_series().to_numpy())

    @cached_property
    def id_unit(self) -> Ints:
        """The unit of each evidence id."""
        return self.unit[self.id_begin]

    @cached_property
    def id_of(self) -> Ints:
        """The number of the evidence id of each passage."""
        return np.repeat(np.arange(len(self.id_begin)), np.diff(np.append(self.id_begin, len(self.unit))))

    @cached_property
    def ids(self) -> Ints:
        """Evidence ids of each unit."""
        return np.bincount(self.id_unit, minlength=self.f.n_units)

    @cached_property
    def chunk_ids(self) -> Ints:
        """Evidence ids of each unit that name a chunk."""
        named = np.flatnonzero(self.rows["chunk_id"].is_not_null().to_numpy())
        return np.bincount(self.id_unit[np.unique(self.id_of[named])], minlength=self.f.n_units)

    @cached_property
    def gold(self) -> tuple[Ints, Ints]:
        """(passage, hit) for every hit that is the gold chunk of a passage."""
        if "chunk_id" not in self.f.m.hits.columns or self.rows["chunk_id"].is_null().all():
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        passage, hit = self._pairs
        wanted, found = self.rows["chunk_id"].gather(passage), self.f.m.hits["chunk_id"].gather(hit)
        same = np.flatnonzero((wanted == found).fill_null(False).to_numpy())
        return passage[same], hit[same]

    @cached_property
    def given(self) -> tuple[Spans, Ints]:
        """Spans of hits, grouped by the passages whose text they could hold, and the hit of each; in order."""
        hits = self.f.m.hits
        if "chunk_start" not in hits.columns:
            none = np.zeros(0, dtype=np.int64)
            return Spans(none, none, none), none
        passage, hit = self._pairs
        start = hits["chunk_start"].gather(hit).fill_null(0).to_numpy()
        end = hits["chunk_end"].gather(hit).fill_null(0).to_numpy()
        useful = np.flatnonzero((start < end) & (self.length[passage] > 0))
        order = useful[by_group(passage[useful], start[useful])]
        return Spans(passage[order], start[order], end[order]), hit[order]

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints]:
        """Passages and the hits of their documents at their version: (passage, hit), in order."""
        target = self.rows["target"].to_numpy()
        n_targets = max(int(target.max(initial=-1)), int(self.f.m.hit_target.max(initial=-1))) + 1
        of_target = np.bincount(self.f.m.hit_target, minlength=n_targets)
        by_target = np.argsort(self.f.m.hit_target, kind="stable")
        size = of_target[target]
        passage = np.repeat(np.arange(len(target)), size)
        first = np.cumsum(of_target) - of_target
        hit = by_target[np.repeat(first[target] - (np.cumsum(size) - size), size) + np.arange(len(passage))]
        kept = fits(self.f.m.hits, hit, self.rows["doc_version"], passage)
        kept &= ~self.rows["stale"].to_numpy()[passage]
        return passage[kept], hit[kept]

    @cached_property
    def text(self) -> Ints:
        """The number of the text that each passage lies in: a document of a unit, at one version."""
        return _texts(self.rows, ["target", "doc_version"])[0]


class CutPassages:
    """The passages under one cut: implements `measures.definition.PassageCounts`."""

    def __init__(self, passages: Passages, cut: Cut) -> None:
        self.p, self.k = passages, cut.k

    def _taken(self, hits: Ints) -> Mask:
        return within(self.p.f.reach(hits), len(hits), self.k)

    @cached_property
    def _gold(self) -> tuple[Ints, Ints]:
        passage, hit = self.p.gold
        taken = self._taken(hit)
        return passage[taken], hit[taken]

    @cached_property
    def _given(self) -> Spans:
        spans, hit = self.p.given
        return spans.where(self._taken(hit))

    @cached_property
    def chunk_ids_found(self) -> Ints:
        found = np.unique(self.p.id_of[self._gold[0]])
        return np.bincount(self.p.id_unit[found], minlength=self.p.f.n_units)

    @cached_property
    def gold_chunks(self) -> Ints:
        passage, _ = self._gold
        chunks = self.p.rows.select("target", "chunk_id")[passage].with_columns(pl.Series("unit", self.p.unit[passage]))
        return np.bincount(chunks.unique()["unit"].to_numpy(), minlength=self.p.f.n_units)

    @cached_property
    def first_gold(self) -> Ints:
        passage, hit = self._gold
        first = np.full(self.p.f.n_units, np.iinfo(np.int64).max)
        np.minimum.at(first, self.p.unit[passage], self.p.f.place(hit))
        return np.where(first == np.iinfo(np.int64).max, 0, first)

    def _parts(self, gap: int) -> Spans:
        """What is covered of each passage, piece by piece."""
        return self._given.joined(gap).clipped(self.p.start, self.p.end)

    def shares(self, gap: int) -> Floats:
        """The covered share of each passage; one that is a chunk alone is covered when that chunk is there."""
        covered = self._parts(gap).lengths(len(self.p.unit))
        share: Floats = covered / np.maximum(self.p.length, 1)
        there = self._gold[0]
        share[there[self.p.length[there] == 0]] = 1.0
        return share

    def best(self, gap: int) -> Floats:
        """The share of the best alternative of each evidence id."""
        return np.maximum.reduceat(self.shares(gap), self.p.id_begin) if len(self.p.id_begin) else np.zeros(0)

    def covered_sum(self, gap: int) -> Floats:
        at = np.arange(len(self.p.id_unit))
        steps = Steps.of(self.p.f.n_units, self.p.id_unit, at, None, self.best(gap))
        return steps.total(self.p.ids)

    def ids_covered(self, coverage: float, gap: int) -> Ints:
        return np.bincount(self.p.id_unit[self.best(gap) >= coverage], minlength=self.p.f.n_units)

    @cached_property
    def _chosen(self) -> Mask:
        """One alternative for each evidence id with a span: the best covered, and of those the first in order."""
        share = np.where(self.p.length > 0, self.shares(0), -1.0)
        best = np.maximum.reduceat(share, self.p.id_begin) if len(self.p.id_begin) else np.zeros(0)
        candidates = np.flatnonzero((share == best[self.p.id_of]) & (share >= 0))
        _, first = np.unique(self.p.id_of[candidates], return_index=True)
        chosen = np.zeros(len(share), dtype=np.bool_)
        chosen[candidates[first]] = True
        return chosen

    def _by_unit(self, spans: Spans) -> Ints:
        """Characters of passages, each once, in every unit. spans: grouped by passage."""
        n_texts = int(self.p.text.max()) + 1 if len(self.p.text) else 0
        texts = Spans(self.p.text[spans.group], spans.start, spans.end).ordered().joined().lengths(n_texts)
        unit = np.zeros(n_texts, dtype=np.int64)
        unit[self.p.text] = self.p.unit
        return sums(unit, texts, self.p.f.n_units)

    @cached_property
    def gold_text(self) -> Ints:
        passage = np.flatnonzero(self._chosen)
        return self._by_unit(Spans(passage, self.p.start[passage], self.p.end[passage]))

    @cached_property
    def covered_text(self) -> Ints:
        parts = self._parts(0)
        return self._by_unit(parts.where(self._chosen[parts.group]))

    @property
    def ids(self) -> Ints:
        return self.p.ids

    @property
    def chunk_ids(self) -> Ints:
        return self.p.chunk_ids

    @cached_property
    def given_text(self) -> Ints:
        rows, taken = self.p.f.m.rows, self.p.f.rows(self.k)
        if rows is None or "chunk_start" not in rows.columns:
            return np.zeros(self.p.f.n_units, dtype=np.int64)
        length = (rows["chunk_end"] - rows["chunk_start"]).fill_null(0).to_numpy()
        return sums(self.p.f.m.row_unit[taken], length[taken], self.p.f.n_units)

    @cached_property
    def distinct_text(self) -> Ints:
        rows = self.p.f.m.rows
        if rows is None or "chunk_start" not in rows.columns:
            return np.zeros(self.p.f.n_units, dtype=np.int64)
        # Every version of a document is a text of its own.
        key = ["unit", *(c for c in ("doc_id", "doc_version") if c in rows.columns)]
        rows = rows.with_columns(pl.Series("unit", self.p.f.m.row_unit)).filter(pl.Series(self.p.f.rows(self.k)))
        rows = rows.filter(pl.col("chunk_start") < pl.col("chunk_end"))
        text, texts = _texts(rows, key)
        spans = Spans(text, rows["chunk_start"].to_numpy(), rows["chunk_end"].to_numpy())
        return sums(texts["unit"].to_numpy(), spans.ordered().joined().lengths(texts.height), self.p.f.n_units)


def _texts(rows: pl.DataFrame, key: list[str]) -> tuple[Ints, pl.DataFrame]:
    """Number the texts that rows lie in: the number of each row's, and what each text is called by."""
    texts = rows.select(key).unique(maintain_order=True).with_row_index("text")
    joined = rows.select(key).join(texts, on=key, how="left", nulls_equal=True, maintain_order="left")
    return joined["text"].to_numpy().astype(np.int64), texts
