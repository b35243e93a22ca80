"""The command `compare`: two folders of results, or the runs of some tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Group, Parameter

from docrecall.arguments import ComparedTables, IntervalOptions, Policies, Shown, named_paths
from docrecall.errors import UsageError
from docrecall.options import Options
from docrecall.printing import printing, progress

_RUNS = Group("Runs", sort_key=0)


def compare(
    *folders: Annotated[
        str,
        Parameter(group=_RUNS, help="Folders of results: the baseline, and the candidate. One is compared in itself."),
    ],
    tables: ComparedTables | None = None,
    baseline: Annotated[
        str | None, Parameter(group=_RUNS, help="The run that others are compared with; by default all pairs are.")
    ] = None,
    candidate: Annotated[
        list[str] | None, Parameter(group=_RUNS, negative="", help="The run that is compared with it. May repeat.")
    ] = None,
    measure: Annotated[
        list[str] | None,
        Parameter(negative="", help="Such as doc_recall@1,3. Of folders by default all, which must be the same."),
    ] = None,
    flips: Annotated[
        bool,
        Parameter(
            negative="",
            help="Show also the queries whose value is higher (in data: gained), lower (lost), and kept by other "
            "documents; csv and parquet hold them alone.",
        ),
    ] = False,
    format: Shown = "table",
    intervals: IntervalOptions | None = None,
    policies: Policies | None = None,
) -> int:
    """Say how runs differ, unit by unit, with intervals and tests. The Python twin is docrecall.compare.

    Either two folders that `docrecall score --out` wrote, or tables whose hits have several runs. Of folders, --by and
    --cluster need --queries or --requests again.
    """
    from docrecall.compare import compare as compared  # noqa: PLC0415
    from docrecall.measures.grammar import parse_all  # noqa: PLC0415
    from docrecall.measures.registry import DEFAULT_MEASURES  # noqa: PLC0415
    from docrecall.report import comparison, terminal  # noqa: PLC0415
    from docrecall.score import Work, open_tables, score_inputs  # noqa: PLC0415
    from docrecall.sources.mapping import parse_mapping  # noqa: PLC0415

    how = (intervals or IntervalOptions()).asked()
    runs: dict[str, Any] = {"baseline": baseline, "candidate": candidate}
    if not folders:
        if tables is None or not tables.hits:
            raise UsageError("compare needs two folders of results, or --hits and --qrels of the runs to compare.")
        options = Options(**asdict(policies or Policies()))
        inputs = open_tables(named_paths(tables.hits), tables.labels, parse_mapping(tables.map, tables.read))
        wanted = parse_all(DEFAULT_MEASURES if measure is None else measure)
        with progress() as watch:
            scores = score_inputs(inputs, wanted, options, Work(progress=watch))
        told = compared(scores, **runs, **how)
    else:
        if len(folders) > 2:
            raise UsageError(f"compare takes one folder or two, and {len(folders)} were given.")
        given = asdict(tables or ComparedTables())
        unread = [name for name, value in given.items() if value and name not in ("queries", "requests", "map", "read")]
        if unread or policies not in (None, Policies()):
            first = f"--{unread[0]}" if unread else "a policy"
            raise UsageError(f"folders were scored already, and {first} would not be read. Give folders, or tables.")
        beside: dict[str, Any] = {name: given[name] for name in ("queries", "requests", "map", "read")}
        second = folders[1] if len(folders) > 1 else None
        told = compared(folders[0], second, measures=measure, **runs, **how, **beside)
    with printing():
        if format == "table":
            comparison.print_comparison(told, terminal.console(), flips=flips)
        else:
            comparison.write(told, format, flips=flips)
            if format in ("csv", "parquet"):  # these have no place for sentences
                comparison.print_notes(told, terminal.console(stderr=True), flips=flips)
    return 0
