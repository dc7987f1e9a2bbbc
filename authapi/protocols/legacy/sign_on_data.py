"""`GET /user/ssodata`: whether the person at a browser is logged in here, for login forms that offer the account again.

The cookie tells who the person is, so only pages of this host and of a client that may know are answered.
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

# No page of another origin gets the answer as a script, a style or an image either.
_HEADERS = {**NO_STORE, "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "Vary": "Origin, Cookie"}
_UNKNOWN: dict[str, Any] = {"sso": False}


def sso_data(request: LegacyRequest) -> Reply:
    """Return what a login form may know of the session. Raises `RequestRefused` for a query that cannot be read."""
    reader = _reader(request)
    if reader is None:
        return Reply(_UNKNOWN, headers=_HEADERS)
    session = find_session(tenant_id=request.host.tenant_id, cookie=cookie_of(request, SESSION))
    members = _UNKNOWN if session is None else _told(session)
    return Reply(members, headers=_HEADERS if not reader else {**_HEADERS, "Cross-Origin-Resource-Policy": "cross-origin"}, reader=reader)


def _reader(request: LegacyRequest) -> str | None:
    """Return the origin that may read the answer, empty for a page of this host; None where the page that asks may not know."""
    client = client_named(request.host.tenant_id, request.in_query("client_id"))
    if not request.origin:
        # A page of this host sends no origin with a GET. Pages elsewhere that send none either cannot read the answer.
        return "" if request.headers.get("sec-fetch-site", "same-origin") == "same-origin" else None
    if is_own_page(request):
        return ""
    # Users of a third party's application are asked before it learns who they are.
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
