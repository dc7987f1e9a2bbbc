"""`/u/logout/next`: where a participant of an ended session sends the browser back to."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from authapi.login import round_trips
from authapi.login.flow import HANDLE
from authapi.pages.tenant_page import tenant_page
from identity.hosts import HostMatch


@tenant_page("logout", methods=("GET",))
def next_participant(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Send the browser to the next participant, or where the logout leads."""
    return round_trips.go_on(request, host, request.GET.get(HANDLE, ""), is_told=True)
