"""`/usernamepassword/login` and `/usernamepassword/challenge`: the login form that old libraries send from a page on this host.

The answer is an HTML form that the page posts to `/login/callback`. The form contains a ticket that is valid only in the browser that
requested it.
"""

from __future__ import annotations

from typing import Any

import orjson
from django.utils.html import format_html, format_html_join

from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.grants.password import logged_in
from authapi.grants.user_grant import sender_of
from authapi.login.connections import takes_passwords
from authapi.login.flow import ProvenUser
from authapi.protocols.legacy.browser_headers import browser_cookie, is_own_page
from authapi.protocols.legacy.login_tickets import issue_ticket
from authapi.protocols.legacy.opting_in import require_own_forms
from authapi.protocols.legacy.requests import LegacyRequest, Reply, client_named, named_connection
from authapi.protocols.legacy.resource_owner import CASES
from authapi.protocols.legacy.token_replies import NO_STORE

CALLBACK_PATH = "login/callback"
# Distinguishes the form of this service from answers of providers, which arrive at the same URL.
TICKET_PREFIX = "ticket."
# The parameters that are passed on to `/authorize`. The library uses the other parameters itself.
_PASSED_ON = (
    "client_id", "response_type", "response_mode", "redirect_uri", "scope", "audience", "state", "nonce", "connection", "code_challenge",
    "code_challenge_method", "prompt", "max_age", "ui_locales", "organization",
)  # fmt: skip


def login(request: LegacyRequest) -> Reply:
    """Return the form that continues the login. Raises `RequestRefused`."""
    client = client_named(request.host.tenant_id, request.needed("client_id"))
    if client is None:
        raise RequestRefused(LegacyCase.UNKNOWN_CLIENT)
    if request.origin and not is_own_page(request):
        # A browser does not store the cookie of a response to a page of another host. Without this cookie, the ticket could not be bound to
        # the browser, so the request is refused.
        raise RequestRefused(LegacyCase.FOREIGN_PAGE)
    require_own_forms(client)
    username, password = request.needed("username"), request.needed("password")
    connection = named_connection(request, client, request.needed("connection"))
    if not takes_passwords(connection):
        raise RequestRefused(LegacyCase.WRONG_STRATEGY)
    user = logged_in(request, client, connection, username, password, sender_of(request), cases=CASES)
    browser, cookie = browser_cookie(request)
    issued = issue_ticket(client, ProvenUser(user, connection, methods=("pwd",)), browser=browser)
    wanted = {name: value for name in _PASSED_ON if isinstance(value := request.form.get(name), str)}
    html = _form(request.host.issuer + CALLBACK_PATH, TICKET_PREFIX + issued.ticket, wanted)
    return Reply(text=html, headers={**NO_STORE, **cookie, "Content-Type": "text/html; charset=utf-8"})


def challenge(request: LegacyRequest) -> Reply:
    """Answer that a login needs no CAPTCHA: this service limits failed logins instead."""
    return Reply({"required": False}, headers=NO_STORE)


def passed_on(text: str) -> dict[str, str]:
    """Return the request that the form contains; empty for malformed text."""
    try:
        members: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    known = members if isinstance(members, dict) else {}
    return {name: value for name in _PASSED_ON if isinstance(value := known.get(name), str)}


def _form(address: str, ticket: str, wanted: dict[str, str]) -> str:
    fields = (("wa", "wsignin1.0"), ("wresult", ticket), ("wctx", orjson.dumps(wanted).decode()))
    inputs = format_html_join("", '<input type="hidden" name="{}" value="{}">', fields)
    return str(format_html('<form method="post" name="hiddenform" action="{}">{}</form>', address, inputs))
