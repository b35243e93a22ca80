"""Rows as the caller has them -> the known columns of a table: renamed, split, unfolded from lists, and typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import polars as pl

from docrecall.errors import DataError, UsageError, nearest
from docrecall.show import printable
from docrecall.sources.mapping import Source, TableMap, needed_names
from docrecall.sources.table import FAULT, LINE, column_fault, fault_bit
from docrecall.sources.values import FALSE, MARK, TRUE, read_values, whole_number
from docrecall.tables import TableSpec, unit_key


@dataclass(frozen=True)
class Applied:
    """rows: the known columns, FAULT, and LINE where there are lines. asked: the units of empty lists, by their key."""

    rows: pl.DataFrame
    asked: pl.DataFrame | None = None


@dataclass
class _Columns:
    """Columns that were found: target -> values. texts: those that are text only because the format has no types."""

    values: dict[str, pl.Expr] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)


def apply(raw: pl.DataFrame, spec: TableSpec, tmap: TableMap, *, text: bool, marked: bool = False) -> Applied:
    """Bring rows into the columns of a table.

    raw: the caller's columns, and LINE and FAULT where a reader made them. text: whether its values are text for want
    of types; they are then read as what their column holds, and what cannot be read is null with a fault. Values that
    have a type keep it. marked: whether texts may begin with MARK. Raises DataError for a mapping that names a column
    that is not there.
    """
    if FAULT not in raw.columns:
        raw = raw.with_columns(pl.lit(0, pl.Int64).alias(FAULT))
    flat = _flat(raw, spec, tmap)
    lists = [c for c, t in flat.schema.items() if isinstance(t, pl.List)]
    if not lists:
        return Applied(_known(flat, spec, tmap, text=text, marked=marked))
    unfolded, empty = _unfold(flat, lists, spec, tmap)
    rows, asked = (_known(part, spec, tmap, text=text, marked=marked) for part in (unfolded, empty))
    # A list without elements is a unit without hits, if it can be told whose.
    named = (pl.col(FAULT) == 0) & (pl.col("query_id").is_not_null() if "query_id" in asked.columns else False)
    rows = pl.concat([rows, asked.filter(~named)])
    asked = asked.filter(named).select(unit_key(asked.columns))
    return Applied(rows, asked if spec.name == "hits" and asked.height else None)


def _flat(raw: pl.DataFrame, spec: TableSpec, tmap: TableMap) -> pl.DataFrame:
    """The columns and fields that are read, each under the name that the mapping has for it."""
    groups = {group for split in tmap.splits for group in split.groups}
    asked = {n: f"{spec.name}.{c}" for c, s in tmap.columns if s.how != "value" for n in s.names if n not in groups}
    asked |= {split.column: f"a pattern of {spec.name}" for split in tmap.splits}
    for name, where in asked.items():
        source_expr(name, raw.schema, where)  # which says it when there is none
    names = dict.fromkeys([*needed_names(spec, tmap), *(resolve(raw.schema, spec, tmap) if spec.slices else ())])
    found = {name: _path(name, raw.schema) for name in names}
    flat = raw.select(
        FAULT,
        *([LINE] if LINE in raw.columns else []),
        *(expr.alias(name) for name, expr in found.items() if expr is not None),
    )
    return flat.with_columns(pl.col(c).arr.to_list() for c, t in flat.schema.items() if isinstance(t, pl.Array))


def _known(flat: pl.DataFrame, spec: TableSpec, tmap: TableMap, *, text: bool, marked: bool) -> pl.DataFrame:
    """The columns of the table, made of columns without lists."""
    flat, groups = _split(flat, tmap)
    found = _find(flat, spec, tmap, groups, text=text)
    rows = flat.select(FAULT, *([LINE] if LINE in flat.columns else []), *found.values.values())
    return _typed(rows, spec, found.texts, marked=marked)


def is_lazy(tmap: TableMap, schema: Mapping[str, pl.DataType]) -> bool:
    """Whether a mapping of typed columns needs no look at the rows: no pattern, no numbers from text, no lists."""
    if tmap.splits or any(s.how in ("whole", "sum") for _, s in tmap.columns):
        return False
    return not any(isinstance(t, pl.List | pl.Array) for t in schema.values())


def wanted(schema: Mapping[str, pl.DataType], spec: TableSpec, tmap: TableMap) -> dict[str, pl.Expr]:
    """The columns of a table as expressions over the caller's, for mappings that need no look at rows."""
    out: dict[str, pl.Expr] = {}
    for column, source in resolve(schema, spec, tmap).items():
        out[column] = _plain(source, schema, spec, column)
    return out


def _plain(source: Source, schema: Mapping[str, pl.DataType], spec: TableSpec, column: str) -> pl.Expr:
    """The values of a column that need no look at rows: a column, whole numbers as text, or a constant of its kind."""
    where = f"{spec.name}.{column}"
    if source.how == "value":
        value, bad = read_values(pl.Series([source.names[0]]), spec.columns.get(column, "text"), marked=False)
        if bad is not None and bad.any():
            raise UsageError(f"{where} cannot be {printable(source.names[0])!r}.")
        return pl.lit(value[0], value.dtype).alias(column)
    expr = source_expr(source.names[0], schema, where)
    if source.how == "not":
        return _opposite(expr, schema, spec, column).alias(column)
    return (_as_text(expr, schema, where) if source.how == "text" else expr).alias(column)


def resolve(schema: Mapping[str, pl.DataType], spec: TableSpec, tmap: TableMap) -> dict[str, Source]:
    """What feeds each column: the mapping, else the column of that name; for slices, any other column too."""
    mapped = dict(tmap.columns)
    out = {c: mapped.get(c, Source("column", (c,))) for c in spec.columns if c in mapped or c in schema}
    out |= {c: s for c, s in mapped.items() if c not in out}
    if spec.slices:
        used = {name.split(".")[0] for source in out.values() if source.how != "value" for name in source.names}
        plain = [c for c, t in schema.items() if not t.is_nested() and t != pl.Binary and not c.startswith("__")]
        out |= {c: Source("column", (c,)) for c in plain if c not in out and c not in used}
    return out


def source_expr(name: str, names: Mapping[str, pl.DataType], where: str) -> pl.Expr:
    """The values of a column, or of a field inside one. DataError when it is absent."""
    found = _path(name, names)
    if found is None:
        raise DataError(missing_source(where, name, list(names)))
    return found


def missing_source(where: str, name: str, names: list[str]) -> str:
    """The message for a mapping that names what is not there."""
    theirs = [n for n in names if not n.startswith("__")]
    have = ", ".join(printable(n) for n in theirs[:40]) or "none"
    return f"{where} is mapped to {printable(name)!r}, which is not there.{nearest(name, theirs)} The columns: {have}."


def _path(name: str, fields: Mapping[str, pl.DataType], get: Callable[[str], pl.Expr] = pl.col) -> pl.Expr | None:
    """A column by its name, or by the way through structs and lists of structs (`meta.source`)."""
    if name in fields:
        return get(name)
    for cut in (i for i, c in enumerate(name) if c == "." and name[:i] in fields):
        found = _step(get(name[:cut]), fields[name[:cut]], name[cut + 1 :])
        if found is not None:
            return found
    return None


def _step(inside: pl.Expr, dtype: pl.DataType, name: str) -> pl.Expr | None:
    if isinstance(dtype, pl.Array):
        return _step(inside.arr.to_list(), pl.List(dtype.inner), name)
    if isinstance(dtype, pl.List):
        element = _step(pl.element(), dtype.inner, name)  # type: ignore[arg-type]
        return None if element is None else inside.list.eval(element)
    if isinstance(dtype, pl.Struct):
        return _path(name, {f.name: f.dtype for f in dtype.fields}, inside.struct.field)  # type: ignore[misc]
    return None


def _split(raw: pl.DataFrame, tmap: TableMap) -> tuple[pl.DataFrame, list[str]]:
    """Add the groups of each pattern as columns; rows that it does not match have the fault `no_match`."""
    groups: list[str] = []
    for split in tmap.splits:
        column = raw[split.column]
        if column.dtype.is_integer() or isinstance(column.dtype, pl.Categorical | pl.Enum | pl.Null):
            column = column.cast(pl.String)
        if column.dtype != pl.String:
            raise DataError(
                f"the pattern for {printable(split.column)!r} needs text, and the column is {column.dtype.base_type()}."
            )
        names = split.groups
        parts = column.str.extract_groups(split.anchored).struct.unnest().select(names)
        # A group may be optional, so that it is the whole that tells whether the pattern matched.
        missed = column.is_not_null() & ~column.str.contains(split.anchored).fill_null(False)
        fault = pl.col(FAULT) | pl.when(missed).then(fault_bit("no_match")).otherwise(0)
        raw = raw.with_columns(fault, *parts.get_columns())
        groups += names
    return raw, groups


def _find(raw: pl.DataFrame, spec: TableSpec, tmap: TableMap, groups: list[str], *, text: bool) -> _Columns:
    found = _Columns()
    for column, source in resolve(raw.schema, spec, tmap).items():
        if source.how in ("whole", "sum"):
            found.values[column] = _numbers(raw, spec, column, source)
            continue
        found.values[column] = _plain(source, raw.schema, spec, column)
        if source.how != "value" and (text or source.names[0] in groups):
            found.texts.add(column)
    return found


def _opposite(expr: pl.Expr, schema: Mapping[str, pl.DataType], spec: TableSpec, column: str) -> pl.Expr:
    """The other way round of a flag; of a text that is none nothing is changed, so that it is told as it stands."""
    where = f"{spec.name}.{column}"
    if spec.columns.get(column) != "flag":
        raise UsageError(f"{where} is no flag: `not:` is for columns that are true or false.")
    dtype = pl.LazyFrame(schema=schema).select(expr.alias("t")).collect_schema()["t"]
    if dtype in (pl.Boolean, pl.Null):
        return ~expr.cast(pl.Boolean)
    if dtype != pl.String:
        raise DataError(f"{where} is mapped to the opposite of a column that is {dtype.base_type()}; flags can be.")
    word = expr.str.strip_prefix(MARK)
    return pl.when(word.is_in(TRUE)).then(pl.lit("false")).when(word.is_in(FALSE)).then(pl.lit("true")).otherwise(expr)


def _as_text(expr: pl.Expr, schema: Mapping[str, pl.DataType], where: str) -> pl.Expr:
    dtype = pl.LazyFrame(schema=schema).select(expr.alias("t")).collect_schema()["t"]
    inner = dtype.inner if isinstance(dtype, pl.List) else dtype
    if not (inner == pl.String or inner.is_integer() or inner == pl.Null):
        raise DataError(f"{where} is mapped to a column as text, which is {dtype.base_type()}; whole numbers can be.")
    return expr.cast(pl.List(pl.String) if isinstance(dtype, pl.List) else pl.String)


def _numbers(raw: pl.DataFrame, spec: TableSpec, column: str, source: Source) -> pl.Expr:
    """Whole numbers from text or floats, added up; rows in which one is none have the fault of the column."""
    for name in source.names:
        dtype = raw.schema[name]
        if not (dtype.is_numeric() or dtype in (pl.String, pl.Null)):
            raise DataError(
                f"{spec.name}.{column} is mapped to whole numbers in {printable(name)!r}, which is "
                f"{dtype.base_type()}; text and numbers can be."
            )
    parts = [whole_number(raw[name]) for name in source.names]
    wide = parts[0][0].cast(pl.Int128)  # a sum in 64 bits would wrap around in silence
    for number, _ in parts[1:]:
        wide = wide + number.cast(pl.Int128)
    total = wide.cast(pl.Int64, strict=False)
    for wrong in [bad for _, bad in parts if bad is not None] + [wide.is_not_null() & total.is_null()]:
        if column in spec.columns:
            bit = column_fault(spec, column)[1]
            raw.replace_column(raw.columns.index(FAULT), raw[FAULT] | wrong.cast(pl.Int64) * bit)
    return pl.lit(total).alias(column)


def _unfold(flat: pl.DataFrame, lists: list[str], spec: TableSpec, tmap: TableMap) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One row per element of parallel lists, and the rows whose lists are empty. In hits the positions are the ranks.

    Rows whose leading list, that of the documents, is null, or whose lists differ in length, stay one row, without
    values, with a fault.
    """
    of_doc = tmap.source("doc_id")
    leads = [*(of_doc.names if of_doc else ("doc_id",)), *(s.column for s in tmap.splits if "doc_id" in s.groups)]
    lead = next((name for name in leads if name in lists), lists[0])
    size = pl.col(lead).list.len()
    fault = (
        pl.when(pl.col(lead).is_null())
        .then(fault_bit("list_null"))
        .when(pl.any_horizontal(pl.col(c).list.len().ne_missing(size) for c in lists))
        .then(fault_bit("list_lengths"))
        .otherwise(0)
    )
    flat = flat.with_columns(fault.alias("__list"))
    whole = pl.col("__list") == 0
    unfolded = flat.filter(whole, size > 0)
    if spec.name == "hits" and "rank" not in flat.columns and tmap.source("rank") is None:
        unfolded = unfolded.with_columns(pl.int_ranges(1, size.cast(pl.Int64) + 1, dtype=pl.Int64).alias("rank"))
        lists = [*lists, "rank"]
    # Every list has an element here, so that the choice what an empty one becomes is never made.
    unfolded = unfolded.explode(lists, empty_as_null=False)
    nothing = [pl.lit(None, unfolded.schema[c]).alias(c) for c in lists]
    broken = flat.filter(~whole).with_columns(pl.col(FAULT) | pl.col("__list"), *nothing)
    empty = flat.filter(whole, size == 0).with_columns(nothing)
    rows = pl.concat([unfolded, broken.select(unfolded.columns)])
    return rows.drop("__list"), empty.select(unfolded.columns).drop("__list")


def _typed(rows: pl.DataFrame, spec: TableSpec, texts: set[str], *, marked: bool) -> pl.DataFrame:
    """Read text as what its column holds. What cannot be read is null, and the row has the fault of its column."""
    columns, faults = [], []
    for column in rows.columns:
        kind = spec.columns.get(column)
        if kind is None or column not in texts or rows.schema[column] != pl.String:
            columns.append(rows[column])
            continue
        value, bad = read_values(rows[column], kind, marked=marked)
        columns.append(value.alias(column))
        if bad is not None and bad.any():
            faults.append(bad.cast(pl.Int64) * column_fault(spec, column)[1])
    out = pl.DataFrame(columns)
    for fault in faults:
        out = out.with_columns(pl.col(FAULT) | fault)
    return out
