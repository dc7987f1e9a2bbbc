"""Id tokens (OpenID Connect Core 1.0, 2). An id token is a signed statement for one client: which user logged in, when, and how."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import orjson
from django.conf import settings

from authapi.compliance.levels import has, level_of
from authapi.compliance.rules import NO_PROFILE_IN_BROWSER, STATE_HASH
from authapi.models import Client
from authapi.tokens.fast_signing import Signing
from authapi.tokens.minting import organization_claims
from authapi.tokens.profile_claims import profile_claims, profile_switches
from authapi.tokens.signing import half_hash, signature_of_client, signing_of
from authapi.tokens.user_tokens import UserIssue


def id_token(issue: UserIssue, *, front_channel: Mapping[str, str | None] | None = None) -> str:
    """Return the signed id token of a login. `front_channel` has the values that are sent with the token: `access_token`, `code`, `state`.

    Raises `RequestRefused` if the client's id tokens are signed with its secret and the secret is not stored.
    """
    return id_token_signing(issue, front_channel=front_channel)()


def id_token_signing(issue: UserIssue, *, front_channel: Mapping[str, str | None] | None = None) -> Signing:
    """Return a function that signs the id token of a login. Raises `RequestRefused` as `id_token` does."""
    signature = signature_of_client(issue.client)
    claims = _profile(issue, is_front_channel=front_channel is not None) | _claims(issue, now=int(time.time()))
    claims |= _hashes(issue.client, front_channel or {}, signature.algorithm)
    return signing_of(orjson.dumps(claims), {"typ": "JWT"}, signature, tenant_id=issue.host.tenant_id)


def id_token_seconds(client: Client) -> int:
    return int(client.settings.get("jwt_configuration", {}).get("lifetime_in_seconds") or settings.ID_TOKEN_SECONDS)


def _profile(issue: UserIssue, *, is_front_channel: bool) -> dict[str, Any]:
    switches = profile_switches(issue.client.settings)
    if is_front_channel and has(switches.level, NO_PROFILE_IN_BROWSER):
        return {}
    named = issue.asked.id_token_claims if issue.asked else ()
    return profile_claims(issue.user, issue.scopes, named, writes_times_as_text=switches.writes_times_as_text)


def _claims(issue: UserIssue, *, now: int) -> dict[str, Any]:
    claims: dict[str, Any] = {
        "iss": issue.host.issuer,
        "sub": issue.user.user_id,
        "aud": issue.client.client_id,
        "iat": now,
        "exp": now + id_token_seconds(issue.client),
        # A refreshed id token repeats the time of the original login, as OpenID Connect Core 1.0, 12.2 requires.
        "auth_time": int(issue.auth_time.timestamp()),
    }
    if issue.session is not None:
        claims["sid"] = issue.session.pk
    if issue.nonce:
        claims["nonce"] = issue.nonce
    if issue.asked and issue.asked.acr:
        claims["acr"] = issue.asked.acr
    if issue.methods:
        claims["amr"] = list(dict.fromkeys(str(method["name"]) for method in issue.methods))
    return claims | organization_claims(issue.organization, issue.host.tenant_id)


def _hashes(client: Client, beside: Mapping[str, str | None], algorithm: str) -> dict[str, str]:
    """Return the hashes that bind the id token to the values that are sent with it (Core 1.0, 3.3.2.11; FAPI 1.0 Advanced, 5.1)."""
    names = {"access_token": "at_hash", "code": "c_hash"}
    if beside.get("state") and has(level_of(client.settings), STATE_HASH):
        names["state"] = "s_hash"
    return {hash_name: half_hash(value, algorithm) for name, hash_name in names.items() if (value := beside.get(name))}
