"""The keys of a registration as credentials of the client: the RSA keys of a JWK set, and the certificates in this set."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from authapi.client_auth.signatures import ALGORITHMS
from authapi.failures import RequestRefused
from authapi.failures.registration import RegistrationCase
from authapi.models import ClientCredential
from authapi.services.client_credentials import NewCredential

# Two keys: the key in use, and the key that will replace it.
MOST_KEYS = 2
_PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")
_LONGEST_KID = 64
_LONGEST_NUMBER = 1024


def signing_keys(key_set: Any, *, algorithm: str) -> tuple[NewCredential, ...]:
    """Return the signing keys of a set. `algorithm` is the default for keys without an algorithm. Raises `RequestRefused`."""
    keys = [jwk for jwk in _members(key_set) if jwk.get("use", "sig") == "sig"]
    if not keys or len(keys) > MOST_KEYS:
        raise refused(f"The jwks must have one or {MOST_KEYS} keys for signatures.")
    return tuple(_signing_key(jwk, algorithm) for jwk in keys)


def certificates(key_set: Any) -> tuple[NewCredential, ...]:
    """Return the certificates of a set: the first certificate of each `x5c` (RFC 8705, 2.2.2). Raises `RequestRefused`."""
    chains = [jwk["x5c"] for jwk in _members(key_set) if jwk.get("x5c")]
    if not chains or len(chains) > MOST_KEYS:
        raise refused(f"The jwks must have one or {MOST_KEYS} keys with a certificate as x5c.")
    return tuple(_certificate(chain) for chain in chains)


def subject(text: str) -> NewCredential:
    """Return the subject of a certificate (RFC 8705, 2.1.2). Raises `RequestRefused`."""
    try:
        name = x509.Name.from_rfc4514_string(text)
    except ValueError as error:
        raise refused("The tls_client_auth_subject_dn is not a distinguished name such as CN=client,O=Example,C=AT.") from error
    lines = "\n".join(f"{part.oid.dotted_string}={part.value!s}" for part in name)
    return NewCredential(type=ClientCredential.Type.CERT_SUBJECT_DN, name=_name("subject", text), subject_dn=lines)


def refused(reason: str) -> RequestRefused:
    return RequestRefused(RegistrationCase.INVALID_METADATA, reason=reason)


def _members(key_set: Any) -> list[Mapping[str, Any]]:
    keys = key_set.get("keys") if isinstance(key_set, dict) else None
    if not isinstance(keys, list) or not all(isinstance(jwk, dict) for jwk in keys):
        raise refused('The jwks must be an object with a list of keys: {"keys": [...]}.')
    if any(name in jwk for jwk in keys for name in _PRIVATE):
        raise refused(
            "The jwks contains a private or symmetric key. Because the key was sent, it is no longer secret. Create new keys, and send "
            "only the public keys."
        )
    return keys


def _signing_key(jwk: Mapping[str, Any], algorithm: str) -> NewCredential:
    named = jwk.get("alg") or algorithm
    kid, numbers = jwk.get("kid", ""), (jwk.get("n"), jwk.get("e"))
    if jwk.get("kty") != "RSA" or named not in ALGORITHMS:
        raise refused(f"A key of the jwks cannot be used: RSA keys for {', '.join(ALGORITHMS)} are supported.")
    if (
        not isinstance(kid, str)
        or len(kid) > _LONGEST_KID
        or not all(isinstance(one, str) and len(one) <= _LONGEST_NUMBER for one in numbers)
    ):
        raise refused("A key of the jwks cannot be read.")
    try:
        key = RSAKey.import_key({"kty": "RSA", "n": str(numbers[0]), "e": str(numbers[1])})
        pem = key.as_pem(private=False).decode()
    except (JoseError, ValueError) as error:
        raise refused("A key of the jwks cannot be read.") from error
    name = _name("key", orjson.dumps([*numbers, kid, named]).decode())
    return NewCredential(type=ClientCredential.Type.PUBLIC_KEY, name=name, pem=pem, algorithm=named, kid=kid)


def _certificate(chain: Any) -> NewCredential:
    first = chain[0] if isinstance(chain, list) and chain else None
    try:
        der = base64.b64decode(first if isinstance(first, str) else "", validate=True)
        pem = x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM).decode()
    except (binascii.Error, ValueError) as error:
        raise refused("A certificate of the jwks cannot be read. Send certificates in x5c, as base64 of DER.") from error
    return NewCredential(type=ClientCredential.Type.X509_CERT, name=_name("certificate", pem), pem=pem)


def _name(kind: str, text: str) -> str:
    """Return a name for a credential, derived from its key. So a repeated registration finds the same credential."""
    return f"Registered {kind} {hashlib.sha256(text.encode()).hexdigest()[:24]}"
