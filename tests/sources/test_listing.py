"""Which files a path names, and what is refused before a row is read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import docrecall as dr
from docrecall.sources.files import list_files
from tests.small import MEASURE, codes, hits, qrels, write


def names(*paths: Path | str) -> list[str]:
    """The names of the files that paths stand for."""
    return [Path(file.path).name for file in list_files([str(p) for p in paths]).files]


def test_directory_is_read_to_the_bottom_in_order(tmp_path: Path) -> None:
    """All files below a directory, by name, whatever the case of their suffix."""
    for name in ("b.parquet", "a/c.PARQUET", "a/b/x.pq", "d.parq"):
        write(tmp_path / name, hits())
    assert names(tmp_path) == ["x.pq", "c.PARQUET", "b.parquet", "d.parq"]


def test_hidden_names_are_left_out_and_counted(tmp_path: Path) -> None:
    """Names that start with . or _ are not read, files and folders alike, and a finding says how many."""
    logs = tmp_path / "logs"
    write(logs / "a.parquet", hits())
    for name in ("_SUCCESS", ".tmp.parquet", "_a.parquet", ".staging/y.parquet"):
        write(logs / name, hits(doc_id=["z", "z", "z"]))

    scores = dr.score(logs, qrels(), MEASURE)

    assert codes(scores.findings) == [("files_left_out", "info", "hits", None, 4, 0)]
    assert scores.summary()["mean"].to_list() == [1.0]


@pytest.mark.parametrize("name", ["README.md", "a.parquet.tmp", "part-0.parquet.crc", "hits.zip"])
def test_foreign_file_is_named(name: str, tmp_path: Path) -> None:
    """Any other name in a directory is an error, a left-over temporary file too: it may be half of the data."""
    write(tmp_path / "a.parquet", hits())
    (tmp_path / name).write_text("x")
    with pytest.raises(dr.InputError, match=name):
        dr.score(tmp_path, qrels(), MEASURE)


@pytest.mark.parametrize("hidden", [(), ("_a.parquet",)])
def test_directory_without_data(hidden: tuple[str, ...], tmp_path: Path) -> None:
    """A directory in which nothing is read is an error and not a table without rows."""
    for name in hidden:
        write(tmp_path / name, hits())
    with pytest.raises(dr.InputError, match="no data files in"):
        list_files([str(tmp_path)])


def test_file_that_is_named_needs_no_suffix(tmp_path: Path) -> None:
    """What is named outright is read, whatever its name."""
    write(tmp_path / "_log.2026-11-30", hits())
    assert names(tmp_path / "_log.2026-11-30") == ["_log.2026-11-30"]


def test_glob(tmp_path: Path) -> None:
    """A pattern names files; ** reaches all depths."""
    for name in ("a1.parquet", "a2.parquet", "b1.parquet", "x/a3.parquet"):
        write(tmp_path / name, hits())
    assert names(tmp_path / "a*.parquet") == ["a1.parquet", "a2.parquet"]
    assert names(tmp_path / "[ab]1.parquet") == ["a1.parquet", "b1.parquet"]
    assert names(tmp_path / "**" / "a*.parquet") == ["a1.parquet", "a2.parquet", "a3.parquet"]


def test_glob_leaves_hidden_names_out_too(tmp_path: Path) -> None:
    """A pattern does not reach left-over files; `_SUCCESS` beside the data is no foreign file."""
    for name in ("a.parquet", "_tmp.parquet", "_old/b.parquet", "_SUCCESS"):
        write(tmp_path / name, hits())
    listing = list_files([f"{tmp_path}/*"])
    assert ([Path(f.path).name for f in listing.files], listing.left_out) == (["a.parquet"], 3)
    assert names(tmp_path / "**" / "*.parquet") == ["a.parquet"]


def test_glob_that_spells_a_hidden_name(tmp_path: Path) -> None:
    """Who writes the underscore means it."""
    write(tmp_path / "_a.parquet", hits())
    assert names(tmp_path / "_*.parquet") == ["_a.parquet"]


def test_glob_that_meets_a_foreign_file(tmp_path: Path) -> None:
    """A pattern that is wide enough for a foreign file is told which."""
    write(tmp_path / "a.parquet", hits())
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(dr.InputError, match=r"notes\.txt"):
        list_files([f"{tmp_path}/*"])


def test_brackets_in_a_name(tmp_path: Path) -> None:
    """A directory whose name has brackets is itself, not a pattern; so it is when a pattern follows."""
    write(tmp_path / "logs [2026]" / "a.parquet", hits())
    write(tmp_path / "logs 2" / "b.parquet", hits())
    assert names(tmp_path / "logs [2026]") == ["a.parquet"]
    assert names(tmp_path / "logs [2026]" / "a.parquet") == ["a.parquet"]
    assert names(tmp_path / "logs [2026]" / "*.parquet") == ["a.parquet"]
    assert names(tmp_path / "logs [0-9]" / "*.parquet") == ["b.parquet"]


def test_symbolic_link_that_leads_back(tmp_path: Path) -> None:
    """A link to a folder above is an error, not an endless walk."""
    write(tmp_path / "logs" / "a.parquet", hits())
    (tmp_path / "logs" / "again").symlink_to(tmp_path / "logs")
    with pytest.raises(dr.InputError, match="leads back into itself"):
        list_files([str(tmp_path / "logs")])


def test_symbolic_links_are_followed(tmp_path: Path) -> None:
    """A link to a file or folder elsewhere is read."""
    write(tmp_path / "store" / "a.parquet", hits())
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "month").symlink_to(tmp_path / "store")
    (tmp_path / "logs" / "b.parquet").symlink_to(tmp_path / "store" / "a.parquet")
    assert names(tmp_path / "logs") == ["b.parquet", "a.parquet"]


@pytest.mark.parametrize("target", ["gone.parquet", "loop.parquet"])
def test_link_to_nothing(target: str, tmp_path: Path) -> None:
    """A link that is broken, or is its own target, is named."""
    (tmp_path / "loop.parquet").symlink_to(tmp_path / target)
    for path in (tmp_path, tmp_path / "loop.parquet"):
        with pytest.raises(dr.InputError, match=r"loop\.parquet"):
            list_files([str(path)])


def test_pipe_does_not_hang(tmp_path: Path) -> None:
    """A named pipe is refused before it is opened, which would wait for ever."""
    os.mkfifo(tmp_path / "a.parquet")
    with pytest.raises(dr.InputError, match="not a regular file"):
        list_files([str(tmp_path)])


def test_nul_in_a_path() -> None:
    """A name that no file can have is an InputError as every other name without a file."""
    with pytest.raises(dr.InputError, match="null byte"):
        list_files(["a\0b"])


def tree(folder: Path, parts: dict[str, pl.DataFrame]) -> Path:
    for name, frame in parts.items():
        write(folder / name / "part.parquet", frame)
    return folder


def test_hive_tree_gives_columns(tmp_path: Path) -> None:
    """`run_id=a` above a file is the column run_id; keys that no table knows take no part."""
    logs = tree(
        tmp_path, {"run_id=a/date=2026-11-30": hits(), "run_id=b/date=2026-11-30": hits(doc_id=["x", "y", "b"])}
    )
    expected = dr.score(
        pl.concat([hits(run_id=["a"] * 3), hits(run_id=["b"] * 3, doc_id=["x", "y", "b"])]), qrels(), MEASURE
    )
    assert_frame_equal(dr.score(logs, qrels(), MEASURE).per_query, expected.per_query)


@pytest.mark.parametrize("pattern", ["run_id=*", "run_id=*/*.parquet", "*/part.parquet", "**/*.parquet"])
def test_hive_folders_that_a_pattern_matches(pattern: str, tmp_path: Path) -> None:
    """Folders count below the last one that the path spells out, however the pattern reaches them."""
    tree(tmp_path, {"run_id=a": hits(), "run_id=b": hits()})
    assert dr.score(f"{tmp_path}/{pattern}", qrels(), MEASURE).accounting["run_id"].to_list() == ["a", "b"]


def test_hive_ids_stay_text(tmp_path: Path) -> None:
    """A folder query_id=007 is the id "007", and 7 is another."""
    logs = tree(tmp_path, {f"query_id={q}": hits(query_id=None).head(1) for q in ("007", "7", "2026-11-30")})
    labels = qrels(query_id=["007", "7"], doc_id=["x", "y"])

    scores = dr.score(logs, labels, MEASURE).per_query

    assert scores["query_id"].to_list() == ["007", "2026-11-30", "7"]
    assert scores[MEASURE].to_list() == [1.0, None, 0.0]


def test_hive_values_are_decoded(tmp_path: Path) -> None:
    """Percent-encoded values are read as what they encode."""
    logs = tree(tmp_path, {"run_id=a%2Fb%20%C3%A9": hits()})
    assert dr.score(logs, qrels(), MEASURE).accounting["run_id"].to_list() == ["a/b é"]


def test_hive_value_that_is_no_text(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 would all become the same character, and two runs one."""
    logs = tree(tmp_path, {"run_id=%FF": hits(), "run_id=%FE": hits()})
    with pytest.raises(dr.InputError, match="run_id=%FE is not percent-encoded UTF-8"):
        dr.score(logs, qrels(), MEASURE)


def test_hive_null_partition_is_null(tmp_path: Path) -> None:
    """The null partition's rows have no query_id, which breaks the contract."""
    logs = tree(
        tmp_path,
        {"query_id=q1": hits(query_id=None).head(1), "query_id=__HIVE_DEFAULT_PARTITION__": hits(query_id=None)},
    )
    with pytest.raises(dr.DataError, match=r"hits\.query_id: 3 rows without an id"):
        dr.score(logs, qrels(), MEASURE)


def test_hive_folder_against_column(tmp_path: Path) -> None:
    """A folder that contradicts the column in its file breaks the contract; one that agrees is fine."""
    tree(tmp_path, {"run_id=a": hits(run_id=["a"] * 3), "run_id=b": hits(run_id=["b", "b", "c"])})
    assert dr.score(tmp_path / "run_id=a", qrels(), MEASURE).accounting["run_id"].to_list() == ["a"]
    with pytest.raises(dr.DataError, match=r"run_id=b/part\.parquet: the column hits\.run_id and the folder"):
        dr.score(tmp_path, qrels(), MEASURE)


def test_list_of_paths(tmp_path: Path) -> None:
    """A list may mix files, folders and os.PathLike."""
    first = write(tmp_path / "a.parquet", hits().head(2))
    write(tmp_path / "more" / "b.parquet", hits().tail(1))
    scores = dr.score([str(first), tmp_path / "more"], qrels(), MEASURE)
    assert_frame_equal(scores.per_query, dr.score(hits(), qrels(), MEASURE).per_query)


class BytesPath:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> bytes:
        return os.fsencode(self.path)


def test_path_as_bytes(tmp_path: Path) -> None:
    """os.PathLike may give bytes."""
    path = write(tmp_path / "a.parquet", hits())
    assert dr.score(BytesPath(path), qrels(), MEASURE).accounting["n_scored"].to_list() == [2]


def test_name_that_is_not_utf8(tmp_path: Path) -> None:
    """A file name of any bytes is read, and written into results as text."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/hits\xff.parquet"))
    path.write_bytes(write(tmp_path / "a.parquet", hits(rank=[1, None, 1])).read_bytes())

    scores = dr.score(path, qrels(), MEASURE, on_bad_rows="reject", out=tmp_path / "out")

    assert scores.inputs[0]["file"].endswith("hits\\xff.parquet")
    assert scores.findings["file"].to_list()[-1].endswith("hits\\xff.parquet")


def test_control_characters_in_a_name(tmp_path: Path) -> None:
    """A name with an escape sequence or a line break is printed as one harmless line."""
    with pytest.raises(dr.InputError) as caught:
        dr.score(tmp_path / "a\x1b[31m\nb.parquet", qrels(), MEASURE)
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_modes_are_not_touched(tmp_path: Path) -> None:
    """Reading needs no right to write."""
    path = write(tmp_path / "a.parquet", hits())
    path.chmod(0o400)
    assert names(path) == ["a.parquet"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
