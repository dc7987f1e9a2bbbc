"""Client grants: the scopes of a client at an API, for itself or for users. A change of a grant ends
all JWT access tokens of the client, for every API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from authapi.details.types import types_of
from authapi.models import ApiResource, Client, ClientGrant, OrganizationClientGrant
from authapi.services.clients import locked_client, raise_auth_version
from authapi.services.grant_terms import forget_grant
from foundation.database.transactions import after_commit, lock_rows, unit_of_work
from foundation.json_values import merged
from identity.services.failures import Invalid, NotFound
from identity.services.organizations import locked_organization
from identity.services.saving import validated_save

_TYPES = "authorization_details_types"


@unit_of_work
def create_client_grant(
    *, tenant_id: str, client_id: str, api_resource: ApiResource, scopes: Iterable[str] = (), **columns: Any
) -> ClientGrant:
    """Allow a client to request `scopes` at an API. Raises `NotFound`, `Invalid`, `AlreadyExists`.

    `columns` can contain `subject_type`, `allows_all_scopes` and `settings`.
    """
    if api_resource.tenant_id != tenant_id:
        raise Invalid({"api_resource": ["There is no such API."]})
    _lock_scopes(api_resource)
    client = locked_client(tenant_id, client_id)
    grant = ClientGrant(tenant_id=tenant_id, client=client, api_resource=api_resource, scopes=_checked(api_resource, scopes), **columns)
    grant.settings = _checked_settings(api_resource, merged({}, grant.settings))
    _check_exchange(grant)
    validated_save(grant)
    _end_tokens(client, grant.api_resource_id)
    return grant


@unit_of_work
def change_client_grant(*, tenant_id: str, grant_id: str, changes: dict[str, Any]) -> ClientGrant:
    """Replace `scopes` or `allows_all_scopes`, and merge `settings`. Raises `NotFound`, `Invalid`."""
    grant = _found(tenant_id, grant_id)
    _lock_scopes(grant.api_resource)
    client = locked_client(tenant_id, grant.client.client_id)
    grant.refresh_from_db(fields=["scopes", "allows_all_scopes", "settings"])
    for name, value in changes.items():
        setattr(grant, name, _new_value(grant, name, value))
    _check_exchange(grant)
    validated_save(grant, fields=list(changes))
    _end_tokens(client, grant.api_resource_id)
    return grant


@unit_of_work
def drop_scopes(*, api_resource: ApiResource, kept: Iterable[str]) -> None:
    """Remove every scope that is not in `kept` from the grants of an API."""
    wanted = frozenset(kept)
    grants = ClientGrant.objects.of(api_resource.tenant_id).filter(api_resource=api_resource).select_related("client")
    for grant in grants.order_by("client_id", "pk"):
        left = [scope for scope in grant.scopes if scope in wanted]
        if left != grant.scopes:
            client = locked_client(api_resource.tenant_id, grant.client.client_id)
            grant.scopes = left
            grant.save(update_fields=["scopes", "updated_at"])
            _end_tokens(client, api_resource.pk)


@unit_of_work
def drop_detail_types(*, api_resource: ApiResource, kept: Iterable[str]) -> None:
    """Remove every type of authorization details that is not in `kept` from the grants of an API."""
    wanted = frozenset(kept)
    grants = ClientGrant.objects.of(api_resource.tenant_id).filter(api_resource=api_resource, settings__has_key=_TYPES)
    for grant in grants.select_related("client").order_by("client_id", "pk"):
        left = [name for name in grant.settings[_TYPES] if name in wanted]
        if left != grant.settings[_TYPES]:
            client = locked_client(api_resource.tenant_id, grant.client.client_id)
            grant.settings = {**grant.settings, _TYPES: left}
            grant.save(update_fields=["settings", "updated_at"])
            _end_tokens(client, api_resource.pk)


@unit_of_work
def add_grant_to_organization(*, tenant_id: str, organization_id: str, grant_id: str) -> ClientGrant:
    """Make a client grant valid in an organization.

    Raises `NotFound`, or `AlreadyExists` if the grant is already valid in the organization.
    """
    organization = locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    grant = _found(tenant_id, grant_id)
    validated_save(OrganizationClientGrant(tenant_id=tenant_id, organization=organization, client_grant=grant))
    return grant


@unit_of_work
def remove_grant_from_organization(*, tenant_id: str, organization_id: str, grant_id: str) -> None:
    """Make a client grant invalid in an organization. Does nothing if the grant is not valid in the organization."""
    locked_organization(tenant_id=tenant_id, organization_id=organization_id)
    OrganizationClientGrant.objects.of(tenant_id).filter(organization_id=organization_id, client_grant_id=grant_id).delete()


@unit_of_work
def delete_client_grant(*, tenant_id: str, grant_id: str) -> None:
    """Delete a grant. Raises `NotFound`."""
    grant = _found(tenant_id, grant_id)
    client = locked_client(tenant_id, grant.client.client_id)
    grant.delete()
    _end_tokens(client, grant.api_resource_id)


def _new_value(grant: ClientGrant, name: str, value: Any) -> Any:
    match name:
        case "scopes":
            return _checked(grant.api_resource, value)
        case "settings":
            return _checked_settings(grant.api_resource, merged(grant.settings, value))
        case _:
            return value


def _check_exchange(grant: ClientGrant) -> None:
    if grant.settings.get("token_exchange") and grant.subject_type != ClientGrant.SubjectType.USER:
        raise Invalid({"token_exchange": ["Only a grant for users can have this setting."]})


def _lock_scopes(api_resource: ApiResource) -> None:
    """Lock the scopes and types of an API until the transaction ends. Every transaction locks APIs before clients."""
    lock_rows(ApiResource, [api_resource.pk])
    api_resource.refresh_from_db(fields=["scopes", "settings"])


def _end_tokens(client: Client, resource_pk: str) -> None:
    raise_auth_version(client)
    after_commit(forget_grant, client.tenant_id, client.pk, resource_pk)


def _found(tenant_id: str, grant_id: str) -> ClientGrant:
    grant = ClientGrant.objects.of(tenant_id).select_related("client", "api_resource").filter(pk=grant_id).first()
    if grant is None:
        raise NotFound("The client grant does not exist.")
    return grant


def _checked_settings(resource: ApiResource, settings: dict[str, Any]) -> dict[str, Any]:
    unknown = [name for name in settings.get(_TYPES) or () if name not in types_of(resource.settings)]
    if unknown:
        raise Invalid({_TYPES: [f"The API has no type {', '.join(unknown)} of authorization details."]})
    return settings


def _checked(resource: ApiResource, scopes: Iterable[str]) -> list[str]:
    wanted = list(dict.fromkeys(scopes))
    unknown = [scope for scope in wanted if scope not in resource.scope_values]
    if unknown:
        raise Invalid({"scopes": [f"The API has no scope {', '.join(unknown)}."]})
    return wanted
