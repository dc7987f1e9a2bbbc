"""The pages of a login without a password: a form for the address (email address or phone number), and a form for the code.

The form for the code does not send the address: the service reads the address from the row of the login. So a changed form cannot use the
code for another account.
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
from authapi.accounts.passwordless.numbers import countries_of, read_number
from authapi.accounts.passwordless.options import PasswordlessOptions, read_options
from authapi.accounts.passwordless.people import user_at
from authapi.accounts.passwordless.starting import LinkAnswer, Wanted, start
from authapi.custom_texts import client_values, custom_text
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import flow
from authapi.login.browser import see_other, with_parameters
from authapi.login.decision import Step
from authapi.login.flow import HANDLE, ProvenUser
from authapi.login.known_browser import is_known_to, known_browser
from authapi.login.login import Login
from authapi.login.transactions import note_progress
from authapi.pages.form_fields import Field, Problem, email_problem, form_fields
from authapi.pages.hosted_page import with_rate
from authapi.pages.remembered import ACCOUNT, FORGET, OTHER, forgotten, offered_account, remembered_name
from authapi.pages.remembered import wants_other as is_other_wanted
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from identity.hosts import HostMatch
from identity.models import Connection

ADDRESS_PATH, CODE_PATH = "/u/passwordless", "/u/passwordless/code"
# The button that requests another message works only when this time has passed since the last message, because mails take
# some seconds to arrive.
PAUSE = timedelta(seconds=30)
_CONNECTION, _ADDRESS, _SENDS = "passwordless_connection", "passwordless_address", "passwordless_sends"
_FIELDS = {Channel.EMAIL: "email", Channel.SMS: "phone_number"}
LONGEST_NUMBER, LONGEST_TYPED_CODE = 40, 20
# A phone number is shown from left to right with its plus sign in front, also in Arabic text (Unicode Standard Annex 9, 2.4).
_ISOLATE, _END_OF_ISOLATE = "\u2066", "\u2069"
BETWEEN_DIGITS = str.maketrans("", "", " -\u00a0\u202f")


@dataclass(frozen=True)
class _Asked:
    """The message that a login has requested, as stored in the row of the login."""

    connection: Connection
    address: Address
    is_link: bool


@tenant_page("passwordless")
def address_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the form for the address, and send a code or a link to the address."""
    login, handle = opened_login(request, host)
    sent = request.POST if request.method == "POST" else request.GET
    try:
        login.check()
        connection, channel = _connection(login, sent.get("connection", ""))
        if request.method != "POST":
            return _form(login, handle, connection, channel, typed=login.login_hint or _likely(login, channel))
        if FORGET in request.POST:
            return forgotten(login, page_for(handle, connection))
        return _send_first(login, handle, connection, channel)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


@tenant_page("passwordless_code")
def code_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the form for the code, or show that a link was sent. Check the code, or send another message."""
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


def page_for(handle: str, connection: Connection, *, wants_other: bool = False) -> str:
    """Return the URL of the page on which the user enters an address for this connection. With `wants_other`, ignore the remembered
    account."""
    other = {ACCOUNT: OTHER} if wants_other else {}
    return with_parameters(ADDRESS_PATH, {HANDLE: handle, "connection": connection.name, **other})


def label_of(connection: Connection) -> str:
    """Return the label of this login method on the login page."""
    return _("Log in with a code by text message") if channel_of(connection) is Channel.SMS else _("Log in with a code by email")


def place_of(login: Login, connection: Connection, address: Address) -> Place:
    """Return the IP address for which guesses are counted, and the browser if the user has logged in with this browser before.

    Such a browser has its own limit.
    """
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
        # A connection of a company is responsible for this email domain, so the user must log in through that connection.
        parameters = {HANDLE: handle, "connection": responsible.name}
        return see_other(login.http_request, with_parameters(flow.PAGES[Step.LOGIN], parameters))
    try:
        address = read_address(channel, typed, countries=countries_of(connection))
    except AddressOdd:
        problem = Problem(_odd(channel, typed), field)
        return _form(login, handle, connection, channel, typed=typed, problem=problem, status=400)
    asked = _Asked(connection, address, is_link=channel is Channel.EMAIL and sent.get("send") == "link")
    try:
        _start(login, asked)
    except TooManyCodes as refused:
        page = _form(login, handle, connection, channel, typed=typed, problem=Problem(too_many_messages()), status=429)
        return with_rate(page, refused.rate)
    except CannotSend:
        return _form(login, handle, connection, channel, typed=typed, problem=Problem(no_sender()), status=503)
    noted = {_CONNECTION: connection.pk, _ADDRESS: address.value, _SENDS: "link" if asked.is_link else "code"}
    note_progress(login.row, **noted)
    return see_other(login.http_request, with_parameters(CODE_PATH, {HANDLE: handle}))


def _send_again(login: Login, handle: str, asked: _Asked) -> HttpResponse:
    seconds = _seconds_to_wait(login, asked)
    if seconds:
        return _wait(login, handle, asked, problem=Problem(seconds_text(seconds)), status=429)
    try:
        _start(login, asked)
    except TooManyCodes as refused:
        return with_rate(_wait(login, handle, asked, problem=Problem(too_many_messages()), status=429), refused.rate)
    except CannotSend:
        return _wait(login, handle, asked, problem=Problem(no_sender()), status=503)
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
            organization_id=str(login.organization.pk) if login.organization is not None else "",
            bound_to=bound_to_login(login.row.pk),
            link=LinkAnswer(login.protocol.name, login.request.state) if asked.is_link else None,
        )
    )


def _take(login: Login, handle: str, asked: _Asked) -> HttpResponse:
    code = login.http_request.POST.get("code", "").translate(BETWEEN_DIGITS)
    if not code:
        return _wait(login, handle, asked, problem=Problem(_("Enter the code from the message."), "code"), status=400)
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
    proven = ProvenUser(user, asked.connection, methods=METHODS[asked.address.channel], identifier=asked.address.value)
    return flow.user_authenticated(login, proven, handle=handle)


def _not_taken(login: Login, handle: str, asked: _Asked, refused: LoginRefused) -> HttpResponse:
    if refused.reason is Refusal.USER_BLOCKED:
        raise RequestRefused(LoginCase.USER_BLOCKED) from refused
    if refused.reason is Refusal.WRONG_CREDENTIALS:
        problem = Problem(_("This code is wrong or has expired. Enter the newest one, or ask for another."), "code")
        return _wait(login, handle, asked, problem=problem, status=400)
    problem = Problem(_("There were too many wrong codes. Wait some minutes, then request a new code."))
    return with_rate(_wait(login, handle, asked, problem=problem, status=429), refused.rate)


def _form(
    login: Login,
    handle: str,
    connection: Connection,
    channel: Channel,
    *,
    typed: str = "",
    problem: Problem | None = None,
    status: int = 200,
) -> HttpResponse:
    problems = [problem] if problem else []
    # A problem of the address is shown at its field, so the page shows the field instead of the remembered account.
    account = "" if problem and problem.field else offered_account(login, connection, typed)
    others = [one for one in passwordless_among(login.connections) if one.pk != connection.pk]
    context: dict[str, Any] = {
        "connection": connection.name,
        "is_email": channel is Channel.EMAIL,
        "field": _FIELDS[channel],
        "account": account,
        "other_account": page_for(handle, connection, wants_other=True),
        "fields": [] if account else form_fields([_address_field(channel, typed, **client_values(login.client))], problems),
        "problems": problems,
        "others": [{"label": label_of(one), "address": page_for(handle, one, wants_other=is_other_wanted(login))} for one in others],
        "log_in": _login_page(login, handle) if len(login.connections) > 1 + len(others) else "",
    }
    return render_page(login, handle, "passwordless", context, status=status)


def _address_field(channel: Channel, typed: str, **named: str) -> Field:
    if channel is Channel.EMAIL:
        label = custom_text("login-id.login-id.emailPlaceholder", _("Email address"), **named)
        return Field("email", label, type="email", inputmode="email", autocomplete="username", value=typed)
    return number_field(custom_text("login-id.login-id.phonePlaceholder", _("Phone number"), **named), typed)


def number_field(label: str, typed: str) -> Field:
    """Return the field for a phone number."""
    hint = _("With the country code, such as +1 555 010 0000.")
    return Field(
        "phone_number",
        label,
        type="tel",
        inputmode="tel",
        autocomplete="tel",
        value=typed,
        maxlength=LONGEST_NUMBER,
        hints=(hint,),
    )


def _likely(login: Login, channel: Channel) -> str:
    """Return the remembered account name, for example of a login with a password, if the name is a valid address; empty otherwise."""
    name = remembered_name(login)
    try:
        return read_address(channel, name).value
    except AddressOdd:
        return ""


def _wait(
    login: Login, handle: str, asked: _Asked, *, problem: Problem | None = None, is_sent_again: bool = False, status: int = 200
) -> HttpResponse:
    options, problems = read_options(asked.connection.options), [problem] if problem else []
    is_email, seconds = asked.address.channel is Channel.EMAIL, _seconds_to_wait(login, asked)
    context: dict[str, Any] = {
        "address": asked.address.value if is_email else left_to_right(asked.address.value),
        "is_email": is_email,
        "is_link": asked.is_link,
        "is_for_accounts_only": not options.takes_sign_ups,
        "fields": [] if asked.is_link else form_fields([_code_field(options)], problems),
        "problems": problems,
        "wait": seconds_text(seconds) if seconds else "",
        "is_sent_again": is_sent_again,
        "back": page_for(handle, asked.connection, wants_other=True),
    }
    return render_page(login, handle, "passwordless_code", context, status=status)


def left_to_right(number: str) -> str:
    """Return a phone number that is shown from left to right in text of any direction."""
    return f"{_ISOLATE}{number}{_END_OF_ISOLATE}"


def _code_field(options: PasswordlessOptions) -> Field:
    minutes = max(1, options.seconds // 60)
    hint = ngettext(
        "The %(length)d digits from the message. They are valid for %(minutes)d minute.",
        "The %(length)d digits from the message. They are valid for %(minutes)d minutes.",
        minutes,
    )
    shown = hint % {"length": options.length, "minutes": minutes}
    return Field("code", _("Code"), inputmode="numeric", autocomplete="one-time-code", maxlength=LONGEST_TYPED_CODE, hints=(shown,))


def _login_page(login: Login, handle: str) -> str:
    return f"{flow.PAGES[Step.LOGIN]}?{urlencode({HANDLE: handle})}"


def _seconds_to_wait(login: Login, asked: _Asked) -> int:
    last = newest_moment(Scope(asked.connection, asked.address, login.client, bound_to_login(login.row.pk)))
    return max(0, ceil((last + PAUSE - timezone.now()).total_seconds())) if last is not None else 0


def _odd(channel: Channel, typed: str) -> str:
    """Return the error text for an invalid email address or phone number. Does not reveal whether an account exists."""
    if channel is Channel.EMAIL:
        return email_problem(typed) or _("Enter an email address like name@example.com.")
    return odd_number(typed)


def odd_number(typed: str) -> str:
    """Return the error text for a phone number that cannot receive messages."""
    if not typed:
        return _("Enter your phone number.")
    if read_number(typed) is not None:
        return _("Messages are not sent to numbers of this country. Use a number of another country.")
    return _("Enter a phone number with the country code, such as +1 555 010 0000.")


def seconds_text(seconds: int) -> str:
    """Return the text with the time to wait before the next message."""
    text = ngettext(
        "You can ask for another message in %(count)d second.", "You can ask for another message in %(count)d seconds.", seconds
    )
    return text % {"count": seconds}


def too_many_messages() -> str:
    """Return the text for a user to whom no further message is sent for now."""
    return _("Too many messages were requested. Use the newest one, or try again later.")


def no_sender() -> str:
    """Return the text for a user to whom no message can be sent."""
    return _("Messages cannot be sent right now. Try again later, or contact the people who run the application.")
