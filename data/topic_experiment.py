"""The tables of ``data/topics``: pages, chunks, labels and BM25 runs, from Python's own documentation topics."""

import hashlib
import json
import platform
import re
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
CHUNK_SIZES = (32, 64, 128, 256)
TOP_K = 50
K1, B = 1.5, 0.75

Pages = Mapping[str, str]
Tables = dict[str, pl.DataFrame]


class BuildError(Exception):
    """The data cannot be built as recorded; the message says why."""


class Chunk(NamedTuple):
    """A piece of one page; the span is half-open and counts characters."""

    doc_id: str
    chunk_id: str
    start: int
    end: int
    n_words: int


def load_pages() -> Pages:
    """Return doc_id -> page text, or fail when this Python ships other pages than the labels were made on."""
    pages = dict(sorted(pydoc_topics.topics.items()))
    found = hashlib.sha256(json.dumps(pages, sort_keys=True).encode()).hexdigest()
    if found != TOPICS_SHA256:
        raise BuildError(
            f"the topic pages of Python {platform.python_version()} are not those of Python {PYTHON_VERSION}: "
            f"SHA-256 {found[:16]}, recorded {TOPICS_SHA256[:16]}. "
            f"Patch releases change the pages, so run this with Python {PYTHON_VERSION}."
        )
    return pages


def short_hash(text: str, digits: int) -> str:
    """Return the first hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def cut_chunks(doc_id: str, text: str, size: int) -> list[Chunk]:
    """Cut a page into chunks of ``size`` words that tile it: white space belongs to the chunk before it."""
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    bounds = [0, *starts[size::size], len(text)]
    return [
        Chunk(doc_id, f"{doc_id}/w{size}/{i + 1:03}", start, end, len(starts[i * size : (i + 1) * size]))
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
    qrel_rows = [(*key, grade) for key, grade in sorted(qrels.items())]
    evidence_rows = [(*row, short_hash(pages[row[2]], 12)) for row in sorted(evidence)]
    return (
        pl.DataFrame(
            qrel_rows, schema={"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row"
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


def search(pages: Pages, questions: Sequence[Mapping[str, Any]], size: int) -> pl.DataFrame:
    """Return the best chunks of one size for every question, as BM25 ranks them."""
    chunks = [chunk for doc_id, text in pages.items() for chunk in cut_chunks(doc_id, text, size)]
    tokens = bm25s.tokenize([pages[c.doc_id][c.start : c.end] for c in chunks], show_progress=False)
    index = bm25s.BM25(method="lucene", k1=K1, b=B, dtype="float64", backend="numpy")
    index.index(tokens, show_progress=False)
    rows = []
    for question in sorted(questions, key=lambda question: question["id"]):
        words = bm25s.tokenize(question["text"], return_ids=False, show_progress=False)[0]
        if not words:  # a question of symbols and stop words alone; the library cannot score it
            continue
        # All chunks are scored and sorted here: the library's own selection leaves the order of ties open.
        # Rounding comes first, so that noise in the last bits can never decide a tie.
        scored = [(round(float(score), 6), chunk) for score, chunk in zip(index.get_scores(words), chunks, strict=True)]
        best = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: (-pair[0], pair[1][:2]))[:TOP_K]
        rows += [
            (f"bm25-w{size}", question["id"], rank, score, c.chunk_id, c.doc_id, c.start, c.end, c.n_words)
            for rank, (score, c) in enumerate(best, start=1)
        ]
    schema = {
        "run_id": pl.String,
        "query_id": pl.String,
        "rank": pl.Int64,
        "score": pl.Float64,
        "chunk_id": pl.String,
        "doc_id": pl.String,
        "chunk_start": pl.Int64,
        "chunk_end": pl.Int64,
        "n_tokens": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def topic_tables(questions_file: Path) -> Tables:
    """Return every table of ``data/topics`` under its path."""
    pages, questions = load_pages(), read_questions(questions_file)
    qrels, evidence = label(pages, questions)
    queries = pl.DataFrame(
        [(q["id"], q["text"], q["area"], q["status"]) for q in sorted(questions, key=lambda q: q["id"])],
        schema=dict.fromkeys(("query_id", "query", "topic_area", "label_status"), pl.String),
        orient="row",
    )
    documents = pl.DataFrame(
        # The title is made from the key: the heading of a page is already a piece of its text.
        [(key, short_hash(text, 12), f"Python topic: {key}", len(text)) for key, text in pages.items()],
        schema={"doc_id": pl.String, "doc_version": pl.String, "title": pl.String, "n_chars": pl.Int64},
        orient="row",
    )
    named = {"qrels": qrels, "evidence": evidence, "queries": queries, "documents": documents}
    runs = {f"hits/bm25-w{size}": search(pages, questions, size) for size in CHUNK_SIZES}
    return {f"topics/{name}.parquet": table for name, table in (named | runs).items()}
