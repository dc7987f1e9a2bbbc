"""The sections with the user's sessions, and with the applications that the user has allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _

from authapi.accounts.self_service.access import (
    AllowedApplication,
    applications_of,
    end_other_sessions,
    end_own_session,
    sessions_of,
    take_back,
)
from authapi.models import ApiResource, Consent, Session
from authapi.pages.form_fields import Problem
from authapi.protocols.account.browser_words import browser_in_words
from authapi.protocols.account.visit import Visit
from authapi.protocols.oauth.terms import scope_words
from identity.languages import written_time

_EVERYWHERE_ELSE = "others"


@dataclass(frozen=True)
class _Place:
    """One session as the page shows it."""

    id: str
    browser: str
    place: str
    began: str
    last_used: str
    is_here: bool


def sessions_view(visit: Visit) -> HttpResponse:
    """Show the sessions. End one session, or all sessions except the current session."""
    problems = []
    if visit.is_form:
        named = visit.chosen("session")
        if named == _EVERYWHERE_ELSE:
            end_other_sessions(visit.own)
            return visit.done("logged-out-elsewhere")
        if end_own_session(visit.own, session_id=named):
            return visit.done("logged-out")
        # The text does not reveal whether the id belongs to a session of another user.
        problems = [Problem(_("That device is logged out already, or it is the one that you are using."))]
    places = [_place(session, visit) for session in sessions_of(visit.user)]
    places.sort(key=lambda place: not place.is_here)
    return visit.show("sessions", {"places": places, "everywhere_else": _EVERYWHERE_ELSE}, problems=problems)


def _place(session: Session, visit: Visit) -> _Place:
    place = session.last_ip or ""
    if place and session.last_country:
        place = _("%(address)s, country %(country)s") % {"address": place, "country": session.last_country}
    return _Place(
        session.pk,
        browser_in_words(session.last_user_agent) or _("Unknown browser"),
        place,
        written_time(session.created_at),
        written_time(session.last_interacted_at),
        is_here=session.pk == visit.session.pk,
    )


def applications_view(visit: Visit) -> HttpResponse:
    """Show the allowed applications, or withdraw the access of one application."""
    problems = []
    if visit.is_form:
        if take_back(visit.own, client_id=visit.chosen("application")):
            return visit.done("taken-back")
        problems = [Problem(_("This application has no access any more."))]
    applications = [_shown(one, visit.host.tenant_id) for one in applications_of(visit.user)]
    return visit.show("applications", {"applications": applications}, problems=problems)


def _shown(allowed: AllowedApplication, tenant_id: str) -> dict[str, Any]:
    used_at = allowed.last_used_at
    return {
        "id": allowed.client.client_id,
        "name": allowed.client.name or allowed.client.client_id,
        "grants": [_grant(consent, tenant_id) for consent in allowed.consents],
        "since": written_time(min(consent.created_at for consent in allowed.consents)),
        "last_used": written_time(used_at) if used_at is not None else "",
    }


def _grant(consent: Consent, tenant_id: str) -> dict[str, Any]:
    """Return one consent in words. If the API was deleted, its identifier is shown."""
    resource = ApiResource.objects.of(tenant_id).filter(identifier=consent.audience).first() if consent.audience else None
    return {"resource": str(resource) if resource is not None else consent.audience, "texts": scope_words(consent.scopes, resource)}
