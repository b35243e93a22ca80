"""The tables of ``data/topics``: pages, chunks, labels and BM25 runs, from Python's own documentation topics."""

import hashlib
import json
import platform
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from pydoc_data import topics as pydoc_topics
from typing import Any, NamedTuple

import bm25s
import polars as pl

PYTHON_VERSION = "3.11.7"
TOPICS_SHA256 = "37b51a0283fe86090af40650ef680bba22b90f74777f29909eceb83e57cc7ff1"
NEWER_VERSION = "3.13.0"
NEWER_SHA256 = "e09f5cab5276e8f2898e88f3d6e8881df05e60d8c727c364dde7c0887b8c799f"
NEWER_PROGRAM = "python3.13"
# The index serves these pages as the newer Python has them; README.md says how they were chosen. The list is fixed, so
# that a further question does not change the index.
REPLACED = ("atom-identifiers", "exprlists", "imaginary", "nonlocal", "specialattrs", "typesmethods")
KEPT_IN_BOTH = ("augassign",)
CHUNK_SIZES = (32, 64, 128, 256)
TOP_K = 50
K1, B = 1.5, 0.75
CONTEXT_TOKENS = 512
ANSWER_SCORE = 4.0

Pages = Mapping[str, str]
Tables = dict[str, pl.DataFrame]


class BuildError(Exception):
    """The data cannot be built as recorded; the message says why."""


class Page(NamedTuple):
    """A page as one Python version has it."""

    doc_id: str
    doc_version: str
    python_version: str
    text: str


class Chunk(NamedTuple):
    """A piece of one page; the span is half-open and counts characters."""

    page: Page
    chunk_id: str
    start: int
    end: int
    n_words: int


def load_pages() -> Pages:
    """Return doc_id -> page text, or fail when this Python ships other pages than the labels were made on."""
    pages = dict(sorted(pydoc_topics.topics.items()))
    if pages_hash(pages) != TOPICS_SHA256:
        raise BuildError(
            f"the topic pages of Python {platform.python_version()} are not those of Python {PYTHON_VERSION}: "
            f"SHA-256 {pages_hash(pages)[:16]}, recorded {TOPICS_SHA256[:16]}. "
            f"Patch releases change the pages, so run this with Python {PYTHON_VERSION}."
        )
    return pages


def load_newer_pages(program: str) -> Pages:
    """Return the pages that another Python ships, or fail when they are not those that the newer chunks come from."""
    wanted = f"Give the path of a Python {NEWER_VERSION} with --newer."
    code = "import json; from pydoc_data.topics import topics; print(json.dumps(topics))"
    try:
        done = subprocess.run([program, "-I", "-c", code], capture_output=True, check=True, encoding="utf-8")
        pages = dict(sorted(json.loads(done.stdout).items()))
    except (OSError, ValueError) as error:
        raise BuildError(f"no newer pages from {program!r}: {error}. {wanted}") from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr.strip().splitlines() or ["no message"])[0]
        raise BuildError(f"no newer pages from {program!r}: exit code {error.returncode}, {said}. {wanted}") from error
    if pages_hash(pages) != NEWER_SHA256:
        raise BuildError(
            f"the topic pages of {program!r} are not those of Python {NEWER_VERSION}: "
            f"SHA-256 {pages_hash(pages)[:16]}, recorded {NEWER_SHA256[:16]}. {wanted}"
        )
    return pages


def pages_hash(pages: Pages) -> str:
    """Return the SHA-256 of all pages with their keys."""
    return hashlib.sha256(json.dumps(pages, sort_keys=True).encode()).hexdigest()


def served_pages(pages: Pages, newer: Pages) -> list[Page]:
    """Return what the index serves: most pages as they were labelled, some in the newer version, one in both."""
    now = [(doc_id, NEWER_VERSION, newer[doc_id]) for doc_id in (*REPLACED, *KEPT_IN_BOTH)]
    labelled = [(doc_id, PYTHON_VERSION, text) for doc_id, text in pages.items() if doc_id not in REPLACED]
    return [Page(doc_id, doc_version(text), python, text) for doc_id, python, text in sorted(labelled + now)]


def short_hash(text: str, digits: int) -> str:
    """Return the first hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def doc_version(text: str) -> str:
    """Return what the tables call this version of a page."""
    return short_hash(text, 12)


def cut_chunks(page: Page, size: int) -> list[Chunk]:
    """Cut a page into chunks of ``size`` words that tile it: white space belongs to the chunk before it."""
    starts = [match.start() for match in re.finditer(r"\S+", page.text)]
    bounds = [0, *starts[size::size], len(page.text)]
    name = page.doc_id if page.python_version == PYTHON_VERSION else f"{page.doc_id}/{page.python_version}"
    return [
        Chunk(page, f"{name}/w{size}/{i + 1:03}", start, end, len(starts[i * size : (i + 1) * size]))
        for i, (start, end) in enumerate(pairwise(bounds))
    ]


def find_quote(page: str, first_words: str, last_words: str = "") -> tuple[int, int]:
    """Return the span from the first words to the last; white space in the words fits any white space in the page."""
    end_words = last_words or first_words
    first, last = (re.compile(r"\s+".join(map(re.escape, words.split()))) for words in (first_words, end_words))
    begin = first.search(page)
    if begin is None:
        raise BuildError(f"not on the page: {first_words!r}")
    end = last.search(page, begin.start())
    if end is None:
        raise BuildError(f"not on the page after the first words: {last_words!r}")
    return begin.start(), end.end()


def read_quote(pages: Pages, question_id: str, doc_id: str, quote: Mapping[str, Any]) -> str:
    """Return the quoted text, or fail naming question and document when it is not what the label meant."""
    where = f"question {question_id}, document {doc_id!r}, span {quote['start']}-{quote['end']}"
    if doc_id not in pages:
        raise BuildError(f"{where}: there is no such page")
    if not 0 <= quote["start"] < quote["end"] <= len(pages[doc_id]):
        raise BuildError(f"{where}: the span is empty or leaves the page of {len(pages[doc_id])} characters")
    text = pages[doc_id][quote["start"] : quote["end"]]
    if short_hash(text, 16) != quote["sha256"]:
        raise BuildError(f"{where}: the text has hash {short_hash(text, 16)}, recorded {quote['sha256']}")
    return text


def occurrences(pages: Pages, text: str) -> Iterator[tuple[str, int, int]]:
    """Yield every place where a text stands word for word: many pages are also a section of a larger page."""
    for doc_id, page in pages.items():
        start = page.find(text)
        while start >= 0:
            yield doc_id, start, start + len(text)
            start = page.find(text, start + 1)


def read_questions(path: Path) -> list[dict[str, Any]]:
    """Return the questions, or fail when an id stands twice, a status is unknown or labels and status disagree."""
    questions: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["question"]
    seen: set[str] = set()
    for question in questions:
        question_id, gold = question["id"], question.get("gold", [])
        if question_id in seen:
            raise BuildError(f"question {question_id} stands twice")
        seen.add(question_id)
        if question.setdefault("status", "answerable") not in {"answerable", "unanswerable", "unlabelled"}:
            raise BuildError(f"question {question_id}: unknown status {question['status']!r}")
        if (question["status"] == "answerable") != bool(gold):
            raise BuildError(f"question {question_id}: {question['status']}, but {len(gold)} gold pages")
        if len({page["doc"] for page in gold}) != len(gold):
            raise BuildError(f"question {question_id}: a gold page stands twice")
    return questions


def label(pages: Pages, questions: Sequence[Mapping[str, Any]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return qrels and evidence.

    A passage that stands word for word on further pages is evidence there too, as an alternative. Such a page gets the
    grade of the page it repeats when it holds all of that page's quotes, else 1; a grade written by hand wins.
    """
    qrels: dict[tuple[str, str], int] = {}
    evidence: set[tuple[str, str, str, int, int]] = set()
    for question in questions:
        by_hand = {gold["doc"]: gold["relevance"] for gold in question.get("gold", [])}
        grades = dict(by_hand)
        for gold in question.get("gold", []):
            held: dict[str, set[str]] = {}
            for quote in gold["quotes"]:
                text = read_quote(pages, question["id"], gold["doc"], quote)
                for doc_id, start, end in occurrences(pages, text):
                    held.setdefault(doc_id, set()).add(text)
                    evidence.add((question["id"], f"{question['id']}-{quote['id']}", doc_id, start, end))
            for doc_id, texts in held.items():
                grade = gold["relevance"] if texts == held[gold["doc"]] else 1
                grades[doc_id] = by_hand.get(doc_id, max(grade, grades.get(doc_id, 0)))
        qrels |= {(question["id"], doc_id): grade for doc_id, grade in grades.items()}
    qrel_rows = [(*key, grade, doc_version(pages[key[1]])) for key, grade in sorted(qrels.items())]
    evidence_rows = [(*row, doc_version(pages[row[2]])) for row in sorted(evidence)]
    return (
        pl.DataFrame(
            qrel_rows,
            schema={"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64, "doc_version": pl.String},
            orient="row",
        ),
        pl.DataFrame(
            evidence_rows,
            schema={
                "query_id": pl.String,
                "evidence_id": pl.String,
                "doc_id": pl.String,
                "start": pl.Int64,
                "end": pl.Int64,
                "doc_version": pl.String,
            },
            orient="row",
        ),
    )


def search(served: Sequence[Page], questions: Sequence[Mapping[str, Any]], size: int) -> pl.DataFrame:
    """Return the best chunks of one size for every question, as BM25 ranks them, and whether they were passed on."""
    chunks = [chunk for page in served for chunk in cut_chunks(page, size)]
    tokens = bm25s.tokenize([c.page.text[c.start : c.end] for c in chunks], show_progress=False)
    index = bm25s.BM25(method="lucene", k1=K1, b=B, dtype="float64", backend="numpy")
    index.index(tokens, show_progress=False)
    run, rows = f"bm25-w{size}", []
    for question in sorted(questions, key=lambda question: question["id"]):
        words = bm25s.tokenize(question["text"], return_ids=False, show_progress=False)[0]
        if not words:  # a question of symbols and stop words alone; the library cannot score it
            continue
        # All chunks are scored and sorted here: the library's own selection leaves the order of ties open.
        # Rounding comes first, so that noise in the last bits can never decide a tie.
        scored = [(round(float(score), 6), chunk) for score, chunk in zip(index.get_scores(words), chunks, strict=True)]
        best = sorted(
            (pair for pair in scored if pair[0] > 0),
            key=lambda pair: (-pair[0], pair[1].page.doc_id, pair[1].chunk_id),
        )[:TOP_K]
        rows += [
            (run, question["id"], rank, score, c.chunk_id, c.page.doc_id, c.page.doc_version, c.start, c.end, c.n_words)
            for rank, (score, c) in enumerate(best, start=1)
        ]
    schema = {
        "run_id": pl.String,
        "query_id": pl.String,
        "rank": pl.Int64,
        "score": pl.Float64,
        "chunk_id": pl.String,
        "doc_id": pl.String,
        "doc_version": pl.String,
        "chunk_start": pl.Int64,
        "chunk_end": pl.Int64,
        "n_tokens": pl.Int64,
    }
    passed_on = pl.col("n_tokens").cum_sum().over("query_id") <= CONTEXT_TOKENS
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(passed_on.alias("in_context"))


def answer(hits: pl.DataFrame, queries: pl.DataFrame) -> pl.DataFrame:
    """Return what became of every question in one run: it is declined when its best hit scores too low."""
    best = hits.group_by("run_id", "query_id").agg(pl.col("score").max())
    asked = queries.select("query_id").join(hits.select("run_id").unique(), how="cross")
    return (
        asked.join(best, on=["run_id", "query_id"], how="left")
        .select(
            "run_id",
            "query_id",
            retrieved=pl.col("score").is_not_null(),
            answered=(pl.col("score") >= ANSWER_SCORE).fill_null(value=False),
        )
        .sort("run_id", "query_id")
    )


def topic_tables(questions_file: Path, newer_program: str) -> Tables:
    """Return every table of ``data/topics`` under its path."""
    pages, questions = load_pages(), read_questions(questions_file)
    served = served_pages(pages, load_newer_pages(newer_program))
    qrels, evidence = label(pages, questions)
    queries = pl.DataFrame(
        [(q["id"], q["text"], q["area"], q["status"]) for q in sorted(questions, key=lambda q: q["id"])],
        schema=dict.fromkeys(("query_id", "query", "topic_area", "label_status"), pl.String),
        orient="row",
    )
    documents = pl.DataFrame(
        # The title is made from the key: the heading of a page is already a piece of its text.
        [(p.doc_id, p.doc_version, f"Python topic: {p.doc_id}", p.python_version, len(p.text)) for p in served],
        schema={
            **dict.fromkeys(("doc_id", "doc_version", "title", "python_version"), pl.String),
            "n_chars": pl.Int64,
        },
        orient="row",
    )
    runs = {f"hits/bm25-w{size}": search(served, questions, size) for size in CHUNK_SIZES}
    requests = pl.concat([answer(hits, queries) for hits in runs.values()])
    named = {"qrels": qrels, "evidence": evidence, "queries": queries, "documents": documents, "requests": requests}
    return {f"topics/{name}.parquet": table for name, table in (named | runs).items()}
