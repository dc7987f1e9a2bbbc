"""Signatures of the service's own tokens: which algorithm signs with which key, and which algorithms each verifier accepts.

One RSA key signs with several algorithms. A verifier specifies the algorithms that it accepts, and each kind of key allows some algorithms
only. So a public key is never used as a shared secret (RFC 8725, 3.1 and 3.2).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from joserfc import jws
from joserfc.jwk import OctKey

from authapi.compliance.levels import has, level_of
from authapi.compliance.rules import PS256_ACCESS_TOKENS
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import ApiResource, Client
from authapi.tokens.fast_signing import Signing, signing
from authapi.tokens.keys import signing_key

# Algorithms that sign with the RSA key of the tenant.
RSA_ALGORITHMS = ("RS256", "PS256", "RS512")
# The algorithm that signs with a shared secret. The verifier can also make tokens, because the verifier has the secret.
SHARED = "HS256"
ALGORITHMS = (SHARED, *RSA_ALGORITHMS)
_DIGESTS = {"RS512": hashlib.sha512}


@dataclass(frozen=True)
class Signature:
    """How a token is signed; `secret` is set if the algorithm needs a secret."""

    algorithm: str = "RS256"
    secret: str = field(default="", repr=False)


DEFAULT = Signature()


def signature_of_client(client: Client) -> Signature:
    """Return how id tokens and logout tokens of a client are signed.

    Raises `RequestRefused` if the algorithm needs the client's secret and the secret is not stored.
    """
    algorithm = client.id_token_algorithm
    if algorithm != SHARED:
        return Signature(algorithm)
    secret = client.client_secret
    if not secret:
        raise RequestRefused(OAuthCase.NO_SIGNING_SECRET)
    return Signature(SHARED, secret)


def signature_of_api(resource: ApiResource, client: Client) -> Signature:
    """Return how access tokens of this client for an API are signed.

    The setting of the API decides. If it is not set, the compliance level of the client decides.
    """
    named = resource.settings.get("signing_alg")
    if named == SHARED:
        return Signature(SHARED, resource.signing_secret)
    if named:
        return Signature(named)
    level = client.settings.get("compliance_level")
    return Signature("PS256") if level and has(level_of(client.settings), PS256_ACCESS_TOKENS) else DEFAULT


def signed(payload: bytes, header: Mapping[str, str], signature: Signature, *, tenant_id: str) -> str:
    """Return the signed token. A token that is signed with the tenant's key has the key id in its header."""
    return signing_of(payload, header, signature, tenant_id=tenant_id)()


def signing_of(payload: bytes, header: Mapping[str, str], signature: Signature, *, tenant_id: str) -> Signing:
    """Return a function that signs the token."""
    algorithm = signature.algorithm
    if algorithm == SHARED:
        secret = OctKey.import_key(signature.secret)
        return partial(jws.serialize_compact, {"alg": algorithm, **header}, payload, secret, algorithms=[algorithm])
    kid, key = signing_key(tenant_id)
    return signing({"alg": algorithm, **header, "kid": kid}, payload, key, algorithm=algorithm)


def half_hash(value: str, algorithm: str) -> str:
    """Return the left half of the digest of `value` in base64url. `algorithm` selects the hash (OpenID Connect Core 1.0, 3.3.2.11)."""
    digest = _DIGESTS.get(algorithm, hashlib.sha256)(value.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).decode().rstrip("=")
