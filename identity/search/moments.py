"""Dates in a query. A date means a span of time: the whole year, month, day or shorter unit that it names. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from identity.search.queries import InvalidSearch

_WRITTEN = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[Tt ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?([Zz]|[+-]\d\d:?\d\d)?)?)?)?", re.ASCII
)
_LAST = datetime.max.replace(tzinfo=UTC)


def span_of(text: str) -> tuple[datetime, datetime]:
    """Return the start of the span that `text` names and the start of the next span. Without a time zone, `text` is in UTC.

    `2026` is a year, `2026-01-31` a day, `2026-01-31T10:00:00.123Z` a millisecond. Raises `InvalidSearch`.
    """
    match = _WRITTEN.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        return _span(*match.groups())
    except (ValueError, OverflowError) as error:
        raise InvalidSearch(f"{text[:40]} is not a date; write 2026-01-31, or 2026-01-31T10:00:00Z") from error


def _span(year: str, month: str, day: str, hour: str, minute: str, second: str, fraction: str, zone: str) -> tuple[datetime, datetime]:
    numbers = [int(part) for part in (year, month or "1", day or "1", hour or "0", minute or "0", second or "0")]
    micro = int((fraction or "")[:6].ljust(6, "0"))
    start = datetime(*numbers, micro, tzinfo=_zone(zone)).astimezone(UTC)  # type: ignore[misc, arg-type]  # six numbers
    if fraction:
        return start, _later(start, timedelta(microseconds=10 ** max(6 - len(fraction), 0)))
    if day:
        unit = "seconds" if second else "minutes" if minute else "hours" if hour else "days"
        return start, _later(start, timedelta(**{unit: 1}))
    following = numbers[0] + 1 if not month or month == "12" else numbers[0]
    if following > _LAST.year:
        return start, _LAST
    return start, datetime(following, numbers[1] % 12 + 1 if month else 1, 1, tzinfo=UTC)


def _zone(text: str | None) -> timezone:
    if not text or text in "Zz":
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:])
    if minutes > 59:
        raise ValueError(text)
    return timezone((timedelta(hours=hours, minutes=minutes)) * (-1 if text[0] == "-" else 1))


def _later(start: datetime, span: timedelta) -> datetime:
    return _LAST if start > _LAST - span else start + span
