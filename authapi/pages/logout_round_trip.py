"""The pages of a logout that needs the browser: the page with frames for participants, and the redirect after each participant."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from authapi.clients.origins import web_origin_of
from authapi.login import round_trips
from authapi.login.browser import with_parameters
from authapi.login.flow import HANDLE
from authapi.pages.hosted_page import hosted_page
from authapi.pages.tenant_page import tenant_page
from identity.hosts import HostMatch

# This script continues the logout when all frames have loaded.
_SCRIPT = "hosted/logout_frames.js"
# Without scripts, or with a slow participant, the browser continues after this time.
_LONGEST_SECONDS = 5


@tenant_page("logout", methods=("GET",))
def next_participant(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """`/u/logout/next`: redirect a browser that returns from a participant to the next participant, or to the target of the logout."""
    return round_trips.go_on(request, host, request.GET.get(HANDLE, ""), is_told=True)


@tenant_page("logout_frames", methods=("GET",))
def logout_frames(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """`/u/logout/frames`: notify each participant by loading one of its URLs in a frame, then continue the logout.

    OpenID Connect Front-Channel Logout 1.0, 3; WS-Federation 1.2, 13.2.4.
    """
    handle = request.GET.get(HANDLE, "")
    addresses = round_trips.framed_addresses(host, handle)
    following = with_parameters(round_trips.NEXT_PATH, {HANDLE: handle})
    answer = hosted_page(request, host, "logout_frames", {"addresses": addresses, "next": following, "scripts": [_SCRIPT]})
    answer["Content-Security-Policy"] += f"; frame-src {' '.join(sorted({_origin(address) for address in addresses}))}"
    answer["Refresh"] = f"{_LONGEST_SECONDS};url={following}"
    return answer


def _origin(address: str) -> str:
    # Remove the characters that end a directive or a policy, so that a URL cannot add a directive.
    return web_origin_of(address).replace(";", "").replace(",", "")
