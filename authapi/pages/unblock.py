"""The page of the link that lifts a block. Opening it does nothing: programs that look at mails open every link in them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from authapi.accounts.password_reset import lift_with_link, open_unblock
from authapi.login.browser import address_of, user_agent_of
from authapi.pages.hosted_page import hosted_page
from authapi.pages.reset_password import login_address
from authapi.pages.spoken import speak_for
from authapi.pages.tenant_page import tenant_page
from authapi.services.account_tickets import TicketExpired, TicketUnknown, TicketUsed
from identity.hosts import HostMatch


@tenant_page("unblock")
def unblock_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Ask whether the block shall be lifted, and lift it."""
    secret = (request.POST if request.method == "POST" else request.GET).get("ticket", "")
    try:
        if request.method == "POST":
            sender = {"ip": address_of(request), "user_agent": user_agent_of(request)}
            ticket = lift_with_link(tenant_id=host.tenant_id, secret=secret, **sender)
            speak_for(ticket.language, host.tenant_id)
            return _page(request, host, {"state": "done", "log_in": login_address(ticket.client)})
        speak_for(open_unblock(tenant_id=host.tenant_id, secret=secret).language, host.tenant_id)
    except TicketUsed:
        return _page(request, host, {"state": "used"}, status=410)
    except TicketExpired:
        return _page(request, host, {"state": "expired"}, status=410)
    except TicketUnknown:
        return _page(request, host, {"state": "unknown"}, status=404)
    return _page(request, host, {"state": "ask", "ticket": secret})


def _page(request: HttpRequest, host: HostMatch, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    return hosted_page(request, host, "unblock", context, status=status, hides_address=True)
