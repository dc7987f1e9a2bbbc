"""Leases the lanes of one document while code other than a delivery writes the document to a destination, so that no delivery of the
document runs meanwhile.

The lease has a time limit, like the lease of a worker, so the lease expires if its process is killed. It is not a hold of a stream
(`breaker`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import transaction

from foundation.database.statements import fetch_one
from identity.services.failures import Conflict
from provisioning.engine import lane_rows, nudges
from provisioning.models import Delivery

_HOLD = """
INSERT INTO provisioning_lane AS l (stream_id, key, tenant_id, token, lease_until)
VALUES (%(stream)s, %(key)s, %(tenant)s, %(token)s, clock_timestamp() + make_interval(secs => %(seconds)s))
ON CONFLICT (stream_id, key) DO UPDATE SET token = EXCLUDED.token, lease_until = EXCLUDED.lease_until, delivery_id = NULL
    WHERE l.lease_until IS NULL OR l.lease_until <= clock_timestamp()
RETURNING id
"""


class LaneBusy(Conflict):
    """Deliveries of this user are waiting or running; earlier events must be delivered first."""


@contextmanager
def held_lanes(stream_ids: Sequence[str], *, tenant_id: str, key: str, seconds: float) -> Iterator[None]:
    """Lease the lanes of `key` in these streams for at most `seconds`; raise `LaneBusy` if a delivery waits in one of these lanes."""
    token = uuid.uuid4()
    values = {"key": key, "tenant": tenant_id, "token": token, "seconds": seconds}
    with transaction.atomic():
        lane_ids = {stream_id: _held(stream_id, values) for stream_id in sorted(stream_ids)}
    try:
        yield
    finally:
        for stream_id, lane_id in lane_ids.items():
            _release(stream_id, lane_id, token, key)


def waiting_deliveries(stream_ids: Sequence[str], *, tenant_id: str, key: str) -> int:
    """Return how many deliveries of the document are not settled."""
    return Delivery.objects.filter(stream_id__in=stream_ids, tenant_id=tenant_id, key=key, state=Delivery.State.TODO).count()


def _held(stream_id: str, values: dict[str, object]) -> int:
    (lane_id,) = fetch_one(_HOLD, {**values, "stream": stream_id}) or (None,)
    # Run this separate statement after the lane was locked: its snapshot includes every delivery that was dispatched before the lock was
    # granted.
    if lane_id is None or waiting_deliveries([stream_id], tenant_id=str(values["tenant"]), key=str(values["key"])):
        raise LaneBusy
    return int(lane_id)


def _release(stream_id: str, lane_id: int, token: uuid.UUID, key: str) -> None:
    with transaction.atomic():
        is_waiting = lane_rows.lock_claimed(lane_id, token) and lane_rows.leave(lane_id)
    if is_waiting:
        nudges.post(nudges.DELIVER, stream_id, key)
