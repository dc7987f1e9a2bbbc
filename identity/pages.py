"""Pages for end users on the hosts of a tenant: the one that verifies an e-mail address."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from identity.hosts import resolve_host
from identity.services import verification
from identity.services.failures import NotFound, ServiceError

_TEMPLATE = "hosted/email_verification.html"


def hosted_urls() -> list[URLPattern]:
    """Return the addresses of these pages."""
    return [path(verification.PATH.removeprefix("/"), verify_email)]


# The ticket is the secret, and there is no session that a foreign form could use.
@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def verify_email(request: HttpRequest) -> HttpResponse:
    """Ask for confirmation, and verify on POST only: programs that look at mails open every link in them."""
    match = resolve_host(request.META.get("HTTP_HOST", ""))
    if match is None or not match.is_active:
        raise Http404
    token = (request.POST if request.method == "POST" else request.GET).get("ticket", "")
    try:
        if request.method == "POST":
            ticket = verification.confirm_ticket(tenant_id=match.tenant_id, token=token)
            return _page(request, "done", email=ticket.email)
        ticket = verification.usable_ticket(tenant_id=match.tenant_id, token=token)
    except verification.TicketUsed:
        return _page(request, "used", status=410)
    except (verification.TicketExpired, NotFound):
        return _page(request, "expired", status=410)
    except ServiceError:
        return _page(request, "unknown", status=404)
    return _page(request, "ask", email=ticket.email, token=token, tenant=ticket.tenant.name)


def _page(request: HttpRequest, state: str, *, status: int = 200, **context: str) -> HttpResponse:
    answer = render(request, _TEMPLATE, {"state": state, **context}, status=status)
    # The address of this page holds the ticket.
    answer["Referrer-Policy"] = "no-referrer"
    return answer
