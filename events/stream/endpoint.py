"""The ASGI consumer of `GET {base_url}/events`: checks the request, answers 200, writes events, and releases all resources at the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from channels.consumer import AsyncConsumer

from authapi.edge.address_rates import debt_of
from events import metrics
from events.stream.admission import RATE_HEADER, Admitted, admit, origin_of_scope, wire_headers
from events.stream.peer import Wire, abort_connection, paced, taking_over
from events.stream.refusals import Header, Refused
from events.stream.runtime import StreamRuntime, runtime
from events.stream.stream import Stream
from events.stream.writer import GONE, OPERATOR, SLOW, PassOn, Send
from identity.hosts import HostMatch

logger = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

# The body of a GET has no meaning. If a client sends more bytes than this, its stream ends.
_MAX_BODY_BYTES = 64 * 1024
_STREAM_HEADERS: list[Header] = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    # `no-transform` tells proxies not to compress, because a compressor delays frames.
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
    # Some proxies ignore `no-transform` and compress each response that has no `Content-Encoding`. The compression delays small frames.
    (b"content-encoding", b"identity"),
]


class EventsConsumer(AsyncConsumer):  # type: ignore[misc]  # Channels has no types
    """Serves one request for a stream with at most two tasks: the server's task writes, and another task notices when the client
    disconnects."""

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request. The method of the base class would handle one message after another, and would miss a disconnect during a
        write."""
        host: HostMatch | None = scope.get("host_match")
        try:
            if host is None:
                raise Refused(404, "No tenant answers on this host.")
            if scope["method"] != "GET":
                raise Refused(405, "This operation answers to GET only.", headers=[(b"allow", b"GET")])
            shared = await runtime()
            admitted = await admit(scope, host, shared)
        except Refused as refusal:
            await _refuse(refusal, host, scope, send)
            return
        except Exception:
            logger.exception("A stream was not opened for an unexpected reason.")
            await _refuse(Refused(500, "The service met an unexpected condition."), host, scope, send)
            return
        # Drop the request head with its token; otherwise the token would stay in memory until the stream ends.
        scope["headers"].clear()
        await serve(admitted, shared, scope, receive, send)


async def serve(admitted: Admitted, shared: StreamRuntime, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer 200, write until the end, and release the slot.

    If the server hands over its transport, a separate task continues the stream, and this function returns at once. If it waited for the
    end of the stream, its callers would stay in memory until then, with all their objects.
    """
    metrics.CONNECTS.labels("200", "opened").inc()
    take_over = taking_over(scope)
    if take_over is not None:
        try:
            wire = take_over(_STREAM_HEADERS + admitted.headers)
        except BaseException:
            shared.leases.release(admitted.lease)
            raise
        shared.keep(_serve_on(wire, admitted, shared))
        return
    with _opened(admitted, shared, paced(send)) as stream:
        watcher = asyncio.get_running_loop().create_task(_watch(stream, receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS + admitted.headers})
            admitted.headers.clear()
            await stream.run()
        finally:
            watcher.cancel()
    _drop_if_stuck(stream, partial(abort_connection, send))


async def _serve_on(wire: Wire, admitted: Admitted, shared: StreamRuntime) -> None:
    try:
        with _opened(admitted, shared, wire.send, wire.write) as stream:
            # Drop the request so that it is not kept for the life of the stream.
            del admitted
            wire.watch(partial(stream.break_off, GONE))
            await stream.run()
        _drop_if_stuck(stream, wire.abort)
    except BaseException as error:
        # The server considers this request finished, so only this task can end the connection.
        wire.abort()
        if not isinstance(error, Exception):
            raise
        logger.exception("A stream ended for an unexpected reason.")


@contextmanager
def _opened(admitted: Admitted, shared: StreamRuntime, send: Send, at_once: PassOn | None = None) -> Iterator[Stream]:
    lease = admitted.lease
    try:
        subscription, sealer = admitted.subscription, shared.sealer(admitted.subscription.tenant_id)
        stream = Stream(subscription, admitted.first_page, send=send, at_once=at_once, sealer=sealer, sources=shared.sources)
        del admitted, subscription, sealer
        try:
            shared.add(stream)
            yield stream
        finally:
            shared.remove(stream)
            metrics.CLOSES.labels(stream.ended_by).inc()
    finally:
        shared.leases.release(lease)


def _drop_if_stuck(stream: Stream, abort: Callable[[], None]) -> None:
    if stream.writer.broken_by in {SLOW, OPERATOR}:
        # Without the abort, the server would wait until the client reads. The abort drops the connection and its buffers.
        abort()


async def _watch(stream: Stream, receive: Receive) -> None:
    size = 0
    while (message := await receive())["type"] != "http.disconnect":
        size += len(message.get("body", b""))
        if size > _MAX_BODY_BYTES:
            break
    stream.break_off(GONE)


async def _refuse(refusal: Refused, host: HostMatch | None, scope: MutableMapping[str, Any], send: Send) -> None:
    metrics.CONNECTS.labels(str(refusal.status), refusal.code or "").inc()
    body = refusal.body()
    headers = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    headers += [(b"cache-control", b"no-store"), *refusal.headers]
    if host is not None and not any(name == RATE_HEADER for name, _ in headers):
        # Every response has the three rate headers, even if the request was refused before the service counted it.
        headers += wire_headers(debt_of(host.tenant_id, origin_of_scope(scope)))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
