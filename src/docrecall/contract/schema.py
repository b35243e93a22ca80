"""The rules that columns and types must keep, decided from footers and schemas before any row is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

import polars as pl

from docrecall.contract.needs import FROM_CHUNKS, Needs
from docrecall.errors import DataError
from docrecall.options import Options
from docrecall.show import printable
from docrecall.sources.inputs import Inputs
from docrecall.sources.table import WIDE, Part, Table
from docrecall.tables import EXPECTED, Kind, TableSpec, fits, plain_type


def settle(inputs: Inputs, needs: Needs, options: Options) -> Inputs:
    """Check columns and types, and decide the type in which each column is worked on.

    Raises DataError for a missing column, a type that a column may not have, files of one table that differ in their
    columns, and ids that are String on one side and integers on the other. Nothing is cast in silence.
    """
    used = {id(table): dict(needs.columns[table.spec.name]) for table in inputs.all()}
    chunks = inputs.tables.get("chunks")
    asked = {"run_id", "chunk_id", "doc_id"}  # of the chunks, whose other columns may hold anything
    for log in inputs.logs:
        for column in supplied(log, chunks, needs):
            asked.add(column)
            del used[id(log)][column]
            used[id(log)]["chunk_id"] = True
        if not needs.hits["in_context"] and not _all_flags(log):
            del used[id(log)]["in_context"]  # nobody asks for it, and a column of another kind is somebody else's
    if chunks is not None:
        used[id(chunks)] = {c: must for c, must in used[id(chunks)].items() if c in asked}
    for table in inputs.all():
        check_columns(table, used[id(table)], needs.why if table.spec.name == "hits" else {}, chunks)
    _agree_on_requests(inputs)
    ids = {
        column: _one_kind([t for t in inputs.all() if column in used[id(t)]], names)
        for column, names in _SAME_KIND.items()
    }
    ids["alias_of"] = ids["doc_id"]

    def typed(table: Table) -> Table:
        return _typed(table, used[id(table)], ids, options)

    return Inputs([typed(log) for log in inputs.logs], {name: typed(t) for name, t in inputs.tables.items()})


# Ids that are compared with one another.
_SAME_KIND: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id",),
    "doc_id": ("doc_id", "alias_of"),
    "request_id": ("request_id",),
    "chunk_id": ("chunk_id",),
    "evidence_id": ("evidence_id",),
}


def supplied(log: Table, chunks: Table | None, needs: Needs) -> list[str]:
    """The columns that the table of chunks gives to a log that lacks them."""
    if chunks is None or "chunk_id" not in log.parts[0].schema:
        return []
    have, give = log.parts[0].schema, chunks.parts[0].schema
    return [column for column in FROM_CHUNKS if column in needs.hits and column not in have and column in give]


def _all_flags(log: Table) -> bool:
    found = [part.schema.get("in_context") for part in log.parts]
    return all(dtype is not None and fits("flag", dtype) for dtype in found)


def _agree_on_requests(inputs: Inputs) -> None:
    """Requests are told apart in all logs and in the table of requests, or in none of them."""
    tables = [*inputs.logs, *([inputs.tables["requests"]] if "requests" in inputs.tables else [])]
    has = next((table for table in tables if "request_id" in table.parts[0].schema), None)
    lacks = next((table for table in tables if "request_id" not in table.parts[0].schema), None)
    if has is None or lacks is None:
        return
    name = lacks.spec.name
    raise DataError(
        f"{_named(lacks)} has no column {name}.request_id{_where(lacks.parts[0])}, but {_named(has)} has it"
        f"{_where(has.parts[0])}. Which hits belong to which request could not be told: all logs and the table of "
        "requests must have it, or none."
    )


def _named(table: Table) -> str:
    """The name of a table, with the run that the caller named."""
    return table.spec.name if table.run is None else f"{table.spec.name} of run {printable(table.run)}"


def settle_alone(table: Table, required: Sequence[str], options: Options) -> Table:
    """The same for one table by itself, all of whose columns matter. required: the columns that it must have."""
    used = {column: column in required for column in table.spec.columns}
    check_columns(table, used)
    ids = {c: _one_kind([table], (c,)) for c, kind in table.spec.columns.items() if kind == "id"}
    slices = {c: t for c, t in table.parts[0].schema.items() if c not in table.spec.columns}
    for part in table.parts:
        if {c: t for c, t in part.schema.items() if c not in table.spec.columns} != slices:
            raise DataError(
                f"the other columns of {table.spec.name} differ between{_where(part)} and{_where(table.parts[0])}. "
                "All files of a table must have the same columns."
            )
    typed = _typed(table, used, ids, options)
    return replace(typed, columns=typed.columns | slices)


def check_columns(
    table: Table, used: Mapping[str, bool], why: Mapping[str, str] | None = None, chunks: Table | None = None
) -> None:
    """Raise DataError for a column that is missing, or has a type that it may not have, or differs between files.

    why: the measure that asks for a column. chunks: the table that could supply what hits lack, if it was given.
    """
    for part in table.unlike:
        _require(table.spec, part, used, why or {}, chunks)
        _refuse_types(table.spec, part, used)
    _refuse_drift(table)


def _where(part: Part) -> str:
    return f" ({printable(part.file)})" if part.file else ""


def _require(
    spec: TableSpec, part: Part, used: Mapping[str, bool], why: Mapping[str, str], chunks: Table | None
) -> None:
    missing = [column for column, required in used.items() if required and column not in part.schema]
    if missing:
        have = ", ".join(printable(name) for name in part.names) or "none"
        named = " and ".join(f"{spec.name}.{column}" for column in missing)
        asking = next((f", which {why[column]} reads" for column in missing if column in why), "")
        raise DataError(
            f"{spec.name} has no column{'s' if len(missing) > 1 else ''} {named}{_where(part)}{asking}. "
            f"Its columns: {have}. {_remedy(spec, missing, part)}{_from_chunks(spec, missing, part, chunks)}"
        )


def _remedy(spec: TableSpec, missing: Sequence[str], part: Part) -> str:
    """What to do about missing columns: the mapping to ones with like names, where there are any."""
    if spec.name == "hits" and list(missing) == ["rank"] and "score" in part.schema:
        return 'It has scores: order="score" (--order score) ranks by them.'
    free = [name for name in part.names if name not in spec.columns]
    likely = {column: like(column, free) for column in missing}
    if any(likely.values()):
        meant = " ".join(f"--map {spec.name}.{column}={printable(name)}" for column, name in likely.items() if name)
        return f"If the name alone differs: {meant} (map= in Python)."
    return f"Name the column that holds it: --map {spec.name}.{missing[0]}=COLUMN (map= in Python)."


def _from_chunks(spec: TableSpec, missing: Sequence[str], part: Part, chunks: Table | None) -> str:
    """What the table of chunks has to do with missing columns of hits."""
    if spec.name != "hits" or not set(missing) <= set(FROM_CHUNKS):
        return ""
    if chunks is None:
        by_id = " Or pass the table of chunks (chunks=, --chunks), which gives it by chunk_id."
        return by_id if "chunk_id" in part.schema else ""
    unknown = [column for column in missing if column not in chunks.parts[0].schema]
    if unknown:
        return f" The table of chunks{_where(chunks.parts[0])} has no {' and '.join(unknown)} either."
    return " The table of chunks gives it by chunk_id, which hits lack too."


def like(column: str, names: Iterable[str], *, nearly: bool = True) -> str | None:
    """The name among some that most likely means a column: in other letters, by a usual word for it, or nearly."""
    whole = {_plain(name): name for name in reversed(list(names))}
    ends = {_plain(name.rpartition(".")[2]): name for name in whole.values()}
    for plain in (whole, ends):
        for word in (column, *_WORDS.get(column, ())):
            if _plain(word) in plain:
                return plain[_plain(word)]
    close = get_close_matches(_plain(column), list(whole), n=1, cutoff=0.7) if nearly else []
    return whole[close[0]] if close else None


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())


# What logs and labels elsewhere call these columns.
_WORDS: Mapping[str, tuple[str, ...]] = {
    "query_id": ("qid", "query", "topic", "topic_id", "question_id", "question", "user_input", "query-id", "_id"),
    "doc_id": (
        "docid", "doc_ids", "ids",
        "docno", "did", "pid", "document_id", "document", "doc", "source", "source_id", "file", "file_id",
        "corpus-id", "passage_id", "item_id", "_id", "retrieved_context_ids", "retrieved_ids", "reference_context_ids",
        "metadata.source", "meta.source", "metadata.doc_id", "meta.doc_id",
    ),
    "rank": ("position", "pos", "place", "order"),
    "relevance": ("rel", "grade", "label", "score", "gain"),
    "score": ("sim", "similarity", "relevance_score"),
    "request_id": ("requestid", "req_id", "trace_id"),
    "chunk_id": ("chunkid", "chunk", "node_id"),
    "doc_version": ("version", "docversion", "revision"),
    "n_tokens": ("tokens", "ntokens", "token_count", "num_tokens"),
    "in_context": ("incontext", "in_prompt", "passed_on"),
    "chunk_start": ("start", "start_char", "start_offset"),
    "chunk_end": ("end", "end_char", "end_offset"),
    "start": ("begin", "start_char", "start_offset"),
    "end": ("stop", "end_char", "end_offset"),
    "label_status": ("status", "labelstatus", "answerability"),
    "weight": ("weights", "traffic", "frequency"),
    "retrieved": ("has_hits",),
    "answered": ("is_answered", "declined", "refused", "abstained"),
    "alias_of": ("alias", "canonical", "canonical_id", "renamed_to"),
}  # fmt: skip


def _refuse_types(spec: TableSpec, part: Part, used: Mapping[str, bool]) -> None:
    for column in used:
        found, kind = part.schema.get(column), spec.columns[column]
        if found is not None and not fits(kind, found):
            ids = (
                " Float ids lose digits and cannot be told from each other."
                if kind == "id" and found.is_float()
                else ""
            )
            if kind in ("text", "status") and found.is_integer():
                ids = f" Read them as text: --map {spec.name}.{column}=text:{column} (map= in Python)."
            raise DataError(f"{spec.name}.{column} is {_said(found)}{_where(part)}; expected {EXPECTED[kind]}.{ids}")


def _said(dtype: pl.DataType) -> str:
    """The name of a type, without the values and names inside: an Enum would print its categories."""
    return str(dtype.base_type()) if dtype.is_nested() or isinstance(dtype, pl.Enum) else str(dtype)


def _refuse_drift(table: Table) -> None:
    """All files of a table have the same known columns, each of the same kind; integer widths may differ."""
    first, *others = table.unlike
    for part in others:
        for column in sorted((first.schema.keys() ^ part.schema.keys()) & table.spec.columns.keys()):
            has, lacks = (first, part) if column in first.schema else (part, first)
            raise DataError(
                f"{table.spec.name}.{column} is missing in{_where(lacks)} but present in{_where(has)}. "
                "All files of a table must have the same columns."
            )
        for column in part.schema.keys() & table.spec.columns.keys():
            found, before = part.schema[column], first.schema[column]
            if pl.Null not in (before, found) and _family(before) != _family(found):
                raise DataError(
                    f"{table.spec.name}.{column} is {_said(found)} in{_where(part)} but {_said(before)} "
                    f"in{_where(first)}. All files of a table must have the same column types."
                )


def _family(dtype: pl.DataType) -> str:
    dtype = plain_type(dtype)
    return "integer" if dtype.is_integer() else "float" if dtype.is_float() else str(dtype)


def _one_kind(tables: Sequence[Table], columns: Sequence[str]) -> pl.DataType:
    """String or Int64: the one kind that id columns have on all tables."""
    first: tuple[str, Part, pl.DataType] | None = None
    for table in tables:
        for part, column in ((part, column) for part in table.unlike for column in columns):
            found = part.schema.get(column)
            if found is None or found == pl.Null or column not in table.spec.columns:
                continue
            name = f"{table.spec.name}.{column}"
            if first is None:
                first = name, part, found
            elif _family(first[2]) != _family(found):
                raise DataError(
                    f"{first[0]} is {_said(first[2])}{_where(first[1])} but {name} is {_said(found)}{_where(part)}. "
                    f"Ids must have the same type on both sides; nothing is cast for you. Write one of them in the "
                    'type of the other. Leading zeros matter: 7 and "007" are different ids.'
                )
    return pl.Int64() if first and first[2].is_integer() else pl.String()


def _typed(table: Table, used: Mapping[str, bool], ids: Mapping[str, pl.DataType], options: Options) -> Table:
    columns = {
        column: ids[column]
        if column in ids and column in used
        else _working_type(kind, [p.schema[column] for p in table.unlike], used=column in used)
        for column, kind in table.spec.columns.items()
        if column in table.parts[0].schema
    }
    return replace(table, columns=columns, used=used, normalize=options.normalize_ids == "NFC")


def _working_type(kind: Kind, found: Sequence[pl.DataType], *, used: bool) -> pl.DataType:
    """The type for a column: what its kind asks for, or what is there when nobody reads it but to compare rows."""
    present = [plain_type(t) for t in found if t != pl.Null]
    if not present:
        return {
            "id": pl.String(),
            "text": pl.String(),
            "status": pl.String(),
            "number": pl.Float64(),
            "flag": pl.Boolean(),
        }.get(kind, pl.Int64())
    if not used and any(t in WIDE for t in present):
        return pl.String()  # holds any of them exactly, and nobody computes with it
    if used and kind == "number":
        return pl.Float64()
    if all(t.is_integer() for t in present):
        return pl.Float64() if kind == "number" else pl.Int64()
    return pl.Float64() if all(t.is_float() for t in present) else present[0]
