"""The smallest ASGI application that streams. With it, a benchmark measures what the web server itself costs for each frame.

It has channels, stores nothing and checks nothing. The body of a POST to a channel is sent to all of its listeners.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

_LISTENERS: defaultdict[bytes, set[Any]] = defaultdict(set)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Serve `GET /events?channel=` and `POST /publish?channel=`."""
    if scope["type"] != "http":
        return
    channel = scope["query_string"].partition(b"channel=")[2]
    await (_publish if scope["method"] == "POST" else _subscribe)(channel, receive, send)


async def _publish(channel: bytes, receive: Any, send: Any) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    frame = {"type": "http.response.body", "body": b"event: message\ndata: %b\n\n" % body, "more_body": True}
    for listener in list(_LISTENERS[channel]):
        await listener(frame)
    await send({"type": "http.response.start", "status": 201, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def _subscribe(channel: bytes, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    await send({"type": "http.response.body", "body": b":connected\n\n", "more_body": True})
    _LISTENERS[channel].add(send)
    try:
        while (await receive())["type"] != "http.disconnect":
            pass
    finally:
        _LISTENERS[channel].discard(send)
