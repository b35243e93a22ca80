"""Bad input to the command: an exit code, one clear message, nothing on stdout and nothing written."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl
import pytest

import docrecall as dr
from docrecall.cli import main
from tests.small import MEASURE, SECRET, hits, qrels, queries, write

COMMAND = Path(sysconfig.get_path("scripts")) / "docrecall"


class Fault(NamedTuple):
    """What is wrong, the exit code, what the message must mention, and the class that Python raises."""

    name: str
    change: dict[str, Any]  # table -> columns that differ from tests.small
    exit_code: int
    says: tuple[str, ...]
    error: type[dr.DocrecallError] = dr.DataError
    options: Mapping[str, Any] = MappingProxyType({})


def of(name: str, *says: str, options: dict[str, Any] | None = None, **change: Any) -> Fault:
    """A fault of the data: exit code 3."""
    return Fault(name, change, 3, says, options=options or {})


BY_SCORE = {"order": "score"}

FAULTS = [
    of("no rank column", "hits.rank", "hits.parquet", "query_id, doc_id", hits={"rank": None}),
    of("near name", "hits.rank", "--map hits.rank=ranks", hits={"rank": None, "ranks": [1, 2, 1]}),
    of("no doc column", "qrels.doc_id", "qrels.parquet", qrels={"doc_id": None}),
    of("no query column", "queries.query_id", "queries.parquet", queries={"query_id": None}),
    of("no score column", "hits.score", "hits.parquet", options=BY_SCORE),
    of("text ranks", "hits.rank is String", "hits.parquet", "integer", hits={"rank": ["1", "2", "1"]}),
    of("single-precision ranks", "hits.rank is Float32", hits={"rank": pl.Series([1, 2, 1], dtype=pl.Float32)}),
    of("enum ranks", "hits.rank is Enum", hits={"rank": pl.Series([SECRET] * 3, dtype=pl.Enum([SECRET]))}),
    of("struct ranks", "hits.rank is Struct", hits={"rank": [{SECRET: 1}] * 3}),
    of("dates as ids", "hits.doc_id is Date", hits={"doc_id": pl.Series([0, 1, 2]).cast(pl.Date)}),
    of("text grades", "qrels.relevance is String", "integer", qrels={"relevance": ["1", "1"]}),
    of("numbers as status", "queries.label_status is Int64", queries={"label_status": [1, 2]}),
    of("text scores", "hits.score is String", hits={"score": ["1", "2", "1"]}, options=BY_SCORE),
    of("integer runs", "hits.run_id is Int64", "String", hits={"run_id": [1, 1, 1]}),
    of("null rank", "hits.rank: 1 hit without a rank", "(q1)", "hits.parquet", hits={"rank": [1, None, 1]}),
    of("all ranks null", "hits.rank: 3 hits without a rank in 2 units (q1, q2)", hits={"rank": [None] * 3}),
    of("NaN rank", "hits.rank: 1 hit with a fractional rank", "(q1)", hits={"rank": [1.0, float("nan"), 1.0]}),
    of("fractional rank", "hits.rank: 1 hit with a fractional rank", "(q1)", hits={"rank": [1.0, 1.5, 1.0]}),
    of("infinite rank", "hits.rank: 2 hits with a fractional", hits={"rank": [1.0, float("inf"), -float("inf")]}),
    of("huge float rank", "1 hit with a rank of 2^53 or more", hits={"rank": [1.0, 1e300, 1.0]}),
    of("huge rank", "1 hit with a rank of 2^53 or more", hits={"rank": [1, 2**60, 1]}),
    of("huge u64 rank", "2^53 or more", hits={"rank": pl.Series([1, 2**64 - 1, 1], dtype=pl.UInt64)}),
    of("ranks from 0", "hits.rank: 2 hits with rank 0", "--rank-base 0", "q1, q2", hits={"rank": [0, 1, 0]}),
    of("negative rank", "hits.rank: 1 hit with a rank below the first", hits={"rank": [-1, 1, 1]}),
    of("rank twice", "hits.rank: 2 hits on the rank of another", "1 unit (q1)", hits={"rank": [1, 1, 1]}),
    of("null score", "hits.score: 1 hit without a score", hits={"score": [1.0, None, 2.0]}, options=BY_SCORE),
    of("NaN score", "hits.score: 1 hit with a NaN", hits={"score": [1.0, float("nan"), 2.0]}, options=BY_SCORE),
    of("null query in hits", "hits.query_id: 1 row without an id", hits={"query_id": ["q1", None, "q2"]}),
    of("null document in hits", "hits.doc_id: 1 row without an id", "(q2)", hits={"doc_id": ["x", "a", None]}),
    of("null run", "hits.run_id: 1 row without an id", hits={"run_id": ["r", None, "r"]}),
    of("null query in labels", "qrels.query_id: 1 row without an id", qrels={"query_id": [None, "q2"]}),
    of("null document in labels", "qrels.doc_id: 1 row without an id", "(q1)", qrels={"doc_id": [None, "b"]}),
    of("null query in queries", "queries.query_id: 1 row without", queries={"query_id": [None, "q2"]}),
    of(
        "float ids", "hits.doc_id is Float64", "hits.parquet", "Float ids lose digits", hits={"doc_id": [1.0, 2.0, 3.0]}
    ),
    of(
        "text against integers",
        "hits.doc_id is String",
        "qrels.doc_id is Int64",
        "hits.parquet",
        "qrels.parquet",
        qrels={"doc_id": [1, 2]},
    ),
    of("integers against text", "qrels.query_id is String", "is Int64", hits={"query_id": [1, 1, 2]}),
    of("integers in queries", "queries.query_id is Int64", "queries.parquet", queries={"query_id": [1, 2]}),
    of(
        "ids beyond 64 bits",
        "hits.doc_id: 1 id beyond a signed 64-bit integer (18446744073709551615)",
        "hits.parquet",
        hits={"doc_id": pl.Series([1, 2, 2**64 - 1], dtype=pl.UInt64)},
        qrels={"doc_id": [1, 2]},
    ),
    of(
        "two grades",
        "qrels.relevance: 2 labels of a (query_id, doc_id) with several grades in 1 query (q1)",
        "qrels.parquet",
        qrels={"query_id": ["q1", "q1"], "doc_id": ["a", "a"], "relevance": [1, 2]},
    ),
    of("null grade", "qrels.relevance: 1 label without a relevance", "(q2)", qrels={"relevance": [1, None]}),
    of("query twice", "queries.query_id: 2 rows with a repeated query_id", queries={"query_id": ["q1", "q1"]}),
    of("unknown status", "queries.label_status: 1 row", "(q1)", queries={"label_status": [SECRET, None]}),
    of(
        "no query in common",
        "hits.query_id and qrels.query_id",
        "'q1', 'q2' in hits",
        "'z1', 'z2' in qrels",
        qrels={"query_id": ["z1", "z2"]},
    ),
    of(
        "ids that collapse",
        "hits.doc_id: 2 ids equal to another",
        hits={"doc_id": ["a", "\u00e9", "e\u0301"]},
        options={"normalize_ids": "NFC"},
    ),
    Fault(
        "no such measure",
        {},
        2,
        ("'doc_recal'", 'Did you mean "doc_recall"'),
        dr.MeasureError,
        {"measures": "doc_recal@3"},
    ),
    Fault(
        "another tool's name", {}, 2, ("doc_recall@3", "doc_recall@3docs"), dr.MeasureError, {"measures": "recall@3"}
    ),
    Fault("k of 0", {}, 2, ("k must be positive",), dr.MeasureError, {"measures": "doc_recall@0"}),
    Fault("k of -1", {}, 2, ("k must be positive",), dr.MeasureError, {"measures": "doc_recall@-1"}),
    Fault("k of 1.5", {}, 2, ("whole number", "1.5"), dr.MeasureError, {"measures": "doc_recall@1.5"}),
    Fault("k of 5000 digits", {}, 2, ("5000 digits",), dr.MeasureError, {"measures": "doc_recall@" + "9" * 5000}),
    Fault("no cut", {}, 2, ("names no cut",), dr.MeasureError, {"measures": "doc_recall"}),
    Fault("batches of 0", {}, 2, ("batch_rows is 0",), dr.UsageError, {"batch_rows": 0}),
    Fault("grades from 0", {}, 2, ("min_relevance is 0",), dr.UsageError, {"min_relevance": 0}),
]
SMALL: dict[str, Callable[..., pl.DataFrame]] = {"hits": hits, "qrels": qrels, "queries": queries}
ids = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


def frames(fault: Fault) -> dict[str, pl.DataFrame]:
    return {name: make(**fault.change.get(name, {})) for name, make in SMALL.items()}


def arguments(tables: Mapping[str, Path | str], options: Mapping[str, Any] = MappingProxyType({})) -> list[str]:
    given = {"measures": MEASURE, **options}
    flags = [
        f"--{'measure' if name == 'measures' else name.replace('_', '-')}={value}" for name, value in given.items()
    ]
    return ["score", *(f"--{name}={path}" for name, path in tables.items()), *flags]


def small_tables(folder: Path, fault: Fault | None = None) -> dict[str, Path]:
    made = frames(fault) if fault else {name: make() for name, make in SMALL.items()}
    return {name: write(folder / f"{name}.parquet", frame) for name, frame in made.items()}


def refused(argv: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the command; the one message that it failed with."""
    assert main(argv) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("docrecall: ")
    assert err.count("docrecall: ") == 1
    assert "Traceback" not in err
    assert SECRET not in err
    return err


@ids
def test_fault_on_disk(fault: Fault, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each fault has its exit code and one message that names what is wrong; with --out nothing is written."""
    tables = small_tables(tmp_path, fault)
    before = sorted(tmp_path.iterdir())

    message = refused([*arguments(tables, fault.options), f"--out={tmp_path / 'new' / 'out'}"], fault.exit_code, capsys)

    for words in fault.says:
        assert words in message
    assert sorted(tmp_path.iterdir()) == before


@ids
def test_fault_in_python(fault: Fault) -> None:
    """The same faults through frames raise the same class, which is also a ValueError, with findings on data."""
    tables = frames(fault)
    options = {"measures": MEASURE, **fault.options}

    with pytest.raises(fault.error) as caught:
        dr.score(tables["hits"], tables["qrels"], queries=tables["queries"], **options)

    assert isinstance(caught.value, dr.DocrecallError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.exit_code == fault.exit_code
    assert SECRET not in str(caught.value)
    if isinstance(caught.value, dr.DataError):
        assert set(caught.value.findings["severity"].unique()) <= {"error"}
        assert SECRET not in str(caught.value.findings.to_dicts())


def test_the_small_tables_are_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a fault the same command succeeds, so each fault above is the one thing that is wrong."""
    assert main(arguments(small_tables(tmp_path))) == 0
    assert capsys.readouterr().out.splitlines()[2].split()[:2] == ["doc_recall@3", "1.0000"]


def test_zero_rows_are_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log without rows scores every labelled query as 0, and says that none has hits."""
    empty = write(tmp_path / "empty.parquet", pl.DataFrame({"query_id": [], "rank": [], "doc_id": []}))
    labels = write(tmp_path / "qrels.parquet", qrels())

    assert main(arguments({"hits": empty, "qrels": labels})) == 0

    out = capsys.readouterr().out
    assert "2 of 2 units scored (2 without hits, as 0)" in out
    assert "--universe hits" in out


def test_zero_rows_everywhere_are_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No hits and no labels: no units, and no number."""
    tables = {name: write(tmp_path / f"{name}.parquet", SMALL[name]().clear()) for name in ("hits", "qrels")}

    assert main(arguments(tables)) == 0
    assert "0 rows read" in capsys.readouterr().out


def garbage(path: Path) -> None:
    path.write_bytes(b"PAR1" + bytes(range(256)) * 8 + b"PAR1")


def no_parquet(path: Path) -> None:
    path.write_bytes(b"query_id,rank\nq1,1\n" * 20)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def tiny(path: Path) -> None:
    path.write_bytes(b"PAR1PAR1")


def gone(path: Path) -> None:
    path.unlink()


def no_file(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def damaged_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4:60] = bytes(56)
    path.write_bytes(data)


FILE_FAULTS = [
    (gone, "does not exist"),
    (emptied, "0 bytes"),
    (tiny, "cut short"),
    (cut_short, "cut short"),
    (garbage, "damaged"),
    (no_parquet, "not a Parquet file"),
    (damaged_page, "damaged"),
    (no_file, "not a regular file"),
]


@pytest.mark.parametrize("table", SMALL)
@pytest.mark.parametrize(("damage", "says"), FILE_FAULTS, ids=[damage.__name__ for damage, _ in FILE_FAULTS])
def test_file_fault(
    table: str, damage: Callable[[Path], None], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is absent or unreadable is exit code 4, whichever table it is, and the message names it."""
    tables = small_tables(tmp_path)
    damage(tables[table])
    before = sorted(tmp_path.iterdir())

    message = refused([*arguments(tables), f"--out={tmp_path / 'out'}"], 4, capsys)

    assert f"{table}.parquet" in message
    assert says in message
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(dr.InputError) as caught:
        dr.score(tables["hits"], tables["qrels"], MEASURE, queries=tables["queries"])
    assert isinstance(caught.value, OSError)


@pytest.mark.parametrize(
    ("path", "code", "says"),
    [
        ("x" * 300 + ".parquet", 4, "too long"),
        ("x" * 5000, 4, "too long"),
        ("nothing/*.parquet", 4, "no files match"),
        ("s3://bucket/hits.parquet", 2, "is a URL"),
        ("https://host/hits.parquet", 2, "is a URL"),
        ("qrels.parquet/hits.parquet", 4, "cannot be read"),
    ],
)
def test_path_that_names_nothing(
    path: str, code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names that are too long, match nothing, lie behind a file or on a network are told as such."""
    monkeypatch.chdir(tmp_path)
    tables: Mapping[str, Path | str] = small_tables(tmp_path)

    assert says in refused(arguments({**tables, "hits": path}), code, capsys)


@pytest.mark.parametrize(
    "argv",
    [
        ["score"],
        ["score", "--hits", "h.parquet"],
        ["scoer"],
        ["score", "--hits", "h", "--qrels", "q", "--order", "rnak"],
        ["score", "--hits", "h", "--qrels", "q", "--rank-base", "x"],
        ["score", "--hits", "a=h", "h", "--qrels", "q"],
        ["score", "--hits", "a=h", "--hits", "h", "--qrels", "q"],
        ["measures", "--format", "latex"],
    ],
)
def test_wrong_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What the command line cannot mean is exit code 2, in one line."""
    message = refused(argv, 2, capsys)
    assert message.count("\n") == 1


def test_check_finds_the_same_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`check` stops at broken rows as `score` does."""
    tables = small_tables(tmp_path, of("null rank", hits={"rank": [1, None, 1]}))
    argv = ["check", *(f"--{name}={path}" for name, path in tables.items())]

    assert "1 hit without a rank" in refused(argv, 3, capsys)


def test_strict_lets_no_warning_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A warning is exit code 0, and 3 with --strict; rows that were set aside are a warning."""
    tables = small_tables(tmp_path, of("null rank", hits={"rank": [1, None, 1]}))
    argv = ["check", "--on-bad-rows=reject", *(f"--{name}={path}" for name, path in tables.items())]

    assert main(argv) == 0
    assert "warning: hits.rank: 1 hit without a rank" in capsys.readouterr().out
    assert main([*argv, "--strict"]) == 3
    assert capsys.readouterr().err.count("docrecall: ") == 1


def test_a_fault_of_ours_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What nobody foresaw is exit code 70 without a traceback and without the text of the error."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(import_module("docrecall.score"), "score_inputs", broken)
    told = refused(arguments(small_tables(tmp_path)), 70, capsys)
    assert "RuntimeError" in told
    assert "Nothing was written" not in told  # which nobody can know here


def test_an_error_of_the_system_is_no_printing_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An OSError on the way to the scores is not blamed on the output."""

    def broken(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(import_module("docrecall.score"), "score_inputs", broken)
    refused(arguments(small_tables(tmp_path)), 70, capsys)


def test_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C is exit code 130."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("docrecall.score"), "score_inputs", interrupted)
    refused(arguments(small_tables(tmp_path)), 130, capsys)


def run(argv: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *argv], capture_output=True, text=True, check=False, timeout=60, **options)


def test_installed_command(tmp_path: Path) -> None:
    """The installed command gives the exit code to the shell and prints the message on stderr alone."""
    tables = small_tables(tmp_path, of("null rank", hits={"rank": [1, None, 1]}))

    done = run([*arguments(tables), f"--out={tmp_path / 'out'}"])

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("docrecall: The tables break the contract.\n  hits.rank: 1 hit without a rank")
    assert not (tmp_path / "out").exists()


def test_panics_of_the_engine_stay_silent() -> None:
    """What the engine's threads write to stderr by themselves, twenty lines a panic, does not join our message.

    Nor does what Python can only print, as when one Ctrl-C is raised a second time while generators are closed.
    """
    code = (
        "import os, docrecall.cli as cli\n"
        "def main():\n"
        "    os.write(2, b'thread panicked')\n"
        "    type('Late', (), {'__del__': lambda self: 1 / 0})()\n"
        "    return cli._fail('one message.', 4)\n"
        "cli.main = main\n"
        "cli.run()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (4, "", "docrecall: one message.\n")


def test_full_stdout() -> None:
    """Results that cannot be printed are exit code 6, and Python adds no complaint of its own."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([COMMAND, "measures"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert done.returncode == 6
    assert done.stderr == "docrecall: the results could not be printed: No space left on device.\n"


def test_reader_that_leaves() -> None:
    """A closed pipe ends the command in silence, with the exit code that shells give to it."""
    read, write_end = os.pipe()
    os.close(read)
    done = subprocess.run([COMMAND, "measures"], stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)

    assert (done.returncode, done.stderr) == (141, "")
