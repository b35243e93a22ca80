"""Tables for a pull request and for a paper: text from data shows as it is, and no run is left out."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import docrecall as dr
from docrecall.cli import main
from docrecall.report.blocks import Lines, Table, of_scores
from docrecall.report.latex import escape as latex_escape
from docrecall.report.latex import to_latex
from docrecall.report.markdown import escape as markdown_escape
from docrecall.report.markdown import to_markdown
from tests.small import hits, qrels, write

NASTY = r"a_b & 50 % $x$ #1 {y} ~z ^w \textbf{q} <i> `bt` | --- […"


def scored(*runs: str) -> dr.Scores:
    return dr.score({run: hits() for run in runs}, qrels(), "doc_recall@1,3")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("doc_recall@3", r"doc\_recall@3"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("50 % & $1 #2", r"50 \% \& \$1 \#2"),
        ("a~b^c", r"a\textasciitilde{}b\textasciicircum{}c"),
        ("<i>|`", r"\textless{}i\textgreater{}\textbar{}\textasciigrave{}"),
        ("stale='keep'", r"stale=\textquotesingle{}keep\textquotesingle{}"),
        ("-0.031 [-0.049, -0.014]", "$-$0.031 [$-$0.049, $-$0.014]"),
        ("bm25-32 of 2026-11-30", "bm25-32 of 2026-11-30"),
        ("--stale", "-{}-stale"),
        ("----", "-{}-{}-{}-"),
    ],
)
def test_latex_sets_text_as_it_is(text: str, expected: str) -> None:
    """No letter of an id is a command, and two hyphens are not a dash; a number below 0 has a minus."""
    assert latex_escape(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("doc_recall@3", "doc_recall@3"),
        ("_x_ and a_b", r"\_x\_ and a_b"),
        ("__x__", r"\_\_x\_\_"),
        ("a|b", r"a\|b"),
        ("<b>&lt;", r"\<b\>\&lt;"),
        ("~~x~~ *y* `z` [l](u) #", r"\~\~x\~\~ \*y\* \`z\` \[l\](u) \#"),
        ("$a$ b", r"\$a\$ b"),
        ("@name, (x)@10 and a@b", "`@name`, (x)`@10` and a@b"),
        ("`@x`", r"\``@x`\`"),
        ("- a - b", r"\- a - b"),
        ("+ a", r"\+ a"),
        ("--- x", r"\--- x"),
        ("1. a 2. b", r"1\. a 2. b"),
        ("12) a", r"12\) a"),
        ("-0.031 [-0.049, -0.014]", r"-0.031 \[-0.049, -0.014\]"),
        ("1.5 +0.3", "1.5 +0.3"),
    ],
)
def test_markdown_shows_text_as_it_is(text: str, expected: str) -> None:
    """Nothing that is emphasis, a link, a formula, a list, an entity, a tag or a mention in Markdown is one here."""
    assert markdown_escape(text) == expected


def test_latex_table() -> None:
    """Three rules of booktabs, a caption, words to the left and numbers to the right."""
    table = Table(["cut", "n_pairs"], [["@3", "1,000"], ["@10", "null"]], caption="a less b:")
    assert to_latex([table]).splitlines() == [
        r"% \usepackage{booktabs,graphicx}",
        "",
        r"\begin{table}[htbp]",
        r"\centering",
        r"\caption{a less b:}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"cut & n\_pairs \\",
        r"\midrule",
        r"@3 & 1,000 \\",
        r"@10 & null \\",
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]


def test_latex_reads_no_options() -> None:
    """A bracket or a star at the begin of a row or an item would be an option of what stands before it."""
    out = to_latex([Table(["x"], [["[1cm]"], ["*"]]), Lines(["[a] b"])])
    assert r"{[1cm]} \\" in out
    assert r"{*} \\" in out
    assert r"\item {[a] b}" in out


def test_markdown_table() -> None:
    """Words to the left, numbers to the right, a list below."""
    blocks = [Table(["cut", "n"], [["@3", "1"]], caption="a less b:"), Lines(["x|y"])]
    assert to_markdown(blocks) == "a less b:\n\n| cut | n |\n|---|---:|\n| `@3` | 1 |\n\n- x\\|y"


def test_runs_stand_beside_each_other() -> None:
    """Four runs fit beside each other, each mean with its interval; five are lines of their own, with their n."""
    few, many = [f"r{i}" for i in range(4)], [f"r{i}" for i in range(5)]
    half, all_of_two = "0.5000 [0.000, 1.000]", "1.0000 [0.158, 1.000]"  # the second is (0.05 / 2)^(1 / 2)
    table = next(iter(of_scores(scored(*few))))
    assert isinstance(table, Table)
    assert table.columns == ["mean of", *few]
    assert table.rows == [["doc_recall@1", *[half] * 4], ["doc_recall@3", *[all_of_two] * 4]]
    table = next(iter(of_scores(scored(*many))))
    assert isinstance(table, Table)
    assert table.columns == ["run_id", "measure", "mean", "interval", "n", "n_null"]
    assert table.rows == [
        [r, f"doc_recall@{k}", *m.split(" ", 1), "2", "0"] for r in many for k, m in ((1, half), (3, all_of_two))
    ]


@pytest.mark.parametrize("command", ["score", "diagnose", "compare"])
@pytest.mark.parametrize("shown", ["latex", "markdown"])
def test_commands(command: str, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both commands print both, with the account of queries and rows, and no letter of a run's name is a command."""
    logs = pl.concat([hits(run_id=[run] * 3) for run in (NASTY, "b")])
    log, labels = write(tmp_path / "h.parquet", logs), write(tmp_path / "q.parquet", qrels())
    assert main([command, f"--hits={log}", f"--qrels={labels}", f"--format={shown}"]) == 0
    out = capsys.readouterr().out
    escaped = latex_escape(NASTY) if shown == "latex" else markdown_escape(NASTY)
    assert (f"b less {escaped}, " if command == "compare" else f"{escaped}: 2 of 2 units scored") in out
    assert NASTY not in out
    if shown == "latex":
        assert len(re.findall(r"\\begin{", out)) == len(re.findall(r"\\end{", out))
