"""Client grants: which scopes a client has at an API without a user. Every change of scopes ends its tokens."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from django.db import transaction

from authapi.entitlements import forget_grant
from authapi.models import ApiResource, Client, ClientGrant
from authapi.services.clients import locked_client, raise_auth_version
from identity.services.failures import Invalid, NotFound
from identity.services.saving import validated_save
from identity.transactions import unit_of_work


@unit_of_work
def create_client_grant(*, tenant_id: str, client_id: str, api_resource: ApiResource, scopes: Iterable[str]) -> ClientGrant:
    """Let a client ask for `scopes` at an API. Raises `NotFound`, `Invalid`, `AlreadyExists`."""
    client = locked_client(tenant_id, client_id)
    if api_resource.tenant_id != tenant_id:
        raise Invalid({"api_resource": ["There is no such API."]})
    grant = ClientGrant(tenant_id=tenant_id, client=client, api_resource=api_resource, scopes=_checked(api_resource, scopes))
    validated_save(grant)
    _end_tokens(client, grant.api_resource_id)
    return grant


@unit_of_work
def update_client_grant(*, tenant_id: str, grant_id: str, scopes: Iterable[str]) -> ClientGrant:
    """Replace the scopes of a grant. Raises `NotFound`, `Invalid`."""
    grant = _found(tenant_id, grant_id)
    client = locked_client(tenant_id, grant.client.client_id)
    grant.scopes = _checked(grant.api_resource, scopes)
    grant.save(update_fields=["scopes", "updated_at"])
    _end_tokens(client, grant.api_resource_id)
    return grant


@unit_of_work
def delete_client_grant(*, tenant_id: str, grant_id: str) -> None:
    """Take a grant away. Raises `NotFound`."""
    grant = _found(tenant_id, grant_id)
    client = locked_client(tenant_id, grant.client.client_id)
    grant.delete()
    _end_tokens(client, grant.api_resource_id)


def _end_tokens(client: Client, resource_pk: str) -> None:
    raise_auth_version(client)
    transaction.on_commit(partial(forget_grant, client.tenant_id, client.pk, resource_pk), robust=True)


def _found(tenant_id: str, grant_id: str) -> ClientGrant:
    grant = ClientGrant.objects.of(tenant_id).select_related("client", "api_resource").filter(pk=grant_id).first()
    if grant is None:
        raise NotFound("There is no such client grant.")
    return grant


def _checked(resource: ApiResource, scopes: Iterable[str]) -> list[str]:
    wanted = list(dict.fromkeys(scopes))
    unknown = [scope for scope in wanted if scope not in resource.scope_values]
    if unknown:
        raise Invalid({"scopes": [f"The API has no scope {', '.join(unknown)}."]})
    return wanted
