"""Arguments of the statistics: what is no finite number, no count or no level is refused with its name."""

from __future__ import annotations

from numbers import Real

import numpy as np
import numpy.typing as npt

from docrecall.errors import UsageError, nearest
from docrecall.measures.definition import Floats, Ints

# Counts are added up as doubles somewhere on the way; up to here that is exact.
_MOST = 2**53


def floats(name: str, given: npt.ArrayLike) -> Floats:
    """Give an array of finite doubles of one dimension, in which -0.0 is 0.0."""
    array = np.asarray(given)
    if array.ndim != 1:
        raise UsageError(f"{name} has {array.ndim} dimensions; one row of numbers was expected.")
    if array.size and array.dtype.kind not in "biufO":
        raise UsageError(f"{name} holds {array.dtype.name}; numbers were expected. Nothing is cast for you.")
    try:
        found = array.astype(np.float64, copy=False) + 0.0  # an array of its own, which may be sorted in place
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} holds something that is no number.") from error
    bad = found.size - np.count_nonzero(np.isfinite(found))
    if bad:
        raise UsageError(f"{name} holds {bad} of {found.size} values that are NaN, null or infinite. Leave them out.")
    return found


def counts(name: str, given: npt.ArrayLike, length: int) -> Ints:
    """Give whole numbers of at least 0, one for each value."""
    array = floats(name, given)
    same_length(name, array, length)
    if array.size and (float(array.min()) < 0 or bool((array != np.floor(array)).any())):
        raise UsageError(f"{name} must be whole numbers of at least 0: they say how often each value occurs.")
    if float(array.sum()) >= _MOST:
        raise UsageError(f"{name} add up to 2^53 or more; that many units cannot be counted.")
    return array.astype(np.int64)


def weights(name: str, given: npt.ArrayLike, length: int) -> Floats:
    """Give finite weights of at least 0, one for each value; not all of them 0."""
    array = floats(name, given)
    same_length(name, array, length)
    if array.size and float(array.min()) < 0:
        raise UsageError(f"{name} holds {int((array < 0).sum())} negative weights; 0 is the least.")
    if array.size and float(array.max()) == 0:
        raise UsageError(f"{name} add up to 0, so there is no mean.")
    return array


def labels(name: str, given: npt.ArrayLike, length: int) -> npt.NDArray[np.generic]:
    """Give labels that can be compared with each other, one for each value."""
    array = np.asarray(given)
    same_length(name, array, length)
    empty = array != array  # noqa: PLR0124 - NaN of any kind
    kinds = {type(label) for label in array.tolist()} if array.dtype.kind == "O" else set()
    if bool(np.any(empty)) or len(kinds) > 1 or type(None) in kinds:
        raise UsageError(f"{name} holds null labels or labels of several kinds; text or whole numbers were expected.")
    return array


def same_length(name: str, array: npt.NDArray[np.generic], length: int) -> None:
    """Refuse an array that does not have one entry for each value."""
    if array.shape != (length,):
        raise UsageError(f"{name} has the shape {array.shape}; one entry for each of the {length} values was expected.")


def check_level(name: str, level: float) -> None:
    """Refuse what is not between 0 and 1, both excluded."""
    if not (is_number(level) and 0 < level < 1):
        raise UsageError(f"{name} is {level!r}; it must lie between 0 and 1, as in {name}=0.95.")


def check_resampling(resamples: int, seed: int) -> None:
    """Refuse resamples below 1 and seeds below 0."""
    if not _whole(resamples) or resamples < 1:
        raise UsageError(f"resamples is {resamples!r}; it must be a whole number of at least 1.")
    if not _whole(seed) or seed < 0:
        raise UsageError(f"seed is {seed!r}; it must be a whole number of at least 0.")


def check_word(name: str, word: str, known: tuple[str, ...]) -> None:
    """Refuse a word that is none of the known ones."""
    if word not in known:
        raise UsageError(f"{name} is {word!r}; expected one of {', '.join(known)}.{nearest(str(word), known)}")


def is_number(value: object) -> bool:
    """Whether this is a number, and not text that looks like one."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _whole(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
