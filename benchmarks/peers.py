"""One function per competitor.

Calling it prepares: imports, and for ranx the compilation of its kernels. The function it returns does the work, from
Parquet to the mean of every cut in CUTS, and is what `measure.py` times.
"""

# Each peer imports what it needs and no more, or all would carry the memory of all.
# ruff: noqa: PLC0415

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from log import CUTS, HITS_PER_QUERY, LogFiles

if TYPE_CHECKING:
    import polars as pl

OTHERS = ("doc_precision", "doc_hit", "doc_rr", "doc_ap", "doc_ndcg")  # beside recall, where all are asked for

Work = Callable[[], list[float]]
Nested = dict[str, dict[str, Any]]


def bare_scan(files: LogFiles) -> Work:
    """The three columns that every document measure needs."""
    return scan(files, ("query_id", "rank", "doc_id"))


def docrecall_chunks(files: LogFiles) -> Work:
    """Ours, cut at chunks, the contract checked."""
    return docrecall(files, [f"doc_recall@{k}" for k in CUTS])


def docrecall_docs(files: LogFiles) -> Work:
    """Ours, cut at documents, the contract checked."""
    return docrecall(files, [f"doc_recall@{k}docs" for k in CUTS])


def docrecall_all(files: LogFiles) -> Work:
    """Ours, six measures under both cuts, written to disk batch by batch; the means are those of recall."""
    others = [f"{name}@{k}{unit}" for name in OTHERS for unit in ("", "docs") for k in CUTS]
    return to_disk(files, [f"doc_recall@{k}{unit}" for unit in ("", "docs") for k in CUTS], others)


def docrecall_both(files: LogFiles) -> Work:
    """Ours, recall under both cuts, written to disk batch by batch."""
    return to_disk(files, [f"doc_recall@{k}{unit}" for unit in ("", "docs") for k in CUTS])


def duckdb_chunks(files: LogFiles) -> Work:
    """DuckDB, cut at chunks."""
    from sql import chunks_sql

    return duckdb(chunks_sql(files))


def duckdb_docs(files: LogFiles) -> Work:
    """DuckDB, cut at documents."""
    from sql import documents_sql

    return duckdb(documents_sql(files))


def pytrec_eval_docs(files: LogFiles) -> Work:
    """trec_eval's recall, which knows documents only: hits are reduced to first appearances before."""
    import pytrec_eval

    def work() -> list[float]:
        measures = {"recall." + ",".join(str(k) for k in CUTS)}
        evaluator = pytrec_eval.RelevanceEvaluator(_label_dicts(files), measures)
        per_query = evaluator.evaluate(_run_dicts(files)).values()
        return [math.fsum(values[f"recall_{k}"] for values in per_query) / len(per_query) for k in CUTS]

    return work


def ranx_docs(files: LogFiles) -> Work:
    """Recall of ranx, on the same dicts; it compiles its kernels when first used, which is not timed."""
    from ranx import Qrels, Run, evaluate

    measures = [f"recall@{k}" for k in CUTS]

    def score(labels: Nested, run: Nested) -> list[float]:
        means = evaluate(Qrels.from_dict(labels), Run.from_dict(run), measures, save_results_in_run=False)
        return [float(means[measure]) for measure in measures]

    # At least ten queries: below that ranx sets itself to one thread for good.
    names = [f"q{number:07}" for number in range(16)]
    score({name: {"d000000": 1} for name in names}, {name: {"d000000": 1.0, "d000001": 0.5} for name in names})
    return lambda: score(_label_dicts(files), _run_dicts(files))


PEERS: dict[str, Callable[[LogFiles], Work]] = {
    peer.__name__: peer
    for peer in (
        bare_scan,
        docrecall_chunks,
        duckdb_chunks,
        docrecall_docs,
        duckdb_docs,
        docrecall_all,
        docrecall_both,
        pytrec_eval_docs,
        ranx_docs,
    )
}


def scan(files: LogFiles, names: Iterable[str]) -> Work:
    """Decode and hash some columns: the least that any exact answer has to do. It has no means."""
    import polars as pl

    def work() -> list[float]:
        columns = [pl.col(name).hash().max() for name in names]
        pl.scan_parquet(files.hit_files(), glob=False).select(columns).collect(engine="streaming")
        return []

    return work


def docrecall(files: LogFiles, measures: Sequence[str], **tables: Path) -> Work:
    """Score with these measures. tables: what is needed beside hits and labels."""
    from docrecall import score

    def work() -> list[float]:
        summary = score(files.hits, files.qrels, measures=measures, **tables).summary()
        mean_of = dict(summary.select("measure", "mean").iter_rows())
        return [float(mean_of[measure]) for measure in measures]

    return work


def to_disk(files: LogFiles, told: Sequence[str], others: Sequence[str] = ()) -> Work:
    """Score into a folder beside the log, which is removed afterwards; the means are those of the first measures."""
    from docrecall import score

    def work() -> list[float]:
        with TemporaryDirectory(dir=files.folder) as folder:
            summary = score(files.hits, files.qrels, [*told, *others], out=Path(folder) / "results").summary()
        mean_of = dict(summary.select("measure", "mean").iter_rows())
        return [float(mean_of[measure]) for measure in told]

    return work


def duckdb(query: str) -> Work:
    """Run a query whose one row is the means."""
    from duckdb import connect

    def work() -> list[float]:
        # Row order is of no use to us, and keeping it costs memory.
        with connect(config={"preserve_insertion_order": False}) as connection:
            means = connection.execute(query).fetchone()
        if means is None:
            raise RuntimeError("DuckDB returned no row")
        return [float(mean) for mean in means]

    return work


def _label_dicts(files: LogFiles) -> Nested:
    import polars as pl

    qrels = pl.scan_parquet(files.qrels, glob=False).select(_text("query_id"), _text("doc_id"), "relevance")
    return _nested(qrels, "relevance")


def _run_dicts(files: LogFiles) -> Nested:
    """First appearances with a score that falls with the rank, small enough to be exact in single precision."""
    import polars as pl

    falling = (HITS_PER_QUERY + 1 - pl.col("rank").min()).cast(pl.Float64)
    hits = pl.scan_parquet(files.hit_files(), glob=False)
    firsts = hits.group_by("query_id", "doc_id").agg(falling.alias("score"))
    return _nested(firsts.select(_text("query_id"), _text("doc_id"), "score"), "score")


def _text(column: str) -> pl.Expr:
    """Both libraries take String ids only; ranx compiles again for every width of document ids, so there is one."""
    import polars as pl

    return pl.col(column).cast(pl.String).str.zfill(7)


def _nested(table: pl.LazyFrame, value: str) -> Nested:
    """Turn rows into {query: {document: value}}."""
    queries = table.group_by("query_id").agg("doc_id", value).collect()
    return {query: dict(zip(documents, values, strict=True)) for query, documents, values in queries.iter_rows()}
