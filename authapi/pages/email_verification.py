"""The page of the link that verifies an email address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse

from authapi.login.browser import address_of, user_agent_of
from authapi.models import Client
from authapi.pages import way_back
from authapi.pages.application_link import application_link
from authapi.pages.hosted_page import hosted_page
from authapi.pages.spoken import speak_for
from authapi.pages.tenant_page import tenant_page
from authapi.pages.way_back import Outcome
from authapi.services import sign_in_log
from identity.hosts import HostMatch
from identity.mail import verification
from identity.messages.links import place_after
from identity.models import EmailTicket
from identity.services.failures import NotFound, ServiceError

_VERIFIED, _CHANGED = "sv", "sce"


# No check against forms of other sites (CSRF) is needed: the ticket is the only credential, and the page uses no session that such a form
# could abuse.
@tenant_page("email_verification")
def verify_email(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Ask for confirmation on GET, and verify the address only on POST, because mail scanners open every link."""
    token = (request.POST if request.method == "POST" else request.GET).get("ticket", "")
    try:
        if request.method == "POST":
            ticket = verification.confirm_ticket(tenant_id=host.tenant_id, token=token)
            sign_in_log.note(
                tenant_id=host.tenant_id,
                type=_VERIFIED if ticket.former_email is None else _CHANGED,
                is_success=True,
                user=ticket.user,
                user_name=ticket.email,
                ip=address_of(request),
                user_agent=user_agent_of(request),
            )
            # The redirect URL in the mail template applies to mailed links only. A link that a client requested has its own return URL.
            place = place_after(host.tenant_id, verification.MAIL, email=ticket.email) if ticket.job_id else ""
            return _end(request, host, "done", ticket, way_back.VERIFIED, place=place)
        ticket = verification.usable_ticket(tenant_id=host.tenant_id, token=token)
        speak_for(ticket.language, host.tenant_id)
    except verification.TicketUsed as used:
        return _end(request, host, "used", used.ticket, way_back.USED)
    except verification.TicketExpired as expired:
        return _end(request, host, "expired", expired.ticket, way_back.EXPIRED)
    except NotFound:
        return _end(request, host, "expired", None, way_back.EXPIRED)
    except ServiceError:
        return _page(request, host, "unknown", status=404, application=application_link(None, host=host))
    return _page(request, host, "ask", form_targets=way_back.result_targets(ticket.parameters), email=ticket.email, token=token)


def _end(
    request: HttpRequest, host: HostMatch, state: str, ticket: EmailTicket | None, outcome: Outcome, *, place: str = ""
) -> HttpResponse:
    """Tell the user whether the verification succeeded: redirect to the return URL of the ticket, or show a page if there is none."""
    status = 200 if outcome.is_success else 410
    if ticket is None:
        return _page(request, host, state, status=status, application=application_link(None, host=host))
    speak_for(ticket.language, host.tenant_id)
    answer = way_back.result_answer(request, ticket.parameters, outcome, email=ticket.email)
    if answer is not None:
        return answer
    link = way_back.link_after(_client(host, ticket), ticket.parameters, host=host)
    return _page(request, host, state, status=status, application=link, place=place, email=ticket.email)


def _client(host: HostMatch, ticket: EmailTicket) -> Client | None:
    """Return the client that is named in the ticket, otherwise the client that requested the mail with the ticket."""
    asked = ticket.job.parameters if ticket.job is not None else {}
    client_id = ticket.parameters.get("client_id") or asked.get("client_id")
    return Client.objects.of(host.tenant_id).filter(client_id=client_id).first() if client_id else None


def _page(
    request: HttpRequest, host: HostMatch, state: str, *, status: int = 200, form_targets: Sequence[str] = (), **context: Any
) -> HttpResponse:
    shown = {"state": state, **context}
    return hosted_page(request, host, "email_verification", shown, status=status, form_targets=form_targets, hides_address=True)
