"""The login page: a password, or one of the providers elsewhere."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from authapi import upstream
from authapi.accounts.account_mails import RESET_REQUEST_PATH
from authapi.accounts.attempts import Attempt, LoginRefused, Refusal
from authapi.accounts.password_login import log_in
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import flow, round_trips
from authapi.login.connections import takes_passwords
from authapi.login.decision import Offer, Step
from authapi.login.flow import ProvenUser
from authapi.login.login import Login
from authapi.pages.hosted_page import with_rate
from authapi.pages.invitation_notice import invitation_notice
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from authapi.services import sign_in_log
from authapi.tenant_settings import sign_in_settings
from identity.hosts import HostMatch
from identity.models import Connection

_LONGEST_IDENTIFIER = 254
_LONGEST_PASSWORD = 4096
_STATUSES = {Refusal.TOO_MANY_ATTEMPTS: 429, Refusal.TOO_MANY_LOGINS: 429, Refusal.SUSPICIOUS_ADDRESS: 429}


@tenant_page("login")
def login_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the form, log in, or send the browser to the provider that it names."""
    login, handle = opened_login(request, host)
    try:
        login.check()
        if login.offer is Offer.GONE:
            return flow.advance(login, handle=handle)
        if request.method == "POST":
            return _log_in(login, handle)
        elsewhere = _elsewhere(login, request.GET.get("connection", ""))
        return _form(login, handle) if elsewhere is None else _leave(login, handle, elsewhere)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _log_in(login: Login, handle: str) -> HttpResponse:
    sent = login.http_request.POST
    # An invitation is for one address, so that another name in the form counts for nothing.
    identifier, password = login.invited_email or sent.get("username", "").strip(), sent.get("password", "")
    responsible = upstream.connection_for_email(login.client, identifier)
    if responsible is not None and responsible in login.connections:
        return _leave(login, handle, responsible)
    connection = password_connection(login)
    if connection is None:
        raise RequestRefused(LoginCase.NO_CONNECTION)
    if not identifier or not password or len(identifier) > _LONGEST_IDENTIFIER or len(password) > _LONGEST_PASSWORD:
        return _form(login, handle, identifier=identifier, problem=_text(Refusal.WRONG_CREDENTIALS), status=400)
    attempt = Attempt(
        tenant_id=login.host.tenant_id,
        connection=connection,
        identifier=identifier,
        password=password,
        ip=login.address,
        user_agent=login.user_agent,
        client=login.client,
        address=login.host.issuer.rstrip("/"),
    )
    try:
        user = log_in(attempt)
    except LoginRefused as refused:
        if refused.reason is Refusal.USER_BLOCKED:
            raise RequestRefused(LoginCase.USER_BLOCKED) from refused
        status = _STATUSES.get(refused.reason, 400)
        return with_rate(_form(login, handle, identifier=identifier, problem=_text(refused.reason), status=status), refused.rate)
    return flow.user_authenticated(login, ProvenUser(user, connection, methods=("pwd",)), handle=handle)


def password_connection(login: Login) -> Connection | None:
    """Return where a password is checked: the tenant's default directory if it may be used here, else the oldest that may."""
    databases = [connection for connection in login.connections if takes_passwords(connection)]
    default = sign_in_settings(login.host.tenant_id).default_directory
    return next((one for one in databases if one.name == default), next(iter(databases), None))


def _elsewhere(login: Login, named: str) -> Connection | None:
    """Return the provider to leave for at once: the one that was clicked, or the only way there is."""
    usable = login.connections
    if named:
        found = upstream.named_connection(login.client, named)
        return found if found in usable else None
    if len(usable) == 1:
        return upstream.named_connection(login.client, usable[0].name)
    return None


def _leave(login: Login, handle: str, connection: Connection) -> HttpResponse:
    try:
        return round_trips.send(login.http_request, upstream.begin(login, connection))
    except upstream.UpstreamFailed as failed:
        # The page does not show the reason; the log of the tenant does.
        sign_in_log.note(
            tenant_id=login.host.tenant_id,
            type="f",
            is_success=False,
            description=f"{failed.failure.description} {failed.detail}",
            client=login.client,
            connection=connection.name,
            ip=login.address,
            user_agent=login.user_agent,
        )
        return _form(login, handle, problem=_("The other service cannot be reached. Try again later."), status=502)


def _form(login: Login, handle: str, *, identifier: str = "", problem: str = "", status: int = 200) -> HttpResponse:
    database = password_connection(login)
    offered = upstream.buttons(login.client)
    context: dict[str, Any] = {
        "identifier": identifier or login.login_hint,
        "invitation": invitation_notice(login),
        "takes_password": database is not None,
        "links": [
            {"name": one.display_name or one.name, "address": f"?{urlencode({flow.HANDLE: handle, 'connection': one.name})}"}
            for one in login.connections
            if one in offered
        ],
        "problems": [problem] if problem else [],
        "sign_up": f"{flow.PAGES[Step.CREATE]}?{urlencode({flow.HANDLE: handle})}" if database and login.may_sign_up(database) else "",
        "reset": f"{RESET_REQUEST_PATH}?{urlencode({flow.HANDLE: handle})}" if database else "",
    }
    return render_page(login, handle, "login", context, status=status)


def _text(reason: Refusal) -> str:
    """Say what happened, and nothing about whether there is such an account."""
    texts = {
        Refusal.WRONG_CREDENTIALS: _("Wrong e-mail address, username or password."),
        Refusal.TOO_MANY_ATTEMPTS: _(
            "This account is blocked after too many failed logins. If it is yours, we have sent you a mail that tells how to unblock it."
        ),
        Refusal.TOO_MANY_LOGINS: _("Too many logins in a short time. Wait a minute, then try again."),
        Refusal.SUSPICIOUS_ADDRESS: _("Too many failed logins from your network. Try again later."),
        Refusal.PASSWORD_LEAKED: _("This password has become known elsewhere. Reset it to go on."),
    }
    return texts[reason]
