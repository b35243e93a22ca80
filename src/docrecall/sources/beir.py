"""BEIR and MTEB: which files of a folder hold a table, and what their columns are called.

A folder has `queries`, `corpus` and one qrels file per split, as JSON lines, TSV or Parquet. Ids are text there, also
where a Parquet mirror holds them as integers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from docrecall.errors import InputError, UsageError
from docrecall.show import printable
from docrecall.sources.formats import of_name
from docrecall.sources.mapping import Source, TableMap
from docrecall.tables import TableSpec

# table -> our column -> where it stands there. All columns but the last ones mark the format.
_COLUMNS = {
    "qrels": {"query_id": "text:query-id", "doc_id": "text:corpus-id", "relevance": "whole:score"},
    "queries": {"query_id": "text:_id"},
    "documents": {"doc_id": "text:_id"},
}
_PLACES = {"qrels": ("qrels", "default", "data"), "queries": ("queries",), "documents": ("corpus",)}


def is_folder(path: str) -> bool:
    """Whether a folder looks like BEIR's: the queries or the corpus beside the qrels."""
    try:
        names = {p.name.split(".")[0] for p in Path(path).iterdir()}
    except OSError:
        return False
    return "qrels" in names and bool(names & {"queries", "corpus"})


def files_of(path: str, spec: TableSpec, split: str | None) -> list[str]:
    """The files of a folder that hold a table. UsageError for a table it has not, or a split that must be chosen."""
    places = _PLACES.get(spec.name)
    if places is None:
        raise UsageError(f"a BEIR folder holds qrels, queries and documents, and no {spec.name}: {printable(path)}.")
    found: list[Path] = []
    for place in places:
        folder = Path(path, place)
        if folder.is_dir():
            found = [p for p in sorted(folder.rglob("*")) if p.is_file() and of_name(str(p))]
        found += [p for p in sorted(Path(path).glob(f"{place}.*")) if of_name(str(p))]
        if found:
            break
    if not found:
        raise InputError(f"no {spec.name} in {printable(path)}; a BEIR folder has them in {' or '.join(places)}.")
    if spec.name != "qrels":
        return [str(p) for p in found]
    splits = sorted({_split(p) for p in found})
    wanted = split or (splits[0] if len(splits) == 1 else None)
    if wanted not in splits:
        raise UsageError(
            f"{printable(path)} has the splits {', '.join(printable(s) for s in splits)}; choose one, as in "
            f"--read qrels=beir:{printable(splits[-1])}."
        )
    return [str(p) for p in found if _split(p) == wanted]


def _split(path: Path) -> str:
    """`test` of test.tsv, test-00000-of-00001.parquet and test/0000.parquet."""
    stem = path.name.split(".")[0]
    return path.parent.name if stem.isdigit() else stem.split("-")[0]


def adapt(tmap: TableMap, spec: TableSpec, names: Collection[str]) -> TableMap:
    """Add BEIR's names to a mapping where a table has them, and neither ours nor a mapping of the caller's."""
    columns = {c: Source.parse(text) for c, text in _COLUMNS.get(spec.name, {}).items()}
    ids = [c for c in columns if c != "relevance"]
    mapped = {c for c, _ in tmap.columns}
    groups = {g for split in tmap.splits for g in split.groups}
    if not ids or not all(columns[c].names[0] in names for c in ids):
        return tmap
    taken = mapped | groups | set(names)
    added = [(c, s) for c, s in columns.items() if c not in taken and s.names[0] in names]
    return replace(tmap, columns=(*tmap.columns, *added))
