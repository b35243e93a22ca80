"""Score a log into a folder and print the hash of every file of results; a child of `bits.py`.

python benchmarks/one_result.py LOG_FOLDER OUT [--batch-rows N] [--memory 1GB] [--kill-in BATCH]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
from pathlib import Path

from log import CUTS, LogFiles

NAMES = ("doc_recall", "doc_ap", "doc_ndcg")  # sums of fractions show an order that changed
COMPARED = ("per_query", "decided", "summary", "accounting", "decisions")


def main() -> None:
    """Score, unless told to die on the way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--batch-rows", type=int)
    parser.add_argument("--memory")
    parser.add_argument("--kill-in", type=int, default=0)
    arguments = parser.parse_args()

    from docrecall import score  # noqa: PLC0415 - the help text need not wait for it

    done = 0

    def count(*_: int) -> None:
        nonlocal done
        done += 1
        if done == arguments.kill_in:
            os.kill(os.getpid(), signal.SIGKILL)

    files = LogFiles(arguments.log)
    size = {} if arguments.batch_rows is None else {"batch_rows": arguments.batch_rows}
    measures = [f"{name}@{k}{unit}" for name in NAMES for unit in ("", "docs") for k in CUTS]
    score(files.hits, files.qrels, measures, out=arguments.out, memory=arguments.memory, progress=count, **size)
    print(json.dumps({name: digest(arguments.out / f"{name}.parquet") for name in COMPARED}))


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main()
