"""Changes and deletes APIs, with the permissions and grants that name their scopes."""

from __future__ import annotations

from typing import Any

from authapi.details.types import MEMBER, types_of
from authapi.models import ApiResource, ClientGrant, Permission
from authapi.models.resources import MAX_SCOPES
from authapi.services.api_resources import TOO_MANY_SCOPES, check_detail_types, check_scopes, set_signature
from authapi.services.client_grants import delete_client_grant, drop_detail_types, drop_scopes
from authapi.services.clients import new_secret
from foundation.database.transactions import unit_of_work
from foundation.json_values import merged
from identity.services.failures import Invalid, NotFound, NotSupported
from identity.services.saving import validated_save

EDITABLE = ("name", "scopes", "token_lifetime", "token_dialect", "settings")


class SystemResource(NotSupported):
    """The management interface is part of the service: it cannot be deleted, and its scopes and details cannot change."""


@unit_of_work
def update_api_resource(*, tenant_id: str, resource_id: str, changes: dict[str, Any], signing_secret: str | None = None) -> ApiResource:
    """Replace the given columns and merge `settings`. Raises `NotFound`, `Invalid`.

    A dropped scope is removed from roles, users and grants. A dropped type of authorization details is removed from grants. Raises
    `SystemResource` for scopes and types of the management interface, which the release defines.
    """
    resource = locked_api_resource(tenant_id=tenant_id, resource_id=resource_id)
    if resource.is_system and (changes.keys() & {"scopes", "identifier"} or MEMBER in changes.get("settings", {})):
        raise SystemResource
    unknown = {name: ["Unknown field."] for name in changes if name not in EDITABLE}
    if unknown:
        raise Invalid(unknown)
    for name, value in changes.items():
        setattr(resource, name, merged(resource.settings, value) if name == "settings" else value)
    if MEMBER in changes.get("settings", {}):
        check_detail_types(resource)
        drop_detail_types(api_resource=resource, kept=types_of(resource.settings))
    if "scopes" in changes:
        check_scopes(resource)
        Permission.objects.of(tenant_id).filter(api_resource=resource).exclude(value__in=resource.scope_values).delete()
        drop_scopes(api_resource=resource, kept=resource.scope_values)
    if signing_secret is not None or "settings" in changes:
        set_signature(resource, signing_secret)
    if changes or signing_secret is not None:
        validated_save(resource, fields=[*changes, "sealed_signing_secret"])
    return resource


@unit_of_work
def update_shown_api_resource(
    *, tenant_id: str, resource_id: str, changes: dict[str, Any], shown_scopes: list[dict[str, str]], signing_secret: str | None = None
) -> ApiResource:
    """Do what `update_api_resource` does, with `changes["scopes"]` from a form that showed `shown_scopes`.

    Applies only the differences between the scopes that the form showed and the scopes that the form sent. So a scope that
    another request has added since the form was opened stays in the API, and in the roles, users and grants that have it.
    """
    resource = locked_api_resource(tenant_id=tenant_id, resource_id=resource_id)
    if "scopes" in changes:
        changes = {**changes, "scopes": _edited(list(resource.scopes), shown=shown_scopes, entered=changes["scopes"])}
    return update_api_resource(tenant_id=tenant_id, resource_id=resource_id, changes=changes, signing_secret=signing_secret)


def _edited(current: list[dict[str, str]], *, shown: list[dict[str, str]], entered: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the current scopes without the lines that the form removed, and with the lines that the form added or changed."""
    if [_line(scope) for scope in current] == [_line(scope) for scope in shown]:
        # The scopes have not changed since the form was opened, so the list in the form replaces the stored scopes and their order.
        return entered
    known = {_line(scope) for scope in shown}
    added = [scope for scope in entered if _line(scope) not in known]
    touched = {scope["value"] for scope in shown} - {scope["value"] for scope in entered} | {scope["value"] for scope in added}
    return [*(scope for scope in current if scope["value"] not in touched), *added]


def _line(scope: dict[str, str]) -> tuple[str, str]:
    return scope["value"], scope.get("description") or ""


@unit_of_work
def add_scope(*, tenant_id: str, resource_id: str, value: str, description: str = "") -> ApiResource:
    """Add one scope. Scopes that another request adds at the same time are kept. Raises `NotFound`, `Invalid`, `SystemResource`."""
    resource = locked_api_resource(tenant_id=tenant_id, resource_id=resource_id)
    if value in resource.scope_values:
        raise Invalid({"value": ["The API has this permission already."]})
    if len(resource.scopes) >= MAX_SCOPES:
        raise Invalid({"value": [TOO_MANY_SCOPES]})
    scopes = [*resource.scopes, {"value": value, "description": description}]
    return update_api_resource(tenant_id=tenant_id, resource_id=resource_id, changes={"scopes": scopes})


@unit_of_work
def rotate_signing_secret(*, tenant_id: str, resource_id: str) -> tuple[ApiResource, str]:
    """Replace the secret of an API whose algorithm is HS256. Return the API and the new secret. Raises `NotFound`, `Invalid`."""
    secret = new_secret()
    return update_api_resource(tenant_id=tenant_id, resource_id=resource_id, changes={}, signing_secret=secret), secret


@unit_of_work
def delete_api_resource(*, tenant_id: str, resource_id: str) -> None:
    """Delete an API with its permissions and grants. Ends all JWT access tokens of the clients that have a grant for this API.

    Raises `NotFound`, `SystemResource`.
    """
    resource = locked_api_resource(tenant_id=tenant_id, resource_id=resource_id)
    if resource.is_system:
        raise SystemResource
    grants = ClientGrant.objects.of(tenant_id).filter(api_resource=resource)
    for grant_id in list(grants.order_by("client_id", "pk").values_list("pk", flat=True)):
        delete_client_grant(tenant_id=tenant_id, grant_id=grant_id)
    resource.delete()


def locked_api_resource(*, tenant_id: str, resource_id: str) -> ApiResource:
    """Return the API with its row locked until the transaction ends. Raises `NotFound`."""
    resource = ApiResource.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=resource_id).first()
    if resource is None:
        raise NotFound("The resource server does not exist.")
    return resource
