"""Spans are recorded only while tracing is on, and contain no texts of errors.

A collector that fails or does not answer does not delay the traced code.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from foundation.tracing import spans as tracing
from foundation.tracing.trace_context import TraceContext
from tests.factories.trace_collector import Collector, collector, show_packages

_CALLER = TraceContext(7, 9)


@pytest.fixture
def received(settings: LazySettings) -> Iterator[Collector]:
    with collector() as running:
        settings.TRACING_ENDPOINT = running.endpoint
        settings.TRACING_HEADERS = {"x-key": "a-secret"}
        tracing.start()
        try:
            yield running
        finally:
            tracing.stop()


def test_a_process_without_an_endpoint_never_loads_the_sdk() -> None:
    program = (
        "import django, sys; django.setup(); from foundation.tracing import spans; spans.start(); import config.asgi, config.celery\n"
        "assert not spans.is_on() and spans.current() is None\n"
        "with spans.span('a'), spans.continued(b'x' * 24, 'b'): spans.note(c=1)\n"
        "sys.exit(any(name.startswith('opentelemetry') and module for name, module in sys.modules.items()))"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=False).returncode == 0


def test_steps_are_children_of_the_step_around_them(received: Collector) -> None:
    with tracing.span("outer", number=3), tracing.span("inner"):
        pass
    tracing.stop()
    [outer], [inner] = received.named("outer"), received.named("inner")
    assert (inner.parent_id, inner.trace_id, outer.parent_id) == (outer.span_id, outer.trace_id, "")
    assert (outer.attributes, outer.service) == ({"number": 3}, "identity")
    assert received.headers["x-key"] == "a-secret"


def test_a_stored_context_continues_its_trace(received: Collector) -> None:
    with tracing.span("recorded"):
        stored = tracing.current()
    assert stored is not None
    with tracing.continued(stored, "attempt"), tracing.inner_span("call"):
        tracing.note(status=204)
    tracing.note_step(stored, "numbered", began_ns=time.time_ns())
    tracing.stop()
    [recorded] = received.named("recorded")
    assert {span.name for span in received.of_trace(recorded.trace_id)} == {"recorded", "attempt", "call", "numbered"}
    assert received.named("attempt")[0].parent_id == received.named("numbered")[0].parent_id == recorded.span_id
    assert received.named("call")[0].attributes == {"status": 204}


def test_without_a_valid_stored_context_neither_the_step_nor_its_inner_calls_are_recorded(received: Collector) -> None:
    with tracing.continued(None, "attempt"), tracing.inner_span("call"):
        pass
    with tracing.continued(b"short", "attempt"):
        pass
    tracing.stop()
    assert received.spans == []


def test_a_failed_step_contains_the_type_of_its_error_and_never_the_text(received: Collector) -> None:
    with pytest.raises(ValueError, match="ada@example"), tracing.span("failing"):
        raise ValueError("ada@example.com has the token s3cret")
    tracing.stop()
    [failing] = received.named("failing")
    assert (failing.is_failed, failing.status_text) == (True, "ValueError")
    assert "ada@" not in failing.whole
    assert "s3cret" not in failing.whole


def test_work_in_another_thread_continues_the_current_span(received: Collector) -> None:
    def work() -> None:
        with tracing.span("inside"):
            pass

    with tracing.span("outside"):
        thread = threading.Thread(target=tracing.carried(work))
        thread.start()
        thread.join()
    tracing.stop()
    assert received.named("inside")[0].parent_id == received.named("outside")[0].span_id


def test_a_caller_does_not_choose_whether_its_trace_is_recorded(received: Collector, settings: LazySettings) -> None:
    tracing.stop()
    settings.TRACING_SHARE = 0.0
    tracing.start()
    with tracing.request_span("GET management", parent=_CALLER, link=None):
        assert tracing.current() is None
        with tracing.span("inside"):
            assert tracing.current() is None
    tracing.stop()
    assert received.spans == []


def test_a_request_with_a_link_to_its_caller_starts_a_new_trace(received: Collector) -> None:
    with tracing.request_span("GET management", parent=None, link=_CALLER):
        pass
    tracing.stop()
    [request] = received.spans
    assert request.parent_id == ""
    assert request.trace_id != f"{_CALLER.trace_id:032x}"
    assert request.links == ((f"{_CALLER.trace_id:032x}", f"{_CALLER.span_id:016x}"),)


def test_a_collector_that_answers_500_raises_no_error_in_the_traced_code(received: Collector) -> None:
    received.status = 500
    with tracing.span("a"):
        pass
    tracing.stop()
    assert received.spans == []


def test_a_collector_that_never_answers_delays_neither_the_traced_code_nor_the_end_of_tracing(settings: LazySettings) -> None:
    show_packages()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.TRACING_ENDPOINT = f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces"
        tracing.start()
        began = time.monotonic()
        for _ in range(10_000):
            with tracing.span("a"):
                pass
        spent = time.monotonic() - began
        tracing.stop()
        ended = time.monotonic() - began - spent
    # Both times are much shorter than the timeout of one export, because a full queue drops spans instead of waiting.
    assert spent < 4
    assert ended < 4
