"""Setting a new password: asking for the link, and the page that the link opens, which does nothing until it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from authapi.accounts.event_context import context_of
from authapi.accounts.handed_tickets import prepared_password
from authapi.accounts.password_reset import TooManyRequests, ask_for_reset, open_reset, set_new_password
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import flow
from authapi.login.browser import address_of, user_agent_of
from authapi.login.decision import Step
from authapi.login.login import Login
from authapi.models import AccountTicket, Client
from authapi.pages import way_back
from authapi.pages.hosted_page import hosted_page, with_rate
from authapi.pages.login import password_connection
from authapi.pages.password_hints import password_hints, refusal_text
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from authapi.pages.way_back import Outcome
from authapi.services.account_tickets import TicketExpired, TicketUnknown, TicketUsed
from foundation.change_context import change_context
from identity.hosts import HostMatch
from identity.messages.links import place_after
from identity.services.profile_rules import PasswordTooWeak

_LONGEST_IDENTIFIER, _LONGEST_PASSWORD = 254, 4096


@tenant_page("reset_password")
def request_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Ask for the name of the account, and have a link mailed to its user. The answer is the same where there is no such account."""
    login, handle = opened_login(request, host)
    try:
        login.check()
        connection = password_connection(login)
        if connection is None:
            raise RequestRefused(LoginCase.NO_CONNECTION)
    except RequestRefused as refused:
        return flow.refuse(login, refused)
    if request.method != "POST":
        return _request(login, handle, {"identifier": login.login_hint})
    identifier = request.POST.get("username", "").strip()
    if not identifier or len(identifier) > _LONGEST_IDENTIFIER:
        problems = [{"field": "username", "text": _("Enter the e-mail address or username of your account.")}]
        return _request(login, handle, {"problems": problems}, status=400)
    sender: dict[str, Any] = {"client": login.client, "ip": login.address, "user_agent": login.user_agent}
    try:
        ask_for_reset(connection=connection, identifier=identifier, address=host.issuer.rstrip("/"), **sender)
    except TooManyRequests as refused:
        problems = [{"field": "", "text": _("Too many requests for this account. Wait some minutes, then try again.")}]
        return with_rate(_request(login, handle, {"identifier": identifier, "problems": problems}, status=429), refused.rate)
    return _request(login, handle, {"is_sent": True})


def _request(login: Login, handle: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    log_in = f"{flow.PAGES[Step.LOGIN]}?{urlencode({flow.HANDLE: handle})}"
    return render_page(login, handle, "reset_password_request", {"log_in": log_in, **context}, status=status)


@tenant_page("reset_password")
def reset_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the form of a link, or set the password that it was sent with."""
    secret = (request.POST if request.method == "POST" else request.GET).get("ticket", "")
    try:
        ticket = open_reset(tenant_id=host.tenant_id, secret=secret)
        if request.method == "POST":
            return _set(request, host, ticket, secret)
    except TicketUsed as used:
        return _result(request, used.ticket, way_back.USED) or _page(request, host, {"state": "used"}, status=410)
    except TicketExpired as expired:
        return _result(request, expired.ticket, way_back.EXPIRED) or _page(request, host, {"state": "expired"}, status=410)
    except TicketUnknown:
        return _page(request, host, {"state": "unknown"}, status=404)
    return _ask(request, host, ticket, secret)


def _set(request: HttpRequest, host: HostMatch, ticket: AccountTicket, secret: str) -> HttpResponse:
    password = prepared_password(ticket)
    if password:
        return _saved(request, host, ticket, secret, password)
    password = request.POST.get("password", "")
    if not password or len(password) > _LONGEST_PASSWORD:
        return _ask(request, host, ticket, secret, {"field": "password", "text": _("Choose a password.")})
    if password != request.POST.get("repeated", ""):
        return _ask(request, host, ticket, secret, {"field": "repeated", "text": _("The two passwords are not the same.")})
    return _saved(request, host, ticket, secret, password)


def _saved(request: HttpRequest, host: HostMatch, ticket: AccountTicket, secret: str, password: str) -> HttpResponse:
    ip, agent = address_of(request), user_agent_of(request)
    try:
        with change_context(context_of(host, ticket.client, ip=ip, user_agent=agent)):
            set_new_password(tenant_id=host.tenant_id, secret=secret, password=password, ip=ip, user_agent=agent)
    except PasswordTooWeak as weak:
        text = refusal_text(weak.problem, ticket.user.connection.options)
        return _ask(request, host, ticket, secret, {"field": "password", "text": text})
    # Where the template of the mail leads counts for mailed links alone; a link that was handed over has a way back of its own.
    is_mailed = "marks_verified" not in ticket.parameters
    place = place_after(host.tenant_id, "reset_email", email=ticket.user.email or "") if is_mailed else ""
    done = {"state": "done", "log_in": place or way_back.login_of(ticket.client, ticket.parameters)}
    return _result(request, ticket, way_back.PASSWORD_CHANGED) or _page(request, host, done)


def _result(request: HttpRequest, ticket: AccountTicket, outcome: Outcome) -> HttpResponse | None:
    return way_back.result_answer(request, ticket.parameters, outcome, email=ticket.parameters.get("email", ""))


def _ask(request: HttpRequest, host: HostMatch, ticket: AccountTicket, secret: str, problem: dict[str, str] | None = None) -> HttpResponse:
    context = {
        "state": "confirm" if "sealed_password" in ticket.parameters else "ask",
        "ticket": secret,
        "username": ticket.user.email or ticket.user.username or "",
        "hints": password_hints(ticket.user.connection.options),
        "problems": [problem] if problem else [],
        "wrong": problem["field"] if problem else "",
    }
    return _page(request, host, context, status=400 if problem else 200, form_targets=way_back.result_targets(ticket.parameters))


def _page(
    request: HttpRequest, host: HostMatch, context: dict[str, Any], *, status: int = 200, form_targets: Sequence[str] = ()
) -> HttpResponse:
    # The address of this page holds the ticket.
    return hosted_page(request, host, "reset_password", context, status=status, form_targets=form_targets, hides_address=True)


def login_address(client: Client | None) -> str:
    """Return where a client lets logins begin, if it has said so (OpenID Connect Core 1.0, 4); empty otherwise."""
    address = client.settings.get("initiate_login_uri") if client else None
    return address if isinstance(address, str) and address.startswith("https://") else ""
