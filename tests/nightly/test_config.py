"""A configuration is checked as a whole: every fault with its line, and nothing is read or written before."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

import pytest

from docrecall.errors import InputError, OutputError, UsageError
from docrecall.nightly.config import Baseline, Gate, load_config
from docrecall.nightly.example import write_example
from docrecall.nightly.toml import key_lines
from tests.nightly.nights import CONFIG, command


def write(folder: Path, text: str) -> Path:
    path = folder / "nightly.toml"
    path.write_text(text, encoding="utf-8")
    return path


def faults(folder: Path, text: str) -> list[str]:
    """The lines that a configuration is refused with, without the head."""
    with pytest.raises(UsageError) as caught:
        load_config(write(folder, text))
    head, *lines = str(caught.value).splitlines()
    assert head.startswith(str(folder / "nightly.toml"))
    return [line.strip() for line in lines]


def changed(*pairs: tuple[str, str]) -> str:
    text = CONFIG
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def test_all_faults_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    """Five faults in five sections give five lines, in the order of the file, with the nearest names."""
    text = """[store]
path = "out"
keepdays = 3
[sources]
hits = "logs/{dat}"
qrels = "q.parquet"
[score]
measures = [
  "doc_recall@3",
  "doc_recal@3",
]
[options]
universe = "all"
order = "rankk"
[[gates]]
measure = "doc_recall@3"
min = 0.5
[[gates]]
measure = "doc_recall@3"
mn = 0.5
[gatez]
"""
    assert faults(tmp_path, text) == [
        "line 3: unknown key 'keepdays'. Did you mean \"keep_days\"?",
        "line 5: hits has braces that are no date: write {date}, or its parts as in {date:%Y/%m/%d}, not {dat}.",
        "line 8: unknown measure 'doc_recal'. Did you mean \"doc_recall\"? `docrecall measures` lists all of them.",
        "line 14: order is 'rankk'; it may be 'rank' or 'score' or 'trec_eval'.",
        "line 18: this gate asks for nothing: set min, max_drop, or both.",
        "line 20: unknown key 'mn'. Did you mean \"min\"?",
        "line 21: unknown section 'gatez'. Did you mean \"gates\"?",
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (changed(('universe = "all"', "")), "universe is not stated"),
        (changed(('[options]\nuniverse = "all"', "")), "[options] is missing"),
        (changed(('qrels = "labels/qrels.parquet"', "")), "no labels: name qrels, evidence, or both"),
        (changed(('hits = "logs/date={date}"', "")), "hits is missing"),
        (changed(('hits = "logs/date={date}"', "hits = 3")), "hits must be a text or a list of texts"),
        (changed(("logs/date", "../logs/date")), "hits leaves the folder of this file"),
        (changed(('path = "store"', 'path = "../store"')), "path leaves the folder of this file"),
        (changed(('path = "store"', 'path = "s/{date}"')), "path may not depend on the date"),
        (changed(("logs/date={date}", "s3://bucket/{date}")), "hits must be the path of local files"),
        (changed(('"doc_rr@3"', '"doc_rr"')), "doc_rr"),
        (CONFIG + "[baseline]\nagainst = 'last'\n", "against is 'last'"),
        (CONFIG + "[baseline]\nagainst = 'run'\n", "go together"),
        (CONFIG + "[baseline]\nagainst = 'night'\n", 'against = "night" and night = 2026-11-30 go together'),
        (CONFIG + "[baseline]\nagainst = 'night'\nnight = '2026-11'\n", "night is '2026-11'; a date was expected"),
        (CONFIG + "[baseline]\nagainst = 'night'\nnight = 3\n", "night must be a date"),
        (CONFIG + "[baseline]\nnight = 2026-11-01\n", "go together"),
        (changed(("logs/date={date}", "logs/all")), "hits do not say the whole date"),
        (changed(("logs/date={date}", "logs/{date:%Y-%m}")), "hits do not say the whole date"),
        (changed(('"logs/date={date}"', '["logs/{date}", "logs/all"]')), "hits do not say the whole date"),
        (changed(('"logs/date={date}"', '{ a = "logs/a", b = "logs/b" }')), "hits do not say the whole date"),
        (changed(('qrels = "l', 'undated = 1\nqrels = "l')), "undated must be true or false"),
        (
            changed(('path = "store"', 'path = "store"\nkeep_days = 99999999999')),
            "keep_days must be a whole number from",
        ),
        (changed(("[score]", "[score]\ncanary = 99999999999")), "canary must be a whole number from 0 to 1,000,000"),
        (changed(("[score]", "[score]\nmemory = '9999999999999 GB'")), "memory is '9999999999999 GB'"),
        (
            changed(('"logs/date={date}"', '{ prod = "logs/{date}" }'))
            + "[[gates]]\nmeasure='doc_rr@3'\nrun='prodd'\nmin=0\n",
            'Did you mean "prod"?',
        ),
        (CONFIG + "[baseline]\nnights = 0\n", "nights must be a whole number from 1 to 3,660"),
        (CONFIG + "[[gates]]\nmeasure='doc_recall@1'\nmax_drop=0.1\n", "there is nothing to drop below"),
        (CONFIG + "[[gates]]\nmeasure='doc_recal@1'\nmin=0.1\n", 'Did you mean "doc_recall@1"?'),
        (CONFIG + "[[gates]]\nmeasure='doc_recall@1'\nmin='high'\n", "min must be a number"),
        (CONFIG + "[gates]\nmeasure='doc_recall@1'\n", "[[gates]]"),
        (CONFIG + "[data]\nmax_stale = 2\n", "max_stale must be a number from 0 to 1"),
        (CONFIG + "[data]\nmax_stale = nan\n", "max_stale must be a number from 0 to 1"),
        (CONFIG + "[outputs]\njson = '../x.json'\n", "json leaves the folder"),
        (changed(('measures = ["doc_recall@1", "doc_rr@3"]', "measures = []")), "measures must be a text or a list"),
        (CONFIG + "[store]\n", "is not TOML"),
        (changed(("[score]", "[score]\nmemory = 'much'")), "much"),
        (
            changed(("[score]", "[score]\nslices = ['lang']")) + "[[gates]]\nmeasure='doc_rr@3'\nby='land'\nmin=0\n",
            "land",
        ),
    ],
)
def test_each_fault_is_named(text: str, wanted: str, tmp_path: Path) -> None:
    """What is wrong is said in words that name the key."""
    with pytest.raises(UsageError) as caught:
        load_config(write(tmp_path, text))
    assert wanted in str(caught.value)


def test_a_link_inside_the_folder_that_leads_out_is_refused(tmp_path: Path) -> None:
    """A relative path for results that a link takes out of the folder is not written to."""
    inner = tmp_path / "job"
    inner.mkdir()
    (inner / "store").symlink_to(tmp_path)
    assert "leaves the folder" in "".join(faults(inner, CONFIG))


def test_absolute_paths_are_meant(tmp_path: Path) -> None:
    """What is outside of the folder is named in full."""
    config = load_config(write(tmp_path, changed(('path = "store"', f'path = "{tmp_path}/elsewhere"'))))
    assert config.store == tmp_path / "elsewhere"


def test_what_is_read(tmp_path: Path) -> None:
    """Gates, baseline and outputs arrive as they were written; relative paths start at the folder of the file."""
    more = """[baseline]
against = "median"
nights = 3
[[gates]]
measure = "doc_rr@3"
run = "a"
min = 0.25
max_drop = 0
[outputs]
json = "out/x.json"
"""
    config = load_config(write(tmp_path, CONFIG + more))
    assert config.baseline == Baseline("median", nights=3)
    assert config.gates == (Gate("doc_rr@3", "a", 0.25, 0.0),)
    assert config.outputs.json == tmp_path / "out" / "x.json"
    assert config.names == ["doc_recall@1", "doc_rr@3"]
    assert config.sources.hits == ("logs/date={date}",)


def test_digest_is_that_of_the_numbers(tmp_path: Path) -> None:
    """Gates and outputs do not make a night another one; measures and options do."""
    plain = load_config(write(tmp_path, CONFIG)).digest
    gated = load_config(write(tmp_path, CONFIG + "[[gates]]\nmeasure='doc_rr@3'\nmin=0.1\n")).digest
    other = load_config(write(tmp_path, CONFIG + "min_relevance = 2\n")).digest
    assert plain == gated != other


def test_lines_of_keys() -> None:
    """Lines inside of long texts and arrays are not taken for keys, and the second of two tables has its own lines."""
    text = '# first\na = 1\nb = """\nc = 2\n[x]\n"""\n[t]\nc = [\n  "d = 3",\n]\n\n[[g]]\nh = 1\n[[g]]\nh.i = 2\n'
    tomllib.loads(text)
    assert key_lines(text) == {
        ("a",): 2,
        ("b",): 3,
        ("t",): 7,
        ("t", "c"): 8,
        ("g", 0): 12,
        ("g", 0, "h"): 13,
        ("g", 1): 14,
        ("g", 1, "h"): 15,
        ("g", 1, "h", "i"): 15,
    }


def test_no_such_file(tmp_path: Path) -> None:
    """A configuration that is not there is exit code 4, and the message tells how to get one."""
    with pytest.raises(InputError, match="docrecall nightly init"):
        load_config(tmp_path / "none.toml")


def test_example_is_valid_and_never_overwrites(tmp_path: Path) -> None:
    """What `init` writes is read without a fault; a second call leaves the file alone."""
    path = tmp_path / "n.toml"
    write_example(str(path))
    config = load_config(path)
    assert len(config.gates) == 2
    with pytest.raises(OutputError, match="is there already"):
        write_example(str(path))


def test_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The plan of the example names its files and does nothing; the run publishes a night that passes its gates."""
    path = tmp_path / "n.toml"
    assert command("init", path) == 0
    assert command(path, "--date", "2026-11-30", "--dry-run") == 0
    assert "bm25-w128.parquet, 8,533 rows" in capsys.readouterr().out
    assert not (tmp_path / "nightly-store").exists()
    assert command(path, "--date", "2026-11-30") == 0
    assert "bm25-w128   doc_recall@10       0.7545" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--date", "2026-13-01"], "a date was expected"),
        (["--date", "20261130"], "a date was expected"),
        (["--date", "../2026-11-30"], "a date was expected"),
        (["--date", "2026-11-30", "--since", "2026-11-01"], "give one of the two"),
        (["--until", "2026-11-30"], "--until needs --since"),
        (["--since", "2026-11-30", "--until", "2026-11-01"], "comes before"),
        (["--since", "1000-01-01", "--until", "2026-11-01"], "at most 3,660"),
    ],
)
def test_dates_are_dates(options: list[str], wanted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Anything but a date is exit code 2, before anything is read."""
    assert command(write(tmp_path, CONFIG), *options) == 2
    assert wanted in capsys.readouterr().err


@pytest.mark.parametrize(
    ("hits", "store"),
    [
        ("logs/**/*.parquet", "logs/store"),
        ("logs", "logs/store"),
        ("logs/*/*.parquet", "logs/store"),
        ("logs/{date}", "logs/2026-11-30/store"),
        ("logs/{date:%Y/%m}/*", "logs/2026/11/store"),
        ("link/{date}", "logs/2026-11-30"),
        ("store/nights/{date}/runs/x.parquet", "store"),
    ],
)
def test_a_store_where_sources_are_read(hits: str, store: str, tmp_path: Path) -> None:
    """Results would be read as data the next night: refused, with the line, also through links."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "link").symlink_to("logs")
    text = changed(("logs/date={date}", hits), ('"store"', f'"{store}"'), ("[score]", "undated = true\n[score]"))
    assert faults(tmp_path, text) == [
        "line 3: the store lies where hits is read; it would be read as data. Put it elsewhere."
    ]


@pytest.mark.parametrize(
    ("hits", "store"),
    [
        ("logs/date={date}", "logs/store"),
        ("{date}/hits.parquet", "store"),
        ("logs/*.parquet", "logs/store"),
        ("store/logs/{date}", "store"),
        ("logs/part-[0-9]/{date}", "logs/part-x"),
        ("{date:%Y}/{date:%j}/x", "201/300"),
    ],
)
def test_a_store_beside_sources(hits: str, store: str, tmp_path: Path) -> None:
    """A store in the same folder is fine, as long as no source looks into it."""
    text = changed(("logs/date={date}", hits), ('"store"', f'"{store}"'), ("[score]", "undated = true\n[score]"))
    assert load_config(write(tmp_path, text)).store == tmp_path / store


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("nightly.toml", "json would replace this configuration"),
        ("here/nightly.toml", "json would replace this configuration"),
        ("labels/qrels.parquet", "json lies where qrels is read"),
        ("logs/date=2026-11-30/x.json", "json lies where hits is read"),
        ("logs/date=2026-11-30/_DONE", "json lies where hits is read"),
        ("marks/2026-11-30", "json lies where marker is read"),
        ("store/history.parquet", "json lies in the store, which holds nothing but what is published"),
        ("store", "json lies in the store, which holds nothing but what is published"),
    ],
)
def test_an_output_over_something_else(path: str, wanted: str, tmp_path: Path) -> None:
    """Outputs are replaced as a whole every night, so none may stand where anything else is."""
    (tmp_path / "here").symlink_to(".")
    text = changed(("[score]", 'marker = "marks/{date}"\n[score]')) + f"[outputs]\njson = '{path}'\n"
    assert faults(tmp_path, text) == [f"line 13: {wanted}."]


def test_two_outputs_in_one_file(tmp_path: Path) -> None:
    """The second is told."""
    assert faults(tmp_path, CONFIG + "[outputs]\nmarkdown = 'x'\njson = './x'\n") == [
        "line 13: json and markdown are the same file."
    ]


def test_one_run_may_be_the_same_every_night(tmp_path: Path) -> None:
    """A fixed run to compare with needs no date, as long as another has one; undated = true says that none has."""
    runs = changed(('"logs/date={date}"', '{ base = "base", prod = "logs/{date:%Y/%j}" }'))
    assert set(load_config(write(tmp_path, runs)).sources.hits) == {"base", "prod"}
    alone = changed(("logs/date={date}", "logs/all"), ("[score]", "undated = true\n[score]"))
    assert load_config(write(tmp_path, alone)).sources.hits == ("logs/all",)


@pytest.mark.parametrize("night", ["2026-11-01", "'2026-11-01'"])
def test_a_fixed_night(night: str, tmp_path: Path) -> None:
    """Written as TOML writes dates, or as text."""
    config = load_config(write(tmp_path, CONFIG + f"[baseline]\nagainst = 'night'\nnight = {night}\n"))
    assert config.baseline == Baseline("night", night=date(2026, 11, 1))
