"""`/metrics` for Prometheus. Allowed clients read it on the platform's host. With a token, they may also use the IP address of a process.

Each process has its own counters. With `PROMETHEUS_MULTIPROC_DIR`, processes share the counters through files, so every process of a
machine can answer for all processes. Without this setting, a scrape reads only the process that answers.
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
    """Refuse a client that may not read the metrics.

    - On the host of a tenant, every client gets 404.
    - If `METRICS_TOKEN` is set, a client without this token gets 401. A client with this token may also use the IP address of the process
      as the host of the URL.
    - If `METRICS_TOKEN` is not set, a client outside `METRICS_NETWORKS` gets 404.
    """
    if not is_platform_host(header(scope, b"host")) and not (settings.METRICS_TOKEN and is_direct(scope)):
        raise Refused(404, "The address does not exist.")
    if scope["method"] not in {"GET", "HEAD"}:
        raise Refused(405, "This operation answers to GET only.", headers=[(b"allow", b"GET, HEAD")])
    if settings.METRICS_TOKEN:
        scheme, _, token = header(scope, b"authorization").partition(" ")
        if scheme.lower() != "bearer" or not compare_digest(token.strip().encode(), settings.METRICS_TOKEN.encode()):
            raise Refused(401, "This operation needs the token of the metrics.", headers=[(b"www-authenticate", BEARER)])
    elif not is_believed(_reader_of(scope), settings.METRICS_NETWORKS):
        raise Refused(404, "The address does not exist.")


def exposition() -> bytes:
    """Return all metrics as text. Reads the database, so do not call it on the thread of the event loop."""
    return generate_latest(scraped())


def scraped() -> CollectorRegistry:
    """Return a registry with the counters of all processes and the metrics from the database."""
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
    """Drop the gauges of ended processes. Counters are kept, because they count past events."""
    for pid in {path.stem.rpartition("_")[2] for path in directory.glob(_LIVE_GAUGES)}:
        if not Path(f"/proc/{pid}").exists():
            mark_process_dead(pid, path=str(directory))  # type: ignore[no-untyped-call]  # the library has no types there


def _reader_of(scope: Scope) -> str:
    peer = str((scope.get("client") or ("",))[0] or "")
    if not any(name in _FORWARDED for name, _ in scope["headers"]):
        return peer
    # If the proxy is not in TRUSTED_PROXIES, its own IP address says nothing about the client: every client on the internet would appear to
    # be in the proxy's network.
    if not is_believed(peer, settings.TRUSTED_PROXIES):
        return ""
    return client_address(peer, header(scope, b"x-forwarded-for"), settings.TRUSTED_PROXIES)
