"""Judging the id tokens of providers (OpenID Connect Core 1.0, 3.1.3.7): the key, the algorithm and every claim are ours to choose."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable
from typing import Any

import orjson
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from foundation.json_values import text_problem

# Signatures with private keys only: with HS256 the public key or a shared secret would do to forge one.
KEY_TYPES = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384"), "EC"),
}
LEEWAY_SECONDS = 60
MAX_TOKEN_BYTES = 16 * 1024
_LONGEST_SUBJECT = 255
# RFC 7518, 3.3: 2048 bits or more.
_SHORTEST_RSA, _LONGEST_RSA = 2048, 8192
_IMPORTERS: dict[str, type[RSAKey | ECKey]] = {"RSA": RSAKey, "EC": ECKey}
_CURVES = {"ES256": "P-256", "ES384": "P-384"}
_REFUSED_HEADERS = ("crit", "b64", "zip", "enc")

Keys = Callable[..., list[dict[str, Any]]]


def verified_claims(
    token: Any, *, issuer: str, client_id: str, nonce: str, access_token: str | None, keys: Keys, now: float | None = None
) -> dict[str, Any]:
    """Return the claims of an id token that is for us, from this issuer, about this login. Raises `UpstreamFailed`.

    `keys` returns the provider's keys, and is asked once more with `is_key_unknown` when the right one is missing.
    """
    if not isinstance(token, str) or len(token) > MAX_TOKEN_BYTES:
        raise _refused("There is no id token, or a very long one.")
    header = _header(token)
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in KEY_TYPES or any(name in header for name in _REFUSED_HEADERS):
        raise _refused("Its header asks for what is not allowed.")
    key = _key_for(algorithm, kid, keys()) or _key_for(algorithm, kid, keys(is_key_unknown=True))
    if key is None:
        raise _refused("No key of the provider fits.")
    try:
        decoded = jwt.decode(token, key, algorithms=[algorithm])
    except (JoseError, ValueError) as error:
        raise _refused("No key of the provider made its signature.") from error
    options: Any = {"iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": client_id}}
    parameters = {"nonce": nonce, "client_id": client_id, "access_token": access_token}
    claims = CodeIDToken(decoded.claims, decoded.header, options, parameters)
    try:
        claims.validate(now=int(time.time() if now is None else now), leeway=LEEWAY_SECONDS)
    except (JoseError, ValueError, TypeError) as error:
        raise _refused(f"A claim does not fit: {type(error).__name__} {getattr(error, 'claim', '')}") from error
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or text_problem(subject):
        raise _refused("It names no subject.")
    return dict(claims)


def _key_for(algorithm: str, kid: Any, published: list[dict[str, Any]]) -> RSAKey | ECKey | None:
    """Return the one key that may have signed; several without an id to choose by are none."""
    kind = KEY_TYPES[algorithm]
    fitting = [
        key
        for key in published
        if key.get("kty") == kind
        and key.get("use") in (None, "sig")
        and key.get("alg") in (None, algorithm)
        and key.get("crv") == _CURVES.get(algorithm)
        and kid in (None, key.get("kid"))
    ]
    if len(fitting) != 1:
        return None
    # Only the numbers: other members, such as a private part or an address, have no meaning.
    numbers: dict[str, Any] = {name: fitting[0][name] for name in ("kty", "n", "e", "crv", "x", "y") if name in fitting[0]}
    try:
        # A short key is factored, a huge one keeps the processor busy.
        if kind == "RSA" and not _SHORTEST_RSA <= int.from_bytes(_decoded(numbers["n"])).bit_length() <= _LONGEST_RSA:
            return None
        return _IMPORTERS[kind].import_key(numbers)
    except (JoseError, ValueError, TypeError, KeyError):
        return None


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _header(token: str) -> dict[str, Any]:
    first = token.partition(".")[0]
    try:
        header = orjson.loads(_decoded(first))
    except (binascii.Error, ValueError) as error:
        raise _refused("It is no token.") from error
    if not isinstance(header, dict):
        raise _refused("It is no token.")
    return header


def _refused(detail: str) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, detail)
