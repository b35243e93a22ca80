"""Coverage-guided random bytes against every reader of text (a chore: `make fuzz`).

python tests/fuzz/readers.py [SECONDS]

The first byte chooses the format. A file is scored or refused by one of docrecall's own errors, and every row is
accounted for; anything else stops the run and leaves the input in a file that begins with `crash-`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris
import polars as pl

with atheris.instrument_imports(include=["docrecall.sources", "docrecall.contract"]):
    import docrecall as dr
    from docrecall.score import score

NAMES = ("h.run", "h.csv", "h.tsv", "h.jsonl", "h.json", "h.csv.gz", "q.qrels", "q.csv", "q.json")
HITS = pl.DataFrame({"query_id": ["q1", "q2"], "rank": [1, 1], "doc_id": ["a", "b"]})
LABELS = pl.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["a", "b"]})
SEEDS = (
    b"\x00q1 Q0 a 1 2.5 tag\nq2\tQ0  b 2 1 tag more\n# note\n",
    b'\x01query_id,rank,doc_id\nq1,1,"a ""b"""\n"q\n2",2,b\n',
    b"\x02query_id\trank\tdoc_id\nq1\t1\ta\n",
    b'\x03{"query_id": "q1", "rank": 1, "doc_id": "a"}\n{"query_id": 7, "doc_id": ["a"]}\n',
    b'\x04{"q1": {"a": 0.5}, "q2": {}}',
    b"\x06q1 0 a 1\nq2 0 b 0\n",
)
FOLDER = Path(tempfile.mkdtemp(prefix="docrecall-fuzz-"))


def one_input(data: bytes) -> None:
    """Score one file."""
    if not data:
        return
    path = FOLDER / NAMES[data[0] % len(NAMES)]
    path.write_bytes(data[1:])
    hits, qrels = (path, LABELS) if path.name.startswith("h") else (HITS, path)
    try:
        scores = score(hits, qrels, "doc_recall@3", on_bad_rows="reject", order="score" if hits is path else "rank")
    except (dr.DataError, dr.InputError, dr.UsageError):
        return
    for row in scores.rows.to_dicts():
        if row["read"] != row["used"] + row["duplicate"] + row["rejected"] + row["outside"]:
            raise RuntimeError(f"rows are lost: {row}")


def main() -> None:
    """Fuzz for some seconds, from a few seeds."""
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(SEEDS):
        (corpus / str(number)).write_bytes(seed)
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-max_len=400", str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
