"""The log reports a peer that sends nearly all requests, unless it is a trusted proxy that forwards the IP addresses of its clients."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from config.server.peer_share import WINDOW_SECONDS, PeerShare, report, shared_out


class Minutes:
    """Sends requests over some minutes, and records the report of each minute."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reports: list[tuple[str, float]] = []
        self.peers = PeerShare(lambda peer, share: self.reports.append((peer, share)), clock=lambda: self.now)

    def minute(self, peers: list[str]) -> None:
        for peer in peers:
            self.peers.note(peer)
        self.now += WINDOW_SECONDS

    def reported(self) -> list[tuple[str, float]]:
        self.peers.note("the next minute")
        return self.reports


def test_a_peer_with_nearly_all_requests_is_reported_with_its_share() -> None:
    minutes = Minutes()
    for _ in range(2):
        minutes.minute(["192.0.2.1"] * 95 * 20 + ["192.0.2.2"] * 5 * 20)
    assert minutes.reported()[-1] == ("192.0.2.1", 0.95)


def test_each_of_many_peers_has_a_small_share() -> None:
    minutes = Minutes()
    for _ in range(2):
        minutes.minute([f"192.0.2.{number % 200}" for number in range(2000)])
    assert minutes.reported()[-1][1] < 0.1


def test_a_proxy_that_forwards_the_addresses_of_its_clients_is_not_reported() -> None:
    minutes = Minutes()
    for _ in range(2):
        minutes.minute([""] * 2000 + ["192.0.2.1"] * 100)
    assert minutes.reported()[-1][1] < 0.1


def test_few_requests_cause_no_report() -> None:
    minutes = Minutes()
    for _ in range(2):
        minutes.minute(["192.0.2.1"] * 999)
    assert minutes.reported()[-1][1] == 0.0


def test_a_peer_that_sends_more_than_nine_tenths_of_the_requests_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        report("192.0.2.1", 0.9)
        assert not caplog.records
        report("192.0.2.1", 0.91)
    assert "192.0.2.1 made 91 % of the requests" in caplog.text


def test_every_request_is_passed_to_the_application(settings: Any) -> None:
    settings.INSECURE_HTTP = False
    settings.TRUSTED_PROXIES = ["10.0.0.0/8"]
    seen: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    scopes = [
        {"client": ("10.0.0.1", 1), "headers": [(b"x-forwarded-for", b"192.0.2.1")]},
        {"client": None, "headers": []},
    ]
    for scope in scopes:
        asyncio.run(shared_out(application)(scope, None, None))  # type: ignore[arg-type]  # a coroutine, like every application
    assert seen == scopes
