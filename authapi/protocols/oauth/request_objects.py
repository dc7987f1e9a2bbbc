"""Signed authorization requests (RFC 9101, by value): a JWT that the client has signed, with all parameters as claims."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from authapi.client_auth.remote_keys import KeysUnavailable, remote_keys
from authapi.client_auth.replays import is_used, use_once
from authapi.client_auth.signatures import ALGORITHMS, REFUSED_HEADERS, MalformedJws, is_time, key_of, read_jws, verifies
from authapi.compliance.levels import broken, level_of
from authapi.compliance.rules import RequestObject, Stage
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import Client
from authapi.protocols.oauth.parameters import Parameters, read
from authapi.tokens.audiences import is_issuer
from authapi.tokens.keys import trust

SKEW_SECONDS = 10
_TYPES = ("jwt", "oauth-authz-req+jwt", "application/oauth-authz-req+jwt")
_LONGEST_JTI = 64
# The `jti` of a request object without expiry is stored for a day.
_ENDLESS_SECONDS = 86_400
_LONGEST_SECONDS = 366 * 86_400
# RFC 7519, 4.1: these claims are about the request object itself. So they are not parameters of the request.
_OF_THE_OBJECT = frozenset({"iss", "sub", "aud", "exp", "nbf", "iat", "jti"})
# Prefix of the client id in `use_once`, so that the `jti` of a request object and the `jti` of a client assertion never collide.
_PURPOSE = "request\x00"


def opened(client: Client, token: str) -> Parameters:
    """Return the parameters in a signed request of this client. Raises `RequestRefused`, to be shown to the user.

    Parameters outside of the object are ignored (RFC 9101, 6.3). An object with a `jti` can be answered once; the caller records the answer
    (`note_use`).
    """
    try:
        header, claims = read_jws(token)
    except MalformedJws as error:
        raise _refused("It is not a signed JWT.") from error
    problem = _problem_of_header(header) or _problem_of_claims(claims, client) or _broken_rule(header, claims, client)
    if problem:
        raise _refused(problem)
    if not _is_signed(client, token, header):
        raise _refused("Its signature was not made with a registered key of the client.")
    jti, until = claims.get("jti") or "", _end_of(claims)
    if jti and is_used(tenant_id=client.tenant_id, client_id=_PURPOSE + client.client_id, jti=jti):
        raise _refused("Its jti was used before.")
    values = read((name, text) for name, value in _parameters(claims) if (text := _text(value)) is not None)
    return Parameters(values.values, values.repeated, signed=f"{until:.0f} {jti}")


def note_use(client: Client, signed: str) -> None:
    """Record that a request object was answered. `signed` is `Parameters.signed`. Raises `RequestRefused` for a second answer."""
    until, _, jti = signed.partition(" ")
    if jti and not use_once(tenant_id=client.tenant_id, client_id=_PURPOSE + client.client_id, jti=jti, until=float(until)):
        raise _refused("Its jti was used before.")


def without_use(parameters: Parameters) -> Parameters:
    """Return the parameters without the `jti` of the request object, because its use is already recorded."""
    until = parameters.signed.partition(" ")[0]
    return Parameters(parameters.values, parameters.repeated, parameters.pushed, until)


def _parameters(claims: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return the claims that are parameters of the request. `resource` may be an array (RFC 8707, 2)."""
    for name, value in claims.items():
        if name == "resource" and isinstance(value, list):
            yield from ((name, each) for each in value)
        elif name not in _OF_THE_OBJECT:
            yield name, value


def _end_of(claims: Mapping[str, Any]) -> float:
    """Return the time until which the `jti` is stored: the expiry of the request object, limited to about a year."""
    now = time.time()
    end = claims.get("exp")
    return min(now + _ENDLESS_SECONDS if end is None else end + SKEW_SECONDS, now + _LONGEST_SECONDS)


def _problem_of_header(header: Mapping[str, Any]) -> str:
    if header.get("alg") not in ALGORITHMS:
        return f"Its alg must be one of {', '.join(ALGORITHMS)}."
    kind, kid = header.get("typ", _TYPES[0]), header.get("kid")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        return f"Its typ must be {_TYPES[0]} or {_TYPES[1]}."
    if kid is not None and not isinstance(kid, str):
        return "Its kid must be a string."
    refused = next((name for name in REFUSED_HEADERS if name in header), None)
    return f"Its header must have no {refused}." if refused else ""


def _problem_of_claims(claims: Mapping[str, Any], client: Client) -> str:
    if claims.get("iss") != client.client_id:
        return "Its iss must be the client_id."
    if claims.get("client_id") != client.client_id:
        return "Its client_id must be the client_id of the request."
    if not _is_for(claims.get("aud"), trust.get(client.tenant_id).hosts):
        return "Its aud must be the issuer."
    if claims.get("sub") == client.client_id:
        # RFC 9101, 10.8: the object must not be usable as a client assertion.
        return "Its sub must not be the client."
    if not isinstance(claims.get("response_type"), str):
        return "It must have a response_type."
    if claims.keys() & {"request", "request_uri"}:
        # RFC 9101, 4.
        return "It must not contain request or request_uri."
    return _problem_of_times(claims) or _problem_of_jti(claims)


def _problem_of_times(claims: Mapping[str, Any]) -> str:
    now = time.time()
    for name in ("exp", "nbf", "iat"):
        moment = claims.get(name)
        if moment is None:
            continue
        if not is_time(moment):
            return f"Its {name} must be a number of seconds."
        if name == "exp" and moment <= now - SKEW_SECONDS:
            return "It has expired."
        if name != "exp" and moment > now + SKEW_SECONDS:
            return f"Its {name} lies in the future."
    return ""


def _broken_rule(header: Mapping[str, Any], claims: Mapping[str, Any], client: Client) -> str:
    facts = RequestObject(header["alg"], claims.get("nbf"), claims.get("exp"), time.time())
    return next((rule.sentence for rule in broken(level_of(client.settings), Stage.REQUEST_OBJECT, facts)), "")


def _problem_of_jti(claims: Mapping[str, Any]) -> str:
    jti = claims.get("jti")
    if jti is None or (isinstance(jti, str) and 0 < len(jti) <= _LONGEST_JTI and "\x00" not in jti):
        return ""
    return f"Its jti must have 1 to {_LONGEST_JTI} characters."


def _is_for(audience: Any, hosts: frozenset[str]) -> bool:
    # FAPI 2.0 Message Signing, 5.3.1: `aud` is the issuer, or an array that contains the issuer. Unlike a client assertion, a request
    # object that also names other audiences is harmless: it proves only which request the client makes in its user's browser.
    named = audience if isinstance(audience, list) else [audience]
    return all(isinstance(one, str) for one in named) and any(is_issuer(one, hosts) for one in named)


def _is_signed(client: Client, token: str, header: Mapping[str, Any]) -> bool:
    kid, algorithm = header.get("kid"), header["alg"]
    registered = [key for key in client.active_request_keys if kid in (None, key.kid) and key.algorithm == algorithm]
    if any(verifies(token, key_of(credential), algorithm) for credential in registered):
        return True
    address = client.settings.get("jwks_uri")
    if not address:
        return False
    try:
        published = remote_keys.get(client.tenant_id, address, kid=kid, algorithm=algorithm)
    except KeysUnavailable as error:
        raise RequestRefused(OAuthCase.REQUEST_KEYS_UNAVAILABLE) from error
    return any(verifies(token, one.key, algorithm) for one in published)


def _text(value: Any) -> str | None:
    """Return a claim as parameter text; None if the claim is null or false."""
    match value:
        case None | False:
            return None
        case True:
            return "true"
        case str():
            return value
        case dict() | list():
            return orjson.dumps(value).decode()
        case _:
            return str(value)


def _refused(reason: str) -> RequestRefused:
    return RequestRefused(OAuthCase.INVALID_REQUEST_OBJECT, reason=reason)
