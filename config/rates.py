"""Rate headers on answers that are given before an endpoint is reached: a body too large, a server too busy."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from authapi import throttling
from authapi.drf import RATE
from config.hosts import Application, Receive, Scope, Send
from events.stream.admission import wire_headers
from identity.api.paths import MANAGEMENT_PREFIX

_MARK = b"x-ratelimit-limit"


def rated(application: Application) -> Application:
    """Count an answer of the management interface that nobody has counted, and say what is left."""

    async def answer_rated(scope: Scope, receive: Receive, send: Send) -> None:
        match = scope["host_match"]
        if match is None or not scope["path"].startswith(MANAGEMENT_PREFIX):
            await application(scope, receive, send)
            return

        async def send_rated(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start" and not any(name.lower() == _MARK for name, _ in message["headers"]):
                rate = await throttling.hit_async(match.tenant_id, RATE)
                message = {**message, "headers": [*message["headers"], *wire_headers(rate)]}
            await send(message)

        await application(scope, receive, send_rated)

    return answer_rated
