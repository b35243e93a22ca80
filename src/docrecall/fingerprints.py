"""What tells whether two runs were scored alike: by which labels, and with which versions."""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl

from docrecall.kernel.labels import Labels
from docrecall.version import __version__

VERSIONS = {"docrecall": __version__, "polars": pl.__version__}

_NOT_LABELS = ("served", "stale")  # what the index of a run makes of a label


def label_digests(labels: Labels) -> dict[str, str]:
    """Give a digest of the labels in use (qrels) and one of the passages (evidence), where there are any.

    They are those after aliases, normalisation and the check of rows, so files of another order or format have the same
    digest. It is made of polars' hashes, and so is comparable within one release of polars, which compare asks for.
    """
    tables = {"qrels": labels.qrels, "evidence": labels.evidence}
    return {name: _digest(rows) for name, rows in tables.items() if rows is not None}


def _digest(rows: pl.DataFrame) -> str:
    """Twelve hex digits that do not depend on the order of rows: hashes of rows are added up."""
    columns = sorted(c for c in rows.columns if c not in _NOT_LABELS and rows[c].null_count() < rows.height)
    whole = hashlib.sha256(f"{rows.height} {columns}".encode())
    for seed in (0, 1000) if columns else ():
        row = pl.fold(
            pl.lit(seed, pl.UInt64),
            lambda found, of_column: (found ^ of_column).hash(),
            [pl.col(c).hash(seed + at) for at, c in enumerate(columns, start=1)],
        )
        total = rows.select(row.alias("row"))["row"].to_numpy().sum(dtype=np.uint64)
        whole.update(int(total).to_bytes(8, "little"))
    return whole.hexdigest()[:12]
