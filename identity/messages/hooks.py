"""Events that a server of the tenant hears of in the place of a mail: a signed POST to the target that the app above names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from identity.messages.outcomes import MessageRefused
from identity.messages.senders.webhook import post_signed

# The channel of such a job, beside those of messages.
HOOK = "webhook"


@dataclass(frozen=True)
class Target:
    """The server of a tenant. Each event is signed with `key` (Standard Webhooks 1.0)."""

    url: str
    key: bytes = field(repr=False)


def _nowhere(tenant_id: str) -> Target | None:
    return None


_target_of: Callable[[str], Target | None] = _nowhere


def let_tenants_be_told(target_of: Callable[[str], Target | None]) -> None:
    """Look targets up by this function from now on: a tenant's id goes in, None comes out where it has no target."""
    global _target_of
    _target_of = target_of


def post_event(tenant_id: str, message_id: str, event: Mapping[str, Any]) -> None:
    """Post one event. Raises as `senders.webhook.post_signed` does, and `MessageRefused` where the tenant has no target any more."""
    target = _target_of(tenant_id)
    if target is None:
        raise MessageRefused("The tenant has no webhook any more.")
    post_signed(target.url, target.key, message_id=message_id, written=event)
