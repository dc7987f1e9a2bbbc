"""The consent page: shows what a client requests, and lets the user allow or deny the request."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.login import flow
from authapi.login.consents import give_consent
from authapi.login.login import Login
from authapi.login.transactions import bind, note_progress
from authapi.login.wish import Terms
from authapi.models import Session
from authapi.pages.rendering import render_page
from authapi.pages.tenant_page import opened_login, tenant_page
from identity.hosts import HostMatch


@tenant_page("consent")
def consent_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the terms of the client, and process the user's answer."""
    login, handle = opened_login(request, host)
    try:
        session = login.session
        if session is None or login.is_half_proven:
            # The session has ended, or a second factor is required. `advance` shows the page for the missing step.
            return flow.advance(login, handle=handle)
        terms = login.terms(session.user)
        if request.method != "POST":
            return _form(login, handle, session, terms)
        if request.POST.get("user") != session.user.user_id:
            # Another user has logged in since the page was shown. The answer of the first user must not apply to the other user.
            return _form(login, handle, session, terms)
        if request.POST.get("answer") != "allow":
            raise RequestRefused(LoginCase.CONSENT_DENIED)
        give_consent(login.client, session.user, terms)
        bind(login.row, session)
        note_progress(login.row, has_consented=True)
        return flow.advance(login, handle=handle)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _form(login: Login, handle: str, session: Session, terms: Terms) -> HttpResponse:
    context = {"user": session.user, "scopes": terms.texts, "resource": terms.resource, "explanations": terms.explanations}
    context |= {"circumstances": terms.circumstances, "warning": terms.warning}
    return render_page(login, handle, "consent", context)
