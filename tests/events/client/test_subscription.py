"""A subscription yields every event exactly once, even if its server cuts connections."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from events.client.backoff import Backoff
from events.client.credentials import ClientCredentials, Credentials, FixedToken, TokenFile
from events.client.exchange import Deadlines
from events.client.failures import Ended, NoStream, NoToken, Refused, Unreachable, Untrusted
from events.client.parser import Message
from events.client.server import read_server
from events.client.subscription import Closed, Endurance, Opened, Subscription, Wanted
from tests.events.client.misbehaving import Misbehaving, Request, Wire, misbehaving

OPENING = b":connected\n\nretry: 0\n\nevent: offset-only\nid: o0\ndata: {}\n\n"
DEADLINES = Deadlines(connect=5.0, read=5.0)


def frame(number: int) -> bytes:
    return b'event: user.created\nid: o%d\ndata: {"number":%d}\n\n' % (number, number)


def without_pauses() -> Backoff:
    return Backoff(lambda: 0.0, longest_seconds=0.0, retry_seconds=0.0)


def subscription(server: Misbehaving, credentials: Credentials | None = None, **options: Any) -> Subscription:
    options = {"wanted": Wanted(), "backoff": without_pauses(), "deadlines": DEADLINES, **options}
    return Subscription(read_server(server.url), credentials or FixedToken("token-of-the-test"), **options)


def events(reader: Subscription, count: int) -> list[bytes]:
    found = (item.data for item in reader.happenings() if isinstance(item, Message) and item.event not in {"offset-only", "error"})
    return list(islice(found, count))


def log_after(last: str | None, frames: list[bytes]) -> bytes:
    start = int(last.removeprefix("o")) if last else 0
    return OPENING.replace(b"o0", b"o%d" % start) + b"".join(frames[start:])


def test_a_stream_that_is_cut_at_every_byte_is_read_exactly_once() -> None:
    frames = [frame(number) for number in range(1, 6)]
    session = log_after(None, frames)
    cuts: list[int] = []

    def script(request: Request, wire: Wire) -> None:
        body = log_after(request.headers.get("last-event-id"), frames)
        wire.stream(body[: cuts.pop()] if cuts else body, end=False)

    with misbehaving(script) as server:
        for cut in range(len(session) + 1):
            cuts[:] = [cut]
            assert events(subscription(server), 5) == [b'{"number":%d}' % number for number in range(1, 6)], cut


def test_the_offset_advances_only_when_the_caller_has_finished_its_work_on_the_event() -> None:
    with misbehaving(lambda _, wire: wire.stream(OPENING + frame(1) + frame(2))) as server:
        reader = subscription(server)
        happenings = reader.happenings()
        for happening in happenings:
            if isinstance(happening, Message) and happening.id == "o1":
                break
        # The caller has received the event, but has not requested the next item. So its work on the event may not be finished.
        assert reader.offset == "o0"
        next(happenings)
        assert reader.offset == "o1"
        happenings.close()  # type: ignore[attr-defined]  # a generator
        assert reader.offset == "o1"


def test_the_next_connection_sends_the_last_offset_instead_of_the_start_time() -> None:
    with misbehaving(
        lambda request, wire: wire.stream(log_after(request.headers.get("last-event-id"), [frame(1), frame(2)]), end=False)
    ) as server:
        reader = subscription(server, wanted=Wanted(types=("user.created", "user.deleted"), timestamp="2026-05-01T00:00:00Z"))
        numbers = [item.number for item in islice(reader.happenings(), 40) if isinstance(item, Opened)]
    first, second = server.streams()[:2]
    assert numbers[:2] == [1, 2]
    assert first.query == {"event_type": ["user.created", "user.deleted"], "from_timestamp": ["2026-05-01T00:00:00Z"]}
    assert "last-event-id" not in first.headers
    assert (second.query, second.headers["last-event-id"]) == ({"event_type": ["user.created", "user.deleted"]}, "o2")


@pytest.mark.parametrize(
    ("status", "document"),
    [(429, {"errorCode": "too_many_requests"}), (503, {"errorCode": "unavailable"}), (500, {}), (403, {"errorCode": "connection_limit"})],
)
def test_a_temporary_refusal_is_retried(status: int, document: dict[str, str]) -> None:
    body = json.dumps({"statusCode": status, "message": "Not now.", **document}).encode()

    def script(_: Request, wire: Wire) -> None:
        if len(server.requests) <= 2:
            wire.answer(status, body, "Retry-After: 0")
        else:
            wire.stream(OPENING + frame(1))

    with misbehaving(script) as server:
        assert events(subscription(server), 1) == [b'{"number":1}']
    assert len(server.requests) == 3


def test_the_client_waits_for_the_time_in_retry_after() -> None:
    def script(_: Request, wire: Wire) -> None:
        wire.answer(429, b"{}", "Retry-After: 17") if len(server.requests) == 1 else wire.stream(OPENING)

    with misbehaving(script) as server:
        reader = subscription(server, backoff=Backoff(lambda: 0.0))
        closed = next(item for item in reader.happenings() if isinstance(item, Closed))
    assert closed.pause_seconds == 17.0
    assert isinstance(closed.error, Refused)


@pytest.mark.parametrize(
    ("status", "code"), [(400, "invalid_cursor"), (403, "insufficient_scope"), (404, ""), (410, "cursor_expired"), (301, "")]
)
def test_a_permanent_refusal_ends_the_subscription(status: int, code: str) -> None:
    body = json.dumps({"statusCode": status, "message": "No.", "errorCode": code}).encode()
    with misbehaving(lambda _, wire: wire.answer(status, body, "Location: http://elsewhere.example/")) as server:
        with pytest.raises(Refused) as refused:
            events(subscription(server), 1)
    assert (refused.value.status, len(server.requests)) == (status, 1)


def test_an_expired_token_is_replaced_and_the_stream_resumes() -> None:
    issued: list[str] = []

    def script(request: Request, wire: Wire) -> None:
        if request.path == "/oauth/token":
            issued.append(f"issued-token-{len(issued) + 1}")
            wire.answer(200, json.dumps({"access_token": issued[-1], "expires_in": 3600}).encode())
        elif request.headers["authorization"] != f"Bearer {issued[-1]}" or len(server.streams()) == 2:
            wire.answer(401, b'{"statusCode":401,"message":"Token expired."}', 'WWW-Authenticate: Bearer error="invalid_token"')
        else:
            wire.stream(
                log_after(request.headers.get("last-event-id"), [frame(1), frame(2)])[: 130 if len(server.streams()) == 1 else None]
            )

    with misbehaving(script) as server:
        address = read_server(server.url)
        reader = subscription(server, ClientCredentials(address, "client", "a secret / with & signs", deadlines=DEADLINES))
        assert events(reader, 2) == [b'{"number":1}', b'{"number":2}']
    assert issued == ["issued-token-1", "issued-token-2"]
    fields = Request("POST", f"/?{server.requests[0].body.decode()}", {}, b"").query
    assert fields == {
        "grant_type": ["client_credentials"],
        "client_id": ["client"],
        "client_secret": ["a secret / with & signs"],
        "audience": [f"{server.url}/api/v2/"],
    }


def test_a_refused_new_token_ends_the_subscription() -> None:
    def script(request: Request, wire: Wire) -> None:
        is_token = request.path == "/oauth/token"
        wire.answer(200 if is_token else 401, b'{"access_token":"new"}' if is_token else b"{}")

    with misbehaving(script) as server:
        with pytest.raises(Refused, match="401"):
            events(subscription(server, ClientCredentials(read_server(server.url), "c", "s", deadlines=DEADLINES)), 1)
    assert len(server.streams()) == 2


def test_wrong_client_credentials_are_not_retried() -> None:
    body = b'{"error":"invalid_client","error_description":"Client authentication failed."}'
    with misbehaving(lambda _, wire: wire.answer(401, body)) as server:
        with pytest.raises(NoToken, match=r"invalid_client.*Client authentication failed"):
            events(subscription(server, ClientCredentials(read_server(server.url), "c", "s", deadlines=DEADLINES)), 1)
    assert len(server.requests) == 1


def test_requests_to_a_restarting_token_endpoint_are_retried() -> None:
    def script(request: Request, wire: Wire) -> None:
        if len(server.requests) <= 2:
            wire.answer(503, b"{}")
        elif request.path == "/oauth/token":
            wire.answer(200, b'{"access_token":"new"}')
        else:
            wire.stream(OPENING + frame(1))

    with misbehaving(script) as server:
        assert events(subscription(server, ClientCredentials(read_server(server.url), "c", "s", deadlines=DEADLINES)), 1)


def test_a_token_file_is_read_again_when_its_token_is_refused(tmp_path: Any) -> None:
    file = tmp_path / "token"
    file.write_text("first-token\n")

    def script(request: Request, wire: Wire) -> None:
        if request.headers["authorization"] == "Bearer first-token":
            file.write_text("second-token\n")
            wire.answer(401, b"{}")
        else:
            wire.stream(OPENING + frame(1))

    with misbehaving(script) as server:
        assert events(subscription(server, TokenFile(file)), 1)
        file.write_text("first-token")
        stale = TokenFile(file)
        stale.token()
    assert stale.renew() is False


def test_a_planned_end_of_a_connection_does_not_count_as_a_failure() -> None:
    end = b'event: error\ndata: {"type":"error","error":{"code":"connection_timeout","message":"Planned."}}\n\n'
    with misbehaving(lambda _, wire: wire.stream(OPENING + frame(1) + end)) as server:
        happenings = list(subscription(server, endurance=Endurance(is_once=True)).happenings())
        closed = next(item for item in subscription(server).happenings() if isinstance(item, Closed))
    assert closed.error is None
    assert sum(isinstance(item, Message) for item in happenings) == 3


def ending_with(code: str) -> Callable[[Request, Wire], None]:
    end = b'event: error\ndata: {"type":"error","error":{"code":"%b","message":"m"}}\n\n' % code.encode()
    contents = iter([OPENING + end])
    return lambda _, wire: wire.stream(next(contents, OPENING + frame(1)))


@pytest.mark.parametrize("code", ["timeout", "processing_error", "unheard_of"])
def test_a_temporary_error_in_the_stream_is_retried(code: str) -> None:
    with misbehaving(ending_with(code)) as server:
        assert events(subscription(server), 1) == [b'{"number":1}']


@pytest.mark.parametrize("code", ["cursor_expired", "invalid_cursor", "payload_too_large"])
def test_a_permanent_error_in_the_stream_ends_the_subscription(code: str) -> None:
    with misbehaving(ending_with(code)) as server:
        with pytest.raises(Ended, match=code):
            events(subscription(server), 1)


def test_a_read_timeout_ends_a_connection() -> None:
    def script(_: Request, wire: Wire) -> None:
        if len(server.requests) == 1:
            wire.stream(OPENING, end=False)
            wire.hold()
        else:
            wire.stream(OPENING + frame(1))

    with misbehaving(script) as server:
        assert events(subscription(server, deadlines=Deadlines(connect=5.0, read=0.2)), 1) == [b'{"number":1}']


def test_a_response_that_is_not_an_event_stream_ends_the_subscription() -> None:
    with misbehaving(lambda _, wire: wire.answer(200, b"{}")) as server:
        with pytest.raises(NoStream, match="application/json"):
            events(subscription(server), 1)


def test_the_subscription_ends_if_the_server_is_unreachable_for_the_configured_time() -> None:
    with misbehaving(lambda _, wire: wire.hold()) as server:
        pass
    started = time.monotonic()
    with pytest.raises(Unreachable, match="cannot connect"):
        events(subscription(server, endurance=Endurance(give_up_seconds=0.2)), 1)
    assert time.monotonic() - started < 5


def test_a_token_with_line_breaks_is_refused_without_being_shown() -> None:
    with misbehaving(lambda _, wire: wire.answer(200)) as server:
        with pytest.raises(Untrusted) as refused:
            events(subscription(server, FixedToken("secret-part\r\nX-Other: 1")), 1)
    assert "secret-part" not in str(refused.value)
    assert server.requests == []
