"""Responses with 401 and 403. If the token has expired, the stream is held before an event becomes a dead letter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from events.models import EventStream
from identity.models import Tenant
from provisioning.engine import alerts, breaker, delivering, dispatch, lanes, nudges
from provisioning.engine.streams import create_stream
from provisioning.models import Alert, Breaker, DeadLetter, Delivery
from provisioning.runs.failures import ActionError, ConfigurationFailure, DataFailure, TransientFailure
from provisioning.runs.outcomes import Claim
from provisioning.trials.read_probe import hold_when_reading_is_refused
from tests.deadlines import eventually
from tests.factories.models.provisioning import ActionFactory, BreakerFactory
from tests.factories.scim import TOKEN, Received, by_verb, listing, misbehaving_server, reply, scim_error
from tests.provisioning.engine.conftest import Answer, Recorder
from tests.provisioning.engine.logs import append_events

KEYS = ["user:a", "user:b", "user:c"]


@pytest.fixture(autouse=True)
def _retries(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = [0.0] * 3
    settings.DELIVERY_RETRY_JITTER = 0.0
    settings.BREAKER_PROBE_SECONDS = 60.0


def unauthorized() -> Answer | Exception:
    return ConfigurationFailure("POST /Users answered 401", status=401)


def forbidden() -> Answer | Exception:
    return ConfigurationFailure("PUT /Users/{id} answered 403", status=403)


def queue(tenant: Tenant, keys: list[str]) -> None:
    append_events(tenant, keys)
    dispatch.dispatch_tenant(tenant.pk)


def run(stream: EventStream, *keys: str) -> None:
    """Run the first delivery of each of these lanes once."""
    for key in keys:
        claim = lanes.claim_named(stream.pk, key)
        if isinstance(claim, Claim):
            delivering.deliver_claim(claim, delivering.Turn(deliveries=1))


def is_held(stream: EventStream) -> bool:
    stream.refresh_from_db()
    return stream.held_since is not None


def letters(stream: EventStream) -> int:
    return DeadLetter.objects.filter(stream_id=stream.pk).count()


def test_an_expired_token_holds_the_stream_with_one_alert_and_no_dead_letter(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    queue(tenant, KEYS)
    recorder.answers = {key: [unauthorized() for _ in range(20)] for key in KEYS}

    for _ in range(5):
        run(stream, *KEYS)

    assert is_held(stream)
    assert "401" in stream.held_reason
    assert "20 deliveries" not in stream.held_reason
    assert len(recorder.taken) == 3
    assert letters(stream) == 0
    alerts.raise_alerts()
    alerts.raise_alerts()
    assert list(Alert.objects.filter(stream_id=stream.pk).values_list("kind", flat=True)) == ["held"]

    recorder.answers = {}
    delivering.probe_stream(stream.pk, tenant.pk)
    for key in KEYS:
        delivering.deliver_lane(stream.pk, key)
    assert not is_held(stream)
    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"delivered"}


def test_401_for_one_user_holds_the_stream_because_the_status_concerns_the_token(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    queue(tenant, ["user:a"])
    recorder.answers = {"user:a": [unauthorized() for _ in range(3)]}
    for _ in range(3):
        assert not is_held(stream)
        run(stream, "user:a")
    assert is_held(stream)
    assert letters(stream) == 0


@pytest.mark.parametrize("between", [None, DataFailure("too long", status=400), TransientFailure("away", status=503)])
def test_another_status_resets_the_count_of_401(
    tenant: Tenant, stream: EventStream, recorder: Recorder, between: ActionError | None
) -> None:
    queue(tenant, [*KEYS, "user:other"])
    recorder.answers = {key: [unauthorized() for _ in range(2)] for key in KEYS} | ({"user:other": [between]} if between else {})
    run(stream, "user:a", "user:b", "user:other", "user:c", "user:a")
    assert not is_held(stream)
    run(stream, "user:b")
    assert is_held(stream)


@pytest.mark.parametrize("between", [TransientFailure("no answer"), DataFailure("the user cannot be mapped")])
def test_a_request_without_a_response_does_not_reset_the_count_of_401(
    tenant: Tenant, stream: EventStream, recorder: Recorder, between: ActionError
) -> None:
    queue(tenant, [*KEYS, "user:other"])
    recorder.answers = {key: [unauthorized()] for key in KEYS} | {"user:other": [between]}
    run(stream, "user:a", "user:b", "user:other", "user:c")
    assert is_held(stream)


def test_401_uses_up_all_attempts_if_the_threshold_is_zero(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    settings.BREAKER_UNAUTHORIZED = 0
    queue(tenant, KEYS)
    recorder.answers = {key: [unauthorized() for _ in range(20)] for key in KEYS}
    for _ in range(4):
        run(stream, *KEYS)
    assert not is_held(stream)
    assert letters(stream) == 3


def test_403_for_one_user_causes_dead_letters_and_403_for_two_users_holds_the_stream(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    queue(tenant, KEYS)
    recorder.answers = {key: [forbidden() for _ in range(20)] for key in KEYS}
    for _ in range(4):
        run(stream, "user:a")
    assert (is_held(stream), letters(stream)) == (False, 1)

    run(stream, "user:b")

    assert is_held(stream)
    assert "403" in stream.held_reason
    assert letters(stream) == 1


def test_403_for_one_user_causes_a_nudge_to_test_whether_reads_are_refused_too(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DELIVERY_NUDGES_ENABLED = True
    sent: list[tuple[str, ...]] = []

    def send(task: str, *arguments: str, **_: object) -> bool:
        sent.append((task, *arguments))
        return True

    monkeypatch.setattr(nudges, "send", send)
    queue(tenant, KEYS)
    recorder.answers = {"user:a": [forbidden()], "user:b": [DataFailure("too long", status=400)]}
    run(stream, "user:b")
    run(stream, "user:a")
    eventually(lambda: (nudges.READ_PROBE, stream.pk, tenant.pk) in sent, seconds=10)
    assert len([task for task, *_ in sent if task == nudges.READ_PROBE]) == 1


def test_another_status_resets_the_count_of_403(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    queue(tenant, KEYS)
    recorder.answers = {"user:a": [forbidden()], "user:c": [forbidden()]}
    run(stream, *KEYS)
    assert not is_held(stream)


def test_a_last_attempt_that_opens_the_breaker_causes_no_dead_letter(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    settings.DELIVERY_RETRY_DELAYS = []
    settings.BREAKER_UNAUTHORIZED = 1
    queue(tenant, KEYS)
    recorder.answers = {key: [unauthorized() for _ in range(20)] for key in KEYS}
    # Several deliveries are already claimed when the breaker opens. Their failures do not count as attempts either.
    claims = [lanes.claim_named(stream.pk, key) for key in KEYS]
    for claim in claims:
        assert isinstance(claim, Claim)
        delivering.deliver_claim(claim, delivering.Turn(deliveries=1))

    assert is_held(stream)
    assert letters(stream) == 0
    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", "series_attempts")) == {("todo", 0)}


def test_a_delivery_that_fails_while_staff_hold_the_stream_becomes_no_dead_letter(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    settings.DELIVERY_RETRY_DELAYS = []
    queue(tenant, ["user:a", "user:b"])
    recorder.answers = {"user:a": [TransientFailure("away")], "user:b": [DataFailure("too long", status=400)]}
    claims = [lanes.claim_named(stream.pk, key) for key in ("user:a", "user:b")]
    breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="by hand")
    for claim in claims:
        assert isinstance(claim, Claim)
        delivering.deliver_claim(claim, delivering.Turn(deliveries=1))

    # A data failure concerns only one document, so the delivery becomes a dead letter although the stream is held.
    assert dict(Delivery.objects.filter(stream_id=stream.pk).values_list("key", "state")) == {"user:a": "todo", "user:b": "dead"}


def test_a_stream_that_was_resumed_without_a_success_is_held_at_the_next_401(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    settings.DELIVERY_RETRY_DELAYS = []
    queue(tenant, KEYS)
    recorder.answers = {key: [unauthorized() for _ in range(20)] for key in KEYS}
    settings.BREAKER_UNAUTHORIZED = 1
    run(stream, "user:a")
    settings.BREAKER_UNAUTHORIZED = 3
    Breaker.objects.filter(stream_id=stream.pk).update(unauthorized=3)
    assert is_held(stream)

    assert breaker.resume_stream(stream_id=stream.pk, tenant_id=tenant.pk)
    run(stream, "user:b")

    assert is_held(stream)
    assert letters(stream) == 0


@pytest.fixture
def scim_stream(tenant: Tenant) -> Callable[..., EventStream]:
    def make(base_url: str) -> EventStream:
        secrets = {"SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": TOKEN, "SCIM_MAX_RETRIES": "0"}
        action = ActionFactory.create(tenant_id=tenant.pk, name="to scim", template="scim-user-provisioning", secrets=secrets, deploy=True)
        values: dict[str, Any] = {"destination_type": "action", "destination": {"action_id": str(action.pk)}}
        return create_stream(tenant_id=tenant.pk, subscriptions=["user.updated"], **values)

    return make


@pytest.mark.parametrize(
    ("answer", "is_refused"), [(scim_error(403), True), (scim_error(401), True), (scim_error(500), False), (None, False)]
)
def test_403_for_one_user_holds_the_stream_if_the_server_also_refuses_reads(
    tenant: Tenant, scim_stream: Callable[..., EventStream], answer: Any, is_refused: bool
) -> None:
    reads: list[Received] = []

    def listed(request: Received) -> Any:
        reads.append(request)
        return listing() if answer is None else answer

    with misbehaving_server(by_verb(GET=listed, POST=reply(403))) as server:
        stream = scim_stream(server.base_url)
        hold_when_reading_is_refused(stream_id=stream.pk, tenant_id=tenant.pk)
        assert reads == []
        BreakerFactory.create(stream_id=stream.pk, tenant_id=tenant.pk, failures=1, keys=["user:a"], forbidden_keys=["user:a"])

        hold_when_reading_is_refused(stream_id=stream.pk, tenant_id="t-another")
        hold_when_reading_is_refused(stream_id=stream.pk, tenant_id=tenant.pk)

    assert [request.verb for request in reads] == ["GET"]
    assert is_held(stream) is is_refused
    assert TOKEN not in stream.held_reason
