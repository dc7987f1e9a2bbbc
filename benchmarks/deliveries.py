"""Measures deliveries per second of one worker process to a SCIM server that answers immediately.

For comparison, also measures the bare loop: a loop with the library `requests` that only sends the same HTTP requests.

    python -m benchmarks.deliveries [users]

Each user is created and then changed: one POST, then a lookup and a PUT. Uses DATABASE_URL and REDIS_URL, creates a tenant
and does not delete it.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.development")
os.environ |= {
    "OUTBOUND_ALLOW_HTTP": "1",
    "OUTBOUND_PRIVATE_NETWORKS": "127.0.0.0/8",
    "RATE_LIMITS_ENABLED": "0",
    # The format of log lines is the same as in production. The readable format costs more time.
    "LOG_FORMAT": "json",
}
os.environ.setdefault("REDIS_PREFIX", f"bench-{secrets.token_hex(4)}")

import django

django.setup()

import requests  # noqa: E402
from django.db import connection  # noqa: E402

from events.log.numbering import number_tenant  # noqa: E402
from identity.services import connections, tenants, users  # noqa: E402
from provisioning.engine.streams import create_stream, delete_stream  # noqa: E402
from provisioning.services.actions import create_action, deploy_action  # noqa: E402

_SCHEMAS = ["urn:ietf:params:scim:schemas:core:2.0:User"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(base: str) -> None:
    port = int(base.rsplit(":", 1)[1])
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


def bare_loop(base: str, count: int) -> float:
    """Make the same requests in a bare loop; return deliveries per second."""
    session = requests.Session()
    session.headers["Authorization"] = "Bearer token"
    body = {"schemas": _SCHEMAS, "externalId": "database|1", "active": True, "userName": "ada@example.test", "name": {"formatted": "Ada"}}
    started = time.monotonic()
    for number in range(count):
        session.post(f"{base}/Users", json=body, timeout=5).json()
        session.get(f"{base}/Users", params={"filter": f'externalId eq "database|{number}"'}, timeout=5).json()
        session.put(f"{base}/Users/1", json=body, timeout=5).json()
    return 2 * count / (time.monotonic() - started)


def queue(base: str, count: int) -> tuple[str, str]:
    """Create a tenant whose stream must deliver the creation and a change of `count` users; return tenant and stream."""
    tenant_id = f"bench-{secrets.token_hex(6)}"
    tenants.create_tenant(tenant_id=tenant_id, name="bench", host=f"{tenant_id}.example.test")
    people = connections.create_connection(tenant_id=tenant_id, name="people", strategy="database")
    sealed = {"SCIM_BASE_URL": base, "SCIM_BEARER_TOKEN": "token"}
    action = create_action(tenant_id=tenant_id, name="scim", template="scim-user-provisioning", secrets=sealed)
    deploy_action(tenant_id=tenant_id, action_id=action.pk)
    destination = {"action_id": str(action.pk)}
    stream = create_stream(
        tenant_id=tenant_id, subscriptions=["user.created", "user.updated"], destination_type="action", destination=destination
    )
    for number in range(count):
        user = users.create_user(tenant_id=tenant_id, connection=people, email=f"ada{number}@example.test", name="Ada")
        users.update_user(tenant_id=tenant_id, user_id=user.user_id, changes={"nickname": "Countess"})
    number_tenant(tenant_id)
    return tenant_id, stream.pk


def delivered(stream_id: str, expected: int) -> float:
    """Wait until every delivery is settled; return deliveries per second between the first attempt and the last outcome."""
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FILTER (WHERE state = 'delivered'), count(*) FILTER (WHERE error_class <> ''), "
                "extract(epoch FROM max(settled_at) - min(first_attempt_at)) FROM provisioning_delivery WHERE stream_id = %s",
                [stream_id],
            )
            done, failed, seconds = cursor.fetchone()
        assert not failed, "deliveries failed"
        if done == expected:
            return float(expected / float(seconds))
        time.sleep(0.1)


def main(count: int) -> None:
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    tenant_id, stream_id = queue(base, count)
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.scim_answers", str(port)])
    try:
        compare(stream_id, base, count)
    finally:
        server.kill()
        server.wait()
        delete_stream(tenant_id=tenant_id, stream_id=stream_id)


def compare(stream_id: str, base: str, count: int) -> None:
    """Measure the loop before and after the worker, because other load on the machine may change during the run."""
    wait_for(base)
    bare = bare_loop(base, count)
    command = [sys.executable, "-m", "celery", "-A", "config", "worker", "--concurrency", "1", "--loglevel", "WARNING"]
    worker = subprocess.Popen([*command, "--without-gossip", "--without-mingle"])
    try:
        ours = delivered(stream_id, 2 * count)
    finally:
        worker.terminate()
        worker.wait(30)
    again = bare_loop(base, count)
    best = max(bare, again)
    print(f"bare loop {bare:.0f} and {again:.0f}/s, one worker process {ours:.0f}/s: {100 * ours / best:.0f} % of the bare loop")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
