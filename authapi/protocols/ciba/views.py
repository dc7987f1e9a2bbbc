"""`/approve`: the URL of the link that a user opens to approve a request, and the pages that show the result. Opening a link, for example
by a mail scanner, approves nothing: the user logs in, and then approves or denies the request on a page. Only this page shows the request,
and only the user of the request sees the page.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from authapi.failures import RequestRefused
from authapi.failures.ciba import CibaCase
from authapi.grants.ciba import GRANT
from authapi.login import flow
from authapi.login.protocol import ProtocolRequest
from authapi.pages.hosted_page import hosted_page
from authapi.pages.tenant_page import tenant_page
from authapi.protocols.ciba.entry import CIBA, state_of
from authapi.protocols.ciba.notifying import PARAMETER
from authapi.tokens.ciba_requests import request_of_link, why_over
from identity.hosts import HostMatch

_LONGEST_LINK = 64


@tenant_page("approve", methods=("GET",))
def open_request(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Redirect the user of a request to the login. Raises `RequestRefused` if the link belongs to no waiting request."""
    row = request_of_link(host.tenant_id, request.GET.get(PARAMETER, "")[:_LONGEST_LINK])
    if row is None or row.application.revoked_at is not None or not row.application.allows_grant_type(GRANT):
        raise RequestRefused(CibaCase.UNKNOWN_LINK)
    over = why_over(row, now=timezone.now())
    if over is not None:
        raise RequestRefused(over)
    return flow.begin(request, CIBA, ProtocolRequest(host, row.application, state_of(row)))


@tenant_page("approved", methods=("GET",))
def approved(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show that a request was approved."""
    return hosted_page(request, host, "approval_result", {"is_allowed": True})


@tenant_page("approval_denied", methods=("GET",))
def approval_denied(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show that a request was denied."""
    return hosted_page(request, host, "approval_result", {"is_allowed": False})
