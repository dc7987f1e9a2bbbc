"""The page on which a user chooses the organization, by typing its name before the login, or by selecting it after the login."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from authapi.custom_texts import client_values, custom_text
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import flow, organizations
from authapi.login.decision import Question
from authapi.login.login import Login
from authapi.login.transactions import CHOSEN, bind, note_progress
from authapi.models import Session
from authapi.pages.form_fields import Field, Problem, form_fields
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from identity.hosts import HostMatch
from identity.models import Organization

# The page lists at most this number of organizations. A user with more organizations can type the name of one.
_SHOWN = 100
_LONGEST_NAME = 64


@tenant_page("organization")
def organization_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the page on which the user chooses the organization, and process the answer."""
    login, handle = opened_login(request, host)
    try:
        if login.question is Question.BEFORE_LOGIN:
            return _named(login, handle)
        session = login.session
        if login.question is None or session is None or login.is_half_proven or not login.situation().is_usable:
            return flow.advance(login, handle=handle)
        return _chosen(login, handle, session)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _named(login: Login, handle: str) -> HttpResponse:
    if login.http_request.method != "POST":
        return _page(login, handle)
    name = login.http_request.POST.get("name", "").strip()
    found = organizations.find_organization(login.host.tenant_id, name) if name else None
    if found is None:
        text = _("There is no organization with this name.") if name else _("Enter the name of your organization.")
        return _page(login, handle, name=name, problems=[Problem(text, "name")], status=400)
    return _go_on(login, handle, found)


def _chosen(login: Login, handle: str, session: Session) -> HttpResponse:
    """Let a user choose an organization, or none if the client allows that. With a single choice, continue without showing the page."""
    is_optional = organizations.usage_of(login.client) == "allow"
    own = organizations.organizations_of(session.user, session.connection, limit=_SHOWN + 1)
    if not own and not is_optional:
        raise RequestRefused(LoginCase.NO_ORGANIZATION, user=session.user.user_id)
    if len(own) + is_optional <= 1:
        return _go_on(login, handle, own[0] if own else None)
    context: dict[str, Any] = {"user": session.user, "own": own[:_SHOWN], "is_cut": len(own) > _SHOWN, "is_optional": is_optional}
    sent = login.http_request.POST
    # Another user may have logged in since the page was shown. The answer of the first user must not apply to the other user.
    if login.http_request.method != "POST" or sent.get("user") != session.user.user_id:
        return _page(login, handle, **context)
    if is_optional and sent.get("answer") == "none":
        return _go_on(login, handle, None)
    named = sent.get("answer") or sent.get("name", "").strip()
    found = organizations.find_organization(login.host.tenant_id, named) if named else None
    if found is None or not organizations.is_open_to(found, session.user, session.connection):
        is_typed = len(own) > _SHOWN and not sent.get("answer")
        problem = Problem(_("You are not a member of this organization."), "name" if is_typed else "")
        return _page(login, handle, **context, name=sent.get("name", "").strip(), problems=[problem], status=400)
    return _go_on(login, handle, found)


def _go_on(login: Login, handle: str, organization: Organization | None) -> HttpResponse:
    session, row = login.session, login.row
    if login.question is Question.AFTER_LOGIN and session is not None:
        bind(row, session)
        session.organization = organization
        session.save(update_fields=["organization"])
    note_progress(row, **{CHOSEN: organization.pk if organization else ""})
    return flow.resume(login.http_request, login.host, row, handle=handle)


def _page(
    login: Login, handle: str, *, name: str = "", problems: Sequence[Problem] = (), status: int = 200, **context: Any
) -> HttpResponse:
    label = custom_text(
        "organizations.organization-selection.organizationNamePlaceholder", _("Name of your organization"), **client_values(login.client)
    )
    field = Field("name", label, value=name, autocomplete="organization", maxlength=_LONGEST_NAME)
    context |= {"fields": form_fields([field], problems), "problems": problems}
    return render_page(login, handle, "organization", context, status=status)
