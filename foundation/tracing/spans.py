"""Spans of this process. While tracing is off, a span costs one check and a context manager that does nothing.

Names and attributes contain ids, numbers and words of the source only. They never contain an address, a name, a body or the text of an
error. The SDK is imported by `start`, so a process without tracing never loads it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings

from foundation.tracing.trace_context import TraceContext, read_stored

if TYPE_CHECKING:
    from foundation.tracing.recording import Tracing

Result = TypeVar("Result")
Attribute = str | int | bool
_OFF: AbstractContextManager[None] = nullcontext()
_tracing: Tracing | None = None
_process = 0


def start() -> None:
    """Begin to trace in this process if `TRACING_ENDPOINT` is set. Call it after the fork: the exporter uses a thread, and a fork copies no
    threads."""
    global _tracing, _process
    if not settings.TRACING_ENDPOINT or (_tracing is not None and _process == os.getpid()):
        return
    from foundation.tracing.recording import Tracing  # noqa: PLC0415  (loads the SDK)

    _tracing, _process = Tracing(), os.getpid()


def stop() -> None:
    """Export the finished spans and stop tracing."""
    global _tracing
    ended, _tracing = _tracing, None
    if ended is not None:
        ended.stop()


def is_on() -> bool:
    """Tell whether this process traces."""
    return _tracing is not None


def span(name: str, **attributes: Attribute) -> AbstractContextManager[None]:
    """Record a step inside the current span, or as a new trace."""
    return _tracing.step(name, attributes) if _tracing else _OFF


def inner_span(name: str, **attributes: Attribute) -> AbstractContextManager[None]:
    """Record a call to another server inside the current span; records nothing without a current span."""
    return _tracing.call(name, attributes) if _tracing else _OFF


def request_span(
    name: str, *, parent: TraceContext | None, link: TraceContext | None, **attributes: Attribute
) -> AbstractContextManager[None]:
    """Record a request: in the caller's trace `parent`, or in a new trace with a link to `link`."""
    return _tracing.request(name, attributes, parent, link) if _tracing else _OFF


def continued(stored: bytes | None, name: str, **attributes: Attribute) -> AbstractContextManager[None]:
    """Record a step of the trace that was stored with an event; records nothing if the event has none."""
    if not _tracing or not stored or (origin := read_stored(stored)) is None:
        return _OFF
    return _tracing.step(name, attributes, origin)


def note_step(stored: bytes, name: str, *, began_ns: int, **attributes: Attribute) -> None:
    """Record a finished step of the trace that was stored with an event; `began_ns` is a reading of `time.time_ns`."""
    if _tracing and (origin := read_stored(stored)) is not None:
        _tracing.past_step(name, attributes, origin, began_ns)


def current() -> bytes | None:
    """Return the context of the current span as 24 bytes; None if the span is not recorded."""
    return _tracing.current() if _tracing else None


def note(**attributes: Attribute) -> None:
    """Add attributes to the current span."""
    if _tracing:
        _tracing.note(attributes)


def note_failure(kind: str) -> None:
    """Mark the current span as failed; `kind` is a word of the source, never the text of an error."""
    if _tracing:
        _tracing.fail(kind)


def rename(name: str) -> None:
    """Rename the current span."""
    if _tracing:
        _tracing.rename(name)


def carried(work: Callable[[], Result]) -> Callable[[], Result]:
    """Return a function that runs `work` inside the current span, even if another thread calls the function."""
    context: Any = copy_context() if _tracing else None
    return partial(context.run, work) if context else work
