"""Requests of a provider to log one of its users out everywhere (draft-parecki-oauth-global-token-revocation; contract, 2.8).

The provider signs a JWT with the keys that sign its logins. The token identifies the provider, and the body names the user.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from joserfc.jwk import ECKey, RSAKey

from authapi.client_auth.replays import use_once
from authapi.client_auth.signatures import MalformedJws, is_time, read_jws
from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.id_token import LEEWAY_SECONDS, opened
from authapi.upstream.metadata import keys_of, metadata_of
from authapi.upstream.provider import STRATEGIES, provider_of
from authapi.upstream.saml.certificates import Certificate
from authapi.upstream.saml.connections import saml_provider
from authapi.upstream.saml.options import STRATEGIES as SAML_STRATEGIES
from identity.models import Connection

TYPE = "global-token-revocation+jwt"
# Maximum age and maximum lifetime of a token, in seconds. A provider signs each request anew, so older tokens are refused.
MOST_SECONDS = 600
_LONGEST_JTI = 256
_ISSUER, _SUBJECT = "global_token_revocation_jwt_iss", "global_token_revocation_jwt_sub"


@dataclass(frozen=True)
class _Asker:
    """The provider that may send requests for a connection.

    If `subject` is empty, the subject of the token is not checked. Each function in `keys` returns a set of keys. The sets are tried in
    this order, until a key verifies the token.
    """

    issuer: str
    subject: str
    keys: tuple[Any, ...]


def checked_issuer(connection: Connection, token: str, *, address: str) -> str:
    """Check the token of a request and return its issuer. A token is accepted once.

    `address` is the address of the endpoint for this connection: a token for another connection or another service is refused. Raises
    `UpstreamFailed` with a reason for the sign-in log.
    """
    asker = _asker(connection, token)
    claims = _claims(asker, token)
    audience = claims.get("aud")
    if claims.get("iss") != asker.issuer or address not in (audience if isinstance(audience, list) else [audience]):
        raise _refused("The issuer or the audience of the token is wrong.")
    subject = claims.get("sub")
    if asker.subject and subject != asker.subject:
        raise _refused(f"The subject of the token is not the {_SUBJECT} of the connection.")
    _check_times(claims)
    _use_up(connection, claims)
    return asker.issuer


def _asker(connection: Connection, token: str) -> _Asker:
    named, subject = (str(connection.options.get(option) or "") for option in (_ISSUER, _SUBJECT))
    if connection.strategy in STRATEGIES:
        metadata = metadata_of(provider_of(connection))
        return _Asker(named or metadata.issuer, subject, (partial(keys_of, metadata.address("jwks_uri")),))
    if connection.strategy in SAML_STRATEGIES and named:
        kid = _key_id(token)
        certificates = saml_provider(connection).certificates
        return _Asker(named, subject, tuple(partial(_key_of, certificate, kid) for certificate in certificates))
    raise _refused("The connection has no provider that signs tokens. Set global_token_revocation_jwt_iss for SAML.")


def _claims(asker: _Asker, token: str) -> Mapping[str, Any]:
    problem = _refused("The provider has no keys.")
    for keys in asker.keys:
        try:
            decoded = opened(token, keys)
        except UpstreamFailed as failed:
            problem = failed
            continue
        if str(decoded.header.get("typ", "")).lower().removeprefix("application/") != TYPE:
            # RFC 8725, 3.11: the type must be checked, because id tokens have issuer, subject and times, too.
            raise _refused(f"The type of the token is not {TYPE}.")
        return decoded.claims
    raise problem


def _check_times(claims: Mapping[str, Any]) -> None:
    now = time.time()
    begins, ends = claims.get("iat"), claims.get("exp")
    since = claims.get("nbf", now)
    if not (is_time(begins) and is_time(ends) and is_time(since)):
        raise _refused("The token has no iat or no exp, or one of its times is invalid.")
    is_now = ends > now - LEEWAY_SECONDS and max(begins, since) <= now + LEEWAY_SECONDS
    if not is_now or ends - begins > MOST_SECONDS or begins < now - MOST_SECONDS - LEEWAY_SECONDS:
        raise _refused(f"The token has expired, is not valid yet, or is valid for more than {MOST_SECONDS} seconds.")


def _use_up(connection: Connection, claims: Mapping[str, Any]) -> None:
    jti = claims.get("jti")
    if not isinstance(jti, str) or not 0 < len(jti) <= _LONGEST_JTI or "\x00" in jti:
        raise _refused("The token has no valid jti.")
    until = float(claims["exp"]) + LEEWAY_SECONDS
    if not use_once(tenant_id=connection.tenant_id, client_id=f"revocation\x00{connection.pk}", jti=jti, until=until):
        raise _refused("The token was used before.")


def _key_id(token: str) -> Any:
    try:
        return read_jws(token)[0].get("kid")
    except MalformedJws as error:
        raise _refused("The token is not a JWT.") from error


def _key_of(certificate: Certificate, kid: Any, *, is_key_unknown: bool = False) -> list[dict[str, Any]]:
    """Return the key of a certificate. The key gets the key id of the token, because keys are selected by this id, and a certificate has
    none."""
    key = certificate.parsed.public_key()
    if isinstance(key, RSAPublicKey):
        return [{**RSAKey.import_key(key).as_dict(private=False), "kid": kid}]
    return [{**ECKey.import_key(key).as_dict(private=False), "kid": kid}] if isinstance(key, EllipticCurvePublicKey) else []


def _refused(detail: str) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, detail)
