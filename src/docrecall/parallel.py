"""A few batches at a time: the engine uses all cores by itself, but what numpy does between its queries uses one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

WORKERS = 3  # measured on two cores: two leave a quarter of them idle, four add memory and no speed


def in_order(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Map over items in threads; results come in the order of the items, and no more than `WORKERS` are in the works.

    An error, of the work or of the items, ends the iteration after the results before it.
    """
    with ThreadPoolExecutor(WORKERS) as pool:
        going: deque[Future[R]] = deque()
        try:
            for item in items:
                going.append(pool.submit(work, item))
                if len(going) >= WORKERS:
                    yield going.popleft().result()
            while going:
                yield going.popleft().result()
        finally:
            for future in going:
                future.cancel()
