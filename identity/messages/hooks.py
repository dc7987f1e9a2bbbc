"""Posts events to a server of the tenant instead of sending a mail: a signed POST to a target that another app supplies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from identity.messages.outcomes import MessageRefused
from identity.messages.senders.webhook import post_signed

# The channel of a job that posts an event to a webhook. The channels of messages are in other modules.
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
    """Register `target_of`.

    `post_event` calls this function with the id of a tenant. The function returns the target of the tenant, or None.
    """
    global _target_of
    _target_of = target_of


def post_event(tenant_id: str, message_id: str, event: Mapping[str, Any]) -> None:
    """Post one event. Raises the errors of `senders.webhook.post_signed`, and `MessageRefused` if the tenant no longer has a target."""
    target = _target_of(tenant_id)
    if target is None:
        raise MessageRefused("The tenant no longer has a webhook.")
    post_signed(target.url, target.key, message_id=message_id, written=event)
