"""`private_key_jwt`: an assertion that the client signed with its own key (RFC 7523, 2.2; OpenID Connect Core 1.0, 9)."""

from __future__ import annotations

import time
from typing import Any

from authapi.client_auth.credential import Assertion, Credential, MalformedCredential
from authapi.client_auth.signatures import ALGORITHMS, REFUSED_HEADERS, MalformedJws, decoy, is_time, key_of, read_jws, verifies
from authapi.failures import RequestRefused
from authapi.failures.requests import RequestCase
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.tokens.audiences import is_issuer

METHOD = "private_key_jwt"
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
MAX_ASSERTION_BYTES = 2048
MAX_LIFE_SECONDS = 300
SKEW_SECONDS = 10
_LONGEST_CLAIM = 64
_LONGEST_ALGORITHM = 16
_TYPES = (None, "JWT", "client-authentication+jwt")


def presented(request: TokenRequest) -> Credential | None:
    """Return the assertion in the body together with the id of its client. Return None if the body has no assertion."""
    token, kind = request.text("client_assertion"), request.text("client_assertion_type")
    if token is None and kind is None:
        return None
    if token is None:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="client_assertion")
    if kind != ASSERTION_TYPE:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The client_assertion_type must be {ASSERTION_TYPE}")
    if len(token) > MAX_ASSERTION_BYTES:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The client_assertion is longer than {MAX_ASSERTION_BYTES} bytes.")
    try:
        assertion = Assertion(token, *read_jws(token))
    except MalformedJws as error:
        raise MalformedCredential from error
    client_id = assertion.claims.get("sub")
    if not isinstance(client_id, str):
        raise MalformedCredential
    return Credential(METHOD, client_id, assertion=assertion)


def is_signed(client: Client | None, assertion: Assertion) -> bool:
    """Tell whether the signature verifies with a key of the client and the algorithm of that key.

    An assertion for an unknown client is checked against a decoy key, so that the response time reveals nothing.
    """
    header = assertion.header
    kid, algorithm = header.get("kid"), header.get("alg")
    keys = [key for key in client.active_credentials if kid in (None, key.kid)] if client is not None else []
    found = [verifies(assertion.token, key_of(key), key.algorithm) for key in keys if key.algorithm == algorithm]
    if not found:
        verifies(assertion.token, decoy(), ALGORITHMS[0])
    return any(found) and _header_fits(header)


def is_acceptable(assertion: Assertion, *, client_id: str, hosts: frozenset[str], now: float) -> bool:
    """Tell whether this client made a signed assertion for this service, and whether the assertion is valid now."""
    claims = assertion.claims
    issued = (claims.get("iat", now), claims.get("nbf", now))
    expires_at: Any = claims.get("exp")
    return (
        claims.get("iss") == claims.get("sub") == client_id
        and _is_for(claims.get("aud"), hosts)
        and is_time(expires_at)
        and now - SKEW_SECONDS < expires_at <= now + MAX_LIFE_SECONDS + SKEW_SECONDS
        and all(is_time(moment) and moment <= now + SKEW_SECONDS for moment in issued)
        and _is_short_text(claims.get("jti"))
    )


def expires_at(assertion: Assertion) -> float:
    """Return the time, in seconds since 1970, after which the assertion is refused because of its age."""
    return float(assertion.claims["exp"]) + SKEW_SECONDS


def now() -> float:
    return time.time()


def _is_for(audience: Any, hosts: frozenset[str]) -> bool:
    # This issuer must be the only audience. If an assertion named several audiences, another recipient could replay it at this service.
    if isinstance(audience, list) and len(audience) == 1:
        audience = audience[0]
    return isinstance(audience, str) and is_issuer(audience, hosts)


def _is_short_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_CLAIM and "\x00" not in value


def _header_fits(header: dict[str, Any]) -> bool:
    algorithm, kind = header.get("alg"), header.get("typ")
    return (
        isinstance(algorithm, str)
        and len(algorithm) <= _LONGEST_ALGORITHM
        and kind in _TYPES
        and not any(name in header for name in REFUSED_HEADERS)
    )
