"""Functions about the browser that sends a request: its IP address, its `User-Agent`, and the responses that redirect it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.encoding import iri_to_uri

from authapi.edge.addresses import client_address

# The page loads one script and one style sheet of this host, and nothing else.
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "


def address_of(request: HttpRequest) -> str:
    """Return the IP address from which a request comes. Trusts `X-Forwarded-For` only from `TRUSTED_PROXIES`."""
    return client_address(request.META.get("REMOTE_ADDR") or "", request.headers.get("X-Forwarded-For", ""), settings.TRUSTED_PROXIES)


def user_agent_of(request: HttpRequest) -> str:
    """Return the `User-Agent` header, empty if there is no such header."""
    return request.headers.get("User-Agent", "")


def see_other(request: HttpRequest, address: str) -> HttpResponse:
    """Redirect to a registered URL, which may have any scheme, including the private schemes of native applications.

    A POST is answered with 303, so that the browser does not send a password to the next URL (RFC 9700, 4.12).
    """
    return HttpResponse(status=303 if request.method == "POST" else 302, headers={"Location": iri_to_uri(address)})


def post_form(request: HttpRequest, address: str, fields: Mapping[str, str]) -> HttpResponse:
    """Return a page whose form posts itself to `address`. If scripts are off, the user presses the button of the page.

    Later redirects lead to URLs that this function cannot know; in a logout, they also lead back to this host. So if this host itself runs
    without TLS, the content policy allows URLs without TLS, too.
    """
    answer = render(request, "hosted/form_post.html", {"action": address, "fields": fields})
    targets = form_target(address) if request.is_secure() else f"{form_target(address)} http:"
    answer["Content-Security-Policy"] = _POLICY + f"form-action {targets}; frame-ancestors 'none'"
    return answer


def form_target(address: str) -> str:
    """Return `form-action` sources for a content policy. With these sources, the response to a form can redirect to this URL of a client.

    Browsers check every redirect after a form against the policy, and clients often redirect once more. So every https URL is allowed. If
    the registered URL uses http, its host is allowed, too. If the registered URL has another scheme, this scheme is allowed, too.
    """
    parts = urlsplit(address)
    if parts.scheme == "https":
        return "https:"
    # Remove the characters with which a URL could end the directive of the policy.
    safe = parts.netloc.replace(";", "").replace(",", "")
    return f"https: http://{safe}" if parts.scheme == "http" else f"https: {parts.scheme}:"


def with_parameters(address: str, parameters: Mapping[str, str], *, in_fragment: bool = False) -> str:
    """Return the URL with parameters added. Keeps an existing query and fragment (RFC 6749, 3.1.2)."""
    if not parameters:
        return address
    if in_fragment:
        return f"{address}#{urlencode(parameters)}"
    before, mark, fragment = address.partition("#")
    separator = "&" if urlsplit(before).query else "?"
    return f"{before.removesuffix('?')}{separator}{urlencode(parameters)}{mark}{fragment}"
