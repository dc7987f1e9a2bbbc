"""Claims in advance: during a run, the worker settles the previous delivery and claims the next delivery.

The tests also make these two steps fail.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import IntegrityError, OperationalError, connection
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django.fixtures import Settings

from events.models import EventStream
from foundation.database import sent_scripts
from identity.models import Tenant
from provisioning.engine import claim_ahead, delivering, destinations, dispatch, lanes, nudges
from provisioning.models import Attempt, Delivery, Lane
from provisioning.runs.failures import DataFailure
from provisioning.runs.outcomes import Claim
from tests.deadlines import eventually
from tests.provisioning.engine.conftest import Answer, Recorder
from tests.provisioning.engine.logs import DESTINATION, append_events

KEYS = [f"user:{letter}" for letter in "abcdef"]


class Watched(Recorder):
    """A destination that calls a function while it delivers an event of a selected key."""

    def __init__(self) -> None:
        super().__init__()
        self.during: dict[str, Callable[[], object]] = {}

    def __call__(self, claim: Claim, *others: Any) -> Answer:
        answer = super().__call__(claim, *others)
        self.during.get(claim.key, lambda: None)()
        return answer


@pytest.fixture
def destination(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> Watched:
    watched = destinations.DESTINATIONS[DESTINATION] = Watched()
    monkeypatch.setattr(nudges, "send", lambda *_, **__: True)
    # Make every run count as fast, even on a busy machine, because the worker claims in advance only during fast runs.
    monkeypatch.setattr(claim_ahead, "FAST_MILLISECONDS", 10_000.0)
    return watched


def _queue(tenant: Tenant, *keys: str) -> None:
    append_events(tenant, list(keys))
    dispatch.dispatch_tenant(tenant.pk)


def _delivery(stream: EventStream, key: str) -> Delivery:
    return Delivery.objects.get(stream_id=stream.pk, key=key)


def _is_leased(stream: EventStream, key: str) -> bool:
    return Lane.objects.filter(stream_id=stream.pk, key=key, lease_until__gt=Now()).exists()


def _let_leases_run_out(stream: EventStream) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE provisioning_lane SET lease_until = now() - interval '1 second' WHERE stream_id = %s", [stream.pk])


def _assert_books_agree(stream: EventStream) -> None:
    for delivery in Delivery.objects.filter(stream_id=stream.pk):
        numbers = Attempt.objects.filter(delivery=delivery).order_by("number").values_list("number", flat=True)
        assert list(numbers) == list(range(1, delivery.attempts + 1)), delivery.key


def test_the_previous_delivery_is_settled_and_the_next_delivery_is_claimed_during_a_run(
    tenant: Tenant, stream: EventStream, destination: Watched
) -> None:
    _queue(tenant, *KEYS)

    def look() -> None:
        eventually(lambda: _delivery(stream, "user:c").state == "delivered")
        eventually(lambda: _is_leased(stream, "user:e"))

    destination.during["user:d"] = look
    delivering.deliver_lane(stream.pk, "user:a")

    assert [(key, attempt) for key, _, attempt in destination.taken] == [(key, 1) for key in KEYS]
    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"delivered"}
    assert not Lane.objects.filter(stream_id=stream.pk).exists()
    _assert_books_agree(stream)


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_run_that_leaves_a_closed_database_connection_loses_no_claim(
    tenant: Tenant, stream: EventStream, destination: Watched, settings: Settings, is_refused: bool
) -> None:
    settings.DELIVERY_RETRY_DELAYS = [60]
    _queue(tenant, *KEYS)

    def leave() -> None:
        eventually(lambda: _is_leased(stream, "user:d"))
        # An interrupted action leaves the connection closed.
        connection.close()
        gc.collect()
        if is_refused:
            raise DataFailure("refused", status=400)

    destination.during["user:c"] = leave
    for key in KEYS:
        delivering.deliver_lane(stream.pk, key)

    assert [(key, attempt) for key, _, attempt in destination.taken] == [(key, 1) for key in KEYS]
    states = {key: _delivery(stream, key).state for key in KEYS}
    assert {key for key, state in states.items() if state == "delivered"} == set(KEYS) - ({"user:c"} if is_refused else set())
    assert not Lane.objects.filter(stream_id=stream.pk, lease_until__gt=Now()).exists()
    _assert_books_agree(stream)


def test_events_of_one_document_stay_in_order_while_other_documents_are_claimed_in_advance(
    tenant: Tenant, stream: EventStream, destination: Watched
) -> None:
    _queue(tenant, *(KEYS * 4))

    delivering.deliver_lane(stream.pk, "user:a")

    recorded = list(Delivery.objects.filter(stream_id=stream.pk).order_by("position").values_list("event_id", flat=True))
    for key in KEYS:
        mine = [event_id for at, event_id, _ in destination.taken if at == key]
        assert mine == [event_id for event_id in recorded if event_id in mine]
    assert sorted(destination.event_ids) == sorted(recorded)
    _assert_books_agree(stream)


@pytest.mark.parametrize("cause", ["failed run", "slow run", "end of the turn"])
def test_a_claim_in_advance_is_either_used_or_given_back(
    cause: str, tenant: Tenant, stream: EventStream, destination: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    _queue(tenant, *KEYS)
    seen: list[tuple[bool, int]] = []

    def turn_bad() -> None:
        eventually(lambda: _is_leased(stream, "user:d"))
        if cause == "slow run":
            monkeypatch.setattr(claim_ahead, "FAST_MILLISECONDS", 0.0)
        elif cause == "end of the turn":
            monkeypatch.setattr(delivering.Turn, "goes_on", lambda _: False)
        else:
            raise DataFailure("refused")

    def look() -> None:
        seen.append((_is_leased(stream, "user:e"), _delivery(stream, "user:d").attempts))

    destination.during |= {"user:c": turn_bad, "user:d": look}
    delivering.deliver_lane(stream.pk, "user:a")

    if cause == "end of the turn":
        assert destination.taken[-1][0] == "user:c"
        assert not _is_leased(stream, "user:d")
        assert _delivery(stream, "user:d").attempts == 0
    else:
        # `look` ran during the delivery of `user:d`. This delivery had used one attempt, and the next delivery was not claimed in advance.
        assert seen == [(False, 1)]
        assert {key for key, _, _ in destination.taken} == set(KEYS)
    _assert_books_agree(stream)


def test_a_killed_worker_uses_up_one_attempt_of_the_delivery_claimed_in_advance(
    tenant: Tenant, stream: EventStream, destination: Watched
) -> None:
    _queue(tenant, *KEYS)

    def die() -> None:
        if _delivery(stream, "user:c").attempts == 1:
            eventually(lambda: _is_leased(stream, "user:d"))
        else:
            assert not _is_leased(stream, "user:d")
        raise SystemExit

    destination.during["user:c"] = die
    for key in ("user:a", "user:c", "user:c"):
        with pytest.raises(SystemExit):
            delivering.deliver_lane(stream.pk, key)
        _let_leases_run_out(stream)
    del destination.during["user:c"]
    delivering.deliver_lane(stream.pk, "user:c")

    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"delivered"}
    assert (_delivery(stream, "user:c").attempts, _delivery(stream, "user:d").attempts) == (4, 2)
    assert list(
        Attempt.objects.filter(delivery__key="user:d", tenant_id=tenant.pk).order_by("number").values_list("outcome", flat=True)
    ) == [
        "lost",
        "delivered",
    ]
    _assert_books_agree(stream)


def test_an_outcome_settled_during_the_next_run_is_discarded_if_its_lease_has_ended(
    tenant: Tenant, stream: EventStream, destination: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    _queue(tenant, *KEYS)

    def lose() -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE provisioning_lane SET token = gen_random_uuid() WHERE stream_id = %s AND key = 'user:c'", [stream.pk])

    destination.during["user:c"] = lose
    with caplog.at_level(logging.WARNING):
        delivering.deliver_lane(stream.pk, "user:a")

    assert _delivery(stream, "user:c").state == "todo"
    assert Delivery.objects.filter(stream_id=stream.pk, state="delivered").count() == len(KEYS) - 1
    assert "came after the lease of its claim and is discarded" in caplog.text


def test_deliveries_are_claimed_one_by_one_without_a_second_connection(
    tenant: Tenant, stream: EventStream, destination: Watched, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("too many connections")

    monkeypatch.setattr(sent_scripts.ScriptSender, "prepare", refuse)
    _queue(tenant, *KEYS)

    with caplog.at_level(logging.WARNING):
        delivering.deliver_lane(stream.pk, "user:a")

    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"delivered"}
    assert caplog.text.count("no delivery is claimed in advance") == 1


def test_a_delivery_whose_claim_is_given_back_keeps_its_position_and_uses_no_attempt(
    tenant: Tenant, stream: EventStream, destination: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    _queue(tenant, *KEYS)
    seen: list[Delivery] = []

    def be_slow() -> None:
        eventually(lambda: _is_leased(stream, "user:d"))
        monkeypatch.setattr(claim_ahead, "FAST_MILLISECONDS", 0.0)

    given_back = lanes.give_back

    def look(claim: Claim, **is_settled: bool) -> None:
        given_back(claim, **is_settled)
        seen.append(_delivery(stream, claim.key))

    monkeypatch.setattr(lanes, "give_back", look)
    destination.during["user:c"] = be_slow
    delivering.deliver_lane(stream.pk, "user:a")

    assert [(row.key, row.attempts, row.first_attempt_at, row.last_attempt_at) for row in seen] == [("user:d", 0, None, None)]
    assert [key for key, _, _ in destination.taken] == KEYS


def test_no_delivery_is_claimed_in_advance_if_deliveries_have_only_one_attempt(
    tenant: Tenant, stream: EventStream, destination: Watched, settings: Any
) -> None:
    settings.DELIVERY_RETRY_DELAYS = []
    _queue(tenant, *KEYS)

    def die() -> None:
        assert not _is_leased(stream, "user:d")
        raise SystemExit

    destination.during["user:c"] = die
    with pytest.raises(SystemExit):
        delivering.deliver_lane(stream.pk, "user:a")
    del destination.during["user:c"]
    _let_leases_run_out(stream)
    delivering.deliver_lane(stream.pk, "user:a")

    assert list(Delivery.objects.filter(stream_id=stream.pk, state="dead").values_list("key", flat=True)) == ["user:c"]


def test_a_second_connection_that_was_interrupted_is_not_used_again(
    tenant: Tenant, stream: EventStream, destination: Watched, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A time limit can interrupt any statement.

    Here the time limit interrupts a statement on the second connection, so the response is still pending on this connection afterwards.
    """

    def interrupt(cursor: Any, _statements: object) -> None:
        cursor.connection.pgconn.send_query(b"SELECT 1")
        raise SoftTimeLimitExceeded

    _queue(tenant, *KEYS)
    with monkeypatch.context() as patch:
        patch.setattr(sent_scripts, "prepare", interrupt)
        with pytest.raises(SoftTimeLimitExceeded):
            delivering.deliver_lane(stream.pk, "user:a")
    _let_leases_run_out(stream)
    with caplog.at_level(logging.WARNING):
        delivering.deliver_lane(stream.pk, "user:a")

    assert "no delivery is claimed in advance" not in caplog.text
    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"delivered"}


def test_an_outcome_that_cannot_be_written_does_not_affect_the_next_outcome(
    tenant: Tenant, stream: EventStream, destination: Watched
) -> None:
    _queue(tenant, *KEYS)

    def write_its_attempt() -> None:
        delivery, now = _delivery(stream, "user:c"), timezone.now()
        Attempt(delivery=delivery, tenant_id=tenant.pk, number=1, trigger="scheduled", started_at=now, outcome="lost").save()

    destination.during["user:c"] = write_its_attempt
    with pytest.raises(IntegrityError):
        delivering.deliver_lane(stream.pk, "user:a")
    destination.during.clear()

    assert destination.taken[-1][0] == "user:d"
    assert (_delivery(stream, "user:c").state, _delivery(stream, "user:d").state) == ("todo", "delivered")
    _let_leases_run_out(stream)
    delivering.deliver_lane(stream.pk, "user:c")
    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"delivered"}
    assert [key for key, _, _ in destination.taken].count("user:d") == 1
    _assert_books_agree(stream)


def test_a_second_connection_that_breaks_ends_the_turn_and_loses_no_delivery(
    tenant: Tenant, stream: EventStream, destination: Watched
) -> None:
    _queue(tenant, *KEYS)

    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (usual,) = cursor.fetchone()
            others = "application_name = '' AND query LIKE '%%provisioning_take_next%%' AND datname = current_database()"
            cursor.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> %s AND {others}", [usual])  # noqa: S608

    destination.during["user:c"] = cut
    with pytest.raises(OperationalError):
        delivering.deliver_lane(stream.pk, "user:a")
    destination.during.clear()
    _let_leases_run_out(stream)
    delivering.deliver_lane(stream.pk, "user:c")

    assert set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"delivered"}
    _assert_books_agree(stream)
