"""Checks provisioning before a tenant is exported: no delivery may run. Declares how a move copies the tables of provisioning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Q

from foundation.database.statements import fetch_one
from identity.moving.carrying import Pointer, Sealed, carry, sealed_text
from provisioning.actions.secrets import place_of, place_of_webhook

_LEASED = "SELECT count(*) FROM provisioning_lane WHERE tenant_id = %s AND lease_until > clock_timestamp()"


def unfinished(tenant_id: str) -> list[str]:
    """Return a sentence if deliveries run. A lease ends when the delivery ends, or expires if the worker was killed."""
    (count,) = fetch_one(_LEASED, [tenant_id]) or (0,)
    return [f"{count:,} deliveries are running."] if count else []


def declare() -> None:
    """Declare how a move copies the tables of provisioning."""
    carry(
        "provisioning",
        sealed={
            "ActionSecret": (sealed_text("sealed", lambda row: place_of(row.action.tenant_id, row.action_id, row.name)),),
            "ActionVersion": (Sealed("secrets", _of_version, ~Q(secrets=[])),),
            "WebhookSecrets": (sealed_text("sealed", lambda row: place_of_webhook(row.tenant_id, row.stream_id)),),
        },
        keys={"Delivery": {"event": "events.Event"}, "Lane": {"delivery_id": "Delivery"}},
    )


def _of_version(row: Any) -> Mapping[Pointer, str]:
    tenant_id = row.action.tenant_id
    return {(index, "sealed"): place_of(tenant_id, row.action_id, secret["name"]) for index, secret in enumerate(row.secrets)}
