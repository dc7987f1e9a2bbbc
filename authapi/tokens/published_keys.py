"""Public keys that other services publish: checks which keys are usable, and finds the key that may have signed a token."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

# The list contains only algorithms that sign with a private key. With HS256, every holder of the public key or of the shared secret could
# forge tokens.
KEY_TYPES = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384"), "EC"),
}
# RFC 7518, 3.3: 2048 bits or more.
_SHORTEST_RSA, _LONGEST_RSA = 2048, 8192
# OpenSSL accepts any exponent for keys of up to 3072 bits. An exponent as long as the modulus makes the check of a signature a hundred
# times slower.
_LONGEST_EXPONENT = 64
_IMPORTERS: dict[str, type[RSAKey | ECKey]] = {"RSA": RSAKey, "EC": ECKey}
_CURVES = {"ES256": "P-256", "ES384": "P-384"}


def is_usable_key(key: Mapping[str, Any]) -> bool:
    """Tell whether a public key can verify a token."""
    algorithms = [name for name, kind in KEY_TYPES.items() if kind == key.get("kty") and _CURVES.get(name) == key.get("crv")]
    return any(fitting_key(name, None, [dict(key)]) is not None for name in algorithms)


def fitting_key(algorithm: str, kid: Any, published: list[dict[str, Any]]) -> tuple[RSAKey | ECKey, Any] | None:
    """Return the key that may have signed a token, together with the issuer in this key. None if no key or more than one key fits."""
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
    # Import only the members of the public key: a private part, a URL and other members are not needed.
    numbers: dict[str, Any] = {name: fitting[0][name] for name in ("kty", "n", "e", "crv", "x", "y") if name in fitting[0]}
    try:
        # A short key can be factored, and a very long key costs too much CPU time.
        if kind == "RSA" and not (_SHORTEST_RSA <= _bits(numbers["n"]) <= _LONGEST_RSA and _bits(numbers["e"]) <= _LONGEST_EXPONENT):
            return None
        return _IMPORTERS[kind].import_key(numbers), fitting[0].get("issuer")
    except (JoseError, ValueError, TypeError, KeyError):
        return None


def _bits(number: str) -> int:
    return int.from_bytes(decoded_part(number)).bit_length()


def decoded_part(text: str) -> bytes:
    """Return the bytes of one part of a token or a key (RFC 7515, 2). Raises `ValueError`."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
