"""Builds the event context for changes that users make to their own accounts: client, host, IP address and browser."""

from __future__ import annotations

from authapi.models import Client
from foundation.change_context import ChangeContext, ChangingClient
from identity.hosts import HostMatch


def context_of(host: HostMatch, client: Client | None, *, ip: str, user_agent: str, method: str = "POST") -> ChangeContext:
    """Return the event context of a change that a user makes on a page, or that an application makes for a user at an endpoint."""
    request = {"geo": {}, "hostname": host.host, "ip": ip, "method": method, "user_agent": user_agent}
    changing = ChangingClient(client.client_id, client.name, client.metadata) if client else None
    return ChangeContext(client=changing, request=request)
