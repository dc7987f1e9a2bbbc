"""Pages for users whose request is refused before it reaches Django. They need no database, session or thread."""

from __future__ import annotations

from typing import Any

from django.template.loader import render_to_string

from events.stream.refusals import Header, Refused

_POLICY = b"default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
# Heading and text by status. For any other status, the page shows the message of the refusal.
_WORDS = {
    400: ("HTTPS only", "This service answers over HTTPS only. Change http:// to https:// in the address."),
    403: ("The tenant is not active", "The tenant at this address is suspended or closed. Ask your administrator."),
    404: ("No tenant at this address", "No tenant answers on this host. Check the address for typing errors."),
}
_HEADING = "The service is not available"
_NOT_PROCESSED = "Your request was not processed."


def unavailable_page(refusal: Refused) -> tuple[list[Header], bytes]:
    """Return headers and body of the page for a database that does not answer."""
    return _page("503.html", refusal, {})


def refusal_page(refusal: Refused) -> tuple[list[Header], bytes]:
    """Return headers and body of the page for an unknown host, a tenant that is not active, plain HTTP, or a busy server."""
    heading, text = _WORDS.get(refusal.status, (_HEADING, f"{refusal.message} {_NOT_PROCESSED}"))
    return _page("refused.html", refusal, {"status": refusal.status, "heading": heading, "text": text})


def _page(template: str, refusal: Refused, context: dict[str, Any]) -> tuple[list[Header], bytes]:
    body = render_to_string(template, context).encode()
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", _POLICY),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"same-origin"),
        *refusal.headers,
    ]
    return headers, body
