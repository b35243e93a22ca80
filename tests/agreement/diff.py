"""Score generated cases and compare them with the reference: `python -m tests.agreement.diff [CALLS] [FIRST_SEED]`."""

from __future__ import annotations

import sys
import traceback
from random import Random

from tests.agreement.compare import check
from tests.agreement.strategies import build


def main(calls: int = 10_000, first: int = 0) -> int:
    """Print each seed that differs; exit code 1 when there was one."""
    units = failed = 0
    for seed in range(first, first + calls):
        try:
            units += check(build(Random(seed), 30))
        except Exception:
            failed += 1
            print(f"seed {seed}:\n{traceback.format_exc(limit=-3)}", flush=True)
            if failed == 10:
                break
    print(f"{calls} calls, {units} units, {failed} differ")
    return 1 if failed or not units else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
