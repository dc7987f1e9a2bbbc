"""Machine tokens for an organization. They are issued only for organizations to which the client's grant was added."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.models import ApiResource
from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import add_grant_to_organization, create_client_grant
from authapi.services.clients import create_client
from authapi.services.tenant_settings import update_tenant_settings
from identity.models import Tenant
from identity.services.tenants import create_tenant
from tests.authapi.asgi_client import Received, ask_token
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.token_forms import form_of
from tests.factories.authapi import Registered
from tests.factories.organizations import make_organization

API = "urn:orders"


@pytest.fixture
def resource(tenant: Tenant) -> ApiResource:
    return create_api_resource(tenant_id=tenant.pk, identifier=API)


def granted(tenant: Tenant, resource: ApiResource, *, client: dict[str, Any] | None = None, **settings: Any) -> tuple[Registered, str]:
    made, secret = create_client(tenant_id=tenant.pk, name="Machine", settings=client or {})
    grant = create_client_grant(tenant_id=tenant.pk, client_id=made.client_id, api_resource=resource, settings=settings)
    return Registered(made, secret), grant.pk


def ask(tenant: Tenant, registered: Registered, organization: str | None = None) -> Received:
    return ask_token(tenant, form_of(tenant, registered, audience=API, organization=organization))


def refusal(answer: Received) -> tuple[int, str, str]:
    return answer.status, answer.json()["error"], answer.json()["error_description"]


def test_the_organization_parameter_is_refused_if_the_grant_denies_organizations(tenant: Tenant, resource: ApiResource) -> None:
    registered, _ = granted(tenant, resource)
    answer = ask(tenant, registered, make_organization(tenant).pk)
    assert refusal(answer) == (400, "invalid_request", "parameter organization is not allowed for this client")


def test_a_request_without_the_required_organization_gets_an_error_with_the_reason(tenant: Tenant, resource: ApiResource) -> None:
    registered, _ = granted(tenant, resource, organization_usage="require", allow_any_organization=True)
    assert refusal(ask(tenant, registered)) == (400, "invalid_request", "parameter organization is required for this client")


def test_an_unknown_organization_and_an_organization_of_another_tenant_get_the_same_refusal(tenant: Tenant, resource: ApiResource) -> None:
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    registered, _ = granted(tenant, resource, organization_usage="allow", allow_any_organization=True)
    for named in ("org_nothing", make_organization(other).pk, make_organization(tenant, "acme").name):
        assert refusal(ask(tenant, registered, named)) == (400, "invalid_request", "parameter organization is invalid")


def test_a_token_is_issued_only_for_organizations_to_which_the_grant_was_added(tenant: Tenant, resource: ApiResource) -> None:
    registered, grant_id = granted(tenant, resource, organization_usage="allow")
    inside, outside = make_organization(tenant), make_organization(tenant)
    add_grant_to_organization(tenant_id=tenant.pk, organization_id=inside.pk, grant_id=grant_id)
    status, error, description = refusal(ask(tenant, registered, outside.pk))
    assert (status, error, outside.pk in description) == (403, "access_denied", True)
    assert decoded(ask(tenant, registered, inside.pk).json()["access_token"])[1]["org_id"] == inside.pk
    assert "org_id" not in decoded(ask(tenant, registered).json()["access_token"])[1]


def test_an_organization_name_is_accepted_if_the_tenant_allows_names(tenant: Tenant, resource: ApiResource) -> None:
    registered, _ = granted(tenant, resource, organization_usage="allow", allow_any_organization=True)
    acme = make_organization(tenant, "acme")
    update_tenant_settings(tenant_id=tenant.pk, changes={"allow_organization_name_in_authentication_api": True})
    forget_all()
    claims = decoded(ask(tenant, registered, "ACME").json()["access_token"])[1]
    assert (claims["org_id"], claims["org_name"]) == (acme.pk, "acme")


def test_the_default_organization_of_the_client_replaces_a_missing_parameter(tenant: Tenant, resource: ApiResource) -> None:
    acme = make_organization(tenant)
    default = {"default_organization": {"organization_id": acme.pk, "flows": ["client_credentials"]}}
    registered, _ = granted(tenant, resource, client=default, organization_usage="require", allow_any_organization=True)
    assert decoded(ask(tenant, registered).json()["access_token"])[1]["org_id"] == acme.pk
