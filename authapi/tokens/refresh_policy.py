"""The policy for a client's refresh tokens: whether they rotate, how long they are valid, and for which other APIs they work. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

# Contract, 4.6. By default, a token is valid for thirty days, but no longer than fifteen days without use.
DEFAULT_SECONDS = 2_592_000
DEFAULT_IDLE_SECONDS = 1_296_000


@dataclass(frozen=True)
class RefreshPolicy:
    """`leeway` is how long a rotated token may still be exchanged. A lifetime of None means no expiry.

    `audiences` has the other APIs for which a token may be exchanged, with their scopes.
    """

    is_rotating: bool
    leeway: timedelta
    lifetime: timedelta | None
    idle_lifetime: timedelta | None
    audiences: Mapping[str, tuple[str, ...]]

    def expires_at(self, now: datetime) -> datetime | None:
        return None if self.lifetime is None else now + self.lifetime

    def idle_expires_at(self, now: datetime) -> datetime | None:
        return None if self.idle_lifetime is None else now + self.idle_lifetime


def refresh_policy(settings: Mapping[str, Any] | None, *, is_public: bool) -> RefreshPolicy:
    """Read the `refresh_token` settings of a client.

    By default, tokens of public clients rotate (RFC 9700, 4.14.2): without rotation, the service could not detect a stolen token.
    """
    values = settings or {}
    is_expiring = values.get("expiration_type", "expiring") == "expiring"
    kind = values.get("rotation_type") or ("rotating" if is_public else "non-rotating")
    return RefreshPolicy(
        is_rotating=kind == "rotating",
        leeway=timedelta(seconds=values.get("leeway") or 0),
        lifetime=_lifetime(values, "token_lifetime", DEFAULT_SECONDS) if is_expiring else None,
        idle_lifetime=_lifetime(values, "idle_token_lifetime", DEFAULT_IDLE_SECONDS) if is_expiring else None,
        audiences={policy["audience"]: tuple(policy["scope"]) for policy in values.get("policies") or ()},
    )


def shown_policy(settings: Mapping[str, Any] | None, *, is_public: bool) -> dict[str, Any]:
    """Return the `refresh_token` settings of a client as the management interface shows them, with defaults for unset members."""
    values = dict(settings or {})
    is_expiring = values.get("expiration_type", "expiring") == "expiring"
    return {
        "rotation_type": "rotating" if is_public else "non-rotating",
        "expiration_type": "expiring",
        "leeway": 0,
        "token_lifetime": DEFAULT_SECONDS,
        "idle_token_lifetime": DEFAULT_IDLE_SECONDS,
        "infinite_token_lifetime": not is_expiring,
        "infinite_idle_token_lifetime": not is_expiring,
        **{name: value for name, value in values.items() if value is not None},
    }


def _lifetime(values: Mapping[str, Any], name: str, default: int) -> timedelta | None:
    return None if values.get(f"infinite_{name}") else timedelta(seconds=values.get(name) or default)
