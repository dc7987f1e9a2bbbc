"""Spans of requests. Their names contain no ids, and a caller cannot add spans to a trace of its choice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import LazySettings

from config.server.hosts import Receive, Scope, Send
from config.server.traced_requests import traced
from foundation.tracing import spans as tracing
from tests.factories.trace_collector import Collector, ReceivedSpan, collector

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = (b"traceparent", f"00-{TRACE}-{SPAN}-01".encode())


@pytest.fixture
def received(settings: LazySettings) -> Iterator[Collector]:
    with collector() as running:
        settings.TRACING_ENDPOINT = running.endpoint
        tracing.start()
        try:
            yield running
        finally:
            tracing.stop()


def request(
    path: str = "/api/v2/users/database%7Cada@example.com",
    *,
    headers: list[tuple[bytes, bytes]] | None = None,
    peer: str = "192.0.2.1",
    method: str = "PATCH",
    status: int = 200,
) -> None:
    """Send a request through the tracer to an application that answers with `status`."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})

    async def ignore(message: Any) -> None: ...

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "path": path, "method": method, "headers": headers or [], "client": (peer, 1)}
    asyncio.run(_awaited(traced(application)(scope, receive, ignore)))


async def _awaited(work: Any) -> None:
    await work


def only_span(received: Collector) -> ReceivedSpan:
    tracing.stop()
    [found] = received.spans
    return found


def test_without_an_endpoint_for_traces_the_application_is_called_directly() -> None:
    async def application(scope: Scope, receive: Receive, send: Send) -> None: ...

    assert traced(application) is application


def test_a_request_is_named_by_its_kind_and_never_by_its_path(received: Collector) -> None:
    request()
    span = only_span(received)
    assert span.name == "PATCH management"
    assert span.attributes == {"http.request.method": "PATCH", "http.response.status_code": 200}
    assert "ada@" not in span.whole


def test_an_unknown_method_of_a_request_is_not_in_the_name_of_its_span(received: Collector) -> None:
    request(method="ADA@EXAMPLE")
    assert only_span(received).name == "_OTHER management"


@pytest.mark.parametrize(("status", "is_failed"), [(404, False), (503, True)])
def test_only_a_server_error_is_a_failed_request(received: Collector, status: int, *, is_failed: bool) -> None:
    request(status=status)
    assert only_span(received).is_failed is is_failed


def test_a_span_does_not_continue_the_trace_of_a_proxy_that_the_setting_does_not_list(received: Collector, settings: LazySettings) -> None:
    settings.TRUSTED_PROXIES = ["192.0.2.0/24"]
    request(headers=[HEADER])
    span = only_span(received)
    assert (span.parent_id, span.links) == ("", ((TRACE, SPAN),))
    assert span.trace_id != TRACE


def test_a_span_continues_the_trace_of_a_proxy_that_the_setting_lists(received: Collector, settings: LazySettings) -> None:
    settings.TRACING_PROXIES = ["192.0.2.0/24"]
    request(headers=[HEADER])
    span = only_span(received)
    assert (span.trace_id, span.parent_id, span.links) == (TRACE, SPAN, ())


@pytest.mark.parametrize("headers", [[HEADER, HEADER], [(b"traceparent", b"00-0-0-01")]])
def test_repeated_and_invalid_headers_are_ignored(received: Collector, settings: LazySettings, headers: list[tuple[bytes, bytes]]) -> None:
    settings.TRACING_PROXIES = ["192.0.2.0/24"]
    request(headers=headers)
    span = only_span(received)
    assert (span.parent_id, span.links) == ("", ())


def test_a_stream_has_no_span(received: Collector) -> None:
    request("/api/v2/events", method="GET")
    tracing.stop()
    assert received.spans == []
