"""One HTTP/1.1 request and its streamed response; every wait has a timeout, and every failure is a `StreamError`.

The HTTP client of the standard library is enough: a stream is one long response, and this client returns each piece when it arrives, as the
checks in `events.doctor` need it. The client does not follow redirects, because a redirect could send a token to another host.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType

from events.client.failures import Refused, Unreachable, Untrusted, printable
from events.client.server import Server
from foundation.outbound.retry_after import retry_after

_LARGEST_BODY = 64 * 1024
_LONGEST_RETRY_AFTER_SECONDS = 600.0
_VISIBLE = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Timeouts in seconds: to connect, and between two reads."""

    connect: float = 10.0
    # The time of three heartbeats of the service. A connection without data for this time counts as dead.
    read: float = 45.0


class Exchange:
    """A request and its response. `read` returns bytes as soon as some arrive."""

    def __init__(self, sock: socket.socket, answer: http.client.HTTPResponse, *, connected_at: float, sent_at: float) -> None:
        self.socket = sock
        self.answer = answer
        self.status = answer.status
        self.connected_at = connected_at
        self.sent_at = sent_at
        self.headers_at = time.monotonic()

    def header(self, name: str) -> str:
        """Return all values of a header, separated by commas; an empty text if the header is absent."""
        return ", ".join(self.answer.headers.get_all(name, []))

    def read(self, *, within: float | None = None) -> bytes:
        """Return the next bytes of the body; empty bytes at its end.

        Raises `Unreachable` when the connection breaks or the read times out.
        """
        with _translated("the stream broke off"):
            if within is not None:
                self.socket.settimeout(max(within, 0.001))
            return self.answer.read1(65536)

    def content(self) -> bytes:
        """Return the whole body of a response that is not a stream, up to a limit."""
        with _translated("the response broke off"):
            return self.answer.read(_LARGEST_BODY)

    def refusal(self) -> Refused:
        """Return this response as an error that contains the document of the response."""
        asked = {"Retry-After": self.answer.headers.get("Retry-After", "")}
        wait = retry_after(asked, datetime.now(UTC), shortest=0.0, longest=_LONGEST_RETRY_AFTER_SECONDS)
        return Refused(self.status, printable(self.answer.reason), self.content(), self.answer.headers.get("Location"), wait)

    def close(self) -> None:
        """Close the connection immediately and drop unread bytes."""
        self.answer.close()
        self.socket.close()

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def exchange(
    server: Server, path: str, headers: Mapping[str, str], *, method: str = "GET", body: bytes | None = None, deadlines: Deadlines
) -> Exchange:
    """Send one request over its own connection and return the response with any status. Raises `StreamError`."""
    for name, value in headers.items():
        # Check the header here: the error text of `http.client` would contain the value of the header, which can be a token.
        if not _VISIBLE.fullmatch(value):
            raise Untrusted(f"The header {name} contains characters that are not allowed in a header.")
    sock = _connected(server, deadlines)
    try:
        connected_at = time.monotonic()
        sock.settimeout(deadlines.read)
        connection = http.client.HTTPConnection(server.host, server.port)
        connection.sock = sock
        with _translated("no response came"):
            connection.request(method, path, body, {"Host": server.authority, **headers})
            sent_at = time.monotonic()
            return Exchange(sock, connection.getresponse(), connected_at=connected_at, sent_at=sent_at)
    except BaseException:
        sock.close()
        raise


def _connected(server: Server, deadlines: Deadlines) -> socket.socket:
    host, port = server.address
    with _translated(f"cannot connect to {host} port {port}"):
        sock = socket.create_connection((host, port), timeout=deadlines.connect)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if server.scheme == "http":
                return sock
            context = ssl.create_default_context(cafile=server.ca_file)
            context.set_alpn_protocols(["http/1.1"])
            return context.wrap_socket(sock, server_hostname=server.host)
        except BaseException:
            sock.close()
            raise


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise Untrusted(f"the certificate cannot be verified: {error.verify_message}") from error
    except TimeoutError as error:
        raise Unreachable(f"{what}: no data arrived in time") from error
    except (OSError, http.client.HTTPException) as error:
        words = getattr(error, "strerror", None) or type(error).__name__
        raise Unreachable(f"{what}: {printable(str(words))}") from error
