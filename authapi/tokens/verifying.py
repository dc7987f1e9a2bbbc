"""The only verifier of access tokens. The management interface and the stream both use this module."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import orjson
from joserfc import jws
from joserfc.errors import JoseError

from authapi.tokens.audiences import is_issuer, is_management_audience, is_userinfo_audience
from authapi.tokens.claims import LEEWAY_SECONDS, VERIFIED_ALGORITHMS, AccessTokenClaims, Malformed, read_claims, read_key_id
from authapi.tokens.keys import PublicKey, Trust, trust
from authapi.tokens.profile_claims import ProfileSwitches
from authapi.tokens.token_state import TokenKey, TokenState, gathered_token_states, token_states
from foundation.memory import executor
from foundation.memory.ttl_cache import Cold
from identity.hosts import HostMatch

# The shortest interval between two lookups for unknown key ids, per tenant and process. Random key ids cannot cause more lookups.
_UNKNOWN_KEY_SECONDS = 0.25


class TokenRefused(Exception):
    """A bearer token is refused. Has the texts for the error body of the management interface."""

    status = 401
    message = "Invalid token."
    error_code: str | None = None

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.message)
        self.message = message or self.message

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the error answer."""
        return {}


class InvalidToken(TokenRefused):
    """The token is malformed, revoked or from another issuer, or its client was deleted or has changed since the token was issued."""


class TokenExpired(InvalidToken):
    """The token has expired, or its time of issue is in the future."""


class InvalidSignature(TokenRefused):
    """The signature was not made with a key of this tenant."""

    message = "Invalid signature received for JSON Web Token validation."


class ClientNotGlobal(TokenRefused):
    """The token is not for the management interface, or its client may not use that interface."""

    message = "Client is not global."


class InsufficientScope(TokenRefused):
    """The token is valid, but has none of the scopes that the operation accepts."""

    status = 403
    error_code = "insufficient_scope"

    def __init__(self, expected: tuple[str, ...]) -> None:
        super().__init__(f"Insufficient scope, expected any of: {','.join(expected)}")


@dataclass(frozen=True, kw_only=True)
class VerifiedToken(AccessTokenClaims):
    """The claims of a token that is valid now, with the current name and metadata of its client."""

    client_name: str
    client_metadata: Mapping[str, Any]
    tenant_id: str


def verify_access_token(token: str, *, host: HostMatch, takes_bound: bool = False) -> VerifiedToken:
    """Return the claims of a token that may use the management interface or `/events` on this host.

    Checks format, key, signature, times, issuer, client and revocation, then the audience, and for a user's token whether the client is
    global. The caller checks the scope (`require_scope`) and the tenant's status. Raises `InvalidToken`, `TokenExpired`, `InvalidSignature`
    or `ClientNotGlobal`. May read the database; safe in any thread. A bound token is refused if `takes_bound` is not set. A caller that
    sets `takes_bound` must check that the sender holds the key or certificate (`authapi.possession.holders`).
    """
    return _unbound(_verify(token, host.tenant_id, trust_of=trust.get, state_of=token_states.get), takes_bound=takes_bound)


async def verify_access_token_async(token: str, *, host: HostMatch, takes_bound: bool = False) -> VerifiedToken:
    """Do what `verify_access_token` does: at once if the caches suffice, otherwise in a thread that reads the database.

    Concurrent calls share their reads: the keys of a tenant are read once, the states of all tokens in one query.
    """
    return _unbound(await _verify_async(token, host), takes_bound=takes_bound)


async def _verify_async(token: str, host: HostMatch) -> VerifiedToken:
    try:
        return _verify(token, host.tenant_id, trust_of=trust.warm, state_of=token_states.warm)
    except Cold:
        await executor.remembered(trust, host.tenant_id)
    cold: list[TokenKey] = []
    with suppress(Cold):
        return _verify(token, host.tenant_id, trust_of=trust.warm, state_of=partial(_warm_state, cold))
    if cold:
        state = await gathered_token_states.ask(cold[0])
        with suppress(Cold):
            return _verify(token, host.tenant_id, trust_of=trust.warm, state_of=lambda _key: state)
    return await executor.run(partial(verify_access_token, token, host=host, takes_bound=True))


def _warm_state(cold: list[TokenKey], key: TokenKey) -> TokenState:
    try:
        return token_states.warm(key)
    except Cold:
        cold.append(key)
        raise


def verify_profile_token(token: str, *, host: HostMatch) -> tuple[AccessTokenClaims, ProfileSwitches]:
    """Return the claims of a JWT that gives access to the profile of its user on this host.

    Also return the client's settings that change the answer. The caller checks the scope, `cnf` and how the token was sent.

    Raises `InvalidToken`, `TokenExpired` or `InvalidSignature`.
    """
    claims, state, hosts = _counting(token, host.tenant_id, trust_of=trust.get, state_of=token_states.get)
    if not any(is_userinfo_audience(audience, hosts) for audience in claims.audiences):
        raise InvalidToken
    return claims, state.client_switches


def verify_own_token(token: str, *, host: HostMatch) -> AccessTokenClaims:
    """Return the claims of a JWT that is valid at this tenant. Does not check the audience. The caller checks the subject.

    Raises `InvalidToken`, `TokenExpired` or `InvalidSignature`.
    """
    return _counting(token, host.tenant_id, trust_of=trust.get, state_of=token_states.get)[0]


def require_scope(claims: AccessTokenClaims, *expected: str) -> None:
    """Raise `InsufficientScope` if the token has none of the `expected` scopes."""
    if claims.scopes.isdisjoint(expected):
        raise InsufficientScope(expected)


def _verify(token: str, tenant_id: str, *, trust_of: Callable[..., Trust], state_of: Callable[..., TokenState]) -> VerifiedToken:
    claims, state, hosts = _counting(token, tenant_id, trust_of=trust_of, state_of=state_of)
    is_for_management = any(is_management_audience(audience, hosts) for audience in claims.audiences)
    # For a machine token, a client grant is enough. A user's token is accepted only if its client is global, even if the client has a
    # client grant (design, "who may subscribe").
    if not is_for_management or not (state.is_global or claims.is_machine):
        raise ClientNotGlobal
    return VerifiedToken(**vars(claims), client_name=state.client_name, client_metadata=state.client_metadata, tenant_id=tenant_id)


def _unbound(claims: VerifiedToken, *, takes_bound: bool) -> VerifiedToken:
    if claims.confirmation and not takes_bound:
        raise InvalidToken
    return claims


def _counting(
    token: str, tenant_id: str, *, trust_of: Callable[..., Trust], state_of: Callable[..., TokenState]
) -> tuple[AccessTokenClaims, TokenState, frozenset[str]]:
    """Return three values for a token that is valid at this tenant: its claims, the state of its client, and the hosts of the tenant.

    Does not check the audience.
    """
    try:
        kid = read_key_id(token)
    except Malformed as error:
        raise InvalidToken from error
    known = trust_of(tenant_id)
    if kid not in known.public_keys:
        known = trust_of(tenant_id, max_age=_UNKNOWN_KEY_SECONDS)
    if kid not in known.public_keys:
        raise InvalidSignature
    claims = _signed_claims(token, known.public_keys[kid])
    _check_times(claims, now=time.time())
    if not is_issuer(claims.issuer, known.hosts):
        raise InvalidToken
    return claims, _check_state(claims, tenant_id, state_of), known.hosts


def _check_times(claims: AccessTokenClaims, *, now: float) -> None:
    if claims.expires_at <= now or claims.issued_at > now + LEEWAY_SECONDS:
        raise TokenExpired


def _check_state(claims: AccessTokenClaims, tenant_id: str, state_of: Callable[..., TokenState]) -> TokenState:
    state = state_of((tenant_id, claims.client_id, claims.jti))
    if state.is_revoked or state.client_version != claims.client_version:
        raise InvalidToken
    return state


@lru_cache(maxsize=4096)
def _signed_claims(token: str, key: PublicKey) -> AccessTokenClaims:
    # The result is cached without expiry, because signature and contents of a token never change. Key, times and client are checked each
    # time.
    try:
        signed = jws.deserialize_compact(token.encode(), key.imported(), algorithms=list(VERIFIED_ALGORITHMS))
    except (JoseError, ValueError) as error:
        raise InvalidSignature from error
    try:
        return read_claims(orjson.loads(signed.payload), key_id=key.kid)
    except (Malformed, ValueError) as error:
        raise InvalidToken from error
