"""`manage.py seed_demo` in separate databases. The demo is complete, can be seeded again, and changes only its own tenant."""

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

from tests.databases import create_migrated

ROOT = Path(__file__).resolve().parents[2]
MANAGE = (sys.executable, str(ROOT / "manage.py"))
SECRETS = {
    "DEMO_ADMIN_PASSWORD": "an-admin-password-of-the-demo",
    "DEMO_CLIENT_SECRET": "a-client-secret-of-the-demo-0123456789abcdef",
    "DEMO_SCIM_BASE_URL": "http://127.0.0.1:8080/v2",
    "DEMO_SCIM_TOKEN": "a-scim-token-of-the-demo",
    "DEMO_APPLICATION_SECRET": "an-application-secret-of-the-demo-0123456789",
    "DEMO_USER_PASSWORD": "a-user-password-of-the-demo",
}


@pytest.fixture(scope="module")
def database(django_db_setup: None) -> Iterator[str]:
    """Create a migrated database without tenants on the database server of the test run."""
    name = f"seed_{secrets.token_hex(6)}"
    server = os.environ["DATABASE_URL"]
    with psycopg.connect(server, autocommit=True) as connection:
        create_migrated(connection, name)
        parts = urlsplit(server)
        # Build the URL without `geturl`, which omits the slashes before an empty host.
        yield f"{parts.scheme}://{parts.netloc}/{name}?{parts.query}"
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def seed(database: str, facts: Path, **changed: str) -> dict[str, Any]:
    environment = {**os.environ, **SECRETS, "LOCALHOST_TENANT": "demo", "DATABASE_URL": database, **changed}
    done = subprocess.run([*MANAGE, "seed_demo", "--facts", str(facts)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not any(secret in done.stdout + done.stderr for secret in SECRETS.values())
    made: dict[str, Any] = json.loads(facts.read_text())
    return made


def rows(database: str, query: str) -> list[Any]:
    with psycopg.connect(database) as connection:
        return connection.execute(query).fetchall()


def execute(database: str, statement: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(statement)


def test_the_demo_is_complete_and_a_second_run_restores_only_changed_values(database: str, tmp_path: Path) -> None:
    first = seed(database, tmp_path / "facts")
    events, digest, password = (
        "SELECT count(*) FROM events_event",
        "SELECT secret_digest FROM authapi_client",
        "SELECT password FROM identity_staff",
    )
    before = [rows(database, query) for query in (events, digest, password)]

    second = seed(database, tmp_path / "facts", DEMO_CLIENT_SECRET="another-client-secret-0123456789abcdef")

    assert second == first
    assert set(first) == {"tenant", "admin_user", "client_id", "stream_id", "application_id", "user"}
    assert stat.S_IMODE((tmp_path / "facts").stat().st_mode) == 0o600
    assert rows(database, events) == before[0]
    assert rows(database, digest) != before[1]
    assert rows(database, password) == before[2]
    assert rows(database, "SELECT name FROM identity_connection ORDER BY name") == [("company",), ("email",), ("people",)]
    application = "SELECT redirect_uris, app_type FROM authapi_client WHERE name = 'Demo application'"
    assert rows(database, application) == [("http://localhost:3000/callback", "regular_web")]
    enabled = (
        "SELECT place.name FROM identity_connection place, authapi_client client"
        " WHERE client.name = 'Demo application' AND place.enabled_clients @> to_jsonb(client.client_id)"
    )
    assert rows(database, enabled) == [("people",)]
    assert rows(database, "SELECT email FROM identity_user") == [("ada@demo.example",)]
    assert rows(database, "SELECT id, status FROM events_eventstream") == [(first["stream_id"], "enabled")]
    assert rows(database, "SELECT name FROM provisioning_actionsecret ORDER BY name") == [("SCIM_BASE_URL",), ("SCIM_BEARER_TOKEN",)]


def test_seeding_changes_only_the_demo_and_stops_if_no_client_identifies_the_demo(database: str, tmp_path: Path) -> None:
    first = seed(database, tmp_path / "facts")
    execute(
        database,
        "INSERT INTO identity_tenant (id, name, status, created_at, updated_at) VALUES ('acme', 'Acme', 'active', now(), now())",
    )
    # The owner of the installation may add tenants besides the demo.
    assert seed(database, tmp_path / "facts") == first
    # The metadata of a client identifies the demo. Without this metadata, the tenants may belong to another owner and are not changed.
    execute(database, "UPDATE authapi_client SET metadata = '{}'")
    counts = "SELECT (SELECT count(*) FROM identity_tenant), (SELECT count(*) FROM authapi_client), (SELECT count(*) FROM identity_staff)"
    before = rows(database, counts)

    assert seed(database, tmp_path / "facts") == {}
    assert rows(database, counts) == before
