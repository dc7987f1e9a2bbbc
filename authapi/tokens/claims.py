"""The contents of access tokens: writes them in each dialect and reads them back strictly. Pure: the time is an argument."""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from authapi.tokens.asked import DETAILS, USERINFO_CLAIMS

MAX_TOKEN_CHARACTERS = 16_384
# How far the clock of the process that issued a token may be ahead, in seconds.
LEEWAY_SECONDS = 60
MANAGEMENT_PATH = "api/v2/"
# The claim with the version that the client had when the token was issued. A change of the client's secret, authentication method, grant
# types or client grants raises the version, and so does a revocation of the client. A token with an older version is invalid.
VERSION_CLAIM = "client_version"
# Tokens of a dialect whose name has this ending also list the granted scopes in `permissions`.
_WITH_PERMISSIONS = "_authz"
# Algorithms of access tokens that this service accepts.
VERIFIED_ALGORITHMS = ("RS256", "PS256", "RS512")
_TYPES = {"access_token": "JWT", "rfc9068_profile": "at+jwt"}
_ALLOWED_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
# Headers that name a key or change how the token is parsed. Tokens of this service never have them (RFC 8725, 3.1 and 3.10).
_REFUSED_HEADERS = frozenset({"jku", "jwk", "x5u", "x5c", "crit", "zip", "enc", "b64", "cty"})


class Malformed(ValueError):
    """This service cannot have issued the token."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True)
class AccessTokenClaims:
    """The contents of a verified access token."""

    issuer: str
    subject: str
    audiences: tuple[str, ...]
    client_id: str
    client_version: int
    scopes: frozenset[str]
    jti: str
    issued_at: int
    expires_at: int
    key_id: str
    # RFC 7800, 3.1: the key or certificate that the sender of the token must prove to have.
    confirmation: Mapping[str, Any] | None = None
    # Further profile claims at `/userinfo`, which the token's scopes do not include.
    userinfo_claims: tuple[str, ...] = ()
    # RFC 9396, 9.1.
    details: tuple[Mapping[str, Any], ...] = ()
    # RFC 8693, 4.1: the actor for the subject. Earlier actors are nested in this actor.
    actor: Mapping[str, Any] | None = None
    organization_id: str = ""

    @property
    def is_machine(self) -> bool:
        """Whether the token was issued to the client itself. If the client is not global, such a token needs a client grant."""
        return self.subject == machine_subject(self.client_id)


@dataclass(frozen=True)
class TokenOrder:
    """Everything that decides the contents of one access token.

    `userinfo` is the URL of `/userinfo` if the token is also valid at `/userinfo`. If the dialect has a claim `permissions`, the claim
    contains the field `permissions`, or the scopes if this field is None. `organization` contains the claims of the organization through
    which the user logged in.
    """

    issuer: str
    subject: str
    audience: str
    client_id: str
    client_version: int
    scopes: tuple[str, ...]
    grant: str
    jti: str
    seconds: int
    dialect: str
    userinfo: str = ""
    permissions: tuple[str, ...] | None = None
    organization: Mapping[str, str] = field(default_factory=dict)
    confirmation: Mapping[str, Any] | None = None
    # The values that only few logins request in addition to scopes (`authapi.tokens.asked`), by claim name.
    further: Mapping[str, Any] = field(default_factory=dict)
    actor: Mapping[str, Any] | None = None


def machine_subject(client_id: str) -> str:
    return f"{client_id}@clients"


def new_jti(lineage: UUID | None = None) -> str:
    """Return a fresh `jti`. The `jti` of a user's token begins with its lineage, so that one row can revoke all tokens of the lineage."""
    return secrets.token_urlsafe(18) if lineage is None else f"{lineage_key(lineage)}.{secrets.token_urlsafe(12)}"


def lineage_key(lineage: UUID) -> str:
    """Return the text that begins the `jti` of every token of a lineage. One row of `RevokedToken` with this text revokes all of them."""
    return base64.urlsafe_b64encode(lineage.bytes).decode().rstrip("=")


def related_jti(jti: str) -> str:
    """Return a fresh `jti` for a token that is derived from another token.

    The new `jti` has the same lineage, so that revoking the lineage ends both tokens.
    """
    lineage, separator, _ = jti.partition(".")
    return f"{lineage}.{secrets.token_urlsafe(12)}" if separator else new_jti()


def revocation_keys(jti: str) -> tuple[str, ...]:
    """Return the texts that revoke a token if a row of `RevokedToken` contains one of them: its `jti`, and the key of its lineage."""
    lineage, separator, _ = jti.partition(".")
    return (jti, lineage) if separator else (jti,)


def token_kind(order: TokenOrder) -> str:
    """Return the `typ` header of the token in the dialect of the API."""
    return _TYPES[order.dialect.removesuffix(_WITH_PERMISSIONS)]


def token_claims(order: TokenOrder, *, now: int) -> dict[str, Any]:
    """Return the payload in the dialect of the API. Both dialects have a `jti`, so that each token can be revoked."""
    claims: dict[str, Any] = {
        "iss": order.issuer,
        "sub": order.subject,
        "aud": [order.audience, order.userinfo] if order.userinfo else order.audience,
        "iat": now,
        "exp": now + order.seconds,
        "jti": order.jti,
        VERSION_CLAIM: order.client_version,
    }
    if order.scopes:
        claims["scope"] = " ".join(order.scopes)
    if order.dialect.endswith(_WITH_PERMISSIONS):
        claims["permissions"] = list(order.scopes if order.permissions is None else order.permissions)
    if order.confirmation:
        claims["cnf"] = dict(order.confirmation)
    if order.further:
        claims |= order.further
    if order.actor:
        claims["act"] = dict(order.actor)
    claims |= order.organization
    if order.dialect.startswith("rfc9068_profile"):
        return claims | {"client_id": order.client_id}
    return claims | ({"gty": order.grant} if order.grant else {}) | {"azp": order.client_id}


def read_key_id(token: str) -> str:
    """Return the key id of a token. Raises `Malformed` for a header that is not acceptable."""
    if len(token) > MAX_TOKEN_CHARACTERS or token.count(".") != 2 or not token.isascii():
        raise Malformed
    encoded = token.partition(".")[0]
    try:
        header = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except (ValueError, binascii.Error, RecursionError) as error:
        raise Malformed from error
    if not isinstance(header, dict) or _REFUSED_HEADERS & header.keys():
        raise Malformed
    kid, kind = header.get("kid"), header.get("typ")
    # Tokens that are signed with a secret are refused: an API that shares the secret could forge them.
    if header.get("alg") not in VERIFIED_ALGORITHMS or not isinstance(kid, str):
        raise Malformed
    if not isinstance(kind, str) or kind.lower() not in _ALLOWED_TYPES:
        raise Malformed
    return kid


def read_claims(claims: Any, *, key_id: str) -> AccessTokenClaims:
    """Return the typed claims of a token whose signature is valid. Raises `Malformed` if a claim is missing or has a wrong type."""
    if not isinstance(claims, dict):
        raise Malformed
    client_id = claims.get("azp") or claims.get("client_id")
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    texts = (claims.get("iss"), claims.get("sub"), client_id, claims.get("jti"), claims.get("scope", ""))
    numbers = (claims.get("iat"), claims.get("exp"), claims.get(VERSION_CLAIM))
    if not isinstance(audiences, list) or not _all(audiences, str) or not _all(texts, str) or not _all(numbers, int):
        raise Malformed
    confirmation, actor, organization = claims.get("cnf"), claims.get("act"), claims.get("org_id", "")
    if not all(member is None or isinstance(member, dict) for member in (confirmation, actor)) or not isinstance(organization, str):
        raise Malformed
    return AccessTokenClaims(
        issuer=claims["iss"],
        subject=claims["sub"],
        audiences=tuple(audiences),
        client_id=str(client_id),
        client_version=claims[VERSION_CLAIM],
        scopes=frozenset(claims.get("scope", "").split()),
        jti=claims["jti"],
        issued_at=claims["iat"],
        expires_at=claims["exp"],
        key_id=key_id,
        confirmation=confirmation,
        userinfo_claims=_names(claims[USERINFO_CLAIMS]) if USERINFO_CLAIMS in claims else (),
        details=_objects(claims[DETAILS]) if DETAILS in claims else (),
        actor=actor,
        organization_id=organization,
    )


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not _all(value, str):
        raise Malformed
    return tuple(value)


def _objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not _all(value, dict):
        raise Malformed
    return tuple(value)


def _all(values: Iterable[Any], kind: type) -> bool:
    return all(isinstance(value, kind) and not isinstance(value, bool) for value in values)
