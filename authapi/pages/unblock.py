"""The page of the link that lifts a block. Mail scanners open every link, so opening the link changes nothing."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from authapi.accounts.password_reset import lift_with_link, open_unblock
from authapi.login.browser import address_of, user_agent_of
from authapi.pages.application_link import application_link, client_of_ticket
from authapi.pages.hosted_page import hosted_page
from authapi.pages.spoken import speak_for
from authapi.pages.tenant_page import tenant_page
from authapi.services.account_tickets import TicketExpired, TicketUnknown, TicketUsed
from identity.hosts import HostMatch


@tenant_page("unblock")
def unblock_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show the page on which the user lifts the block, and lift the block on POST."""
    secret = (request.POST if request.method == "POST" else request.GET).get("ticket", "")
    try:
        if request.method == "POST":
            sender = {"ip": address_of(request), "user_agent": user_agent_of(request)}
            speak_for(lift_with_link(tenant_id=host.tenant_id, secret=secret, **sender).language, host.tenant_id)
            return _end(request, host, "done", secret)
        speak_for(open_unblock(tenant_id=host.tenant_id, secret=secret).language, host.tenant_id)
    except TicketUsed:
        return _end(request, host, "used", secret, status=410)
    except TicketExpired:
        return _end(request, host, "expired", secret, status=410)
    except TicketUnknown:
        return _end(request, host, "unknown", secret, status=404)
    return _page(request, host, {"state": "ask", "ticket": secret})


def _end(request: HttpRequest, host: HostMatch, state: str, secret: str, *, status: int = 200) -> HttpResponse:
    application = application_link(client_of_ticket(host.tenant_id, secret), host=host)
    return _page(request, host, {"state": state, "application": application}, status=status)


def _page(request: HttpRequest, host: HostMatch, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    return hosted_page(request, host, "unblock", context, status=status, hides_address=True)
