"""The sign-up page: creates an account and logs in with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from authapi.accounts.event_context import context_of
from authapi.accounts.password_login import note_login_without_signals
from authapi.accounts.sign_up import Reason, SignUp, SignUpRefused, sign_up
from authapi.accounts.sign_up_rules import IDENTIFIERS, Demand, demands, username_lengths
from authapi.custom_texts import client_values, custom_text
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import flow
from authapi.login.decision import Offer, Step
from authapi.login.flow import ProvenUser
from authapi.login.login import Login
from authapi.pages.factors.passkeys import ability_parts, note_ability
from authapi.pages.form_fields import LONGEST_EMAIL, LONGEST_PASSWORD, Field, Problem, email_problem, form_fields
from authapi.pages.hosted_page import with_rate
from authapi.pages.invitation_notice import invitation_notice
from authapi.pages.login import password_connection
from authapi.pages.password_hints import password_hints, refusal_text
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from foundation.change_context import change_context
from identity.hosts import HostMatch
from identity.models import Connection

_LONGEST = {"email": LONGEST_EMAIL, "username": 128, "phone_number": 40}


@tenant_page("signup")
def sign_up_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the form, or create the account and continue the login."""
    login, handle = opened_login(request, host)
    try:
        login.check()
        if login.offer is Offer.GONE:
            return flow.advance(login, handle=handle)
        connection = password_connection(login)
        if connection is None or not login.may_sign_up(connection):
            raise RequestRefused(LoginCase.NO_CONNECTION)
        if request.method == "POST":
            return _make_account(login, handle, connection)
        return _form(login, handle, connection, values={"email": login.login_hint})
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _make_account(login: Login, handle: str, connection: Connection) -> HttpResponse:
    sent = login.http_request.POST
    values = {name: sent.get(name, "").strip()[: _LONGEST[name]] for name in IDENTIFIERS}
    if login.invited_email:
        # An invitation is for one address, so another address in the form is ignored.
        values["email"] = login.invited_email
    password = sent.get("password", "")
    if not password or len(password) > LONGEST_PASSWORD:
        return _form(login, handle, connection, values=values, problems=_without_password(connection, values), status=400)
    wanted = SignUp(
        connection=connection,
        password=password,
        profile={name: value for name, value in values.items() if value},
        client=login.client,
        ip=login.address,
        user_agent=login.user_agent,
        address=login.host.issuer.rstrip("/"),
        is_invited=bool(login.invited_email),
        is_mail_due=not login.has_proven_mailbox,
    )
    try:
        with change_context(context_of(login.host, login.client, ip=login.address, user_agent=login.user_agent)):
            user = sign_up(wanted)
    except SignUpRefused as refused:
        status = 429 if refused.reason is Reason.SUSPICIOUS_ADDRESS else 400
        page = _form(login, handle, connection, values=values, problems=_problems(connection, refused), status=status)
        return with_rate(page, refused.rate)
    note_login_without_signals(user, login.address)
    note_ability(login)
    typed = next((value for value in values.values() if value), "")
    return flow.user_authenticated(login, ProvenUser(user, connection, methods=("pwd",), identifier=typed), handle=handle)


def _form(
    login: Login,
    handle: str,
    connection: Connection,
    *,
    values: dict[str, str],
    problems: Sequence[Problem] = (),
    status: int = 200,
) -> HttpResponse:
    wanted = demands(connection.options)
    shown = [name for name in IDENTIFIERS if wanted[name] is not Demand.INACTIVE]
    fields = [
        _field(login, name, values.get(name, ""), is_only=len(shown) == 1, is_required=wanted[name] is Demand.REQUIRED) for name in shown
    ]
    fields = [replace(field, is_fixed=field.name == "email" and bool(login.invited_email)) for field in fields]
    named = client_values(login.client)
    password = Field(
        "password",
        custom_text("signup.signup.passwordPlaceholder", _("Password"), **named),
        type="password",
        autocomplete="new-password",
        maxlength=LONGEST_PASSWORD,
        hints=tuple(password_hints(connection.options)),
    )
    context: dict[str, Any] = {
        "fields": form_fields([*fields, password], problems),
        "problems": problems,
        "log_in": f"{flow.PAGES[Step.LOGIN]}?{urlencode({flow.HANDLE: handle})}",
        "invitation": invitation_notice(login),
        **ability_parts(login),
    }
    return render_page(login, handle, "sign_up", context, status=status)


def _field(login: Login, name: str, value: str, *, is_only: bool, is_required: bool) -> Field:
    """Return a field with the attributes by which password managers recognize it (HTML, "autofill")."""
    named = client_values(login.client)
    label, kind, autocomplete = {
        "email": (custom_text("signup.signup.emailPlaceholder", _("Email address"), **named), "email", "username" if is_only else "email"),
        "username": (custom_text("signup.signup.usernamePlaceholder", _("Username"), **named), "text", "username"),
        "phone_number": (custom_text("signup.signup.phonePlaceholder", _("Phone number"), **named), "tel", "tel"),
    }[name]
    return Field(
        name,
        label,
        type=kind,
        value=value,
        autocomplete=autocomplete,
        inputmode="" if kind == "text" else kind,
        maxlength=_LONGEST[name],
        is_required=is_required,
    )


def _without_password(connection: Connection, values: dict[str, str]) -> list[Problem]:
    """Return the problems of a form whose password is empty: every missing or malformed value, so that the user can correct all values at
    once."""
    wanted = demands(connection.options)
    wrong = [name for name in IDENTIFIERS if wanted[name] is Demand.REQUIRED and not values[name]]
    if values["email"] and email_problem(values["email"]):
        wrong.append("email")
    return [*(Problem(_field_text(connection, name), name) for name in wrong), Problem(_("Choose a password."), "password")]


def _problems(connection: Connection, refused: SignUpRefused) -> list[Problem]:
    """Return why the account is refused. Does not reveal whether the account already exists."""
    match refused.reason:
        case Reason.INVALID:
            return [Problem(_field_text(connection, name), name) for name in refused.fields]
        case Reason.PASSWORD_TOO_WEAK if refused.weak is not None:
            return [Problem(refusal_text(refused.weak.problem), "password")]
        case Reason.SUSPICIOUS_ADDRESS:
            return [Problem(_("Too many accounts were created from your network. Try again later."))]
        case _:
            return [Problem(_("This account cannot be created. If you already have an account, log in or reset your password there."))]


def _field_text(connection: Connection, name: str) -> str:
    shortest, longest = username_lengths(connection.options)
    texts = {
        "email": _("Enter an email address like name@example.com."),
        "username": ngettext(
            "Enter a username of %(shortest)d to %(longest)d character, without spaces.",
            "Enter a username of %(shortest)d to %(longest)d characters, without spaces.",
            longest,
        )
        % {"shortest": shortest, "longest": longest},
        "phone_number": _("Enter a phone number with the country code, like +15550100."),
    }
    return texts.get(name, _("Enter another value."))
