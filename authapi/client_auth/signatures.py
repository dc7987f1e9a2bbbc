"""Signatures of clients: compact JWS (RFC 7515), parsed strictly and verified with a registered key."""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import Any, TypeGuard

import orjson
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from authapi.models import ClientCredential

ALGORITHMS = ("RS256", "RS384", "PS256")
# RFC 8725, 3.10: refuse headers with a key, with the URL of a key, or with extensions that must be understood.
REFUSED_HEADERS = ("crit", "b64", "zip", "enc", "jwk", "jku", "x5u")


class MalformedJws(ValueError):
    """The text is not a compact JWS whose header and payload are JSON objects."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def read_jws(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the unverified header and claims of a token. Raises `MalformedJws`."""
    parts = token.split(".")
    if len(parts) != 3:
        raise MalformedJws
    return _object(parts[0]), _object(parts[1])


def verifies(token: str, key: RSAKey, algorithm: str) -> bool:
    """Tell whether `key` made the signature with `algorithm`. The algorithm comes from the registered key, never from the header."""
    try:
        # The algorithms are named explicitly, because the library does not allow RS384 and PS256 by default.
        jws.deserialize_compact(token, key, algorithms=[algorithm])
    except (JoseError, ValueError):
        return False
    return True


def key_of(credential: ClientCredential) -> RSAKey:
    """Return the key of a credential with the type "public key"."""
    jwk = credential.public_jwk or {}
    return imported(jwk["n"], jwk["e"])


@lru_cache(maxsize=4096)
def imported(modulus: str, exponent: str) -> RSAKey:
    """Return the key with this modulus and exponent."""
    return RSAKey.import_key({"kty": "RSA", "n": modulus, "e": exponent})


@lru_cache(maxsize=1)
def decoy() -> RSAKey:
    """Return a key that no client has, for dummy checks that take as long as real checks."""
    return RSAKey.generate_key(2048, private=False)


def is_time(value: Any) -> TypeGuard[float]:
    """Tell whether a claim is a number of seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _object(part: str) -> dict[str, Any]:
    try:
        value = orjson.loads(base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError) as error:
        raise MalformedJws from error
    if not isinstance(value, dict):
        raise MalformedJws
    return value
