"""The only way out: HTTP with a total deadline, a size cap, no redirects, and address rules against SSRF.

The name is resolved once per connection, every address it has must be allowed, and the connection goes to the address
that was checked, while Host, SNI and the certificate check keep the name. The environment (proxies, netrc) is ignored.
It stands on the pools of urllib3, and not on `requests` above them: a session of that kind adds cookies, redirects, proxies
and netrc, which must not happen here, and half of the time of a request.
"""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3 import exceptions as failures
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import parse_url
from urllib3.util.ssl_ import create_urllib3_context

from identity.outbound.addresses import is_allowed, parse_networks
from identity.outbound.outcomes import (
    MAX_BODY_BYTES,
    AddressRefused,
    Answer,
    AnswerTooLarge,
    AnswerUnreadable,
    ConnectFailed,
    ConnectionLost,
    DeadlinePassed,
    Greeting,
    HostUnresolved,
    OutboundRules,
    TlsFailed,
    UrlRefused,
)

_CHUNK_BYTES = 64 * 1024
_POOLED_HOSTS = 200
_IDLE_CONNECTIONS = 10

Resolver = Callable[[str, int, float], list[str]]


def resolve(host: str, port: int, seconds: float) -> list[str]:
    """Return every address of `host`; raise `HostUnresolved` when there is none, or none in time."""
    found = _resolver_threads().submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        return list(dict.fromkeys(str(entry[4][0]) for entry in found.result(timeout=seconds)))
    except TimeoutError as error:
        raise HostUnresolved("The host name was not resolved in time.") from error
    except (OSError, UnicodeError) as error:
        raise HostUnresolved from error


class OutboundSession:
    """A pool of checked connections; safe to share between threads and tenants, because it keeps no cookies."""

    def __init__(self, rules: OutboundRules, *, resolver: Resolver = resolve) -> None:
        self._rules = rules
        self._resolver = resolver
        # Pools keep connections and nothing else: nothing of one tenant is left for another.
        self._pools = PoolManager(_POOLED_HOSTS, maxsize=_IDLE_CONNECTIONS, ssl_context=_tls_context(rules), cert_reqs="CERT_REQUIRED")
        self._pools.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, deadline: float) -> Answer:
        """Send one request and read the whole answer before `deadline`, a reading of `time.monotonic`.

        Redirects are answers like any other. Raises a subclass of `OutboundError`, never anything of a library.
        """
        self._check_url(url)
        call = _Call(deadline, self._rules, self._resolver)
        token = _call.set(call)
        try:
            with _named_failures():
                parts = parse_url(url)
                pool = self._pools.connection_from_host(parts.host, parts.port, parts.scheme)
                response = pool.urlopen(
                    method, parts.request_uri, body, headers, retries=False, redirect=False, timeout=call.remaining(), preload_content=False
                )
                return Answer(response.status, response.headers, _whole_body(response))
        finally:
            _call.reset(token)

    def addresses(self, url: str, *, deadline: float) -> list[str]:
        """Return the addresses of the host; raise `AddressRefused` when one of them may not be reached."""
        self._check_url(url)
        call = _Call(deadline, self._rules, self._resolver)
        with _named_failures():
            return call.allowed_addresses(*_host_and_port(url))

    def greet(self, url: str, *, deadline: float) -> Greeting:
        """Connect as a request would, send none, and return what was seen; raise as `send` does."""
        self._check_url(url)
        host, port = _host_and_port(url)
        with _named_failures(), _Call(deadline, self._rules, self._resolver).dial(host, port) as plain:
            address = str(plain.getpeername()[0])
            if urlsplit(url).scheme == "http":
                return Greeting(address)
            with _tls_context(self._rules).wrap_socket(plain, server_hostname=host) as secured:
                certificate: Any = secured.getpeercert() or {}
                return Greeting(address, secured.version() or "", certificate.get("notAfter", ""))

    def _check_url(self, url: str) -> None:
        scheme = urlsplit(url).scheme
        if scheme != "https" and not (scheme == "http" and self._rules.allow_http):
            raise UrlRefused("Only https addresses can be used.")


def _host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)


_sessions: dict[tuple[int, OutboundRules], OutboundSession] = {}


def outbound_session() -> OutboundSession:
    """Return this process's session for the rules of the settings; a forked child never shares its parent's connections."""
    rules = OutboundRules(parse_networks(settings.OUTBOUND_PRIVATE_NETWORKS), settings.OUTBOUND_ALLOW_HTTP, settings.OUTBOUND_CA_FILE)
    key = (os.getpid(), rules)
    if key not in _sessions:
        _sessions[key] = OutboundSession(rules)
    return _sessions[key]


@dataclass(frozen=True)
class _Call:
    """What the connection classes need to know about the request that is being sent."""

    deadline: float
    rules: OutboundRules
    resolver: Resolver

    def remaining(self) -> float:
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def allowed_addresses(self, host: str, port: int) -> list[str]:
        addresses = self.resolver(host, port, self.remaining())
        # All of them: a host with one public and one internal address is an attack or a mistake.
        if not addresses or not all(is_allowed(address, self.rules.private_networks) for address in addresses):
            raise AddressRefused
        return addresses

    def dial(self, host: str, port: int) -> socket.socket:
        """Resolve once, refuse the host when one of its addresses is refused, and connect to a checked address."""
        addresses = self.allowed_addresses(host, port)
        failure: OSError | None = None
        for waiting, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            try:
                connected = socket.create_connection((address, port), timeout=self.remaining() / waiting)
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connected.settimeout(self.remaining())
                return connected
            except OSError as error:
                failure = error
        raise ConnectFailed from failure


_call: ContextVar[_Call] = ContextVar("outbound_call")


class _DeadlineReader(io.RawIOBase):
    """Reads the socket with what is left of the deadline, so that a server cannot drip bytes past it."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._sock = sock
        self._call = _call.get()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._call.remaining())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _DeadlineResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_DeadlineReader(self.fp.detach(), sock))


class _CheckedConnection:
    """Dials through the rules; the host, and with it SNI and the certificate check, stays the name."""

    response_class: type[http.client.HTTPResponse] = _DeadlineResponse
    _dns_host: str
    port: int

    def _new_conn(self) -> socket.socket:
        return _call.get().dial(self._dns_host.strip("[]"), self.port)


class _CheckedHttp(_CheckedConnection, HTTPConnection):
    pass


class _CheckedHttps(_CheckedConnection, HTTPSConnection):
    pass


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _CheckedHttp


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _CheckedHttps


def _tls_context(rules: OutboundRules) -> ssl.SSLContext:
    context = create_urllib3_context(ssl_minimum_version=ssl.TLSVersion.TLSv1_2)
    context.load_verify_locations(cafile=DEFAULT_CA_BUNDLE_PATH)
    if rules.ca_file:
        context.load_verify_locations(cafile=rules.ca_file)
    return context


def _whole_body(response: BaseHTTPResponse) -> bytes:
    body = bytearray()
    for chunk in response.stream(_CHUNK_BYTES, decode_content=True):
        body += chunk
        # Counted after decoding: a small compressed body can be a very large one.
        if len(body) > MAX_BODY_BYTES:
            response.close()
            raise AnswerTooLarge
    response.release_conn()
    return bytes(body)


@contextmanager
def _named_failures() -> Iterator[None]:
    """Translate what the libraries raise; their messages quote the URL with its filter and are left behind."""
    try:
        yield
    except (failures.TimeoutError, TimeoutError) as error:
        raise DeadlinePassed from error
    except (failures.SSLError, ssl.SSLError) as error:
        raise (ConnectionLost if _ended_early(error) else TlsFailed) from error
    except failures.DecodeError as error:
        raise AnswerUnreadable from error
    except ValueError as error:
        # An address that cannot be read, or a header that cannot be sent: the libraries have one class each.
        raise UrlRefused from error
    except (failures.HTTPError, OSError, http.client.HTTPException) as error:
        raise ConnectionLost from error


def _ended_early(error: BaseException) -> bool:
    """Tell whether a TLS failure is only a connection that ended: that passes, a bad certificate does not."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError):
            return True
        seen = seen.__cause__ or seen.__context__ or next((arg for arg in seen.args if isinstance(arg, BaseException)), None)
    return False


_resolvers: dict[int, ThreadPoolExecutor] = {}


def _resolver_threads() -> ThreadPoolExecutor:
    """Return this process's threads for name resolution, which cannot be given a deadline itself."""
    if os.getpid() not in _resolvers:
        _resolvers[os.getpid()] = ThreadPoolExecutor(max_workers=8, thread_name_prefix="resolve")
    return _resolvers[os.getpid()]
