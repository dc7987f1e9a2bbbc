"""Rows of a login: a session, a refresh token, a consent, lines of the sign-in log, and a block."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any

from django.utils import timezone

from authapi.login.sessions import note_client
from authapi.models import Client, Consent, LoginFailures, RefreshToken, Session, SignIn, SigningKey
from authapi.tokens.key_pairs import KeyPair, new_key_pair
from identity.models import User
from tests.factories.models.authapi import (
    ConsentFactory,
    LoginFailuresFactory,
    RefreshTokenFactory,
    SessionFactory,
    SignInFactory,
    SigningKeyFactory,
)


def make_session(user: User, client: Client | None = None, **changes: Any) -> Session:
    """Create a session of the user in which `client` got tokens."""
    session = SessionFactory.create(user=user)
    if client is not None:
        note_client(session, client, protocol="oauth")
    if changes:
        Session.objects.of(user.tenant_id).filter(pk=session.pk).update(**changes)
        session.refresh_from_db()
    return session


def make_refresh_token(user: User, client: Client, session: Session | None = None, **changes: Any) -> RefreshToken:
    """Create a refresh token of the user at the client. No test knows the secret of the token."""
    values: dict[str, Any] = {
        "audience": "https://orders.example.test",
        "scope": "openid offline_access",
        "sid": session.pk if session else "",
        "session": session,
    }
    return RefreshTokenFactory.create(user=user, application=client, **{**values, **changes})


def make_consent(user: User, client: Client, audience: str = "https://orders.example.test") -> Consent:
    return ConsentFactory.create(user=user, client=client, audience=audience, scopes=["read:orders"])


def make_sign_in(user: User, client: Client | None = None, **changes: Any) -> SignIn:
    """Create a line of the sign-in log.

    The line is ten seconds old by default, because `GET /logs` does not return the newest lines yet.
    """
    values: dict[str, Any] = {
        "type": "fp",
        "is_success": False,
        "description": "Wrong email or password.",
        "user_id": user.user_id,
        "user_name": user.email or "",
        "client_id": client.client_id if client else "",
        "client_name": client.name if client else "",
        "connection": user.connection.name,
    }
    created_at = changes.pop("created_at", timezone.now() - timedelta(seconds=10))
    row = SignInFactory.create(tenant_id=user.tenant_id, **{**values, **changes})
    SignIn.all_tenants.filter(pk=row.pk).update(created_at=created_at)
    row.refresh_from_db()
    return row


def make_block(user: User, **changes: Any) -> LoginFailures:
    """Create a block of the user's email address for one IP address."""
    now = timezone.now()
    values: dict[str, Any] = {"identifier": user.email, "count": 10, "last_failed_at": now, "blocked_at": now}
    return LoginFailuresFactory.create(connection=user.connection, **{**values, **changes})


def make_previous_key(tenant_id: str) -> SigningKey:
    """Create a key that no longer signs but still verifies. Its key pair is created once per process."""
    pair, now = _pair(), timezone.now()
    times = {"current_since": now, "rotated_at": now, "verifies_until": now + timedelta(days=1)}
    key = SigningKeyFactory.build(tenant_id=tenant_id, public_jwk=pair.public_jwk, state=SigningKey.State.PREVIOUS, **times)
    key.set_private_key(pair.private_pem)
    key.save()
    return key


def sign_in_rows(user: User, client: Client) -> dict[str, str]:
    """Create one row of each kind for the user. Return their ids by kind."""
    session = make_session(user, client)
    make_block(user)
    return {
        "session": session.pk,
        "refresh token": make_refresh_token(user, client, session).wire_id,
        "user grant": str(make_consent(user, client).pk),
        "log line": make_sign_in(user, client).pk,
        "signing key": make_previous_key(user.tenant_id).kid,
    }


@cache
def _pair() -> KeyPair:
    return new_key_pair(subject="tests", now=timezone.now())
