"""A third-party server performs a request, but its response is lost, late or wrong. The final state on the server must be right.

The numbers in the names of tests are the numbers of rows in the table in docs/reference/scim.md.
"""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from provisioning.runs.failures import InvalidResponseShape
from tests.factories.scim import HANG_UP, MisbehavingServer, Misbehaviour, RealServer, Wire, reply, scim_error, user
from tests.factories.scim_relay import Mangler, Relay, body_of
from tests.factories.scim_runs import ANNA, run_event

pytestmark = pytest.mark.peer


def lost(answer: bytes) -> Wire:
    return HANG_UP


def cut(answer: bytes) -> Wire:
    """Send the response without its last bytes, and close the connection."""
    return Misbehaviour(lambda connection: connection.sendall(answer[:-5]))


def dripped(answer: bytes) -> Wire:
    """Send the response byte by byte, more slowly than the timeout allows."""

    def drip(connection: socket.socket) -> None:
        for place in range(len(answer)):
            connection.sendall(answer[place : place + 1])
            threading.Event().wait(0.05)

    return Misbehaviour(drip)


def endless(answer: bytes) -> Wire:
    """Announce a body of one gigabyte, and begin to send the body."""

    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 201 Said\r\nContent-Type: application/scim+json\r\nContent-Length: 1000000000\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b" " * 1_000_000)

    return Misbehaviour(flood)


def bomb(answer: bytes) -> Wire:
    """Send some hundred kilobytes that decompress to 200 megabytes."""
    return reply(201, raw=gzip.compress(b" " * 200_000_000, 9), headers={"Content-Encoding": "gzip"})


def without_id(answer: bytes) -> Wire:
    return reply(201, {name: value for name, value in json.loads(body_of(answer)).items() if name != "id"})


def with_number_id(answer: bytes) -> Wire:
    return reply(201, {**json.loads(body_of(answer)), "id": 17})


def as_page(answer: bytes) -> Wire:
    return reply(200, raw=b"<html>Welcome</html>")


def empty(answer: bytes) -> Wire:
    return reply(201)


def attempts_until_done(base_url: str, *, attempts: int = 3) -> list[Any]:
    """Run the event of a new user up to `attempts` times, as the delivery engine does, until an attempt succeeds. Return all attempts."""
    ran: list[Any] = []
    for attempt in range(1, attempts + 1):
        ran.append(run_event(base_url, attempt=attempt, secrets={"SCIM_TIMEOUT_MS": "400"}))
        if ran[-1].result is not None:
            break
    return ran


@pytest.mark.parametrize("answers", [[lost], [cut], [lost, lost], [lost, cut, lost]], ids=["lost", "cut", "twice", "three times"])
def test_4_a_creation_with_lost_responses_creates_exactly_one_user(
    server: RealServer, relay: Relay, front: MisbehavingServer, answers: list[Mangler]
) -> None:
    relay.after["POST"] = list(answers)
    ran = attempts_until_done(front.base_url)
    assert ran[-1].result is not None
    assert ran[-1].result.status == "delivered"
    assert [found["externalId"] for found in server.users()] == ["database|anna"]


def test_4_a_creation_that_never_arrived_succeeds_with_the_next_request(server: RealServer, relay: Relay, front: MisbehavingServer) -> None:
    relay.instead["POST"] = [HANG_UP]
    assert attempts_until_done(front.base_url)[-1].reason == "created"
    assert len(server.users()) == 1


@pytest.mark.parametrize("event_type", ["user.updated", "user.deleted"])
def test_4_a_change_with_a_lost_response_is_repeated_and_applied(
    server: RealServer, relay: Relay, front: MisbehavingServer, event_type: str
) -> None:
    run_event(server.base_url)
    relay.after |= {"PUT": [lost], "DELETE": [lost]}
    ran = run_event(front.base_url, event_type, {**ANNA, "name": "New"})
    assert ran.result is not None
    found = server.user("database|anna")
    assert (found is None) if event_type == "user.deleted" else (found is not None and found["displayName"] == "New")


# An intermediary, such as a proxy or a gateway, sends these responses, and does not pass the request to the server.
IN_ITS_PLACE = {
    "a page with 404": (reply(404, raw=b"<html>Not Found</html>"), "configuration"),
    "an empty 404": (reply(404), "configuration"),
    "405": (scim_error(405), "configuration"),
    "301": (reply(301, headers={"Location": "/scim/v2/Users"}), "configuration"),
    "302": (reply(302, headers={"Location": "/scim/v2/Users"}), "configuration"),
    "307": (reply(307, headers={"Location": "/scim/v2/Users"}), "configuration"),
    "a SCIM 404": (scim_error(404), "data"),
}


@pytest.mark.parametrize("upsert", [False, True])
@pytest.mark.parametrize("said", IN_ITS_PLACE)
def test_7_an_update_fails_if_an_intermediary_responds_to_it(
    server: RealServer, relay: Relay, front: MisbehavingServer, said: str, upsert: bool
) -> None:
    run_event(server.base_url)
    before = server.users()
    answer, kind = IN_ITS_PLACE[said]
    relay.instead["PUT"] = [answer]
    ran = run_event(front.base_url, "user.updated", {**ANNA, "name": "New"}, options={"upsert": upsert})
    assert ran.failed.kind == kind
    assert server.users() == before


@pytest.mark.parametrize("said", [name for name in IN_ITS_PLACE if name != "a SCIM 404"])
def test_7_a_deletion_fails_if_an_intermediary_responds_to_it(
    server: RealServer, relay: Relay, front: MisbehavingServer, said: str
) -> None:
    run_event(server.base_url)
    relay.instead["DELETE"] = [IN_ITS_PLACE[said][0]]
    assert run_event(front.base_url, "user.deleted").failed.kind == "configuration"
    assert len(server.users()) == 1
    assert run_event(front.base_url, "user.deleted").reason == "deleted"


def in_two_minutes() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=120), usegmt=True)


@pytest.mark.parametrize(("value", "asked"), [("120", 120), (in_two_minutes, 120), (str(10**9), 24 * 3600)], ids=["120", "date", "10^9"])
def test_9_the_attempt_fails_and_reports_the_waiting_time_that_the_server_requests(
    server: RealServer, relay: Relay, front: MisbehavingServer, value: str | Callable[[], str], asked: float
) -> None:
    said = value if isinstance(value, str) else value()
    relay.instead["POST"] = [scim_error(429, **{"Retry-After": said})]
    ran = run_event(front.base_url)
    assert ran.failed.kind == "transient"
    assert ran.failed.retry_after == pytest.approx(asked, abs=10)
    assert ran.seconds < 5
    assert (front.lines, server.users()) == (["POST /Users"], [])


@pytest.mark.parametrize("value", ["1", "soon", "-5", ""])
def test_9_a_short_or_invalid_waiting_time_repeats_the_request_within_the_attempt(
    server: RealServer, relay: Relay, front: MisbehavingServer, value: str
) -> None:
    relay.instead["POST"] = [scim_error(429, **{"Retry-After": value})]
    assert run_event(front.base_url).reason == "created"
    assert len(server.users()) == 1


@pytest.mark.parametrize("mangle", [without_id, with_number_id, as_page, empty])
def test_10_the_attempt_after_an_invalid_response_to_a_creation_finds_the_user(
    server: RealServer, relay: Relay, front: MisbehavingServer, mangle: Mangler
) -> None:
    relay.after["POST"] = [mangle]
    first, second = attempts_until_done(front.base_url)
    assert isinstance(first.failed, InvalidResponseShape)
    assert "invalid response shape" in str(first.failed)
    assert second.reason == "created by an earlier attempt"
    assert len(server.users()) == 1


@pytest.mark.parametrize(
    "answer",
    [
        reply(200, {"totalResults": 0}),
        reply(200, {"Resources": [user("1", externalId="database|anna"), {"id": 2}]}),
        reply(200, {"Resources": "none"}),
        reply(200, raw=b"<html>Sign in</html>"),
        reply(200),
    ],
    ids=["no Resources", "one bad element", "no array", "a page", "nothing"],
)
@pytest.mark.parametrize("event_type", ["user.updated", "user.deleted"])
def test_10_a_lookup_with_an_invalid_response_causes_no_write(
    server: RealServer, relay: Relay, front: MisbehavingServer, answer: bytes, event_type: str
) -> None:
    run_event(server.base_url)
    before = server.users()
    relay.instead["GET"] = [answer]
    ran = run_event(front.base_url, event_type, {**ANNA, "name": "New"}, options={"upsert": True})
    assert "invalid response shape" in str(ran.failed)
    assert (front.lines, server.users()) == (["GET /Users"], before)


@pytest.mark.parametrize("mangle", [dripped, endless, bomb, cut])
def test_11_an_endless_response_is_cut_at_the_deadline_and_the_user_exists_once(
    server: RealServer, relay: Relay, front: MisbehavingServer, mangle: Mangler
) -> None:
    relay.after["POST"] = [mangle, mangle]
    ran = attempts_until_done(front.base_url)
    assert all(attempt.seconds < 3 for attempt in ran)
    assert ran[-1].result is not None
    assert [found["externalId"] for found in server.users()] == ["database|anna"]
