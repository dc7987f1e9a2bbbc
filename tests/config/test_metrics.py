"""Access to the metrics, and sums over processes."""

from __future__ import annotations

import asyncio
import http.client
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings
from pytest_django.plugin import DjangoDbBlocker

from config.metrics import exposition, metrics
from events import figures
from events.metrics import REGISTRY
from identity.models import Tenant
from tests.conformance.target import make_target
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually

ROOT = Path(__file__).resolve().parents[2]


def _status(*, host: str = "localhost", peer: str = "127.0.0.1", method: str = "GET", **headers: str) -> int:
    pairs = [(b"host", host.encode()), *((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items())]
    sent: list[Any] = []

    async def collect(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": "/metrics", "headers": pairs, "client": (peer, 1)}
    asyncio.run(metrics(scope, collect, collect))  # type: ignore[arg-type]  # it receives nothing
    return int(sent[0]["status"])


@pytest.mark.usefixtures("committed_db")
def test_a_host_of_an_allowed_network_can_read_metrics_on_the_platform_host() -> None:
    assert _status() == 200
    assert _status(method="HEAD") == 200
    assert _status(method="POST") == 405


def test_the_metrics_path_does_not_exist_on_the_host_of_a_tenant(tenant: Tenant, settings: Settings) -> None:
    assert _status(host=f"{tenant.pk}.example.test") == 404
    settings.METRICS_TOKEN = "t" * 32
    assert _status(host=f"{tenant.pk}.example.test", authorization=f"Bearer {'t' * 32}") == 404


@pytest.mark.usefixtures("committed_db")
def test_a_client_of_another_network_gets_the_same_404_as_for_an_unknown_path(settings: Settings) -> None:
    assert _status(peer="203.0.113.9") == 404
    assert _status(peer="") == 404
    settings.METRICS_NETWORKS = ["203.0.113.0/24"]
    assert _status(peer="203.0.113.9") == 200
    assert _status(peer="127.0.0.1") == 404


@pytest.mark.usefixtures("committed_db")
def test_a_forwarded_request_for_metrics_is_allowed_by_its_original_ip_address(settings: Settings) -> None:
    assert _status(x_forwarded_for="203.0.113.9") == 404
    # `TRUSTED_PROXIES` does not contain the proxy, so its headers are not trusted, even if they contain a loopback address.
    assert _status(x_forwarded_for="127.0.0.1") == 404
    assert _status(forwarded="for=127.0.0.1") == 404
    settings.TRUSTED_PROXIES = ["127.0.0.1"]
    assert _status(x_forwarded_for="203.0.113.9") == 404
    assert _status(x_forwarded_for="203.0.113.9, 127.0.0.1") == 404
    settings.METRICS_NETWORKS = ["203.0.113.0/24"]
    assert _status(x_forwarded_for="203.0.113.9") == 200


@pytest.mark.usefixtures("committed_db")
def test_access_to_metrics_depends_only_on_the_token_if_a_token_is_configured(settings: Settings) -> None:
    settings.METRICS_TOKEN = "t" * 32
    assert _status() == 401
    assert _status(authorization="Bearer wrong") == 401
    assert _status(authorization=f"Basic {'t' * 32}") == 401
    assert _status(peer="203.0.113.9", authorization=f"Bearer {'t' * 32}") == 200


@pytest.fixture(scope="module")
def two_workers(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebProcess]:
    """Start two processes that listen on one port and share their counters."""
    directory = tmp_path_factory.mktemp("metrics")
    with django_db_blocker.unblock(), web_process("uvicorn-2", PROMETHEUS_MULTIPROC_DIR=str(directory)) as web:
        yield web


def _scrape(web: WebProcess) -> dict[str, float]:
    """Return every metric without its labels, summed over the labels."""
    connection = http.client.HTTPConnection(*web.address, timeout=10)
    connection.request("GET", "/metrics", headers={"Host": "localhost"})
    text = connection.getresponse().read().decode()
    connection.close()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def test_two_processes_behind_one_port_show_the_same_sum(two_workers: WebProcess, tenant: Tenant) -> None:
    target = make_target(tenant, two_workers.address)
    token = target.token()
    streams = [target.subscribe(token=token) for _ in range(8)]
    for stream in streams:
        stream.opened()
    target.write("user.created", "user.updated")
    for stream in streams:
        stream.events(2)
    with target.subscribe(token=token) as ninth:
        assert ninth.status == 403
    # A request reaches either process. Both processes must report the same sum.
    wanted = {"sse_connections": 8.0, "sse_connects_total": 9.0, "sse_events_total": 16.0}
    eventually(lambda: all(_scrape(two_workers).items() >= wanted.items() for _ in range(6)))
    assert _scrape(two_workers)["sse_commit_to_write_seconds_count"] >= 8
    for stream in streams:
        stream.close()
    eventually(lambda: all(_scrape(two_workers).items() >= {"sse_connections": 0.0, "sse_closes_total": 8.0}.items() for _ in range(6)))


def test_metrics_contain_no_tenant_and_no_client_and_no_address() -> None:
    labels = {label for metric in REGISTRY._collector_to_names for label in metric._labelnames}  # type: ignore[attr-defined]
    assert labels <= {"status", "result", "reason", "kind"}


@pytest.mark.usefixtures("committed_db")
def test_every_metric_has_a_row_in_the_reference() -> None:
    page = (ROOT / "docs/reference/metrics.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    shown = {family.name for family in text_string_to_metric_families(exposition().decode())}
    assert {name.removesuffix("_total") for name in documented} == {name.removesuffix("_total") for name in shown}
    assert len(figures.registered()) == 3
