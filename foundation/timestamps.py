"""Timestamps on the wire. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def wire_time(moment: datetime) -> str:
    """Return the time in UTC with `Z` and milliseconds, which are truncated and not rounded. Raises `ValueError` without a time zone."""
    if moment.tzinfo is None:
        raise ValueError("A time on the wire needs a time zone.")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
