"""Access tokens of this tenant that are sent as the subject or the actor of an exchange (RFC 8693, 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from authapi.edge.mtls import certificate_of
from authapi.failures import Case, RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.tokens.bindings import CERTIFICATE, KEY
from authapi.tokens.claims import AccessTokenClaims
from authapi.tokens.verifying import TokenRefused, verify_own_token
from identity.models import User

ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  (the name of a type)
# Access tokens of this service are JWTs. So a request may contain either of these types for such a token.
OWN_TYPES = frozenset({ACCESS_TOKEN, "urn:ietf:params:oauth:token-type:jwt"})
ON_BEHALF_OF = "on_behalf_of_token_exchange"


def own_api(client: Client) -> str:
    """Return the identifier of the client's own API. Raises `RequestRefused` if the client may not exchange tokens for this API."""
    identifier = client.settings.get("resource_server_identifier")
    if not may_exchange(client, ON_BEHALF_OF) or client.is_public or client.app_type != "resource_server" or not identifier:
        reason = f"The client needs authentication, the type resource_server, an API of its own, and {ON_BEHALF_OF}."
        raise RequestRefused(OAuthCase.EXCHANGE_NOT_ALLOWED, reason=reason)
    return str(identifier)


def may_exchange(client: Client, kind: str) -> bool:
    """Tell whether a client may use this kind of exchange.

    A third-party client may not exchange tokens, because such a client needs the consent of users.
    """
    allowed = (client.settings.get("token_exchange") or {}).get("allow_any_profile_of_type") or ()
    return client.is_first_party and kind in allowed


def subject_of(request: TokenRequest, api: str) -> tuple[AccessTokenClaims, User]:
    """Return the claims of the subject token and the user of this token. Raises `RequestRefused`.

    Every unsuitable token gets the same answer. These tokens are unsuitable: tokens for another API, tokens without a user, refresh tokens,
    revoked tokens, and bound tokens whose key or certificate the sender has not proven.
    """
    claims = _verified(request.required("subject_token"), request, OAuthCase.INVALID_SUBJECT_TOKEN)
    user = user_of_token(claims, request)
    if user is None or api not in claims.audiences:
        raise RequestRefused(OAuthCase.INVALID_SUBJECT_TOKEN)
    return claims, user


def actor_of(request: TokenRequest, client: Client, api: str) -> AccessTokenClaims | None:
    """Return the claims of the actor token; None if the request has no actor token. Raises `RequestRefused`.

    The actor is the client itself or a user. The token of the client is a token that the client has requested for itself; the token of a
    user is for the client's API. A token that already has an actor is refused.
    """
    token, kind = request.text("actor_token"), request.text("actor_token_type")
    if token is None and kind is None:
        return None
    kind, token = request.required("actor_token_type"), request.required("actor_token")
    if kind not in OWN_TYPES:
        raise RequestRefused(OAuthCase.TOKEN_TYPE_NOT_SUPPORTED, parameter="actor_token_type", type=kind[:100])
    claims = _verified(token, request, OAuthCase.INVALID_ACTOR_TOKEN)
    is_client = claims.is_machine and claims.client_id == client.client_id
    user = None if claims.is_machine else user_of_token(claims, request)
    is_user = user is not None and not user.blocked and api in claims.audiences
    if claims.actor is not None or not (is_client or is_user):
        raise RequestRefused(OAuthCase.INVALID_ACTOR_TOKEN)
    return claims


def user_of_token(claims: AccessTokenClaims, request: TokenRequest) -> User | None:
    """Return the user of a token; None for a client's own token and for a user that no longer exists."""
    if claims.is_machine:
        return None
    return User.objects.of(request.host.tenant_id).select_related("connection").filter(user_id=claims.subject).first()


def is_held(confirmation: Mapping[str, Any] | None, request: TokenRequest) -> bool:
    """Tell whether the DPoP proof or the certificate of this request matches the binding of a token."""
    return all(_holds(name, value, request) for name, value in (confirmation or {}).items())


def _verified(token: str, request: TokenRequest, case: Case) -> AccessTokenClaims:
    try:
        claims = verify_own_token(token, host=request.host)
    except TokenRefused as error:
        raise RequestRefused(case) from error
    if not is_held(claims.confirmation, request):
        raise RequestRefused(case)
    return claims


def _holds(name: str, value: Any, request: TokenRequest) -> bool:
    if name == KEY:
        return bool(request.key) and request.key == value
    # A request can prove only a key or a certificate, so a token with another kind of binding never matches.
    certificate = certificate_of(request) if name == CERTIFICATE else None
    return certificate is not None and certificate.confirms({CERTIFICATE: value})
