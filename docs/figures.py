"""Draw the figures of the README again, or say that they are old.

python docs/figures.py            # write
python docs/figures.py --check    # exit 1 when a figure is not what would be written
"""

from __future__ import annotations

import sys
from pathlib import Path

import docrecall as dr

ROOT = Path(__file__).parents[1]
FIGURES = Path(__file__).parent / "figures"


def verdict() -> dr.Diagnosis:
    """Why the number moved between chunks of 256 words and smaller ones, on the data in the repository."""
    topics = ROOT / "data" / "topics"
    tables = {name: topics / f"{name}.parquet" for name in ("qrels", "queries", "evidence", "documents")}
    scores = dr.score(topics / "hits", measures="doc_recall@10", **tables)
    return dr.diagnose(scores, [10], [512, 2048], baseline="bm25-w256")


def draw() -> dict[str, str]:
    """Name of a file -> SVG."""
    import vl_convert  # noqa: PLC0415 - what needs only the numbers can do without

    chart = dr.plot.differences(verdict(), pairs=[("bm25-w256", "bm25-w32")])
    return {"verdict.svg": vl_convert.vegalite_to_svg(chart.to_dict()) + "\n"}


def main() -> int:
    """Write or check."""
    fresh = draw()
    if "--check" in sys.argv[1:]:
        return int(any((FIGURES / name).read_text(encoding="utf-8") != svg for name, svg in fresh.items()))
    FIGURES.mkdir(exist_ok=True)
    for name, svg in fresh.items():
        (FIGURES / name).write_text(svg, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
