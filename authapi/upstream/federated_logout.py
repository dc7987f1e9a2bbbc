"""When a session ends at this service, its login at the external provider can end, too.

The service tells each provider in the protocol of the provider.
"""

from __future__ import annotations

from typing import Any

import orjson

from authapi.login.sessions import upstream_of
from authapi.models import Session
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.proven import Proven
from authapi.upstream.strategies import ProviderLogout, speaker_of
from identity.models import Connection


def kept_for_logout(connection: Connection, proven: Proven) -> str:
    """Return what a later logout at the provider needs, as text. The session stores this text encrypted."""
    return orjson.dumps({"connection": connection.pk, **proven.kept}).decode()


def federated_logout(session: Session, *, return_to: str) -> ProviderLogout | None:
    """Return how to end the login at the provider; the browser then goes to `return_to`.

    None if the session did not begin at a provider, or if the provider cannot end logins. A failure at the provider never stops a logout of
    this service.
    """
    kept = upstream_of(session)
    if not kept:
        return None
    named: dict[str, Any] = orjson.loads(kept)
    connection = Connection.objects.of(session.tenant_id).filter(pk=named.get("connection")).first()
    speaker = speaker_of(connection) if connection is not None else None
    if connection is None or speaker is None:
        return None
    try:
        return speaker.log_out(connection, named, return_to)
    except UpstreamFailed:
        return None
