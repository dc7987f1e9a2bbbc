"""Who is behind a change that people make of their own accounts, in the shapes of an event's context."""

from __future__ import annotations

from authapi.models import Client
from foundation.change_context import ChangeContext, ChangingClient
from identity.hosts import HostMatch


def context_of(host: HostMatch, client: Client | None, *, ip: str, user_agent: str, method: str = "POST") -> ChangeContext:
    """Return the context of a change that a person made at a page, or an application of theirs at an endpoint."""
    request = {"geo": {}, "hostname": host.host, "ip": ip, "method": method, "user_agent": user_agent}
    changing = ChangingClient(client.client_id, client.name, client.metadata) if client else None
    return ChangeContext(client=changing, request=request)
