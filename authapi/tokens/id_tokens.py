"""Id tokens (OpenID Connect Core 1.0, 2): who logged in, when and how, signed for one client."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Mapping
from typing import Any

import orjson
from django.conf import settings
from joserfc import jws
from joserfc.jwk import OctKey

from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import Client
from authapi.tokens.keys import signing_key
from authapi.tokens.minting import organization_claims
from authapi.tokens.profile_claims import profile_claims, profile_switches
from authapi.tokens.user_tokens import UserIssue


def id_token(issue: UserIssue, *, front_channel: Mapping[str, str | None] | None = None) -> str:
    """Return the signed id token of a login. `front_channel` has what travels beside it: `access_token`, `code`, `state`.

    Raises `RequestRefused` for a client whose id tokens are signed with a secret that is not kept.
    """
    claims = _claims(issue, now=int(time.time())) | _hashes(front_channel or {})
    payload = orjson.dumps(claims)
    client = issue.client
    if client.algorithm == Client.HS256_ALGORITHM:
        secret = client.client_secret
        if not secret:
            raise RequestRefused(OAuthCase.NO_SIGNING_SECRET)
        return jws.serialize_compact({"alg": "HS256", "typ": "JWT"}, payload, OctKey.import_key(secret), algorithms=["HS256"])
    kid, key = signing_key(issue.host.tenant_id)
    return jws.serialize_compact({"alg": "RS256", "typ": "JWT", "kid": kid}, payload, key, algorithms=["RS256"])


def id_token_seconds(client: Client) -> int:
    return int(client.settings.get("jwt_configuration", {}).get("lifetime_in_seconds") or settings.ID_TOKEN_SECONDS)


def _claims(issue: UserIssue, *, now: int) -> dict[str, Any]:
    switches = profile_switches(issue.client.settings)
    claims = profile_claims(issue.user, issue.scopes, writes_times_as_text=switches.writes_times_as_text) | {
        "iss": issue.host.issuer,
        "sub": issue.user.user_id,
        "aud": issue.client.client_id,
        "iat": now,
        "exp": now + id_token_seconds(issue.client),
        # A refreshed one repeats it: 12.2 wants the time of the original authentication.
        "auth_time": int(issue.auth_time.timestamp()),
    }
    if issue.session is not None:
        claims["sid"] = issue.session.pk
    if issue.nonce:
        claims["nonce"] = issue.nonce
    if issue.methods:
        claims["amr"] = list(dict.fromkeys(str(method["name"]) for method in issue.methods))
    return claims | organization_claims(issue.organization, issue.host.tenant_id)


def _hashes(beside: Mapping[str, str | None]) -> dict[str, str]:
    """Return the hashes that tie the token to what travels with it (Core 1.0, 3.3.2.11; FAPI 1.0 Advanced, 5.1)."""
    names = {"access_token": "at_hash", "code": "c_hash", "state": "s_hash"}
    return {names[name]: half_hash(value) for name, value in beside.items() if value}


def half_hash(value: str) -> str:
    """Return the left half of the SHA-256 digest, base64url; both algorithms in use have it."""
    return base64.urlsafe_b64encode(hashlib.sha256(value.encode()).digest()[:16]).decode().rstrip("=")
