"""Threads: results and errors arrive where they are asked for, in the order of what was given."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from docrecall.parallel import WORKERS, ahead, in_order


def test_work_ahead_goes_on_meanwhile() -> None:
    """It runs beside its caller, not when it is asked for; and it may be asked for twice."""
    begun, go_on = threading.Event(), threading.Event()

    def work(number: int) -> int:
        begun.set()
        assert go_on.wait(30)
        return number + 1

    result = ahead(work, 1)
    assert begun.wait(30)
    go_on.set()
    assert (result(), result()) == (2, 2)


def test_an_error_ahead_is_raised_where_it_is_asked_for() -> None:
    """Not in the thread, where nobody would see it, and not before."""

    def work() -> None:
        raise ValueError("found")

    result = ahead(work)
    with pytest.raises(ValueError, match="found"):
        result()


def test_results_keep_the_order_of_their_items() -> None:
    """Although the first item is the last to be done."""
    last_begun = threading.Event()

    def work(number: int) -> int:
        if number == WORKERS - 1:
            last_begun.set()
        if number == 0:
            assert last_begun.wait(30)
        return number

    assert list(in_order(work, range(2 * WORKERS))) == list(range(2 * WORKERS))


def test_an_error_of_the_work_comes_after_the_results_before_it() -> None:
    """So that a journal holds all that was done."""
    results = in_order(lambda number: 1 // (3 - number), range(9))
    assert [next(results) for _ in range(3)] == [0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_an_error_of_the_items_ends_the_iteration() -> None:
    """What was in the works by then is not waited for."""

    def items() -> Iterator[int]:
        yield from range(5)
        raise ValueError("items")

    got: list[int] = []
    with pytest.raises(ValueError, match="items"):
        got.extend(in_order(lambda number: number, items()))
    assert got == list(range(len(got)))
