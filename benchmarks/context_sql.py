"""The works of `context.py` in DuckDB SQL, in the fastest form we found; DuckDB checks nothing about the rows."""

from __future__ import annotations

from log import LogFiles
from sql import filled, table
from tasks import Task

_CONTEXT = """
WITH {relevant},
placed AS (
    SELECT query_id, doc_id, min(rank) AS place
    FROM relevant LEFT JOIN (SELECT query_id, doc_id, rank FROM {hits} WHERE in_context) USING (query_id, doc_id)
    GROUP BY ALL
),
{means}
"""

# A label's place is the budget that it takes to reach it: the tokens of the hits down to the document's first. Adding
# them up from a list per query takes a third of the time of a window over all hits.
_TOKENS = """
WITH {relevant},
matched AS (
    SELECT query_id, doc_id, min(rank) AS first_rank
    FROM relevant JOIN {hits} USING (query_id, doc_id)
    GROUP BY ALL
),
last_matched AS (SELECT query_id, max(first_rank) AS last_rank FROM matched GROUP BY query_id),
above AS (
    SELECT query_id, list({{'rank': rank, 'n': n_tokens}}) AS hits
    FROM {hits} JOIN last_matched USING (query_id)
    WHERE rank <= last_rank
    GROUP BY query_id
),
placed AS (
    SELECT query_id,
        CASE WHEN first_rank IS NOT NULL
             THEN list_sum([hit.n for hit in hits if hit.rank <= first_rank]) END AS place
    FROM relevant LEFT JOIN matched USING (query_id, doc_id) LEFT JOIN above USING (query_id)
),
{means}
"""

# The parts of a passage that hits give, in order of their start: each adds what lies beyond the furthest end before it.
_EVIDENCE = """
WITH evidence AS (
    SELECT file_row_number AS passage, query_id, evidence_id, doc_id, "start" AS gold_start, "end" AS gold_end
    FROM {evidence}
),
cuts AS (SELECT unnest([{cuts}]) AS k),
parts AS (
    SELECT passage, k, greatest(gold_start, chunk_start) AS part_start, least(gold_end, chunk_end) AS part_end
    FROM evidence JOIN {hits} USING (query_id, doc_id) JOIN cuts ON rank <= k
    WHERE rank <= {last} AND chunk_start < gold_end AND gold_start < chunk_end
),
gains AS (
    SELECT passage, k, greatest(0, part_end - greatest(part_start, coalesce(max(part_end) OVER before, 0))) AS gain
    FROM parts
    WINDOW before AS (PARTITION BY passage, k ORDER BY part_start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
covered AS (SELECT passage, {gained} FROM gains GROUP BY passage),
per_id AS (SELECT query_id, {best} FROM evidence LEFT JOIN covered USING (passage) GROUP BY query_id, evidence_id),
per_query AS (SELECT {inner_means} FROM per_id GROUP BY query_id)
SELECT {outer_means} FROM per_query
"""

# Labels and places come in few kinds, so the sum over requests is one over kinds. Every query has labels here.
_REQUESTS = """
WITH relevant AS (SELECT query_id, doc_id FROM {qrels} WHERE relevance >= 1),
sizes AS (SELECT query_id, count(*) AS n_relevant FROM relevant GROUP BY query_id),
found AS (
    SELECT request_id, query_id, doc_id, min(rank) AS place
    FROM relevant JOIN {hits} USING (query_id, doc_id)
    GROUP BY ALL
),
kinds AS (SELECT n_relevant, {counts} FROM found JOIN sizes USING (query_id) GROUP BY n_relevant),
asked AS (SELECT count(*) AS n FROM (SELECT DISTINCT request_id, query_id FROM {hits}))
SELECT {means} FROM kinds, asked GROUP BY n
"""


def task_sql(task: Task, files: LogFiles) -> str:
    """The means of a work in one query, one column per cut."""
    if task.family == "evidence_coverage":
        return _evidence(task, files)
    if task.variant == "requests":
        return _requests(task, files)
    return filled(_TOKENS if task.unit == "tokens" else _CONTEXT, files, task.cuts)


def _evidence(task: Task, files: LogFiles) -> str:
    def each(pattern: str) -> str:
        return ", ".join(pattern.format(k=k) for k in task.cuts)

    return _EVIDENCE.format(
        evidence=table([str(files.evidence)], ", file_row_number = true"),
        hits=table(files.hit_files()),
        cuts=each("{k}"),
        last=max(task.cuts),
        gained=each("sum(gain) FILTER (WHERE k = {k}) AS gained_{k}"),
        best=each("max(coalesce(gained_{k}, 0) / (gold_end - gold_start)) AS share_{k}"),
        inner_means=each("avg(share_{k}) AS mean_{k}"),
        outer_means=each("avg(mean_{k})"),
    )


def _requests(task: Task, files: LogFiles) -> str:
    return _REQUESTS.format(
        qrels=table([str(files.qrels)]),
        hits=table(files.hit_files()),
        counts=", ".join(f"count(*) FILTER (WHERE place <= {k}) AS found_{k}" for k in task.cuts),
        means=", ".join(f"sum(found_{k} / n_relevant) / n" for k in task.cuts),
    )
