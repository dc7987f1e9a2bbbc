"""Hints with a real Redis, and the delay that a Redis outage causes for a publisher."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings

from events import hints
from events.hints import HintListener, HintPublisher, parse_hint
from tests.deadlines import eventually, own_time
from tests.faults.conftest import RedisServer


@pytest.mark.parametrize(
    ("payload", "hint"),
    [(b"acme:7", ("acme", 7)), (b"acme:", None), (b":7", None), (b"acme", None), (b"acme:-7", None), (b"acme:\xff", None), (b"", None)],
)
def test_only_a_message_with_a_tenant_and_a_position_is_a_hint(payload: bytes, hint: tuple[str, int] | None) -> None:
    assert parse_hint(payload) == hint


def test_a_published_hint_is_received() -> None:
    async def story() -> None:
        connected, heard = asyncio.Event(), asyncio.Queue[tuple[str, int]]()
        listener = HintListener(settings.REDIS_URL, heard=lambda *hint: heard.put_nowait(hint), connected=connected.set)
        listening = asyncio.create_task(listener.run())
        async with asyncio.timeout(10):
            await connected.wait()
            publisher = HintPublisher(settings.REDIS_URL)
            while heard.empty():
                # Publish until a hint is received: `connected` is set before Redis has confirmed the subscription, and earlier hints are
                # lost.
                assert await asyncio.to_thread(publisher.publish, "acme", 7)
                await asyncio.sleep(0.02)
            assert await heard.get() == ("acme", 7)
            publisher.close()
        listening.cancel()

    asyncio.run(story())


def test_publishing_many_hints_without_a_reachable_redis_fails_without_delay() -> None:
    publisher = HintPublisher("redis://127.0.0.1:1/0")
    with own_time() as publishing:
        assert [publisher.publish("acme", position) for position in range(1000)] == [False] * 1000
    assert publishing.seconds < 0.5


def test_a_silent_redis_delays_a_publisher_by_at_most_200_ms() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        publisher = HintPublisher(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        with own_time() as publishing:
            assert publisher.publish("acme", 1) is False
        assert publishing.seconds < 0.4
        publisher.close()


def test_a_listener_reconnects_and_reports_the_reconnection() -> None:
    async def story() -> int:
        times = 0
        again = asyncio.Event()

        def connected() -> None:
            nonlocal times
            times += 1
            if times == 2:
                again.set()

        listener = HintListener(settings.REDIS_URL, heard=lambda *_: None, connected=connected)
        listening = asyncio.create_task(listener.run())
        killer = HintPublisher(settings.REDIS_URL)
        async with asyncio.timeout(10):
            while not again.is_set():
                await asyncio.to_thread(killer._client.client_kill_filter, _type="pubsub")
                await asyncio.sleep(0.05)
        listening.cancel()
        killer.close()
        return times

    assert asyncio.run(story()) >= 2


def test_an_idle_connection_is_checked_with_a_ping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "_SILENCE_SECONDS", 0.05)
    name = f"listener-{secrets.token_hex(4)}"

    async def story() -> None:
        connected = []
        url = f"{settings.REDIS_URL}{'&' if '?' in settings.REDIS_URL else '?'}client_name={name}"
        listener = HintListener(url, heard=lambda *_: None, connected=lambda: connected.append(name))
        listening = asyncio.create_task(listener.run())
        await asyncio.to_thread(eventually, lambda: _last_command_of(name) == "ping")
        # The reply to the ping is not a message and is ignored.
        assert connected == [name]
        listening.cancel()

    asyncio.run(story())


def test_a_listener_disconnects_from_a_server_that_stops_answering(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "events.hints")
    monkeypatch.setattr(hints, "_SILENCE_SECONDS", 0.2)
    server = RedisServer(tmp_path)
    connected: list[None] = []

    async def story() -> None:
        listener = HintListener(server.url, heard=lambda *_: None, connected=lambda: connected.append(None))
        listening = asyncio.create_task(listener.run())
        await asyncio.to_thread(eventually, lambda: len(connected) == 1)
        server.freeze()
        await asyncio.to_thread(eventually, lambda: "no hints for now" in caplog.text, seconds=20)
        server.thaw()
        await asyncio.to_thread(eventually, lambda: len(connected) == 2, seconds=20)
        listening.cancel()

    try:
        asyncio.run(story())
    finally:
        server.close()


def _last_command_of(name: str) -> str | None:
    with redis.Redis.from_url(settings.REDIS_URL) as onlooker:
        clients: Any = onlooker.client_list(_type="pubsub")
    return next((client["cmd"] for client in clients if client["name"] == name), None)
