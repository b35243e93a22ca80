"""Rebuild the committed example data.

    python data/build.py [--out DIR]        write all tables (default: into this folder)
    python data/build.py --check            rebuild elsewhere and compare byte for byte with this folder
    python data/build.py locate DOC FIRST [LAST]
                                            print the locator of a quote, to be pasted into topics/questions.toml

Needs Python 3.11.7, whose documentation topics are the documents, and the library versions in ``LIBRARIES``. The index
has a few pages as Python 3.13.0 has them: ``--newer`` names that Python (default: ``python3.13``).
"""

import argparse
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import polars as pl
from topic_experiment import (
    NEWER_PROGRAM,
    BuildError,
    Tables,
    find_quote,
    load_pages,
    occurrences,
    short_hash,
    topic_tables,
)

HERE = Path(__file__).resolve().parent
QUESTIONS = HERE / "topics" / "questions.toml"
TREC_RUN = ("query_id", "doc_id", "rank", "score", "run_id")
LIBRARIES = {"bm25s": "0.3.16", "numpy": "2.4.6", "polars": "2.1.0"}


def case_tables() -> Tables:
    """Return the case that started the tool: one query whose first three chunks come from one document."""
    docs = ["manual", "manual", "manual", "faq", "terms"]
    hits = pl.DataFrame(
        {
            "query_id": ["q1"] * len(docs),
            "rank": range(1, len(docs) + 1),
            "chunk_id": ["manual#1", "manual#2", "manual#3", "faq#1", "terms#1"],
            "doc_id": docs,
        },
        schema_overrides={"rank": pl.Int64},
    )
    qrels = pl.DataFrame({"query_id": ["q1", "q1"], "doc_id": ["faq", "manual"], "relevance": [1, 1]})
    return {"case/hits.parquet": hits, "case/qrels.parquet": qrels}


def other_libraries() -> list[str]:
    """Return a line for every library that is not at the version the files were written with."""
    lines = []
    for name, wanted in LIBRARIES.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "none"
        if found != wanted:
            lines.append(f"{name} {found} is installed, the files were written with {wanted}")
    return lines


def trec_files(tables: Tables) -> dict[str, str]:
    """Return the run of the coarsest chunks as a TREC run of documents, the best chunk of each, and its qrels."""
    hits, qrels = tables["topics/hits/bm25-w256.parquet"], tables["topics/qrels.parquet"]
    best = hits.sort("query_id", "rank").unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    ranked = best.with_columns(pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")).filter(
        pl.col("rank") <= 10
    )
    run = [f"{q} Q0 {d} {r} {s:.6f} {t}\n" for q, d, r, s, t in ranked.select(*TREC_RUN).iter_rows()]
    labels = [f"{q} 0 {d} {g}\n" for q, d, g in qrels.select("query_id", "doc_id", "relevance").iter_rows()]
    return {"trec/bm25-w256.run": "".join(run), "trec/topics.qrels": "".join(labels)}


def build(out: Path, newer: str) -> list[str]:
    """Write every table below a folder and return the paths relative to it."""
    tables = case_tables() | topic_tables(QUESTIONS, newer)
    texts = trec_files(tables)
    for name in [*tables, *texts]:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.write_parquet(out / name, compression="zstd", compression_level=9, statistics=True)
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    return [*tables, *texts]


def check(newer: str) -> list[str]:
    """Rebuild into a temporary folder and return a line for every committed file that differs."""
    with tempfile.TemporaryDirectory() as folder:
        names = build(Path(folder), newer)
        problems = []
        for name in names:
            committed = HERE / name
            if not committed.is_file():
                problems.append(f"{name} is missing")
            elif committed.read_bytes() != (Path(folder) / name).read_bytes():
                problems.append(f"{name} differs from what the script builds")
    data = [path for path in HERE.rglob("*") if path.suffix in (".parquet", ".run", ".qrels")]
    stale = {path.relative_to(HERE).as_posix() for path in data} - set(names)
    return problems + [f"{name} is not built by the script" for name in sorted(stale)]


def locate(doc_id: str, first_words: str, last_words: str) -> str:
    """Return the locator of a quote as a line of TOML, and where else the same text stands."""
    pages = load_pages()
    if doc_id not in pages:
        raise BuildError(f"there is no page {doc_id!r}; the pages are: {', '.join(pages)}")
    start, end = find_quote(pages[doc_id], first_words, last_words)
    text = pages[doc_id][start:end]
    lines = [f'{{ id = "e1", start = {start}, end = {end}, sha256 = "{short_hash(text, 16)}" }}', "", text, ""]
    places = [place for place in occurrences(pages, text) if place != (doc_id, start, end)]
    lines += [f"the same text stands in {place} {begin}-{stop}" for place, begin, stop in places]
    return "\n".join(lines)


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:2] == ["locate"]:
        parser = argparse.ArgumentParser(prog="build.py locate", description="Print the locator of a quote.")
        parser.add_argument("doc", help="key of the page, such as assert")
        parser.add_argument("first", help="the quote, or its first words")
        parser.add_argument("last", nargs="?", default="", help="its last words")
        words = parser.parse_args(sys.argv[2:])
        print(locate(words.doc, words.first, words.last))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    parser.add_argument("--check", action="store_true", help="compare with the committed files, write nothing")
    parser.add_argument("--newer", default=NEWER_PROGRAM, help="Python 3.13.0, whose pages replace some of the others")
    args = parser.parse_args()
    for line in other_libraries():
        print(f"warning: {line}; bytes may differ", file=sys.stderr)
    if not args.check:
        print(f"{len(build(args.out, args.newer))} files written to {args.out}")
        return 0
    problems = check(args.newer)
    print("\n".join(problems) or "every file is as the script builds it")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BuildError as error:
        sys.exit(f"error: {error}")
