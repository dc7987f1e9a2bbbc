"""The login page. Users log in with a password (of the remembered account or of another account), a passkey, a code or an external
provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from authapi import upstream
from authapi.accounts.account_mails import RESET_REQUEST_PATH
from authapi.accounts.attempts import Attempt, LoginRefused, Refusal
from authapi.accounts.password_login import log_in
from authapi.accounts.passwordless.connections import passwordless_among
from authapi.custom_texts import client_values, custom_text
from authapi.factors.kinds import PASSKEY_METHODS
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import flow, round_trips
from authapi.login.browser import see_other, with_parameters
from authapi.login.connections import takes_passwords
from authapi.login.decision import Offer, Step
from authapi.login.flow import ProvenUser
from authapi.login.login import Login
from authapi.pages.factors.passkeys import CREDENTIAL, note_ability, passkey_parts, person_of_passkey
from authapi.pages.form_fields import (
    ACCOUNT_NAME,
    LONGEST_PASSWORD,
    Field,
    FieldLink,
    Problem,
    form_fields,
    identifier_field,
    identifier_problem,
)
from authapi.pages.hosted_page import with_rate
from authapi.pages.invitation_notice import invitation_notice
from authapi.pages.passwordless import label_of, page_for
from authapi.pages.remembered import ACCOUNT, FORGET, OTHER, forgotten, offered_account, wants_other
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from authapi.services import sign_in_log
from authapi.tenant_settings import sign_in_settings
from identity.hosts import HostMatch
from identity.models import Connection
from identity.options.connection_options import login_identifiers
from identity.options.guides import BRANDS

_STATUSES = {Refusal.TOO_MANY_ATTEMPTS: 429, Refusal.TOO_MANY_LOGINS: 429, Refusal.SUSPICIOUS_ADDRESS: 429}


@tenant_page("login")
def login_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the form, log in, forget the remembered account, or redirect to the provider that the user chose."""
    login, handle = opened_login(request, host)
    try:
        login.check()
        if login.offer is Offer.GONE:
            return flow.advance(login, handle=handle)
        if request.method == "POST":
            if FORGET in request.POST:
                return forgotten(login, _address(handle))
            return _log_in_with_passkey(login, handle) if request.POST.get(CREDENTIAL) else _log_in(login, handle)
        by_code = _by_code(login, request.GET.get("connection", ""))
        if by_code is not None:
            return see_other(request, page_for(handle, by_code, wants_other=wants_other(login)))
        elsewhere = _elsewhere(login, request.GET.get("connection", ""))
        return _form(login, handle) if elsewhere is None else _leave(login, handle, elsewhere)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _log_in(login: Login, handle: str) -> HttpResponse:
    sent = login.http_request.POST
    # An invitation is for one address, so a name in the form is ignored.
    identifier, password = login.invited_email or sent.get("username", "").strip(), sent.get("password", "")
    responsible = upstream.connection_for_email(login.client, identifier)
    if responsible is not None and responsible in login.connections:
        return _leave(login, handle, responsible)
    connection = password_connection(login)
    if connection is None:
        raise RequestRefused(LoginCase.NO_CONNECTION)
    if problems := _obvious_problems(login, connection, identifier, password):
        return _form(login, handle, identifier=identifier, problems=problems, status=400)
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
        place = _reset_address(handle) if refused.reason is Refusal.PASSWORD_LEAKED else ""
        status, problems = _STATUSES.get(refused.reason, 400), [Problem(_text(login, connection, refused.reason), address=place)]
        return with_rate(_form(login, handle, identifier=identifier, problems=problems, status=status), refused.rate)
    note_ability(login)
    return flow.user_authenticated(login, ProvenUser(user, connection, methods=("pwd",), identifier=identifier), handle=handle)


def _log_in_with_passkey(login: Login, handle: str) -> HttpResponse:
    try:
        person = person_of_passkey(login)
    except LoginRefused as refused:
        if refused.reason is Refusal.USER_BLOCKED:
            raise RequestRefused(LoginCase.USER_BLOCKED) from refused
        status = _STATUSES.get(refused.reason, 400)
        text = _too_many_failures(login) if status == 429 else _("This passkey was not accepted. Try again, or log in another way.")
        return with_rate(_form(login, handle, problems=[Problem(text)], status=status), refused.rate)
    return flow.user_authenticated(login, ProvenUser(person.user, person.connection, methods=PASSKEY_METHODS), handle=handle)


def password_connection(login: Login) -> Connection | None:
    """Return the connection that checks passwords: the tenant's default directory if usable, otherwise the oldest usable connection."""
    databases = [connection for connection in login.connections if takes_passwords(connection)]
    default = sign_in_settings(login.host.tenant_id).default_directory
    return next((one for one in databases if one.name == default), next(iter(databases), None))


def _obvious_problems(login: Login, connection: Connection, identifier: str, password: str) -> list[Problem]:
    """Return the problems that the values in the form show, without reading an account."""
    found = []
    if text := identifier_problem(connection.options, identifier):
        found.append(Problem(text, "username"))
    if not password:
        found.append(Problem(_("Enter your password."), "password"))
    # No account has such a long password. The text is the same as for a wrong password, so it does not reveal whether the account exists.
    return found or ([Problem(_text(login, connection, Refusal.WRONG_CREDENTIALS))] if len(password) > LONGEST_PASSWORD else [])


def _address(handle: str, **more: str) -> str:
    return with_parameters(flow.PAGES[Step.LOGIN], {flow.HANDLE: handle, **more})


def _reset_address(handle: str) -> str:
    return f"{RESET_REQUEST_PATH}?{urlencode({flow.HANDLE: handle})}"


def _by_code(login: Login, named: str) -> Connection | None:
    """Return the connection that logs in with a code: the connection that the user chose, or the only usable connection."""
    usable = login.connections
    found = [one for one in passwordless_among(usable) if one.name == named or (not named and len(usable) == 1)]
    return next(iter(found), None)


def _elsewhere(login: Login, named: str) -> Connection | None:
    """Return the connection of the provider to redirect to: the connection that the user chose, or the only usable connection."""
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
        # Only the sign-in log contains the reason, not the page: the reason is for administrators.
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
        return _form(login, handle, problems=[Problem(_("The other service cannot be reached. Try again later."))], status=502)


def _form(login: Login, handle: str, *, identifier: str = "", problems: Sequence[Problem] = (), status: int = 200) -> HttpResponse:
    database = password_connection(login)
    offered = upstream.buttons(login.client)
    account = offered_account(login, database, identifier) if database else ""
    context: dict[str, Any] = {
        "invitation": invitation_notice(login),
        "takes_password": database is not None,
        "account": account,
        "other_account": _address(handle, **{ACCOUNT: OTHER}),
        "links": [
            *_code_links(login, handle),
            *(_provider_link(one, handle) for one in login.connections if one in offered),
        ],
        "problems": problems,
        **passkey_parts(login),
        "sign_up": f"{flow.PAGES[Step.CREATE]}?{urlencode({flow.HANDLE: handle})}" if database and login.may_sign_up(database) else "",
    }
    if database is not None:
        named = client_values(login.client)
        forgot = custom_text("login.login.forgotPasswordText", _("Forgot password?"), **named)
        password = Field(
            "password",
            custom_text("login.login.passwordPlaceholder", _("Password"), **named),
            type="password",
            autocomplete="current-password",
            maxlength=LONGEST_PASSWORD,
            link=FieldLink(_reset_address(handle), forgot),
        )
        name = Field("username", "", type=ACCOUNT_NAME, value=account) if account else _name_field(login, database, identifier)
        if context.get("passkey", {}).get("has_autofill"):
            # HTML, "autofill": browsers list passkeys at the first visible field with `webauthn` in `autocomplete`.
            password = replace(password, autocomplete=f"{password.autocomplete} webauthn") if account else password
            name = name if account else replace(name, autocomplete=f"{name.autocomplete} webauthn")
        context["fields"] = form_fields([name, password], problems)
    return render_page(login, handle, "login", context, status=status)


def _name_field(login: Login, database: Connection, typed: str) -> Field:
    named = client_values(login.client)
    field = identifier_field(database.options, value=typed or login.login_hint, **named)
    if not login.invited_email:
        return field
    label = custom_text("login.login.emailPlaceholder", _("Email address"), **named)
    return replace(field, label=label, value=login.invited_email, is_fixed=True)


def _code_links(login: Login, handle: str) -> list[dict[str, str]]:
    other = {ACCOUNT: OTHER} if wants_other(login) else {}
    codes = passwordless_among(login.connections)
    return [{"label": label_of(one), "address": f"?{urlencode({flow.HANDLE: handle, 'connection': one.name, **other})}"} for one in codes]


def _provider_link(connection: Connection, handle: str) -> dict[str, str]:
    return {
        "name": upstream.label_of(connection),
        "address": f"?{urlencode({flow.HANDLE: handle, 'connection': connection.name})}",
        "icon": f"hosted/icons/{connection.strategy}.svg" if connection.strategy in BRANDS else "",
    }


def _text(login: Login, connection: Connection, reason: Refusal) -> str:
    """Return the text for a refusal. The text does not reveal whether the account exists."""
    named = client_values(login.client)
    if reason is Refusal.WRONG_CREDENTIALS and login_identifiers(connection.options) == ("email",):
        return custom_text("login.login.wrong-email-credentials", _("Wrong email address or password."), **named)
    texts = {
        Refusal.WRONG_CREDENTIALS: custom_text("login.login.wrong-credentials", _("Wrong account name or password."), **named),
        Refusal.TOO_MANY_ATTEMPTS: custom_text(
            "login.login.user-blocked",
            _("This account is blocked after too many failed logins. If it is yours, check your email: we sent you a link to unblock it."),
            **named,
        ),
        Refusal.TOO_MANY_LOGINS: _("Too many logins in a short time. Wait a minute, then try again."),
        Refusal.SUSPICIOUS_ADDRESS: _too_many_failures(login),
        Refusal.PASSWORD_LEAKED: custom_text(
            "login.login.password-breached", _("This password appeared in a data leak elsewhere. Reset it to continue."), **named
        ),
    }
    return texts[reason]


def _too_many_failures(login: Login) -> str:
    named = client_values(login.client)
    return custom_text("login.login.ip-blocked", _("Too many failed logins from your network. Try again later."), **named)
