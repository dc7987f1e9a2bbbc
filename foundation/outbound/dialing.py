"""Opens connections to allowed IP addresses only: resolves the name once, checks each address, and limits all reads by one deadline."""

from __future__ import annotations

import http.client
import io
import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from foundation.outbound.addresses import is_allowed
from foundation.outbound.outcomes import AddressRefused, ConnectFailed, HostUnresolved, OutboundRules

Resolver = Callable[[str, int, float], list[str]]


def resolve(host: str, port: int, seconds: float) -> list[str]:
    """Return every address of `host`; raise `HostUnresolved` if no address is found within `seconds`."""
    found = _resolver_threads().submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        return list(dict.fromkeys(str(entry[4][0]) for entry in found.result(timeout=seconds)))
    except TimeoutError as error:
        raise HostUnresolved("The host name was not resolved in time.") from error
    except (OSError, UnicodeError) as error:
        raise HostUnresolved from error


@dataclass(frozen=True)
class Call:
    """The rules and the deadline of the present request. The connection classes read them from `current_call`."""

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
        # Check all addresses: a host with one public and one internal address is an attack or a mistake.
        if not addresses or not all(is_allowed(address, self.rules.private_networks) for address in addresses):
            raise AddressRefused
        return addresses

    def dial(self, host: str, port: int) -> socket.socket:
        """Resolve once, refuse the host if any address is refused, and connect to a checked address."""
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


current_call: ContextVar[Call] = ContextVar("outboundcurrent_call")


class _DeadlineReader(io.RawIOBase):
    """Reads the socket with the remaining time, so that a server cannot extend the deadline byte by byte."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._sock = sock
        self.current_call = current_call.get()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self.current_call.remaining())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _DeadlineResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_DeadlineReader(self.fp.detach(), sock))


class _CheckedConnection:
    """Connects to a checked IP address. The Host header, SNI and the certificate check use the host name."""

    response_class: type[http.client.HTTPResponse] = _DeadlineResponse
    _dns_host: str
    port: int
    _has_body = False
    _head = b""

    def request(self, method: str, url: str, body: Any = None, *args: Any, **options: Any) -> None:
        self._has_body, self._head = bool(body), b""
        super().request(method, url, body, *args, **options)  # type: ignore[misc]  # a method of the class it is mixed into

    def send(self, data: Any) -> None:
        """Send data. The head of a request with a body is kept and sent together with the body: two packets would wake the server twice."""
        if self._has_body:
            self._has_body, self._head = False, data
            return
        whole, self._head = (self._head + data if self._head else data), b""
        super().send(whole)  # type: ignore[misc]  # as above

    def _new_conn(self) -> socket.socket:
        return current_call.get().dial(self._dns_host.strip("[]"), self.port)


class CheckedHttp(_CheckedConnection, HTTPConnection):
    pass


class CheckedHttps(_CheckedConnection, HTTPSConnection):
    pass


class HttpPool(HTTPConnectionPool):
    ConnectionCls = CheckedHttp


class HttpsPool(HTTPSConnectionPool):
    ConnectionCls = CheckedHttps


_resolvers: dict[int, ThreadPoolExecutor] = {}


def _resolver_threads() -> ThreadPoolExecutor:
    """Return this process's threads for name resolution.

    The system's resolver has no timeout. It runs in these threads, so that a caller can stop waiting for it.
    """
    if os.getpid() not in _resolvers:
        _resolvers[os.getpid()] = ThreadPoolExecutor(max_workers=8, thread_name_prefix="resolve")
    return _resolvers[os.getpid()]
