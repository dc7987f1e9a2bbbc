"""Probes and metrics requests that reach a web process by its IP address."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from config.server.probes import LIVE, READY, is_direct
from identity.models import Tenant
from tests.conformance.target import make_target
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually

TOKEN = "t" * 32


def status(web: WebProcess, path: str, *, method: str = "GET", **headers: str) -> int:
    """Request a path as an orchestrator does: the Host header is the IP address of the process."""
    connection = http.client.HTTPConnection(*web.address, timeout=10)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    """Start a process that requires TLS, as in production."""
    with django_db_blocker.unblock(), web_process("uvicorn", INSECURE_HTTP="0", METRICS_TOKEN=TOKEN) as running:
        yield running


def test_a_running_process_is_live_and_ready_over_plain_http(web: WebProcess) -> None:
    assert [status(web, path, method=method) for path in (LIVE, READY) for method in ("GET", "HEAD")] == [200] * 4


def test_the_probe_paths_do_not_exist_on_a_host_name_or_behind_a_proxy(web: WebProcess, tenant: Tenant) -> None:
    assert status(web, LIVE, Host=f"{tenant.pk}.example.test") == 308
    assert status(web, READY, X_Forwarded_For="203.0.113.9") == 404
    assert status(web, READY, method="POST") == 404


def test_a_metrics_request_by_ip_address_requires_the_token(web: WebProcess) -> None:
    assert status(web, "/metrics") == 401
    assert status(web, "/metrics", Authorization=f"Bearer {TOKEN}") == 200
    assert status(web, "/metrics", Authorization=f"Bearer {TOKEN}", X_Forwarded_For="203.0.113.9") == 404


def test_metrics_do_not_exist_by_ip_address_if_no_token_is_configured() -> None:
    with web_process("uvicorn", INSECURE_HTTP="0", METRICS_TOKEN="", PLATFORM_HOST="console.example.test") as running:
        assert status(running, "/metrics") == 404


def test_a_process_without_a_database_is_live_but_not_ready() -> None:
    with web_process("uvicorn", DATABASE_URL="postgresql://identity@127.0.0.1:1/identity") as running:
        assert status(running, LIVE) == 200
        assert status(running, READY) == 503


def test_a_process_that_closes_its_streams_is_live_but_not_ready(tenant: Tenant) -> None:
    with web_process("uvicorn", EVENTS_DRAIN_SECONDS="30") as running:
        target = make_target(tenant, running.address)
        streams = [target.subscribe(token=target.token()) for _ in range(3)]
        for stream in streams:
            stream.opened()
        assert status(running, READY) == 200
        running.terminate()
        eventually(lambda: status(running, READY) == 503)
        assert status(running, LIVE) == 200
        for stream in streams:
            stream.close()


@pytest.mark.parametrize(
    ("host", "direct"),
    [("10.1.2.3", True), ("10.1.2.3:8000", True), ("[fd00::7]:8000", True), ("id.example.test", False), ("10.1.2", False), ("", False)],
)
def test_a_request_is_direct_only_if_its_host_header_is_an_ip_address(host: str, *, direct: bool) -> None:
    assert is_direct({"headers": [(b"host", host.encode())]}) is direct
