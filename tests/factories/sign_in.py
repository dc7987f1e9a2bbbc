"""Users, clients and sessions of logins for tests, created by the product's own services and committed."""

from __future__ import annotations

from typing import Any

from authapi.login.sessions import begin_session
from authapi.models import Client, Session
from authapi.services.clients import create_client
from identity.models import Connection, Tenant, User
from tests.factories.models.identity import ConnectionFactory, UserFactory

PASSWORD = "Correct-Horse-7-Battery"
CALLBACK = "https://app.example.test/callback"


def web_client(tenant: Tenant, **changes: Any) -> tuple[Client, str]:
    """Create a regular web application with one callback. Return it with its secret."""
    fields: dict[str, Any] = {"name": "Web shop", "grant_types": ["authorization_code", "refresh_token"], "redirect_uris": CALLBACK}
    return create_client(tenant_id=tenant.pk, **{**fields, **changes})


def people(tenant: Tenant, *clients: Client, name: str = "people", **options: Any) -> Connection:
    """Create a database connection that is enabled for these clients."""
    enabled = [client.client_id for client in clients]
    return ConnectionFactory.create(tenant_id=tenant.pk, name=name, enabled_clients=enabled, options=options)


def person(connection: Connection, **profile: Any) -> User:
    """Create a user who can log in with `PASSWORD`."""
    fields: dict[str, Any] = {"email": "ada@example.test", "email_verified": True, "name": "Ada Lovelace", "password": PASSWORD}
    return UserFactory.create(connection=connection, **{**fields, **profile})


def session_of(user: User, **changes: Any) -> tuple[Session, str]:
    """Create a new session. Return it with its cookie."""
    fields: dict[str, Any] = {"methods": ["pwd"], "ip": "192.0.2.1", "user_agent": "Test", "is_persistent": True}
    return begin_session(tenant_id=user.tenant_id, user=user, connection=user.connection, **{**fields, **changes})
