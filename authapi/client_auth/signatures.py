"""Signatures of clients: compact JWS (RFC 7515), read strictly and verified with a registered key. Nothing is believed before."""

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
# RFC 8725, 3.10: a key or an address of a key in the header is never used, and what must be understood is not.
REFUSED_HEADERS = ("crit", "b64", "zip", "enc", "jwk", "jku", "x5u")


class MalformedJws(ValueError):
    """It is no compact JWS whose header and payload are JSON objects."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def read_jws(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims of a token, unverified. Raises `MalformedJws`."""
    parts = token.split(".")
    if len(parts) != 3:
        raise MalformedJws
    return _object(parts[0]), _object(parts[1])


def verifies(token: str, key: RSAKey, algorithm: str) -> bool:
    """Tell whether `key` made the signature with `algorithm`, which comes from the registered key and never from the header."""
    try:
        # Named explicitly: the library allows neither RS384 nor PS256 of its own accord.
        jws.deserialize_compact(token, key, algorithms=[algorithm])
    except (JoseError, ValueError):
        return False
    return True


def key_of(credential: ClientCredential) -> RSAKey:
    """Return the key of a credential of the type public key."""
    jwk = credential.public_jwk or {}
    return imported(jwk["n"], jwk["e"])


@lru_cache(maxsize=4096)
def imported(modulus: str, exponent: str) -> RSAKey:
    """Return the key of these two numbers."""
    return RSAKey.import_key({"kty": "RSA", "n": modulus, "e": exponent})


@lru_cache(maxsize=1)
def decoy() -> RSAKey:
    """Return a key that no client has, for checks that must take as long as others."""
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
