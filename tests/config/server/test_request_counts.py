"""Counters of requests, and of lines of the sign-in log."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from authapi.services import sign_in_log
from config.server.hosts import Receive, Scope, Send
from config.server.request_counts import counted, kind_of
from events.metrics import REGISTRY
from identity.models import Tenant


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def request(path: str, *, status: int | None = 200) -> list[Any]:
    """Send a request through the counter to an application that answers with `status`, or raises an error if `status` is None.

    Return the ASGI messages that the counter sent to the client.
    """
    sent: list[Any] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if status is None:
            raise RuntimeError("failed")
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    async def collect(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def run() -> None:
        await counted(application)({"type": "http", "path": path}, receive, collect)

    asyncio.run(run())
    return sent


def test_a_request_is_counted_with_its_kind_and_its_status_and_its_duration() -> None:
    before = value("http_requests_total", kind="token", status="401"), value("http_request_seconds_count", kind="token")

    sent = request("/oauth/token", status=401)

    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    after = value("http_requests_total", kind="token", status="401"), value("http_request_seconds_count", kind="token")
    assert after == (before[0] + 1, before[1] + 1)


def test_a_failing_application_is_counted_as_500_and_its_error_is_raised() -> None:
    before = value("http_requests_total", kind="pages", status="500")

    with pytest.raises(RuntimeError):
        request("/u/login", status=None)

    assert value("http_requests_total", kind="pages", status="500") == before + 1


@pytest.mark.parametrize("path", ["/api/v2/events", "/admin/events/live/acme/stream"])
def test_requests_for_streams_are_not_counted(path: str) -> None:
    def total() -> float:
        return sum(s.value for metric in REGISTRY.collect() if metric.name == "http_requests" for s in metric.samples)

    before = total()
    assert len(request(path)) == 2
    assert total() == before


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/oauth/token", "token"),
        ("/oauth/token/x", "oauth"),
        ("/api/v2/users", "management"),
        ("/", "other"),
        ("", "other"),
        ("/x1/y", "other"),
    ],
)
def test_a_path_has_one_of_a_fixed_number_of_kinds(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_lines_of_the_sign_in_log_are_counted_by_type(tenant: Tenant) -> None:
    before = {kind: value("sign_in_log_lines_total", kind=kind) for kind in ("fp", "other")}

    sign_in_log.note(tenant_id=tenant.pk, type="fp", is_success=False)
    sign_in_log.note(tenant_id=tenant.pk, type="invented", is_success=False)

    assert {kind: value("sign_in_log_lines_total", kind=kind) for kind in before} == {kind: before[kind] + 1 for kind in before}
