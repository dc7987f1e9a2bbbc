"""An SMTP server for tests, and HTTP servers that answer like gateways for text messages."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from tests.ports import free_port


@dataclass
class Mailbox:
    """A mailbox that stores received mails. `answer` is its reply to each mail. `accounts` contains the password of each username."""

    answer: str = "250 OK"
    accounts: dict[str, str] = field(default_factory=dict)
    mails: list[EmailMessage] = field(default_factory=list)
    senders: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    cuts_off: bool = False

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802  (its name in aiosmtpd)
        if self.answer.startswith("250"):
            self.mails.append(message_from_bytes(envelope.content, policy=default))
            self.senders.append(envelope.mail_from)
        if self.cuts_off:
            server.transport.abort()
        return self.answer

    def authenticate(self, _server: Any, _session: Any, _envelope: Any, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword), mechanism
        name, password = data.login.decode(), data.password.decode()
        self.logins.append(name)
        return AuthResult(success=self.accounts.get(name) == password, handled=False)


@contextmanager
def smtp_server(mailbox: Mailbox) -> Iterator[int]:
    """Run an SMTP server for the mailbox on loopback, and yield its port."""
    options: dict[str, Any] = {}
    if mailbox.accounts:
        options = {"authenticator": mailbox.authenticate, "auth_require_tls": False}
    controller = Controller(mailbox, hostname="127.0.0.1", port=free_port(), **options)
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()


@dataclass
class Received:
    """One request to a gateway."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}


@dataclass
class Gateway:
    """A gateway that answers each request with the status and body that `answer` returns.

    If `answer` returns None, the server closes the connection after it has read the request.
    """

    answer: Callable[[Received], tuple[int, Any] | None] = lambda _request: (201, {"sid": "SM1"})
    requests: list[Received] = field(default_factory=list)


@contextmanager
def http_gateway(gateway: Gateway) -> Iterator[str]:
    """Run an HTTP server for the gateway on loopback, and yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            received = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            gateway.requests.append(received)
            answer = gateway.answer(received)
            if answer is None:
                self.connection.close()
                return
            content = json.dumps(answer[1]).encode()
            self.send_response(answer[0])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
