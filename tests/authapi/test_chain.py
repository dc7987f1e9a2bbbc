"""The steps around a hot endpoint (an endpoint that is served without Django), also if the endpoint fails or the client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError
from oauthlib.oauth2 import InvalidGrantError, InvalidScopeError

from authapi.edge.charging import Charge
from authapi.views import chain
from authapi.views.chain import Answer, Call, hot_endpoint
from identity.models import Tenant
from tests.authapi.asgi_client import send
from tests.factories.authapi import host_of


def failing(error: Exception) -> Callable[[Call], Answer]:
    def endpoint(_call: Call) -> Answer:
        raise error

    return endpoint


@pytest.mark.parametrize(
    ("error", "status", "code", "description"),
    [
        (OperationalError("password=canary"), 503, "temporarily_unavailable", "The service cannot answer right now. Try again."),
        (ZeroDivisionError("canary"), 500, "server_error", "The service met an unexpected condition."),
        (InvalidGrantError("Invalid authorization code"), 403, "invalid_grant", "Invalid authorization code"),
        (InvalidScopeError(), 400, "invalid_scope", "invalid scope"),
    ],
)
def test_each_failure_gets_the_answer_that_the_table_of_failures_defines(
    tenant: Tenant, error: Exception, status: int, code: str, description: str
) -> None:
    application = hot_endpoint(failing(error), name="probe", methods=("GET",))
    answer = send(application, "GET", host=f"{tenant.pk}.example.test")
    assert (answer.status, answer.json()) == (status, {"error": code, "error_description": description})
    assert "www-authenticate" not in answer.headers
    assert ("retry-after" in answer.headers) == (status == 503)


@pytest.mark.parametrize("other", ["nobody.example.test", "tenant"])
def test_a_repeated_host_header_is_refused(tenant: Tenant, other: str) -> None:
    host = f"{tenant.pk}.example.test"
    application = hot_endpoint(lambda _call: Answer(200, b""), name="probe", methods=("GET",))
    repeated = (("Host", host if other == "tenant" else other),)
    for first, lines in ((host, repeated), (repeated[0][1], (("host", host),))):
        assert send(application, "GET", host=first, repeated=lines).status == 404


def test_repeated_lines_of_a_header_are_joined_to_one_list(tenant: Tenant, settings: Any) -> None:
    settings.TRUSTED_PROXIES = ["192.0.2.0/24"]
    seen: list[Call] = []

    def endpoint(call: Call) -> Answer:
        seen.append(call)
        return Answer(200, b"")

    application = hot_endpoint(endpoint, name="probe", methods=("GET",))
    # Each of two proxies adds a line. The line of the first proxy contains the address of the client.
    lines = (
        ("X-Forwarded-For", "198.51.100.7"),
        ("X-Forwarded-For", "192.0.2.9"),
        ("Authorization", "Bearer a"),
        ("authorization", "Bearer b"),
    )
    assert send(application, "GET", host=f"{tenant.pk}.example.test", repeated=lines).status == 200
    assert (seen[0].address, seen[0].headers["authorization"]) == ("198.51.100.7", "Bearer a, Bearer b")


def test_a_client_that_disconnects_while_sending_gets_no_answer(tenant: Tenant) -> None:
    reached: list[Call] = []

    def endpoint(call: Call) -> Answer:
        reached.append(call)
        return Answer(200, b"")

    application = hot_endpoint(endpoint, name="probe", methods=("POST",))
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def collect(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", f"{tenant.pk}.example.test".encode())], "client": None}
    asyncio.run(application(scope, receive, collect))  # type: ignore[arg-type]
    assert (sent, reached) == ([], [])


def test_a_body_that_arrives_too_slowly_is_refused_with_408(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "_BODY_SECONDS", 0.05)
    application = hot_endpoint(failing(AssertionError()), name="probe", methods=("POST",))
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b"a", "more_body": True}

    async def collect(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", f"{tenant.pk}.example.test".encode())], "client": None}
    asyncio.run(application(scope, receive, collect))  # type: ignore[arg-type]
    assert sent[0]["status"] == 408


def test_the_repr_of_a_call_contains_no_header_or_body(tenant: Tenant) -> None:
    call = Call(host_of(tenant), "192.0.2.1", {"authorization": "Basic canary"}, b"client_secret=canary", Charge(tenant.pk, "token"))
    assert "canary" not in repr(call)
