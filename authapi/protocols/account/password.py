"""The section in which users change their password."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _

from authapi.accounts.self_service.own_act import shown_name
from authapi.accounts.self_service.password import PasswordChange, change_password
from authapi.edge.throttling import Rate
from authapi.pages.form_fields import ACCOUNT_NAME, LONGEST_PASSWORD, Field, Problem, form_fields
from authapi.pages.password_hints import password_hints, refusal_text
from authapi.protocols.account.visit import Visit
from identity.services.profile_rules import PasswordTooWeak


def view(visit: Visit) -> HttpResponse:
    """Show the form, or set the password. No page contains the typed passwords."""
    if not visit.is_form:
        return _page(visit)
    present, new, repeated = (visit.request.POST.get(name, "") for name in ("present", "password", "repeated"))
    problems = _problems(present, new, repeated)
    if problems:
        return _page(visit, problems)
    try:
        change = change_password(visit.own, present=present, new=new)
    except PasswordTooWeak as weak:
        return _page(visit, [Problem(refusal_text(weak.problem), "password")])
    if not change.cookie:
        return _page(visit, [_refusal(change)], change.rate)
    return visit.keep_session(visit.done("password", section=""), change.cookie)


def _problems(present: str, new: str, repeated: str) -> list[Problem]:
    if not present or len(present) > LONGEST_PASSWORD:
        return [Problem(_("Enter your current password."), "present")]
    if not new or len(new) > LONGEST_PASSWORD:
        return [Problem(_("Choose a password."), "password")]
    return [] if new == repeated else [Problem(_("The passwords do not match."), "repeated")]


def _refusal(change: PasswordChange) -> Problem:
    if change.rate is not None:
        return Problem(_("There were too many attempts. Wait a few minutes, then try again."))
    if change.is_blocked:
        return Problem(_("There were too many wrong passwords. Log out and choose “Forgot password?” at the login."))
    return Problem(_("This is not your current password."), "present")


def _page(visit: Visit, problems: Sequence[Problem] = (), rate: Rate | None = None) -> HttpResponse:
    new: dict[str, Any] = {"type": "password", "autocomplete": "new-password", "maxlength": LONGEST_PASSWORD}
    fields = [
        Field("username", "", type=ACCOUNT_NAME, value=shown_name(visit.user)),
        Field("present", _("Current password"), type="password", autocomplete="current-password", maxlength=LONGEST_PASSWORD),
        Field("password", _("New password"), hints=tuple(password_hints(visit.user.connection.options)), **new),
        Field("repeated", _("Repeat the new password"), **new),
    ]
    return visit.show("password", {"fields": form_fields(fields, problems)}, problems=problems, rate=rate)
