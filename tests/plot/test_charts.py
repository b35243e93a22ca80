"""Charts are drawn, in SVG and PNG, also of logs that are hard to draw; what they say is whole and harmless."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import docrecall as dr
from docrecall.plot import theme
from tests.plot.logs import MANUAL, labels, log, scored, two

NASTY = "</script><script>alert(1)</script>&amp;<!--\x1b[31m\u202e\n"
LONG = "retriever/text-embedding-3-large+reranker-v2/splitter=recursive/size={}/overlap=32/2026-11-30"
KINDS = ("recall", "frontier", "differences", "comparison", "slices", "funnel")


def chart(kind: str, scores: dr.Scores) -> Any:
    match kind:
        case "recall":
            return dr.plot.recall(scores)
        case "frontier":
            return dr.plot.frontier(scores, [20, 40])
        case "differences":
            return dr.plot.differences(dr.diagnose(scores, [1, 2], [20], resamples=100))
        case "comparison":
            return dr.plot.differences(dr.compare(scores, resamples=100))
        case "slices":
            return dr.plot.slices(scores, "language", min_n=1)
    return dr.plot.funnel(dr.funnel(scores, budget="@40tokens"))


def drawn(made: Any, folder: Path) -> str:
    """Draw both forms, and give the texts of the SVG."""
    made.save(folder / "chart.png", ppi=50)
    assert (folder / "chart.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    made.save(folder / "chart.svg")
    root = ElementTree.fromstring((folder / "chart.svg").read_text(encoding="utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return "\n".join(part for text in root.iter("{http://www.w3.org/2000/svg}text") for part in text.itertext())


def many() -> dr.Scores:
    return scored({f"run-{i}": log(*MANUAL[i % 3 :], n=2 + i % 2) for i in range(20)}, 3)


LOGS: dict[str, Callable[[], dr.Scores]] = {
    "two": lambda: two(10),
    "one unit": lambda: two(1),
    "many": many,
    "long names": lambda: scored({LONG.format(k): log(*MANUAL) for k in (128, 256)}),
    "markup": lambda: scored({NASTY: log(*MANUAL), NASTY + "2": log("manual")}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOGS)
def test_charts_are_drawn(kind: str, name: str, tmp_path: Path) -> None:
    """Each kind of chart from each kind of log; control characters and direction marks never reach a reader."""
    scores = LOGS[name]()
    if kind in ("differences", "comparison") and name == "many":
        scores = scored({f"run-{i}": log(*MANUAL) for i in range(4)})
    text = drawn(chart(kind, scores), tmp_path)
    assert not set(text) & {"\x1b", "\u202e"}
    for run in scores.accounting["run_id"] if name in ("two", "many") else ():
        assert run in text


@pytest.mark.parametrize("kind", ["recall", "frontier", "slices", "funnel"])
def test_one_run(kind: str, tmp_path: Path) -> None:
    """A legend of one entry says nothing, and the run is named all the same."""
    assert "only" in drawn(chart(kind, scored({"only": log(*MANUAL)})), tmp_path)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "comparison"])  # which refuses to be made
def test_nothing_scored(kind: str, tmp_path: Path) -> None:
    """Where nothing has a value the chart is empty and says so."""
    nobody = pl.DataFrame({"query_id": ["q0", "q1"], "label_status": ["unlabelled"] * 2, "language": ["en", None]})
    runs = {"a": log(*MANUAL), "b": log(*MANUAL)}
    labels = pl.DataFrame({"query_id": ["q0"], "doc_id": ["manual"]})
    scores = dr.score(runs, labels, "doc_recall@1", queries=nobody)
    text = drawn(chart(kind, scores), tmp_path)
    assert {"differences": "0 pairs of units", "funnel": "0"}.get(kind, "0 of 2 units scored") in text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("recall", ["@k: the first k chunks", "@kdocs: the first k documents", "10 of 10 units scored", "k"]),
        ("frontier", ["tokens given (mean, log scale)", "doc_recall: documents", "20", "40"]),
        ("differences", ["hits per relevant document", "share", "w20 less w10", "@20tokens", "w20 is higher"]),
        ("comparison", ["share", "w20 less w10", "@1", "coloured where p < 0.05, adjusted over 1 test (Holm)"]),
        ("slices", ["doc_recall@1 by language", "mean of doc_recall@1 (share)", "en (n = 10)", "w20"]),
        ("funnel", ["queries", "labelled", "retrieved", "in_cut", "in_budget", "answered", "10 (100.0 %)"]),
    ],
)
def test_axes_name_their_units(kind: str, words: list[str], tmp_path: Path) -> None:
    """What is counted, and of what, is written on the chart."""
    lines = drawn(chart(kind, two(10)), tmp_path)
    for word in words:
        assert word in lines


def test_of_many_slices_the_largest_are_drawn(tmp_path: Path) -> None:
    """They stand in their order, and the chart says how many there are; small ones are hollow and said to be."""
    language = pl.DataFrame({"query_id": [f"q{i}" for i in range(10)], "language": [*"aabbbcdddd"]})
    scores = dr.score(log(*MANUAL, n=10), labels(10), "doc_recall@1", queries=language)
    text = drawn(dr.plot.slices(scores, "language", min_n=3, most=3), tmp_path)
    assert [line for line in text.splitlines() if "(n = " in line] == ["a (n = 2)", "b (n = 3)", "d (n = 4)"]
    assert "the 3 largest of 4 slices" in text
    assert "hollow: fewer than 3 values, not to be judged" in text


def ways(made: Any) -> list[str]:
    """What the points of the first panel say of their pairs, in the order of lines."""
    return [row["way"] for row in next(rows for rows in made.to_dict()["datasets"].values() if "way" in rows[0])]


def test_runs_of_one_name_are_told_apart_by_their_side(tmp_path: Path) -> None:
    """Results of two logs have the same default name for their run."""
    old, new = (dr.score(hits, labels(10), "doc_recall@2") for hits in (log(*MANUAL, n=10), log("manual", "faq", n=10)))
    made = dr.plot.differences(dr.compare(old, new, resamples=100))
    lines = drawn(made, tmp_path).splitlines()
    assert "run (candidate) less run (baseline)" in lines
    assert {"run (baseline) is higher", "run (candidate) is higher", "cannot be told apart"} <= set(lines)
    assert ways(made) == ["run (candidate) is higher"]
    assert ways(dr.plot.differences(dr.compare(new, old, resamples=100))) == ["run (baseline) is higher"]


def test_a_blank_name_is_seen(tmp_path: Path) -> None:
    """A run without a name has its own place in the legend."""
    runs = {"": log(*MANUAL, n=10), "b": log("manual", "faq", n=10)}
    hits = pl.concat([frame.with_columns(run_id=pl.lit(run)) for run, frame in runs.items()])
    scores = dr.score(hits, labels(10), "doc_recall@2")
    for baseline, head, way in (("", "b less ''", "b is higher"), ("b", "'' less b", "b is higher")):
        made = dr.plot.differences(dr.compare(scores, baseline=baseline, resamples=100))
        lines = drawn(made, tmp_path).splitlines()
        assert head in lines
        assert {"'' is higher", "b is higher", "cannot be told apart"} <= set(lines)
        assert ways(made) == [way]
    diagnosis = dr.plot.differences(dr.diagnose(scores, [2], [], resamples=100))
    assert set(ways(diagnosis)) == {"cannot be told apart"}  # naive_recall is the same in both


def test_slices_that_were_not_judged_are_hollow(tmp_path: Path) -> None:
    """They have their own words in the legend, which a chart without such slices does not have."""
    language = pl.DataFrame({"query_id": [f"q{i}" for i in range(12)], "language": [*"aaaaaaaaabbc"]})
    runs = {"x": log(*MANUAL, n=12), "y": log("manual", "faq", n=12)}
    scores = dr.score(runs, labels(12), "doc_recall@2", queries=language)
    made = dr.plot.differences(dr.compare(scores, by="language", min_n=2, resamples=100))
    few = "too few units to judge"
    assert ways(made) == ["y is higher", "cannot be told apart", few]
    assert few in drawn(made, tmp_path).splitlines()
    point = next(layer for layer in made.to_dict()["vconcat"][0]["hconcat"][0]["layer"] if "fill" in layer["encoding"])
    fill = point["encoding"]["fill"]["scale"]
    assert dict(zip(fill["domain"], fill["range"], strict=True))[few] == "white"
    whole = dr.plot.differences(dr.compare(scores, by="language", min_n=1, resamples=100))
    assert ways(whole) == ["y is higher", "cannot be told apart", "cannot be told apart"]
    assert few not in drawn(whole, tmp_path)


def marks(made: Any) -> set[str]:
    return {layer["mark"]["type"] for layer in made.to_dict()["spec"]["layer"]}


def test_intervals_of_differences_are_drawn_above_the_dots() -> None:
    """Those of many pairs are narrower than a dot, which would hide them."""
    panel = dr.plot.differences(dr.diagnose(two(10), [1], [])).to_dict()["vconcat"][0]["hconcat"][0]
    assert [layer["mark"]["type"] for layer in panel["layer"]] == ["rule", "point", "rule"]
    assert panel["layer"][-1]["encoding"]["x2"]["field"] == "ci_high"


def test_one_point_has_a_line_for_its_interval() -> None:
    """A band of one point would have no width."""
    assert "rule" in marks(dr.plot.recall(two(10), [3]))
    assert "rule" not in marks(dr.plot.recall(two(10), [1, 3]))


def test_many_values_of_k(tmp_path: Path) -> None:
    """Up to twelve values have a tick each; a hundred do not."""
    assert [str(k) for k in (1, 7, 11)] == [
        k for k in drawn(dr.plot.recall(two(), [1, 7, 11]), tmp_path).splitlines() if k in ("1", "7", "11")
    ][:3]
    axis = dr.plot.recall(two(), list(range(1, 101))).to_dict()["spec"]["layer"][0]["encoding"]["x"]["axis"]
    assert "values" not in axis


def test_bands_are_drawn_for_few_runs() -> None:
    """Six bands can be seen through, seven cannot; without intervals there are none."""
    for n, bands in ((1, 1), (6, 6), (7, 0)):
        layers = dr.plot.recall(scored({f"r{i}": log(*MANUAL) for i in range(n)})).to_dict()["spec"]["layer"]
        assert sum(layer["mark"]["type"] == "area" for layer in layers) == bands
    assert "area" not in marks(dr.plot.recall(two(1)))


def test_numbers_beside_bars(tmp_path: Path) -> None:
    """The funnel says how many pass, and counts requests where requests are logged."""
    hits = log(*MANUAL).with_columns(request_id=pl.col("query_id") + "/1")
    scores = dr.score(hits, pl.DataFrame({"query_id": ["q0", "q1"], "doc_id": ["manual", "terms"]}), "doc_hit@1")
    text = drawn(dr.plot.funnel(dr.funnel(scores, cut="@3", budget=None)), tmp_path)
    assert "logged requests" in text
    assert "1 (50.0 %)" in text


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_page_runs_no_id(kind: str, tmp_path: Path) -> None:
    """Charts stand inside a script in HTML, and no name of a run closes it."""
    chart(kind, LOGS["markup"]()).save(tmp_path / "a.html")
    chart(kind, two()).save(tmp_path / "b.html")
    nasty, plain = ((tmp_path / f"{name}.html").read_text(encoding="utf-8") for name in "ab")
    for mark in ("</script", "<!--"):
        assert nasty.count(mark) == plain.count(mark)


def test_names() -> None:
    """Long names show where they differ; names that would look alike get numbers; a short one is as it is."""
    assert theme.names(["a", "b"]) == {"a": "a", "b": "b"}
    long = [LONG.format(size) for size in (128, 256)]
    assert list(theme.names(long).values()) == ["…sive/size=128/overlap=3…", "…sive/size=256/overlap=3…"]
    alike = ["x" * 100, "x" * 90]
    first, second = theme.names(alike).values()
    assert second == f"{first} (2)"
    assert theme.names(["", " ", "''"]) == {"": "''", " ": "' '", "''": "'' (2)"}
    assert theme.shown(" " * 500) == f"'{' ' * 18}…{' ' * 18}…'"
    assert theme.names(["\n", "\\n"]) == {"\n": "\\n", "\\n": "\\n (2)"}
    assert all(len(name) <= theme.LONGEST for name in theme.names([LONG.format(1), "b"]).values())


def test_runs_differ_in_two_ways() -> None:
    """Of 42 runs no two share colour and shape, and neighbours differ in both and in dash."""
    of = theme.channels([f"r{i}" for i in range(42)])
    styles = [getattr(of, name).to_dict()["scale"]["range"] for name in ("colour", "shape", "dash")]
    assert len(set(zip(styles[0], styles[1], strict=True))) == 42
    for style in styles:
        assert all(a != b for a, b in pairwise(style))


# Machado, Oliveira and Fernandes (2009), severity 1: what is left of linear RGB.
BLINDNESS = {
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour: str, matrix: list[list[float]]) -> np.ndarray[Any, Any]:
    """A colour as somebody sees it, in CIE L*a*b*."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(matrix) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ seen / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eyes", BLINDNESS)
def test_colours_can_be_told_apart(eyes: str) -> None:
    """The colours of the first four runs, and those of a difference, are far apart for colour-blind readers too."""
    for colours in (theme.COLOURS[:4], (theme.BLUE, theme.VERMILLION, theme.GREY)):
        seen = [lab(colour, BLINDNESS[eyes]) for colour in colours]
        assert min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)) > 15


def test_the_extra_is_named_when_it_is_missing() -> None:
    """Without Altair the package works, and charts say what to install."""
    program = (
        "import sys\n"
        "sys.modules['altair'] = None\n"
        "import docrecall as dr\n"
        "try:\n"
        "    dr.plot\n"
        "except dr.ExtraError as error:\n"
        "    assert isinstance(error, ImportError)\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (
        done.stdout == "charts need Altair, which is not installed. Install it with: pip install 'docrecall[plots]'\n"
    )


def test_faults_of_altair_are_its_own() -> None:
    """An Altair that is there and broken is not said to be missing."""
    program = "import sys\nsys.modules['jsonschema'] = None\nimport docrecall as dr\ndr.plot\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(r"^ModuleNotFoundError: .*jsonschema", done.stderr, re.MULTILINE)
