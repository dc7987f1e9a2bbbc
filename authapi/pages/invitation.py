"""The pages of an invitation: the page that the link in the mail opens, and the page of a login on which the user accepts or declines."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from authapi.accounts.event_context import context_of
from authapi.edge.rate_figures import GUEST_MAILS
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.invitations.acceptance import (
    AddressUnproven,
    Guest,
    InvitationOfAnother,
    InvitationOver,
    accept_invitation,
    is_addressed_to,
    note_failure,
)
from authapi.invitations.links import application_address, mailed_invitation
from authapi.login import flow
from authapi.login.browser import see_other
from authapi.login.cookies import INVITED, set_cookie
from authapi.login.decision import Offer, Step, next_step
from authapi.login.invitations import MARK_SECONDS, mark_of
from authapi.login.login import Login
from authapi.models import Invitation, Session
from authapi.pages.application_link import ApplicationLink, application_link
from authapi.pages.form_fields import Problem
from authapi.pages.hosted_page import hosted_page
from authapi.pages.invitation_notice import invitation_notice
from authapi.pages.rendering import render_page
from authapi.pages.spoken import speak_for
from authapi.pages.tenant_page import opened_login, tenant_page
from foundation.change_context import change_context
from identity.hosts import HostMatch
from identity.mail.verification import start_verification
from identity.services.failures import BeingDeleted, NotFound

_GONE, _UNKNOWN = 410, 404


@tenant_page("invitation_link", methods=("GET",))
def open_invitation(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Record in a cookie that this browser has opened the link in the mail, and redirect to the application.

    The link stays valid, because mail scanners also open links.
    """
    invitation = mailed_invitation(tenant_id=host.tenant_id, secret=request.GET.get("ticket", ""))
    state = _state(invitation)
    address = application_address(invitation) if invitation is not None and state is Invitation.State.PENDING else ""
    if invitation is None or not address:
        if invitation is not None:
            speak_for(invitation.language, host.tenant_id)
        context = {"state": state or "unknown", "application": _application(invitation, host)}
        return hosted_page(request, host, "invitation_over", context, status=_GONE if state else _UNKNOWN, hides_address=True)
    answer = see_other(request, address)
    set_cookie(answer, INVITED, mark_of(invitation), seconds=MARK_SECONDS)
    answer["Cache-Control"] = "no-store"
    answer["Referrer-Policy"] = "no-referrer"
    return answer


@tenant_page("invitation")
def invitation_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Ask the user who has logged in to accept the invitation, and process the answer; or show why the invitation is not valid."""
    login, handle = opened_login(request, host)
    try:
        if login.offer is Offer.GONE:
            return _over(login, handle)
        session, invitation = login.session, login.invitation
        if session is None or invitation is None or next_step(login.wish, login.situation()) is not Step.INVITATION:
            return flow.advance(login, handle=handle)
        # Another user may have logged in since the page was shown. The answer of the first user must not apply to the other user.
        if request.method != "POST" or request.POST.get("user") != session.user.user_id:
            return _ask(login, handle, session, invitation)
        return _answered(login, handle, session, invitation)
    except RequestRefused as refused:
        return flow.refuse(login, refused)


def _answered(login: Login, handle: str, session: Session, invitation: Invitation) -> HttpResponse:
    match login.http_request.POST.get("answer"):
        case "decline":
            raise RequestRefused(LoginCase.INVITATION_DECLINED)
        case "mail":
            return _mail(login, handle, session, invitation)
        case _:
            return _accept(login, handle, session, invitation)


def _accept(login: Login, handle: str, session: Session, invitation: Invitation) -> HttpResponse:
    guest = _guest(login, session)
    try:
        with change_context(context_of(login.host, login.client, ip=login.address, user_agent=login.user_agent)):
            accept_invitation(invitation, guest)
    except (InvitationOver, NotFound, BeingDeleted):
        note_failure(invitation, guest, InvitationOver())
        return flow.resume(login.http_request, login.host, login.row, handle=handle)
    except (InvitationOfAnother, AddressUnproven) as problem:
        note_failure(invitation, guest, problem)
        return _ask(login, handle, session, invitation, status=403)
    return flow.resume(login.http_request, login.host, login.row, handle=handle)


def _mail(login: Login, handle: str, session: Session, invitation: Invitation) -> HttpResponse:
    """Mail a link that verifies the address of the account. The number of mails is limited."""
    user = session.user
    is_due = is_addressed_to(invitation, user) and not user.email_verified
    if is_due and not GUEST_MAILS.takes(login.host.tenant_id, user.user_id):
        return _ask(login, handle, session, invitation, status=429, problems=[_too_many()])
    if is_due:
        start_verification(
            tenant_id=user.tenant_id, user_id=user.user_id, client_id=login.client.client_id, address=login.host.issuer.rstrip("/")
        )
    return _ask(login, handle, session, invitation, is_sent=is_due)


def _ask(login: Login, handle: str, session: Session, invitation: Invitation, *, status: int = 200, **context: Any) -> HttpResponse:
    user, guest = session.user, _guest(login, session)
    if not is_addressed_to(invitation, user):
        state = "other_account"
    else:
        state = "ask" if user.email_verified or guest.has_proven_mailbox else "unproven"
    shown = {
        "state": state,
        "user": user,
        "invitation": invitation_notice(login),
        "log_in": f"{flow.PAGES[Step.LOGIN]}?{urlencode({flow.HANDLE: handle})}",
        "again": f"{flow.PAGES[Step.INVITATION]}?{urlencode({flow.HANDLE: handle})}",
    }
    return render_page(login, handle, "invitation", {**shown, **context}, status=status)


def _too_many() -> Problem:
    return Problem(_("Too many emails in a short time. Wait some minutes, then try again."))


def _guest(login: Login, session: Session) -> Guest:
    """Return the user who answers the invitation. The mark of the mailed link counts only if the user has logged in during this login.

    An attacker may already have created an account with the invited address. A session of that account in the browser of the invited user
    proves nothing, and the mark of the mail must not verify the attacker's account.
    """
    has_logged_in = login.situation().has_logged_in
    return Guest(session.user, session.connection, has_logged_in and login.has_proven_mailbox, login.address, login.user_agent)


def _over(login: Login, handle: str) -> HttpResponse:
    if login.http_request.POST.get("answer") == "leave":
        raise RequestRefused(LoginCase.INVITATION_OVER)
    invitation = login.invitation
    # If the invitation does not exist, its application is unknown, so the page cannot link to the application. Instead, the page has a
    # button that sends the error response of this login to the client.
    application = _application(invitation, login.host) if invitation is not None else None
    context = {"state": _state(invitation) or "unknown", "application": application, "can_refuse": True}
    return render_page(login, handle, "invitation_over", context, status=_GONE if invitation else _UNKNOWN)


def _state(invitation: Invitation | None) -> Invitation.State | None:
    return invitation.state_at(timezone.now()) if invitation is not None else None


def _application(invitation: Invitation | None, host: HostMatch) -> ApplicationLink | None:
    return application_link(invitation.client if invitation is not None else None, host=host)
