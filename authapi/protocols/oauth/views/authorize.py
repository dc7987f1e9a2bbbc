"""`/authorize` (RFC 6749, 3.1; OpenID Connect Core 1.0, 3.1.2): the way in for browsers."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from authapi.login import flow
from authapi.pages.tenant_page import tenant_page
from identity.hosts import HostMatch


@tenant_page("authorize")
def authorize(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Answer the client, or lead to the page that is due."""
    return flow.begin(request, host)
