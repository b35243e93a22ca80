"""What tells whether two runs were scored alike: by which labels, and with which versions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import polars as pl

from docrecall.kernel.labels import Labels
from docrecall.version import __version__

VERSIONS = {"docrecall": __version__, "polars": pl.__version__}

_NOT_LABELS = ("served", "stale")  # what the index of a run makes of a label


def digests_of(labels: Labels) -> Callable[[], dict[str, str]]:
    """Give what makes digests when they are asked for; of labels that stay in files, which may change, it does now."""
    if labels.in_pieces:
        made = label_digests(labels)
        return lambda: made
    return partial(label_digests, labels)


def label_digests(labels: Labels) -> dict[str, str]:
    """Give a digest of the labels in use (qrels) and one of the passages (evidence), where there are any.

    They are those after aliases, normalisation and the check of rows, so files of another order or format have the same
    digest. It is made of polars' hashes, and so is comparable within one release of polars, which compare asks for.
    """
    digests = {"qrels": _digest(labels.qrels.frames)}
    evidence = labels.evidence
    return digests if evidence is None else digests | {"evidence": _digest(lambda: [evidence])}


def _digest(frames: Callable[[], Iterable[pl.DataFrame]]) -> str:
    """Twelve hex digits that do not depend on the order of rows: hashes of rows are added up."""
    n_rows, there = 0, pl.DataFrame()
    for rows in frames():
        n_rows += rows.height
        there = pl.concat([there, rows.drop(_NOT_LABELS).select(pl.all().count())])
    columns = sorted(c for c in there.columns if there[c].sum())
    sums = dict.fromkeys((0, 1000) if columns else (), np.uint64(0))
    for rows in frames() if columns else ():
        for seed in sums:
            row = pl.fold(
                pl.lit(seed, pl.UInt64),
                lambda found, of_column: (found ^ of_column).hash(),
                [pl.col(c).hash(seed + at) for at, c in enumerate(columns, start=1)],
            )
            total = rows.select(row.alias("row"))["row"].to_numpy().sum(dtype=np.uint64)
            sums[seed] = np.add(sums[seed], total, dtype=np.uint64)
    whole = hashlib.sha256(f"{n_rows} {columns}".encode())
    for total in sums.values():
        whole.update(int(total).to_bytes(8, "little"))
    return whole.hexdigest()[:12]
