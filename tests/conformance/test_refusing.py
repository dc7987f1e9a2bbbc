"""A refused request never begins a stream with status 200. It gets the status, the body and the headers that the interface defines."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.services.clients import revoke_client
from events.models import LogEntry
from identity.models import Tenant
from tests.conformance.reader import Subscriber
from tests.conformance.target import Target, make_target
from tests.conformance.web_process import WebProcess
from tests.factories.models.identity import TenantFactory

RATE_HEADERS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}


def _refused(stream: Subscriber, status: int, code: str | None) -> dict[str, Any]:
    with stream:
        document: dict[str, Any] = stream.document()
        assert (stream.status, document.get("errorCode")) == (status, code), document
        assert document["statusCode"] == status
        assert document["error"]
        assert document["message"]
        assert set(document) == {"statusCode", "error", "message"} | ({"errorCode"} if code else set())
        assert stream.headers["content-type"].startswith("application/json")
        return document


@pytest.mark.remote
@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("event_type=user.created&event_type=user.vanished&event_type=nope", ["user.vanished", "nope"]),
        ("from=a&from=b", ["from"]),
        ("from_timestamp=2026-01-01T00:00:00Z&from_timestamp=2026-01-01T00:00:00Z", ["from_timestamp"]),
        ("colour=red&size=9", ["colour", "size"]),
        ("from=" + "a" * 1025, ["1024"]),
        ("from_timestamp=2026-01-01T00:00:00.000Z", ["20"]),
        ("from_timestamp=2026-01-01", ["from_timestamp"]),
        ("from_timestamp=2026-13-01T00:00:00Z", ["from_timestamp"]),
        ("from=abc&from_timestamp=2026-01-01T00:00:00Z", ["from", "from_timestamp"]),
        ("from=%ff", []),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_the_refusal_of_an_invalid_query_names_its_parameter(target: Target, query: str, named: list[str]) -> None:
    message = _refused(target.subscribe(query), 400, "invalid_query_string")["message"]
    assert all(name in message for name in named), message


@pytest.mark.remote
@pytest.mark.parametrize("cursor", ["x", "not a cursor", "A" * 42, "é", "a" * 1024], ids=["short", "words", "zeros", "not ascii", "long"])
def test_a_forged_cursor_is_refused(target: Target, cursor: str) -> None:
    _refused(target.subscribe({"from": cursor}), 400, "invalid_cursor")
    if cursor.isascii():
        _refused(target.subscribe(headers={"Last-Event-ID": cursor}), 400, "invalid_cursor")


def test_a_cursor_of_another_tenant_is_refused(target: Target, another: Target) -> None:
    with another.subscribe() as stream:
        foreign = stream.opened().id
    _refused(target.subscribe({"from": foreign}), 400, "invalid_cursor")


@pytest.mark.remote
def test_a_changed_cursor_is_refused(target: Target) -> None:
    with target.subscribe() as stream:
        offset = stream.opened().id or ""
    for place in (0, 5, 20, len(offset) - 2):
        changed = offset[:place] + ("A" if offset[place] != "A" else "B") + offset[place + 1 :]
        _refused(target.subscribe({"from": changed}), 400, "invalid_cursor")


@pytest.mark.remote
@pytest.mark.parametrize(
    "authorization",
    [None, "Bearer", "Bearer x.y.z", "Basic abc", "Bearer " + "a" * 8000],
    ids=["none", "scheme alone", "not a token", "another scheme", "long"],
)
def test_a_missing_or_unreadable_token_gets_401_with_a_challenge(target: Target, authorization: str | None) -> None:
    stream = target.subscribe(headers={"Authorization": authorization})
    assert stream.headers["www-authenticate"].startswith("Bearer")
    assert stream.headers.keys() >= RATE_HEADERS
    _refused(stream, 401, None)


def test_a_token_for_another_audience_gets_the_error_that_its_client_is_not_global(target: Target) -> None:
    stream = target.subscribe(token=target.token(audience="https://elsewhere.example/"))
    assert _refused(stream, 401, None)["message"] == "Client is not global."


@pytest.mark.remote
def test_a_token_whose_signature_was_changed_is_refused(target: Target) -> None:
    token = target.token()
    stream = target.subscribe(token=token[:-6] + ("AAAAAA" if not token.endswith("AAAAAA") else "BBBBBB"))
    assert _refused(stream, 401, None)["message"] == "Invalid signature received for JSON Web Token validation."


def test_a_token_of_a_revoked_client_is_refused(target: Target) -> None:
    token = target.token()
    revoke_client(tenant_id=target.tenant.pk, client_id=target.client.client_id)
    _refused(target.subscribe(token=token), 401, None)


@pytest.mark.transport
def test_a_token_without_the_scope_gets_403(target: Target) -> None:
    stream = target.subscribe(token=target.token(scopes=("read:users",)))
    assert stream.headers.keys() >= RATE_HEADERS
    assert "read:events" in _refused(stream, 403, "insufficient_scope")["message"]


def test_the_scope_is_checked_before_the_query(target: Target) -> None:
    _refused(target.subscribe("colour=red", token=target.token(scopes=())), 403, "insufficient_scope")


@pytest.mark.remote
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
@pytest.mark.transport
def test_only_the_method_get_is_allowed(target: Target, method: str) -> None:
    with target.subscribe(method=method, headers={"Content-Length": "0"}) as stream:
        assert stream.status == 405
        assert stream.headers["allow"] == "GET"


@pytest.mark.transport
def test_an_unregistered_host_gets_404_before_any_other_check(target: Target) -> None:
    _refused(target.subscribe(headers={"Host": "nobody.example.test", "Authorization": None}), 404, None)


def test_a_suspended_tenant_gets_403(target: Target) -> None:
    token = target.token()
    Tenant.objects.filter(pk=target.tenant.pk).update(status="suspended")
    _refused(target.subscribe(token=token, headers={"Authorization": None}), 403, "tenant_suspended")


def test_a_token_of_one_tenant_is_refused_at_another_tenant(target: Target, another: Target) -> None:
    with target.subscribe(token=another.token()) as stream:
        assert stream.status == 401


@pytest.fixture
def another(target: Target) -> Target:
    """A second tenant on the same server."""
    name = f"{target.tenant.pk}-b"
    return make_target(TenantFactory.create(id=name, name=name, host=f"{name}.example.test"), target.address)


def test_a_stream_that_is_refused_for_an_unreadable_log_releases_its_slot(target: Target) -> None:
    Tenant.objects.filter(pk=target.tenant.pk).update(max_event_connections=3)
    with target.subscribe() as stream:
        start = stream.opened().id
    target.write("user.created", "user.created")
    LogEntry.objects.filter(tenant_id=target.tenant.pk, position=target.head().position - 1).delete()
    for _ in range(5):
        _refused(target.subscribe({"from": start}), 503, "unavailable")


@pytest.mark.transport
def test_the_log_of_the_server_contains_no_query(target: Target, server: WebProcess) -> None:
    with target.subscribe({"from": "an-offset-that-nobody-else-should-see"}) as refused:
        assert refused.status == 400
    assert "an-offset-that-nobody-else-should-see" not in server.log.read_text()
