"""Threads: the engine uses all cores by itself, but what stands between its queries, and numpy, uses one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

WORKERS = 3  # measured on two cores: two leave a quarter of them idle, four add memory and no speed


def ahead(work: Callable[..., R], *arguments: Any) -> Callable[[], R]:
    """Begin some work in a thread; what is returned waits for its result, or raises its error.

    Where nobody asks for the result any more, as after an error elsewhere, the work ends by itself unheard.
    """
    pool = ThreadPoolExecutor(1)
    going = pool.submit(work, *arguments)
    pool.shutdown(wait=False)
    return going.result


def in_order(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Map over items in threads; results come in the order of the items, and no more than `WORKERS` are in the works.

    An error of the work comes after the results before it; an error of the items ends the iteration at once.
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
