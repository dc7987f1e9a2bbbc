"""Parses the times that operators type: `10m`, `2h`, `7d`, or an RFC 3339 time. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_AGE = re.compile(r"([0-9]{1,9})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class InvalidMoment(ValueError):
    """The text is not a time; the message names the accepted forms."""


def wire_moment(text: str, now: datetime) -> str:
    """Return the time in the 20 characters of `from_timestamp`, rounded down to the second. Raises `InvalidMoment`."""
    age = _AGE.fullmatch(text)
    try:
        moment = now - timedelta(**{_UNITS[age[2]]: int(age[1])}) if age else datetime.fromisoformat(text.upper())
        if moment.tzinfo is None:
            raise InvalidMoment(f"{text!r} has no time zone; end it with Z or an offset such as +02:00.")
        return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except InvalidMoment:
        raise
    except (ValueError, OverflowError) as error:
        raise InvalidMoment(f"{text!r} is not a time: give an age such as 90s, 10m, 2h or 7d, or 2026-05-01T12:00:00Z.") from error
