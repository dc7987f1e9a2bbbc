"""The deletion guard: deletions above the threshold wait for an approval, and later events of the stream wait, too."""

from __future__ import annotations

import pytest

from events.models import EventStream
from foundation.database.statements import execute
from identity.models import Tenant
from identity.services.failures import Conflict, Invalid
from provisioning.engine import breaker, delivering, dispatch, lanes, streams
from provisioning.engine.deletion_guard import allow_deletions, guard_of, set_guard
from provisioning.models import DeletionGuard
from tests.provisioning.engine.conftest import Recorder
from tests.provisioning.engine.logs import append_events


def deliver(stream: EventStream) -> None:
    dispatch.dispatch_stream(stream.pk)
    claim = lanes.claim_oldest(stream.pk)
    while claim is not None:
        claim = delivering.deliver_claim(claim, delivering.Turn()).next or lanes.claim_oldest(stream.pk)
    stream.refresh_from_db()


def append_deletions(tenant: Tenant, *users: str) -> list[str]:
    return [event.event_id for event in append_events(tenant, [f"user:{user}" for user in users], event_type="user.deleted")]


def test_deletions_up_to_the_threshold_are_delivered(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    set_guard(tenant_id=tenant.pk, stream_id=stream.pk, threshold=2)
    sent = append_deletions(tenant, "a", "b")
    deliver(stream)
    assert (sorted(recorder.event_ids), stream.held_since) == (sorted(sent), None)


def test_a_stream_without_a_deletion_guard_delivers_every_deletion(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    sent = append_deletions(tenant, *(str(number) for number in range(30)))
    deliver(stream)
    assert sorted(recorder.event_ids) == sorted(sent)


def test_deletions_above_the_threshold_are_staged_and_delivered_in_order_after_approval(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    set_guard(tenant_id=tenant.pk, stream_id=stream.pk, threshold=2)
    first = append_deletions(tenant, "a", "b", "c")
    after = [event.event_id for event in append_events(tenant, ["user:a", "user:d"], event_type="user.created")]
    deliver(stream)
    assert recorder.taken == []
    assert "3 deletions of users within 3,600 seconds exceed the threshold of 2" in stream.held_reason
    allow_deletions(tenant_id=tenant.pk, stream_id=stream.pk)
    deliver(stream)
    assert sorted(recorder.event_ids) == sorted([*first, *after])
    assert [event for key, event, _ in recorder.taken if key == "user:a"] == [first[0], after[0]]
    assert (stream.held_since, stream.held_reason) == (None, "")


def test_neither_a_probe_nor_resuming_the_stream_releases_staged_deletions(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    set_guard(tenant_id=tenant.pk, stream_id=stream.pk, threshold=0)
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="the destination is away")
    append_deletions(tenant, "a")
    deliver(stream)
    execute("UPDATE provisioning_breaker SET probe_at = now() WHERE stream_id = %s", [stream.pk])
    assert (stream.pk, tenant.pk) not in breaker.take_due_probes()
    assert not streams.resume_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    deliver(stream)
    assert recorder.taken == []
    assert "deletions" in stream.held_reason


def test_deletions_are_counted_from_zero_in_the_next_period(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    set_guard(tenant_id=tenant.pk, stream_id=stream.pk, threshold=1, window_seconds=60)
    sent = append_deletions(tenant, "a")
    deliver(stream)
    execute("UPDATE provisioning_deletionguard SET window_began_at = now() - interval '61 s' WHERE stream_id = %s", [stream.pk])
    sent += append_deletions(tenant, "b")
    deliver(stream)
    assert (sorted(recorder.event_ids), stream.held_since) == (sorted(sent), None)
    append_deletions(tenant, "c")
    deliver(stream)
    assert stream.held_since is not None


def test_a_guard_can_be_removed_and_invalid_values_are_refused(tenant: Tenant, stream: EventStream) -> None:
    with pytest.raises(Invalid):
        set_guard(tenant_id=tenant.pk, stream_id=stream.pk, threshold=-1)
    with pytest.raises(Invalid):
        set_guard(tenant_id=tenant.pk, stream_id=stream.pk, threshold=1, window_seconds=0)
    set_guard(tenant_id=tenant.pk, stream_id=stream.pk, threshold=1)
    set_guard(tenant_id=tenant.pk, stream_id=stream.pk, threshold=None)
    assert guard_of(stream) is None
    with pytest.raises(Conflict):
        allow_deletions(tenant_id=tenant.pk, stream_id=stream.pk)


def test_a_guard_is_deleted_with_its_stream(tenant: Tenant, stream: EventStream) -> None:
    set_guard(tenant_id=tenant.pk, stream_id=stream.pk, threshold=1)
    streams.delete_stream(tenant_id=tenant.pk, stream_id=stream.pk)
    assert not DeletionGuard.objects.filter(stream_id=stream.pk).exists()
