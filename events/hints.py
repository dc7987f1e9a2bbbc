"""Sends and receives hints: "the log of this tenant now ends at this position". A hint can be lost and never contains an event."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import cast

from django.conf import settings
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from foundation.memory.outage_guard import OutageGuard
from foundation.memory.redis_clients import async_redis_client, redis_client

logger = logging.getLogger(__name__)

# The numberer waits while this process connects to Redis and sends a hint, so both steps together may take at most 200 ms.
_STEP_TIMEOUT_SECONDS = 0.1
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 10.0
_RECONNECT_SECONDS = 0.5
_CONNECT_SECONDS = 1.0
_SILENCE_SECONDS = 5.0


def hint_channel() -> str:
    """Return the name of the Redis channel on which all processes publish hints, and to which all processes subscribe."""
    return f"{settings.REDIS_PREFIX}:hints"


class HintPublisher:
    """Publishes hints and never raises. After a failure it pauses; each further failure doubles the pause, up to ten seconds."""

    def __init__(self, url: str) -> None:
        self._client = redis_client(url, connect_seconds=_STEP_TIMEOUT_SECONDS, answer_seconds=_STEP_TIMEOUT_SECONDS)
        self._guard = OutageGuard(_FIRST_PAUSE_SECONDS, longest=_LONGEST_PAUSE_SECONDS)

    def publish(self, tenant_id: str, position: int) -> bool:
        """Publish one hint; return whether Redis accepted it."""
        return self.send(hint_channel(), f"{tenant_id}:{position}".encode()) is not None

    def send(self, channel: str, payload: bytes) -> int | None:
        """Publish any payload; return the number of subscriptions that received the payload, or None if Redis is unavailable."""
        if self._guard.is_open:
            return None
        try:
            reached = cast("int", self._client.publish(channel, payload))
        except (RedisError, OSError) as error:
            logger.warning("no hints are sent for %.1f s: %s", self._guard.failed(), type(error).__name__)
            return None
        self._guard.answered()
        return reached

    def close(self) -> None:
        """Release the connection."""
        self._client.close()


_publishers: dict[str, HintPublisher] = {}
_publishers_lock = threading.Lock()


def publish_hint(tenant_id: str, position: int) -> bool:
    """Tell every process that the tenant's log now ends at `position`; takes at most 200 ms and never raises."""
    return publisher().publish(tenant_id, position)


def publisher() -> HintPublisher:
    """Return the only publisher of this process. All messages use it, so that the pause after a failed message applies to all messages."""
    with _publishers_lock:
        found = _publishers.get(settings.REDIS_URL)
        if found is None:
            found = _publishers[settings.REDIS_URL] = HintPublisher(settings.REDIS_URL)
        return found


def parse_hint(payload: bytes) -> tuple[str, int] | None:
    """Return tenant and position of a hint, or None for any other payload on the channel."""
    tenant_id, separator, position = payload.decode("utf-8", "replace").rpartition(":")
    if not separator or not tenant_id or not (position.isascii() and position.isdigit()):
        return None
    return tenant_id, int(position)


class HintListener:
    """One subscription per process. Calls `heard(tenant_id, position)`, and `connected()` after each (re)connection.

    `also` maps further channels to functions, which are called with each message of the channel and must not raise.
    """

    def __init__(
        self,
        url: str,
        *,
        heard: Callable[[str, int], None],
        connected: Callable[[], None],
        also: Mapping[str, Callable[[bytes], None]] | None = None,
    ) -> None:
        self._url = url
        self._heard = heard
        self._connected = connected
        self._is_silent = False
        self._also = {channel.encode(): take for channel, take in (also or {}).items()}

    async def run(self) -> None:
        """Listen until canceled. After a lost connection, reconnect; meanwhile, polling finds new positions."""
        while True:
            try:
                await self._listen()
            except (RedisError, OSError) as error:
                logger.info("no hints for now: %s", type(error).__name__)
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _listen(self) -> None:
        client = async_redis_client(self._url, connect_seconds=_CONNECT_SECONDS, waits_for_messages=True)
        # Use a plain connection, because the library's `PubSub` needs more time for each message, and a hint can arrive for every commit.
        connection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]  # redis-py has no type for it
        try:
            # Subscribe with a timeout, because a frozen server accepts the connection and never answers.
            async with asyncio.timeout(_CONNECT_SECONDS):
                await connection.connect()
                await connection.send_command("SUBSCRIBE", hint_channel(), *self._also)
            self._connected()
            asking = asyncio.create_task(self._ask_when_silent(connection))
            try:
                await self._hear(connection)
            finally:
                asking.cancel()
        finally:
            await connection.disconnect()
            await client.aclose()

    async def _hear(self, connection: AbstractConnection) -> None:
        while True:
            # Read hints without a timeout: setting a timeout for each hint would cost as much as reading the hint.
            reply = await connection.read_response(disconnect_on_error=False)
            self._is_silent = False
            if reply[0] == b"message":
                self._take(reply[1], reply[2])

    async def _ask_when_silent(self, connection: AbstractConnection) -> None:
        """Ping the server after a silence. If the server does not answer, close the connection. The task that reads from the connection
        then ends."""
        is_asked = False
        while True:
            self._is_silent = True
            await asyncio.sleep(_SILENCE_SECONDS)
            if self._is_silent and is_asked:
                await connection.disconnect(nowait=True)
                return
            is_asked = self._is_silent
            if is_asked:
                with suppress(RedisError, OSError):
                    await connection.send_command("PING")

    def _take(self, channel: bytes, payload: bytes) -> None:
        if channel in self._also:
            self._also[channel](payload)
        elif (hint := parse_hint(payload)) is not None:
            self._heard(*hint)
