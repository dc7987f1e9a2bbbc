"""Logins of users at clients for tests: the state after a successful login at the authorization endpoint."""

from __future__ import annotations

import base64
import hashlib
import uuid
from dataclasses import replace
from typing import Any

from django.utils import timezone

from authapi.grants.entitlements import user_entitlement
from authapi.login.sessions import begin_session
from authapi.models import Client
from authapi.services.clients import create_client
from authapi.tokens.authorization_codes import issue_code
from authapi.tokens.user_tokens import CodeParameters, UserIssue
from identity.models import Connection, Tenant, User
from identity.services.connections import create_connection
from tests.factories.authapi import Registered, host_of
from tests.factories.identity import make_user

CALLBACK = "https://app.example.test/callback"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
WEB_GRANTS = ("authorization_code", "refresh_token")


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier (RFC 7636, 4.2), computed without the code under test."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def web_client(tenant: Tenant, *, grant_types: Any = WEB_GRANTS, **changes: Any) -> Registered:
    """Create a confidential client with which users can log in."""
    client, secret = create_client(tenant_id=tenant.pk, name="Web", grant_types=grant_types, redirect_uris=CALLBACK, **changes)
    return Registered(client, secret)


def public_client(tenant: Tenant, **changes: Any) -> Registered:
    """Create a client without a secret, such as an application in a browser."""
    return web_client(tenant, token_endpoint_auth_method=Client.AuthMethod.NONE, **changes)


def some_user(tenant: Tenant, **profile: Any) -> User:
    """Create a user of the tenant's database connection `people`."""
    connection = Connection.objects.of(tenant.pk).filter(name="people").first()
    return make_user(connection=connection or create_connection(tenant_id=tenant.pk, name="people", strategy="database"), **profile)


def login_of(
    tenant: Tenant, registered: Registered, user: User, *, scope: str = "openid profile", audience: str | None = None, **changes: Any
) -> UserIssue:
    """Log a user in at a client, in a new session."""
    host = host_of(tenant)
    granted = user_entitlement(
        host=host, client=registered.client, user=user, audience=audience, scope=scope, organization=changes.get("organization")
    )
    session, _ = begin_session(
        tenant_id=tenant.pk, user=user, connection=user.connection, methods=["pwd"], ip="192.0.2.7", user_agent="Test", is_persistent=True
    )
    issue = UserIssue(
        host=host,
        client=registered.client,
        user=user,
        connection=user.connection,
        audience=granted.audience,
        scopes=granted.scopes,
        session=session,
        organization=None,
        auth_time=timezone.now(),
        methods=session.methods,
        nonce="",
        lineage=uuid.uuid4(),
        confirmation=None,
    )
    return replace(issue, **changes)


def code_of(login: UserIssue, *, challenge: str | None = None, method: str = "S256", is_redirect_uri_given: bool = True) -> str:
    """Return an authorization code.

    If `challenge` is None, a code for a public client has the challenge of `VERIFIER`; other codes have none.
    """
    if challenge is None:
        challenge = challenge_of(VERIFIER) if login.client.is_public else ""
    return issue_code(
        login,
        CodeParameters(
            redirect_uri=CALLBACK,
            is_redirect_uri_given=is_redirect_uri_given,
            code_challenge=challenge,
            code_challenge_method=method if challenge else "",
        ),
    )


def code_form(registered: Registered, code: str, **changes: Any) -> dict[str, Any]:
    """Return the fields of a valid exchange of a code. `changes` replaces fields; the value None removes a field."""
    fields: dict[str, Any] = {
        "grant_type": "authorization_code",
        "client_id": registered.client_id,
        "client_secret": registered.secret or None,
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER if registered.client.is_public else None,
    }
    return {name: value for name, value in (fields | changes).items() if value is not None}


def refresh_form(registered: Registered, token: str, **changes: Any) -> dict[str, Any]:
    """Return the fields of a valid request with a refresh token. `changes` replaces fields; the value None removes a field."""
    fields: dict[str, Any] = {
        "grant_type": "refresh_token",
        "client_id": registered.client_id,
        "client_secret": registered.secret or None,
        "refresh_token": token,
    }
    return {name: value for name, value in (fields | changes).items() if value is not None}
