"""Checks id tokens of providers (OpenID Connect Core 1.0, 3.1.3.7): the token cannot choose its key or its algorithm."""

from __future__ import annotations

import binascii
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwt import Token

from authapi.failures.logins import LoginCase
from authapi.tokens.published_keys import KEY_TYPES, decoded_part, fitting_key
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.social.known_providers import TENANT_ID
from foundation.json_values import text_problem

LEEWAY_SECONDS = 60
MAX_TOKEN_BYTES = 16 * 1024
_LONGEST_SUBJECT = 255
_REFUSED_HEADERS = ("crit", "b64", "zip", "enc")

Keys = Callable[..., list[dict[str, Any]]]
# A function that returns the issuer which the signed claims must name.
IssuerOf = Callable[[Mapping[str, Any]], str]


def verified_claims(
    token: Any,
    *,
    issuer: str | IssuerOf,
    client_id: str,
    nonce: str,
    access_token: str | None,
    keys: Keys,
    needs_nonce: bool = True,
    now: float | None = None,
) -> dict[str, Any]:
    """Return the claims of an id token that this issuer made for this service and for this login. Raises `UpstreamFailed`.

    `keys` returns the provider's keys. If no key matches, `keys` is called again with `is_key_unknown`, to fetch the current keys. Without
    `needs_nonce` a token may have no nonce; a nonce in the token must still match.
    """
    decoded = opened(token, keys)
    is_nonce_checked = needs_nonce or "nonce" in decoded.claims
    options: Any = {
        "iss": {"essential": True, "value": issuer if isinstance(issuer, str) else issuer(decoded.claims)},
        "aud": {"essential": True, "value": client_id},
    }
    parameters = {"nonce": nonce if is_nonce_checked else "", "client_id": client_id, "access_token": access_token}
    claims = CodeIDToken(decoded.claims, decoded.header, options, parameters)
    _validate(claims, now)
    return dict(claims)


def opened(token: Any, keys: Keys) -> Token:
    """Return the parsed token if one of the provider's keys verifies its signature. Checks no claims. Raises `UpstreamFailed`."""
    if not isinstance(token, str) or len(token) > MAX_TOKEN_BYTES:
        raise _refused("The token is missing or too long.")
    header = _header(token)
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in KEY_TYPES or any(name in header for name in _REFUSED_HEADERS):
        raise _refused("The header of the token has an algorithm or a member that is not allowed.")
    found = fitting_key(algorithm, kid, keys()) or fitting_key(algorithm, kid, keys(is_key_unknown=True))
    if found is None:
        raise _refused("The provider has no matching key.")
    key, key_issuer = found
    try:
        decoded = jwt.decode(token, key, algorithms=[algorithm])
    except (JoseError, ValueError) as error:
        raise _refused("The signature of the token does not match a key of the provider.") from error
    if not _may_sign(key_issuer, decoded.claims):
        raise _refused("The key of the token belongs to another directory.")
    return decoded


def _validate(claims: CodeIDToken, now: float | None) -> None:
    try:
        claims.validate(now=int(time.time() if now is None else now), leeway=LEEWAY_SECONDS)
    except (JoseError, ValueError, TypeError) as error:
        raise _refused(f"A claim is invalid: {type(error).__name__} {getattr(error, 'claim', '')}") from error
    check_subject(claims)


def check_subject(claims: Mapping[str, Any]) -> None:
    """Raise `UpstreamFailed` for claims without a valid subject."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT:
        raise _refused("The claim sub must be a string of 1 to 255 characters.")
    if text_problem(subject):
        raise _refused("The claim sub has characters that cannot be stored.")


def _may_sign(key_issuer: Any, claims: Mapping[str, Any]) -> bool:
    """Tell whether a key that names an issuer may sign for the issuer of these claims.

    Microsoft publishes the keys of all directories at one address. A key that is valid for a single directory names that directory.
    """
    if key_issuer is None:
        return True
    return isinstance(key_issuer, str) and key_issuer.replace(TENANT_ID, str(claims.get("tid"))) == claims.get("iss")


def _header(token: str) -> dict[str, Any]:
    first = token.partition(".")[0]
    try:
        header = orjson.loads(decoded_part(first))
    except (binascii.Error, ValueError) as error:
        raise _refused("The token is not a JWT.") from error
    if not isinstance(header, dict):
        raise _refused("The token is not a JWT.")
    return header


def _refused(detail: str) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, detail)
