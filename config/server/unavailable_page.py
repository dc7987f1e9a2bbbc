"""The page for users whose request cannot be served because the database does not answer."""

from __future__ import annotations

from django.template.loader import render_to_string

from events.stream.refusals import Header, Refused

_POLICY = b"default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def unavailable_page(refusal: Refused) -> tuple[list[Header], bytes]:
    """Return headers and body of the page. Nothing here needs the database, a session or a thread."""
    body = render_to_string("503.html").encode()
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
