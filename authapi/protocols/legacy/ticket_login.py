"""Logins with a login ticket: at `/authorize?login_ticket=`, or with the form from `/usernamepassword/login`.

A browser with the cookie of its ticket continues at once. A browser that blocked the cookie needs another proof: the page of the
application that requested the ticket has stored a verifier in the browser. A page of this service loads another page of the application
(`cross_origin_loc`) in a frame, and gets the verifier from the framed page.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from authapi.clients.origins import web_origin_of
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.failures.logins import LoginCase
from authapi.login import flow
from authapi.login.cookies import BROWSER, browser_of, form_token, read_cookie, set_cookie
from authapi.login.login import Login, new_login
from authapi.login.parked import TooMuchParked, require_room
from authapi.login.protocol import Protocol, ProtocolRequest
from authapi.login.transactions import keep
from authapi.models import Client, LoginTicket
from authapi.pages.tenant_page import opened_login, tenant_page
from authapi.protocols.legacy.browser_headers import is_registered_origin
from authapi.protocols.legacy.hosted_login import TICKET_PREFIX, passed_on
from authapi.protocols.legacy.login_tickets import is_of_browser, is_of_page, redeemed, waiting_ticket
from authapi.protocols.legacy.opting_in import require_own_forms
from authapi.protocols.legacy.requests import client_named
from authapi.protocols.oauth.parameters import read
from identity.hosts import HostMatch

PARAMETER = "login_ticket"
VERIFICATION_PATH = "u/cross-origin"
_RESULT, _CONTEXT = "wresult", "wctx"


def authorize(http_request: HttpRequest, protocol: Protocol, request: ProtocolRequest, ticket: str) -> HttpResponse:
    """Log in the user of a ticket and continue the request. Raises `RequestRefused` if there is no trusted URL for the answer."""
    login = new_login(http_request, protocol, request)
    try:
        login.check()
        row = _waiting(login, ticket)
        if is_of_browser(row, read_cookie(http_request, BROWSER)):
            return _go_on(login, row)
        if not login.wish.is_silent and _verification_address(login.client):
            return _verification(login, row, ticket)
        raise RequestRefused(LegacyCase.INVALID_TICKET)
    except TooMuchParked:
        # The client cannot repair this error, so an error page informs the user.
        raise
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def is_own_answer(http_request: HttpRequest) -> bool:
    """Tell whether a form at `/login/callback` is from `/usernamepassword/login`."""
    return http_request.method == "POST" and http_request.POST.get(_RESULT, "").startswith(TICKET_PREFIX)


def go_on_from_form(http_request: HttpRequest, host: HostMatch, protocol: Protocol) -> HttpResponse:
    """Continue a login from a form in the browser. Raises `RequestRefused` if there is no trusted URL for the answer."""
    wanted = read(passed_on(http_request.POST.get(_CONTEXT, "")).items()).state
    client = client_named(host.tenant_id, wanted.get("client_id", ""))
    if client is None:
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=wanted.get("client_id", "")[:64])
    login = new_login(http_request, protocol, ProtocolRequest(host, client, wanted))
    try:
        login.check()
        row = _waiting(login, http_request.POST.get(_RESULT, "").removeprefix(TICKET_PREFIX))
        if not is_of_browser(row, read_cookie(http_request, BROWSER)):
            raise RequestRefused(LegacyCase.INVALID_TICKET)
        return _go_on(login, row)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


@tenant_page("cross_origin_verification", methods=("POST",))
def verification_page(http_request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Check the verifier that this page got from the framed page of the application."""
    login, handle = opened_login(http_request, host)
    try:
        login.check()
        row = _waiting(login, http_request.POST.get(PARAMETER, ""))
        if not is_of_page(row, http_request.POST.get("verifier", "")):
            raise RequestRefused(LegacyCase.INVALID_TICKET)
        return _go_on(login, row, handle=handle)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _waiting(login: Login, ticket: str) -> LoginTicket:
    """Return the row of a ticket that this client and page may use. Raises `RequestRefused`."""
    require_own_forms(login.client)
    row = waiting_ticket(login.client, ticket)
    if row is None or not _is_of_origin(login, row):
        raise RequestRefused(LegacyCase.INVALID_TICKET)
    return row


def _is_of_origin(login: Login, row: LoginTicket) -> bool:
    """Tell whether the page of the ticket still belongs to the client. Return False, too, if the headers of the browser name another page.

    A request without such headers is accepted, because the cookie or the verifier also binds the ticket to the browser.
    """
    own = web_origin_of(login.host.issuer)
    if not row.origin:
        return _page_of(login.http_request) in ("", own)
    return is_registered_origin(login.client, row.origin) and _page_of(login.http_request) in ("", own, row.origin)


def _page_of(http_request: HttpRequest) -> str:
    """Return the origin of the page from which the browser came, empty if unknown."""
    named = http_request.headers.get("Origin") or http_request.headers.get("Referer", "")
    return "" if named in ("", "null") else web_origin_of(named) or "unknown"


def _go_on(login: Login, row: LoginTicket, *, handle: str | None = None) -> HttpResponse:
    proven = redeemed(row)
    if proven is None:
        raise RequestRefused(LegacyCase.INVALID_TICKET)
    return flow.user_authenticated(login, proven, handle=handle)


def _verification_address(client: Client) -> str:
    address = client.settings.get("cross_origin_loc") or ""
    return address if web_origin_of(address) and is_registered_origin(client, web_origin_of(address)) else ""


def _verification(login: Login, row: LoginTicket, ticket: str) -> HttpResponse:
    """Return the page that frames the application's page and requests the verifier from it."""
    require_room(login)
    browser = browser_of(login.http_request)
    handle = keep(login.row, login.request.state, browser=browser)
    address = _verification_address(login.client)
    context: Mapping[str, str] = {
        "action": reverse("cross_origin_verification"),
        "handle": handle,
        "form_token": form_token(browser),
        "ticket": ticket,
        "co_id": row.co_id,
        "frame": f"{address.partition('#')[0]}#origin={login.host.issuer.rstrip('/')}",
        "frame_origin": web_origin_of(address),
    }
    answer = render(login.http_request, "hosted/cross_origin_verification.html", context)
    answer["Content-Security-Policy"] = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
        f"frame-src {context['frame_origin']}; form-action 'self' {login.presentation.form_target}"
    )
    answer["Cache-Control"] = "no-store"
    # The URL of this page contains the ticket, so the browser must not send this URL to the framed page as the referrer.
    answer["Referrer-Policy"] = "same-origin"
    set_cookie(answer, BROWSER, browser)
    return answer
