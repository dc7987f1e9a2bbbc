"""Documents of sessions, refresh tokens, consents, blocks and lines of `GET /logs` in the management interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from authapi.models import Consent, LoginFailures, RefreshToken, Session
from foundation.timestamps import wire_time


def session_resource(session: Session) -> dict[str, Any]:
    """Return the session. Expects its user and its participating clients to be loaded."""
    times = ("created_at", "updated_at", "authenticated_at", "last_interacted_at", "idle_expires_at", "expires_at")
    return {
        "id": session.pk,
        "user_id": session.user.user_id,
        **{name: wire_time(getattr(session, name)) for name in times},
        "device": _device(session),
        "clients": [{"client_id": entry.client.client_id} for entry in session.session_clients.all()],
        "authentication": {"methods": session.methods},
        "session_metadata": session.metadata,
    }


def refresh_token_resource(token: RefreshToken) -> dict[str, Any]:
    """Return the token without its value. Expects its user and its client to be loaded."""
    times = ("idle_expires_at", "expires_at", "last_exchanged_at")
    moments = {name: getattr(token, name) for name in times}
    return {
        "id": token.wire_id,
        "user_id": token.user.user_id,
        "client_id": token.application.client_id,
        "session_id": token.sid or None,
        "created_at": wire_time(token.created),
        **{name: wire_time(moment) if moment else None for name, moment in moments.items()},
        "rotating": token.is_rotating,
        "resource_servers": [{"audience": token.audience, "scopes": token.scope}] if token.audience else [],
        "device": _device(token),
        "refresh_token_metadata": token.metadata,
    }


def user_grant(consent: Consent) -> dict[str, Any]:
    """Return the consent of a user to a client. The names of the members have mixed styles, because client libraries read these names."""
    return {
        "id": str(consent.pk),
        "clientID": consent.client.client_id,
        "user_id": consent.user.user_id,
        "audience": consent.audience,
        "scope": consent.scopes,
    }


def block_entry(row: LoginFailures) -> dict[str, Any]:
    """Return a block. If the block applies to all IP addresses, the result has no `ip`."""
    return {"identifier": row.identifier, **({"ip": row.ip} if row.ip else {}), "connection": row.connection.name}


def log_line(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of `GET /logs` from its column values. Empty members are left out."""
    names = ("description", "client_id", "client_name", "connection", "ip", "user_id", "user_name", "user_agent", "scope", "details")
    told = {name: row[name] for name in names}
    return {"log_id": row["id"], "date": wire_time(row["created_at"]), "type": row["type"]} | {
        name: value for name, value in told.items() if value
    }


def _device(row: Session | RefreshToken) -> dict[str, Any]:
    return {name: getattr(row, name) or None for name in ("initial_ip", "initial_user_agent", "last_ip", "last_user_agent")}
