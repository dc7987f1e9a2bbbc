"""Resets a password: the page that requests a link, and the page of the link, which changes nothing until its form is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from authapi.accounts.event_context import context_of
from authapi.accounts.handed_tickets import is_prepared, prepared_password
from authapi.accounts.password_reset import TooManyRequests, ask_for_reset, open_reset, set_new_password
from authapi.custom_texts import client_values, custom_text
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import flow
from authapi.login.browser import address_of, user_agent_of
from authapi.login.decision import Step
from authapi.login.login import Login
from authapi.models import AccountTicket
from authapi.pages import way_back
from authapi.pages.application_link import application_link
from authapi.pages.form_fields import (
    ACCOUNT_NAME,
    LONGEST_PASSWORD,
    RESET_SCREEN,
    Field,
    Problem,
    form_fields,
    identifier_field,
    identifier_problem,
)
from authapi.pages.hosted_page import hosted_page, with_rate
from authapi.pages.login import password_connection
from authapi.pages.password_hints import password_hints, refusal_text
from authapi.pages.rendering import render_page
from authapi.pages.spoken import speak_for
from authapi.pages.tenant_page import opened_login, tenant_page
from authapi.pages.way_back import Outcome
from authapi.services.account_tickets import TicketExpired, TicketUnknown, TicketUsed
from foundation.change_context import change_context
from identity.hosts import HostMatch
from identity.messages.links import place_after
from identity.models import Connection
from identity.services.profile_rules import PasswordTooWeak


@tenant_page("reset_password")
def request_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the form for the account name, and mail a link to the user. The response is the same if the account does not exist."""
    login, handle = opened_login(request, host)
    try:
        login.check()
        connection = password_connection(login)
        if connection is None:
            raise RequestRefused(LoginCase.NO_CONNECTION)
    except RequestRefused as refused:
        return flow.refuse(login, refused)
    if request.method != "POST":
        return _request(login, handle, connection, identifier=login.login_hint)
    identifier = request.POST.get("username", "").strip()
    if text := identifier_problem(connection.options, identifier):
        return _request(login, handle, connection, identifier=identifier, problems=[Problem(text, "username")], status=400)
    sender: dict[str, Any] = {"client": login.client, "ip": login.address, "user_agent": login.user_agent}
    try:
        ask_for_reset(connection=connection, identifier=identifier, address=host.issuer.rstrip("/"), **sender)
    except TooManyRequests as refused:
        problems = [Problem(_("Too many requests for this account. Wait a few minutes, then try again."))]
        page = _request(login, handle, connection, identifier=identifier, problems=problems, status=429)
        return with_rate(page, refused.rate)
    return render_page(login, handle, "reset_password_request", {"is_sent": True, "log_in": _log_in_address(handle)})


def _request(
    login: Login, handle: str, connection: Connection, *, identifier: str, problems: Sequence[Problem] = (), status: int = 200
) -> HttpResponse:
    named = client_values(login.client)
    fields = form_fields([identifier_field(connection.options, value=identifier, screen=RESET_SCREEN, **named)], problems)
    context = {"fields": fields, "problems": problems, "log_in": _log_in_address(handle)}
    return render_page(login, handle, "reset_password_request", context, status=status)


def _log_in_address(handle: str) -> str:
    return f"{flow.PAGES[Step.LOGIN]}?{urlencode({flow.HANDLE: handle})}"


@tenant_page("reset_password")
def reset_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the form of a link, or set the submitted password."""
    secret = (request.POST if request.method == "POST" else request.GET).get("ticket", "")
    try:
        ticket = open_reset(tenant_id=host.tenant_id, secret=secret)
        speak_for(ticket.language, host.tenant_id)
        if request.method == "POST":
            return _set(request, host, ticket, secret)
    except TicketUsed as used:
        return _end(request, host, "used", used.ticket, way_back.USED)
    except TicketExpired as expired:
        return _end(request, host, "expired", expired.ticket, way_back.EXPIRED)
    except TicketUnknown:
        return _page(request, host, {"state": "unknown", "application": application_link(None, host=host)}, status=404)
    return _ask(request, host, ticket, secret)


def _set(request: HttpRequest, host: HostMatch, ticket: AccountTicket, secret: str) -> HttpResponse:
    password = prepared_password(ticket)
    if password:
        return _saved(request, host, ticket, secret, password)
    password = request.POST.get("password", "")
    if not password or len(password) > LONGEST_PASSWORD:
        return _ask(request, host, ticket, secret, Problem(_("Choose a password."), "password"))
    if password != request.POST.get("repeated", ""):
        return _ask(request, host, ticket, secret, Problem(_("The passwords do not match."), "repeated"))
    return _saved(request, host, ticket, secret, password)


def _saved(request: HttpRequest, host: HostMatch, ticket: AccountTicket, secret: str, password: str) -> HttpResponse:
    ip, agent = address_of(request), user_agent_of(request)
    try:
        with change_context(context_of(host, ticket.client, ip=ip, user_agent=agent)):
            set_new_password(tenant_id=host.tenant_id, secret=secret, password=password, ip=ip, user_agent=agent)
    except PasswordTooWeak as weak:
        return _ask(request, host, ticket, secret, Problem(refusal_text(weak.problem), "password"))
    # The redirect URL in the mail template applies to mailed links only. A link that a client requested has its own return URL.
    is_mailed = "marks_verified" not in ticket.parameters
    place = place_after(host.tenant_id, "reset_email", email=ticket.user.email or "") if is_mailed else ""
    return _end(request, host, "done", ticket, way_back.PASSWORD_CHANGED, place=place)


def _ask(request: HttpRequest, host: HostMatch, ticket: AccountTicket, secret: str, problem: Problem | None = None) -> HttpResponse:
    account = ticket.user.email or ticket.user.username or ""
    shown: dict[str, Any] = {"ticket": secret, "account": account}
    if is_prepared(ticket):
        # The client has already chosen the new password, so the page has no field for it. A problem of the password is shown without a
        # field.
        context = {"state": "confirm", "problems": [problem.text] if problem else [], **shown}
    else:
        context = {"state": "ask", **_new_password(ticket, account, [problem] if problem else []), **shown}
    return _page(request, host, context, status=400 if problem else 200, form_targets=way_back.result_targets(ticket.parameters))


def _new_password(ticket: AccountTicket, account: str, problems: Sequence[Problem]) -> dict[str, Any]:
    new: dict[str, Any] = {"type": "password", "autocomplete": "new-password", "maxlength": LONGEST_PASSWORD}
    fields = [
        Field("username", "", type=ACCOUNT_NAME, value=account),
        Field(
            "password",
            custom_text("reset-password.reset-password.passwordPlaceholder", _("New password")),
            hints=tuple(password_hints(ticket.user.connection.options)),
            **new,
        ),
        Field("repeated", custom_text("reset-password.reset-password.reEnterpasswordPlaceholder", _("Repeat the new password")), **new),
    ]
    return {"fields": form_fields(fields, problems), "problems": problems}


def _end(request: HttpRequest, host: HostMatch, state: str, ticket: AccountTicket, outcome: Outcome, *, place: str = "") -> HttpResponse:
    """Redirect to the return URL of the ticket, and add the result of the link to this URL. Without a return URL, show a result page."""
    speak_for(ticket.language, host.tenant_id)
    answer = way_back.result_answer(request, ticket.parameters, outcome, email=ticket.parameters.get("email", ""))
    if answer is not None:
        return answer
    link = way_back.link_after(ticket.client, ticket.parameters, host=host)
    return _page(request, host, {"state": state, "application": link, "place": place}, status=200 if outcome.is_success else 410)


def _page(
    request: HttpRequest, host: HostMatch, context: dict[str, Any], *, status: int = 200, form_targets: Sequence[str] = ()
) -> HttpResponse:
    # The URL of this page contains the ticket. `hides_address` keeps the URL out of referrers.
    return hosted_page(request, host, "reset_password", context, status=status, form_targets=form_targets, hides_address=True)
