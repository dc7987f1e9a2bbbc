"""Clients and their grants: secrets are shown once, tenants are separate, and changes that end tokens raise the version of the client."""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from pytest_django.fixtures import Settings

from authapi.management_scopes import MANAGEMENT_SCOPES
from authapi.models import AccessToken, ApiResource, Client, ClientGrant, DeviceGrant, RefreshToken
from authapi.services.api_resources import TenantHasNoDomain, create_api_resource, ensure_management_api
from authapi.services.client_grants import change_client_grant, create_client_grant
from authapi.services.clients import create_client, delete_client, revoke_client, rotate_client_secret
from foundation.tenancy import TenantRequired, tenant_bound
from identity.models import Tenant
from identity.services.failures import AlreadyExists, Invalid, NotFound
from identity.services.tenants import create_tenant
from tests.factories.authapi import granted_client


@pytest.fixture
def other(tenant: Tenant) -> Tenant:
    return create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")


def test_a_new_client_has_an_id_and_a_secret_in_the_format_that_clients_expect(tenant: Tenant) -> None:
    client, secret = create_client(tenant_id=tenant.pk, name="App")
    assert re.fullmatch(r"[A-Za-z0-9]{32}", client.client_id)
    assert re.fullmatch(r"[A-Za-z0-9_-]{64}", secret)
    assert client.secret_matches(secret)
    assert not client.secret_matches(secret[:-1])
    assert not client.secret_matches("")


def test_a_secret_is_stored_only_as_a_digest(tenant: Tenant) -> None:
    client, secret = create_client(tenant_id=tenant.pk, name="App")
    row = Client.objects.of(tenant.pk).values().get(pk=client.pk)
    assert secret not in str(row)
    assert client.client_secret == ""


def test_a_secret_that_signs_id_tokens_cannot_be_decrypted_for_another_tenant(tenant: Tenant) -> None:
    client, secret = create_client(tenant_id=tenant.pk, name="App", algorithm="HS256")
    assert client.client_secret == secret
    assert secret not in client.sealed_secret
    client.tenant_id = "elsewhere"
    with pytest.raises(RuntimeError, match="cannot be decrypted"):
        _ = client.client_secret


def test_a_secret_is_still_accepted_after_a_rotation_of_the_digest_key(tenant: Tenant, settings: Settings) -> None:
    client, secret = create_client(tenant_id=tenant.pk, name="App")
    settings.DIGEST_KEYS = {"t2": "another-digest-key-for-tests-0123456789", **settings.DIGEST_KEYS}
    assert client.secret_matches(secret)
    settings.DIGEST_KEYS = {"t2": settings.DIGEST_KEYS["t2"]}
    assert not client.secret_matches(secret)


def test_a_public_client_has_no_secret(tenant: Tenant) -> None:
    client, secret = create_client(tenant_id=tenant.pk, name="App", token_endpoint_auth_method="none", grant_types=["authorization_code"])
    assert (secret, client.is_public, client.client_type) == ("", True, "public")
    assert not client.secret_matches("")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"token_endpoint_auth_method": "none"}, "grant_types"),
        ({"token_endpoint_auth_method": "none", "grant_types": [], "is_global": True}, "is_global"),
        ({"token_endpoint_auth_method": "telepathy"}, "token_endpoint_auth_method"),
        ({"grant_types": [1]}, "grant_types"),
    ],
)
def test_an_invalid_client_is_refused(tenant: Tenant, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        create_client(tenant_id=tenant.pk, name="App", **changes)
    assert field in refused.value.errors


def test_a_grant_type_is_converted_between_its_wire_name_and_its_toolkit_name() -> None:
    client = Client(grant_types=["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"])
    assert client.allows_grant_type("authorization_code")
    assert client.allows_grant_type("authorization-code", "implicit")
    assert client.allows_grant_type("urn:ietf:params:oauth:grant-type:device_code")
    assert not client.allows_grant_type("client_credentials", "password")
    assert client.authorization_grant_type == "authorization-code"


def test_every_change_that_must_end_tokens_raises_the_version(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    grant = registered.client.client_grants.get()

    def version() -> int:
        return Client.objects.of(tenant.pk).get(pk=registered.client.pk).auth_version

    versions = [version()]
    for change in (
        lambda: rotate_client_secret(tenant_id=tenant.pk, client_id=registered.client_id),
        lambda: change_client_grant(tenant_id=tenant.pk, grant_id=grant.pk, changes={"scopes": []}),
        lambda: revoke_client(tenant_id=tenant.pk, client_id=registered.client_id),
    ):
        change()
        versions.append(version())
    assert versions == [2, 3, 4, 5]
    revoke_client(tenant_id=tenant.pk, client_id=registered.client_id)
    assert version() == 5


def test_deleting_a_client_deletes_its_grants(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    delete_client(tenant_id=tenant.pk, client_id=registered.client_id)
    assert not ClientGrant.objects.of(tenant.pk).exists()


# --- Tenants ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [Client, ApiResource, ClientGrant, AccessToken, RefreshToken, DeviceGrant])
def test_rows_cannot_be_read_without_a_tenant(committed_db: None, model: Any) -> None:
    with pytest.raises(TenantRequired, match=model.__name__):
        model.objects.all()


def test_a_row_that_the_toolkit_creates_belongs_to_the_bound_tenant(tenant: Tenant) -> None:
    with tenant_bound(tenant.pk):
        token = AccessToken.objects.create(token="x", expires=datetime(2030, 1, 1, tzinfo=UTC))
    assert token.tenant_id == tenant.pk
    with pytest.raises(TenantRequired):
        AccessToken(token="y", expires=datetime(2030, 1, 1, tzinfo=UTC)).save()


def test_clients_of_another_tenant_are_not_found(tenant: Tenant, other: Tenant) -> None:
    registered = granted_client(tenant)
    for service in (rotate_client_secret, revoke_client, delete_client):
        with pytest.raises(NotFound):
            service(tenant_id=other.pk, client_id=registered.client_id)


def test_a_grant_cannot_connect_two_tenants(tenant: Tenant, other: Tenant) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="App")
    foreign = ensure_management_api(other.pk)
    with pytest.raises(Invalid):
        create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=foreign, scopes=[])
    # The database also refuses such a grant, in case a service omits the check.
    with pytest.raises(IntegrityError, match="same_tenant"), transaction.atomic():
        ClientGrant.all_tenants.create(tenant=tenant, client=client, api_resource=foreign)


# --- APIs -------------------------------------------------------------------------------------------------------------


def test_the_management_api_is_created_once_with_every_scope(tenant: Tenant) -> None:
    first, second = ensure_management_api(tenant.pk), ensure_management_api(tenant.pk)
    assert first == second
    assert first.identifier == f"http://{tenant.pk}.example.test/api/v2/"
    assert first.scope_values == tuple(MANAGEMENT_SCOPES)
    assert {scope["value"] for scope in first.scopes} == set(MANAGEMENT_SCOPES)


def test_a_tenant_without_a_domain_has_no_management_api(committed_db: None) -> None:
    bare = Tenant.objects.create(id=f"t-{secrets.token_hex(6)}", name="bare")
    with pytest.raises(TenantHasNoDomain):
        ensure_management_api(bare.pk)


def test_a_grant_cannot_contain_a_scope_that_the_api_does_not_have(tenant: Tenant) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="App")
    with pytest.raises(Invalid, match="read:everything"):
        create_client_grant(
            tenant_id=tenant.pk, client_id=client.client_id, api_resource=ensure_management_api(tenant.pk), scopes=["read:everything"]
        )


def test_a_client_has_one_grant_per_api(tenant: Tenant) -> None:
    registered = granted_client(tenant)
    with pytest.raises(AlreadyExists):
        create_client_grant(
            tenant_id=tenant.pk, client_id=registered.client_id, api_resource=ensure_management_api(tenant.pk), scopes=["read:users"]
        )


def test_an_identifier_is_unique_only_within_its_tenant(tenant: Tenant, other: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier="urn:orders")
    create_api_resource(tenant_id=other.pk, identifier="urn:orders")
    with pytest.raises(AlreadyExists):
        create_api_resource(tenant_id=tenant.pk, identifier="urn:orders")


def test_a_token_is_valid_for_at_most_thirty_days(tenant: Tenant) -> None:
    with pytest.raises(Invalid):
        create_api_resource(tenant_id=tenant.pk, identifier="urn:orders", token_lifetime=2_592_001)
