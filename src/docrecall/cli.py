"""The command: parse, call, print, exit code. Everything it does can be done with `docrecall.score` in Python."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, UnusedCliTokensError

from docrecall.arguments import (
    HITS_HELP,
    MAP_HELP,
    READ_HELP,
    TABLES,
    FunnelOptions,
    IntervalOptions,
    Policies,
    Shown,
    Tables,
    named_paths,
    whole_numbers,
)
from docrecall.commands import compare
from docrecall.errors import DataError, DocrecallError, UsageError
from docrecall.nightly.cli import nightly
from docrecall.options import Options
from docrecall.printing import drop_stdout, printing, progress
from docrecall.show import printable
from docrecall.version import __version__

# Commands import what they use when they run: `docrecall --help` loads neither polars nor numpy.

BUG, INTERRUPTED, BROKEN_PIPE = 70, 130, 141

app = App(
    name="docrecall",
    help="Score retrieval logs at document level: both cuts, every query and row accounted for.",
    version=__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
)
app.command(nightly)


@app.command
def score(
    tables: Tables,
    *,
    measure: Annotated[
        list[str] | None,
        Parameter(
            negative="", help="Such as doc_recall@1,3,512tokens, or 'evidence_recall(gap=2)@context'. May repeat."
        ),
    ] = None,
    out: Annotated[str | None, Parameter(help="A folder for the results, replaced as a whole.")] = None,
    format: Shown = "table",
    batch_rows: Annotated[int | None, Parameter(help="About how many hits are worked on at a time.")] = None,
    memory: Annotated[
        str | None, Parameter(help="The most memory to hold, such as 1GB: batches follow, or it is an error.")
    ] = None,
    explain_plan: Annotated[
        bool, Parameter(negative="", help="Print how the tables would be worked on, and why; score nothing.")
    ] = False,
    funnel: FunnelOptions | None = None,
    intervals: IntervalOptions | None = None,
    policies: Policies | None = None,
) -> int:
    """Score hits against labels. The Python twin is docrecall.score."""
    from docrecall.funnel import funnel as follow  # noqa: PLC0415
    from docrecall.funnel import plan_steps  # noqa: PLC0415
    from docrecall.measures.grammar import parse_all  # noqa: PLC0415
    from docrecall.measures.registry import DEFAULT_MEASURES  # noqa: PLC0415
    from docrecall.memory import parse_bytes  # noqa: PLC0415
    from docrecall.report import files, terminal  # noqa: PLC0415
    from docrecall.score import Work, explain, open_tables, score_inputs  # noqa: PLC0415
    from docrecall.sources.mapping import parse_mapping  # noqa: PLC0415

    options = Options(**asdict(policies or Policies()))
    follow_by = (funnel or FunnelOptions()).asked()
    asked = list(parse_all(DEFAULT_MEASURES if measure is None else measure))
    inputs = open_tables(named_paths(tables.hits), tables.labels, parse_mapping(tables.map, tables.read))
    if follow_by is not None:  # one pass, and results that can be followed again after `load`
        asked += plan_steps(inputs, **follow_by).measures
    wanted = parse_all(asked)
    work = Work(memory=None if memory is None else parse_bytes(memory))
    if batch_rows is not None:
        work = work._replace(batch_rows=batch_rows)
    if explain_plan:
        lines = explain(inputs, wanted, options, work, on_disk=out is not None)
        with printing():
            print("\n".join(map(printable, lines)))
        return 0
    asked_for = (intervals or IntervalOptions()).asked()
    with progress() as watch:
        scores = score_inputs(inputs, wanted, options, work._replace(progress=watch), out=out, intervals=asked_for)
    if out is not None:
        print(f"docrecall: results are in {printable(out)}", file=sys.stderr)
    steps = None if follow_by is None else follow(scores, **follow_by)
    with printing():
        if format == "table":
            terminal.print_scores(scores, terminal.console())
            if steps is not None:
                terminal.print_funnel(steps, terminal.console())
        else:
            files.write(scores, format, steps)
            if format in ("csv", "parquet"):  # these have no place for sentences
                terminal.print_notices(scores, terminal.console(stderr=True))
    return 0


@app.command
def check(
    tables: Tables,
    *,
    measure: Annotated[
        list[str] | None,
        Parameter(negative="", help="What the tables are to serve: the columns that it reads are checked. May repeat."),
    ] = None,
    strict: Annotated[bool, Parameter(negative="", help="Let warnings fail too, with exit code 3.")] = False,
    format: Annotated[Literal["table", "json"], Parameter(help="How findings are printed on stdout.")] = "table",
    policies: Policies | None = None,
) -> int:
    """Check that the tables keep the contract, and print what is noticed, but no numbers."""
    from docrecall.measures.grammar import parse_all  # noqa: PLC0415
    from docrecall.report import files, terminal  # noqa: PLC0415
    from docrecall.score import check as check_inputs  # noqa: PLC0415
    from docrecall.score import open_tables  # noqa: PLC0415
    from docrecall.sources.mapping import parse_mapping  # noqa: PLC0415

    options = Options(**asdict(policies or Policies()))
    inputs = open_tables(named_paths(tables.hits), tables.labels, parse_mapping(tables.map, tables.read))
    with progress() as watch:
        scores = check_inputs(inputs, options, watch, parse_all(measure) if measure else ())
    with printing():
        if format == "json":
            print(files.to_json(scores))
        else:
            terminal.print_scores(scores, terminal.console())
    warnings = scores.findings["severity"].to_list().count("warning")
    told = f"{warnings} kind{'' if warnings == 1 else 's'} of warning"
    if strict and warnings:
        raise DataError(f"{told}, and --strict lets none pass.")
    print(f"docrecall: the tables keep the contract; {told}.", file=sys.stderr)
    return 0


@app.command
def diagnose(
    tables: Tables,
    *,
    k: Annotated[str, Parameter(help="Where lists are cut, in chunks.")] = "1,3,10",
    budget: Annotated[
        str | None,
        Parameter(help="Budgets in tokens, such as 512,2048, or none. By default 1, 2, 4 and 8 of the largest chunks."),
    ] = None,
    baseline: Annotated[
        str | None, Parameter(help="The run that the others are compared with; by default all pairs are.")
    ] = None,
    conventions: Annotated[
        bool,
        Parameter(
            negative="",
            help="Show also what other tools would print, by the convention that they follow; csv and parquet hold it "
            "alone.",
        ),
    ] = False,
    level: Annotated[float, Parameter(help="The confidence of intervals.")] = 0.95,
    resamples: Annotated[int, Parameter(help="How many resamples intervals are made of.")] = 10_000,
    seed: Annotated[int, Parameter(help="The seed of the intervals.")] = 0,
    format: Shown = "table",
    policies: Policies | None = None,
) -> int:
    """Say why a number moved, and why another tool says something else. The Python twin is docrecall.diagnose."""
    from docrecall.convention_means import convention_means  # noqa: PLC0415
    from docrecall.cuts import plan_diagnosis  # noqa: PLC0415
    from docrecall.diagnose import diagnose as explain  # noqa: PLC0415
    from docrecall.report import diagnosis, terminal  # noqa: PLC0415
    from docrecall.score import Work, open_tables, score_inputs  # noqa: PLC0415
    from docrecall.sources.mapping import parse_mapping  # noqa: PLC0415

    options = Options(**asdict(policies or Policies()))
    ks = whole_numbers("--k", k)
    budgets = None if budget is None else [] if budget == "none" else whole_numbers("--budget", budget)
    inputs = open_tables(named_paths(tables.hits), tables.labels, parse_mapping(tables.map, tables.read))
    plan = plan_diagnosis(inputs, inputs, ks, budgets)  # so that one pass scores all of it
    with progress() as watch:
        scores = score_inputs(inputs, plan.measures, options, Work(progress=watch))
    how: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    told = explain(scores, ks, plan.budgets or budgets, baseline=baseline, **how)
    means = convention_means(scores, ks) if conventions else None
    with printing():
        if format == "table":
            diagnosis.print_diagnosis(scores, told, means, terminal.console())
        else:
            diagnosis.write(scores, told, means, format)
            if format in ("csv", "parquet"):
                terminal.print_notices(scores, terminal.console(stderr=True))
    return 0


app.command(compare)


@app.command
def convert(
    *,
    hits: Annotated[list[str] | None, Parameter(negative="", help=HITS_HELP, group=TABLES)] = None,
    qrels: Annotated[str | None, Parameter(group=TABLES, help="The labels.")] = None,
    evidence: Annotated[str | None, Parameter(group=TABLES, help="Gold passages.")] = None,
    queries: Annotated[str | None, Parameter(group=TABLES, help="The list of queries.")] = None,
    requests: Annotated[str | None, Parameter(group=TABLES, help="Logged requests.")] = None,
    documents: Annotated[str | None, Parameter(group=TABLES, help="The documents of the index.")] = None,
    chunks: Annotated[str | None, Parameter(group=TABLES, help="The chunks of the index.")] = None,
    out: Annotated[str | None, Parameter(help="A folder for the tables, replaced as a whole.")] = None,
    to: Annotated[Literal["parquet", "trec"], Parameter(help="What is written.")] = "parquet",
    map: Annotated[list[str] | None, Parameter(negative="", help=MAP_HELP)] = None,
    read: Annotated[list[str] | None, Parameter(negative="", help=READ_HELP)] = None,
    explain: Annotated[
        bool, Parameter(negative="", help="Print how the tables would be read, as TOML for --map; write nothing.")
    ] = False,
    policies: Policies | None = None,
) -> int:
    """Write tables in any form as docrecall's own Parquet, sorted and checked, or as TREC files."""
    from docrecall import convert as converting  # noqa: PLC0415
    from docrecall.report import terminal  # noqa: PLC0415

    options = Options(**asdict(policies or Policies()))
    tables: dict[str, Any] = {
        "hits": named_paths(hits) if hits else None,
        "qrels": qrels,
        "evidence": evidence,
        "queries": queries,
        "requests": requests,
        "documents": documents,
        "chunks": chunks,
    }
    if explain:
        text = converting.explain(map=map, read=read, options=options, **tables)
        with printing():
            print(text, end="")
        return 0
    if out is None:
        raise UsageError("convert needs --out, a folder for the tables, or --explain.")
    done = converting.convert(out, to=to, map=map, read=read, options=options, **tables)
    with printing():
        terminal.print_converted(done, out, terminal.console())
    return 0


@app.command
def demo() -> int:
    """Show what smaller chunks do to a naive and to a real number, on data that comes with docrecall."""
    from docrecall.demo import print_demo  # noqa: PLC0415

    with printing():
        print_demo()
    return 0


@app.command
def measures(
    *,
    format: Annotated[Literal["table", "markdown"], Parameter(help="How the list is printed.")] = "table",
) -> int:
    """List the measures, what they mean, and their values without hits."""
    from docrecall.report.measures import print_measures  # noqa: PLC0415

    with printing():
        print_measures(format)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code (DESIGN section 7). No failure shows a traceback.

    With DOCRECALL_DEBUG set, faults of ours keep theirs.
    """
    try:
        result = app(
            list(sys.argv[1:] if argv is None else argv),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except CycloptsError as error:
        return _fail(f"{_one_line(error)} `docrecall --help` and `docrecall COMMAND --help` tell what there is.", 2)
    except DocrecallError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("interrupted.", INTERRUPTED)
    except BrokenPipeError:
        drop_stdout()
        return BROKEN_PIPE
    except BaseException as error:  # a panic of the engine is no Exception
        if isinstance(error, SystemExit | GeneratorExit):
            raise
        if os.environ.get("DOCRECALL_DEBUG"):
            raise
        return _fail(
            f"this is a fault of docrecall ({type(error).__name__}). What was printed is not whole. Please report it, "
            "with the output of the same command under DOCRECALL_DEBUG=1.",
            BUG,
        )
    return result if isinstance(result, int) else 0


def _one_line(error: CycloptsError) -> str:
    text = printable(" ".join(str(error).split()), longest=1000)
    if isinstance(error, MissingArgumentError):
        text = re.sub(r"parameter (--[\w-]+) requires an argument", r"needs \1, which is missing or has no value", text)
    if isinstance(error, UnusedCliTokensError):
        text += " Give each value its own option (--hits A --hits B), and quote patterns that the shell would expand."
    return text


def _fail(message: str, code: int) -> int:
    print(f"docrecall: {message}", file=sys.stderr)
    return code


def run() -> None:
    """Run as the `docrecall` command."""
    if not os.environ.get("DOCRECALL_DEBUG"):
        _quiet_engine()
    sys.exit(main())


def _quiet_engine() -> None:
    """Keep stderr for our own messages: on damaged files the engine's threads print twenty lines for each panic.

    One Ctrl-C can be raised twice, and the second time where Python can only print that it ignores it.
    """
    sys.unraisablehook = lambda _: None
    if sys.stderr is None:
        return
    ours = os.dup(sys.stderr.fileno())
    sys.stderr = os.fdopen(ours, "w", buffering=1, encoding=sys.stderr.encoding, errors="backslashreplace")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
