"""The first checks of every request: its host, its transport, and the tenant of the host."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import orjson
from django.conf import settings
from django.db import Error as DatabaseError

from authapi.edge.addresses import compiled
from authapi.failures.requests import TENANT_STOPPED
from authapi.views import cors
from authapi.views.unserved import is_navigation
from config.server.unavailable_page import refusal_page, unavailable_page
from events.stream.refusals import Header, Refused, unavailable
from foundation.memory import executor
from identity.hosts import LONGEST_AUTHORITY, HostMatch, is_platform_host, matches
from identity.stopped_tenants import RETRY_AFTER_SECONDS

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

logger = logging.getLogger(__name__)

_RETRY_AFTER_SECONDS = 2
_SAFE = frozenset({"GET", "HEAD"})
_MANAGEMENT_PREFIX = "/api/v2/"
# The paths that the platform's host serves. On loopback, the platform and a tenant have the same host.
_STATIC_PREFIX = "/static/"
_PLATFORM_PREFIXES = ("/admin/", "/api/", _STATIC_PREFIX)
# Paths whose errors have the JSON form of OAuth errors, because programs read them.
_OAUTH_PREFIXES = (
    "/oauth/",
    "/userinfo",
    "/dbconnections/",
    "/passwordless/",
    "/otp/",
    "/mfa/",
    "/oidc/",
    "/.well-known/",
    "/bc-authorize",
)
_OAUTH_ERRORS = {403: "access_denied", 404: "not_found", 500: "server_error", 503: "temporarily_unavailable"}
# Daphne lets any client set a root path with this header. Every absolute URL would then contain the path.
_REFUSED_HEADERS = frozenset({b"daphne-root-path"})


def header(scope: Scope, name: bytes) -> str:
    """Return the value of a header that occurs once, else an empty string: if there are two values, neither can be trusted."""
    values = [value for key, value in scope["headers"] if key == name]
    return values[0].decode("latin-1").strip() if len(values) == 1 else ""


def guarded(application: Application) -> Application:
    """Remove values that no client may set. Then require TLS, which this service or a trusted proxy can provide."""

    # This function is not a coroutine, because each open stream would keep its coroutine in memory.
    def guard(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        scope = {**scope, "root_path": ""}
        if sum(name == b"host" for name, _ in scope["headers"]) > 1:
            # RFC 9112, 3.2: if a request has two Host lines, a proxy may use the first line and a server the last line.
            return answer(send, Refused(400, "The Host header is repeated."), head_only=scope["method"] == "HEAD")
        if any(name in _REFUSED_HEADERS for name, _ in scope["headers"]):
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] not in _REFUSED_HEADERS]
        if not settings.INSECURE_HTTP:
            if not _is_secure(scope):
                return _refuse_insecure(application, scope, receive, send)
            scope["scheme"] = "https"
        elif not _arrived_on_loopback(scope):
            refusal = Refused(403, "INSECURE_HTTP=1 serves only loopback addresses; bind to 127.0.0.1 or serve TLS.")
            return answer(send, refusal, head_only=scope["method"] == "HEAD", path=scope["path"])
        return application(scope, receive, send)

    return guard


def for_tenant(application: Application, *, platform: bool = False) -> Application:
    """Put `host_match` into the scope. Answer 404 on an unregistered host, 403 for a suspended tenant, 503 for a stopped tenant.

    With `platform`, all paths except those of the management interface are also served on the platform's host. Browsers get the errors 404,
    403 and 503 as a page, and the files of this page are served on every host.
    """

    async def resolve(scope: Scope, receive: Receive, send: Send) -> None:
        authority = header(scope, b"host")
        is_open_to_all = platform and is_platform_host(authority) and not scope["path"].startswith(_MANAGEMENT_PREFIX)
        try:
            match = await match_of(authority)
            if not is_open_to_all or (match is not None and match.is_stopped and not scope["path"].startswith(_PLATFORM_PREFIXES)):
                _require_active(match)
        except Refused as refusal:
            if not (platform and scope["path"].startswith(_STATIC_PREFIX)):
                await answer_reader(scope, send, refusal)
                return
            match = None
        # Change the scope in place: the router has already copied it for this request.
        scope["host_match"] = match
        await application(scope, receive, send)

    return resolve


class Unresolved(Refused):
    """The database does not answer, so the tenant of the host is unknown."""


async def match_of(authority: str) -> HostMatch | None:
    """Return the tenant or platform of a Host header, without a database query on the event loop.

    Raises `Unresolved` with 503 while the database is unavailable.
    """
    if len(authority) > LONGEST_AUTHORITY:
        # No registered host is longer than this limit, and longer hosts must not fill the cache.
        return None
    try:
        return await executor.remembered(matches, authority)
    except (DatabaseError, OSError) as error:
        logger.warning("a host was not resolved: %s", type(error).__name__)
        wait = (b"retry-after", str(_RETRY_AFTER_SECONDS).encode())
        raise Unresolved(503, "The service cannot answer right now. Try again.", code="unavailable", headers=[wait]) from error


async def answer_reader(scope: Scope, send: Send, refusal: Refused) -> None:
    """Send a refusal: as a page if a browser loads a page outside the management interface, otherwise as an error object (`answer`)."""
    is_head = scope["method"] == "HEAD"
    accepted = {"Sec-Fetch-Mode": header(scope, b"sec-fetch-mode"), "Accept": header(scope, b"accept")}
    if scope["path"].startswith(_MANAGEMENT_PREFIX) or not is_navigation(accepted):
        await answer(send, refusal, head_only=is_head, path=scope["path"])
        return
    headers, body = unavailable_page(refusal) if isinstance(refusal, Unresolved) else refusal_page(refusal)
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else body})


async def _refuse_insecure(application: Application, scope: Scope, receive: Receive, send: Send) -> None:
    refusal = await _insecure(scope)
    if scope["method"] in _SAFE and scope["path"].startswith(_STATIC_PREFIX) and _has_page(refusal):
        # The error page for this host uses files below this path. The files are public, so they need no TLS.
        await application(scope, receive, send)
        return
    if refusal.status == HTTPStatus.PERMANENT_REDIRECT:
        # A browser follows the redirect without showing its body.
        await answer(send, refusal, head_only=scope["method"] == "HEAD", path=scope["path"])
        return
    await answer_reader(scope, send, refusal)


def _has_page(refusal: Refused) -> bool:
    """Tell whether a browser gets an error page over plain HTTP, not a redirect: the host has no tenant, or its tenant is unknown."""
    return refusal.status == HTTPStatus.NOT_FOUND or isinstance(refusal, Unresolved)


async def answer(send: Send, refusal: Refused, *, head_only: bool = False, path: str = "") -> None:
    """Send a refusal: in the form of OAuth errors if `path` belongs to OAuth, else in the form of the management interface."""
    is_oauth = path.startswith(_OAUTH_PREFIXES)
    body = _oauth_body(refusal) if is_oauth else refusal.body()
    headers: list[Header] = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    if is_oauth:
        headers += [(name.lower().encode(), value.encode()) for name, value in cors.answer_headers().items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers + refusal.headers})
    await send({"type": "http.response.body", "body": b"" if head_only else body})


def _oauth_body(refusal: Refused) -> bytes:
    # RFC 6749, 5.2.
    error = _OAUTH_ERRORS.get(refusal.status, "invalid_request")
    return orjson.dumps({"error": error, "error_description": refusal.message})


def is_believed(address: str, trusted: Collection[str]) -> bool:
    """Tell whether a peer is a trusted proxy. `trusted` contains IP addresses, networks, and `unix:` for unix sockets."""
    return compiled(trusted).has(address)


def _arrived_on_loopback(scope: Scope) -> bool:
    """Tell whether the local address of the connection is loopback.

    The path of a socket file, or a name, counts as loopback, because no network reaches it.
    """
    return _is_loopback(str((scope.get("server") or ("",))[0] or ""))


# The cache has one entry for each IP address on which this process listens.
@lru_cache(maxsize=64)
def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return True


def _is_secure(scope: Scope) -> bool:
    if scope.get("scheme") == "https":
        return True
    peer = (scope.get("client") or ("",))[0]
    return header(scope, b"x-forwarded-proto").lower() == "https" and is_believed(peer, settings.TRUSTED_PROXIES)


async def _insecure(scope: Scope) -> Refused:
    try:
        match = await match_of(header(scope, b"host"))
    except Refused as unresolved:
        return unresolved
    if match is None:
        return Refused(404, "No tenant answers on this host.")
    # The client has already sent the request or token without TLS. A redirect would hide the mistake.
    if scope["method"] not in _SAFE or b"access_token=" in scope["query_string"]:
        return Refused(400, "This service answers over HTTPS only.", code="insecure_transport")
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    # The redirect leads to the registered host, with the path and query as the client sent them.
    path = scope.get("raw_path") or scope["path"].encode()
    location = f"https://{match.authority}".encode() + b"/" + path.lstrip(b"/") + query
    return Refused(308, "This service answers over HTTPS only.", headers=[(b"location", location)])


def _require_active(match: HostMatch | None) -> None:
    if match is None:
        raise Refused(404, "No tenant answers on this host.")
    if match.is_stopped:
        raise unavailable(TENANT_STOPPED, retry_after_seconds=RETRY_AFTER_SECONDS)
    if match.status in ("suspended", "deleting", "deleted"):
        raise Refused(403, "The tenant is suspended.", code="tenant_suspended")
