"""The only way out: requests with a total deadline, a size cap, no redirects, and address rules against SSRF.

The name is resolved once per connection, every address it has must be allowed, and the connection goes to the address
that was checked, while Host, SNI and the certificate check keep the name. The environment (proxies, netrc) is ignored.
It stands on the pools of urllib3 and not on `requests`, whose cookies, redirects, proxies and netrc must not happen here and take
more time than the request.
"""

from __future__ import annotations

import http.client
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from requests.adapters import DEFAULT_CA_BUNDLE_PATH
from urllib3 import BaseHTTPResponse, PoolManager, Retry, Timeout
from urllib3.exceptions import DecodeError, HTTPError, LocationValueError, ReadTimeoutError, SSLError
from urllib3.util.ssl_ import create_urllib3_context
from urllib3.util.url import parse_url

from identity.outbound.addresses import parse_networks
from identity.outbound.dialing import Call, HttpPool, HttpsPool, Resolver, current_call, resolve
from identity.outbound.outcomes import (
    MAX_BODY_BYTES,
    Answer,
    AnswerTooLarge,
    AnswerUnreadable,
    ConnectionLost,
    DeadlinePassed,
    Greeting,
    OutboundRules,
    TlsFailed,
    UrlRefused,
)

_CHUNK_BYTES = 64 * 1024
_POOLED_HOSTS = 200
_POOLED_CONNECTIONS = 10
# A failure is raised as it is, and a redirect is an answer.
_NEVER = Retry(total=False, redirect=False)


class OutboundSession:
    """A pool of checked connections; safe to share between threads and tenants, because it keeps no cookies."""

    def __init__(self, rules: OutboundRules, *, resolver: Resolver = resolve) -> None:
        self._rules = rules
        self._resolver = resolver
        self._pools = PoolManager(
            num_pools=_POOLED_HOSTS, maxsize=_POOLED_CONNECTIONS, ssl_context=_tls_context(rules), cert_reqs="CERT_REQUIRED"
        )
        self._pools.pool_classes_by_scheme = {"http": HttpPool, "https": HttpsPool}

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, deadline: float) -> Answer:
        """Send one request and read the whole answer before `deadline`, a reading of `time.monotonic`.

        Redirects are answers like any other. Raises a subclass of `OutboundError`, never anything of a library.
        """
        self._check_url(url)
        call = Call(deadline, self._rules, self._resolver)
        token = current_call.set(call)
        try:
            with _named_failures():
                response = self._open(method, url, _checked(headers, method, body), body, Timeout(total=call.remaining()))
                return Answer(response.status, response.headers, _whole_body(response))
        finally:
            current_call.reset(token)

    def _open(self, method: str, url: str, headers: dict[str, str], body: bytes | None, timeout: Timeout) -> BaseHTTPResponse:
        """Send the request on a connection of the host's pool and read the head of the answer."""
        parts = parse_url(url)
        pool = self._pools.connection_from_host(parts.host, parts.port, parts.scheme)
        return pool.urlopen(
            method,
            parts.request_uri,
            body,
            headers,
            retries=_NEVER,
            redirect=False,
            assert_same_host=False,
            timeout=timeout,
            preload_content=False,
        )

    def addresses(self, url: str, *, deadline: float) -> list[str]:
        """Return the addresses of the host; raise `AddressRefused` when one of them may not be reached."""
        self._check_url(url)
        call = Call(deadline, self._rules, self._resolver)
        with _named_failures():
            return call.allowed_addresses(*_host_and_port(url))

    def greet(self, url: str, *, deadline: float) -> Greeting:
        """Connect as a request would, send none, and return what was seen; raise as `send` does."""
        self._check_url(url)
        host, port = _host_and_port(url)
        with _named_failures(), Call(deadline, self._rules, self._resolver).dial(host, port) as plain:
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


def _checked(headers: Mapping[str, str], method: str, body: bytes | None) -> dict[str, str]:
    """Return the headers as they are sent; one that would begin another header is refused."""
    if any("\r" in text or "\n" in text for header in headers.items() for text in header):
        raise UrlRefused
    # Some servers wait for a body of any other request that does not say that it has none (RFC 9110, 8.6).
    return dict(headers) if body is not None or method in ("GET", "HEAD") else {**headers, "Content-Length": "0"}


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
    except (ReadTimeoutError, TimeoutError) as error:
        raise DeadlinePassed from error
    except (SSLError, ssl.SSLError) as error:
        raise (ConnectionLost if _ended_early(error) else TlsFailed) from error
    except LocationValueError as error:
        raise UrlRefused from error
    except DecodeError as error:
        raise AnswerUnreadable from error
    except (HTTPError, OSError, http.client.HTTPException) as error:
        raise ConnectionLost from error


def _ended_early(error: BaseException) -> bool:
    """Tell whether a TLS failure is only a connection that ended: that passes, a bad certificate does not."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError):
            return True
        seen = seen.__cause__ or seen.__context__ or next((arg for arg in seen.args if isinstance(arg, BaseException)), None)
    return False
