"""Token exchange by an API: the API sends a token that it has received, and gets a token of the same user for the next API (RFC 8693,
1.1)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from authapi.edge.rate_figures import REFUSED_EXCHANGES
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.grants.entitlements import enforces_permissions, resource_of
from authapi.grants.exchange.own_tokens import ACCESS_TOKEN, ON_BEHALF_OF, actor_of, own_api, subject_of
from authapi.grants.targets import RESOURCE, audience_of
from authapi.grants.token_grant import TokenAnswer
from authapi.login.organizations import check_membership, named_organization
from authapi.models import ApiResource, Client
from authapi.services import grant_terms, sign_in_log
from authapi.services.grant_terms import IMPERSONATION, GrantTerms
from authapi.services.permissions import permission_values
from authapi.token_request import TokenRequest
from authapi.tokens.bindings import binding, bound_to
from authapi.tokens.claims import AccessTokenClaims, related_jti
from authapi.tokens.minting import Issue, organization_claims
from authapi.tokens.signing import signature_of_api
from foundation.json_values import storable
from identity.models import Organization, User

_GRANT_CLAIM = "token-exchange"
_SUCCESS, _FAILURE = "secte", "fecte"
# Maximum number of nested actors in the `act` claim of a token, as in the upstream service.
_LONGEST_CHAIN = 5


@dataclass(frozen=True)
class _Target:
    """The API of the new token, and the scopes that the client may request at this API for users."""

    audience: str
    resource: ApiResource
    grant: GrantTerms


def on_behalf_of(request: TokenRequest, client: Client) -> TokenAnswer:
    """Return a token for the user of the subject token. Raises `RequestRefused`. The sign-in log records success and failure."""
    try:
        user, access = _exchanged(request, client)
    except RequestRefused as refused:
        if REFUSED_EXCHANGES.takes(client.tenant_id, client.client_id):
            _note(request, client, problem=refused.failure.description)
        raise
    _note(request, client, user=user)
    return TokenAnswer(access, access.scopes, {"issued_token_type": ACCESS_TOKEN})


def _exchanged(request: TokenRequest, client: Client) -> tuple[User, Issue]:
    """Return the user of the subject token, and the new token to issue. Raises `RequestRefused`.

    1. The client must be the API of the subject token, and the sender must hold the key or certificate to which the token is bound.
    2. A client grant for users must allow the client to request tokens for the next API.
    3. The new token has only scopes of the client grant. If the API enforces permissions, the new token has only scopes that are also
    permissions of the user.
    4. The new token expires no later than the subject token.
    """
    api = own_api(client)
    audience = audience_of(request) or request.required("audience")
    subject, user = subject_of(request, api)
    actor = actor_of(request, client, api)
    if user.blocked:
        raise RequestRefused(LoginCase.USER_BLOCKED)
    organization = _organization(request, subject, user)
    target = _target(client, audience)
    allowed, permissions = _rights(target, user, subject, organization)
    scope = request.text("scope")
    scopes = allowed if scope is None else tuple(dict.fromkeys(value for value in scope.split() if value in allowed))
    return user, Issue(
        subject=user.user_id,
        audience=target.audience,
        scopes=scopes,
        grant=_GRANT_CLAIM,
        seconds=_seconds(target.resource, subject, actor),
        dialect=target.resource.token_dialect,
        jti=related_jti(subject.jti),
        # The permissions in the token are limited to the requested scopes, too.
        permissions=permissions if permissions is None else tuple(value for value in permissions if value in scopes),
        organization=organization_claims(organization, client.tenant_id),
        confirmation=bound_to(binding(request), client=client, resource=target.resource),
        signature=signature_of_api(target.resource, client),
        actor=_acting(client, subject, actor, target.grant),
    )


def _target(client: Client, audience: str) -> _Target:
    """Return the API of the new token. The client needs a client grant for users, even if the policy of the API requires none. No token is
    issued for the management interface."""
    resource = resource_of(client.tenant_id, audience)
    policy = resource.settings.get("subject_type_authorization", {}).get("user", {}).get("policy")
    is_open = not resource.is_system and policy != "deny_all"
    grant = grant_terms.for_users.get((client.tenant_id, client.pk, resource.pk)) if is_open else None
    if grant is None:
        raise RequestRefused(OAuthCase.NO_CLIENT_GRANT, audience=audience[:200])
    return _Target(audience, resource, grant)


def _rights(
    target: _Target, user: User, subject: AccessTokenClaims, organization: Organization | None
) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Return the scopes and the permissions of the new token.

    The permissions are None if the token dialect of the API does not list permissions.
    """
    resource = target.resource
    known = frozenset(resource.scope_values)
    allowed = tuple(value for value in target.grant.scopes if value in known)
    if target.audience in subject.audiences:
        # Both tokens are for the same API, so the new token may have fewer scopes than the subject token, but not more.
        allowed = tuple(value for value in allowed if value in subject.scopes)
    lists_permissions = resource.token_dialect.endswith("_authz")
    if not (enforces_permissions(resource) or lists_permissions):
        return allowed, None
    own = permission_values(user, resource, organization_id=organization.pk if organization else None)
    both = tuple(value for value in allowed if value in own)
    # Some APIs check only the list of permissions, so the scopes of the client grant limit that list, too.
    return both if enforces_permissions(resource) else allowed, both if lists_permissions else None


def _organization(request: TokenRequest, subject: AccessTokenClaims, user: User) -> Organization | None:
    """Return the organization of the subject token. The user must still be a member, and the request may name no other organization."""
    named = request.text("organization")
    organization = None
    if subject.organization_id:
        rows = Organization.objects.of(request.host.tenant_id).filter(deletion_started_at__isnull=True)
        organization = rows.filter(pk=subject.organization_id).first()
        if organization is None:
            raise RequestRefused(OAuthCase.INVALID_SUBJECT_TOKEN)
        check_membership(organization, user)
    if named is not None and named_organization(request.host.tenant_id, named) != organization:
        raise RequestRefused(LoginCase.ORGANIZATION_NOT_ALLOWED)
    return organization


def _seconds(resource: ApiResource, *bounds: AccessTokenClaims | None) -> int:
    """Return the lifetime of the new token in seconds. The new token expires no later than the tokens of the request."""
    own = resource.token_lifetime or int(settings.ACCESS_TOKEN_SECONDS)
    seconds = min(own, *(bound.expires_at - int(time.time()) for bound in bounds if bound is not None))
    if seconds <= 0:
        raise RequestRefused(OAuthCase.INVALID_SUBJECT_TOKEN)
    return seconds


def _acting(client: Client, subject: AccessTokenClaims, actor: AccessTokenClaims | None, grant: GrantTerms) -> Mapping[str, Any] | None:
    """Return the `act` claim of the new token (RFC 8693, 4.1): the actor of this exchange, with earlier actors nested in it.

    If the client grant allows impersonation and the request has no actor token, the client does not appear in the token; earlier actors
    stay.
    """
    if actor is None and grant.token_exchange == IMPERSONATION:
        return subject.actor
    name = client.client_id if actor is None or actor.is_machine else actor.subject
    if _length(subject.actor) >= _LONGEST_CHAIN:
        raise RequestRefused(OAuthCase.CHAIN_TOO_LONG, limit=_LONGEST_CHAIN)
    return {"sub": name, **({"act": dict(subject.actor)} if subject.actor else {})}


def _length(actor: Mapping[str, Any] | None) -> int:
    count = 0
    while isinstance(actor, Mapping):
        count, actor = count + 1, actor.get("act")
    return count


def _note(request: TokenRequest, client: Client, *, user: User | None = None, problem: str = "") -> None:
    sign_in_log.note(
        tenant_id=client.tenant_id,
        type=_FAILURE if problem else _SUCCESS,
        is_success=not problem,
        description=problem,
        user=user,
        client=client,
        connection=user.connection.name if user is not None else "",
        ip=request.address,
        user_agent=request.headers.get("user-agent", ""),
        details={"type": ON_BEHALF_OF, "audience": storable(str(request.form.get("audience") or request.form.get(RESOURCE) or ""))[:600]},
    )
