"""Text files -> blocks of whole lines, numbered, unpacked and bounded."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, cast

import polars as pl

from docrecall.errors import InputError
from docrecall.show import printable
from docrecall.sources.files import FileRef
from docrecall.sources.table import FAULT, LINE, fault_bit

BLOCK_BYTES = 16 << 20
LONGEST_LINE = 64 << 20
MOST_EXPANSION = 200  # logs shrink by 5 to 50; what grows more than this was made to fill the memory
_FREE_EXPANSION = 16 << 20
_BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
_GZIP = b"\x1f\x8b"
TEXT = "__text"


class Block(NamedTuple):
    """Whole lines of a file; `first` is the number of the first of them, from 1."""

    first: int
    data: bytes


def blocks(file: FileRef, size: int | None = None, goes_on: Callable[[bytes], bool] | None = None) -> Iterator[Block]:
    """Cut a file into blocks of about `size` bytes, each ending with a line.

    A byte order mark is taken off, gzip is unpacked (any file that begins like one, and all that end in .gz). goes_on:
    whether a block must be longer, because a record of it does not end there. Raises InputError for a file that is
    empty, is not what its name says, unpacks to more than 200 times its size, or holds a line beyond 64 MiB.
    """
    size = size or BLOCK_BYTES
    with file.open() as raw:
        stream = _unpacked(file, raw)
        rest, number = _start(file, stream), 1
        while True:
            fresh = stream.read(size)
            data = rest + fresh
            cut = data.rfind(b"\n") + 1 if fresh else len(data)
            if fresh and goes_on and len(data) < LONGEST_LINE and goes_on(data[:cut]):
                cut = 0
            if not cut and len(data) > LONGEST_LINE:
                raise InputError(
                    f"{printable(file.path)}, line {number}: no line ends within {LONGEST_LINE >> 20} MiB. "
                    "Is this a text file with one record per line?"
                )
            if not fresh and number == 1 and b"\r" in data and b"\n" not in data:
                raise InputError(
                    f"{printable(file.path)}: its lines end with a carriage return alone, or it is one long line. "
                    "LF and CRLF are read; convert it first."
                )
            if cut:
                block, rest = data[:cut], data[cut:]
                yield Block(number, block)
                number += block.count(b"\n")
            else:
                rest = data
            if not fresh:
                return


def first_lines(file: FileRef, n_bytes: int = 1 << 20) -> bytes:
    """The beginning of a file, cut after a line; longer when no line ends before."""
    for block in blocks(file, n_bytes):
        return block.data
    return b""


def looks_packed(data: bytes) -> bool:
    """Whether the engine would unpack a block: it does so unasked with anything that begins like gzip, zlib or zstd.

    Text can begin so: an x and an Arabic letter are the first bytes of zlib.
    """
    return data.startswith((_GZIP, b"x\x01", b"x^", b"x\x9c", b"x\xda", b"\x28\xb5\x2f\xfd"))


def text_lines(block: Block) -> pl.DataFrame:
    """The lines of a block: LINE, TEXT without its end (LF or CRLF), and FAULT where one is not UTF-8."""
    try:
        if looks_packed(block.data):
            frame = pl.read_lines(io.BytesIO(b"\n" + block.data), name=TEXT).slice(1)
        else:
            frame = pl.read_lines(io.BytesIO(block.data), name=TEXT) if block.data else pl.DataFrame({TEXT: [""]})
        return frame.select(pl.int_range(block.first, block.first + pl.len(), dtype=pl.Int64).alias(LINE), TEXT)
    except pl.exceptions.ComputeError:
        return _with_broken_lines(block)


def _with_broken_lines(block: Block) -> pl.DataFrame:
    lines = block.data.removesuffix(b"\n").split(b"\n")
    texts, faults = [], []
    for line in lines:
        try:
            texts.append(line.removesuffix(b"\r").decode("utf-8"))
            faults.append(0)
        except UnicodeDecodeError:
            texts.append(line.removesuffix(b"\r").decode("utf-8", "backslashreplace"))
            faults.append(fault_bit("line_encoding"))
    numbers = pl.int_range(block.first, block.first + len(lines), dtype=pl.Int64, eager=True)
    return pl.DataFrame({LINE: numbers, TEXT: texts, FAULT: pl.Series(faults, dtype=pl.Int64)})


def _start(file: FileRef, stream: BinaryIO) -> bytes:
    name = printable(file.path)
    start = stream.read(len(_BOM))
    if not start:
        raise InputError(f"{name} is empty (0 bytes{' after unpacking' if file.size else ''}). A log was expected.")
    if start[:2] in _WIDE_BOMS:
        raise InputError(f"{name} is UTF-16 text; UTF-8 is read. Convert it (iconv -f UTF-16 -t UTF-8).")
    if start[:2] == _GZIP:
        raise InputError(f"{name} is packed twice. Unpack it once first.")
    if start == b"PAR":
        raise InputError(f"{name} is a Parquet file, not text. Give it a name that ends in .parquet, or read=parquet.")
    return start.removeprefix(_BOM)


def _unpacked(file: FileRef, raw: BinaryIO) -> BinaryIO:
    packed = raw.read(len(_GZIP)) == _GZIP
    raw.seek(0)
    if packed:
        return cast(BinaryIO, _Gunzip(file, raw))
    if file.path.lower().endswith(".gz"):
        raise InputError(f"{printable(file.path)} is not a gzip file, though its name ends in .gz.")
    return raw


class _Gunzip:
    """Reads gzip, and stops where it grows beyond its limit."""

    def __init__(self, file: FileRef, raw: BinaryIO) -> None:
        self._file, self._stream, self._done = file, gzip.GzipFile(fileobj=raw), 0
        self._limit = file.size * MOST_EXPANSION + _FREE_EXPANSION

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes."""
        name = printable(self._file.path)
        try:
            data = self._stream.read(size)
        except (OSError, EOFError, zlib.error):  # BadGzipFile is an OSError
            raise InputError(
                f"{name} is damaged or cut short: its gzip data cannot be unpacked to the end. Copy it again."
            ) from None
        self._done += len(data)
        if self._done > self._limit:
            raise InputError(
                f"{name} unpacks to more than {MOST_EXPANSION} times its size ({self._limit >> 20} MiB and more). "
                "If it is meant to, unpack it first and give the plain file."
            )
        return data
