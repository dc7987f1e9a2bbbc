"""`manage.py seed_demo` on databases of its own: complete, idempotent, and never among the tenants of somebody else."""

from __future__ import annotations

import json
import os
import secrets
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

ROOT = Path(__file__).resolve().parents[2]
SECRETS = {
    "DEMO_ADMIN_PASSWORD": "an-admin-password-of-the-demo",
    "DEMO_CLIENT_SECRET": "a-client-secret-of-the-demo-0123456789abcdef",
    "DEMO_SCIM_BASE_URL": "http://127.0.0.1:8080/v2",
    "DEMO_SCIM_TOKEN": "a-scim-token-of-the-demo",
}


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """A database that holds nothing, on the server of the test run."""
    name = f"seed_{secrets.token_hex(6)}"
    server = os.environ["DATABASE_URL"]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        parts = urlsplit(server)
        # Written by hand: geturl leaves the slashes out before an empty host.
        yield f"{parts.scheme}://{parts.netloc}/{name}?{parts.query}"
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def seed(database: str, facts: Path, **changed: str) -> dict[str, Any]:
    environment = {**os.environ, **SECRETS, "LOCALHOST_TENANT": "demo", "DATABASE_URL": database, **changed}
    command = [sys.executable, str(ROOT / "manage.py"), "seed_demo", "--migrate", "--facts", str(facts)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not any(secret in done.stdout + done.stderr for secret in SECRETS.values())
    made: dict[str, Any] = json.loads(facts.read_text())
    return made


def rows(database: str, query: str) -> list[Any]:
    with psycopg.connect(database) as connection:
        return connection.execute(query).fetchall()


def test_the_demo_is_complete_and_a_second_run_adds_nothing(database: str, tmp_path: Path) -> None:
    first = seed(database, tmp_path / "facts")
    events = rows(database, "SELECT count(*) FROM events_event")

    second = seed(database, tmp_path / "facts")

    assert second == first
    assert set(first) == {"tenant", "admin_user", "client_id", "stream_id"}
    assert stat.S_IMODE((tmp_path / "facts").stat().st_mode) == 0o600
    assert rows(database, "SELECT count(*) FROM events_event") == events
    assert rows(database, "SELECT name FROM identity_connection ORDER BY name") == [("company",), ("email",), ("people",)]
    assert rows(database, "SELECT id, status FROM events_eventstream") == [(first["stream_id"], "enabled")]
    assert rows(database, "SELECT name FROM provisioning_actionsecret ORDER BY name") == [("SCIM_BASE_URL",), ("SCIM_BEARER_TOKEN",)]


def test_secrets_that_have_drifted_are_set_again(database: str, tmp_path: Path) -> None:
    seed(database, tmp_path / "facts")
    digest = "SELECT secret_digest FROM authapi_client"
    password = "SELECT password FROM identity_staff"
    before = (rows(database, digest), rows(database, password))

    seed(
        database, tmp_path / "facts", DEMO_CLIENT_SECRET="another-client-secret-0123456789abcdef", DEMO_ADMIN_PASSWORD="another-password-1"
    )

    assert rows(database, digest) != before[0]
    assert rows(database, password) != before[1]


def test_the_demo_stays_usable_when_its_owner_adds_a_tenant(database: str, tmp_path: Path) -> None:
    first = seed(database, tmp_path / "facts")
    add_tenant(database, "acme")

    assert seed(database, tmp_path / "facts") == first


def test_a_database_with_tenants_of_somebody_else_gets_no_demo(database: str, tmp_path: Path) -> None:
    # The mark of the demo is its client: without it, even a tenant of the same name is somebody else's.
    seed(database, tmp_path / "facts")
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE authapi_client SET metadata = '{}'")
    counts = "SELECT (SELECT count(*) FROM identity_tenant), (SELECT count(*) FROM authapi_client), (SELECT count(*) FROM identity_staff)"
    before = rows(database, counts)

    assert seed(database, tmp_path / "facts") == {}
    assert rows(database, counts) == before


def add_tenant(database: str, tenant_id: str) -> None:
    call = f"create_tenant(tenant_id={tenant_id!r}, name='x', host='{tenant_id}.example.test')"
    code = f"from identity.services.tenants import create_tenant; {call}"
    environment = {**os.environ, "DATABASE_URL": database}
    subprocess.run([sys.executable, str(ROOT / "manage.py"), "shell", "-c", code], env=environment, check=True, capture_output=True)
