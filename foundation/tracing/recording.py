"""The OpenTelemetry SDK behind `foundation.tracing.spans`; the only module that imports the SDK.

Finished spans wait in a bounded queue, and a thread sends them. If the collector is unavailable or slow, spans are dropped and a line is
logged. The code that records a span never waits.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from django.conf import settings
from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.span import TraceState
from opentelemetry.util.types import Attributes

from foundation.tracing.trace_context import TraceContext

_EXPORT_SECONDS = 5
_END_SECONDS = 2
_WAITING_SPANS = 4096
_SPANS_PER_EXPORT = 512
_PAUSE_MS = 1000
Given = Mapping[str, str | int | bool]


class OwnSampling(Sampler):
    """Samples a share of the traces that enter this process; a span inside the process is sampled if its parent is sampled.

    A trace that a caller has begun is sampled at random too, so neither the caller's flags nor its trace id influence the decision.
    """

    def __init__(self, share: float) -> None:
        self._share = share

    def should_sample(
        self,
        parent_context: context.Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Return whether the span is recorded."""
        parent = trace.get_current_span(parent_context).get_span_context()
        is_inside = parent.is_valid and not parent.is_remote
        is_sampled = parent.trace_flags.sampled if is_inside else random.random() < self._share  # noqa: S311  (a sample)
        return SamplingResult(Decision.RECORD_AND_SAMPLE if is_sampled else Decision.DROP, attributes)

    def get_description(self) -> str:
        """Return the name of the rule."""
        return f"OwnSampling({self._share:g})"


class Tracing:
    """The tracer of one process and its exporter."""

    def __init__(self) -> None:
        exporter = OTLPSpanExporter(endpoint=settings.TRACING_ENDPOINT, headers=settings.TRACING_HEADERS, timeout=_EXPORT_SECONDS)
        self._processor = BatchSpanProcessor(
            exporter,
            max_queue_size=_WAITING_SPANS,
            max_export_batch_size=_SPANS_PER_EXPORT,
            schedule_delay_millis=_PAUSE_MS,
        )
        resource = Resource.create({SERVICE_NAME: settings.TRACING_SERVICE_NAME})
        # Register no handler at exit: callers use `stop`, and a process that is killed must not wait for a collector.
        self._provider = TracerProvider(OwnSampling(settings.TRACING_SHARE), resource, shutdown_on_exit=False)
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer("identity")

    def stop(self) -> None:
        """Export the waiting spans, for two seconds at most."""
        # If the collector does not answer, the SDK waits for up to 30 seconds. This is longer than a process may take to end.
        ending = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        ending.start()
        ending.join(_END_SECONDS)

    @contextmanager
    def _begun(
        self,
        name: str,
        attributes: Given,
        kind: SpanKind,
        parent: context.Context | None = None,
        links: Sequence[Link] = (),
    ) -> Iterator[None]:
        # Turn off `record_exception` and `set_status_on_exception`: both would send the text of an error.
        with self._tracer.start_as_current_span(
            name, parent, kind, attributes, links, record_exception=False, set_status_on_exception=False
        ) as begun:
            try:
                yield
            except BaseException as error:
                begun.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise

    def step(self, name: str, attributes: Given, origin: TraceContext | None = None) -> AbstractContextManager[None]:
        """Record a step inside the current span, or inside the stored context `origin`."""
        return self._begun(name, attributes, SpanKind.INTERNAL, None if origin is None else _inside(origin, is_remote=False))

    @contextmanager
    def call(self, name: str, attributes: Given) -> Iterator[None]:
        """Record a call to another server inside the current span. Records nothing if the current span is not recorded."""
        if not trace.get_current_span().is_recording():
            yield
            return
        with self._begun(name, attributes, SpanKind.CLIENT):
            yield

    def request(self, name: str, attributes: Given, parent: TraceContext | None, link: TraceContext | None) -> AbstractContextManager[None]:
        """Record a request of a caller."""
        links = () if link is None else (Link(_span_context(link, is_remote=True)),)
        within = context.Context() if parent is None else _inside(parent, is_remote=True)
        return self._begun(name, attributes, SpanKind.SERVER, within, links)

    def past_step(self, name: str, attributes: Given, origin: TraceContext, began_ns: int) -> None:
        """Record a step that ends now."""
        step = self._tracer.start_span(name, _inside(origin, is_remote=False), attributes=attributes, start_time=began_ns)
        step.end(time.time_ns())

    def current(self) -> bytes | None:
        """Return the recorded context of the current span."""
        found = trace.get_current_span()
        if not found.is_recording():
            return None
        here = found.get_span_context()
        return TraceContext(here.trace_id, here.span_id).stored()

    def note(self, attributes: Given) -> None:
        """Add attributes to the current span."""
        trace.get_current_span().set_attributes(attributes)

    def fail(self, kind: str) -> None:
        """Mark the current span as failed."""
        trace.get_current_span().set_status(Status(StatusCode.ERROR, kind))

    def rename(self, name: str) -> None:
        """Rename the current span."""
        trace.get_current_span().update_name(name)


def _span_context(origin: TraceContext, *, is_remote: bool) -> SpanContext:
    # A stored context has no flags. Set the flag "sampled", because only contexts of recorded spans are stored. If the context comes from
    # a remote caller, the sampler ignores the flag.
    return SpanContext(origin.trace_id, origin.span_id, is_remote=is_remote, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _inside(origin: TraceContext, *, is_remote: bool) -> context.Context:
    return trace.set_span_in_context(NonRecordingSpan(_span_context(origin, is_remote=is_remote)), context.Context())
