"""Id tokens that clients send back as hints. An expired id token of this tenant is a valid hint, too. A hint is valid in every browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.models import Client
from authapi.tokens.audiences import is_issuer
from authapi.tokens.claims import VERSION_CLAIM
from authapi.tokens.keys import trust
from authapi.tokens.signing import RSA_ALGORITHMS, SHARED

_LONGEST = 16_384


@dataclass(frozen=True)
class Hint:
    """The login that an id token describes."""

    subject: str
    client_id: str
    sid: str


def read_hint(token: str, *, tenant_id: str) -> Hint:
    """Return the contents of a hint. Raises `RequestRefused` if the hint is not an id token that this tenant signed for one of its clients.

    Expired id tokens are accepted (OpenID Connect RP-Initiated Logout 1.0, 2).
    """
    claims = own_claims(token, tenant_id=tenant_id)
    return Hint(claims["sub"], claims["aud"], claims.get("sid", ""))


def own_claims(token: str, *, tenant_id: str) -> dict[str, Any]:
    """Return the claims of an id token, even an expired one, that this tenant signed for one of its clients; `sub` and `aud` are strings.

    Raises `RequestRefused` for any other token.
    """
    try:
        claims = _claims(token, tenant_id)
        texts = claims["sub"], claims["aud"], claims.get("sid", "")
    except (JoseError, ValueError, KeyError, TypeError) as error:
        raise RequestRefused(LoginCase.INVALID_ID_TOKEN_HINT) from error
    if not all(isinstance(value, str) for value in texts) or not is_issuer(str(claims.get("iss")), trust.get(tenant_id).hosts):
        raise RequestRefused(LoginCase.INVALID_ID_TOKEN_HINT)
    return claims


def _claims(token: str, tenant_id: str) -> dict[str, Any]:
    if len(token) > _LONGEST or not token.isascii():
        raise ValueError
    unverified = jws.extract_compact(token.encode())
    claims = orjson.loads(unverified.payload)
    algorithm = unverified.headers().get("alg")
    if algorithm == SHARED:
        key: Any = _secret_of(str(claims["aud"]), tenant_id)
    else:
        # The key id selects one of the tenant's keys, which also sign access tokens. Access tokens are refused below: they have another
        # type, or a claim with the version of their client.
        known = trust.get(tenant_id).public_keys
        key = known[str(unverified.headers().get("kid"))].imported()
    if str(unverified.headers().get("typ", "JWT")).lower() != "jwt" or VERSION_CLAIM in claims:
        raise ValueError
    # The selected key decides which algorithms are accepted, so that a public key is never used as a shared secret.
    jws.deserialize_compact(token.encode(), key, algorithms=[SHARED] if algorithm == SHARED else list(RSA_ALGORITHMS))
    return dict(claims)


def _secret_of(client_id: str, tenant_id: str) -> OctKey:
    """Return the key of a client whose id tokens are signed with its secret. Raises `ValueError` for any other client."""
    client = Client.objects.of(tenant_id).filter(client_id=client_id[:64], algorithm=SHARED).first()
    if client is None or not client.client_secret:
        raise ValueError
    return OctKey.import_key(client.client_secret)
