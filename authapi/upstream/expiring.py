"""Finds connections that will stop working because their provider's certificates expire, so that administrators are warned in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.provider_metadata import known_row
from authapi.upstream.saml.certificates import Certificate, CertificateUnreadable, read_certificates
from authapi.upstream.saml.connections import known_certificates
from authapi.upstream.saml.options import STRATEGIES
from identity.models import Connection

# At most this many connections of a tenant are checked when an administrator opens a page.
_MOST = 200


@dataclass(frozen=True)
class Ending:
    """A connection whose last certificate expires at `at`."""

    connection: Connection
    at: datetime


def ending_certificates(connections: QuerySet[Connection], *, now: datetime, within: timedelta) -> list[Ending]:
    """Return the connections whose last certificate has expired, or expires within the time span `within`; earliest expiry first.

    A connection is not returned if one of its certificates expires later: the provider has already published the next certificate. Reads
    stored data and sends no request to a provider.
    """
    found = []
    for connection in connections.filter(strategy__in=(*STRATEGIES, "adfs", "waad"), deletion_started_at=None).order_by("pk")[:_MOST]:
        last = max((certificate.not_after for certificate in _certificates(connection)), default=None)
        if last is not None and last <= now + within:
            found.append(Ending(connection, last))
    return sorted(found, key=lambda ending: ending.at)


def _certificates(connection: Connection) -> Iterator[Certificate]:
    """Yield the certificates that verify logins now: the certificates in the options, or the certificates in the stored metadata."""
    try:
        own = known_certificates(connection)
    except UpstreamFailed:
        # Invalid options have a warning of their own.
        return
    if own:
        yield from own
        return
    row = known_row(connection)
    if row is not None and row.document is not None:
        try:
            yield from read_certificates(row.document.get("certificates") or [])
        except CertificateUnreadable:
            return
