"""The start page, and switching between tenants."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from events.log.numbering import number_tenant
from events.models import LogEntry
from identity.models import Connection, Tenant
from tests.factories.admin import browser_of, new_staff, new_tenant
from tests.factories.identity import make_user


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    return browser_of(new_staff(tenant))


def figures(browser: Client) -> dict[str, str]:
    return {figure.label: figure.value for figure in browser.get("/admin/").context["figures"]}


def test_the_latest_events_are_listed_newest_first(browser: Client, tenant: Tenant, database_connection: Connection) -> None:
    make_user(connection=database_connection, name="Ada Lovelace")
    number_tenant(tenant.pk)

    page = browser.get("/admin/").content.decode()
    place = reverse("admin:events_logentry_change", args=(LogEntry.objects.get(tenant_id=tenant.pk, position=2).pk,))

    assert place in page
    own = reverse("admin:identity_connection_change", args=(quote(database_connection.pk),))
    assert page.index("Ada Lovelace") < page.index(f'<a href="{own}">{database_connection.display_name or database_connection.name}</a>')


def test_an_operator_sees_the_platform_and_can_select_a_tenant(tenant: Tenant) -> None:
    operator = browser_of(new_staff(None))
    assert "Tenants" in figures(operator)

    answer = operator.post(reverse("admin:choose_tenant"), {"tenant": tenant.pk, "next": "/admin/identity/user/"})

    assert answer.headers["location"] == "/admin/identity/user/"
    assert "Tenants" not in figures(operator)


def test_selecting_a_tenant_never_redirects_to_another_site(tenant: Tenant) -> None:
    operator = browser_of(new_staff(None))

    for following in ("https://elsewhere.test/", "//elsewhere.test/", "javascript:alert(1)"):
        answer = operator.post(reverse("admin:choose_tenant"), {"tenant": tenant.pk, "next": following})
        assert answer.headers["location"] == "/admin/"


def test_an_unknown_tenant_cannot_be_selected(committed_db: None) -> None:
    operator = browser_of(new_staff(None))

    assert operator.post(reverse("admin:choose_tenant"), {"tenant": "not-there"}).status_code == 404


def test_an_operator_must_choose_the_tenant_of_a_new_row_if_there_are_several_tenants(tenant: Tenant) -> None:
    new_tenant()
    operator = browser_of(new_staff(None))
    add = reverse("admin:identity_connection_add")

    asked = operator.get(add)
    assert asked.headers["location"] == f"{reverse('admin:choose_tenant')}?next={add.replace('/', '%2F')}"

    operator.post(reverse("admin:choose_tenant"), {"tenant": tenant.pk})
    operator.post(add, {"name": "of-the-chosen", "strategy": "database"})
    assert Connection.objects.of(tenant.pk).filter(name="of-the-chosen").exists()


def test_tenants_are_found_by_id_and_name(tenant: Tenant) -> None:
    other = new_tenant()
    operator = browser_of(new_staff(None))

    page = operator.get(reverse("admin:choose_tenant"), {"q": tenant.pk[:10]}).content.decode()

    assert re.search(rf'value="{tenant.pk}"', page)
    assert other.pk not in page
