"""Warns an operator when one peer makes nearly all requests. This peer is probably a proxy that is missing in the settings, or a proxy that
does not forward the IP addresses of its clients.

Behind such a proxy, all clients share one rate limit, so one client can use up the requests of all others. The memory that the check needs
does not depend on the number of peers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from django.conf import settings
from prometheus_client import Gauge

from authapi.edge.addresses import compiled
from config.server.hosts import Application, Receive, Scope, Send
from events.metrics import REGISTRY

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 60.0
LARGEST_SHARE = 0.9
# The minimum number of requests in a minute for a report. With fewer requests, it is normal that one client makes most of them.
_FEWEST = 1000
_SHARE = Gauge(
    "request_peer_share",
    "Share of the requests of a minute that one peer sent without a trusted client address; 0 with fewer than a thousand requests.",
    registry=REGISTRY,
    multiprocess_mode="livemax",
)


class PeerShare:
    """Finds the peer that makes most requests, with one counter for all peers.

    In each window, a vote per request finds the only peer that can have the majority (Boyer and Moore). In the next window, the requests of
    this peer are counted.
    """

    def __init__(self, report: Callable[[str, float], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._report = report
        self._clock = clock
        self._ends_at = clock() + WINDOW_SECONDS
        self._candidate, self._votes = "", 0
        self._watched, self._own, self._total = "", 0, 0

    def note(self, peer: str) -> None:
        """Count a request of a peer. `peer` is empty if a trusted proxy has forwarded the IP address of the client."""
        if self._clock() >= self._ends_at:
            self._turn()
        self._total += 1
        if peer and peer == self._watched:
            self._own += 1
        if peer == self._candidate:
            self._votes += 1
        elif self._votes == 0:
            self._candidate, self._votes = peer, 1
        else:
            self._votes -= 1

    def _turn(self) -> None:
        self._report(self._watched, self._own / self._total if self._total >= _FEWEST else 0.0)
        self._watched, self._own, self._total = self._candidate, 0, 0
        self._votes = 0
        self._ends_at = self._clock() + WINDOW_SECONDS


def report(peer: str, share: float) -> None:
    """Publish the share as a metric, and log a warning if it is above nine tenths."""
    _SHARE.set(share)
    if share > LARGEST_SHARE:
        logger.warning(
            "%s made %.0f %% of the requests of a minute. If it is a proxy, name it in TRUSTED_PROXIES and let it set "
            "X-Forwarded-For: now all of its clients share one rate limit.",
            peer,
            share * 100,
        )


def shared_out(application: Application) -> Application:
    """Count the peer of every request. Counts nothing with `INSECURE_HTTP`: on loopback there are no proxies."""
    if settings.INSECURE_HTTP:
        return application
    peers = PeerShare(report)

    # This function is not a coroutine, because each open stream would keep its coroutine in memory.
    def noted(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        peers.note(_silent_peer(scope))
        return application(scope, receive, send)

    return noted


def _silent_peer(scope: Scope) -> str:
    """Return the peer; empty for a trusted proxy that forwards its client's IP address."""
    peer = (scope.get("client") or ("",))[0] or ""
    is_named = compiled(settings.TRUSTED_PROXIES).has(peer) and any(name == b"x-forwarded-for" for name, _ in scope["headers"])
    return "" if is_named else peer or "a unix socket"
