"""Stored metadata of providers that publish it at an address. The document is fetched when a login first needs it, then on a schedule.

One process at a time fetches the document of a connection. A fetched document stays in use until a newer document replaces it, so that
users can still log in if the address is temporarily unreachable. The admin shows since when the address is unreachable.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache

from django.conf import settings
from django.db import connection as database
from django.utils import timezone

from authapi.failures.logins import LoginCase
from authapi.models import ProviderMetadata as Row
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.metadata import MetadataUnreadable, ProviderMetadata, next_fetch
from foundation.outbound.outcomes import OutboundError
from foundation.outbound.session import outbound_session
from foundation.outbound.turns import NoTurn, turn
from identity.models import Connection

Reader = Callable[..., ProviderMetadata]
_SECONDS = 5.0
_SHORTEST, _LONGEST = timedelta(hours=1), timedelta(days=1)
# The time for which one process may fetch a document before another process may fetch it.
_LEASE = timedelta(seconds=15)
# The shortest interval between two fetches for unknown keys. Without this limit, each message with a forged signature would cause a request
# to the provider.
_UNKNOWN_KEY = timedelta(seconds=60)
_AFTER_FAILURE = timedelta(hours=1)
_CLAIM = """
INSERT INTO authapi_providermetadata (tenant_id, connection_id, address, problem, tried_at, due_at)
VALUES (%(tenant)s, %(connection)s, %(address)s, '', %(now)s, %(due)s)
ON CONFLICT (connection_id) DO UPDATE SET tried_at = EXCLUDED.tried_at, due_at = EXCLUDED.due_at
WHERE authapi_providermetadata.tried_at <= %(free)s OR authapi_providermetadata.address <> %(address)s
RETURNING id
"""


def published_metadata(connection: Connection, address: str, read: Reader) -> ProviderMetadata:
    """Return the document that the provider published at `address`.

    Fetches the document if it is not stored yet. Raises `UpstreamFailed`.
    """
    row = _row_of(connection)
    if row is not None and row.address == address and row.document is not None:
        return ProviderMetadata.of_kept(row.document)
    fetched = _fetched(connection, address, read, not_since=_LEASE)
    if fetched is None:
        detail = row.problem if row is not None and row.problem else "Another request is fetching the metadata."
        raise UpstreamFailed(LoginCase.UPSTREAM_UNREACHABLE, f"The metadata is not known yet. {detail}")
    return fetched


def looked_again(connection: Connection, address: str, read: Reader) -> ProviderMetadata | None:
    """Fetch the document again because a key is unknown. Return None if a fetch was tried in the last minute. Raises `UpstreamFailed`."""
    return _fetched(connection, address, read, not_since=_UNKNOWN_KEY)


def fetch(connection: Connection, address: str, read: Reader, *, is_urgent: bool = False) -> ProviderMetadata | None:
    """Fetch the document again. Raises `UpstreamFailed`.

    Returns None if the last fetch began less than `_LEASE` ago (with `is_urgent`: less than a second ago), because another process may be
    fetching the document.
    """
    return _fetched(connection, address, read, not_since=timedelta(seconds=1) if is_urgent else _LEASE)


def put_off(row: Row, problem: str) -> None:
    """Store why the document of a row cannot be fetched, and try again after the time of a failed fetch."""
    Row.objects.of(row.tenant_id).filter(pk=row.pk).update(problem=problem[:500], due_at=timezone.now() + _AFTER_FAILURE)


def known_row(connection: Connection) -> Row | None:
    """Return the stored row of a connection's provider, for pages; None if no metadata has been requested yet."""
    return _row_of(connection)


@lru_cache(maxsize=64)
def pasted_metadata(text: str, read: Reader) -> ProviderMetadata:
    """Return the contents of a document that an administrator has pasted. Raises `MetadataUnreadable`."""
    return read(text.encode(), allows_http=settings.OUTBOUND_ALLOW_HTTP)


def _row_of(connection: Connection) -> Row | None:
    return Row.objects.of(connection.tenant_id).filter(connection=connection).first()


def _fetched(connection: Connection, address: str, read: Reader, *, not_since: timedelta) -> ProviderMetadata | None:
    """Fetch and store the document; None if another fetch began less than `not_since` ago.

    If the fetch fails, stores the error and raises `UpstreamFailed`.
    """
    row_id = _claimed(connection, address, not_since)
    if row_id is None:
        return None
    rows = Row.objects.of(connection.tenant_id).filter(pk=row_id)
    now = timezone.now()
    try:
        found = read(_downloaded(connection.tenant_id, address), allows_http=settings.OUTBOUND_ALLOW_HTTP)
    except (MetadataUnreadable, OutboundError, NoTurn) as error:
        problem = "Too many requests of the tenant are waiting for servers." if isinstance(error, NoTurn) else str(error)
        # If the address has changed, the stored document is from the old address and no longer valid.
        rows.exclude(address=address).update(document=None, fetched_at=None)
        rows.update(address=address, problem=problem[:500], due_at=now + _AFTER_FAILURE)
        raise UpstreamFailed(LoginCase.UPSTREAM_UNREACHABLE, f"The metadata of the provider is unavailable: {problem}") from error
    due = next_fetch(found, now, shortest=_SHORTEST, longest=_LONGEST)
    rows.update(address=address, document=found.kept(), problem="", fetched_at=now, due_at=due)
    return found


def _claimed(connection: Connection, address: str, not_since: timedelta) -> int | None:
    now = timezone.now()
    values: dict[str, str | datetime] = {
        "tenant": connection.tenant_id,
        "connection": connection.pk,
        "address": address,
        "now": now,
        "due": now + _AFTER_FAILURE,
        "free": now - not_since,
    }
    with database.cursor() as cursor:
        cursor.execute(_CLAIM, values)
        found = cursor.fetchone()
    return None if found is None else int(found[0])


def _downloaded(tenant_id: str, address: str) -> bytes:
    with turn(tenant_id):
        headers = {"Accept": "application/samlmetadata+xml, application/xml, text/xml"}
        answer = outbound_session().send("GET", address, headers=headers, body=None, deadline=time.monotonic() + _SECONDS)
    if answer.status != 200:
        # Redirects are not followed: only the address that an administrator entered is trusted.
        raise MetadataUnreadable(f"The address answered {answer.status}. It must answer with the document itself.")
    return answer.body
