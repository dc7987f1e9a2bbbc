"""The URLs of clients that the browser loads when a session ends (OpenID Connect Front-Channel Logout 1.0, 2)."""

from __future__ import annotations

from collections.abc import Iterable

from authapi.login.browser import with_parameters
from authapi.models import Client, Session
from identity.hosts import canonical_address


def frame_addresses(session: Session, clients: Iterable[Client]) -> list[str]:
    """Return the logout URL of each client that has registered such a URL, with the issuer and the id of the ended session.

    Every client gets both parameters, so that it can check which session has ended. If a page of an attacker loads the logout URL, the id
    of the session is missing, because the attacker does not know it.
    """
    named = {"iss": session.issuer or f"{canonical_address(session.tenant_id)}/", "sid": session.pk}
    registered = (client.settings.get("frontchannel_logout_uri") for client in clients if client.revoked_at is None)
    return [with_parameters(address, named) for address in registered if address]
