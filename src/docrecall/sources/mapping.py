"""Which of the caller's columns holds what: a value that is parsed from arguments, a dict or TOML, and printed back.

hits.doc_id = source                 a column of the caller's table
hits.doc_id = meta.source            a field inside a column
hits.run_id = value:bm25             the same for every row
qrels.query_id = text:qid            whole numbers as text
qrels.relevance = whole:grade        whole numbers that are held as text or as floats
evidence.start = sum:offset,from     the sum of columns or groups
qrels = corpus-id~(?P<doc_id>.+)-.*  named groups of a pattern that an id must match as a whole
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl

from docrecall.errors import InputError, UsageError, nearest
from docrecall.show import printable
from docrecall.sources.formats import Read
from docrecall.tables import TABLES, TableSpec

How = Literal["column", "value", "text", "whole", "sum", "not"]


@dataclass(frozen=True)
class Source:
    """Where the values of one column come from: `how`, and the columns (or the constant) that it is applied to."""

    how: How
    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Source:
        """Read `NAME` or `HOW:NAME`."""
        how, colon, rest = text.partition(":")
        if not colon or how not in get_args(How):
            return cls("column", (text,))
        names = tuple(name.strip() for name in rest.split(",")) if how == "sum" else (rest,)
        if "" in names:
            raise UsageError(f"{text!r} names no {'value' if how == 'value' else 'column'} after the colon.")
        return cls(how, names)  # type: ignore[arg-type]

    def __str__(self) -> str:
        name = ",".join(self.names)
        plain = self.how == "column" and Source.parse(name) == self
        return name if plain else f"{self.how}:{name}"


@dataclass(frozen=True)
class Split:
    """A pattern whose named groups become columns. It must match the whole of the column's values."""

    column: str
    pattern: str

    @property
    def groups(self) -> list[str]:
        """The names of the groups; UsageError when the pattern cannot be used."""
        try:
            # By itself too: a pattern that only the anchors make whole, as `a)|(?P<doc_id>b`, would match parts of ids.
            _ = pl.select(pl.lit("").str.extract_groups(self.pattern))
            fields = pl.select(pl.lit("").str.extract_groups(self.anchored).alias("g"))["g"].struct.fields
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            fields = []
        named = [name for name in fields if not name.isdigit()]
        if not named:
            raise UsageError(
                f"the pattern for {self.column!r} has no named group that can be read, as in (?P<doc_id>.+)-(?P<start>"
                r"\d+). Patterns are those of Rust's regex: no look-around, no back references."
            )
        return named

    @property
    def anchored(self) -> str:
        """The pattern, for whole values."""
        return f"^(?s:{self.pattern})$"


@dataclass(frozen=True)
class TableMap:
    """How one table is read: its format if declared, the columns that are named otherwise, the ids that are split."""

    read: Read | None = None
    columns: tuple[tuple[str, Source], ...] = ()
    splits: tuple[Split, ...] = ()

    def source(self, column: str) -> Source | None:
        """What feeds a column, where that was said."""
        return dict(self.columns).get(column)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is renamed or made."""
        return not self.columns and not self.splits


Mappings = Mapping[str, TableMap]


def parse_mapping(given: Any, read: Any = None) -> dict[str, TableMap]:
    """Read what `map=`/`--map` and `read=`/`--read` say. UsageError for what has no meaning.

    given: None, a text `TABLE.COLUMN=SOURCE` or `TABLE=COLUMN~PATTERN`, the path of a TOML file, a list of these, or a
    dict `TABLE.COLUMN` -> source. read: None, `FORMAT` (all tables), `TABLE=FORMAT`, a list of these, or a dict
    table -> format. Later entries win.
    """
    maps: dict[str, TableMap] = {}
    for table, key, value in _entries(given):
        _add(maps, table, key, value)
    for one, text in _reads(read):
        for name in [one] if one else list(TABLES):
            maps[name] = replace(maps.get(name, TableMap()), read=Read.parse(text))
    for name, found in maps.items():
        _refuse_unused_groups(TABLES[name], found)
    return maps


def _refuse_unused_groups(spec: TableSpec, found: TableMap) -> None:
    """A group that nothing takes is a slip of the pen."""
    taken = {n for _, source in found.columns if source.how != "value" for n in source.names} | spec.columns.keys()
    for group in (group for split in found.splits for group in split.groups):
        if group not in taken and not spec.slices:
            raise UsageError(
                f"the group {group!r} is no column of {spec.name}, and no mapping takes it."
                f"{nearest(group, spec.columns)} Its columns are {', '.join(spec.columns)}."
            )


def _entries(given: Any) -> Iterable[tuple[str, str | None, str | Split]]:
    """Yield (table, column or None for a split, source or pattern; a split where the text of one was taken apart)."""
    if given is None:
        return
    if isinstance(given, Mapping):
        given = [f"{target}={source}" for target, source in given.items()]
    if isinstance(given, str | Path):
        given = [given]
    if not isinstance(given, Sequence):
        raise UsageError(f"map is a {type(given).__name__}; expected TABLE.COLUMN=SOURCE, a dict or a TOML file.")
    for entry in map(str, given):
        target, equals, source = entry.partition("=")
        if not equals or (target not in TABLES and "." not in target):
            if not entry.lower().endswith(".toml"):
                raise UsageError(
                    f"{printable(entry)!r} is no mapping. Expected TABLE.COLUMN=SOURCE (hits.doc_id=source), "
                    "TABLE=COLUMN~PATTERN, or the path of a .toml file."
                )
            yield from _from_toml(Path(entry))
        elif target in TABLES:
            yield target, None, source
        else:
            table, _, column = target.partition(".")
            yield table, column, source


def _reads(read: Any) -> Iterable[tuple[str | None, str]]:
    if read is None:
        return
    if isinstance(read, Mapping):
        read = [f"{table}={how}" for table, how in read.items()]
    if isinstance(read, str):
        read = [read]
    if not isinstance(read, Sequence):
        raise UsageError(f"read is a {type(read).__name__}; expected FORMAT, TABLE=FORMAT, a list of these or a dict.")
    for entry in map(str, read):
        table, equals, how = entry.rpartition("=")
        if equals and table not in TABLES:
            raise UsageError(f"{printable(entry)!r}: {_unknown_table(table)}")
        yield table or None, how


def _add(maps: dict[str, TableMap], table: str, column: str | None, text: str | Split) -> None:
    spec = TABLES.get(table)
    if spec is None:
        raise UsageError(_unknown_table(table))
    old = maps.get(table, TableMap())
    if column is None or isinstance(text, Split):
        split = text if isinstance(text, Split) else _split_of(table, text)
        _ = split.groups
        maps[table] = replace(old, splits=(*old.splits, split))
        return
    if column == "read":
        maps[table] = replace(old, read=Read.parse(text))
        return
    if column not in spec.columns and not spec.slices:
        raise UsageError(
            f"{table} has no column {column!r} to map to.{nearest(column, spec.columns)} "
            f"Its columns are {', '.join(spec.columns)}."
        )
    if not text:
        raise UsageError(f"{table}.{column}= names no source. Expected a column, or value:TEXT for a constant.")
    others = tuple((name, source) for name, source in old.columns if name != column)
    maps[table] = replace(old, columns=(*others, (column, Source.parse(text))))


def _split_of(table: str, text: str) -> Split:
    name, tilde, pattern = text.partition("~")
    if not tilde or not name or not pattern:
        raise UsageError(f"{table}={printable(text)} is no split. Expected {table}=COLUMN~PATTERN.")
    return Split(name, pattern)


def _unknown_table(table: str) -> str:
    return f"there is no table {printable(table)!r}.{nearest(table, TABLES)} Tables are {', '.join(TABLES)}."


def _from_toml(path: Path) -> Iterable[tuple[str, str | None, str | Split]]:
    try:
        content = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise InputError(f"{printable(path)} cannot be read: {error.strerror or type(error).__name__}.") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError tells line and column
        detail = f" ({error})" if isinstance(error, tomllib.TOMLDecodeError) else ""
        raise UsageError(f"{printable(path)} is not a TOML file{printable(detail)}.") from None
    yield from _of_content(content, printable(path))


def from_toml(text: str) -> dict[str, TableMap]:
    """Read what `to_toml` printed."""
    maps: dict[str, TableMap] = {}
    for entry in _of_content(tomllib.loads(text), "the mapping"):
        _add(maps, *entry)
    return maps


def _of_content(content: Mapping[str, Any], source: str) -> Iterable[tuple[str, str | None, str | Split]]:
    for table, body in content.items():
        where = f"{source}, [{printable(table)}]"
        if table not in TABLES:
            raise UsageError(f"{where}: {_unknown_table(table)}")
        if not isinstance(body, dict):
            raise UsageError(f'{where} is not a table of TOML; expected lines like doc_id = "source" below it.')
        for key, value in body.items():
            if key == "split":
                for split in value if isinstance(value, list) else [value]:
                    if not isinstance(split, dict) or set(split) != {"column", "pattern"}:
                        raise UsageError(f"{where}: split has a column and a pattern, and nothing else.")
                    # Not as text again: a name may have a ~ in it.
                    yield table, None, Split(str(split["column"]), str(split["pattern"]))
            elif isinstance(value, str):
                yield table, key, value
            else:
                raise UsageError(f'{where}: {printable(key)} is not a text. A constant is written "value:..".')


def to_toml(maps: Mappings) -> str:
    """Print mappings as the TOML that `parse_mapping` reads back to an equal value."""
    parts = []
    for table, found in maps.items():
        lines = [f"[{table}]"]
        if found.read:
            lines.append(f"read = {_quoted(str(found.read))}")
        lines += [f"{_key(column)} = {_quoted(str(source))}" for column, source in found.columns]
        for split in found.splits:
            lines += ["", f"[[{table}.split]]", f"column = {_quoted(split.column)}"]
            lines.append(f"pattern = {_quoted(split.pattern)}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    if "\\" in text and "'" not in text and text.isprintable():
        return f"'{text}'"  # patterns are easier to read without doubled backslashes
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")  # a TOML basic string, but for DEL


def needed_names(spec: TableSpec, found: TableMap) -> list[str]:
    """The columns of the caller's table that a mapping reads, and those that go by our own names."""
    names = [name for _, source in found.columns if source.how != "value" for name in source.names]
    mapped = {column for column, _ in found.columns}
    names += [column for column in spec.columns if column not in mapped]
    return list(dict.fromkeys([*names, *(split.column for split in found.splits)]))
