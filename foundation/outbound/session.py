"""The only sender of outbound HTTP requests: a total deadline, a size limit, no redirects, and address rules against SSRF.

The host name is resolved once per connection, and all of its addresses must be allowed. The connection goes to a checked address; Host,
SNI and the certificate check use the host name. The environment (proxies, netrc) is ignored.
"""

from __future__ import annotations

import http.client
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from urllib3.exceptions import DecodeError, HTTPError, LocationValueError, ReadTimeoutError

from foundation.outbound.adapter import CheckedAdapter, prepared_request, tls_context
from foundation.outbound.addresses import parse_networks
from foundation.outbound.dialing import Call, Resolver, current_call, resolve
from foundation.outbound.outcomes import (
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


class OutboundSession:
    """A pool of checked connections; safe to share between threads and tenants, because it keeps no cookies."""

    def __init__(self, rules: OutboundRules, *, resolver: Resolver = resolve) -> None:
        self._rules = rules
        self._resolver = resolver
        self._adapter = CheckedAdapter(rules)

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, deadline: float) -> Answer:
        """Send one request and read the whole response before `deadline`, a reading of `time.monotonic`.

        A redirect is returned like any other response. Raises only subclasses of `OutboundError`, never exceptions of a library.
        """
        self._check_url(url)
        call = Call(deadline, self._rules, self._resolver)
        token = current_call.set(call)
        try:
            with _named_failures():
                request = prepared_request(method, url, headers, body)
                response = self._adapter.send(request, stream=True, timeout=call.remaining())
                return Answer(response.status_code, response.headers, _whole_body(response))
        finally:
            current_call.reset(token)

    def addresses(self, url: str, *, deadline: float) -> list[str]:
        """Return the addresses of the host; raise `AddressRefused` if one of the addresses is forbidden."""
        self._check_url(url)
        call = Call(deadline, self._rules, self._resolver)
        with _named_failures():
            return call.allowed_addresses(*_host_and_port(url))

    def greet(self, url: str, *, deadline: float) -> Greeting:
        """Connect without sending a request, and describe the connection; raises the errors of `send`."""
        self._check_url(url)
        host, port = _host_and_port(url)
        with _named_failures(), Call(deadline, self._rules, self._resolver).dial(host, port) as plain:
            address = str(plain.getpeername()[0])
            if urlsplit(url).scheme == "http":
                return Greeting(address)
            with tls_context(self._rules).wrap_socket(plain, server_hostname=host) as secured:
                certificate: Any = secured.getpeercert() or {}
                return Greeting(address, secured.version() or "", certificate.get("notAfter", ""))

    def _check_url(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            scheme, _port = parts.scheme, parts.port
        except ValueError as error:
            # Invalid text in brackets, or a port out of range: a provider can publish any text as a URL.
            raise UrlRefused from error
        if scheme != "https" and not (scheme == "http" and self._rules.allow_http):
            raise UrlRefused("Only https addresses can be used.")


def _host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)


_sessions: dict[tuple[object, ...], OutboundSession] = {}


def outbound_session() -> OutboundSession:
    """Return this process's session for the rules of the settings; a forked child never shares its parent's connections."""
    networks, allow_http, ca_file = settings.OUTBOUND_PRIVATE_NETWORKS, settings.OUTBOUND_ALLOW_HTTP, settings.OUTBOUND_CA_FILE
    key = (os.getpid(), tuple(networks), allow_http, ca_file)
    if key not in _sessions:
        _sessions[key] = OutboundSession(OutboundRules(parse_networks(networks), allow_http, ca_file))
    return _sessions[key]


def _whole_body(response: requests.Response) -> bytes:
    body = bytearray()
    for chunk in response.raw.stream(_CHUNK_BYTES, decode_content=True):
        body += chunk
        # Count the bytes after decompression: a small compressed body can become very large.
        if len(body) > MAX_BODY_BYTES:
            response.raw.close()
            raise AnswerTooLarge
    response.raw.release_conn()
    return bytes(body)


@contextmanager
def _named_failures() -> Iterator[None]:
    """Translate exceptions of the libraries; drop their messages, because these quote the URL, which can contain a SCIM filter."""
    try:
        yield
    except (requests.Timeout, ReadTimeoutError, TimeoutError) as error:
        raise DeadlinePassed from error
    except (requests.exceptions.SSLError, ssl.SSLError) as error:
        raise (ConnectionLost if _ended_early(error) else TlsFailed) from error
    except (requests.exceptions.InvalidURL, requests.exceptions.InvalidHeader, LocationValueError) as error:
        raise UrlRefused from error
    except DecodeError as error:
        raise AnswerUnreadable from error
    except (requests.RequestException, HTTPError, OSError, http.client.HTTPException) as error:
        raise ConnectionLost from error


def _ended_early(error: BaseException) -> bool:
    """Tell whether a TLS failure is only a closed connection.

    A closed connection is a temporary failure; an invalid certificate is a permanent failure.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError):
            return True
        seen = seen.__cause__ or seen.__context__ or next((arg for arg in seen.args if isinstance(arg, BaseException)), None)
    return False
