"""Staff add and remove permissions on the pages of roles and users in the admin."""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from authapi.models import ApiResource, RolePermission, UserPermission
from identity.models import Connection, Role, Tenant, User
from identity.staff_roles import AUDITOR
from tests.factories.admin import browser_of, new_staff, new_tenant
from tests.factories.identity import make_user
from tests.factories.models.authapi import ApiResourceFactory
from tests.factories.organizations import make_role


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


@pytest.fixture
def api(tenant: Tenant) -> ApiResource:
    return make_api(tenant)


@pytest.fixture
def role(tenant: Tenant) -> Role:
    return make_role(tenant, "Reader")


@pytest.fixture
def user(database_connection: Connection) -> User:
    return make_user(connection=database_connection, email="ada@example.test")


def make_api(tenant: Tenant) -> ApiResource:
    return ApiResourceFactory.create(tenant_id=tenant.pk, name="Invoices", scopes=[{"value": "read:invoices", "description": ""}])


def add_to(row: Role | User) -> str:
    return reverse(f"admin:identity_{row._meta.model_name}_action", args=(quote(row.pk), "add-permission"))


def chosen(api: ApiResource, scope: str = "read:invoices") -> dict[str, str]:
    return {"add-permission-permission": f"{api.pk} {scope}"}


def test_a_permission_of_a_role_is_added_and_removed(browser: Client, api: ApiResource, role: Role) -> None:
    page = reverse("admin:identity_role_change", args=(quote(role.pk),))

    added = browser.post(add_to(role), chosen(api))
    (row,) = browser.get(page, {"tab": "permissions"}).context["panels"][0].rows
    removed = browser.post(row[-1].url)

    assert row[0].text == "read:invoices"
    assert [added.headers["location"], removed.headers["location"]] == [f"{page}?tab=permissions"] * 2
    assert not RolePermission.objects.of(role.tenant_id).exists()


def test_a_permission_of_a_user_is_added_and_removed(browser: Client, api: ApiResource, user: User) -> None:
    page = reverse("admin:identity_user_change", args=(quote(user.pk),))

    browser.post(add_to(user), chosen(api))
    (row,) = browser.get(page, {"tab": "access"}).context["panels"][-1].rows
    assert UserPermission.objects.of(user.tenant_id).get().permission.value == "read:invoices"
    browser.post(row[-1].url)

    assert not UserPermission.objects.of(user.tenant_id).exists()


def test_an_unknown_scope_and_an_api_of_another_tenant_are_refused_at_the_field(browser: Client, api: ApiResource, role: Role) -> None:
    foreign = make_api(new_tenant())

    for sent in (chosen(api, "write:invoices"), chosen(foreign), {}):
        answer = browser.post(add_to(role), sent)
        assert list(answer.context["panels"][0].form.form.errors) == ["permission"]
    assert not RolePermission.objects.of(role.tenant_id).exists()


def test_an_auditor_sees_permissions_and_cannot_change_them(browser: Client, tenant: Tenant, api: ApiResource, role: Role) -> None:
    browser.post(add_to(role), chosen(api))
    given = RolePermission.objects.of(tenant.pk).get()
    auditor = browser_of(new_staff(tenant, AUDITOR))

    (panel,) = auditor.get(reverse("admin:identity_role_change", args=(quote(role.pk),)), {"tab": "permissions"}).context["panels"]
    assert (panel.form, panel.rows[0][-1].url) == (None, "")
    assert auditor.post(add_to(role), chosen(api)).status_code == 403
    assert auditor.post(reverse("admin:authapi_rolepermission_action", args=(given.pk, "remove"))).status_code == 403
    assert RolePermission.objects.of(tenant.pk).exists()
