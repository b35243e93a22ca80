"""Write the generated parts of the README again, or say that they are old.

python docs/generate.py            # write
python docs/generate.py --check    # exit 1 when the README is not what would be written
"""

from __future__ import annotations

import sys
from pathlib import Path

from docrecall.report.measures import measures_markdown

README = Path(__file__).parents[1] / "README.md"
_BEGIN, _END = "<!-- measures: written by `make docs` -->\n", "<!-- end -->"


def with_measures(text: str) -> str:
    """Put the table of measures between its marks."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}{measures_markdown()}\n{_END}{after}"


def main() -> int:
    """Write or check."""
    text = README.read_text(encoding="utf-8")
    fresh = with_measures(text)
    if "--check" in sys.argv[1:]:
        return int(text != fresh)
    README.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
