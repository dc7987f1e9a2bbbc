"""Which connections will stop working because their provider's certificates end: for warnings in time."""

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

# More connections of one tenant are not looked at for a page.
_MOST = 200


@dataclass(frozen=True)
class Ending:
    """A connection whose last certificate ends at `at`."""

    connection: Connection
    at: datetime


def ending_certificates(connections: QuerySet[Connection], *, now: datetime, within: timedelta) -> list[Ending]:
    """Return the connections whose newest certificate ends within a span or has ended, the first to end first.

    Reads what is kept and asks no provider. One certificate that counts for longer is enough: a rollover is under way.
    """
    found = []
    for connection in connections.filter(strategy__in=(*STRATEGIES, "adfs", "waad"), deletion_started_at=None).order_by("pk")[:_MOST]:
        last = max((certificate.not_after for certificate in _certificates(connection)), default=None)
        if last is not None and last <= now + within:
            found.append(Ending(connection, last))
    return sorted(found, key=lambda ending: ending.at)


def _certificates(connection: Connection) -> Iterator[Certificate]:
    """Yield the certificates that count at a login now: those of the options, else those of the metadata that is kept."""
    try:
        own = known_certificates(connection)
    except UpstreamFailed:
        # Options that no login can use have a warning of their own: logins fail.
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
