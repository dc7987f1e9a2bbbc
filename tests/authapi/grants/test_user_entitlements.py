"""The scopes that a client gets for a user.

They depend on the API, its access policy, the user's permissions, and the organization of the login.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from authapi.failures import Case, RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.grants.entitlements import UserEntitlement, user_entitlement
from authapi.models import ApiResource
from authapi.services.api_resources import create_api_resource, ensure_management_api
from authapi.services.client_grants import create_client_grant
from authapi.services.permissions import Named, add_role_permissions, add_user_permissions
from authapi.services.tenant_settings import update_tenant_settings
from identity.models import Organization, Tenant, User
from identity.services.groups import add_group_members, assign_group_roles
from identity.services.memberships import add_members, assign_member_roles
from identity.services.roles import assign_user_roles
from identity.services.tenants import create_tenant
from tests.authapi.memory import forget_all
from tests.factories.authapi import Registered, global_client, host_of
from tests.factories.logins import some_user, web_client
from tests.factories.organizations import make_group, make_organization, make_role

API = "urn:orders"
SCOPES = [{"value": value, "description": ""} for value in ("read", "write", "delete")]


def api(tenant: Tenant, identifier: str = API, **settings: Any) -> ApiResource:
    return create_api_resource(tenant_id=tenant.pk, identifier=identifier, scopes=SCOPES, settings=settings)


def entitled(
    tenant: Tenant, registered: Registered, user: User | None, scope: str | None, audience: str | None = API, organization: Any = None
) -> UserEntitlement:
    host = host_of(tenant)
    return user_entitlement(host=host, client=registered.client, user=user, audience=audience, scope=scope, organization=organization)


def refusal(tenant: Tenant, registered: Registered, audience: str | None = API, scope: str = "read") -> Case:
    with pytest.raises(RequestRefused) as refused:
        entitled(tenant, registered, some_user(tenant), scope, audience)
    return refused.value.case


# --- Audiences --------------------------------------------------------------------------------------------------------


def test_an_unknown_audience_is_refused(tenant: Tenant) -> None:
    assert refusal(tenant, web_client(tenant), "urn:unknown") is OAuthCase.UNKNOWN_AUDIENCE


def test_an_api_of_another_tenant_is_unknown(tenant: Tenant) -> None:
    api(create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test"))
    assert refusal(tenant, web_client(tenant)) is OAuthCase.UNKNOWN_AUDIENCE


def test_a_request_without_an_audience_gets_only_the_scopes_of_the_profile(tenant: Tenant) -> None:
    granted = entitled(tenant, web_client(tenant), some_user(tenant), "openid read email", None)
    assert (granted.audience, granted.resource, granted.scopes) == ("", None, ("openid", "email"))


def test_an_audience_that_is_the_userinfo_url_selects_no_api(tenant: Tenant) -> None:
    granted = entitled(tenant, web_client(tenant), some_user(tenant), "openid", f"{host_of(tenant).issuer}userinfo")
    assert (granted.audience, granted.resource) == ("", None)


def test_the_default_audience_of_the_tenant_replaces_a_missing_audience(tenant: Tenant) -> None:
    api(tenant)
    update_tenant_settings(tenant_id=tenant.pk, changes={"default_audience": API})
    forget_all()
    granted = entitled(tenant, web_client(tenant), some_user(tenant), "openid read", None)
    assert (granted.audience, granted.scopes) == (API, ("openid", "read"))


# --- Scopes -----------------------------------------------------------------------------------------------------------


def test_unknown_and_duplicate_scopes_are_dropped_silently(tenant: Tenant) -> None:
    api(tenant)
    granted = entitled(tenant, web_client(tenant), some_user(tenant), "write openid  unheard-of read write")
    assert granted.scopes == ("write", "openid", "read")


def test_a_request_without_a_scope_is_granted_every_scope_of_the_api(tenant: Tenant) -> None:
    api(tenant)
    assert entitled(tenant, web_client(tenant), some_user(tenant), None).scopes == ("read", "write", "delete")


@pytest.mark.parametrize("scope", ["offline_access", "online_access"])
def test_offline_access_requires_that_both_the_client_and_the_api_allow_it(tenant: Tenant, scope: str) -> None:
    api(tenant)
    api(tenant, "urn:lasting", allow_offline_access=True)
    user, refreshing, other = some_user(tenant), web_client(tenant), web_client(tenant, grant_types=["authorization_code"])
    given = {
        (name, audience): entitled(tenant, registered, user, f"openid {scope}", audience).scopes[1:]
        for name, registered in (("refreshing", refreshing), ("other", other))
        for audience in (API, "urn:lasting", None)
    }
    allowed = {("refreshing", "urn:lasting"), ("refreshing", None)}
    assert {key for key, scopes in given.items() if scopes == (scope,)} == allowed


# --- Access policy of the API -----------------------------------------------------------------------------------------


def test_an_api_can_deny_access_to_users(tenant: Tenant) -> None:
    api(tenant, subject_type_authorization={"user": {"policy": "deny_all"}})
    assert refusal(tenant, web_client(tenant)) is OAuthCase.NO_CLIENT_GRANT


def test_an_api_can_require_a_client_grant_for_users(tenant: Tenant) -> None:
    resource = api(tenant, subject_type_authorization={"user": {"policy": "require_client_grant"}})
    granted, machine, other = web_client(tenant), web_client(tenant), web_client(tenant)
    create_grant = partial(create_client_grant, tenant_id=tenant.pk, api_resource=resource)
    create_grant(client_id=granted.client_id, scopes=["read"], subject_type="user")
    create_grant(client_id=machine.client_id, scopes=["read"])
    assert entitled(tenant, granted, some_user(tenant), "openid read write").scopes == ("openid", "read")
    # A client grant for the client itself does not apply to users.
    assert refusal(tenant, machine) is OAuthCase.NO_CLIENT_GRANT
    assert refusal(tenant, other) is OAuthCase.NO_CLIENT_GRANT


# --- Permissions ------------------------------------------------------------------------------------------------------


def test_a_user_gets_only_requested_and_permitted_scopes_when_permissions_are_enforced(tenant: Tenant) -> None:
    api(tenant, enforce_policies=True)
    api(tenant, "urn:stock", enforce_policies=True)
    registered, user, nobody = web_client(tenant), some_user(tenant), some_user(tenant)
    role, through_group = make_role(tenant), make_role(tenant)
    add_user_permissions(tenant_id=tenant.pk, user_id=user.user_id, permissions=[Named(API, "read"), Named("urn:stock", "delete")])
    add_role_permissions(tenant_id=tenant.pk, role_id=role.pk, permissions=[Named(API, "write")])
    add_role_permissions(tenant_id=tenant.pk, role_id=through_group.pk, permissions=[Named(API, "delete")])

    assert entitled(tenant, registered, user, "openid read write delete").scopes == ("openid", "read")
    assign_user_roles(tenant_id=tenant.pk, user_id=user.user_id, role_ids=[role.pk])
    assert entitled(tenant, registered, user, "read write delete").scopes == ("read", "write")
    group = make_group(tenant)
    add_group_members(tenant_id=tenant.pk, group_id=group.pk, user_ids=[user.user_id])
    assign_group_roles(tenant_id=tenant.pk, group_id=group.pk, role_ids=[through_group.pk])
    assert entitled(tenant, registered, user, None).scopes == ("read", "write", "delete")
    assert entitled(tenant, registered, user, "read").scopes == ("read",)
    assert entitled(tenant, registered, nobody, "openid read").scopes == ("openid",)


def test_roles_of_an_organization_apply_only_to_logins_for_that_organization(tenant: Tenant) -> None:
    api(tenant, enforce_policies=True)
    registered, user = web_client(tenant), some_user(tenant)
    here, there = (make_organization(tenant) for _ in range(2))
    role = make_role(tenant)
    add_role_permissions(tenant_id=tenant.pk, role_id=role.pk, permissions=[Named(API, "read")])
    add_members(tenant_id=tenant.pk, organization_id=here.pk, user_ids=[user.user_id])
    assign_member_roles(tenant_id=tenant.pk, organization_id=here.pk, user_id=user.user_id, role_ids=[role.pk])

    def given(organization: Organization | None) -> tuple[str, ...]:
        return entitled(tenant, registered, user, "read", organization=organization).scopes

    assert (given(None), given(there), given(here)) == ((), (), ("read",))


def test_permissions_are_not_checked_before_the_user_is_known(tenant: Tenant) -> None:
    api(tenant, enforce_policies=True)
    assert entitled(tenant, web_client(tenant), None, "openid read").scopes == ("openid", "read")


# --- The management interface -----------------------------------------------------------------------------------------


def test_a_login_at_a_global_client_gives_a_user_no_administrative_access(tenant: Tenant) -> None:
    registered = global_client(tenant, grant_types=["authorization_code", "client_credentials"])
    resource = ensure_management_api(tenant.pk)
    user, audience = some_user(tenant), f"{host_of(tenant).base_url}/"
    assert entitled(tenant, registered, user, "openid read:users delete:users", audience).scopes == ("openid",)
    add_user_permissions(tenant_id=tenant.pk, user_id=user.user_id, permissions=[Named(resource.identifier, "read:users")])
    assert entitled(tenant, registered, user, "openid read:users delete:users", audience).scopes == ("openid", "read:users")


def test_a_client_that_is_not_global_needs_a_client_grant_for_the_management_interface(tenant: Tenant) -> None:
    assert refusal(tenant, web_client(tenant), f"{host_of(tenant).base_url}/", "read:users") is OAuthCase.NO_CLIENT_GRANT
