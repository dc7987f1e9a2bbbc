"""The page of the link that verifies an e-mail address."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from authapi.login.browser import address_of, user_agent_of
from authapi.models import Client
from authapi.pages.application_link import application_link
from authapi.pages.hosted_page import hosted_page
from authapi.pages.spoken import speak_for
from authapi.pages.tenant_page import tenant_page
from authapi.services import sign_in_log
from identity.hosts import HostMatch
from identity.mail import verification
from identity.messages.links import place_after
from identity.services.failures import NotFound, ServiceError

_VERIFIED = "sv"


# The ticket is the secret, and there is no session that a foreign form could use.
@tenant_page("email_verification")
def verify_email(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Ask for confirmation, and verify on POST only: programs that look at mails open every link in them."""
    token = (request.POST if request.method == "POST" else request.GET).get("ticket", "")
    try:
        if request.method == "POST":
            ticket = verification.confirm_ticket(tenant_id=host.tenant_id, token=token)
            speak_for(ticket.language, host.tenant_id)
            sign_in_log.note(
                tenant_id=host.tenant_id,
                type=_VERIFIED,
                is_success=True,
                user=ticket.user,
                user_name=ticket.email,
                ip=address_of(request),
                user_agent=user_agent_of(request),
            )
            place = place_after(host.tenant_id, verification.MAIL, email=ticket.email)
            return _end(request, host, "done", token, email=ticket.email, place=place)
        ticket = verification.usable_ticket(tenant_id=host.tenant_id, token=token)
        speak_for(ticket.language, host.tenant_id)
    except verification.TicketUsed:
        return _end(request, host, "used", token, status=410)
    except (verification.TicketExpired, NotFound):
        return _end(request, host, "expired", token, status=410)
    except ServiceError:
        return _page(request, host, "unknown", status=404)
    return _page(request, host, "ask", email=ticket.email, token=token)


def _end(request: HttpRequest, host: HostMatch, state: str, token: str, *, status: int = 200, **context: str) -> HttpResponse:
    """Say how a link of ours ended, with the way back to the client that the mail was asked for."""
    ticket = verification.signed_ticket(tenant_id=host.tenant_id, token=token)
    client_id = ticket.job.parameters.get("client_id") if ticket is not None and ticket.job is not None else None
    client = Client.objects.of(host.tenant_id).filter(client_id=client_id).first() if client_id else None
    return _page(request, host, state, status=status, client=client, **context)


def _page(
    request: HttpRequest, host: HostMatch, state: str, *, status: int = 200, client: Client | None = None, **context: str
) -> HttpResponse:
    shown = {"state": state, "application": application_link(client, tenant_id=host.tenant_id), **context}
    return hosted_page(request, host, "email_verification", shown, status=status, hides_address=True)
