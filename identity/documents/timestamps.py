"""Timestamps on the wire."""

from __future__ import annotations

from datetime import UTC, datetime


def wire_time(moment: datetime) -> str:
    """Return `moment` as RFC 3339 in UTC with milliseconds and `Z`, cut off and not rounded."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
