"""Compares times that a server has returned (RFC 7643, 2.3.5) as instants. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?", re.ASCII | re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS = 9


def same_instant(one: str, other: str) -> bool:
    """Tell whether two times are equal after the more precise one is truncated or rounded to the precision of the other.

    Texts that are not times must be equal.
    """
    if one == other:
        return True
    first, second = _read(one), _read(other)
    return first is not None and second is not None and abs(first[0] - second[0]) < max(first[1], second[1])


def _read(text: str) -> tuple[int, int] | None:
    """Return nanoseconds since 1970 and the precision in nanoseconds; a time without an offset counts as UTC."""
    if (found := _TIME.fullmatch(text)) is None:
        return None
    day, clock, fraction, offset = found.groups()
    try:
        at = datetime.fromisoformat(f"{day}T{clock}{(offset or 'Z').upper()}")
    except ValueError:
        return None
    digits = (fraction or "")[:_NANOSECONDS]
    seconds = (at - _EPOCH) // timedelta(seconds=1)
    return seconds * 10**_NANOSECONDS + int(digits.ljust(_NANOSECONDS, "0")), 10 ** (_NANOSECONDS - len(digits))
