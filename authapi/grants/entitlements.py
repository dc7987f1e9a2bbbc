"""Decides what a client may request, for itself or for a user: the API of an audience, and the scopes of the API."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import ApiResource, Client
from authapi.services import grant_terms
from authapi.services.api_resources import ensure_management_api
from authapi.services.grant_terms import GrantTerms
from authapi.services.permissions import permission_values
from authapi.tenant_settings import sign_in_settings
from authapi.tokens.audiences import is_management_audience, is_userinfo_audience
from authapi.tokens.keys import trust
from authapi.tokens.profile_claims import SIGN_IN_SCOPES
from foundation.memory.ttl_cache import Remembered
from identity.hosts import HostMatch
from identity.models import Organization, User

_REMEMBERED_SECONDS = 1.0


@dataclass(frozen=True)
class Entitlement:
    """What a client may have at one API: the audience that is written into the token, all scopes that the client may have, and the client
    grant that allows these scopes."""

    audience: str
    resource: ApiResource
    scopes: tuple[str, ...]
    grant: GrantTerms | None = None

    def narrowed(self, requested: str | None) -> tuple[str, ...]:
        """Return the requested scopes that are granted, or all granted scopes if none is requested.

        Other scopes are dropped without an error.
        """
        if requested is None:
            return self.scopes
        wanted = frozenset(requested.split())
        return tuple(scope for scope in self.scopes if scope in wanted)

    @property
    def seconds(self) -> int:
        return self.resource.token_lifetime or int(settings.ACCESS_TOKEN_SECONDS)


def machine_entitlement(client: Client, host: HostMatch, audience: str | None) -> Entitlement:
    """Return the scopes that `client` may request at `audience`. Raises `RequestRefused` if it may request nothing.

    A global client may omit the audience and needs no grant for the management interface.
    """
    if audience is None:
        if not client.is_global:
            raise RequestRefused(OAuthCase.AUDIENCE_REQUIRED)
        audience = f"{host.base_url}/"
    resource = resource_of(host.tenant_id, audience)
    grant = grant_terms.for_clients.get((host.tenant_id, client.pk, resource.pk))
    if grant is None and not (client.is_global and resource.is_system):
        raise RequestRefused(OAuthCase.NO_CLIENT_GRANT, audience=audience)
    scopes = resource.scope_values if grant is None else grant.scopes
    allowed = frozenset(resource.scope_values)
    return Entitlement(audience, resource, tuple(scope for scope in scopes if scope in allowed), grant)


@dataclass(frozen=True)
class UserEntitlement:
    """What a client gets for a user. Without a resource, the token is only for the profile, and `audience` is empty.

    `permissions` are the user's permissions at the API; None if the token dialect of the API does not list permissions.
    """

    audience: str
    resource: ApiResource | None
    scopes: tuple[str, ...]
    permissions: tuple[str, ...] | None = None


def user_entitlement(
    *, host: HostMatch, client: Client, user: User | None, audience: str | None, scope: str | None, organization: Organization | None = None
) -> UserEntitlement:
    """Return the part of `scope` that the client gets for `user`. Other scopes are dropped without an error. Raises `RequestRefused`.

    An absent audience means the tenant's default audience, or the profile if the tenant has no default. An absent scope means all scopes of
    the API. While the user is unknown (None), permissions are not checked: call this function again when the user is known.
    """
    audience = audience or sign_in_settings(host.tenant_id).default_audience
    if not audience or is_userinfo_audience(audience, trust.get(host.tenant_id).hosts):
        scopes = _narrowed(scope or "", frozenset(), may_stay=_may_refresh(client, None))
        return UserEntitlement(audience="", resource=None, scopes=scopes)
    resource = resource_of(host.tenant_id, audience)
    allowed = _allowed_for_users(client, resource, audience)
    permissions = _permissions(user, resource, organization)
    if permissions is not None and enforces_permissions(resource):
        allowed = tuple(value for value in allowed if value in permissions)
    listed = permissions if permissions is not None and resource.token_dialect.endswith("_authz") else None
    scopes = allowed if scope is None else _narrowed(scope, frozenset(allowed), may_stay=_may_refresh(client, resource))
    return UserEntitlement(audience=audience, resource=resource, scopes=scopes, permissions=listed)


def enforces_permissions(resource: ApiResource) -> bool:
    """Tell whether a user gets only the scopes that are among the user's permissions.

    The management interface always requires this check: a login at a global client must not turn every user into an administrator.
    """
    return resource.is_system or bool(resource.settings.get("enforce_policies"))


def _allowed_for_users(client: Client, resource: ApiResource, audience: str) -> tuple[str, ...]:
    """Return the scopes that the API's access policy allows this client for users, before permissions of the user are checked."""
    policy = resource.settings.get("subject_type_authorization", {}).get("user", {}).get("policy")
    if resource.is_system:
        policy = "allow_all" if client.is_global else "require_client_grant"
    if policy in (None, "allow_all"):
        return resource.scope_values
    grant = grant_terms.for_users.get((client.tenant_id, client.pk, resource.pk)) if policy == "require_client_grant" else None
    if grant is None:
        raise RequestRefused(OAuthCase.NO_CLIENT_GRANT, audience=audience[:200])
    allowed = frozenset(resource.scope_values)
    return tuple(value for value in grant.scopes if value in allowed)


def _permissions(user: User | None, resource: ApiResource, organization: Organization | None) -> tuple[str, ...] | None:
    if user is None or not (enforces_permissions(resource) or resource.token_dialect.endswith("_authz")):
        return None
    return permission_values(user, resource, organization_id=organization.pk if organization else None)


def _narrowed(scope: str, allowed: frozenset[str], *, may_stay: bool) -> tuple[str, ...]:
    """Return the granted scopes in the requested order, without duplicates."""
    lasting = {"offline_access", "online_access"} if not may_stay else frozenset()
    known = (allowed | SIGN_IN_SCOPES) - lasting
    return tuple(dict.fromkeys(value for value in scope.split() if value in known))


def _may_refresh(client: Client, resource: ApiResource | None) -> bool:
    """Tell whether a refresh token may be issued: the client may exchange refresh tokens, and the API allows offline access."""
    return client.allows_grant_type("refresh_token") and (resource is None or bool(resource.settings.get("allow_offline_access")))


def resource_of(tenant_id: str, audience: str) -> ApiResource:
    """Return the API with this audience, from a cache that is at most a second old. Raises `RequestRefused`."""
    if is_management_audience(audience, trust.get(tenant_id).hosts):
        return _management.get(tenant_id)
    try:
        return _by_audience.get((tenant_id, audience))
    except ApiResource.DoesNotExist as error:
        raise RequestRefused(OAuthCase.UNKNOWN_AUDIENCE, audience=audience[:200]) from error


def _load_by_audience(key: tuple[str, str]) -> ApiResource:
    tenant_id, audience = key
    return ApiResource.objects.of(tenant_id).get(identifier=audience, is_system=False)


_management: Remembered[str, ApiResource] = Remembered(ensure_management_api, seconds=_REMEMBERED_SECONDS)
_by_audience: Remembered[tuple[str, str], ApiResource] = Remembered(_load_by_audience, seconds=_REMEMBERED_SECONDS)
