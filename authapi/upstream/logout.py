"""Ending the session at the provider as well (OpenID Connect RP-Initiated Logout 1.0)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson

from authapi.login.sessions import upstream_of
from authapi.models import Session
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.login import Proven
from authapi.upstream.metadata import discovered, is_browser_address
from authapi.upstream.provider import Provider, provider_of
from identity.models import Connection

# A browser's address has to hold it beside everything else.
_LONGEST_HINT = 6000


def kept_for_logout(connection: Connection, proven: Proven) -> str:
    """Return what a session keeps of a login elsewhere, as text; it is stored encrypted."""
    hint = proven.id_token if len(proven.id_token) <= _LONGEST_HINT else ""
    return orjson.dumps({"connection": connection.pk, "id_token": hint}).decode()


def _end_session_endpoint(provider: Provider) -> str:
    """Return where the provider ends logins, empty where it does not say; a connection that lists its other addresses is asked, too."""
    listed = provider.addresses.get("end_session_endpoint", "")
    if listed or not provider.discovery_url:
        return listed
    return discovered(provider).addresses.get("end_session_endpoint", "")


def federated_logout_address(session: Session, *, return_to: str) -> str | None:
    """Return where to end the login at the provider, which then sends the browser to `return_to`.

    None where the session was not begun there, or the provider cannot be asked: a logout here never fails for that.
    """
    kept = upstream_of(session)
    if not kept:
        return None
    named: dict[str, Any] = orjson.loads(kept)
    connection = Connection.objects.of(session.tenant_id).filter(pk=named.get("connection")).first()
    if connection is None:
        return None
    try:
        provider = provider_of(connection)
        address = _end_session_endpoint(provider)
    except UpstreamFailed:
        return None
    if not is_browser_address(address):
        return None
    hint = {"id_token_hint": named["id_token"]} if named.get("id_token") else {}
    parameters = {"client_id": provider.client_id, "post_logout_redirect_uri": return_to, **hint}
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(parameters)}"
