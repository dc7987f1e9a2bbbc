"""The page of the link that verifies an e-mail address."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse

from authapi.login.browser import address_of, user_agent_of
from authapi.models import Client
from authapi.pages import way_back
from authapi.pages.hosted_page import hosted_page
from authapi.pages.tenant_page import tenant_page
from authapi.pages.way_back import Outcome
from authapi.services import sign_in_log
from identity.hosts import HostMatch
from identity.mail import verification
from identity.messages.links import place_after
from identity.models import EmailTicket
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
            sign_in_log.note(
                tenant_id=host.tenant_id,
                type=_VERIFIED,
                is_success=True,
                user=ticket.user,
                user_name=ticket.email,
                ip=address_of(request),
                user_agent=user_agent_of(request),
            )
            place = place_after(host.tenant_id, verification.MAIL, email=ticket.email) if ticket.job_id else ""
            done = {"email": ticket.email, "log_in": place or _log_in(host, ticket)}
            return _result(request, ticket, way_back.VERIFIED) or _page(request, host, "done", **done)
        ticket = verification.usable_ticket(tenant_id=host.tenant_id, token=token)
    except verification.TicketUsed as used:
        return _result(request, used.ticket, way_back.USED) or _page(request, host, "used", status=410)
    except verification.TicketExpired as expired:
        return _result(request, expired.ticket, way_back.EXPIRED) or _page(request, host, "expired", status=410)
    except NotFound:
        return _page(request, host, "expired", status=410)
    except ServiceError:
        return _page(request, host, "unknown", status=404)
    return _page(request, host, "ask", form_targets=way_back.result_targets(ticket.parameters), email=ticket.email, token=token)


def _result(request: HttpRequest, ticket: EmailTicket | None, outcome: Outcome) -> HttpResponse | None:
    return way_back.result_answer(request, ticket.parameters, outcome, email=ticket.email) if ticket is not None else None


def _log_in(host: HostMatch, ticket: EmailTicket) -> str:
    client = Client.objects.of(host.tenant_id).filter(client_id=ticket.parameters.get("client_id", "")).first()
    return way_back.login_of(client, ticket.parameters)


def _page(
    request: HttpRequest, host: HostMatch, state: str, *, status: int = 200, form_targets: Sequence[str] = (), **context: str
) -> HttpResponse:
    shown = {"state": state, **context}
    return hosted_page(request, host, "email_verification", shown, status=status, form_targets=form_targets, hides_address=True)
