"""The compared servers: this service as in production, and npm oidc-provider with its rows in memory or in the same PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from django.db import connection

from benchmarks.auth.load import NextRequest, get, once, post, told
from benchmarks.auth.proofs import Prover, thumbprint
from benchmarks.stream.subjects import web_options
from config.launcher import web
from config.launcher.options import ROOT
from config.launcher.peers import PLACE, install_node_packages

AUDIENCE = "https://things.example.test/"
IN_MEMORY, IN_POSTGRESQL = "oidc-provider", "oidc-provider on PostgreSQL"
_PASSWORD = "correct horse battery staple"
_START_SECONDS = 40.0
_HERE = Path(__file__).parent
# The program is in the folder with the packages of the peers, because Node searches for packages in the folder of the program.
_PLACE = PLACE / "auth"
# Number of proofs that are made for each second of a run. No server can answer so many requests, so each request has an unused proof.
_MOST_PROOFS_PER_SECOND = 3000


@dataclass(frozen=True)
class Subject:
    """A running server: its URL, the credentials of its clients, and one refresh token and one access token per network connection."""

    name: str
    pid: int
    port: int
    host: str
    token_path: str
    userinfo_path: str
    client: dict[str, str]
    refresh_tokens: list[str]
    access_tokens: list[str]

    def client_credentials(self, connections: int, _seconds: float) -> list[NextRequest]:
        request = self._asking()
        return [lambda _body: request] * connections

    def bound_client_credentials(self, connections: int, seconds: float) -> list[NextRequest]:
        """Return the requests of each network connection: with its own key and a new proof for each request. All proofs are made before the
        run."""
        each = int((seconds + 2) * _MOST_PROOFS_PER_SECOND / connections)
        nonce = self._nonce()
        return [_proving(self, self._prover().proofs(each, nonce=nonce)) for _ in range(connections)]

    def refresh(self, connections: int, _seconds: float) -> list[NextRequest]:
        """Return the requests of each network connection. Each request sends the token of the last response on this connection, because
        all servers rotate tokens."""
        return [_refreshing(self, number) for number in range(connections)]

    def userinfo(self, connections: int, _seconds: float) -> list[NextRequest]:
        return [_showing(get(self.host, self.userinfo_path, token)) for token in self.access_tokens[:connections]]

    def _asking(self, proof: str = "") -> bytes:
        form = {"grant_type": "client_credentials", **self.client} | ({"audience": AUDIENCE} if self.name == "ours" else {})
        return post(self.host, self.token_path, form, proof=proof)

    def _prover(self) -> Prover:
        return Prover(f"http://{self.host}{self.token_path}")

    def _nonce(self) -> str:
        """Return the nonce that proofs need now; empty if none is needed. Raises `RuntimeError` if the server does not bind the token."""
        head, body = asyncio.run(told(self.port, self._asking(self._prover().proof())))
        if b"use_dpop_nonce" in body:
            return next(line.partition(":")[2].strip() for line in head.decode().split("\r\n") if line.lower().startswith("dpop-nonce:"))
        if not thumbprint(json.loads(body).get("access_token", "")):
            raise RuntimeError(f"{self.name} did not bind the token: {head!r} {body[:500]!r}")
        return ""


def _showing(request: bytes) -> NextRequest:
    return lambda _body: request


def _proving(subject: Subject, proofs: Iterator[str]) -> NextRequest:
    return lambda _body: subject._asking(next(proofs))


def _refreshing(subject: Subject, number: int) -> NextRequest:
    def following(body: bytes | None) -> bytes:
        # Store the new token with the subject for the next round, because an exchanged token must not be used again.
        if body is not None:
            subject.refresh_tokens[number] = json.loads(body)["refresh_token"]
        token = subject.refresh_tokens[number]
        return post(subject.host, subject.token_path, {"grant_type": "refresh_token", "refresh_token": token, **subject.client})

    return following


@contextmanager
def ours(connections: int, *, processes: int = 1) -> Iterator[Subject]:
    """Serve a tenant with `connections` users, each of them logged in at one client."""
    tenant_id, client = _made(connections)
    port = free_port()
    command = web.command(web_options(ROOT, port, processes=processes), None)
    limits = {"RATE_LIMIT_PER_SECOND": "1000000", "RATE_LIMIT_BURST": "1000000"}
    server = subprocess.Popen(command, cwd=ROOT, env=os.environ | limits)
    try:
        wait_for(port)
        host = f"{tenant_id}.example.test"
        tokens = asyncio.run(_logged_in(port, host, client, connections))
        refresh, access = ([one[name] for one in tokens] for name in ("refresh_token", "access_token"))
        yield Subject("ours", server.pid, port, host, "/oauth/token", "/userinfo", client, refresh, access)
    finally:
        server.terminate()
        server.wait(20)


@contextmanager
def oidc_provider(connections: int, *, processes: int = 1, in_postgresql: bool = False) -> Iterator[Subject | None]:
    """Serve npm oidc-provider; yields None, after printing the reason, if it is not installed."""
    node = shutil.which("node")
    if node is None or not (PLACE / "node_modules" / "oidc-provider").exists():
        print("oidc-provider is not installed, so it is left out. Install it with: make test-peers")
        yield None
        return
    if in_postgresql and (problems := install_node_packages(_HERE, _PLACE)):
        print(*problems, "oidc-provider on PostgreSQL is left out.", sep="\n")
        yield None
        return
    _PLACE.mkdir(parents=True, exist_ok=True)
    programs = [shutil.copy(_HERE / name, _PLACE) for name in ("provider.mjs", "postgres_rows.mjs")]
    port = free_port()
    with _peer_table(wanted=in_postgresql) as environment:
        command = [node, programs[0], str(port), str(connections), str(processes)]
        server = subprocess.Popen(command, cwd=_PLACE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | environment)
        with server:
            try:
                assert server.stdout is not None
                # The peer prints other lines before the line with its tokens.
                lines = (line for line in server.stdout if line.startswith(b"{"))
                # Each process prints its tokens; the tokens of the last process are kept. Only runs with one process use tokens.
                for line in islice(lines, processes):
                    said = json.loads(line)
                client = {"client_id": "bench", "client_secret": "only-for-a-measurement"}
                name = IN_POSTGRESQL if in_postgresql else IN_MEMORY
                yield Subject(name, server.pid, port, f"127.0.0.1:{port}", "/token", "/me", client, said["refresh"], said["access"])
            finally:
                server.terminate()


@contextmanager
def _peer_table(*, wanted: bool) -> Iterator[Mapping[str, str]]:
    """Yield the environment in which the peer stores its rows in our PostgreSQL, in a separate table that is dropped afterwards."""
    if not wanted:
        yield {}
        return
    table = f"peer_{secrets.token_hex(4)}"
    connection.ensure_connection()
    known = connection.connection.info
    variables = {
        "PGHOST": known.host,
        "PGPORT": str(known.port),
        "PGUSER": known.user,
        "PGPASSWORD": known.password,
        "PGDATABASE": known.dbname,
    }
    try:
        yield {"PEER_TABLE": table, **{name: value for name, value in variables.items() if value}}
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {table}")


def _made(people_count: int) -> tuple[str, dict[str, str]]:
    # These modules can be imported only after Django is set up.
    from authapi.services.api_resources import create_api_resource  # noqa: PLC0415
    from authapi.services.client_grants import create_client_grant  # noqa: PLC0415
    from authapi.services.clients import create_client  # noqa: PLC0415
    from identity.services.connections import create_connection, update_connection  # noqa: PLC0415
    from identity.services.tenants import create_tenant  # noqa: PLC0415
    from identity.services.users import create_user  # noqa: PLC0415

    tenant_id = f"bench-{secrets.token_hex(4)}"
    create_tenant(tenant_id=tenant_id, name=tenant_id, host=f"{tenant_id}.example.test")
    scopes = [{"value": "read:things", "description": ""}]
    things = create_api_resource(tenant_id=tenant_id, identifier=AUDIENCE, scopes=scopes, settings={"allow_offline_access": True})
    grants = ("client_credentials", "refresh_token", "password", "http://auth0.com/oauth/grant-type/password-realm")
    policy = {"rotation_type": "rotating", "expiration_type": "expiring"}
    client, secret = create_client(tenant_id=tenant_id, name="Benchmark", grant_types=grants, settings={"refresh_token": policy})
    create_client_grant(tenant_id=tenant_id, client_id=client.client_id, api_resource=things, scopes=["read:things"])
    people = create_connection(tenant_id=tenant_id, name="people", strategy=_database_strategy())
    update_connection(tenant_id=tenant_id, connection_id=people.pk, changes={"enabled_clients": [client.client_id]})
    for number in range(people_count):
        create_user(tenant_id=tenant_id, connection=people, email=_address(number), password=_PASSWORD)
    return tenant_id, {"client_id": client.client_id, "client_secret": secret}


def _address(number: int) -> str:
    return f"ada{number}@example.test"


def _database_strategy() -> str:
    from django.conf import settings  # noqa: PLC0415

    return str(settings.DATABASE_STRATEGY)


async def _logged_in(port: int, host: str, client: dict[str, str], count: int) -> list[dict[str, str]]:
    form = {
        "grant_type": "http://auth0.com/oauth/grant-type/password-realm",
        "realm": "people",
        "password": _PASSWORD,
        "audience": AUDIENCE,
        "scope": "openid email offline_access read:things",
        **client,
    }
    return [json.loads(await once(port, post(host, "/oauth/token", form | {"username": _address(number)}))) for number in range(count)]


def wait_for(port: int) -> None:
    """Return once the port is open; end the program if it does not open in time."""
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        with socket.socket() as probe:
            probe.settimeout(0.5)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("The web process did not start.")


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
