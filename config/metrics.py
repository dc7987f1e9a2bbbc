"""`/metrics` for Prometheus: on the platform's host alone, and only for whoever the settings let in.

Each process counts for itself. With `PROMETHEUS_MULTIPROC_DIR` they share their counts through files, so it does not
matter which process of a machine answers; without it a scrape sees the process that it happens to reach.
"""

from __future__ import annotations

from hmac import compare_digest
from pathlib import Path

from django.conf import settings
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

import config.server.peer_share
import config.server.request_counts  # noqa: F401  (both register their figures)
from authapi.edge.addresses import client_address
from config.server.hosts import Receive, Scope, Send, answer, header, is_believed
from config.server.probes import is_direct
from events import figures
from events.metrics import REGISTRY
from events.stream.refusals import BEARER, Refused
from foundation.memory import executor
from identity.hosts import is_platform_host

_LIVE_GAUGES = "gauge_live*_*.db"
_FORWARDED = (b"x-forwarded-for", b"forwarded", b"x-real-ip")


async def metrics(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a scrape."""
    try:
        require_reader(scope)
        body = await executor.run(exposition)
    except Refused as refusal:
        await answer(send, refusal, head_only=scope["method"] == "HEAD")
        return
    headers = [
        (b"content-type", CONTENT_TYPE_LATEST.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def require_reader(scope: Scope) -> None:
    """Refuse whoever may not read the figures.

    On a tenant's host the address does not exist. With `METRICS_TOKEN` the token alone decides, wherever it comes
    from: 401 without it; the IP address of the process then counts as the platform's host. Otherwise `METRICS_NETWORKS`
    decide, and everybody else gets 404.
    """
    if not is_platform_host(header(scope, b"host")) and not (settings.METRICS_TOKEN and is_direct(scope)):
        raise Refused(404, "The address does not exist.")
    if scope["method"] not in {"GET", "HEAD"}:
        raise Refused(405, "This operation answers to GET only.", headers=[(b"allow", b"GET, HEAD")])
    if settings.METRICS_TOKEN:
        scheme, _, token = header(scope, b"authorization").partition(" ")
        if scheme.lower() != "bearer" or not compare_digest(token.strip().encode(), settings.METRICS_TOKEN.encode()):
            raise Refused(401, "The token of the metrics is needed.", headers=[(b"www-authenticate", BEARER)])
    elif not is_believed(_reader_of(scope), settings.METRICS_NETWORKS):
        raise Refused(404, "The address does not exist.")


def exposition() -> bytes:
    """Return every figure as text. Reads the database, so not for the event loop's own thread."""
    return generate_latest(scraped())


def scraped() -> CollectorRegistry:
    """Return a registry of what all processes have counted and what the database knows."""
    registry = CollectorRegistry()
    directory = settings.PROMETHEUS_MULTIPROC_DIR
    if directory:
        forget_dead_processes(Path(directory))
        MultiProcessCollector(registry, path=directory)  # type: ignore[no-untyped-call]  # the library has no types there
    else:
        registry.register(REGISTRY)
    for found in figures.registered():
        registry.register(found)
    return registry


def forget_dead_processes(directory: Path) -> None:
    """Drop the gauges of processes that have ended. Their counters stay: what happened has happened."""
    for pid in {path.stem.rpartition("_")[2] for path in directory.glob(_LIVE_GAUGES)}:
        if not Path(f"/proc/{pid}").exists():
            mark_process_dead(pid, path=str(directory))  # type: ignore[no-untyped-call]  # the library has no types there


def _reader_of(scope: Scope) -> str:
    peer = str((scope.get("client") or ("",))[0] or "")
    if not any(name in _FORWARDED for name, _ in scope["headers"]):
        return peer
    # Behind a proxy that nobody has declared, everybody in the world would look like a neighbour.
    if not is_believed(peer, settings.TRUSTED_PROXIES):
        return ""
    return client_address(peer, header(scope, b"x-forwarded-for"), settings.TRUSTED_PROXIES)
