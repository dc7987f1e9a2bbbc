from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from events.models import EventStream
from identity.models import Tenant
from provisioning.engine import breaker, delivering, dispatch, lanes
from provisioning.models import Attempt, Breaker, DeadLetter, Delivery
from provisioning.runs.failures import ConfigurationFailure, DataFailure, Misconfigured, TransientFailure
from provisioning.runs.outcomes import Claim
from tests.provisioning.engine.conftest import Recorder
from tests.provisioning.engine.logs import append_events

KEYS = ["user:a", "user:b", "user:c"]


@pytest.fixture(autouse=True)
def _small_breaker(settings: Settings) -> None:
    settings.BREAKER_FAILURES = 6
    settings.BREAKER_USERS = 3
    settings.BREAKER_PROBE_SECONDS = 60.0
    settings.DELIVERY_RETRY_DELAYS = [0.0] * 50
    settings.DELIVERY_RETRY_JITTER = 0.0


def _queue(tenant: Tenant, keys: list[str]) -> None:
    append_events(tenant, keys)
    dispatch.dispatch_tenant(tenant.pk)


def _run_each_lane_once(stream: EventStream, keys: list[str] = KEYS) -> None:
    for key in keys:
        claim = lanes.claim_named(stream.pk, key)
        if isinstance(claim, Claim):
            delivering.deliver_claim(claim, delivering.Turn(deliveries=1))


def _is_held(stream: EventStream) -> bool:
    stream.refresh_from_db()
    return stream.held_since is not None


def _make_probe_due(stream: EventStream) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE provisioning_breaker SET probe_at = now() - interval '1 second' WHERE stream_id = %s", [stream.pk])


def _fail_forever(recorder: Recorder, error: Exception) -> None:
    recorder.answers = {key: [error] * 1000 for key in KEYS}


@pytest.mark.parametrize("error", [TransientFailure("away"), ConfigurationFailure("refused")])
def test_consecutive_failures_of_several_users_hold_the_stream(
    tenant: Tenant, stream: EventStream, recorder: Recorder, error: Exception
) -> None:
    _queue(tenant, KEYS)
    _fail_forever(recorder, error)

    _run_each_lane_once(stream)
    assert not _is_held(stream)
    _run_each_lane_once(stream)

    assert _is_held(stream)
    assert stream.status == "enabled"
    assert str(error) in stream.held_reason
    assert lanes.claim_oldest(stream.pk) is None


def test_an_event_becomes_a_dead_letter_after_all_attempts_if_only_its_user_fails(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    settings.DELIVERY_RETRY_DELAYS = [0.0] * 20
    _queue(tenant, ["user:a"])
    _fail_forever(recorder, TransientFailure("away"))

    for _ in range(21):
        _run_each_lane_once(stream)

    assert not _is_held(stream)
    assert DeadLetter.objects.get(stream_id=stream.pk).attempts == 21


def test_failures_of_single_documents_do_not_hold_the_stream(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    _queue(tenant, KEYS)
    _fail_forever(recorder, DataFailure("too long"))

    for _ in range(5):
        _run_each_lane_once(stream)

    assert not _is_held(stream)


def test_a_success_resets_the_count_of_failures(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    _queue(tenant, [*KEYS, "user:good", "user:good"])
    _fail_forever(recorder, TransientFailure("away"))

    for _ in range(2):
        _run_each_lane_once(stream, KEYS[:2])
        _run_each_lane_once(stream, ["user:good"])
        _run_each_lane_once(stream, KEYS[2:])

    assert not _is_held(stream)
    assert Breaker.objects.get(stream_id=stream.pk).failures == 1


def test_a_threshold_of_zero_disables_the_breaker(tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings) -> None:
    settings.BREAKER_FAILURES = 0
    _queue(tenant, KEYS)
    _fail_forever(recorder, TransientFailure("away"))

    for _ in range(10):
        _run_each_lane_once(stream)

    assert not _is_held(stream)


def test_a_misconfigured_action_holds_its_stream_immediately_without_using_up_an_attempt(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    _queue(tenant, KEYS)
    _fail_forever(recorder, Misconfigured("SCIM_BASE_URL is missing"))

    _run_each_lane_once(stream)

    assert _is_held(stream)
    assert stream.held_reason == "SCIM_BASE_URL is missing"
    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", "series_attempts")) == {("todo", 0)}
    assert Attempt.objects.get(tenant_id=tenant.pk).outcome == "held"


def test_a_held_stream_is_still_dispatched_and_resumes_in_order(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="by hand")
    events = append_events(tenant, ["user:a"] * 3)
    dispatch.dispatch_tenant(tenant.pk)
    _run_each_lane_once(stream)
    assert recorder.taken == []

    assert breaker.resume_stream(stream_id=stream.pk, tenant_id=tenant.pk)
    delivering.deliver_lane(stream.pk, "user:a")

    assert recorder.event_ids == [event.event_id for event in events]
    assert not breaker.resume_stream(stream_id=stream.pk, tenant_id=tenant.pk)


def test_a_failed_probe_keeps_the_hold_without_using_up_an_attempt(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    _queue(tenant, KEYS)
    _fail_forever(recorder, TransientFailure("away"))
    for _ in range(2):
        _run_each_lane_once(stream)
    before = set(Delivery.objects.filter(stream_id=stream.pk).values_list("id", "series_attempts"))
    assert (stream.pk, tenant.pk) not in breaker.take_due_probes()
    _make_probe_due(stream)
    assert (stream.pk, tenant.pk) in breaker.take_due_probes()
    assert (stream.pk, tenant.pk) not in breaker.take_due_probes()

    delivering.probe_stream(stream.pk, tenant.pk)

    assert _is_held(stream)
    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("id", "series_attempts")) == before


@pytest.mark.parametrize("answer", [None, DataFailure("too long")])
def test_a_probe_that_the_destination_processes_resumes_the_stream(
    tenant: Tenant, stream: EventStream, recorder: Recorder, answer: Exception | None
) -> None:
    _queue(tenant, KEYS)
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="by hand")
    recorder.answers = {key: [answer] for key in KEYS} if answer is not None else {}

    delivering.probe_stream(stream.pk, tenant.pk)

    assert len(recorder.taken) == 1
    assert not _is_held(stream)
    assert Breaker.objects.get(stream_id=stream.pk).probe_at is None


def test_a_probe_without_a_waiting_delivery_resumes_the_stream(tenant: Tenant, stream: EventStream) -> None:
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="by hand")

    delivering.probe_stream(stream.pk, tenant.pk)

    assert not _is_held(stream)


def test_deliveries_held_for_too_long_become_dead_letters(tenant: Tenant, stream: EventStream) -> None:
    _queue(tenant, [*KEYS, *KEYS])
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="by hand")
    too_long = replace(delivering.failure_of(ConfigurationFailure("held too long"), 0.0), duration_ms=None)

    assert lanes.bury_waiting(stream.pk, too_long, limit=100) == 6

    assert set(DeadLetter.objects.filter(stream_id=stream.pk).values_list("state", "reason")) == {("open", "held too long")}
    assert lanes.bury_waiting(stream.pk, too_long, limit=100) == 0
