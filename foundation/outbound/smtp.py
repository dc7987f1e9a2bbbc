"""Opens SMTP connections to servers that tenants name, by the rules of outbound requests. One deadline limits the whole session."""

from __future__ import annotations

import io
import smtplib
import socket
import ssl
import time
from typing import Any

from django.conf import settings

from foundation.outbound.adapter import tls_context
from foundation.outbound.addresses import parse_networks
from foundation.outbound.dialing import Call, resolve
from foundation.outbound.outcomes import OutboundRules

# A session for one message has a dozen short replies; a server that sends more would occupy a worker.
_MOST_ANSWER_BYTES = 64 * 1024


class AnswersTooLong(OSError):
    """The mail server sends more bytes than an SMTP session needs."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class _BoundedReader(io.RawIOBase):
    """Reads a socket until the deadline of its call. Limits the number of bytes per session."""

    def __init__(self, sock: socket.socket, call: Call) -> None:
        self._sock = sock
        self._call = call
        self._left = _MOST_ANSWER_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._call.remaining())
        count = self._sock.recv_into(buffer, min(len(buffer), 4096))
        self._left -= count
        if self._left < 0:
            raise AnswersTooLong
        return count


class _Checked(smtplib.SMTP):
    """Connects only to addresses that the rules of outbound requests permit. `call` contains these rules and the deadline."""

    call: Call

    def getreply(self) -> tuple[int, bytes]:
        # The base class would open its own reader here, and again after STARTTLS. That reader restarts the timeout with every byte.
        if self.file is None and self.sock is not None:
            self.file = io.BufferedReader(_BoundedReader(self.sock, self.call))
        return super().getreply()

    def send(self, s: Any) -> None:
        if self.sock:
            self.sock.settimeout(self.call.remaining())
        super().send(s)


def checked_smtp(host: str, port: int, *, is_tls: bool, seconds: float, own_name: str) -> smtplib.SMTP:
    """Return a connection to a tenant's mail server, after its greeting.

    Raises a subclass of `OutboundError` if no permitted address accepts the connection. Also raises the exceptions of `smtplib`.
    """
    networks = parse_networks(settings.OUTBOUND_PRIVATE_NETWORKS)
    rules = OutboundRules(networks, settings.OUTBOUND_ALLOW_HTTP, settings.OUTBOUND_CA_FILE)
    call = Call(time.monotonic() + seconds, rules, resolve)

    class Connection(_Checked):
        default_port = port

        def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
            plain = self.call.dial(host, port)
            return smtp_tls(rules).wrap_socket(plain, server_hostname=host) if is_tls else plain

    Connection.call = call
    return Connection(host, port, local_hostname=own_name, timeout=seconds)


def smtp_tls(rules: OutboundRules | None = None) -> ssl.SSLContext:
    """Return the TLS context that verifies the certificates of mail servers."""
    return tls_context(rules or OutboundRules(ca_file=settings.OUTBOUND_CA_FILE))
