"""Tables in any form -> our own Parquet, or TREC files: read, checked row by row, sorted by unit, written.

What takes several rows to be seen (repeats, conflicts, tables that do not meet) is left as it is, for `check` to find.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import polars as pl

from docrecall import findings
from docrecall.contract import evidence as of_evidence
from docrecall.contract import hits as of_hits
from docrecall.contract import labels as of_others
from docrecall.contract.rules import Rule, none_rejected, report, split
from docrecall.contract.schema import settle_alone
from docrecall.errors import UsageError
from docrecall.options import Options
from docrecall.show import printable
from docrecall.sources.formats import FORMATS, Read
from docrecall.sources.mapping import Mappings, Source, TableMap, parse_mapping, to_toml
from docrecall.sources.read import read_logs, read_table
from docrecall.sources.table import FAULT, FILE, ROW, Table
from docrecall.staging import MANIFEST, StagedFolder, named
from docrecall.tables import TABLES, unit_key
from docrecall.version import __version__
from docrecall.writers import ParquetFile, TrecFiles, is_written_name

To = Literal["parquet", "trec"]
_REJECTED = "rejected.parquet"
_ROWS_AT_A_TIME = 2_000_000
_SAMPLE = 1_000  # rows for each that the ranges of a large table are chosen by

CONVERTED_SCHEMA = pl.Schema(
    {"table": pl.String(), "file": pl.String(), **dict.fromkeys(("read", "written", "rejected"), pl.Int64())}
)


@dataclass(frozen=True)
class Converted:
    """What a conversion did.

    rows: table, file (written), read, written, rejected; read = written + rejected. rejected: as `Scores.rejected`.
    findings: as `Scores.findings`.
    """

    rows: pl.DataFrame
    rejected: pl.DataFrame
    findings: pl.DataFrame


def convert(
    out: str | os.PathLike[str],
    *,
    to: To = "parquet",
    map: Any = None,
    read: Any = None,
    rows_at_a_time: int = _ROWS_AT_A_TIME,
    options: Options | None = None,
    **tables: Any,
) -> Converted:
    """Write tables as docrecall's own Parquet (`OUT/hits.parquet`, ..), or hits and qrels as TREC files.

    tables: hits, qrels, evidence, queries, requests, documents, chunks: each what `score` takes. map, read: as for
    `score`. options: on_bad_rows, rank_base and normalize_ids apply; `order` ranks hits that have scores and no rank.
    rows_at_a_time: about how many rows are sorted in memory; their order does not depend on it.

    Rows are sorted by query_id, run_id and rank, or by the ids of the table. The folder is replaced as a whole. Raises
    what `score` raises, and UsageError for a table or a format that does not exist.
    """
    options = options or Options()
    _refuse_unknown(tables, to)
    maps = parse_mapping(map, read)
    done, bad, found = [], [], []
    opened = {name: _open(name, source, maps, options) for name, source in tables.items() if source is not None}
    if to == "trec" and opened.keys() - {"hits", "qrels"}:
        raise UsageError("TREC files hold runs and qrels; write the other tables as Parquet.")
    with StagedFolder(out, is_ours) as folder:
        for name, parts in opened.items():
            n_bad = 0
            with (
                ParquetFile(folder.files, parts[0]) if to == "parquet" else TrecFiles(folder.files, parts[0]) as writer
            ):
                for rows, rejected, seen in _checked(parts, options, rows_at_a_time):
                    bad.append(rejected)
                    found += seen
                    n_bad += rejected.height
                    if not any(findings.errors(f).height for f in found):
                        with named(folder.target):
                            writer.write(rows)
            found += _empty_lists(parts)
            done.append((name, ", ".join(writer.names), sum(p.n_rows for p in parts), writer.n_rows, n_bad))
        merged, rejected = findings.merge(found), _together(bad)
        findings.raise_errors(merged)
        rows = pl.DataFrame(done, schema=CONVERTED_SCHEMA, orient="row")
        for part in (part for parts in opened.values() for table in parts for part in table.parts):
            part.check_unchanged()
        with named(folder.target):
            if rejected.height:
                rejected.write_parquet(folder.files / _REJECTED)
            folder.put(_manifest(rows, maps, options))
    return Converted(rows, rejected, merged)


def _empty_lists(logs: Sequence[Table]) -> list[pl.DataFrame]:
    """Tell of the units that a log names with an empty list: a table of hits has no row for them."""
    asked = [table.asked for table in logs]
    ids = [frame["query_id"].cast(pl.String) for frame in asked if frame is not None]
    n = sum(map(len, ids))
    return [findings.finding("empty_lists", "hits", None, n, n_queries=n, examples=pl.concat(ids))] if n else []


def explain(*, map: Any = None, read: Any = None, options: Options | None = None, **tables: Any) -> str:
    """Say in TOML how each table would be read: its format, what feeds each column, and what is not read.

    The text is a mapping by itself: given as `map`, it reads the tables in the same way. Nothing is written.
    """
    options = options or Options()
    maps = parse_mapping(map, read)
    shown, notes = {}, []
    for name, source in tables.items():
        if source is not None:
            table, *others = _open(name, source, maps, options)
            shown[name] = _as_read(table, maps.get(name, TableMap()))
            notes += _notes(table, shown[name])
            runs = ", ".join(printable(log.run) for log in (table, *others) if log.run is not None)
            if runs:
                notes.append(f"hits.run_id is named by the caller: {runs}; below is how {printable(table.run)} is read")
            if len(table.parts) > 1:
                notes.append(
                    f"{name}: {len(table.parts):,} files; below is how {printable(table.parts[0].file)} is read"
                )
    return "".join(f"# {note}\n" for note in notes) + to_toml(shown)


def _as_read(table: Table, declared: TableMap) -> TableMap:
    """The mapping with nothing left to be recognised."""
    part = table.parts[0]
    groups = {group for split in declared.splits for group in split.groups}
    columns = []
    for column in (c for c in part.schema if c in table.spec.columns or part.tmap.source(c)):
        source = part.tmap.source(column) or (Source("column", (column,)) if column in part.names else None)
        if source and not (column in groups and part.tmap.source(column) is None):
            columns.append((column, source))
    read = part.tmap.read or declared.read or (Read(part.format) if part.format in FORMATS else None)
    return TableMap(read, tuple(columns), declared.splits)


def _notes(table: Table, shown: TableMap) -> list[str]:
    """What TOML has no place for."""
    part = table.parts[0]
    sources = {name for _, s in shown.columns if s.how != "value" for name in s.names}
    sources |= {split.column for split in shown.splits}
    unread = [n for n in part.names if not any(s == n or s.startswith(f"{n}.") for s in sources)]
    notes = []
    if table.spec.name == "hits" and "rank" in part.schema and "rank" not in part.names and not shown.source("rank"):
        notes.append("hits.rank is the position in the lists")
    if unread and not table.spec.slices:
        notes.append(f"{table.spec.name}: not read: {', '.join(printable(n) for n in unread)}")
    return notes


def is_ours(name: str) -> bool:
    """Whether a file of this name is one that a conversion writes."""
    return name in (MANIFEST, _REJECTED) or is_written_name(name)


def _refuse_unknown(tables: dict[str, Any], to: str) -> None:
    for name in tables:
        if name not in TABLES:
            raise UsageError(f"there is no table {name!r}. Tables are {', '.join(TABLES)}.")
    if to not in get_args(To):
        raise UsageError(f"to is {to!r}; it may be {' or '.join(get_args(To))}.")
    if all(source is None for source in tables.values()):
        raise UsageError(f"no table to convert. Give at least one of {', '.join(TABLES)}.")


def _open(name: str, source: Any, maps: Mappings, options: Options) -> list[Table]:
    spec, tmap = TABLES[name], maps.get(name, TableMap())
    if name != "hits":
        return [settle_alone(read_table(source, spec, tmap=tmap), list(spec.required), options)]
    logs = [settle_alone(log, _required(log, options), options) for log in read_logs(source, spec, tmap)]
    if options.by_score and any("rank" in log.columns for log in logs):
        raise UsageError(
            f"order={options.order!r} ranks hits that have no rank, and these have one, which a conversion keeps. "
            "Leave the order away here, and name it when you score."
        )
    columns = list(dict.fromkeys(c for log in logs for c in log.columns))
    kinds = {c: {str(log.columns[c]) for log in logs if c in log.columns} for c in columns}
    for log in logs:
        lacks = [c for c in columns if c not in log.columns and c != "run_id"]
        mixed = [c for c in columns if len(kinds[c]) > 1]
        if lacks or mixed:
            raise UsageError(
                f"the runs cannot be written as one table: hits.{(lacks or mixed)[0]} is not in all of them, or not of "
                "one type. Convert them one by one."
            )
    return logs


def _required(log: Table, options: Options) -> list[str]:
    """What hits must have: a log of chunk ids alone names no documents, and scores may stand for ranks."""
    spare = {"rank"} if options.by_score else set()
    if "chunk_id" in log.parts[0].schema:
        spare.add("doc_id")
    return [c for c in log.spec.required if c not in spare]


def _rules(table: Table, options: Options) -> list[Rule]:
    """The rules of single rows; columns that only some measures read may hold anything."""
    match table.spec.name:
        case "hits":
            return of_hits.row_rules(table, options, values=False)
        case "evidence":
            return of_evidence.row_rules(table)
    return of_others.row_rules(table)


def _checked(
    parts: Sequence[Table], options: Options, rows_at_a_time: int
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame, list[pl.DataFrame]]]:
    """Yield (good rows, rejected rows, findings) in the order of the ids; all rows of a query come together."""
    lead = next(iter(parts[0].spec.required))
    n_rows = sum(table.n_rows for table in parts)
    for where in _ranges(parts, lead, -(-n_rows // rows_at_a_time)):
        good, bad, found = [], [], []
        for table in parts:
            rows = table.read(table.columns, where=where)
            by_hits = table.spec.name == "hits"
            rows, broken = split(rows, _rules(table, options))
            unit = ["query_id"] if "query_id" in rows.columns else [lead]
            rejected, seen = report(broken, table, unit, options)
            rows = rows.drop(FILE, ROW, *([FAULT] if table.faulty else []))
            good.append(_with_run(_ranked(rows, table, options) if by_hits else rows, table))
            bad.append(rejected)
            found += seen
        rows = _sorted(pl.concat(good, how="diagonal_relaxed"), parts[0])
        yield rows, pl.concat(bad, how="diagonal_relaxed"), found


def _sorted(rows: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Sort by the key of the table; rows that share it by all columns, so that the order has one outcome."""
    key = ["query_id", "run_id", "request_id", "rank"] if table.spec.name == "hits" else list(table.spec.required)
    key = [c for c in key if c in rows.columns]
    rows = rows.sort(key, maintain_order=True)
    tied = pl.all_horizontal(pl.col(c).eq_missing(pl.col(c).shift()) for c in key)
    if rows.select(tied.any()).item():
        rows = rows.sort(list(dict.fromkeys([*key, *rows.columns])))
    return rows


def _ranked(rows: pl.DataFrame, table: Table, options: Options) -> pl.DataFrame:
    """Hits with ranks from 1: as logged, or by score where none is logged."""
    if "rank" in table.columns:
        return rows.with_columns(pl.col("rank").cast(pl.Int64) + (1 - options.rank_base))
    sorted_rows, _ = of_hits.placed(rows, unit_key(table.columns), table.used, options)
    rank = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("_unit").alias("rank")
    return sorted_rows.with_columns(rank).drop("_unit", "_order")


def _with_run(rows: pl.DataFrame, table: Table) -> pl.DataFrame:
    if table.run is None or "run_id" in rows.columns:
        return rows
    return rows.with_columns(pl.lit(table.run).alias("run_id"))


def _ranges(parts: Sequence[Table], column: str, n: int) -> Iterator[pl.Expr | None]:
    """Conditions that part rows into about n ranges of a column, in rising order; nulls are in the first."""
    if n <= 1:
        yield None
        return
    scans = [table.scan([part], [column]).gather_every(_SAMPLE) for table in parts for part in table.parts]
    sample = pl.concat([scan.collect() for scan in scans])[column].drop_nulls().sort()
    bounds = sample.gather([len(sample) * i // n for i in range(1, n)]).unique().sort().to_list() if len(sample) else []
    col = pl.col(column)
    for low, high in zip([None, *bounds], [*bounds, None], strict=True):
        above = pl.lit(True) if low is None else col >= low
        below = pl.lit(True) if high is None else col < high
        within = above & below
        yield within.fill_null(True) if low is None else within.fill_null(False)


def _together(bad: Sequence[pl.DataFrame]) -> pl.DataFrame:
    frames = [frame for frame in bad if frame.height]
    return pl.concat(frames, how="diagonal_relaxed") if frames else none_rejected().collect()


def _manifest(rows: pl.DataFrame, maps: Mappings, options: Options) -> dict[str, Any]:
    return {
        "docrecall": __version__,
        "rows": rows.to_dicts(),
        "mapping": {table: asdict(found) for table, found in maps.items()},
        "options": asdict(options),
    }
