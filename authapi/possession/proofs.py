"""DPoP proofs (RFC 9449, 4.3): parsed strictly and verified with the key in their header. Pure.

A valid proof shows only that its sender has this key.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from authapi.possession import es256

# The accepted algorithms, all asymmetric, with the key that each algorithm needs. RFC 9864 replaces `EdDSA` with `Ed25519`.
_KINDS: dict[str, tuple[str, str]] = {
    "ES256": ("EC", "P-256"),
    "PS256": ("RSA", ""),
    "Ed25519": ("OKP", "Ed25519"),
    "ES384": ("EC", "P-384"),
    "RS256": ("RSA", ""),
}
ALGORITHMS = tuple(_KINDS)
# The accepted error of a client's clock, in seconds. A nonce contains the time of this service, so with a nonce a larger error is accepted.
LIFE_SECONDS = 60
LIFE_WITH_NONCE_SECONDS = 600
MAX_PROOF_CHARACTERS = 6144
_MEMBERS = {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_HEADERS = frozenset({"alg", "typ", "jwk", "kid"})
_LONGEST_JTI = 256
_LONGEST_NONCE = 256
_SHORTEST_MODULUS, _LONGEST_MODULUS = 2048, 4096
_SHORTEST_MODULUS_CHARACTERS = 342
# Maximum length of the exponent of an RSA key: 11 characters of base64url contain 64 bits. OpenSSL accepts any exponent for keys of up to
# 3072 bits. An exponent as long as the modulus makes a check a hundred times slower.
_LONGEST_EXPONENT_CHARACTERS = 11
_WRONG_SIZE = f"An RSA key of a DPoP proof must have {_SHORTEST_MODULUS} to {_LONGEST_MODULUS} bits, and an exponent of at most 64."
_PORTS = {"http": 80, "https": 443}


class InvalidProof(ValueError):
    """The DPoP proof cannot be used."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True)
class Proof:
    """A proof for this request with a valid signature. Whether the proof was used before is not checked yet."""

    thumbprint: str
    jti: str
    nonce: str = ""


@dataclass(frozen=True)
class Target:
    """The values that a proof must match. `authorities` are the names of the host; `token` is the access token of the request, or empty."""

    method: str
    scheme: str
    authorities: tuple[str, ...]
    path: str
    token: str = ""


class _Registry(JWSRegistry):
    # The maximum length of a header, in characters. This limit is higher than the default of joserfc, because the header of a proof
    # contains the key, which may be an RSA key of 4096 bits.
    max_header_length = 2048


def read_proof(text: str, target: Target, *, now: float) -> Proof:
    """Return a proof that is for this request and this time. Raises `InvalidProof` with the reason."""
    if len(text) > MAX_PROOF_CHARACTERS or text.count(".") != 2 or not text.isascii():
        raise InvalidProof("The DPoP header must contain one signed JWT.")
    header, claims = (_object(part) for part in text.split(".")[:2])
    thumbprint = _verified(text, header)
    _check_target(claims, target)
    return _checked(claims, thumbprint, now=now)


def thumbprint_of(jwk: Mapping[str, Any]) -> str:
    """Return the thumbprint of a public key (RFC 7638), as it is in `jkt`."""
    members = {name: jwk[name] for name in _MEMBERS[jwk["kty"]]}
    return base64.urlsafe_b64encode(hashlib.sha256(orjson.dumps(members, option=orjson.OPT_SORT_KEYS)).digest()).decode().rstrip("=")


def is_thumbprint(text: str) -> bool:
    """Tell whether a text could be the thumbprint of a key."""
    return len(text) == 43 and text.isascii() and text.replace("-", "").replace("_", "").isalnum()


def _verified(text: str, header: Mapping[str, Any]) -> str:
    """Verify the signature with the key in the header. Return the thumbprint of this key. Raises `InvalidProof`."""
    algorithm, jwk = header.get("alg"), header.get("jwk")
    if header.get("typ") != "dpop+jwt":
        raise InvalidProof("The typ of a DPoP proof must be dpop+jwt.")
    if not isinstance(algorithm, str) or algorithm not in _KINDS:
        raise InvalidProof(f"The alg of a DPoP proof must be one of {', '.join(ALGORITHMS)}.")
    if not isinstance(jwk, dict) or jwk.keys() & _PRIVATE:
        raise InvalidProof("The jwk of a DPoP proof must be a public key.")
    if header.keys() - _HEADERS:
        # `crit` is refused here, too, because no critical header is supported.
        raise InvalidProof("The header of a DPoP proof must have alg, typ and jwk only.")
    kind, curve = _KINDS[algorithm]
    members = tuple(jwk.get(name) for name in _MEMBERS[kind])
    if jwk.get("kty") != kind or jwk.get("crv", "") != curve or not all(isinstance(member, str) for member in members):
        raise InvalidProof("The jwk of a DPoP proof does not match its alg.")
    key, thumbprint = _imported(kind, members)
    if kind == "EC" and es256.is_verified(text, header, key.public_key):
        return thumbprint
    try:
        # The algorithm is passed explicitly, so that the header chooses only from the table above.
        jws.deserialize_compact(text, key, algorithms=[algorithm], registry=_Registry(algorithms=[algorithm]))
    except (JoseError, ValueError) as error:
        raise InvalidProof("The signature of the DPoP proof is invalid.") from error
    return thumbprint


@lru_cache(maxsize=4096)
def _imported(kind: str, members: tuple[str, ...]) -> tuple[Any, str]:
    """Return a key with its thumbprint. Cached, because a client uses one key for many requests."""
    jwk: dict[str, Any] = dict(zip(_MEMBERS[kind], members, strict=True))
    if kind == "RSA" and (len(jwk["n"]) < _SHORTEST_MODULUS_CHARACTERS or len(jwk["e"]) > _LONGEST_EXPONENT_CHARACTERS):
        raise InvalidProof(_WRONG_SIZE)
    try:
        match kind:
            case "EC":
                return ECKey.import_key(jwk), thumbprint_of(jwk)
            case "OKP":
                return OKPKey.import_key(jwk), thumbprint_of(jwk)
            case _:
                key = RSAKey.import_key(jwk)
                size = key.public_key.key_size
    except (JoseError, ValueError, TypeError) as error:
        raise InvalidProof("The jwk of the DPoP proof cannot be read.") from error
    if not _SHORTEST_MODULUS <= size <= _LONGEST_MODULUS:
        raise InvalidProof(_WRONG_SIZE)
    return key, thumbprint_of(jwk)


def _check_target(claims: Mapping[str, Any], target: Target) -> None:
    if claims.get("htm") != target.method:
        raise InvalidProof("The htm of the DPoP proof is not the method of the request.")
    if not _is_address(claims.get("htu"), target):
        raise InvalidProof("The htu of the DPoP proof is not the address of the request.")
    if not target.token:
        return
    digest = base64.urlsafe_b64encode(hashlib.sha256(target.token.encode()).digest()).decode().rstrip("=")
    shown = claims.get("ath")
    if not isinstance(shown, str) or not hmac.compare_digest(shown.encode(), digest.encode()):
        raise InvalidProof("The ath of the DPoP proof is not the hash of the access token.")


def _is_address(address: Any, target: Target) -> bool:
    """Tell whether `htu` names the target (RFC 9449, 4.3). The normalized URLs are compared, without queries and fragments."""
    if not isinstance(address, str):
        return False
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    scheme, host = parts.scheme.lower(), parts.hostname or ""
    named = f"[{host}]" if ":" in host else host
    authority = named if port in (None, _PORTS.get(scheme)) else f"{named}:{port}"
    is_plain = parts.username is None and parts.password is None
    return is_plain and scheme == target.scheme and authority in target.authorities and unquote(parts.path or "/") == target.path


def _checked(claims: Mapping[str, Any], thumbprint: str, *, now: float) -> Proof:
    jti, issued_at, nonce = claims.get("jti"), claims.get("iat"), claims.get("nonce", "")
    if not isinstance(jti, str) or not 0 < len(jti) <= _LONGEST_JTI:
        raise InvalidProof(f"The jti of a DPoP proof must have 1 to {_LONGEST_JTI} characters.")
    if not isinstance(nonce, str) or len(nonce) > _LONGEST_NONCE:
        raise InvalidProof("The nonce of the DPoP proof is not from this service.")
    if not isinstance(issued_at, int | float) or isinstance(issued_at, bool):
        raise InvalidProof("The iat of a DPoP proof must be a number of seconds.")
    if abs(now - issued_at) > (LIFE_WITH_NONCE_SECONDS if nonce else LIFE_SECONDS):
        raise InvalidProof("The iat of the DPoP proof is too far from now. Check the clock of the client.")
    return Proof(thumbprint, jti, nonce)


def _object(part: str) -> dict[str, Any]:
    try:
        value = orjson.loads(base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True))
    except ValueError as error:
        raise InvalidProof("The DPoP header must contain one signed JWT.") from error
    if not isinstance(value, dict):
        raise InvalidProof("The DPoP header must contain one signed JWT.")
    return value
