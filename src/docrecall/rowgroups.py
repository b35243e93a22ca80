"""Parquet files that grow by whole row groups, so that each value is encoded once and a killed run can go on.

Row groups have one size, whatever the sizes of the frames that are added: bytes do not depend on batches. Each is
encoded by itself, as the only one of a file, for the place where it will stand; the footer of all is put together from
theirs at the end.
"""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self

import polars as pl

MOST = 1 << 17  # rows of a row group: 90 MB of 84 measures, and a twentieth more bytes than in twice as many
_MAGIC = b"PAR1"
_TAIL = 8  # bytes behind a footer: its length, and the magic again
_NOTHING = memoryview(bytes(1 << 20))


class Group(NamedTuple):
    """A row group as it stands in each file: where it ends, the checksum of its bytes, and the footer it came with."""

    rows: int
    ends: dict[str, int]
    sums: dict[str, int]
    footers: dict[str, bytes]

    def dumps(self) -> str:
        """Text for `loads`."""
        footers = {name: base64.b64encode(footer).decode("ascii") for name, footer in self.footers.items()}
        return json.dumps(self._asdict() | {"footers": footers})

    @classmethod
    def loads(cls, text: str) -> Self:
        """Read what `dumps` gave. Raises ValueError, KeyError, TypeError or AttributeError for anything else."""
        found = json.loads(text)
        footers = {name: base64.b64decode(footer) for name, footer in found["footers"].items()}
        return cls(int(found["rows"]), found["ends"], found["sums"], footers)


class RowGroups:
    """Some files in a folder, each with a row for the same units.

    One row group is encoded while the rows of the next one are brought together. As each is written, a record of it is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        self.groups: list[Group] = []
        self._waiting: dict[str, pl.DataFrame] = {}
        self._thread = ThreadPoolExecutor(1)
        self._going: Future[Group] | None = None

    @property
    def rows(self) -> int:
        """How many rows are written."""
        return sum(group.rows for group in self.groups)

    def written(self) -> list[Group]:
        """The row groups that an earlier run wrote here, up to the first that is not whole."""
        found: list[Group] = []
        while (record := self._record(len(found))).exists():
            try:
                group = Group.loads(record.read_text(encoding="utf-8"))
                whole = all(zlib.crc32(data) == group.sums[name] for name, data in self._data(found, group))
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                break  # names are there and contents are not: the machine stopped, not only the run
            if not whole:
                break
            found.append(group)
        return found

    def take_over(self, groups: Sequence[Group]) -> None:
        """Go on after some row groups that are written, with copies: the files may be those of finished results too."""
        ends = groups[-1].ends if groups else {}
        kept = {*ends, *(self._record(number).name for number in range(len(groups)))}
        for left in self._folder.iterdir():
            if left.name not in kept:
                left.unlink()
        for name, end in ends.items():
            aside = self._folder / "next"
            shutil.copyfile(self._folder / name, aside)
            os.truncate(aside, end)
            aside.rename(self._folder / name)
        self.groups = list(groups)

    def add(self, frames: Mapping[str, pl.DataFrame]) -> None:
        """Add rows. frames: file -> its columns of them."""
        waiting = self._waiting
        self._waiting = {name: pl.concat([waiting[name], rows]) if waiting else rows for name, rows in frames.items()}
        while self._height() >= MOST:
            self._put(MOST)

    def flush(self) -> None:
        """Write the rows that are left as a last, smaller row group; without any rows an empty one."""
        self._wait()
        if self._height() or not self.groups:
            self._put(self._height())
            self._wait()

    def close(self) -> dict[str, Path]:
        """Write the rows that are left, and the footers. Returns where the files are."""
        self.flush()
        self._thread.shutdown()
        paths = {name: self._folder / name for name in self.groups[0].ends}
        for name, path in paths.items():
            with path.open("r+b") as file:
                file.seek(self.groups[-1].ends[name])
                file.write(_footer([group.footers[name] for group in self.groups]))
        return paths

    def stop(self) -> None:
        """Give up."""
        self._thread.shutdown(cancel_futures=True)

    def _height(self) -> int:
        return next((rows.height for rows in self._waiting.values()), 0)

    def _put(self, n: int) -> None:
        self._wait()
        rows = {name: frame.head(n).rechunk() for name, frame in self._waiting.items()}
        self._waiting = {name: frame.slice(n) for name, frame in self._waiting.items()}
        self._going = self._thread.submit(self._write, rows, len(self.groups))

    def _wait(self) -> None:
        if self._going is not None:
            going, self._going = self._going, None
            self.groups.append(going.result())

    def _write(self, frames: dict[str, pl.DataFrame], number: int) -> Group:
        n, ends, sums, footers = 0, {}, {}, {}
        for name, rows in frames.items():
            begin = self.groups[-1].ends[name] if number else len(_MAGIC)
            data, footers[name] = _encoded(rows, begin)
            with (self._folder / name).open("r+b" if number else "wb") as file:
                file.write(_MAGIC)
                file.seek(begin)
                file.write(data)
            n, ends[name], sums[name] = rows.height, begin + len(data), zlib.crc32(data)
        group = Group(n, ends, sums, footers)
        aside = self._folder / "next"
        aside.write_text(group.dumps(), encoding="utf-8")
        aside.rename(self._record(number))
        return group

    def _data(self, before: Sequence[Group], group: Group) -> list[tuple[str, bytes]]:
        """The bytes of a row group in each file."""
        found = []
        for name, end in group.ends.items():
            begin = before[-1].ends[name] if before else len(_MAGIC)
            with (self._folder / name).open("rb") as file:
                file.seek(begin)
                found.append((name, file.read(end - begin)))
        return found

    def _record(self, number: int) -> Path:
        return self._folder / f"{number:06}.json"


class _Further(io.BytesIO):
    """What is written, but for what only takes a writer further on."""

    heard = True

    def write(self, data: Any) -> int:
        return super().write(data) if self.heard else len(data)


def _encoded(rows: pl.DataFrame, begin: int) -> tuple[bytes, bytes]:
    """A row group for a place in a file: its bytes, and the footer that a file with nothing else would have.

    A writer notes places in the file that it writes, so it is made to believe that all before this one is written.
    """
    import pyarrow as pa  # noqa: PLC0415 - a third of a second that runs without `out` need not pay
    import pyarrow.parquet as pq  # noqa: PLC0415

    arrow, whole = rows.to_arrow(), _Further()
    file = pa.PythonFile(whole, "w")
    with pq.ParquetWriter(file, arrow.schema, compression="zstd", write_page_checksum=True) as writer:
        whole.heard = False
        for first in range(len(_MAGIC), begin, len(_NOTHING)):
            file.write(_NOTHING[: begin - first])
        whole.heard = True
        writer.write_table(arrow, row_group_size=max(rows.height, 1))
    content = whole.getvalue()
    end = len(content) - _TAIL - int.from_bytes(content[-_TAIL : -len(_MAGIC)], "little")
    return content[len(_MAGIC) : end], content[end:]


def _footer(footers: Sequence[bytes]) -> bytes:
    """The footer of a file that has the row groups of all of these."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    first, *others = [pq.read_metadata(io.BytesIO(_MAGIC + footer)) for footer in footers]
    for other in others:
        first.append_row_groups(other)
    whole = io.BytesIO()
    first.write_metadata_file(whole)
    return whole.getvalue()[len(_MAGIC) :]
