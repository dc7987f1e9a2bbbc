"""A logout of this service can also end the session at the provider (OpenID Connect RP-Initiated Logout 1.0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from authapi.upstream.metadata import discovered, is_browser_address
from authapi.upstream.provider import Provider, provider_of
from identity.models import Connection


def end_session_address(connection: Connection, kept: Mapping[str, Any], *, return_to: str) -> str | None:
    """Return the address that ends the login at the provider and returns the browser to `return_to`; None if there is no such address.

    Raises `UpstreamFailed`.
    """
    provider = provider_of(connection)
    address = _end_session_endpoint(provider)
    if not is_browser_address(address):
        return None
    hint = {"id_token_hint": kept["id_token"]} if kept.get("id_token") else {}
    parameters = {"client_id": provider.client_id, "post_logout_redirect_uri": return_to, **hint}
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(parameters)}"


def _end_session_endpoint(provider: Provider) -> str:
    """Return the provider's logout address, or empty.

    If the connection lists no such address, read the address from the discovery document.
    """
    listed = provider.addresses.get("end_session_endpoint", "")
    if listed or not provider.discovery_url:
        return listed
    return discovered(provider).addresses.get("end_session_endpoint", "")
