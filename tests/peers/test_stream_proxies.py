"""The event stream behind third-party proxies. A proxy must not delay or compress the stream.

After the client has disconnected, the proxy must not keep its own connection to the service open.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django.plugin import DjangoDbBlocker

from identity.models import Tenant
from tests.conformance.reader import Subscriber
from tests.conformance.target import Target, make_target
from tests.conformance.web_process import WebProcess, web_process
from tests.peers.proxies import PROXIES, Running, proxy

pytestmark = pytest.mark.peer

HEARTBEAT_SECONDS = 0.5
# The limit for the delay of a frame. A frame in the buffer of a proxy arrives with the next frame or never. A busy machine delays a frame
# much less than this limit.
PROMPT_SECONDS = 2.0


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock():
        with web_process("uvicorn", EVENTS_HEARTBEAT_SECONDS=str(HEARTBEAT_SECONDS), RATE_LIMIT_BURST="100000") as running:
            yield running


@pytest.fixture(scope="module", params=PROXIES)
def front(request: pytest.FixtureRequest, web: WebProcess) -> Iterator[Running]:
    with proxy(request.param, web.address) as running:
        yield running


@pytest.fixture
def target(front: Running, tenant: Tenant) -> Target:
    """Return a new tenant behind the proxy. The tenant may have only one open stream."""
    Tenant.objects.filter(pk=tenant.pk).update(max_event_connections=1)
    return make_target(tenant, front.address)


def _subscribed_when_free(target: Target, token: str, *, within: float = 5.0, **options: Any) -> Subscriber:
    """Open the only stream of the tenant. Repeat the request for at most `within` seconds until the slot of the previous stream is free."""
    deadline = time.monotonic() + within
    while True:
        stream = target.subscribe(token=token, **options)
        if stream.status == 200:
            return stream
        assert stream.status == 403
        stream.close()
        assert time.monotonic() < deadline, "the proxy keeps its connection to the service open"
        time.sleep(0.1)


def test_events_arrive_through_a_proxy_and_a_disconnected_stream_frees_its_slot(target: Target) -> None:
    token = target.token()
    packed = {"Accept-Encoding": "gzip, zstd, br"}
    started = time.monotonic()
    with target.subscribe(token=token, headers=packed) as stream:
        first = stream.opened()
        assert time.monotonic() - started < PROMPT_SECONDS
        assert stream.headers["content-encoding"] == "identity"
        for _ in range(3):
            asked = time.monotonic()
            while stream.block(within=PROMPT_SECONDS).event != "offset-only":
                assert time.monotonic() - asked < HEARTBEAT_SECONDS + PROMPT_SECONDS
        ids = target.write("user.created")
        assert [block.message["event"]["id"] for block in stream.events(1, within=PROMPT_SECONDS)] == ids
        with target.subscribe(token=token) as second:
            assert second.status == 403
    ids += target.write("user.updated", "user.deleted")
    with _subscribed_when_free(target, token, query={"from": first.id}, headers=packed) as stream:
        stream.opened()
        assert [block.message["event"]["id"] for block in stream.events(3, within=PROMPT_SECONDS * 2)] == ids


def test_a_stream_over_http2_has_no_delay_and_frees_its_slot(front: Running, target: Target) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed: make test-peers")
    token = target.token()
    address = f"http://{front.address_of_http2[0]}:{front.address_of_http2[1]}/api/v2/events"
    command = [curl, "--silent", "--no-buffer", "--include", "--http2-prior-knowledge", "--compressed", "--max-time", "60"]
    command += ["--header", f"Host: {target.host}", "--header", f"Authorization: Bearer {token}", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            assert next(lines).startswith("HTTP/2 200")
            head = [line.lower() for line in iter(lambda: next(lines).strip(), "")]
            assert [line for line in head if line.startswith("content-encoding")] == ["content-encoding: identity"]
            while not next(lines).startswith("id: "):
                pass
            started = time.monotonic()
            [expected] = target.write("user.created")
            assert re.search(expected, next(line for line in lines if line.startswith("data: ") and "user.created" in line))
            assert time.monotonic() - started < PROMPT_SECONDS
        finally:
            process.kill()
    _subscribed_when_free(target, token).close()
