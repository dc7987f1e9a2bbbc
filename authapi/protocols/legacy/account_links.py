"""`GET /authorize` with `access_token`: the user of the token logs in to a second account, which is then linked to the first account.

The first account is the account of the user of the token. Linking deletes the user of the second account, and logins to the second account
then open the first account. So a page asks the user for consent. The session in this browser must belong to the user of the token.
Otherwise a URL that an attacker made could link accounts.
"""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponse

from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.login import flow
from authapi.login.account_linking import AGREED
from authapi.login.login import Login, new_login
from authapi.login.protocol import Protocol, ProtocolRequest
from authapi.login.transactions import bind, note_progress
from authapi.models import Session
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from authapi.protocols.legacy.holders import holder_of
from authapi.protocols.legacy.opting_in import require_any_grant
from authapi.protocols.oauth.parameters import LINK_TO
from identity.hosts import HostMatch

PARAMETER = "access_token"
PAGE_PATH = "u/link-account"


def authorize(http_request: HttpRequest, protocol: Protocol, request: ProtocolRequest, token: str) -> HttpResponse:
    """Begin a login that links accounts. Raises `RequestRefused` if there is no trusted URL for the answer."""
    login = new_login(http_request, protocol, request)
    try:
        require_any_grant(request.client)
        holder = holder_of(token, request.host)
        if holder.client.pk != request.client.pk:
            raise RequestRefused(LegacyCase.INVALID_ACCESS_TOKEN)
        _check_session(login, holder.user.user_id)
    except RequestRefused as refused:
        return flow.refuse(login, refused)
    return flow.begin(http_request, protocol, replace(request, state={**request.state, LINK_TO: holder.user.user_id}))


@tenant_page("link_account")
def link_page(http_request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Ask the user whether to link the account of the next login."""
    login, handle = opened_login(http_request, host)
    try:
        session = _check_session(login, login.wish.link_to)
        if login.is_half_proven:
            return flow.advance(login, handle=handle)
        if http_request.method != "POST" or http_request.POST.get("user") != session.user.user_id:
            return render_page(login, handle, "link_account", {"user": session.user})
        if http_request.POST.get("answer") != "link":
            raise RequestRefused(LegacyCase.LINK_DENIED)
        bind(login.row, session)
        note_progress(login.row, **{AGREED: True})
        return flow.advance(login, handle=handle)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _check_session(login: Login, user_id: str) -> Session:
    """Return the session of this browser. Raises `RequestRefused` if it is not a session of this user, or if there is no session."""
    session = login.session
    if not user_id or session is None or session.user.user_id != user_id:
        raise RequestRefused(LegacyCase.LINK_NEEDS_SESSION)
    return session
