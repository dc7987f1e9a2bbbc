"""How many client_credentials tokens one web process issues a second: RS256 2048, each freshly signed, over HTTP.

    python -m benchmarks.token_rate [--seconds 5] [--connections 16]

Uses the servers of DATABASE_URL and REDIS_URL, makes a tenant of its own there, and starts the web process itself.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlencode

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.development")
django.setup()

from authapi.services.api_resources import ensure_management_api  # noqa: E402  (models may be imported only after the line above)
from authapi.services.client_grants import create_client_grant  # noqa: E402
from authapi.services.clients import create_client  # noqa: E402
from identity.services.tenants import create_tenant  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SERVERS = {
    "granian": ["granian", "--interface", "asginl", "--host", "127.0.0.1", "--workers", "1", "--no-ws", "--port"],
    "uvicorn": ["uvicorn", "--host", "127.0.0.1", "--log-level", "warning", "--no-access-log", "--port"],
}


def prepare() -> tuple[str, bytes]:
    """Make a tenant with a global client; return its id and the request that the measurement repeats."""
    tenant_id = f"bench-{secrets.token_hex(4)}"
    create_tenant(tenant_id=tenant_id, name=tenant_id, host=f"{tenant_id}.example.test")
    client, secret = create_client(tenant_id=tenant_id, name="Benchmark")
    api = ensure_management_api(tenant_id)
    create_client_grant(tenant_id=tenant_id, client_id=client.client_id, api_resource=api, scopes=["read:events", "read:users"])
    form = {"grant_type": "client_credentials", "client_id": client.client_id, "client_secret": secret, "audience": api.identifier}
    body = urlencode(form).encode()
    head = f"POST /oauth/token HTTP/1.1\r\nHost: {tenant_id}.example.test\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    return tenant_id, head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


async def ask(port: int, request: bytes, until: float) -> int:
    """Repeat the request on one connection; return how many were answered with 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count = 0
    while time.monotonic() < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(length)
        count += 1
    writer.close()
    return count


async def measure(port: int, request: bytes, *, seconds: float, connections: int) -> float:
    await asyncio.gather(*(ask(port, request, time.monotonic() + 1) for _ in range(connections)))
    until = time.monotonic() + seconds
    counts = await asyncio.gather(*(ask(port, request, until) for _ in range(connections)))
    return sum(counts) / seconds


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("The web process did not start.")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    _, request = prepare()
    environment = os.environ | {"RATE_LIMITS_ENABLED": os.environ.get("RATE_LIMITS_ENABLED", "1"), "RATE_LIMIT_PER_SECOND": "1000000"}
    environment["RATE_LIMIT_BURST"] = "1000000"
    for name, command in SERVERS.items():
        port = free_port()
        server = subprocess.Popen(
            [str(Path(sys.executable).parent / command[0]), *command[1:], str(port), "config.asgi:application"], cwd=ROOT, env=environment
        )
        try:
            wait_for(port)
            rate = asyncio.run(measure(port, request, seconds=options.seconds, connections=options.connections))
            print(f"{name}: {rate:.0f} tokens/s, one process, {options.connections} connections")
        finally:
            server.terminate()
            server.wait(10)


if __name__ == "__main__":
    main()
