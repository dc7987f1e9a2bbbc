"""The limit of requests per second of an action. All processes share the limit, and a delivery that waits uses no attempt."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from events.log.numbering import number_tenant
from events.models import EventStream
from identity.models import Connection, Tenant
from provisioning.actions.pace import NoTurn, Pace
from provisioning.engine import breaker, delivering, dispatch, lanes, streams
from provisioning.engine.retrying import RetryLater
from provisioning.models import AccountLink, Action, Attempt, DeadLetter, Delivery, Lane
from provisioning.models import Pace as PaceRow
from provisioning.runs.failures import TransientFailure
from provisioning.runs.outcomes import NotDue
from tests.factories.identity import make_user
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import HANG_UP, MisbehavingServer, Received, Wire, by_verb, listing, misbehaving_server, reply, scim_error, user
from tests.provisioning.synchronization.conftest import stream_to


@pytest.fixture(autouse=True)
def _retries(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = [600, 600]


def enabled_stream(tenant: Tenant, server: MisbehavingServer, *, rate: float | None = 1, **secrets: str) -> EventStream:
    stream = stream_to(tenant, server.base_url, options={"requests_per_second": rate}, **secrets)
    return streams.enable_stream(tenant_id=tenant.pk, stream_id=stream.pk)


def deliver_all(tenant: Tenant, stream: EventStream) -> None:
    """Number and dispatch the new events, and try to deliver each lane once."""
    number_tenant(tenant.pk)
    dispatch.dispatch_tenant(tenant.pk)
    for lane in Lane.objects.filter(stream_id=stream.pk).order_by("pk"):
        try:
            delivering.deliver_lane(stream.pk, lane.key)
        except RetryLater:
            continue


def pass_time(action: Action) -> None:
    """Refill the bucket of the action and end the pauses of all lanes, as if time had passed."""
    PaceRow.objects.filter(pk=action.pk).update(full_at=timezone.now() - timedelta(seconds=5))
    Lane.objects.update(not_before=timezone.now(), nudged_until=None)


def take_every_token(action: Action) -> None:
    """Use up all tokens of the action for the next five minutes."""
    full_at = timezone.now() + timedelta(seconds=300)
    PaceRow.objects.update_or_create(action=action, defaults={"full_at": full_at, "promised_until": full_at})


def created(request: Received) -> Wire:
    return reply(201, user("id-1", externalId=request.json["externalId"], userName=request.json["userName"]))


def new_action(tenant: Tenant) -> Action:
    return ActionFactory.create(tenant_id=tenant.pk, name="paced", template="scim-user-provisioning")


def pace(action: Action, rate: float | None = 1, **more: Any) -> Pace:
    return Pace(action.pk, rate, may_be_put_off=True, **more)


def test_the_doubt_about_a_create_is_kept_if_the_limit_prevents_the_lookup(tenant: Tenant, database_connection: Connection) -> None:
    def lost(request: Received) -> Wire:
        take_every_token(Action.objects.of(tenant.pk).get())
        connection.close()
        return HANG_UP

    with misbehaving_server(by_verb(POST=lost)) as server:
        stream = enabled_stream(tenant, server, SCIM_MAX_RETRIES="1")
        make_user(connection=database_connection, email="anna@example.test")
        deliver_all(tenant, stream)
        assert server.lines == ["POST /Users"]
    assert "is reached" in Attempt.objects.get(delivery__stream_id=stream.pk).error_message
    assert AccountLink.objects.get(tenant_id=tenant.pk).doubt is not None


def test_a_delivery_over_the_limit_is_postponed_and_uses_no_attempt(tenant: Tenant, database_connection: Connection) -> None:
    with misbehaving_server(by_verb(POST=created)) as server:
        stream = enabled_stream(tenant, server, rate=100)
        action = Action.objects.of(tenant.pk).get()
        take_every_token(action)
        for name in ("anna", "bert", "cleo"):
            make_user(connection=database_connection, email=f"{name}@example.test")
        deliver_all(tenant, stream)

        assert not server.received
        waiting = Delivery.objects.filter(stream_id=stream.pk, state="todo")
        assert [(row.attempts, row.series_attempts) for row in waiting] == [(0, 0)] * 3
        assert not Attempt.objects.filter(delivery__stream_id=stream.pk).exists()
        assert not DeadLetter.objects.filter(stream_id=stream.pk).exists()
        assert all(lane.not_before > timezone.now() for lane in Lane.objects.filter(stream_id=stream.pk))

        pass_time(action)
        deliver_all(tenant, stream)
        assert [request.verb for request in server.received] == ["POST", "POST", "POST"]
        assert not Delivery.objects.filter(stream_id=stream.pk, state="todo").exists()


def test_a_run_that_may_have_written_is_not_postponed(tenant: Tenant, database_connection: Connection) -> None:
    def hang_up_for_good(_request: Received) -> Wire:
        # Before the response is lost, other runs use up the tokens, so the run cannot look the account up.
        try:
            take_every_token(Action.objects.of(tenant.pk).get())
        finally:
            connection.close()
        return HANG_UP

    with misbehaving_server(by_verb(POST=hang_up_for_good, GET=listing())) as server:
        stream = enabled_stream(tenant, server, rate=100, SCIM_MAX_RETRIES="3")
        make_user(connection=database_connection, email="anna@example.test")
        deliver_all(tenant, stream)

        assert [request.verb for request in server.received] == ["POST"]
        delivery = Delivery.objects.get(stream_id=stream.pk)
        assert (delivery.state, delivery.attempts) == ("todo", 1)
        failed = Attempt.objects.get(delivery=delivery)
        assert (failed.error_class, "requests per second" in failed.error_message) == ("transient", True)


def test_a_retry_after_header_pauses_the_requests_for_every_user(tenant: Tenant, database_connection: Connection) -> None:
    with misbehaving_server(by_verb(POST=scim_error(429, **{"Retry-After": "120"}))) as server:
        stream = enabled_stream(tenant, server, rate=100)
        for name in ("anna", "bert"):
            make_user(connection=database_connection, email=f"{name}@example.test")
        deliver_all(tenant, stream)

        assert len(server.received) == 1
        delays = [(lane.not_before - timezone.now()).total_seconds() for lane in Lane.objects.filter(stream_id=stream.pk)]
        assert min(delays) > 100
        assert Attempt.objects.filter(delivery__stream_id=stream.pk).count() == 1


def test_an_action_without_a_limit_stores_no_pace(tenant: Tenant, database_connection: Connection) -> None:
    with misbehaving_server(by_verb(POST=created)) as server:
        stream = enabled_stream(tenant, server, rate=None)
        for name in ("anna", "bert"):
            make_user(connection=database_connection, email=f"{name}@example.test")
        deliver_all(tenant, stream)

        assert len(server.received) == 2
        assert not PaceRow.objects.filter(action__tenant_id=tenant.pk).exists()


def test_each_token_is_used_by_only_one_thread(tenant: Tenant) -> None:
    action, rate, each = new_action(tenant), 20, 15
    began = time.monotonic()

    def send() -> None:
        own = pace(action, rate, first_patience=60.0)
        try:
            for _ in range(each):
                own.take("GET", 60.0)
        finally:
            connection.close()

    senders = [threading.Thread(target=send) for _ in range(3)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()

    # The tokens of one second are available immediately. Further tokens become available at the configured rate.
    assert time.monotonic() - began >= (3 * each - rate) / rate - 0.05


def test_postponed_deliveries_get_times_one_after_another_within_a_limited_time(tenant: Tenant) -> None:
    action = new_action(tenant)
    take_every_token(action)
    turns = []
    for _ in range(5):
        with pytest.raises(NoTurn):
            pace(action).take("GET", 1.0)
        turns.append(PaceRow.objects.get(pk=action.pk).promised_until)

    # A delivery sends two requests, a lookup and a write. With a limit of one request per second, each delivery gets two seconds.
    assert {later - earlier for earlier, later in pairwise(turns)} == {timedelta(seconds=2)}
    PaceRow.objects.filter(pk=action.pk).update(promised_until=timezone.now() + timedelta(days=3))
    with pytest.raises(NoTurn) as refused:
        pace(action).take("GET", 1.0)
    assert 300 < refused.value.seconds < 1000


def test_a_trial_waits_a_limited_time_for_a_token_and_then_fails(tenant: Tenant) -> None:
    action = new_action(tenant)
    of_person = Pace(action.pk, 1.0, may_be_put_off=False)
    of_person.take("GET", 10.0)
    of_person.rest(30.0)

    began = time.monotonic()
    with pytest.raises(TransientFailure, match="1 requests per second") as refused:
        of_person.take("GET", 10.0)
    assert time.monotonic() - began < 5
    assert 20 < (refused.value.retry_after or 0) < 40


def test_a_probe_without_a_token_keeps_the_stream_held(tenant: Tenant, database_connection: Connection) -> None:
    with misbehaving_server(by_verb(POST=created)) as server:
        stream = enabled_stream(tenant, server)
        make_user(connection=database_connection, email="anna@example.test")
        number_tenant(tenant.pk)
        dispatch.dispatch_tenant(tenant.pk)
        take_every_token(Action.objects.of(tenant.pk).get())
        breaker.hold_stream(stream_id=stream.pk, tenant_id=tenant.pk, reason="down")
        delivering.probe_stream(stream.pk, tenant.pk)

        stream.refresh_from_db()
        assert stream.held_since is not None
        assert not server.received
        assert not isinstance(lanes.claim_named(stream.pk, "user:none"), NotDue)
