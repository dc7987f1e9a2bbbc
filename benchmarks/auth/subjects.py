"""The two servers: ours as production runs it, and npm oidc-provider."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from benchmarks.auth.load import NextRequest, get, once, post
from benchmarks.stream.subjects import web_options
from config.launcher import web
from config.launcher.options import ROOT
from config.launcher.peers import PLACE

AUDIENCE = "https://things.example.test/"
_PASSWORD = "correct horse battery staple"
_START_SECONDS = 40.0


@dataclass(frozen=True)
class Subject:
    """A running server: where it answers, and what its clients know."""

    name: str
    port: int
    host: str
    token_path: str
    userinfo_path: str
    client: dict[str, str]
    refresh_tokens: list[str]
    access_token: str

    def client_credentials(self, connections: int) -> list[NextRequest]:
        form = {"grant_type": "client_credentials", **self.client}
        request = post(self.host, self.token_path, form | ({"audience": AUDIENCE} if self.name == "ours" else {}))
        return [lambda _body: request] * connections

    def refresh(self, connections: int) -> list[NextRequest]:
        """Each connection exchanges the token that its last answer brought: both servers rotate."""
        return [_refreshing(self, number) for number in range(connections)]

    def userinfo(self, connections: int) -> list[NextRequest]:
        request = get(self.host, self.userinfo_path, self.access_token)
        return [lambda _body: request] * connections


def _refreshing(subject: Subject, number: int) -> NextRequest:
    def following(body: bytes | None) -> bytes:
        # Kept with the subject, for the next round: an exchanged token must not be shown again.
        if body is not None:
            subject.refresh_tokens[number] = json.loads(body)["refresh_token"]
        token = subject.refresh_tokens[number]
        return post(subject.host, subject.token_path, {"grant_type": "refresh_token", "refresh_token": token, **subject.client})

    return following


@contextmanager
def ours(connections: int, *, processes: int = 1) -> Iterator[Subject]:
    """Serve a tenant with a user and a client that is logged in `connections` times."""
    tenant_id, client = _made()
    port = free_port()
    command = web.command(web_options(ROOT, port, processes=processes), None)
    limits = {"RATE_LIMIT_PER_SECOND": "1000000", "RATE_LIMIT_BURST": "1000000"}
    server = subprocess.Popen(command, cwd=ROOT, env=os.environ | limits)
    try:
        wait_for(port)
        host = f"{tenant_id}.example.test"
        tokens = asyncio.run(_logged_in(port, host, client, connections))
        yield Subject(
            "ours", port, host, "/oauth/token", "/userinfo", client, [one["refresh_token"] for one in tokens], tokens[0]["access_token"]
        )
    finally:
        server.terminate()
        server.wait(20)


@contextmanager
def oidc_provider(connections: int, *, processes: int = 1) -> Iterator[Subject | None]:
    """Serve npm oidc-provider; yields None, after saying why, where it is not installed."""
    node = shutil.which("node")
    if node is None or not (PLACE / "node_modules" / "oidc-provider").exists():
        print("oidc-provider is not installed: make test-peers installs it. Left out.")
        yield None
        return
    port = free_port()
    # Node looks for packages beside the program it runs.
    program = shutil.copy(Path(__file__).parent / "provider.mjs", PLACE)
    with subprocess.Popen(
        [node, program, str(port), str(connections), str(processes)], cwd=PLACE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        try:
            assert server.stdout is not None
            # It says other things before.
            lines = (line for line in server.stdout if line.startswith(b"{"))
            # Each process says it; the tokens of the last one count, and where there are more, none is asked for.
            for line in islice(lines, processes):
                said = json.loads(line)
            client = {"client_id": "bench", "client_secret": "only-for-a-measurement"}
            yield Subject("oidc-provider", port, f"127.0.0.1:{port}", "/token", "/me", client, said["refresh"], said["access"])
        finally:
            server.terminate()


def _made() -> tuple[str, dict[str, str]]:
    # Models may be imported only once Django is set up.
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
    create_user(tenant_id=tenant_id, connection=people, email="ada@example.test", password=_PASSWORD)
    return tenant_id, {"client_id": client.client_id, "client_secret": secret}


def _database_strategy() -> str:
    from django.conf import settings  # noqa: PLC0415

    return str(settings.DATABASE_STRATEGY)


async def _logged_in(port: int, host: str, client: dict[str, str], count: int) -> list[dict[str, str]]:
    form = {
        "grant_type": "http://auth0.com/oauth/grant-type/password-realm",
        "realm": "people",
        "username": "ada@example.test",
        "password": _PASSWORD,
        "audience": AUDIENCE,
        "scope": "openid email offline_access read:things",
        **client,
    }
    return [json.loads(await once(port, post(host, "/oauth/token", form))) for _ in range(count)]


def wait_for(port: int) -> None:
    """Return once something listens; end the program where nothing does in time."""
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        with socket.socket() as probe:
            probe.settimeout(0.5)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("The web process did not start.")


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
