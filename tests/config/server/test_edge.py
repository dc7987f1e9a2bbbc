"""The edge of a web process: TLS, hosts, bounded bodies, bounded numbers of requests, and no WebSocket."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
import pytest
from pytest_django import Settings

from config.asgi import application, refuse_websocket, routes
from config.server.bounds import bounded_body, bounded_count
from config.server.hosts import Application, Receive, Scope, Send, for_tenant, guarded, is_believed
from identity import hosts
from identity.models import Tenant
from tests.factories.admin import new_tenant

HTML = b"text/html,application/xhtml+xml,*/*;q=0.8"


@dataclass
class Answer:
    """An application's answer to a request."""

    status: int
    headers: dict[str, str]
    body: bytes


async def ok(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the request that the application received."""
    body = b""
    while (message := await receive())["type"] == "http.request":
        body += message["body"]
        if not message.get("more_body"):
            break
    seen = {
        "scheme": scope["scheme"],
        "root_path": scope["root_path"],
        "body": len(body),
        "names": [name.decode() for name, _ in scope["headers"]],
    }
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": orjson.dumps(seen)})


def _scope(method: str = "GET", path: str = "/users", host: str = "x.example.test", **changes: Any) -> dict[str, Any]:
    extra = changes.pop("headers", [])
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "scheme": "http"}
    return scope | {"root_path": "", "client": ("10.0.0.9", 1), "headers": [(b"host", host.encode()), *extra]} | changes


def _asked(app: Application, scope: Scope, chunks: Iterable[bytes] = (b"",), *, stays: bool = False) -> Answer:
    return asyncio.run(_answered(app, scope, chunks, stays=stays))


async def _answered(app: Application, scope: Scope, chunks: Iterable[bytes] = (b"",), *, stays: bool = False) -> Answer:
    """Return the answer to a request with this body. The client disconnects after the last chunk, unless `stays` is true.

    Tests with a Django application need `stays`, because Django cancels a request whose client disconnects.
    """
    waiting = list(chunks)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if not waiting:
            if stays:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    async def send(message: Any) -> None:
        sent.append(message)

    async with asyncio.timeout(10):
        await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:]))


@pytest.fixture(params=["unknown", "suspended", "moving"])
def refused_host(request: pytest.FixtureRequest, tenant: Tenant) -> tuple[str, int, str]:
    """Return a host that no active tenant has, the status of the errors for this host, and the heading of the error page."""
    status, code, heading = {
        "unknown": ("", 404, "No tenant at this address"),
        "suspended": ("suspended", 403, "The tenant is not active"),
        "moving": ("stopped", 503, "The service is not available"),
    }[request.param]
    if status:
        Tenant.objects.filter(pk=tenant.pk).update(status=status)
    return (f"{tenant.pk}.example.test" if status else "unknown.example.test"), code, heading


@pytest.fixture
def over_tls(settings: Settings) -> None:
    settings.INSECURE_HTTP = False
    settings.TRUSTED_PROXIES = ["10.0.0.0/24"]


@pytest.mark.usefixtures("over_tls", "committed_db")
def test_a_host_longer_than_any_valid_name_is_unknown_and_not_cached() -> None:
    host = "a" * 60_000 + ".example.test"
    assert _asked(for_tenant(ok), _scope(host=host)).status == 404
    assert host not in hosts.matches._entries


def test_a_unix_socket_is_trusted_if_the_setting_lists_it() -> None:
    assert is_believed("", ["10.0.0.0/24", "unix:"])
    assert not is_believed("", ["10.0.0.0/24"])


@pytest.mark.usefixtures("over_tls")
def test_plain_http_redirects_safe_methods_and_refuses_other_methods(tenant: Tenant) -> None:
    host = f"{tenant.pk}.example.test"
    moved = _asked(guarded(ok), _scope(host=host, path="/a%20b", query_string=b"c=d"))
    assert (moved.status, moved.headers["location"]) == (308, f"https://{host}/a%20b?c=d")
    assert _asked(guarded(ok), _scope("POST", host=host)).status == 400


@pytest.mark.usefixtures("over_tls")
@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke", "/userinfo", "/dbconnections/signup"])
def test_an_oauth_endpoint_answers_plain_http_with_an_oauth_error(tenant: Tenant, path: str) -> None:
    refused = _asked(guarded(ok), _scope("POST", host=f"{tenant.pk}.example.test", path=path))
    expected = {"error": "invalid_request", "error_description": "This service answers over HTTPS only."}
    assert (refused.status, orjson.loads(refused.body)) == (400, expected)
    assert refused.headers["access-control-allow-origin"] == "*"
    unknown = _asked(guarded(ok), _scope("POST", host="evil.example", path=path))
    assert (unknown.status, orjson.loads(unknown.body)["error"]) == (404, "not_found")
    management = _asked(guarded(ok), _scope("POST", host=f"{tenant.pk}.example.test", path="/api/v2/users"))
    assert orjson.loads(management.body)["errorCode"] == "insecure_transport"


@pytest.mark.usefixtures("over_tls")
def test_a_token_sent_over_plain_http_is_not_redirected(tenant: Tenant) -> None:
    scope = _scope(host=f"{tenant.pk}.example.test", path="/userinfo", query_string=b"access_token=secret")
    refused = _asked(guarded(ok), scope)
    assert refused.status == 400
    assert "secret" not in str(refused)


@pytest.mark.usefixtures("over_tls", "committed_db")
def test_an_unregistered_host_is_never_a_redirect_target() -> None:
    assert _asked(guarded(ok), _scope(host="evil.example")).status == 404


@pytest.mark.usefixtures("over_tls", "committed_db")
@pytest.mark.parametrize("headers", [{b"accept": HTML}, {b"accept": HTML, b"sec-fetch-mode": b"navigate"}])
def test_a_browser_gets_a_page_for_an_unknown_host_over_plain_http(headers: dict[bytes, bytes]) -> None:
    sent = partial(_scope, host="unknown.example.test", path="/login", headers=list(headers.items()))
    shown = _asked(guarded(ok), sent())
    assert (shown.status, shown.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "No tenant answers on this host. Check the address for typing errors." in shown.body.decode()
    assert shown.headers["cache-control"] == "no-store"
    head = _asked(guarded(ok), sent("HEAD"))
    assert (head.status, head.body) == (404, b"")


@pytest.mark.usefixtures("over_tls", "committed_db")
def test_the_page_for_an_unknown_host_over_plain_http_can_load_its_static_files() -> None:
    app, sent = guarded(routes("all")), partial(_scope, host="unknown.example.test", server=("10.0.0.1", 80))
    page = _asked(app, sent(path="/login", headers=[(b"accept", HTML)])).body.decode()
    files = re.findall(r'href="(/static/[^"]+)"', page)
    assert "/static/theme/errors.css" in files
    for file in files:
        for method in ("GET", "HEAD"):
            assert _asked(app, sent(method, path=file), stays=True).status == 200, (method, file)
    assert _asked(app, sent("POST", path=files[0])).status == 404
    assert _asked(app, sent(path="/staticx")).status == 404


@pytest.mark.usefixtures("over_tls")
def test_static_files_on_the_host_of_a_tenant_are_redirected_from_plain_http(tenant: Tenant) -> None:
    assert _asked(guarded(ok), _scope(host=f"{tenant.pk}.example.test", path="/static/theme/errors.css")).status == 308


@pytest.mark.usefixtures("over_tls")
def test_a_browser_that_sends_a_form_over_plain_http_gets_a_page_about_https(tenant: Tenant) -> None:
    sent = _scope("POST", host=f"{tenant.pk}.example.test", path="/login", headers=[(b"accept", HTML)])
    shown = _asked(guarded(ok), sent)
    assert (shown.status, shown.headers["content-type"]) == (400, "text/html; charset=utf-8")
    assert "HTTPS only" in shown.body.decode()


@pytest.mark.usefixtures("over_tls", "committed_db")
@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/login", {b"accept": b"*/*"}),
        ("/login", {b"accept": HTML, b"sec-fetch-mode": b"cors"}),
        ("/api/v2/users", {b"accept": HTML, b"sec-fetch-mode": b"navigate"}),
    ],
)
def test_a_program_gets_an_error_object_for_an_unknown_host_over_plain_http(path: str, headers: dict[bytes, bytes]) -> None:
    refused = _asked(guarded(ok), _scope(host="unknown.example.test", path=path, headers=list(headers.items())))
    assert refused.status == 404
    assert orjson.loads(refused.body) == {"statusCode": 404, "error": "Not Found", "message": "No tenant answers on this host."}


@pytest.mark.usefixtures("over_tls")
def test_a_browser_is_redirected_from_plain_http(tenant: Tenant) -> None:
    host = f"{tenant.pk}.example.test"
    moved = _asked(guarded(ok), _scope(host=host, path="/login", headers=[(b"accept", HTML)]))
    assert (moved.status, moved.headers["location"]) == (308, f"https://{host}/login")
    assert "not available" not in moved.body.decode()


@pytest.mark.usefixtures("over_tls")
def test_a_redirect_never_changes_the_host(tenant: Tenant) -> None:
    moved = _asked(guarded(ok), _scope(host=f"{tenant.pk}.example.test", path="//evil.example/x"))
    assert moved.headers["location"] == f"https://{tenant.pk}.example.test/evil.example/x"


@pytest.mark.usefixtures("over_tls")
def test_only_a_trusted_proxy_may_report_tls(tenant: Tenant) -> None:
    forwarded = [(b"x-forwarded-proto", b"https")]
    host = f"{tenant.pk}.example.test"
    believed = _asked(guarded(ok), _scope("POST", host=host, headers=forwarded))
    assert (believed.status, orjson.loads(believed.body)["scheme"]) == (200, "https")
    assert _asked(guarded(ok), _scope("POST", host=host, headers=forwarded, client=("203.0.113.5", 1))).status == 400
    assert _asked(guarded(ok), _scope("POST", host=host, headers=forwarded * 2)).status == 400
    assert _asked(guarded(ok), _scope("POST", host=host, scheme="https", client=("203.0.113.5", 1))).status == 200


@pytest.mark.parametrize(
    ("server", "status"),
    [
        (("127.0.0.1", 80), 200),
        (("::1", 80), 200),
        (None, 200),
        (("/run/web.sock", None), 200),
        (("0.0.0.0", 80), 403),  # noqa: S104 (an insecure server binds to all addresses)
        (("192.0.2.7", 80), 403),
    ],
)
def test_plain_http_is_refused_on_a_listener_that_other_machines_can_reach(
    settings: Settings, server: tuple[str, int | None] | None, status: int
) -> None:
    settings.INSECURE_HTTP = True
    assert _asked(guarded(ok), _scope(server=server)).status == status


@pytest.mark.parametrize(("address", "believed"), [("10.0.0.1", True), ("10.1.0.1", False), ("::1", True), ("", False), ("unix", False)])
def test_trusted_proxies_are_addresses_or_networks(address: str, *, believed: bool) -> None:
    assert is_believed(address, ["10.0.0.0/24", "::1"]) is believed


def test_a_client_cannot_set_the_root_path() -> None:
    answer = _asked(guarded(ok), _scope(headers=[(b"daphne-root-path", b"/evil")], root_path="/evil"))
    seen = orjson.loads(answer.body)
    assert seen["root_path"] == ""
    assert "daphne-root-path" not in seen["names"]


def test_the_edge_resolves_the_host_before_all_other_work(tenant: Tenant) -> None:
    app = for_tenant(ok)
    assert _asked(app, _scope(host=f"{tenant.pk}.example.test")).status == 200
    unknown = _asked(app, _scope(host="unknown.example.test"))
    assert unknown.status == 404
    assert orjson.loads(unknown.body) == {"statusCode": 404, "error": "Not Found", "message": "No tenant answers on this host."}
    assert _asked(app, _scope(host="unknown.example.test, other")).status == 404
    doubled = _scope(host=f"{tenant.pk}.example.test", headers=[(b"host", b"unknown.example.test")])
    assert _asked(app, doubled).status == 404


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/login", {b"accept": b"*/*"}),
        ("/login", {b"accept": HTML, b"sec-fetch-mode": b"cors"}),
        ("/api/v2/users", {b"accept": HTML, b"sec-fetch-mode": b"navigate"}),
    ],
)
def test_a_program_gets_an_error_object_for_a_refused_host(
    refused_host: tuple[str, int, str], path: str, headers: dict[bytes, bytes]
) -> None:
    host, status, _ = refused_host
    answer = _asked(for_tenant(ok, platform=True), _scope(host=host, path=path, headers=list(headers.items())))
    assert (answer.status, orjson.loads(answer.body)["statusCode"]) == (status, status)


@pytest.mark.parametrize("headers", [{b"accept": HTML}, {b"accept": HTML, b"sec-fetch-mode": b"navigate"}])
def test_a_browser_gets_a_page_for_a_refused_host(refused_host: tuple[str, int, str], headers: dict[bytes, bytes]) -> None:
    host, status, heading = refused_host
    app, sent = for_tenant(ok, platform=True), partial(_scope, host=host, path="/login", headers=list(headers.items()))
    shown = _asked(app, sent())
    assert (shown.status, shown.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert f"{heading}\n" in shown.body.decode()
    assert shown.headers["cache-control"] == "no-store"
    assert host not in shown.body.decode()
    head = _asked(app, sent("HEAD"))
    assert (head.status, head.body) == (status, b"")


def test_only_static_files_are_served_on_a_refused_host(refused_host: tuple[str, int, str]) -> None:
    host, status, _ = refused_host
    asked = {path: _asked(for_tenant(ok, platform=True), _scope(host=host, path=path)).status for path in ("/static/x.css", "/staticx")}
    assert asked == {"/static/x.css": 200, "/staticx": status}
    assert _asked(for_tenant(ok), _scope(host=host, path="/static/x.css")).status == status


@pytest.mark.parametrize("path", ["/users", "/oauth/token", "/.well-known/jwks.json", "/userinfo", "/api/v2/events", "/admin/", "/metrics"])
def test_two_host_lines_are_refused_everywhere(tenant: Tenant, path: str) -> None:
    hosts = [f"{tenant.pk}.example.test", f"{new_tenant().pk}.example.test"]
    for first, second in (hosts, hosts[::-1], (hosts[0], hosts[0])):
        doubled = _scope(path=path, host=first, headers=[(b"host", second.encode())], server=("127.0.0.1", 80))
        refused = _asked(guarded(routes("all")), doubled)
        assert (refused.status, orjson.loads(refused.body)["message"]) == (400, "The Host header is repeated.")


@pytest.mark.usefixtures("over_tls")
def test_a_request_with_two_host_lines_is_not_redirected(tenant: Tenant) -> None:
    doubled = _scope(host=f"{tenant.pk}.example.test", headers=[(b"host", b"evil.test")])
    assert _asked(guarded(ok), doubled).status == 400


@pytest.mark.usefixtures("committed_db")
def test_the_platform_host_needs_no_tenant_except_for_the_management_interface(settings: Settings) -> None:
    settings.PLATFORM_HOST = "admin.example.test"
    app = for_tenant(ok, platform=True)
    assert _asked(app, _scope(host="admin.example.test", path="/admin/")).status == 200
    assert _asked(app, _scope(host="admin.example.test", path="/api/v2/users")).status == 404
    assert _asked(app, _scope(host="unknown.example.test", path="/admin/")).status == 404


def test_the_application_gets_only_complete_bodies() -> None:
    app = bounded_body(ok, limit=10)
    whole = _asked(app, _scope("POST"), [b"12345", b"67890"])
    assert (whole.status, orjson.loads(whole.body)["body"]) == (200, 10)
    assert _asked(app, _scope("POST"), [b"12345", b"67890", b"1"]).status == 413
    assert _asked(app, _scope("POST", headers=[(b"content-length", b"11")]), [b""]).status == 413


def test_a_request_over_the_limit_waits_and_is_then_refused() -> None:
    async def story() -> None:
        inside, leave = asyncio.Event(), asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            inside.set()
            await leave.wait()
            await ok(scope, receive, send)

        app = bounded_count(slow, limit=1)
        first = asyncio.create_task(_answered(app, _scope()))
        await inside.wait()
        refused, token, shown = await asyncio.gather(
            _answered(app, _scope()),
            _answered(app, _scope("POST", path="/oauth/token")),
            _answered(app, _scope(path="/login", headers=[(b"accept", HTML)])),
        )
        assert (refused.status, refused.headers["retry-after"]) == (503, "2")
        assert orjson.loads(refused.body)["message"] == "The server is busy. Try again."
        assert (token.status, orjson.loads(token.body)["error"]) == (503, "temporarily_unavailable")
        assert (shown.status, shown.headers["content-type"]) == (503, "text/html; charset=utf-8")
        assert "The server is busy. Try again." in shown.body.decode()
        third = asyncio.create_task(_answered(app, _scope()))
        leave.set()
        assert [(await first).status, (await third).status] == [200, 200]

    _told(story())


def test_a_websocket_is_closed_before_it_opens() -> None:
    async def story() -> None:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message["type"])

        await application({"type": "websocket", "path": "/", "headers": []}, receive, send)
        assert sent == ["websocket.close"]

    _told(story())
    assert application.application_mapping["websocket"] is refuse_websocket


def _told(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)
