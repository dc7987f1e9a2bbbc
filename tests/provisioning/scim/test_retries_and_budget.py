"""Repeats of requests within a run, the deadline of a run, the header `Retry-After`, and create requests whose response was lost."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from provisioning.scim.user_sync import DeletionInDoubt
from tests.factories.links import MemoryLinks
from tests.factories.scim import (
    HANG_UP,
    Handler,
    Misbehaviour,
    Received,
    Wire,
    by_verb,
    listing,
    misbehaving_server,
    reply,
    scim_error,
    sequence,
    user,
)
from tests.factories.scim_runs import run_event

CREATED = reply(201, user("1", externalId="database|anna"))
ANNA_THERE = listing(user("1", externalId="database|anna"))


@pytest.mark.parametrize("first", [scim_error(429), scim_error(500), scim_error(503), HANG_UP])
def test_a_failed_request_is_repeated_once_by_default(first: Wire) -> None:
    with misbehaving_server(by_verb(POST=sequence(first, CREATED), GET=listing())) as server:
        assert run_event(server.base_url).reason == "created"
        assert server.lines.count("POST /Users") == 2


@pytest.mark.parametrize(("retries", "tries"), [("0", 1), ("1", 2), ("3", 4), ("", 2)])
def test_scim_max_retries_sets_how_often_a_failed_request_is_repeated(retries: str, tries: int) -> None:
    with misbehaving_server(sequence(scim_error(503))) as server:
        ran = run_event(server.base_url, "user.updated", secrets={"SCIM_MAX_RETRIES": retries})
        assert ran.failed.kind == "transient"
        assert len(server.received) == tries == len(ran.exchanges)


def test_a_user_whose_create_response_was_lost_is_found_and_not_created_again() -> None:
    created: list[Received] = []

    def answer(request: Received) -> Wire:
        if request.verb == "POST":
            created.append(request)
            return HANG_UP
        return listing(*(user(str(number), externalId="database|anna") for number, _ in enumerate(created)))

    with misbehaving_server(answer) as server:
        ran = run_event(server.base_url)
        assert ran.reason == "created"
        assert server.lines == ["POST /Users", "GET /Users"]


@pytest.mark.parametrize(
    "lookup",
    [
        scim_error(401),
        scim_error(500),
        reply(404, raw=b"<html></html>"),
        listing(*(user(number, externalId="database|anna") for number in "12")),
        listing(user("1", userName="anna@example.test")),
    ],
    ids=["unauthorized", "server failure", "no route", "ambiguous", "unverifiable"],
)
def test_a_create_without_a_response_stays_in_doubt_if_the_lookup_fails(lookup: Wire) -> None:
    answers, links = [lookup], MemoryLinks()
    with misbehaving_server(by_verb(POST=HANG_UP, GET=lambda request: answers[-1])) as server:
        assert run_event(server.base_url, links=links).failed.is_uncertain
        assert links.only().doubt is not None
        answers.append(listing())
        assert isinstance(run_event(server.base_url, "user.deleted", links=links).failed, DeletionInDoubt)


def test_a_user_that_an_earlier_attempt_created_is_found_before_a_second_post() -> None:
    with misbehaving_server(by_verb(POST=CREATED, GET=ANNA_THERE)) as server:
        assert run_event(server.base_url, attempt=2).reason == "created by an earlier attempt"
        assert server.lines == ["GET /Users"]


def test_a_second_attempt_sends_a_post_if_only_an_unlinked_account_has_the_name() -> None:
    unlinked = listing(user("5", userName="anna@example.test"))
    with misbehaving_server(by_verb(POST=scim_error(409), GET=unlinked)) as server:
        ran = run_event(server.base_url, attempt=2)
        assert ran.failed.status == 409
        lookup_and_probe = ["GET /Users", "GET /Users"]
        assert server.lines == [*lookup_and_probe, "POST /Users", *lookup_and_probe]


def test_a_refused_request_without_side_effects_is_repeated_without_a_lookup() -> None:
    with misbehaving_server(sequence(scim_error(503), CREATED)) as server:
        assert run_event(server.base_url).reason == "created"
        assert server.lines == ["POST /Users", "POST /Users"]


def test_a_user_counts_as_deleted_if_the_response_to_the_delete_was_lost() -> None:
    with misbehaving_server(by_verb(GET=ANNA_THERE, DELETE=sequence(HANG_UP, scim_error(404)))) as server:
        assert run_event(server.base_url, "user.deleted").reason == "deleted"


@pytest.mark.parametrize(
    ("value", "asked"),
    [
        (lambda: "120", 120.0),
        (lambda: "1000000000", 86_400.0),
        (lambda: format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True), 7200.0),
    ],
    ids=["seconds", "huge", "date"],
)
def test_a_long_retry_after_header_ends_the_run_and_delays_the_next_attempt(value: Callable[[], str], asked: float) -> None:
    with misbehaving_server(sequence(scim_error(429, **{"Retry-After": value()}))) as server:
        ran = run_event(server.base_url)
        assert ran.failed.kind == "transient"
        assert ran.failed.retry_after == pytest.approx(asked, abs=120)
        assert len(server.received) == 1
        assert ran.own_seconds < 2


def test_the_run_waits_for_the_time_in_a_short_retry_after_header() -> None:
    with misbehaving_server(sequence(scim_error(429, **{"Retry-After": "1"}), CREATED)) as server:
        ran = run_event(server.base_url)
    assert ran.reason == "created"
    assert ran.seconds >= 1


@pytest.mark.parametrize("value", ["garbage", "-5", "1.5", "", "Mon, 99 Foo 2026"])
def test_an_invalid_retry_after_header_is_ignored(value: str) -> None:
    with misbehaving_server(sequence(scim_error(429, **{"Retry-After": value}), CREATED)) as server:
        assert run_event(server.base_url).reason == "created"


def drip(connection: socket.socket) -> None:
    """Send a valid response byte by byte. Each byte arrives before the timeout of a single read."""
    for byte in CREATED:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def drip_body(connection: socket.socket) -> None:
    head, _, body = CREATED.partition(b"\r\n\r\n")
    connection.sendall(head + b"\r\n\r\n")
    for byte in body:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def silence(connection: socket.socket) -> None:
    threading.Event().wait(5)


@pytest.mark.parametrize("act", [drip, drip_body, silence])
def test_the_timeout_applies_to_the_head_and_the_body_of_the_response(act: Callable[[socket.socket], None]) -> None:
    with misbehaving_server(by_verb(POST=Misbehaviour(act), GET=listing())) as server:
        ran = run_event(server.base_url, secrets={"SCIM_TIMEOUT_MS": "300", "SCIM_MAX_RETRIES": "0"})
    assert ran.failed.kind == "transient"
    assert "in time" in str(ran.failed)
    assert ran.seconds > 0.25
    assert ran.own_seconds < 1.5


def test_repeats_and_pauses_end_at_the_deadline_of_the_run() -> None:
    with misbehaving_server(sequence(Misbehaviour(silence))) as server:
        ran = run_event(
            server.base_url, "user.updated", secrets={"SCIM_TIMEOUT_MS": "5000", "SCIM_MAX_RETRIES": "10"}, deadline_seconds=0.8
        )
    assert ran.failed.kind == "transient"
    assert ran.own_seconds < 1.5


def test_a_run_whose_deadline_has_passed_sends_no_request() -> None:
    with misbehaving_server(sequence(CREATED)) as server:
        ran = run_event(server.base_url, deadline_seconds=-1)
        assert ran.failed.kind == "transient"
        assert server.received == []


@pytest.mark.parametrize(
    "handler",
    [
        sequence(Misbehaviour(lambda connection: connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{"))),
        sequence(Misbehaviour(lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"))),
        sequence(Misbehaviour(lambda connection: connection.sendall(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"))),
        sequence(reply(201, raw=b"not gzip", headers={"Content-Encoding": "gzip"})),
    ],
)
def test_an_incomplete_or_malformed_response_is_a_transient_failure(handler: Handler) -> None:
    with misbehaving_server(handler) as server:
        ran = run_event(server.base_url, "user.updated")
        assert ran.failed.kind == "transient"
        assert len(server.received) == 2
