"""The browser behind an HTTP request: its address, what it says of itself, and where it is sent on to."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.encoding import iri_to_uri

from authapi.edge.addresses import client_address

# The page loads one script and one style sheet of ours, and nothing else.
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "


def address_of(request: HttpRequest) -> str:
    """Return the address that a request comes from, as far as it can be believed."""
    return client_address(request.META.get("REMOTE_ADDR") or "", request.headers.get("X-Forwarded-For", ""), settings.TRUSTED_PROXIES)


def user_agent_of(request: HttpRequest) -> str:
    """Return what the browser says of itself."""
    return request.headers.get("User-Agent", "")


def see_other(request: HttpRequest, address: str) -> HttpResponse:
    """Redirect to any scheme, native applications' own included: the address is registered.

    After a POST it is 303, so that no browser sends a password on (RFC 9700, 4.12).
    """
    return HttpResponse(status=303 if request.method == "POST" else 302, headers={"Location": iri_to_uri(address)})


def post_form(request: HttpRequest, address: str, fields: Mapping[str, str]) -> HttpResponse:
    """Return a page whose form posts itself to `address`; without script it has a button.

    The redirects that follow lead to places that only the other side knows, and in a logout back here. Where this host itself
    does without TLS, so may they.
    """
    answer = render(request, "hosted/form_post.html", {"action": address, "fields": fields})
    targets = form_target(address) if request.is_secure() else f"{form_target(address)} http:"
    answer["Content-Security-Policy"] = _POLICY + f"form-action {targets}; frame-ancestors 'none'"
    return answer


def form_target(address: str) -> str:
    """Return what a content policy must name so that the answer of a form may redirect to a client's address.

    Browsers hold every redirect that follows a form against the policy, and clients often redirect once more: any https
    address is allowed, and of others the one that is registered.
    """
    parts = urlsplit(address)
    if parts.scheme == "https":
        return "https:"
    # What stands in a policy must not be able to end a directive.
    safe = parts.netloc.replace(";", "").replace(",", "")
    return f"https: http://{safe}" if parts.scheme == "http" else f"https: {parts.scheme}:"


def with_parameters(address: str, parameters: Mapping[str, str], *, in_fragment: bool = False) -> str:
    """Return the address with parameters added; query and fragment that it has already stay (RFC 6749, 3.1.2)."""
    if not parameters:
        return address
    if in_fragment:
        return f"{address}#{urlencode(parameters)}"
    before, mark, fragment = address.partition("#")
    separator = "&" if urlsplit(before).query else "?"
    return f"{before.removesuffix('?')}{separator}{urlencode(parameters)}{mark}{fragment}"
