"""Logins at a SAML application with an existing session, compared with npm samlp. Each answer is a page with a newly signed response."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.auth.load import NextRequest
from benchmarks.auth.subjects import free_port, wait_for
from benchmarks.stream.subjects import web_options
from config.launcher import web
from config.launcher.options import ROOT
from config.launcher.peers import place_of

_ACS = "https://app.example.test/acs"
_PEER = "federation"
# All requests come from one IP address, so the limits must be too high to refuse any.
_LIMITS = dict.fromkeys(("RATE_LIMIT_PER_SECOND", "RATE_LIMIT_BURST", "ADDRESS_RATE_PER_SECOND", "ADDRESS_RATE_BURST"), "1000000")


@dataclass(frozen=True)
class SamlSubject:
    """A running identity provider, and for each network connection the request of a logged-in browser."""

    name: str
    pid: int
    port: int
    requests: list[bytes]

    def logins(self, connections: int, _seconds: float) -> list[NextRequest]:
        return [_asking(request) for request in self.requests[:connections]]


def _asking(request: bytes) -> NextRequest:
    return lambda _body: request


@contextmanager
def own_provider(connections: int) -> Iterator[SamlSubject]:
    """Serve a tenant with a SAML application and a user with `connections` sessions."""
    host, client_id, cookies = _made(connections)
    port = free_port()
    server = subprocess.Popen(web.command(web_options(ROOT, port, processes=1), None), cwd=ROOT, env=os.environ | _LIMITS)
    try:
        wait_for(port)
        yield SamlSubject("ours", server.pid, port, [_request(f"/samlp/{client_id}", host, cookie) for cookie in cookies])
    finally:
        server.terminate()
        server.wait(20)


@contextmanager
def samlp(connections: int) -> Iterator[SamlSubject | None]:
    """Serve npm samlp. If it is not installed, print the reason and yield None."""
    node, place = shutil.which("node"), place_of(_PEER)
    if node is None or not (place / "node_modules" / "samlp").exists():
        print("samlp is not installed: make test-peers installs it. Left out.")
        yield None
        return
    port = free_port()
    # Node searches for packages in the directory of the program that it runs.
    program = shutil.copy(Path(__file__).parent / "saml_provider.mjs", place)
    with TemporaryDirectory() as folder:
        command = [node, program, str(port), *_key_files(Path(folder))]
        with subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                wait_for(port)
                yield SamlSubject("samlp", server.pid, port, [_request("/samlp", f"127.0.0.1:{port}", "")] * connections)
            finally:
                server.terminate()


def _request(path: str, host: str, cookie: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode()


def _made(connections: int) -> tuple[str, str, list[str]]:
    # These modules can be imported only after Django is set up.
    from django.conf import settings  # noqa: PLC0415

    from authapi.login.cookies import SESSION, cookie_name  # noqa: PLC0415
    from authapi.login.sessions import begin_session  # noqa: PLC0415
    from authapi.services.clients import create_client  # noqa: PLC0415
    from identity.services.connections import create_connection, update_connection  # noqa: PLC0415
    from identity.services.tenants import create_tenant  # noqa: PLC0415
    from identity.services.users import create_user  # noqa: PLC0415

    tenant_id = f"bench-{secrets.token_hex(4)}"
    host = f"{tenant_id}.example.test"
    create_tenant(tenant_id=tenant_id, name=tenant_id, host=host)
    client, _ = create_client(tenant_id=tenant_id, name="Payroll", redirect_uris=_ACS, settings={"addons": {"samlp": {}}})
    people = create_connection(tenant_id=tenant_id, name="people", strategy=settings.DATABASE_STRATEGY)
    update_connection(tenant_id=tenant_id, connection_id=people.pk, changes={"enabled_clients": [client.client_id]})
    name = {"name": "Ada Lovelace", "given_name": "Ada", "family_name": "Lovelace"}
    user = create_user(tenant_id=tenant_id, connection=people, email="ada@example.test", password=secrets.token_urlsafe(), **name)
    cookies = []
    for _ in range(connections):
        _, value = begin_session(
            tenant_id=tenant_id, user=user, connection=people, methods=["pwd"], ip="127.0.0.1", user_agent="benchmark", is_persistent=True
        )
        cookies.append(f"{cookie_name(SESSION)}={value}")
    return host, client.client_id, cookies


def _key_files(folder: Path) -> list[str]:
    """Write a key of 2048 bits, like the keys of this service, and its certificate as PEM."""
    from authapi.tokens.key_pairs import new_certified_key  # noqa: PLC0415

    made = new_certified_key(subject="bench", now=datetime.now(UTC))
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    key.write_text(made.private_pem)
    certificate.write_text(made.certificate_pem)
    return [str(key), str(certificate)]
