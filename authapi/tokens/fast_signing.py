"""Fast path: makes a compact JWS with RS256 in two steps.

The first step builds the input of the signature, the second step signs it on demand. The plain path is joserfc, which signs with every
algorithm. Both paths return the same bytes, because RS256 signatures are deterministic. The measurement is in docs/figures.md.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jws
from joserfc.jwk import RSAKey

FAST_ALGORITHM = "RS256"
_PADDING, _DIGEST = PKCS1v15(), SHA256()

# A function that makes the signature and returns the whole token.
Signing = Callable[[], str]


def signing(header: Mapping[str, str], payload: bytes, key: RSAKey, *, algorithm: str = FAST_ALGORITHM) -> Signing:
    """Return a function that signs the payload. The function releases the interpreter lock, so that threads can sign in parallel."""
    private = key.private_key
    if algorithm != FAST_ALGORITHM or header["alg"] != algorithm or private is None:
        return partial(plainly_signed, header, payload, key, algorithm=algorithm)
    return partial(_signed, b"%b.%b" % (_encoded_header(tuple(header.items())), _encoded(payload)), private)


def plainly_signed(header: Mapping[str, str], payload: bytes, key: RSAKey, *, algorithm: str = FAST_ALGORITHM) -> str:
    """Return the whole token, made by joserfc."""
    return jws.serialize_compact(dict(header), payload, key, algorithms=[algorithm])


def _signed(text: bytes, key: RSAPrivateKey) -> str:
    return (b"%b.%b" % (text, _encoded(key.sign(text, _PADDING, _DIGEST)))).decode()


# The encoded header is cached, because all tokens of one key and one type have the same header.
@lru_cache(maxsize=1024)
def _encoded_header(members: tuple[tuple[str, Any], ...]) -> bytes:
    return _encoded(json.dumps(dict(members), ensure_ascii=True, separators=(",", ":")).encode())


def _encoded(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")
