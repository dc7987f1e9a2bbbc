"""The pages of a login without a password: which address a code or a link goes to, and the code that came there.

The address stands in the row of the login and never in a form: a page that was opened for one account cannot finish for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from authapi import upstream
from authapi.accounts.attempts import LoginRefused, Refusal
from authapi.accounts.passwordless.addresses import LONGEST, Address, AddressOdd, Channel, channel_of, read_address
from authapi.accounts.passwordless.codes import Scope, bound_to_login, newest_moment
from authapi.accounts.passwordless.connections import passwordless_among
from authapi.accounts.passwordless.limits import Place, TooManyCodes
from authapi.accounts.passwordless.login import METHODS, CodeAttempt, log_in_with_code
from authapi.accounts.passwordless.messages import CannotSend
from authapi.accounts.passwordless.numbers import countries_of
from authapi.accounts.passwordless.options import read_options
from authapi.accounts.passwordless.people import user_at
from authapi.accounts.passwordless.starting import LinkAnswer, Wanted, start
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import flow
from authapi.login.browser import see_other, with_parameters
from authapi.login.decision import Step
from authapi.login.flow import HANDLE, ProvenUser
from authapi.login.known_browser import is_known_to, known_browser
from authapi.login.login import Login
from authapi.login.transactions import note_progress
from authapi.pages.hosted_page import with_rate
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from identity.hosts import HostMatch
from identity.models import Connection

ADDRESS_PATH, CODE_PATH = "/u/passwordless", "/u/passwordless/code"
# Between two messages of one login: mails take some seconds, and impatience helps no one.
PAUSE = timedelta(seconds=30)
_CONNECTION, _ADDRESS, _SENDS = "passwordless_connection", "passwordless_address", "passwordless_sends"
_FIELDS = {Channel.EMAIL: "email", Channel.SMS: "phone_number"}
_BETWEEN_DIGITS = str.maketrans("", "", " -\u00a0\u202f")


@dataclass(frozen=True)
class _Asked:
    """Where the message of a login went, as its row says."""

    connection: Connection
    address: Address
    is_link: bool


@tenant_page("passwordless")
def address_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Ask for the address, and have a code or a link sent there."""
    login, handle = opened_login(request, host)
    sent = request.POST if request.method == "POST" else request.GET
    try:
        login.check()
        connection, channel = _connection(login, sent.get("connection", ""))
        if request.method != "POST":
            return _form(login, handle, connection, channel, typed=login.wish.login_hint)
        return _send_first(login, handle, connection, channel)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


@tenant_page("passwordless_code")
def code_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Ask for the code, or tell that a link is on its way; take the code, or send once more."""
    login, handle = opened_login(request, host)
    try:
        login.check()
        asked = _asked(login)
        if asked is None:
            return see_other(request, with_parameters(ADDRESS_PATH, {HANDLE: handle}))
        if request.method != "POST":
            return _wait(login, handle, asked, is_sent_again="again" in request.GET)
        return _send_again(login, handle, asked) if "again" in request.POST else _take(login, handle, asked)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def page_for(handle: str, connection: Connection) -> str:
    """Return the address of the page on which a login goes on with a code of this connection."""
    return with_parameters(ADDRESS_PATH, {HANDLE: handle, "connection": connection.name})


def label_of(connection: Connection) -> str:
    """Return what the login page calls this way in."""
    return _("Log in with a code by text message") if channel_of(connection) is Channel.SMS else _("Log in with a code by email")


def place_of(login: Login, connection: Connection, address: Address) -> Place:
    """Return where the browser is. A browser that this very account knows is told from a stranger's."""
    known = known_browser(login.host.tenant_id, login.http_request.headers.get("Cookie", ""))
    user = user_at(connection, address) if known is not None else None
    return Place(login.address, browser=known if user is not None and is_known_to(user, known) else None)


def _connection(login: Login, named: str) -> tuple[Connection, Channel]:
    usable = passwordless_among(login.connections)
    connection = next((one for one in usable if one.name == named), next(iter(usable), None))
    channel = channel_of(connection) if connection is not None else None
    if connection is None or channel is None:
        raise RequestRefused(LoginCase.NO_CONNECTION)
    return connection, channel


def _asked(login: Login) -> _Asked | None:
    progress: Mapping[str, Any] = login.row.progress
    key = progress.get(_CONNECTION)
    connection = next((one for one in passwordless_among(login.connections) if one.pk == key), None)
    channel = channel_of(connection) if connection is not None else None
    if connection is None or channel is None:
        return None
    return _Asked(connection, Address(channel, str(progress[_ADDRESS])), is_link=progress.get(_SENDS) == "link")


def _send_first(login: Login, handle: str, connection: Connection, channel: Channel) -> HttpResponse:
    sent, field = login.http_request.POST, _FIELDS[channel]
    typed = sent.get(field, "").strip()[: LONGEST + 1]
    responsible = upstream.connection_for_email(login.client, typed) if channel is Channel.EMAIL else None
    if responsible is not None and responsible in login.connections:
        # The people of this domain log in at their company.
        parameters = {HANDLE: handle, "connection": responsible.name}
        return see_other(login.http_request, with_parameters(flow.PAGES[Step.LOGIN], parameters))
    try:
        address = read_address(channel, typed, countries=countries_of(connection))
    except AddressOdd:
        return _form(login, handle, connection, channel, typed=typed, problem=_odd(channel), status=400)
    asked = _Asked(connection, address, is_link=channel is Channel.EMAIL and sent.get("send") == "link")
    try:
        _start(login, asked)
    except TooManyCodes as refused:
        page = _form(login, handle, connection, channel, typed=typed, problem=_too_many(), status=429)
        return with_rate(page, refused.rate)
    except CannotSend:
        return _form(login, handle, connection, channel, typed=typed, problem=_no_sender(), status=503)
    noted = {_CONNECTION: connection.pk, _ADDRESS: address.value, _SENDS: "link" if asked.is_link else "code"}
    note_progress(login.row, **noted)
    return see_other(login.http_request, with_parameters(CODE_PATH, {HANDLE: handle}))


def _send_again(login: Login, handle: str, asked: _Asked) -> HttpResponse:
    seconds = _seconds_to_wait(login, asked)
    if seconds:
        return _wait(login, handle, asked, problem=_too_soon(seconds), status=429)
    try:
        _start(login, asked)
    except TooManyCodes as refused:
        return with_rate(_wait(login, handle, asked, problem=_too_many(), status=429), refused.rate)
    except CannotSend:
        return _wait(login, handle, asked, problem=_no_sender(), status=503)
    return see_other(login.http_request, with_parameters(CODE_PATH, {HANDLE: handle, "again": "1"}))


def _start(login: Login, asked: _Asked) -> None:
    start(
        Wanted(
            host=login.host,
            client=login.client,
            connection=asked.connection,
            address=asked.address,
            place=place_of(login, asked.connection, asked.address),
            user_agent=login.user_agent,
            language=login.language,
            bound_to=bound_to_login(login.row.pk),
            link=LinkAnswer(login.protocol.name, login.request.state) if asked.is_link else None,
        )
    )


def _take(login: Login, handle: str, asked: _Asked) -> HttpResponse:
    code = login.http_request.POST.get("code", "").translate(_BETWEEN_DIGITS)
    if not code:
        return _wait(login, handle, asked, problem=_("Enter the code from the message."), status=400)
    attempt = CodeAttempt(
        host=login.host,
        client=login.client,
        connection=asked.connection,
        address=asked.address,
        code=code,
        place=place_of(login, asked.connection, asked.address),
        user_agent=login.user_agent,
        bound_to=bound_to_login(login.row.pk),
    )
    try:
        user = log_in_with_code(attempt)
    except LoginRefused as refused:
        return _not_taken(login, handle, asked, refused)
    methods = METHODS[asked.address.channel]
    return flow.user_authenticated(login, ProvenUser(user, asked.connection, methods=methods), handle=handle)


def _not_taken(login: Login, handle: str, asked: _Asked, refused: LoginRefused) -> HttpResponse:
    if refused.reason is Refusal.USER_BLOCKED:
        raise RequestRefused(LoginCase.USER_BLOCKED) from refused
    if refused.reason is Refusal.WRONG_CREDENTIALS:
        text = _("This code is wrong or has expired. Enter the newest one, or ask for another.")
        return _wait(login, handle, asked, problem=text, status=400)
    text = _("Too many wrong codes were tried. Wait some minutes, then ask for a new one.")
    return with_rate(_wait(login, handle, asked, problem=text, status=429), refused.rate)


def _form(
    login: Login, handle: str, connection: Connection, channel: Channel, *, typed: str = "", problem: str = "", status: int = 200
) -> HttpResponse:
    field = _FIELDS[channel]
    others = [one for one in passwordless_among(login.connections) if one.pk != connection.pk]
    context: dict[str, Any] = {
        "connection": connection.name,
        "is_email": channel is Channel.EMAIL,
        "field": field,
        "typed": typed,
        "problems": [{"field": field, "text": problem}] if problem else [],
        "others": [{"label": label_of(one), "address": page_for(handle, one)} for one in others],
        "log_in": _login_page(login, handle) if len(login.connections) > 1 + len(others) else "",
    }
    return render_page(login, handle, "passwordless", context, status=status)


def _wait(login: Login, handle: str, asked: _Asked, *, problem: str = "", is_sent_again: bool = False, status: int = 200) -> HttpResponse:
    options = read_options(asked.connection.options)
    context: dict[str, Any] = {
        "address": asked.address.value,
        "is_email": asked.address.channel is Channel.EMAIL,
        "is_link": asked.is_link,
        "length": options.length,
        "minutes": max(1, options.seconds // 60),
        "is_for_accounts_only": not options.takes_sign_ups,
        "seconds": _seconds_to_wait(login, asked),
        "is_sent_again": is_sent_again,
        "problems": [{"field": "" if asked.is_link else "code", "text": problem}] if problem else [],
        "back": page_for(handle, asked.connection),
    }
    return render_page(login, handle, "passwordless_code", context, status=status)


def _login_page(login: Login, handle: str) -> str:
    return f"{flow.PAGES[Step.LOGIN]}?{urlencode({HANDLE: handle})}"


def _seconds_to_wait(login: Login, asked: _Asked) -> int:
    last = newest_moment(Scope(asked.connection, asked.address, login.client, bound_to_login(login.row.pk)))
    return max(0, ceil((last + PAUSE - timezone.now()).total_seconds())) if last is not None else 0


def _odd(channel: Channel) -> str:
    if channel is Channel.SMS:
        return _("Enter a phone number with the code of the country, such as +1 555 010 0000.")
    return _("Enter an email address, such as name@example.com.")


def _too_soon(seconds: int) -> str:
    text = ngettext(
        "You can ask for another message in %(count)d second.", "You can ask for another message in %(count)d seconds.", seconds
    )
    return text % {"count": seconds}


def _too_many() -> str:
    return _("Too many messages were asked for. Use the newest one, or try again later.")


def _no_sender() -> str:
    return _("Messages cannot be sent right now. Try again later, or tell the people who run the application.")
