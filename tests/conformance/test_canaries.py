"""Canaries: test events that a client requests. Only this client receives them, and they do not change its position in the log."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import orjson
import pytest
from pytest_django.plugin import DjangoDbBlocker

from authapi.services.clients import create_client
from events.models import Event, LogEntry, Outbox
from identity.models import Tenant
from tests.conformance.reader import Block, Subscriber
from tests.conformance.target import Target, make_target
from tests.conformance.web_process import WebProcess, web_process


def _send(target: Target, body: dict[str, Any], *, token: str | None = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(*target.address, timeout=10)
    try:
        headers = {"Host": target.host, "Authorization": f"Bearer {token or target.token()}", "Content-Type": "application/json"}
        connection.request("POST", "/api/v2/events/canary", body=orjson.dumps(body), headers=headers)
        answer = connection.getresponse()
        return answer.status, orjson.loads(answer.read())
    finally:
        connection.close()


def _canary(stream: Subscriber, event_id: str) -> Block:
    while True:
        block = stream.block()
        if block.data and block.event not in {"offset-only", "error"} and block.message["event"]["id"] == event_id:
            return block


@pytest.mark.transport
def test_a_canary_arrives_as_a_test_event_with_its_latency(target: Target) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
        status, sent = _send(target, {})
        assert status == 202
        block = _canary(stream, sent["id"])
        event = block.message["event"]
        assert (block.event, event["type"], event["x0purpose"]) == ("user.updated", "user.updated", "test")
        assert (event["time"], event["x0tenant"], event["x0stream"]) == (
            sent["requested_at"],
            target.tenant.pk,
            target.head().stream_id,
        )
        told = event["data"]["canary"]
        times = [datetime.fromisoformat(told[name]) for name in ("requested_at", "heard_at", "written_at")]
        assert times == sorted(times)
        assert 0 < told["elapsed_ms"] < 5000
        # The client's position stays the same, whether the client stores the SSE `id` or the `offset` of the message.
        assert block.id is None
        assert block.message["offset"] == start


def test_a_canary_is_not_in_the_log_and_is_not_replayed(target: Target) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
        before = target.write("user.created")
        stream.events(1)
        _, sent = _send(target, {"type": "user.deleted"})
        offset = _canary(stream, sent["id"]).message["offset"]
        after = target.write("user.updated")
        assert [block.message["event"]["id"] for block in stream.events(1)] == after
    with target.subscribe({"from": start}) as stream:
        stream.opened()
        assert [block.message["event"]["id"] for block in stream.events(2)] == before + after
    with target.subscribe({"from": offset}) as stream:
        stream.opened()
        assert [block.message["event"]["id"] for block in stream.events(1)] == after
    assert not Event.objects.filter(event_id=sent["id"]).exists()
    assert LogEntry.objects.filter(tenant_id=target.tenant.pk).count() == 2
    assert not Outbox.objects.filter(tenant_id=target.tenant.pk).exists()


def test_a_canary_reaches_every_stream_of_its_client_and_no_other_stream(target: Target) -> None:
    stranger, _ = create_client(tenant_id=target.tenant.pk, name="stranger", is_global=True)
    other = Target(target.tenant, target.address, stranger)
    with target.subscribe() as one, target.subscribe() as two, other.subscribe() as foreign:
        for stream in (one, two, foreign):
            stream.opened()
        _, sent = _send(target, {})
        for stream in (one, two):
            _canary(stream, sent["id"])
        # The other client receives the next event and not the canary.
        expected = target.write("user.created")
        assert [block.message["event"]["id"] for block in foreign.events(1)] == expected


def test_the_type_filter_of_a_stream_applies_to_canaries(target: Target) -> None:
    with target.subscribe({"event_type": ["group.created", "group.role.deleted"]}) as stream:
        stream.opened()
        _, any_type = _send(target, {})
        assert _canary(stream, any_type["id"]).event in {"group.created", "group.role.deleted"}
        _, left_out = _send(target, {"type": "user.created"})
        _, wanted = _send(target, {"type": "group.role.deleted"})
        blocks = stream.events(1)
        assert [block.message["event"]["id"] for block in blocks] == [wanted["id"]], left_out


def test_a_canary_is_refused_without_the_scope_and_for_an_invalid_request(target: Target) -> None:
    assert _send(target, {"type": "user.vanished"})[0] == 400
    assert _send(target, {"purpose": "fun"})[0] == 400
    status, problem = _send(target, {}, token=target.token(scopes=("read:users",)))
    assert (status, problem["errorCode"]) == (403, "insufficient_scope")


@pytest.fixture(scope="module")
def pair(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[list[WebProcess]]:
    """One process that serves only streams, and one process that serves everything else."""
    with (
        django_db_blocker.unblock(),
        web_process("uvicorn", WEB_ROLE="stream") as streams,
        web_process("uvicorn", WEB_ROLE="app") as app,
    ):
        yield [streams, app]


def test_a_canary_requested_in_one_process_arrives_at_streams_of_another_process(pair: list[WebProcess], tenant: Tenant) -> None:
    target = make_target(tenant, pair[0].address)
    with target.subscribe() as stream:
        stream.opened()
        _, sent = _send(Target(tenant, pair[1].address, target.client), {})
        assert _canary(stream, sent["id"]).message["event"]["data"]["canary"]["elapsed_ms"] > 0
