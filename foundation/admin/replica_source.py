"""Chooses the database that answers a list of the admin, so that members of staff see their own changes. Decision: docs/adr/0131.

A cookie stores the time of the last change that a browser requested. A replica serves lists to this browser only if the replica contains
all changes up to that time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from foundation.database.replica import PRIMARY, Source, has_replica, reading_source

_COOKIE = "changed_at"
_READING = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# Margin for a difference between the clocks of this machine and the database.
_CLOCKS = timedelta(seconds=1)


def source_of(request: HttpRequest) -> Source:
    """Return the database for the list of this request. A request that changes something reads from the primary."""
    if request.method not in _READING:
        return PRIMARY
    return reading_source(after=_changed_at(request))


def note_change(request: HttpRequest, response: Any) -> None:
    """Set a cookie with the present time, because the request may have changed something. Without a replica, no cookie is set."""
    if request.method in _READING or not has_replica():
        return
    response.set_cookie(
        _COOKIE,
        str(int(datetime.now(UTC).timestamp() * 1000)),
        # The cookie expires when every replica in use contains the change: a replica whose lag exceeds `REPLICA_MAX_LAG_SECONDS` is never
        # used.
        max_age=int(settings.REPLICA_MAX_LAG_SECONDS) + 2,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )


def _changed_at(request: HttpRequest) -> datetime | None:
    text = request.COOKIES.get(_COOKIE, "")
    if not (text.isascii() and text.isdigit() and len(text) < 15):
        return None
    return datetime.fromtimestamp(int(text) / 1000, UTC) + _CLOCKS
