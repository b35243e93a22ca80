"""The same answers in DuckDB SQL, in the fastest form we found; DuckDB checks nothing about the rows."""

from __future__ import annotations

from collections.abc import Iterable

from log import CUTS, LogFiles

_RELEVANT = "relevant AS (SELECT query_id, doc_id FROM {qrels} WHERE relevance >= 1)"

# One row per label with the rank of the document's first hit (null: missed): no distinct count is needed afterwards.
_CHUNKS = """
WITH {relevant},
placed AS (
    SELECT query_id, doc_id, min(rank) AS place
    FROM relevant LEFT JOIN {hits} USING (query_id, doc_id)
    GROUP BY ALL
),
{means}
"""

# A document's position is the number of first hits at or above its own. Only queries with a match, and there only rows
# up to the last match, can matter: as fast as numbering all documents in a window, with half the memory.
_DOCUMENTS = """
WITH {relevant},
matched AS (
    SELECT query_id, doc_id, min(rank) AS first_rank
    FROM relevant JOIN {hits} USING (query_id, doc_id)
    GROUP BY ALL
),
last_matched AS (SELECT query_id, max(first_rank) AS last_rank FROM matched GROUP BY query_id),
documents AS (
    SELECT query_id, doc_id, min(rank) AS first_rank
    FROM {hits} JOIN last_matched USING (query_id)
    WHERE rank <= last_rank
    GROUP BY ALL
),
appearances AS (SELECT query_id, list(first_rank) AS first_ranks FROM documents GROUP BY query_id),
placed AS (
    SELECT query_id,
        CASE WHEN first_rank IS NOT NULL
             THEN len(list_filter(first_ranks, lambda other: other <= first_rank)) END AS place
    FROM relevant LEFT JOIN matched USING (query_id, doc_id) LEFT JOIN appearances USING (query_id)
),
{means}
"""


def chunks_sql(files: LogFiles) -> str:
    """Mean doc_recall among the first k chunks, every k of CUTS in one pass."""
    return filled(_CHUNKS, files, CUTS)


def documents_sql(files: LogFiles) -> str:
    """Mean doc_recall among the first k documents in order of first appearance."""
    return filled(_DOCUMENTS, files, CUTS)


def filled(template: str, files: LogFiles, cuts: Iterable[int]) -> str:
    """Put the tables of a log and the means at the cuts into a query that places labels."""
    relevant = _RELEVANT.format(qrels=table([str(files.qrels)]))
    return template.format(relevant=relevant, hits=table(files.hit_files()), means=_means(cuts))


def _means(cuts: Iterable[int]) -> str:
    """From one row per label with its `place` to the macro mean over labelled queries, one column per cut."""
    counts = ", ".join(f"count(*) FILTER (WHERE place <= {k}) AS found_{k}" for k in cuts)
    means = ", ".join(f"avg(found_{k} / n_relevant)" for k in cuts)
    per_query = f"SELECT count(*) AS n_relevant, {counts} FROM placed GROUP BY query_id"
    return f"per_query AS ({per_query})\nSELECT {means} FROM per_query"


def table(paths: list[str], options: str = "") -> str:
    """Name Parquet files as a table."""
    quoted = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    return f"read_parquet([{quoted}]{options})"
