"""The works of `lookups.py`; see `peers.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from log import CUTS, LogFiles
from lookups import CHUNKS, tables
from peers import Work, docrecall, scan


def bare(files: LogFiles) -> Work:
    """Decode and hash what the log has of the three columns that an answer needs."""
    return scan(files, ("query_id", "rank", "chunk_id" if files.folder.name == CHUNKS else "doc_id"))


def ours(unit: str, files: LogFiles) -> Work:
    """Docrecall, with the table that the log needs."""
    return docrecall(files, [f"doc_recall@{k}{unit}" for k in CUTS], **tables(files.folder))


LOOKUP_PEERS: dict[str, Callable[[LogFiles], Work]] = {
    "lookup_scan": bare,
    "lookup_chunks": partial(ours, ""),
    "lookup_docs": partial(ours, "docs"),
}
