"""The life of streams: heartbeats, planned ends, revoked access, slots, and restarts."""

from __future__ import annotations

import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import orjson
import pytest
from django.conf import settings
from django.db import transaction
from pytest_django.plugin import DjangoDbBlocker

from authapi.services.api_resources import ensure_management_api
from authapi.services.client_grants import change_client_grant, create_client_grant
from authapi.services.clients import delete_client, revoke_client
from authapi.tokens.revocation import revoke_access_token
from events.log.cursor import Cursor, CursorSealer
from events.models import Event, Head, LogEntry
from identity.models import Tenant
from tests.conformance.conftest import HEARTBEAT_SECONDS
from tests.conformance.reader import Block, StreamEnded, Subscriber
from tests.conformance.target import Target, make_target
from tests.conformance.web_process import SERVERS, WebProcess, web_process


def _until_end(stream: Subscriber, *, within: float) -> list[Block]:
    until = time.monotonic() + within
    found: list[Block] = []
    try:
        while True:
            found.append(stream.block(within=max(until - time.monotonic(), 0.001)))
    except StreamEnded:
        return found


def _eventually(open_stream: Callable[[], Subscriber], *, status: int, within: float) -> float:
    """Request streams until a response has this status. Return the number of seconds until then."""
    started = time.monotonic()
    while True:
        with open_stream() as stream:
            if stream.status == status:
                return time.monotonic() - started
        assert time.monotonic() - started < within, f"still {stream.status}"


@pytest.mark.transport
def test_an_idle_stream_gets_a_comment_and_the_cursor(target: Target) -> None:
    with target.subscribe() as stream:
        first = stream.opened()
        started = time.monotonic()
        assert stream.block().comments[0] == "heartbeat"
        assert time.monotonic() - started >= HEARTBEAT_SECONDS * 0.8
        beat = stream.block()
        assert (beat.event, beat.id) == ("offset-only", first.id)


def test_a_heartbeat_reports_the_head_and_no_lag(target: Target, tenant: Tenant) -> None:
    with target.subscribe() as stream:
        stream.opened()
        target.write("user.created", "user.updated")
        stream.events(2)
        assert stream.block().comments == ["heartbeat", "head=2 lag_events=0 lag_ms=0"]


def test_a_stream_without_matching_events_gets_heartbeats_in_a_busy_log(target: Target) -> None:
    with target.subscribe({"event_type": "user.deleted"}) as stream:
        last = stream.opened().id
        started = time.monotonic()
        for _ in range(3):
            # The log gets many events, but this stream is idle, because only delivered events count.
            while b"\n\nevent: offset-only" not in stream.peek():
                target.write("user.updated")
            assert stream.block().comments[0] == "heartbeat"
            beat = stream.block()
            assert beat.id != last, "the cursor does not advance past filtered events"
            last = beat.id
        assert time.monotonic() - started < 5 * HEARTBEAT_SECONDS


@pytest.mark.transport
def test_an_event_without_a_hint_is_found_by_polling(target: Target) -> None:
    with target.subscribe() as stream:
        stream.opened()
        [expected] = target.write("user.created", announce=False)
        assert stream.events(1, within=3.0)[0].message["event"]["id"] == expected


@pytest.mark.transport
def test_a_disconnect_frees_the_slot_within_a_second(target: Target) -> None:
    Tenant.objects.filter(pk=target.tenant.pk).update(max_event_connections=1)
    token = target.token()
    with target.subscribe(token=token) as stream:
        stream.opened()
        with target.subscribe(token=token) as second:
            assert second.status == 403
            assert second.document()["errorCode"] == "connection_limit"
    assert _eventually(lambda: target.subscribe(token=token), status=200, within=5.0) < 1.0


def test_a_tenant_may_open_its_maximum_number_of_streams_and_not_one_more(target: Target) -> None:
    token = target.token()
    streams = [target.subscribe(token=token) for _ in range(8)]
    try:
        assert [stream.status for stream in streams] == [200] * 8
        with target.subscribe(token=token) as ninth:
            assert ninth.status == 403
    finally:
        for stream in streams:
            stream.close()


@pytest.mark.transport
def test_a_stream_ends_when_its_token_expires(target: Target) -> None:
    with target.subscribe(token=target.token(seconds=2)) as stream:
        first = stream.opened()
        *_, bookmark, error = _until_end(stream, within=6.0)
        assert stream.ended_cleanly
        assert bookmark.event == "offset-only"
        assert error.message["error"]["code"] == "connection_timeout"
        assert error.message["error"]["offset"] == bookmark.id == first.id


@pytest.mark.parametrize("loss", ["revoked", "deleted", "scope removed", "token revoked", "suspended", "stopped"])
def test_a_stream_ends_within_two_seconds_after_its_access_is_revoked(target: Target, loss: str) -> None:
    resource = ensure_management_api(target.tenant.pk)
    grant = create_client_grant(
        tenant_id=target.tenant.pk, client_id=target.client.client_id, api_resource=resource, scopes=["read:events"]
    )
    token = target.token()
    with target.subscribe(token=token) as stream:
        stream.opened()
        names = {"tenant_id": target.tenant.pk, "client_id": target.client.client_id}
        match loss:
            case "revoked":
                revoke_client(**names)
            case "deleted":
                delete_client(**names)
            case "scope removed":
                change_client_grant(tenant_id=target.tenant.pk, grant_id=grant.pk, changes={"scopes": ["read:users"]})
            case "token revoked":
                claims = orjson.loads(urlsafe_b64decode(token.split(".")[1] + "=="))
                revoke_access_token(tenant_id=target.tenant.pk, jti=claims["jti"], expires_at=datetime.fromtimestamp(claims["exp"], UTC))
            case _:
                Tenant.objects.filter(pk=target.tenant.pk).update(status=loss)
        started = time.monotonic()
        error = _until_end(stream, within=5.0)[-1]
        assert time.monotonic() - started < 2.5
        assert error.message["error"]["code"] == "connection_timeout"
        assert stream.ended_cleanly


@pytest.fixture(scope="module", params=SERVERS)
def short_lived(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    """A server with a stream lifetime of two seconds."""
    with (
        django_db_blocker.unblock(),
        web_process(request.param, EVENTS_LIFETIME_SECONDS="2", EVENTS_MAX_CONNECTIONS_PER_PROCESS="3") as web,
    ):
        yield web


def test_a_planned_end_sends_the_cursor_and_closes_the_connection_cleanly(short_lived: WebProcess, tenant: Tenant) -> None:
    target = make_target(tenant, short_lived.address)
    started = time.monotonic()
    with target.subscribe() as stream:
        stream.opened()
        target.write("user.created")
        blocks = _until_end(stream, within=10.0)
        assert time.monotonic() - started >= 1.5
        assert [block.event for block in blocks[-3:]] == ["user.created", "offset-only", "error"]
        assert blocks[-1].id is None
        assert blocks[-1].message == {
            "type": "error",
            "error": {"code": "connection_timeout", "message": blocks[-1].message["error"]["message"], "offset": blocks[-2].id},
        }
        assert blocks[-2].id == blocks[-3].id
        assert stream.ended_cleanly


def test_a_full_process_answers_503_with_retry_after(short_lived: WebProcess, tenant: Tenant) -> None:
    target = make_target(tenant, short_lived.address)
    token = target.token()
    streams = [target.subscribe(token=token) for _ in range(4)]
    try:
        assert sorted(stream.status for stream in streams) == [200, 200, 200, 503]
        assert int(streams[3].headers["retry-after"]) >= 1
    finally:
        for stream in streams:
            stream.close()


def test_a_new_epoch_of_the_log_ends_every_open_stream(target: Target) -> None:
    with target.subscribe() as stream:
        stream.opened()
        Head.objects.filter(pk=target.tenant.pk).update(epoch=2)
        error = _until_end(stream, within=10.0)[-1]
        assert error.message["error"]["code"] == "cursor_expired"
        assert stream.ended_cleanly
    with target.subscribe() as stream:
        stream.opened()
        [expected] = target.write("user.created")
        assert stream.events(1)[0].message["event"]["id"] == expected


@pytest.mark.transport
def test_pruning_ends_the_stream_of_a_client_that_is_behind(target: Target) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
    target.write(*["user.updated"] * 300, padding=20_000)
    with target.subscribe({"from": start}, receive_buffer=4096) as slow:
        # The client has stopped reading after the first bytes, 6 MB behind the head. Prune all events of the log except the last one.
        with transaction.atomic():
            Head.objects.filter(pk=target.tenant.pk).update(floor=299)
            LogEntry.objects.filter(tenant_id=target.tenant.pk, position__lt=300).delete()
        blocks = _until_end(slow, within=20.0)
        events = [block for block in blocks if block.event == "user.updated"]
        assert len(events) < 299
        assert blocks[-1].message["error"] == {
            "code": "cursor_expired",
            "message": blocks[-1].message["error"]["message"],
            "offset": events[-1].id,
        }


def test_an_unreadable_event_is_never_skipped_and_the_offset_after_the_event_is_valid(target: Target) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
    ids = target.write(*["user.updated"] * 5)
    poisoned = LogEntry.objects.get(tenant_id=target.tenant.pk, event__event_id=ids[2])
    Event.objects.filter(pk=poisoned.pk).delete()
    with target.subscribe({"from": start}) as stream:
        *_, last, ended = (block for block in _until_end(stream, within=20.0) if block.event in {"user.updated", "error"})
    assert last.message["event"]["id"] == ids[1]
    assert (ended.message["error"]["code"], ended.message["error"]["offset"]) == ("processing_error", last.id)
    # When the client reconnects, the server tells it to wait. Only an operator may skip the missing event.
    with target.subscribe({"from": last.id}) as stream:
        assert (stream.status, int(stream.headers["retry-after"]) >= 1) == (503, True)
    beyond = CursorSealer(settings.CURSOR_KEYS, tenant_id=target.tenant.pk).seal(Cursor(target.head().epoch, poisoned.position))
    with target.subscribe({"from": beyond}) as stream:
        assert [block.message["event"]["id"] for block in stream.events(2)] == ids[3:]


def test_too_many_connection_attempts_get_a_retry_time(tenant: Tenant) -> None:
    with web_process("uvicorn", RATE_LIMIT_BURST="3", RATE_LIMIT_PER_SECOND="1") as web:
        target = make_target(tenant, web.address)
        token = target.token()
        answers = []
        for _ in range(8):
            with target.subscribe("colour=red", token=token) as stream:
                answers.append((stream.status, stream.headers))
        refused = [headers for status, headers in answers if status == 429]
        assert {status for status, _ in answers} == {400, 429}
        assert refused[0]["x-ratelimit-remaining"] == "0"
        assert int(refused[0]["retry-after"]) >= 1


def test_a_restarting_server_refuses_new_streams_with_a_retry_time(tenant: Tenant) -> None:
    with web_process("uvicorn", EVENTS_DRAIN_SECONDS="4") as web:
        target = make_target(tenant, web.address)
        token = target.token()
        held = [target.subscribe(token=token) for _ in range(6)]
        for stream in held:
            stream.opened()
        web.terminate()
        assert _eventually(lambda: target.subscribe(token=token), status=503, within=4.0) < 3.0
        for stream in held:
            assert _until_end(stream, within=8.0)[-1].event == "error"


@pytest.mark.parametrize("name", SERVERS)
def test_a_restart_closes_every_stream_with_its_cursor(name: str, tenant: Tenant) -> None:
    with web_process(name, EVENTS_DRAIN_SECONDS="2") as web:
        target = make_target(tenant, web.address)
        token = target.token()
        streams = [target.subscribe(token=token) for _ in range(4)]
        offsets = [stream.opened().id for stream in streams]
        web.terminate()
        for stream, offset in zip(streams, offsets, strict=True):
            *_, bookmark, error = _until_end(stream, within=8.0)
            assert (bookmark.event, bookmark.id) == ("offset-only", offset)
            assert error.message["error"]["code"] == "connection_timeout"
            assert stream.ended_cleanly
        web.wait(within=15.0)
