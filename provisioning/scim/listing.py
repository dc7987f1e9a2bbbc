"""Reading all users of a SCIM server, page by page (RFC 7644, 3.4.2.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from provisioning.scim import responses
from provisioning.scim.transport import Request, ScimTransport

# An answer is at most 1 MiB long, and a user may have a photo in it.
PAGE_USERS = 100


@dataclass(frozen=True)
class Page:
    """Some users, and where the next ones begin; None after the last."""

    users: list[dict[str, Any]]
    next_start: int | None


def page_of_users(transport: ScimTransport, start: int) -> Page:
    """Return the users from the 1-based place `start` on, as many as the server gives.

    `totalResults` is what ends the reading: a server that ignores `startIndex` answers with everybody, again and again.
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
    """RFC 7644, 3.4.2: without results `Resources` may be left out."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(document, dict) and document.get("totalResults") == 0 and "Resources" not in document
