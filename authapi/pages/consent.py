"""The consent page: what a client wants to do, and whether the user allows it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from authapi.failures import Case, RequestRefused
from authapi.login import flow
from authapi.login.consents import give_consent
from authapi.login.transactions import bind, note_progress
from authapi.login.visit import Visit
from authapi.models import Session
from authapi.pages.rendering import visit_page
from authapi.pages.tenant_page import opened_visit, tenant_page
from authapi.tokens.entitlements import UserEntitlement
from identity.hosts import HostMatch


@tenant_page("consent")
def consent_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show what is asked for, and take the answer."""
    visit, handle = opened_visit(request, host)
    try:
        session, row = visit.session, visit.row
        if session is None or row is None:
            # The session has ended meanwhile: back to the login.
            return flow.advance(visit, handle=handle)
        entitlement = visit.entitlement(session.user)
        if request.method != "POST":
            return _form(visit, handle, session, entitlement)
        if request.POST.get("user") != session.user.user_id:
            # Another user has logged in since the page was shown: what the first one allows is not theirs.
            return _form(visit, handle, session, entitlement)
        if request.POST.get("answer") != "allow":
            raise RequestRefused(Case.CONSENT_DENIED)
        give_consent(visit.client, session.user, entitlement)
        bind(row, session)
        note_progress(row, has_consented=True)
        return flow.advance(visit, handle=handle)
    except RequestRefused as refused:
        return flow.refuse(visit, refused)


def _form(visit: Visit, handle: str, session: Session, entitlement: UserEntitlement) -> HttpResponse:
    context = {"user": session.user, "scopes": _described(entitlement), "resource": entitlement.resource}
    return visit_page(visit, handle, "consent", context)


def _described(entitlement: UserEntitlement) -> list[str]:
    """Return each scope in words; a scope of an API without a description is named."""
    texts = {
        "openid": "",
        "profile": _("See your profile: your name, your picture and the like"),
        "email": _("See your e-mail address"),
        "phone": _("See your phone number"),
        "address": _("See your address"),
        "offline_access": _("Stay connected while you are away"),
        "online_access": _("Stay connected while you are logged in"),
    }
    own = entitlement.resource.scope_descriptions if entitlement.resource else {}
    named = [texts.get(scope, own.get(scope) or scope) for scope in entitlement.scopes]
    return [text for text in named if text] or [_("Know that you have logged in")]
