"""The sign-in log of a tenant: one line for each attempt of a user, successful or not."""

from __future__ import annotations

from typing import Any

from authapi.edge.addresses import stored_address
from authapi.models import Client, SignIn
from foundation.json_values import storable
from identity.models import User


def note(
    *,
    tenant_id: str,
    type: str,
    is_success: bool,
    description: str = "",
    user: User | None = None,
    user_name: str = "",
    client: Client | None = None,
    connection: str = "",
    ip: str | None = None,
    user_agent: str = "",
    details: dict[str, Any] | None = None,
) -> SignIn:
    """Write one line and return its row. Texts are cut to the length of their columns; `details` must not have secrets.

    `type` is the type of the line in `GET /logs`, such as `s` or `fp`. Runs in the transaction of the caller. If the caller refuses the
    request, it must commit the line first.
    """
    shown = user_name or (user.email or user.username or user.phone_number or user.name if user else "") or ""
    line = SignIn(
        tenant_id=tenant_id,
        type=type,
        is_success=is_success,
        description=storable(description)[:500],
        user_id=user.user_id if user else "",
        user_name=storable(shown)[:300],
        client_id=client.client_id if client else "",
        client_name=client.name if client else "",
        connection=connection,
        ip=stored_address(ip),
        user_agent=storable(user_agent)[:500],
        details=details or {},
    )
    line.save(force_insert=True)
    return line
