"""The link in a mail that logs a user in.

Opening the link is enough in the browser that requested the link; a cookie identifies this browser. In another browser, a page first shows
the application and the account, and the user must confirm the login. So a user who opens an attacker's link is not silently logged in to
the attacker's account. And no user is logged in when a mail scanner opens the link.
"""

from __future__ import annotations

from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from authapi.accounts.attempts import LoginRefused, Refusal
from authapi.accounts.passwordless.addresses import Address, channel_of
from authapi.accounts.passwordless.codes import link_code, login_key_of, waiting_code
from authapi.accounts.passwordless.login import METHODS, CodeAttempt, log_in_with_code, log_in_with_link
from authapi.accounts.passwordless.starting import answer_of
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.passwordless import PasswordlessCase
from authapi.login import flow
from authapi.login.browser import see_other, with_parameters
from authapi.login.cookies import BROWSER, browser_of, read_cookie, set_cookie
from authapi.login.flow import HANDLE, ProvenUser
from authapi.login.login import Login, kept_login, new_login
from authapi.login.parked import require_room
from authapi.login.protocol import ProtocolRequest, protocol_named
from authapi.login.transactions import keep, note_progress, transaction_of
from authapi.models import Client, LoginTransaction, PasswordlessCode
from authapi.pages.application_link import application_link
from authapi.pages.hosted_page import hosted_page
from authapi.pages.passwordless import place_of
from authapi.pages.rendering import render_page
from authapi.pages.spoken import speak_for
from authapi.pages.tenant_page import opened_login, tenant_page
from foundation.secrets import vault
from identity.hosts import HostMatch
from identity.languages import enabled_languages, named_language, speak
from identity.models import Connection, User

CONFIRM_PATH = "/u/passwordless/confirm"
_LINK, _CODE = "passwordless_link", "passwordless_typed"


@tenant_page("passwordless_link", methods=("GET",))
def link_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Log the user in if this browser requested the link. In another browser, let the user confirm first.

    If the link is not valid, show why.
    """
    row = link_code(host.tenant_id, request.GET.get("ticket", "")[:64])
    if row is None:
        return _dead(request, host, "unknown", status=404)
    speak_for(row.language, host.tenant_id)
    if row.used_at is not None or row.expires_at <= timezone.now():
        return _dead(request, host, "used" if row.used_at is not None else "expired", row.client, status=410)
    if request.method == "HEAD":
        return HttpResponse(headers={"Cache-Control": "no-store"})
    own = _own_transaction(request, host, row)
    return _ask_first(request, host, row) if own is None else _go_on(request, host, row, own)


@tenant_page("passwordless_confirm")
def confirm_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the account and the application, and log in when the user presses the button."""
    login, handle = opened_login(request, host)
    try:
        login.check()
        row = waiting_code(host.tenant_id, str(login.row.progress.get(_LINK, "")))
        typed = _typed_of(login)
        if row is None and typed is None:
            return _dead(request, host, "used", login.client, status=410)
        if request.method != "POST":
            return _ask(login, handle, _address_of(row) if row is not None else typed[1] if typed is not None else None)
        if row is not None:
            return _finish_link(login, row, handle)
        if typed is not None:
            return _finish_code(login, handle, *typed)
    except RequestRefused as refused:
        return flow.refuse(login, refused)
    return _dead(request, host, "used", login.client, status=410)


def ask_about_code(login: Login, connection: Connection, address: Address, code: str) -> HttpResponse:
    """Redirect to the page on which the user must confirm the login: any site may have sent the browser here with a code of its choice.

    Raises `RequestRefused`.
    """
    return _asking(login, **{_CODE: (connection, address, code)})


def _own_transaction(request: HttpRequest, host: HostMatch, row: PasswordlessCode) -> LoginTransaction | None:
    """Return the login that requested the link, if this is its browser. None in another browser, in a frame, or for a prefetch."""
    browser = read_cookie(request, BROWSER)
    is_ahead = "prefetch" in request.headers.get("Sec-Purpose", request.headers.get("Purpose", ""))
    is_window = request.headers.get("Sec-Fetch-Dest", "document") == "document"
    if not browser or is_ahead or not is_window:
        return None
    return transaction_of(host.tenant_id, login_key_of(row), browser=browser)


def _go_on(request: HttpRequest, host: HostMatch, row: PasswordlessCode, transaction: LoginTransaction) -> HttpResponse:
    login = kept_login(request, host, transaction)
    speak(login.language)
    try:
        login.check()
        return _finish_link(login, row, None)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _ask_first(request: HttpRequest, host: HostMatch, row: PasswordlessCode) -> HttpResponse:
    if row.client.revoked_at is not None:
        raise RequestRefused(LoginCase.UNKNOWN_CLIENT, client_id=row.client.client_id)
    answer = answer_of(row)
    login = new_login(request, protocol_named(answer.protocol), ProtocolRequest(host, row.client, answer.state))
    if not named_language(enabled_languages(host.tenant_id), wished=login.presentation.languages):
        # The application requests no language that the tenant enables. Use the language of the mail: the browser may have another language.
        login.row.language = row.language
    speak(login.language)
    try:
        login.check()
    except RequestRefused as refused:
        return flow.refuse(login, refused)
    return _asking(login, **{_LINK: str(row.pk)})


def _asking(login: Login, **found: Any) -> HttpResponse:
    """Store the login for this browser, and redirect to the page with the button. The URL of that page contains no secret."""
    browser = browser_of(login.http_request)
    require_room(login)
    login.row.language = login.language
    handle = keep(login.row, login.request.state, browser=browser)
    if _CODE in found:
        connection, address, code = found[_CODE]
        said = orjson.dumps([connection.pk, address.value, code[:16]]).decode()
        found = {_CODE: vault.seal(said, place=_place(login))}
    note_progress(login.row, **found)
    answer = see_other(login.http_request, with_parameters(CONFIRM_PATH, {HANDLE: handle}))
    answer["Referrer-Policy"] = "no-referrer"
    set_cookie(answer, BROWSER, browser)
    return answer


def _ask(login: Login, handle: str, address: Address | None) -> HttpResponse:
    # The account is masked, because another person may have opened the link.
    context = {"account": address.masked if address is not None else "", "replaced": _replaced(login)}
    return render_page(login, handle, "passwordless_confirm", context)


def _replaced(login: Login) -> str:
    """Return a text that names the logged-in account, which this login will replace; empty without a session."""
    if login.session is None:
        return ""
    user = login.session.user
    person = user.email or user.username or user.phone_number or user.name or user.user_id
    return _("You are logged in as %(person)s in this browser. The new login replaces it.") % {"person": person}


def _finish_link(login: Login, row: PasswordlessCode, handle: str | None) -> HttpResponse:
    address = _address_of(row)
    if all(one.pk != row.connection_id for one in login.connections):
        raise RequestRefused(LoginCase.UNKNOWN_CONNECTION)
    try:
        place = place_of(login, row.connection, address)
        user = log_in_with_link(row, address, host=login.host, place=place, user_agent=login.user_agent)
    except LoginRefused as refused:
        raise _refusal(refused, PasswordlessCase.LINK_EXPIRED) from refused
    # Remember the email address only in the browser in which the user typed it, not in another browser that opened the link.
    typed = address.value if handle is None else ""
    return _log_in(login, user, row.connection, address, handle, typed=typed)


def _finish_code(login: Login, handle: str, connection: Connection, address: Address, code: str) -> HttpResponse:
    place = place_of(login, connection, address)
    try:
        user = log_in_with_code(CodeAttempt(login.host, login.client, connection, address, code, place, login.user_agent))
    except LoginRefused as refused:
        raise _refusal(refused, PasswordlessCase.WRONG_REDIRECTED_CODE) from refused
    return _log_in(login, user, connection, address, handle)


def _log_in(login: Login, user: User, connection: Connection, address: Address, handle: str | None, *, typed: str = "") -> HttpResponse:
    proven = ProvenUser(user, connection, methods=METHODS[address.channel], identifier=typed)
    return flow.user_authenticated(login, proven, handle=handle)


def _refusal(refused: LoginRefused, wrong: PasswordlessCase) -> RequestRefused:
    cases = {Refusal.USER_BLOCKED: LoginCase.USER_BLOCKED, Refusal.WRONG_CREDENTIALS: wrong}
    return RequestRefused(cases.get(refused.reason, PasswordlessCase.TOO_MANY_GUESSES), rate=refused.rate)


def _typed_of(login: Login) -> tuple[Connection, Address, str] | None:
    sealed = login.row.progress.get(_CODE)
    if not isinstance(sealed, str):
        return None
    key, value, code = orjson.loads(vault.unseal(sealed, place=_place(login)))
    connection = next((one for one in login.connections if one.pk == key), None)
    channel = channel_of(connection) if connection is not None else None
    return (connection, Address(channel, value), code) if connection is not None and channel is not None else None


def _address_of(row: PasswordlessCode) -> Address:
    channel = channel_of(row.connection)
    if channel is None:
        raise RequestRefused(LoginCase.UNKNOWN_CONNECTION)
    return Address(channel, row.address)


def _place(login: Login) -> str:
    return f"{login.host.tenant_id}:login_transaction:{login.row.browser_digest}:passwordless"


def _dead(request: HttpRequest, host: HostMatch, state: str, client: Client | None = None, *, status: int) -> HttpResponse:
    context = {"state": state, "application": application_link(client, host=host)}
    return hosted_page(request, host, "passwordless_link", context, status=status, hides_address=True)
