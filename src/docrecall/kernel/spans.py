"""Intervals of many groups at once: unions, clipped parts and their lengths, in whole numbers.

A span is half-open. Arrays of spans are grouped by whole numbers from 0; those of one group lie on one line.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from docrecall.kernel.steps import sums
from docrecall.measures.definition import Ints


class Spans(NamedTuple):
    """group, start, end: one entry per span."""

    group: Ints
    start: Ints
    end: Ints

    def where(self, kept: np.ndarray) -> Spans:
        """Those at some places, or where a mask is true."""
        return Spans(self.group[kept], self.start[kept], self.end[kept])

    def ordered(self) -> Spans:
        """Sorted by group and start, without spans that hold no character."""
        some = self.where(self.start < self.end)
        return some.where(by_group(some.group, some.start))

    def joined(self, gap: int = 0) -> Spans:
        """Join sorted spans of a group that overlap, touch, or lie at most `gap` apart: what is left is disjoint."""
        if not len(self.group):
            return self
        reach = _running_max(self.group, self.end)
        new = np.ones(len(self.group), dtype=np.bool_)
        new[1:] = (self.group[1:] != self.group[:-1]) | (self.start[1:] - reach[:-1] > gap)
        begin = np.flatnonzero(new)
        last = np.append(begin[1:], len(self.group)) - 1
        return Spans(self.group[begin], self.start[begin], reach[last])

    def clipped(self, start: Ints, end: Ints) -> Spans:
        """The parts inside one span for each group. start, end: that span, by group."""
        inside = Spans(self.group, np.maximum(self.start, start[self.group]), np.minimum(self.end, end[self.group]))
        return inside.where(inside.start < inside.end)

    def lengths(self, n_groups: int) -> Ints:
        """The sum of the lengths in each group."""
        return sums(self.group, self.end - self.start, n_groups)


def by_group(group: Ints, value: Ints) -> Ints:
    """The order by group, then value; equal ones keep theirs. Neither is negative."""
    width = int(value.max(initial=0)) + 1
    if (int(group.max(initial=0)) + 1) * width >= 1 << 62:
        return np.lexsort((value, group))
    return np.argsort(group * width + value, kind="stable")  # one number sorts several times as fast as two


def _running_max(group: Ints, value: Ints) -> Ints:
    """The largest value so far in each group; groups stand together, values are not negative."""
    number = np.cumsum(np.diff(group, prepend=group[:1]) != 0)
    width = int(value.max()) + 1
    if (int(number[-1]) + 1) * width >= 1 << 62:  # texts of a length that nobody has; their order says as much
        distinct, value = np.unique(value, return_inverse=True)
        return distinct[_running_max(group, value)]
    out: Ints = np.maximum.accumulate(value + number * width) - number * width
    return out
