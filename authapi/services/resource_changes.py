"""Change and delete APIs, with the permissions and grants that their scopes are in."""

from __future__ import annotations

from typing import Any

from authapi.models import ApiResource, ClientGrant, Permission
from authapi.services.api_resources import check_scopes
from authapi.services.client_grants import delete_client_grant, drop_scopes
from foundation.database.transactions import unit_of_work
from foundation.json_values import merged
from identity.services.failures import Invalid, NotFound, NotSupported
from identity.services.saving import validated_save

EDITABLE = ("name", "scopes", "token_lifetime", "token_dialect", "settings")


class SystemResource(NotSupported):
    """The management interface is part of the service: it is neither deleted nor given other scopes."""


@unit_of_work
def update_api_resource(*, tenant_id: str, resource_id: str, changes: dict[str, Any]) -> ApiResource:
    """Replace the named columns and merge `settings`. Raises `NotFound`, `Invalid`.

    A scope that is dropped goes from roles, users and grants. Those of the management interface come with the release:
    `SystemResource`.
    """
    resource = locked_api_resource(tenant_id=tenant_id, resource_id=resource_id)
    if resource.is_system and changes.keys() & {"scopes", "identifier"}:
        raise SystemResource
    unknown = {name: ["Unknown field."] for name in changes if name not in EDITABLE}
    if unknown:
        raise Invalid(unknown)
    for name, value in changes.items():
        setattr(resource, name, merged(resource.settings, value) if name == "settings" else value)
    if "scopes" in changes:
        check_scopes(resource)
        Permission.objects.of(tenant_id).filter(api_resource=resource).exclude(value__in=resource.scope_values).delete()
        drop_scopes(api_resource=resource, kept=resource.scope_values)
    if changes:
        validated_save(resource, fields=list(changes))
    return resource


@unit_of_work
def delete_api_resource(*, tenant_id: str, resource_id: str) -> None:
    """Delete an API with its permissions and grants; tokens of those grants end. Raises `NotFound`, `SystemResource`."""
    resource = locked_api_resource(tenant_id=tenant_id, resource_id=resource_id)
    if resource.is_system:
        raise SystemResource
    grants = ClientGrant.objects.of(tenant_id).filter(api_resource=resource)
    for grant_id in list(grants.order_by("client_id", "pk").values_list("pk", flat=True)):
        delete_client_grant(tenant_id=tenant_id, grant_id=grant_id)
    resource.delete()


def locked_api_resource(*, tenant_id: str, resource_id: str) -> ApiResource:
    """Return the API with its row locked until the transaction ends; raise `NotFound`."""
    resource = ApiResource.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=resource_id).first()
    if resource is None:
        raise NotFound("The resource server does not exist.")
    return resource
