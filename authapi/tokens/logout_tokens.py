"""Logout tokens (OpenID Connect Back-Channel Logout 1.0, 2.4)."""

from __future__ import annotations

import secrets
import time
from typing import Any

import orjson

from authapi.models import Client, LogoutNotice
from authapi.tokens.signing import SHARED, signature_of_client, signed

_SECONDS = 120
_EVENT = "http://schemas.openid.net/event/backchannel-logout"
_TYPE = "logout+jwt"


def can_sign(client: Client) -> bool:
    """Tell whether the service can sign tokens for this client.

    False if the tokens of the client are signed with a secret that is not stored.
    """
    return client.id_token_algorithm != SHARED or bool(client.client_secret)


def logout_token(notice: LogoutNotice, client: Client) -> str:
    """Return a new logout token for a client, signed with the same key and algorithm as the id tokens of this client."""
    payload = orjson.dumps(logout_claims(notice, client, now=int(time.time())))
    return signed(payload, {"typ": _TYPE}, signature_of_client(client), tenant_id=notice.tenant_id)


def logout_claims(notice: LogoutNotice, client: Client, *, now: int) -> dict[str, Any]:
    """Return the claims. There is no `nonce`, so that no client mistakes the token for an id token (2.4)."""
    return {
        "iss": notice.issuer,
        "sub": notice.subject,
        "aud": client.client_id,
        "iat": now,
        "exp": now + _SECONDS,
        "jti": secrets.token_urlsafe(18),
        "sid": notice.sid,
        "events": {_EVENT: {}},
    }
