"""What a client may ask for without a user: the API behind an audience, and its scopes there."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from authapi.audiences import is_management_audience
from authapi.failures import Case, RequestRefused
from authapi.keys import trust
from authapi.models import ApiResource, Client, ClientGrant
from authapi.remembered import Remembered
from authapi.services.api_resources import ensure_management_api
from identity.hosts import HostMatch

_REMEMBERED_SECONDS = 1.0
_GRANTS_REMEMBERED_SECONDS = 0.2


@dataclass(frozen=True)
class Entitlement:
    """The answer: audience as the token will name it, API, and every scope the client may have there."""

    audience: str
    resource: ApiResource
    scopes: tuple[str, ...]

    def narrowed(self, requested: str | None) -> tuple[str, ...]:
        """Return the requested scopes that are granted, or all of them; ungranted ones are dropped silently."""
        if requested is None:
            return self.scopes
        wanted = frozenset(requested.split())
        return tuple(scope for scope in self.scopes if scope in wanted)

    @property
    def seconds(self) -> int:
        return self.resource.token_lifetime or int(settings.ACCESS_TOKEN_SECONDS)


def machine_entitlement(client: Client, host: HostMatch, audience: str | None) -> Entitlement:
    """Return what `client` may ask for at `audience`; raise `RequestRefused` when that is nothing.

    A global client may leave the audience out and needs no grant for the management interface.
    """
    if audience is None:
        if not client.is_global:
            raise RequestRefused(Case.AUDIENCE_REQUIRED)
        audience = f"{host.base_url}/"
    resource = _resource(host.tenant_id, audience)
    scopes = _granted.get((host.tenant_id, client.pk, resource.pk))
    if scopes is None:
        if not (client.is_global and resource.is_system):
            raise RequestRefused(Case.NO_CLIENT_GRANT, audience=audience)
        scopes = resource.scope_values
    allowed = frozenset(resource.scope_values)
    return Entitlement(audience=audience, resource=resource, scopes=tuple(scope for scope in scopes if scope in allowed))


def forget_grant(tenant_id: str, client_pk: int, resource_pk: str) -> None:
    """Let this process see a changed grant at once."""
    _granted.forget((tenant_id, client_pk, resource_pk))


def _resource(tenant_id: str, audience: str) -> ApiResource:
    if is_management_audience(audience, trust.get(tenant_id).hosts):
        return _management.get(tenant_id)
    try:
        return _by_audience.get((tenant_id, audience))
    except ApiResource.DoesNotExist as error:
        raise RequestRefused(Case.UNKNOWN_AUDIENCE, audience=audience[:200]) from error


def _load_by_audience(key: tuple[str, str]) -> ApiResource:
    tenant_id, audience = key
    return ApiResource.objects.of(tenant_id).get(identifier=audience, is_system=False)


def _load_granted(key: tuple[str, int, str]) -> tuple[str, ...] | None:
    tenant_id, client_pk, resource_pk = key
    grants = ClientGrant.objects.of(tenant_id).filter(client_id=client_pk, api_resource_id=resource_pk)
    grant = grants.filter(subject_type=ClientGrant.SubjectType.CLIENT).select_related("api_resource").first()
    return None if grant is None else grant.granted_scopes


_management: Remembered[str, ApiResource] = Remembered(ensure_management_api, seconds=_REMEMBERED_SECONDS)
_by_audience: Remembered[tuple[str, str], ApiResource] = Remembered(_load_by_audience, seconds=_REMEMBERED_SECONDS)
_granted: Remembered[tuple[str, int, str], tuple[str, ...] | None] = Remembered(_load_granted, seconds=_GRANTS_REMEMBERED_SECONDS)
