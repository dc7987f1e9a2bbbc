"""Measures the rate of deliveries that have waited behind a hold, after the hold is removed."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection

from events.log.numbering import number_tenant
from identity.services import connections, tenants, users
from provisioning.engine import dispatch
from provisioning.engine.streams import create_stream
from provisioning.services.actions import create_action
from tests.deadlines import eventually

_TYPES = ["user.created", "user.updated"]
# The hold has no planned probe, so that only this code resumes the stream.
_HOLD = "UPDATE events_eventstream SET held_since = now(), held_reason = 'measuring' WHERE id = ANY(%s)"
_RESUME = "UPDATE events_eventstream SET held_since = NULL, held_reason = '' WHERE id = ANY(%s)"
_WAKE = "UPDATE provisioning_lane SET nudged_until = NULL WHERE stream_id = ANY(%s)"
_WAITING = "SELECT count(*) FROM provisioning_delivery WHERE stream_id = ANY(%s)"
_PROGRESS = """
SELECT count(*) FILTER (WHERE state = 'delivered'), count(*) FILTER (WHERE state <> 'delivered' AND error_class <> ''),
    extract(epoch FROM max(settled_at) - min(first_attempt_at))::float
FROM provisioning_delivery WHERE stream_id = ANY(%s)
"""
_OUT_OF_ORDER = """
SELECT count(*) FROM (
    SELECT position < max(position) OVER (PARTITION BY stream_id, key ORDER BY first_attempt_at ROWS UNBOUNDED PRECEDING) AS late
    FROM provisioning_delivery WHERE stream_id = ANY(%s)) ordered
WHERE late
"""


@dataclass(frozen=True)
class Queue:
    """Streams with waiting deliveries."""

    tenant_id: str
    stream_ids: list[str]
    waiting: int

    def run(self, observe: Callable[[int], None] = lambda done: None, *, seconds: float = 600) -> float:
        """Remove the hold and wait until everything is delivered; return the seconds from first attempt to last outcome."""
        _execute(_RESUME, self.stream_ids)
        _execute(_WAKE, self.stream_ids)
        took = 0.0

        def is_done() -> bool:
            nonlocal took
            done, failed, took = _row(_PROGRESS, self.stream_ids)
            assert not failed, f"{failed} deliveries failed"
            observe(done)
            return bool(done == self.waiting)

        eventually(is_done, seconds=seconds, pause=0.1)
        return took

    def out_of_order(self) -> int:
        """Return the number of deliveries whose first attempt began after the first attempt for a later event of the same user."""
        return int(_row(_OUT_OF_ORDER, self.stream_ids)[0])


def queue(base: str, people: int, changes: int = 1, *, streams: int = 1) -> Queue:
    """Record `people` users and `changes` changes of each, behind held streams."""
    tenant_id = f"bench-{secrets.token_hex(6)}"
    tenants.create_tenant(tenant_id=tenant_id, name="bench", host=f"{tenant_id}.example.test")
    made = connections.create_connection(tenant_id=tenant_id, name="people", strategy="database")
    stream_ids = [_held_stream(tenant_id, f"scim {number}", base) for number in range(streams)]
    for number in range(people):
        user = users.create_user(tenant_id=tenant_id, connection=made, email=f"ada{number}@example.test", name="Ada")
        for change in range(changes):
            users.update_user(tenant_id=tenant_id, user_id=user.user_id, changes={"nickname": f"Countess {change}"})
    number_tenant(tenant_id)
    dispatch.dispatch_tenant(tenant_id)
    waiting = people * (1 + changes) * streams
    eventually(lambda: _row(_WAITING, stream_ids)[0] == waiting, seconds=60)
    time.sleep(0.2)  # By now the worker has received all nudges, and has found that the streams are held.
    return Queue(tenant_id, stream_ids, waiting)


def _held_stream(tenant_id: str, name: str, base: str) -> str:
    sealed = {"SCIM_BASE_URL": base, "SCIM_BEARER_TOKEN": "token"}
    action = create_action(tenant_id=tenant_id, name=name, template="scim-user-provisioning", secrets=sealed, deploy=True)
    bound = {"action_id": str(action.pk)}
    stream = create_stream(tenant_id=tenant_id, subscriptions=_TYPES, destination_type="action", destination=bound)
    _execute(_HOLD, [stream.pk])
    return str(stream.pk)


def _execute(statement: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def _row(statement: str, *values: Any) -> tuple[int, ...]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: tuple[int, ...] = cursor.fetchone()
        return row
