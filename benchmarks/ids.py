"""Numbers to ids."""

from __future__ import annotations

from uuid import NAMESPACE_OID, uuid5

import numpy as np
import polars as pl

from draw import CORPUS
from log import IdKind


class Ids:
    """Numbers to ids: `q0000123` and `d004211`, UUIDs of these, or the numbers themselves."""

    def __init__(self, kind: IdKind) -> None:
        self.kind = kind
        self.documents = self._named("d", np.arange(CORPUS), digits=6)

    def query(self, numbers: np.ndarray) -> pl.Series:
        """Give the ids of query numbers."""
        return self._repeated("q", numbers, digits=7).alias("query_id")

    def request(self, numbers: np.ndarray) -> pl.Series:
        """Give the ids of request numbers."""
        return self._repeated("r", numbers, digits=7).alias("request_id")

    def evidence(self, numbers: np.ndarray) -> pl.Series:
        """Give the ids of evidence, which are numbers inside a query."""
        return self._repeated("e", numbers, digits=1).alias("evidence_id")

    def document(self, numbers: np.ndarray) -> pl.Series:
        """Give the ids of document numbers."""
        if self.kind == "integer":
            return pl.Series("doc_id", numbers)
        return self.documents.gather(numbers).alias("doc_id")

    def _repeated(self, prefix: str, numbers: np.ndarray, digits: int) -> pl.Series:
        """A name is made once per number, not once per row."""
        if self.kind == "integer":
            return pl.Series(numbers)
        distinct, row = np.unique(numbers, return_inverse=True)
        return self._named(prefix, distinct, digits).gather(row)

    def _named(self, prefix: str, numbers: np.ndarray, digits: int) -> pl.Series:
        plain = named(prefix, numbers, digits)
        if self.kind != "uuid":
            return plain
        return pl.Series([str(uuid5(NAMESPACE_OID, name)) for name in plain], dtype=pl.String)


def named(prefix: str, numbers: np.ndarray, digits: int) -> pl.Series:
    """Ids of equal width, so that their order as text is the order of the numbers."""
    padded = pl.Series(numbers).cast(pl.String).str.zfill(digits)
    return pl.select(pl.lit(prefix) + padded).to_series()
