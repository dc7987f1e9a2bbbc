"""`manage.py events doctor` reports every defect that an intermediary can cause. It reports nothing for a correct connection."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from events.client.credentials import FixedToken
from events.client.exchange import Deadlines
from events.client.server import read_server
from events.doctor.examination import Plan, examine
from events.doctor.findings import Finding
from events.doctor.observing import Patient
from tests.conformance.target import Target
from tests.events.client.misbehaving import CHUNKED, Misbehaving, Request, Script, Wire, gzipped, misbehaving
from tests.events.client.test_subscription import OPENING
from tests.events.commands.conftest import reached, run

HEARTBEAT = b": heartbeat\n\n"
PLAN = Plan(watch_seconds=1.0, opening_seconds=1.0, slot_seconds=1.0)


def a_good_service(request: Request, wire: Wire) -> None:
    """Answer like the service, with a heartbeat soon after the opening."""
    if not refused_well(request, wire):
        wire.stream(OPENING, end=False)
        wire.chunk(HEARTBEAT)
        wire.hold()


def refused_well(request: Request, wire: Wire) -> bool:
    if "authorization" not in request.headers:
        wire.answer(401, b'{"statusCode":401}', "WWW-Authenticate: Bearer")
    elif request.query or "last-event-id" in request.headers:
        wire.answer(400, b'{"statusCode":400}')
    else:
        return False
    return True


def spoiled(stream: Callable[[Wire], None]) -> Script:
    """Return a script that answers invalid requests correctly, and all other requests with `stream`."""

    def script(request: Request, wire: Wire) -> None:
        if not refused_well(request, wire):
            stream(wire)

    return script


def examined(script: Script, plan: Plan = PLAN) -> dict[str, Finding]:
    with misbehaving(script) as server:
        return findings_about(server, plan)


def findings_about(server: Misbehaving, plan: Plan) -> dict[str, Finding]:
    patient = Patient(read_server(server.url), FixedToken("token-of-the-test"), Deadlines(5.0, 1.0))
    return {finding.name: finding for finding in examine(patient, plan, lambda _: None)}


def bad(findings: dict[str, Finding]) -> dict[str, str]:
    return {name: finding.word for name, finding in findings.items() if finding.word in {"warn", "FAIL"}}


def test_a_connection_without_defects_causes_no_finding() -> None:
    findings = examined(a_good_service)
    assert bad(findings) == {}
    assert {"compression", "first byte", "opening", "heartbeat", "Last-Event-ID arrives"} < set(findings)


def head_with(*lines: bytes, without: bytes = b"\0") -> Callable[[Wire], None]:
    head = b"".join(line for line in CHUNKED.splitlines(keepends=True) if not line.startswith(without))

    def stream(wire: Wire) -> None:
        wire.send(head + b"".join(line + b"\r\n" for line in lines) + b"\r\n")
        wire.chunk(OPENING)
        wire.chunk(HEARTBEAT)
        wire.hold()

    return stream


@pytest.mark.parametrize(
    ("stream", "complaints", "words"),
    [
        (head_with(b"Content-Type: text/plain", without=b"Content-Type"), {"content type": "FAIL"}, "unchanged"),
        (head_with(b"Content-Type: text/event-stream; charset=latin-1", without=b"Content-Type"), {"content type": "FAIL"}, "UTF-8"),
        (head_with(without=b"Cache-Control"), {"cache": "FAIL"}, "is missing"),
        (head_with(b"Cache-Control: max-age=60", b"Server: nginx/1.22", without=b"Cache-Control"), {"cache": "FAIL"}, "no expires"),
        (head_with(b"Cache-Control: no-store", without=b"Cache-Control"), {"cache": "warn"}, "no-transform"),
        (head_with(b"Age: 12"), {"cache": "FAIL"}, "from a cache"),
        (head_with(b"X-Cache: HIT"), {"cache": "FAIL"}, "from a cache"),
        (head_with(b"X-Accel-Buffering: yes"), {"X-Accel-Buffering": "FAIL"}, "nginx"),
    ],
)
def test_headers_that_break_a_stream_are_reported(stream: Callable[[Wire], None], complaints: dict[str, str], words: str) -> None:
    findings = examined(spoiled(stream))
    assert bad(findings) == complaints
    assert words in findings[next(iter(complaints))].line()


def nothing_at_all(wire: Wire) -> None:
    wire.hold()


def headers_alone(wire: Wire) -> None:
    wire.stream(b"", end=False, extra=b"Via: 1.1 Caddy\r\n")
    wire.hold()


def drop_by_drop(wire: Wire) -> None:
    wire.stream(OPENING[:5], end=False)
    time.sleep(0.7)  # A slow server sends the opening in two parts.
    wire.chunk(OPENING[5:])
    wire.chunk(HEARTBEAT)
    wire.hold()


def half_an_opening(wire: Wire) -> None:
    wire.stream(b":connected\n\n", end=False)
    wire.hold()


def no_heartbeat(wire: Wire) -> None:
    wire.stream(OPENING, end=False)
    wire.hold()


def until_the_end(wire: Wire) -> None:
    wire.send(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store, no-transform\r\n\r\n" + OPENING)
    time.sleep(0.2)  # Without chunks, only the pause between the two writes shows the client that there are two.
    wire.send(HEARTBEAT)
    wire.hold()


def all_at_once(wire: Wire) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store, no-transform\r\n")
    wire.send(b"Content-Length: %d\r\n\r\n" % len(OPENING) + OPENING)


def cut(wire: Wire) -> None:
    wire.stream(OPENING, end=False)


@pytest.mark.parametrize(
    ("stream", "complaints", "words"),
    [
        (nothing_at_all, {"compression": "FAIL", "headers": "FAIL"}, "proxy_buffering off"),
        (headers_alone, {"first byte": "FAIL"}, "caddy: in reverse_proxy: flush_interval -1"),
        (drop_by_drop, {"opening": "warn"}, "at once"),
        (half_an_opening, {"opening": "FAIL"}, "offset-only"),
        (no_heartbeat, {"heartbeat": "FAIL"}, "not one byte in 1 s"),
        (until_the_end, {"framing": "warn"}, "proxy_http_version 1.1"),
        (all_at_once, {"framing": "FAIL", "heartbeat": "FAIL"}, "Content-Length"),
        (cut, {"heartbeat": "FAIL"}, "proxy_read_timeout"),
    ],
)
def test_bytes_that_are_held_back_are_reported(stream: Callable[[Wire], None], complaints: dict[str, str], words: str) -> None:
    findings = examined(spoiled(stream))
    assert bad(findings) == complaints
    assert words in " ".join(findings[name].line() for name in complaints)


def test_a_compressing_proxy_is_detected_by_offering_encodings() -> None:
    def script(request: Request, wire: Wire) -> None:
        if "gzip" not in request.headers["accept-encoding"]:
            a_good_service(request, wire)
        elif not refused_well(request, wire):
            # The proxy holds the compressed opening back, and sends only the ten bytes of the gzip header.
            wire.stream(gzipped(OPENING)[:10], end=False, extra=b"Content-Encoding: gzip\r\nServer: nginx\r\n")
            wire.hold()

    findings = examined(script)
    assert bad(findings) == {"compression": "FAIL"}
    assert "gzip off;" in findings["compression"].advice


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (
            lambda request, wire: "authorization" not in request.headers and wire.answer(401, b"<h1>401</h1>") is None,
            "answer without token",
        ),
        (
            lambda request, wire: "authorization" not in request.headers and wire.answer(401, b'{"statusCode":401}') is None,
            "answer without token",
        ),
        (lambda request, wire: "from" in request.query and wire.answer(502, b"{}") is None, "answer to a bad cursor"),
        (lambda request, wire: "doctor" in request.query and wire.stream(OPENING) is None, "answer to an unknown parameter"),
        (lambda request, wire: "last-event-id" in request.headers and wire.stream(OPENING) is None, "Last-Event-ID arrives"),
    ],
)
def test_altered_error_responses_are_reported(spoil: Callable[[Request, Wire], bool], complaint: str) -> None:
    findings = examined(lambda request, wire: None if spoil(request, wire) else a_good_service(request, wire))
    assert bad(findings) == {complaint: "FAIL"}


def ending_after(seconds: float, last: bytes) -> Callable[[Wire], None]:
    def stream(wire: Wire) -> None:
        wire.stream(OPENING, end=False)
        wire.chunk(HEARTBEAT)
        time.sleep(seconds)  # The stream lasts for this time before its last message.
        wire.chunk(last)

    return stream


def test_a_cut_connection_is_distinguished_from_a_planned_end() -> None:
    plan = replace(PLAN, idle_minutes=0.05)
    planned = b'event: error\ndata: {"type":"error","error":{"code":"connection_timeout","message":"Planned."}}\n\n'
    findings = examined(spoiled(ending_after(0.3, b"")), plan)
    assert bad(findings) == {"long life": "FAIL"}
    assert "without an error message from the service" in findings["long life"].text
    findings = examined(spoiled(ending_after(0.3, planned)), plan)
    assert bad(findings) == {}
    assert "as planned" in findings["long life"].text


def with_canaries(delay_seconds: float) -> Script:
    """A service whose canary arrives on the open stream after a delay."""
    asked = threading.Event()

    def script(request: Request, wire: Wire) -> None:
        if request.path.endswith("/canary"):
            wire.answer(202, b'{"id":"evt_canary"}')
            asked.set()
        elif not refused_well(request, wire):
            wire.stream(OPENING, end=False)
            if asked.wait(5):
                time.sleep(delay_seconds)  # The service delays the canary.
                wire.chunk(b'event: user.updated\ndata: {"event":{"id":"evt_canary"}}\n\n')
            wire.chunk(HEARTBEAT)
            wire.hold()

    return script


@pytest.mark.parametrize(("delay_seconds", "complaints"), [(0.0, {}), (1.2, {"canary": "warn"})])
def test_a_late_canary_is_reported(delay_seconds: float, complaints: dict[str, str]) -> None:
    findings = examined(with_canaries(delay_seconds), replace(PLAN, with_canary=True))
    assert bad(findings) == complaints
    assert "after the request" in findings["canary"].text


def test_a_missing_canary_endpoint_is_not_a_failure() -> None:
    def script(request: Request, wire: Wire) -> None:
        wire.answer(404, b"{}") if request.path.endswith("/canary") else a_good_service(request, wire)

    findings = examined(script, replace(PLAN, with_canary=True))
    assert bad(findings) == {}
    assert findings["canary"].word == "skip"


def test_slots_that_are_not_freed_are_reported() -> None:
    taken: list[int] = []

    def stream(wire: Wire) -> None:
        if len(taken) >= 5:
            wire.answer(403, b'{"statusCode":403,"errorCode":"connection_limit"}')
            return
        taken.append(1)
        wire.stream(OPENING, end=False)
        wire.chunk(HEARTBEAT)
        wire.hold()

    findings = examined(spoiled(stream), replace(PLAN, with_slots=True))
    assert bad(findings) == {"slots": "FAIL"}
    # Earlier checks still hold two of the five slots, because this server frees no slots.
    assert findings["slots"].facts["limit"] == 3


def test_a_refused_stream_ends_the_checks() -> None:
    findings = examined(spoiled(lambda wire: wire.answer(403, b'{"statusCode":403,"errorCode":"insufficient_scope"}')))
    assert bad(findings) == {"stream": "FAIL"}
    assert "read:events" in findings["stream"].advice


def test_an_unreachable_server_causes_one_finding() -> None:
    with misbehaving(a_good_service) as server:
        pass
    assert bad(findings_about(server, PLAN)) == {"connection": "FAIL"}


def test_the_service_itself_passes_every_check(target: Target) -> None:
    done = run("doctor", *reached(target), "--slots", "--idle", "0.02", EVENTS_TOKEN=target.token())
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"ok", "skip"}
    assert "ok   heartbeat: after 0." in done.stdout
    assert "ok   slots: 8 streams" in done.stdout


def test_the_doctor_prints_one_json_document_for_programs_and_sets_the_exit_status() -> None:
    with misbehaving(spoiled(head_with(b"Cache-Control: no-store", without=b"Cache-Control"))) as server:
        done = run("doctor", server.url, "--json", "--watch", "1", EVENTS_TOKEN="token-of-the-test")
    document: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, document["verdict"]) == (1, "warn")
    assert [finding["check"] for finding in document["findings"] if finding["verdict"] == "warn"] == ["cache"]
    assert "token-of-the-test" not in done.stdout + done.stderr
