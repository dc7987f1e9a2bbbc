"""Reads all users of a SCIM server, page by page (RFC 7644, 3.4.2.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from provisioning.scim import responses
from provisioning.scim.transport import Request, ScimTransport

# Users per page. An answer may have at most 1 MiB, and a user may contain a photo.
PAGE_USERS = 100


@dataclass(frozen=True)
class Page:
    """A page of users, and the start index of the next page; None after the last page."""

    users: list[dict[str, Any]]
    next_start: int | None


def page_of_users(transport: ScimTransport, start: int) -> Page:
    """Return users from the 1-based index `start`, as many as the server returns.

    `totalResults` determines the last page, because a server that ignores `startIndex` returns all users in every answer.
    """
    query = f"startIndex={start}&count={PAGE_USERS}"
    answer = transport.send(Request("GET", f"/Users?{query}", "/Users?startIndex", f"/Users?{query}"))
    if answer.status == 200 and _is_empty(answer.body):
        return Page([], None)
    users = responses.found_resources(answer.status, answer.body)
    total = orjson.loads(answer.body).get("totalResults")
    following = start + len(users)
    return Page(users, following if users and isinstance(total, int) and following <= total else None)


def _is_empty(body: bytes) -> bool:
    """Tell whether the answer has no results; such an answer may have no `Resources` (RFC 7644, 3.4.2)."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(document, dict) and document.get("totalResults") == 0 and "Resources" not in document
