from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from events.models import EventStream
from identity.models import Tenant
from provisioning.engine import dispatch
from provisioning.models import Delivery, Lane
from tests.provisioning.engine.logs import append_events, make_stream


def _positions(stream: EventStream) -> list[int]:
    return list(Delivery.objects.filter(stream_id=stream.pk).order_by("id").values_list("position", flat=True))


def test_every_subscribed_event_becomes_one_delivery_in_log_order(tenant: Tenant, stream: EventStream) -> None:
    append_events(tenant, ["user:a", "user:b", "user:a"])

    (done,) = dispatch.dispatch_tenant(tenant.pk)

    assert _positions(stream) == [1, 2, 3]
    assert (done.deliveries, sorted(done.new_lanes)) == (3, ["user:a", "user:b"])
    stream.refresh_from_db()
    assert stream.position == 3
    assert dispatch.dispatch_tenant(tenant.pk) == []


def test_events_of_unsubscribed_types_advance_the_position_without_deliveries(tenant: Tenant, recorder: object) -> None:
    stream = make_stream(tenant, subscriptions=["user.deleted"])
    append_events(tenant, ["user:a"] * 3)

    dispatch.dispatch_tenant(tenant.pk)

    stream.refresh_from_db()
    assert (stream.position, _positions(stream)) == (3, [])
    assert not Lane.objects.filter(stream_id=stream.pk).exists()


def test_several_pages_are_dispatched_without_gaps_or_duplicates(
    tenant: Tenant, stream: EventStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "BATCH", 10)
    append_events(tenant, [f"user:{number % 7}" for number in range(35)])

    dispatch.dispatch_tenant(tenant.pk)

    assert _positions(stream) == list(range(1, 36))


def test_dispatching_a_page_twice_creates_no_second_delivery(tenant: Tenant, stream: EventStream) -> None:
    append_events(tenant, ["user:a", "user:b"])
    dispatch.dispatch_tenant(tenant.pk)
    stream.refresh_from_db()
    stream.position = 0
    stream.save(update_fields=["position"])

    dispatch.dispatch_tenant(tenant.pk)

    assert _positions(stream) == [1, 2]


def test_a_disabled_stream_is_not_dispatched(tenant: Tenant, stream: EventStream) -> None:
    stream.status = EventStream.Status.DISABLED
    stream.save(update_fields=["status"])
    append_events(tenant, ["user:a"])

    assert dispatch.dispatch_tenant(tenant.pk) == []
    assert dispatch.dispatch_stream(stream.pk).deliveries == 0


def test_a_stream_that_another_process_is_dispatching_is_skipped(tenant: Tenant, stream: EventStream) -> None:
    append_events(tenant, ["user:a"])
    in_thread: list[int] = []

    def dispatch_without_waiting() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '5s'")
            in_thread.append(dispatch.dispatch_stream(stream.pk).deliveries)

    with transaction.atomic():
        # Lock the row of the stream, as a dispatch in another process does.
        EventStream.objects.of(tenant.pk).select_for_update(no_key=True).get(pk=stream.pk)
        _in_thread(dispatch_without_waiting)

    assert in_thread == [0]
    assert dispatch.dispatch_stream(stream.pk).deliveries == 1


def test_a_new_event_does_not_shorten_the_pause_of_a_failing_lane(tenant: Tenant, stream: EventStream) -> None:
    append_events(tenant, ["user:a"])
    dispatch.dispatch_tenant(tenant.pk)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE provisioning_lane SET not_before = now() + interval '1 hour' WHERE stream_id = %s", [stream.pk])
    before = Lane.objects.get(stream_id=stream.pk).not_before

    append_events(tenant, ["user:a"])
    (done,) = dispatch.dispatch_tenant(tenant.pk)

    assert Lane.objects.get(stream_id=stream.pk).not_before == before
    assert done.new_lanes == []


def _in_thread(work: Callable[[], object]) -> None:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
