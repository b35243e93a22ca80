"""Nights: a night is the half-open UTC day from its date's midnight to the next, and a date is never anything else."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from docrecall.errors import IncompleteError, UsageError
from docrecall.show import printable

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# What a path may say of a date: the whole of it, or its parts. Nothing else can come out of it than digits.
_PLACE = re.compile(r"\{(date)(?::((?:%[Ymdj]|[-/_=A-Za-z0-9])+))?\}")
_MOST_NIGHTS = 3_660


def parse_date(option: str, text: str) -> date:
    """Read `2026-11-30`, and nothing that is written in another way."""
    try:
        if not _DATE.fullmatch(text):
            raise ValueError  # noqa: TRY301 - Python reads 20261130 and 2026-W49-1 too
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} is '{printable(text, 40)}'; a date was expected, as in 2026-11-30.") from None


def nights(option: str, since: date, until: date) -> list[date]:
    """All dates from the first to the last, both included."""
    if until < since:
        raise UsageError(f"{option}: {until} comes before {since}.")
    n = (until - since).days + 1
    if n > _MOST_NIGHTS:
        raise UsageError(f"{option}: {n:,} nights; at most {_MOST_NIGHTS:,} are worked on in one call.")
    return [since + timedelta(days=k) for k in range(n)]


def last_whole(now: datetime | None = None) -> date:
    """The last UTC day that is over."""
    return (now or datetime.now(UTC)).astimezone(UTC).date() - timedelta(days=1)


def bounds(night: date) -> tuple[datetime, datetime]:
    """The first moment of a night, and the first one after it."""
    start = datetime.combine(night, time(), tzinfo=UTC)
    return start, start + timedelta(days=1)


def refuse_unfinished(night: date, now: datetime | None = None) -> None:
    """Refuse a night that is not over: what is there of it is not all of it."""
    if bounds(night)[1] > (now or datetime.now(UTC)):
        raise IncompleteError(f"{night} is not over yet: a night is the UTC day, and its log can still grow.")


def is_dated(path: str) -> bool:
    """Whether a path has a place for the date."""
    return _PLACE.search(path) is not None


def fill(path: str, night: date) -> str:
    """Put a date into the places of a path: `{date}`, or `{date:%Y/%m/%d}`."""
    return _PLACE.sub(lambda place: night.strftime(place[2]) if place[2] else night.isoformat(), path)


def names_a_day(path: str) -> bool:
    """Whether the places of a path say a whole date: of two nights they then never say the same."""
    told = {d for place in _PLACE.finditer(path) for d in (re.findall("%(.)", place[2]) if place[2] else "Ymd")}
    return told >= set("Ymd") or told >= set("Yj")


def with_digits(path: str, digit: str) -> str:
    """Put a sign for each digit of a date into the places of a path."""
    shape = {"%Y": digit * 4, "%m": digit * 2, "%d": digit * 2, "%j": digit * 3}
    return _PLACE.sub(lambda p: re.sub("%[Ymdj]", lambda d: shape[d[0]], p[2] or "%Y-%m-%d"), path)


def stray_braces(path: str) -> bool:
    """Whether a path has braces that are no place for a date."""
    return bool(re.search(r"[{}]", _PLACE.sub("", path)))
