from __future__ import annotations

import uuid

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from config.console.dashboard import readings
from events.models import EventStream, Mark
from identity.models import Tenant
from provisioning import figures
from provisioning.engine import breaker, dispatch, lanes, nudges, sweeper
from provisioning.models import Sweeper
from tests.events.log_reading import types
from tests.factories.identity import make_connection, make_user
from tests.plans import read_in_vain
from tests.provisioning.engine.logs import append_events


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Return the list of the messages that would be sent to the broker."""
    messages: list[tuple[object, ...]] = []

    def send(*message: str, countdown: float | None = None) -> bool:
        messages.append(message)
        return True

    monkeypatch.setattr(nudges, "send", send)
    return messages


def _queue(tenant: Tenant, *keys: str) -> None:
    append_events(tenant, list(keys))
    dispatch.dispatch_tenant(tenant.pk)


def _pass(stream: EventStream, seconds: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE provisioning_lane SET nudged_until = nudged_until - make_interval(secs => %(s)s), "
            "lease_until = lease_until - make_interval(secs => %(s)s) WHERE stream_id = %(stream)s",
            {"s": seconds, "stream": stream.pk},
        )


def _nudged(sent: list[tuple[object, ...]], stream: EventStream) -> list[str]:
    """Search once for due lanes, and return the keys of the stream's lanes that got a message."""
    sent.clear()
    sweeper.nudge_due_lanes()
    return sorted(str(key) for task, stream_id, key in sent if task == nudges.DELIVER and stream_id == stream.pk)


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (sweeper._DUE_LANES, {"nudged": 60, "limit": 1000}),
        (f"SELECT due.* FROM events_eventstream s CROSS JOIN LATERAL ({figures._DUE} LIMIT 1000) due", {}),  # noqa: S608  (a constant)
        (readings._OLDEST_DUE, {}),
    ],
    ids=["sweep", "metrics", "dashboard"],
)
def test_the_search_for_due_lanes_reads_no_lane_that_is_due_later(
    tenant: Tenant, stream: EventStream, statement: str, values: dict[str, object]
) -> None:
    later = (
        "INSERT INTO provisioning_lane (stream_id, key, tenant_id, not_before)"
        " SELECT %s, 'user:' || n, %s, clock_timestamp() + interval '1 hour' FROM generate_series(1, 300) n"
    )
    with connection.cursor() as cursor:
        cursor.execute(later, [stream.pk, tenant.pk])

    assert read_in_vain(statement, values, table="provisioning_lane") == 0


def test_a_due_lane_gets_a_second_message_only_after_the_first_message_counts_as_lost(
    tenant: Tenant, stream: EventStream, sent: list[tuple[object, ...]]
) -> None:
    _queue(tenant, "user:a", "user:b")

    assert _nudged(sent, stream) == []  # The dispatch has just sent messages for these lanes.
    _pass(stream, 4)
    assert _nudged(sent, stream) == ["user:a", "user:b"]
    assert _nudged(sent, stream) == []
    _pass(stream, 31)
    assert _nudged(sent, stream) == ["user:a", "user:b"]


def test_many_due_lanes_get_fewer_messages_because_one_turn_handles_many_lanes(
    tenant: Tenant, stream: EventStream, sent: list[tuple[object, ...]]
) -> None:
    _queue(tenant, *[f"user:{number}" for number in range(208)])
    _pass(stream, 4)

    assert len(_nudged(sent, stream)) == 8 + 10
    assert _nudged(sent, stream) == []


def test_a_leased_lane_gets_no_message_until_its_lease_expires(tenant: Tenant, stream: EventStream, sent: list[tuple[object, ...]]) -> None:
    _queue(tenant, "user:a")
    lanes.claim_named(stream.pk, "user:a")

    assert _nudged(sent, stream) == []
    _pass(stream, 46)
    assert _nudged(sent, stream) == ["user:a"]


def test_lanes_of_held_and_disabled_streams_get_no_message(tenant: Tenant, stream: EventStream, sent: list[tuple[object, ...]]) -> None:
    _queue(tenant, "user:a")
    _pass(stream, 4)
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="by hand")
    assert _nudged(sent, stream) == []
    breaker.resume_stream(stream_id=stream.pk, tenant_id=tenant.pk)
    stream.refresh_from_db()
    stream.status = EventStream.Status.DISABLED
    stream.save(update_fields=["status"])

    assert _nudged(sent, stream) == []


def test_a_resumed_stream_gets_messages_immediately(tenant: Tenant, stream: EventStream, sent: list[tuple[object, ...]]) -> None:
    _queue(tenant, "user:a")
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="by hand")

    breaker.resume_stream(stream_id=stream.pk, tenant_id=tenant.pk)

    assert _nudged(sent, stream) == ["user:a"]


def test_the_sweeper_dispatches_a_stream_that_is_behind_its_log(
    tenant: Tenant, stream: EventStream, sent: list[tuple[object, ...]]
) -> None:
    append_events(tenant, ["user:a"])
    sweeper.sweep()
    assert (nudges.DISPATCH, tenant.pk) in sent
    dispatch.dispatch_tenant(tenant.pk)
    sent.clear()

    sweeper.sweep()

    assert (nudges.DISPATCH, tenant.pk) not in sent


def test_the_sweeper_probes_a_held_stream_when_its_probe_is_due(
    tenant: Tenant, stream: EventStream, sent: list[tuple[object, ...]]
) -> None:
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="by hand")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE provisioning_breaker SET probe_at = now() WHERE stream_id = %s", [stream.pk])

    sweeper.sweep()

    assert (nudges.PROBE, stream.pk, tenant.pk) in sent


def test_only_one_process_sweeps_until_its_lease_expires(committed_db: None) -> None:
    Sweeper.objects.all().delete()
    one, other = uuid.uuid4(), uuid.uuid4()

    assert sweeper.take_lead(one, 5.0)
    assert sweeper.take_lead(one, 5.0)
    assert not sweeper.take_lead(other, 5.0)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE provisioning_sweeper SET lease_until = now() - interval '1 second'")
    assert sweeper.take_lead(other, 5.0)
    assert not sweeper.take_lead(one, 5.0)
    Sweeper.objects.all().delete()


def test_a_sweep_records_changes_that_sent_no_signals(committed_db: None, tenant: Tenant, settings: Settings) -> None:
    settings.EVENTS_SWEEPER_ENABLED = True
    user = make_user(connection=make_connection(tenant_id=tenant.pk, name="people"))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE identity_user SET given_name = 'Augusta' WHERE id = %s", [user.pk])

    sweeper.sweep()

    assert types(tenant.pk)[-1] == "user.updated"
    assert not Mark.objects.filter(tenant_id=tenant.pk).exists()
