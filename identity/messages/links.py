"""Settings of a tenant for the links in mails: how long a link works, and where it leads after its use."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from identity.models import MessageTemplate
from identity.models.messages import Channel


def link_lifetime(tenant_id: str, name: str) -> timedelta | None:
    """Return how long the link of a mail works, or None for the default of the service."""
    row = _row(tenant_id, name)
    return timedelta(seconds=row.url_lifetime_seconds) if row is not None and row.url_lifetime_seconds else None


def place_after(tenant_id: str, name: str, *, email: str) -> str:
    """Return the URL to which the tenant redirects after a link was used; empty if the tenant has set no such URL.

    If the tenant wants the email address in the URL, the function adds the email address.
    """
    row = _row(tenant_id, name)
    if row is None or not row.result_url:
        return ""
    parts = urlsplit(row.result_url)
    query = [(key, value) for key, value in parse_qsl(parts.query, keep_blank_values=True) if key not in ("email", "success")]
    query += [("email", email)] if row.includes_email_in_redirect else []
    return urlunsplit(parts._replace(query=urlencode([*query, ("success", "true")])))


def _row(tenant_id: str, name: str) -> MessageTemplate | None:
    return MessageTemplate.objects.of(tenant_id).filter(name=name, channel=Channel.EMAIL, language="").first()
