"""`GET /user/ssodata`: whether a user is logged in with this browser, for login forms that offer the account again.

The cookie identifies the user, so only pages of this host, and pages of first-party clients with their own login forms, get the answer.
"""

from __future__ import annotations

from typing import Any

from authapi.login.cookies import SESSION
from authapi.login.sessions import find_session
from authapi.models import Session
from authapi.protocols.legacy.browser_headers import cookie_of, is_own_page, is_registered_origin
from authapi.protocols.legacy.opting_in import takes_own_forms
from authapi.protocols.legacy.requests import LegacyRequest, Reply, client_named
from authapi.protocols.legacy.token_replies import NO_STORE

# These headers keep the answer out of caches. Pages of other origins cannot load it as a script, a style sheet or an image.
_HEADERS = {**NO_STORE, "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "Vary": "Origin, Cookie"}
_UNKNOWN: dict[str, Any] = {"sso": False}


def sso_data(request: LegacyRequest) -> Reply:
    """Return the session's data for a login form. Raises `RequestRefused` for a malformed query."""
    reader = _reader(request)
    if reader is None:
        return Reply(_UNKNOWN, headers=_HEADERS)
    session = find_session(tenant_id=request.host.tenant_id, cookie=cookie_of(request, SESSION))
    members = _UNKNOWN if session is None else _told(session)
    return Reply(members, headers=_HEADERS if not reader else {**_HEADERS, "Cross-Origin-Resource-Policy": "cross-origin"}, reader=reader)


def _reader(request: LegacyRequest) -> str | None:
    """Return the origin that may read the answer, empty for a page of this host; None if the page may not read the answer."""
    client = client_named(request.host.tenant_id, request.in_query("client_id"))
    if not request.origin:
        # A page of this host sends no origin with a GET. Pages of other hosts can also omit it; `Sec-Fetch-Site` identifies these pages.
        return "" if request.headers.get("sec-fetch-site", "same-origin") == "same-origin" else None
    if is_own_page(request):
        return ""
    # A third-party application may get the identity of the user only after the user's consent.
    may_know = client is not None and client.is_first_party and takes_own_forms(client)
    return request.origin if may_know and client is not None and is_registered_origin(client, request.origin) else None


def _told(session: Session) -> dict[str, Any]:
    user = session.user
    clients = [row.client.client_id for row in session.session_clients.select_related("client").order_by("pk")]
    return {
        "sso": True,
        "current_client_id": clients[-1] if clients else None,
        "lastUsedClientID": clients[-1] if clients else None,
        "sessionClients": clients,
        "lastUsedUserID": user.user_id,
        "lastUsedUsername": user.email or user.username or user.name or "",
        "lastUsedConnection": {"name": session.connection.name, "strategy": session.connection.strategy},
    }
