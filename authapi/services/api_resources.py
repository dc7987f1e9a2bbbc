"""APIs of a tenant that tokens can be for."""

from __future__ import annotations

from typing import Any

from authapi.management_scopes import MANAGEMENT_SCOPES
from authapi.models import ApiResource
from foundation.database.transactions import lock_rows, unit_of_work
from identity.hosts import scheme
from identity.models import CustomDomain, Tenant
from identity.services.failures import Invalid
from identity.services.saving import validated_save


class TenantHasNoDomain(RuntimeError):
    """The management interface of a tenant is named by its canonical domain, and it has none."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def ensure_management_api(tenant_id: str) -> ApiResource:
    """Return the tenant's system API, the management interface, making it when it is missing."""
    found = ApiResource.objects.of(tenant_id).filter(is_system=True).first()
    return found or _create_management_api(tenant_id)


@unit_of_work
def _create_management_api(tenant_id: str) -> ApiResource:
    lock_rows(Tenant, [tenant_id])
    found = ApiResource.objects.of(tenant_id).filter(is_system=True).first()
    if found is not None:
        return found
    domains = CustomDomain.objects.of(tenant_id).filter(verified_at__isnull=False)
    host = domains.order_by("-is_canonical", "created_at").values_list("host", flat=True).first()
    if host is None:
        raise TenantHasNoDomain
    resource = ApiResource(
        tenant_id=tenant_id,
        identifier=f"{scheme()}://{host}/api/v2/",
        name="Management interface",
        scopes=[{"value": value, "description": text} for value, text in MANAGEMENT_SCOPES.items()],
        is_system=True,
    )
    resource.save()
    return resource


@unit_of_work
def create_api_resource(
    *,
    tenant_id: str,
    identifier: str,
    name: str = "",
    scopes: list[dict[str, str]] | None = None,
    token_lifetime: int | None = None,
    token_dialect: str = ApiResource.Dialect.ACCESS_TOKEN,
    settings: dict[str, Any] | None = None,
) -> ApiResource:
    """Create an API; `identifier` is the audience of its tokens and never changes. Raises `Invalid`, `AlreadyExists`."""
    resource = ApiResource(
        tenant_id=tenant_id,
        identifier=identifier,
        name=name,
        scopes=scopes or [],
        token_lifetime=token_lifetime,
        token_dialect=token_dialect,
        settings=settings or {},
    )
    check_scopes(resource)
    validated_save(resource)
    return resource


def check_scopes(resource: ApiResource) -> None:
    """Refuse a scope that is named twice."""
    if len(set(resource.scope_values)) != len(resource.scope_values):
        raise Invalid({"scopes": ["Each value once."]})
