"""The tabs of clients, APIs and connections: their contents, and links between rows that staff add and remove on the tab."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.db import connection as database
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from authapi.models import ApiResource, Client, ClientGrant
from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from identity.models import AuditEntry, Connection, Tenant
from identity.services.connections import change_enabled_clients, create_connection
from tests.factories.admin import browser_of, new_staff, new_tenant, take_from_administrators
from tests.factories.authapi import global_client, granted_client

ORDERS = "https://orders.example.test"
CLIENT_TABS = ("", "code-for-your-application", "credentials", "connections", "apis", "organizations", "logins")


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


@pytest.fixture
def client(tenant: Tenant) -> Client:
    return create_client(tenant_id=tenant.pk, name="Robot")[0]


@pytest.fixture
def people(tenant: Tenant) -> Connection:
    return create_connection(tenant_id=tenant.pk, name="people", strategy="database")


@pytest.fixture
def orders(tenant: Tenant) -> ApiResource:
    return create_api_resource(tenant_id=tenant.pk, identifier=ORDERS, scopes=[{"value": "read:orders", "description": "Read orders"}])


def page(row: Any, name: str = "change") -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{name}", args=(quote(row.pk),))


def shown(browser: Browser, row: Any, tab: str) -> str:
    answer = browser.get(page(row), {"tab": tab})
    assert answer.status_code == 200
    return answer.content.decode()


def clients_of(connection: Connection) -> list[str]:
    return list(Connection.objects.of(connection.tenant_id).get(pk=connection.pk).enabled_clients)


# --- Clients and connections


def test_a_connection_is_added_to_a_client_and_removed_after_a_confirmation(browser: Browser, client: Client, people: Connection) -> None:
    assert "Users cannot log in to this application until you add a connection." in shown(browser, client, "connections")
    assert '<option value="' + people.pk in browser.get(page(client, "connections")).content.decode()
    answer = browser.post(page(client, "connections"), {"chosen": "people"})
    assert answer["Location"] == f"{page(client)}?tab=connections"
    assert clients_of(people) == [client.client_id]
    assert AuditEntry.objects.filter(tenant_id=client.tenant_id, object_id=people.pk, act__contains="Added application").exists()
    remove = f"{page(client, 'connections')}?connection={people.pk}"
    assert remove in shown(browser, client, "connections")
    assert "can no longer log in to Robot" in browser.get(remove).content.decode()
    assert clients_of(people) == [client.client_id]
    assert browser.post(remove)["Location"] == f"{page(client)}?tab=connections"
    assert clients_of(people) == []
    assert browser.get(remove).status_code == 404


def test_a_client_is_added_to_a_connection_and_removed_after_a_confirmation(browser: Browser, client: Client, people: Connection) -> None:
    assert "No applications" in shown(browser, people, "applications")
    browser.post(page(people, "applications"), {"chosen": client.client_id})
    assert clients_of(people) == [client.client_id]
    content = shown(browser, people, "applications")
    remove = f"{page(people, 'applications')}?client={client.client_id}"
    assert "Robot" in content
    assert remove in content
    assert "can no longer log in to Robot" in browser.get(remove).content.decode()
    assert browser.post(remove)["Location"] == f"{page(people)}?tab=applications"
    assert clients_of(people) == []
    assert browser.post(remove).status_code == 404


@pytest.mark.parametrize("chosen", ["", "nothing", "x\x00y", "x" * 300, "Twin"])
def test_a_form_without_a_valid_choice_is_refused_with_an_explanation(browser: Browser, people: Connection, chosen: str) -> None:
    for _ in range(2):
        create_client(tenant_id=people.tenant_id, name="Twin")
    answer = browser.post(page(people, "applications"), {"chosen": chosen})
    assert answer.status_code == 200
    (text,) = answer.context["form"].errors["chosen"]
    assert text.endswith(".")
    assert clients_of(people) == []


def test_rows_of_another_tenant_are_not_offered_or_linked(browser: Browser, client: Client, people: Connection) -> None:
    other = new_tenant()
    theirs, _ = create_client(tenant_id=other.pk, name="Theirs")
    elsewhere = create_connection(tenant_id=other.pk, name="foreign-people", strategy="database")
    change_enabled_clients(tenant_id=other.pk, connection_id=elsewhere.pk, added=[client.client_id], removed=())
    assert "Theirs" not in browser.get(page(people, "applications")).content.decode()
    assert "foreign-people" not in browser.get(page(client, "connections")).content.decode()
    assert "foreign-people" not in shown(browser, client, "connections")
    for address, chosen in ((page(people, "applications"), theirs.client_id), (page(client, "connections"), elsewhere.pk)):
        assert "There is no " in browser.post(address, {"chosen": chosen}).content.decode()
    assert browser.post(f"{page(client, 'connections')}?connection={elsewhere.pk}").status_code == 404
    assert browser.get(page(elsewhere, "applications")).status_code == 404
    assert (clients_of(people), clients_of(elsewhere)) == ([], [client.client_id])


@pytest.mark.parametrize("role", ["auditor", "provisioning_operator"])
def test_only_administrators_can_link_clients_and_connections(tenant: Tenant, client: Client, people: Connection, role: str) -> None:
    browser = browser_of(new_staff(tenant, role))
    assert browser.post(page(people, "applications"), {"chosen": client.client_id}).status_code == 403
    assert browser.post(page(client, "connections"), {"chosen": "people"}).status_code == 403
    assert clients_of(people) == []
    assert "Add application" not in shown(browser, people, "applications")


# --- APIs of clients


def test_an_api_is_granted_and_removed_on_the_page_of_the_client(browser: Browser, client: Client, orders: ApiResource) -> None:
    add = f"{reverse('admin:authapi_clientgrant_add')}?client={client.pk}"
    content = shown(browser, client, "apis")
    assert "No APIs granted." in content
    assert add in content
    sent = {"client": client.pk, "api_resource": orders.pk, "subject_type": "client", "scopes": "read:orders"}
    assert browser.post(add, sent)["Location"] == f"{page(client)}?tab=apis"
    grant = ClientGrant.objects.of(client.tenant_id).get()
    content = shown(browser, client, "apis")
    remove = f"{page(grant, 'delete')}?client={client.pk}"
    assert (ORDERS in content, "read:orders" in content, remove in content) == (True, True, True)
    assert browser.get(remove).status_code == 200
    assert browser.post(remove, {"post": "yes"})["Location"] == f"{page(client)}?tab=apis"
    assert not ClientGrant.objects.of(client.tenant_id).exists()


def test_the_page_of_an_api_shows_its_permissions_and_its_clients(browser: Browser, client: Client, orders: ApiResource) -> None:
    assert "No grants." in shown(browser, orders, "clients")
    grant = create_client_grant(tenant_id=client.tenant_id, client_id=client.client_id, api_resource=orders, scopes=["read:orders"])
    content = shown(browser, orders, "clients")
    assert ("Robot" in content, "read:orders" in content) == (True, True)
    assert "Read orders" in shown(browser, orders, "permissions")
    remove = f"{page(grant, 'delete')}?api_resource={orders.pk}"
    assert remove in content
    assert browser.post(remove, {"post": "yes"})["Location"] == f"{page(orders)}?tab=clients"


# --- Snippets


def test_a_client_without_an_api_gets_a_link_to_grant_an_api_instead_of_a_snippet(browser: Browser, client: Client) -> None:
    answer = browser.get(page(client), {"tab": "code-for-your-application"})
    assert answer.context["snippets"] == []
    assert f"{reverse('admin:authapi_clientgrant_add')}?client={client.pk}" in answer.content.decode()
    assert "until an API is granted to it" in answer.content.decode()


def test_the_audience_of_the_snippets_is_an_api_granted_to_the_client_itself(
    browser: Browser, tenant: Tenant, client: Client, orders: ApiResource
) -> None:
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=orders, subject_type="user")
    assert browser.get(page(client), {"tab": "code-for-your-application"}).context["snippets"] == []
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=orders)
    first = browser.get(page(client), {"tab": "code-for-your-application"}).context["snippets"][0]
    assert first.title == "Shell, with curl"
    assert f"audience={ORDERS}" in first.text
    everything = global_client(tenant).client
    first = browser.get(page(everything), {"tab": "code-for-your-application"}).context["snippets"][0]
    assert f"audience=http://{tenant.pk}.example.test/api/v2/" in first.text


# --- All tabs


def test_a_tab_reads_only_its_own_tables_with_a_fixed_number_of_queries(browser: Browser, tenant: Tenant, orders: ApiResource) -> None:
    client = granted_client(tenant).client

    def cost(tab: str) -> int:
        # If the cached settings of the tenant have expired, a request also reads the settings. So take the minimum of three requests.
        costs = []
        for _ in range(3):
            with CaptureQueriesContext(database) as captured:
                shown(browser, client, tab)
            costs.append(len(captured))
        return min(costs)

    before = {tab: cost(tab) for tab in CLIENT_TABS}
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=orders)
    for name in ("one", "two", "three"):
        made = create_connection(tenant_id=tenant.pk, name=name, strategy="database")
        change_enabled_clients(tenant_id=tenant.pk, connection_id=made.pk, added=[client.client_id], removed=())
    assert {tab: cost(tab) for tab in CLIENT_TABS} == before


def test_a_table_is_left_out_without_the_permission_to_view_its_rows(
    tenant: Tenant, client: Client, people: Connection, orders: ApiResource, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("clientcredential", "clientgrant", "organizationclientgrant", "signin", "session", "permission")
    own = [f"authapi.view_{name}" for name in names]
    further = [f"identity.view_{name}" for name in ("connection", "user", "organizationconnection")]
    browser = browser_of(new_staff(tenant))
    seen = {tab: browser.get(page(client), {"tab": tab}).context["panels"] for tab in CLIENT_TABS[3:]}
    assert all(panels for panels in seen.values())
    take_from_administrators(monkeypatch, *own, *further)
    browser = browser_of(new_staff(tenant))
    assert [browser.get(page(client), {"tab": tab}).context["panels"] for tab in CLIENT_TABS[3:]] == [[]] * 4
    assert [browser.get(page(orders), {"tab": tab}).context["panels"] for tab in ("permissions", "clients")] == [[], []]
