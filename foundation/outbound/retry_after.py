"""Reads `Retry-After`: seconds or a date (RFC 9110, 10.2.3). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

SHORTEST_SECONDS = 1.0
LONGEST_SECONDS = 24 * 3600.0


def retry_after(
    headers: Mapping[str, str], now: datetime, *, shortest: float = SHORTEST_SECONDS, longest: float = LONGEST_SECONDS
) -> float | None:
    """Return how many seconds the server asks the client to wait: at least `shortest`, at most `longest`. None without a valid value."""
    value = next((text for name, text in headers.items() if name.lower() == "retry-after"), "").strip()
    if re.fullmatch(r"[0-9]{1,20}", value):
        return min(max(float(value), shortest), longest)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    # A date without a zone is GMT, the only zone of HTTP dates.
    seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
    return min(max(seconds, shortest), longest)
