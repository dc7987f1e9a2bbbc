"""`/approve`: the link that a user is sent, and where the login of a request ends.

Opening a link approves nothing, whatever opens it: it leads to the login, and then to a page that asks. What an application wants, and of
whom, stands on that page alone, which its own user alone sees.
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
    """Lead the user of a request to the login. Raises `RequestRefused` for a link of no request that waits."""
    row = request_of_link(host.tenant_id, request.GET.get(PARAMETER, "")[:_LONGEST_LINK])
    if row is None or row.application.revoked_at is not None or not row.application.allows_grant_type(GRANT):
        raise RequestRefused(CibaCase.UNKNOWN_LINK)
    over = why_over(row, now=timezone.now())
    if over is not None:
        raise RequestRefused(over)
    return flow.begin(request, CIBA, ProtocolRequest(host, row.application, state_of(row)))


@tenant_page("approved", methods=("GET",))
def approved(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Tell a person who has approved a request to go back to the application."""
    return hosted_page(request, host, "approval_result", {"is_allowed": True})


@tenant_page("approval_denied", methods=("GET",))
def approval_denied(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Tell a person who has denied a request that the application gets nothing."""
    return hosted_page(request, host, "approval_result", {"is_allowed": False})
