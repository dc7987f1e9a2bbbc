"""Tokens for logins without a password, such as by fingerprint. A device signs them with a key that its user registered.

The claims are `iss` (id of the device), `sub` (user id), `aud` (issuer of this service), `iat`, `exp` and `jti` (ADR 0103).
"""

from __future__ import annotations

import time
from typing import Any

import orjson
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from authapi.accounts.password_login import note_login_without_signals
from authapi.client_auth.replays import use_once
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.login.connections import client_connections
from authapi.models import Client, DeviceKey
from authapi.protocols.legacy.requests import LegacyRequest
from authapi.services import sign_in_log
from authapi.tokens.audiences import is_issuer
from authapi.tokens.keys import trust
from identity.models import User

_LONGEST_TOKEN = 4096
_LONGEST_JTI = 64
_LONGEST_SECONDS = 300
_LEEWAY_SECONDS = 10
_TEXTS = ("iss", "sub", "aud", "jti")


def user_of_device(request: LegacyRequest, client: Client, *, device: str, token: str) -> User:
    """Return the user of the device that signed `token`. Raises `RequestRefused`. Writes the login or the refusal to the sign-in log."""
    key = _key(request, client, device, token)
    if key is None:
        _note(request, client, None, "A device presented an invalid token.")
        raise RequestRefused(LegacyCase.INVALID_DEVICE_TOKEN)
    user = key.user
    if user.blocked or all(one.pk != user.connection_id for one in client_connections(client)):
        _note(request, client, user, "The user is blocked, or the client may not use the user's connection.")
        raise RequestRefused(LegacyCase.USER_BLOCKED if user.blocked else LegacyCase.CONNECTION_DISABLED)
    note_login_without_signals(user, request.address)
    _note(request, client, user, "")
    return user


def _key(request: LegacyRequest, client: Client, device: str, token: str) -> DeviceKey | None:
    """Return the key that signed a valid token. Records the use, so that the token is valid once."""
    tenant_id = request.host.tenant_id
    try:
        said = _unverified(token)
        keys = DeviceKey.objects.of(tenant_id).select_related("user__connection")
        key = keys.filter(client=client, user__user_id=said["sub"], device_id=said["iss"], device_name=device).first()
        if key is None:
            return None
        jws.deserialize_compact(token.encode(), RSAKey.import_key(key.public_key), algorithms=["RS256"])
    except (JoseError, ValueError, KeyError):
        return None
    if not _is_current(said, now=time.time()) or not is_issuer(said["aud"], trust.get(tenant_id).hosts):
        return None
    return key if use_once(tenant_id=tenant_id, client_id=client.client_id, jti=_mark(said), until=said["exp"] + _LEEWAY_SECONDS) else None


def _unverified(token: str) -> dict[str, Any]:
    """Return the claims of a token before its signature is checked. Raises `ValueError` or `JoseError` for a malformed token."""
    if len(token) > _LONGEST_TOKEN or not token.isascii():
        raise ValueError
    claims = orjson.loads(jws.extract_compact(token.encode()).payload)
    if not isinstance(claims, dict) or not all(isinstance(claims.get(name), str) for name in _TEXTS):
        raise ValueError
    if not all(type(claims.get(name)) is int for name in ("iat", "exp")) or not 0 < len(claims["jti"]) <= _LONGEST_JTI:
        raise ValueError
    return claims


def _is_current(claims: dict[str, Any], *, now: float) -> bool:
    lasts = claims["exp"] - claims["iat"]
    return bool(claims["iat"] <= now + _LEEWAY_SECONDS and claims["exp"] > now - _LEEWAY_SECONDS and 0 < lasts <= _LONGEST_SECONDS)


def _note(request: LegacyRequest, client: Client, user: User | None, problem: str) -> None:
    sign_in_log.note(
        tenant_id=request.host.tenant_id,
        type="f" if problem else "s",
        is_success=not problem,
        description=problem,
        user=user,
        client=client,
        connection=user.connection.name if user else "",
        ip=request.address,
        user_agent=request.user_agent,
    )


def _mark(claims: dict[str, Any]) -> str:
    """Return the id under which the use of a token is recorded.

    This id never equals the id of a token of another device, or the id of an assertion of a client.
    """
    return f"device\x00{claims['iss']}\x00{claims['sub']}\x00{claims['jti']}"
