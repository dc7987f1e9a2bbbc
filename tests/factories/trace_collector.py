"""A collector of traces: an HTTP server that decodes OTLP requests."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as the collector received it; ids are hexadecimal."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    is_failed: bool
    # The description in the status of a failed span.
    status_text: str
    links: tuple[tuple[str, str], ...]
    service: str
    whole: str


class Collector:
    """Spans that arrived, and the headers of the last request."""

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self.headers: dict[str, str] = {}
        self.status = 200
        self.endpoint = ""

    def named(self, name: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.name == name]

    def of_trace(self, trace_id: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.trace_id == trace_id]

    def take(self, body: bytes) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        request = ExportTraceServiceRequest.FromString(body)
        for group in request.resource_spans:
            service = {item.key: item.value.string_value for item in group.resource.attributes}.get("service.name", "")
            self.spans += [_received(span, service) for scope in group.scope_spans for span in scope.spans]


def show_packages() -> None:
    """Make the Python packages for tracing importable again. The settings hide these packages if no endpoint is configured."""
    if "opentelemetry" in sys.modules and sys.modules["opentelemetry"] is None:
        del sys.modules["opentelemetry"]


@contextmanager
def collector() -> Iterator[Collector]:
    """Run a collector on a free port."""
    show_packages()
    running = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            running.headers = dict(self.headers)
            if running.status == 200:
                running.take(body)
            self.send_response(running.status)
            self.send_header("Content-Type", "application/x-protobuf")
            # The response is an empty message, whose encoding is an empty body.
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        running.endpoint = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield running
        finally:
            server.shutdown()
            thread.join(10)


def _received(span: Any, service: str) -> ReceivedSpan:
    values = {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes}
    links = tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links)
    return ReceivedSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        attributes=values,
        is_failed=span.status.code == span.status.STATUS_CODE_ERROR,
        status_text=span.status.message,
        links=links,
        service=service,
        whole=str(span),
    )
