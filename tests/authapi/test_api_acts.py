"""Buttons and forms on the page of an API: permissions, test requests, grants, and a new signing secret."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from threading import Barrier
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.sessions.models import Session as BrowserSession
from django.db import connection
from django.test import Client as Browser
from django.urls import reverse

from authapi.admin.applications import token_request
from authapi.models import ApiResource, Client, ClientGrant
from authapi.services.api_resources import create_api_resource, ensure_management_api
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client, revoke_client
from authapi.services.resource_changes import SystemResource, add_scope, rotate_signing_secret, update_api_resource
from identity.models import AuditEntry, Tenant
from identity.services.failures import Invalid
from identity.staff_roles import AUDITOR
from tests.factories.admin import browser_of, new_staff, new_tenant, take_from_administrators

IDENTIFIER = "https://orders.example.test/"
_SECRET = re.compile(r'<code class="command" tabindex="0">([A-Za-z0-9_-]{64})</code>')


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


@pytest.fixture
def api(tenant: Tenant) -> ApiResource:
    return create_api_resource(tenant_id=tenant.pk, identifier=IDENTIFIER, name="Orders", scopes=[{"value": "read:orders"}])


@pytest.fixture
def signed(tenant: Tenant) -> ApiResource:
    """An API whose tokens are signed with a secret."""
    return create_api_resource(
        tenant_id=tenant.pk, identifier="https://signed.example.test/", settings={"signing_alg": "HS256"}, signing_secret="s" * 40
    )


def page(row: ApiResource, name: str = "change") -> str:
    return reverse(f"admin:authapi_apiresource_{name}", args=(quote(row.pk),))


def act(row: ApiResource, name: str) -> str:
    return reverse("admin:authapi_apiresource_action", args=(quote(row.pk), name))


def head_of(browser: Browser, row: ApiResource, tab: str = "") -> str:
    shown = browser.get(page(row), {"tab": tab} if tab else {}).content.decode()
    return shown.partition('<header class="object-header">')[2].partition("</header>")[0]


def primary_of(head: str) -> list[tuple[str, str]]:
    return [(text, unescape(address)) for address, text in re.findall(r'<a class="button" href="([^"]*)">([^<]*)</a>', head)]


def menu_of(head: str) -> list[str]:
    return re.findall(r">([^<>]+)</a>\s*</li>", head)


def machine(tenant: Tenant, api: ApiResource, name: str = "Robot", **changes: Any) -> Client:
    client, _ = create_client(tenant_id=tenant.pk, name=name, **{"grant_types": ["client_credentials"], **changes})
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=api, scopes=["read:orders"])
    return client


# Buttons in the header of the page


def test_the_header_of_an_api_has_buttons_for_a_permission_and_a_test_and_a_grant(browser: Browser, api: ApiResource) -> None:
    head = head_of(browser, api)
    assert primary_of(head) == [("Add permission", f"{page(api)}?tab=permissions#id_add-permission-value")]
    assert menu_of(head) == ["Request a token", "Grant to a client", "History", "Delete"]
    assert primary_of(head_of(browser, api, "permissions")) == []


def test_only_an_api_with_a_secret_offers_a_new_secret(browser: Browser, signed: ApiResource) -> None:
    assert "Create new signing secret" in menu_of(head_of(browser, signed))
    unsigned = create_api_resource(tenant_id=signed.tenant_id, identifier="https://unsigned.example.test/")
    assert "Create new signing secret" not in menu_of(head_of(browser, unsigned))


def test_the_page_of_the_management_api_offers_a_grant_but_no_change_or_deletion(browser: Browser, tenant: Tenant) -> None:
    head = head_of(browser, ensure_management_api(tenant.pk))
    assert [text for text, _ in primary_of(head)] == ["Grant to a client"]
    assert menu_of(head) == ["Request a token", "History"]


def test_the_scopes_of_the_management_api_are_shown_one_per_line(browser: Browser, tenant: Tenant) -> None:
    shown = browser.get(page(ensure_management_api(tenant.pk))).content.decode()
    assert "<div><code>read:users</code> Read users</div>" in shown
    assert "&quot;description&quot;" not in shown


def test_an_auditor_sees_the_labels_of_the_form(tenant: Tenant, signed: ApiResource) -> None:
    shown = browser_of(new_staff(tenant, AUDITOR)).get(page(signed)).content.decode()
    assert "Format of tokens:" in shown
    assert "Token dialect" not in shown


def test_an_auditor_sees_no_buttons_that_change_the_api(tenant: Tenant, signed: ApiResource) -> None:
    auditor = browser_of(new_staff(tenant, AUDITOR))
    head = head_of(auditor, signed)
    assert primary_of(head) == []
    assert menu_of(head) == ["Request a token", "History"]
    for name in ("add-permission", "rotate-signing-secret"):
        assert auditor.post(act(signed, name), {"add-permission-value": "x"}).status_code == 403


@pytest.mark.parametrize(
    ("permission", "gone"),
    [
        ("authapi.change_apiresource", "Add permission"),
        ("authapi.view_permission", "Add permission"),
        ("authapi.view_clientgrant", "Request a token"),
        ("authapi.add_clientgrant", "Grant to a client"),
        ("authapi.delete_apiresource", "Delete"),
        ("authapi.change_apiresource", "Create new signing secret"),
    ],
)
def test_an_account_without_the_permission_does_not_see_the_button(
    browser: Browser, signed: ApiResource, monkeypatch: pytest.MonkeyPatch, permission: str, gone: str
) -> None:
    def texts() -> list[str]:
        head = head_of(browser, signed)
        return [*(text for text, _ in primary_of(head)), *menu_of(head)]

    assert gone in texts()
    take_from_administrators(monkeypatch, permission)
    assert gone not in texts()


# Permissions


def test_a_permission_is_added_and_recorded(browser: Browser, api: ApiResource) -> None:
    sent = {"add-permission-value": "write:orders", "add-permission-description": "Change orders"}
    answer = browser.post(act(api, "add-permission"), sent)

    assert answer.headers["location"] == f"{page(api)}?tab=permissions"
    api.refresh_from_db()
    assert api.scopes == [{"value": "read:orders"}, {"value": "write:orders", "description": "Change orders"}]
    assert AuditEntry.objects.filter(tenant_id=api.tenant_id, act="Add permission").exists()


@pytest.mark.parametrize("value", ["read:orders", "read orders", "", "x" * 281])
def test_an_existing_or_invalid_permission_is_refused_at_its_field(browser: Browser, api: ApiResource, value: str) -> None:
    answer = browser.post(act(api, "add-permission"), {"add-permission-value": value})
    assert list(answer.context["panels"][0].form.form.errors) == ["value"]
    api.refresh_from_db()
    assert api.scope_values == ("read:orders",)


def test_an_api_with_the_maximum_number_of_permissions_refuses_another_permission(browser: Browser, tenant: Tenant) -> None:
    scopes = [{"value": f"scope:{number}"} for number in range(999)]
    api = create_api_resource(tenant_id=tenant.pk, identifier=IDENTIFIER, scopes=scopes)
    assert browser.post(act(api, "add-permission"), {"add-permission-value": "scope:last"}).status_code == 302

    answer = browser.post(act(api, "add-permission"), {"add-permission-value": "scope:further"})

    assert answer.context["panels"][0].form.form.errors == {"value": ["An API has at most 1000 permissions."]}
    api.refresh_from_db()
    assert (len(api.scopes), api.scope_values[-1]) == (1000, "scope:last")


def test_the_tab_shows_the_newest_permissions_and_links_to_all_permissions(browser: Browser, tenant: Tenant) -> None:
    api = create_api_resource(tenant_id=tenant.pk, identifier=IDENTIFIER, scopes=[{"value": f"scope:{number}"} for number in range(100)])
    tab = f"{page(api)}?tab=permissions"
    assert "permissions are shown" not in browser.get(tab).content.decode()
    add_scope(tenant_id=tenant.pk, resource_id=api.pk, value="scope:new")

    (panel,) = browser.get(tab).context["panels"]
    assert (panel.rows[0][0].text, panel.rows[-1][0].text, len(panel.rows)) == ("scope:1", "scope:new", 100)
    assert f'<a href="{page(api)}">The newest 100 of 101 permissions are shown. Show all</a>' in browser.get(tab).content.decode()


def test_permissions_that_are_added_at_the_same_time_are_all_kept(committed_db: None) -> None:
    tenant = new_tenant()
    api = create_api_resource(tenant_id=tenant.pk, identifier=IDENTIFIER)
    names = [f"scope:{number}" for number in range(4)]
    start = Barrier(len(names))

    def add(name: str) -> None:
        start.wait(10)
        add_scope(tenant_id=tenant.pk, resource_id=api.pk, value=name)
        connection.close()

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(add, names))
    api.refresh_from_db()
    assert sorted(api.scope_values) == names


def test_no_permission_is_added_to_the_management_api(tenant: Tenant) -> None:
    with pytest.raises(SystemResource):
        add_scope(tenant_id=tenant.pk, resource_id=ensure_management_api(tenant.pk).pk, value="fly:drones")


# The signing secret


def test_a_new_signing_secret_is_shown_once_after_a_confirmation_with_the_number_of_clients(
    browser: Browser, tenant: Tenant, signed: ApiResource
) -> None:
    for name in ("One", "Two"):
        client, _ = create_client(tenant_id=tenant.pk, name=name)
        for subject in ClientGrant.SubjectType.values:
            create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=signed, scopes=[], subject_type=subject)

    asked = browser.get(act(signed, "rotate-signing-secret")).content.decode()
    assert "2 clients have a grant for the API." in asked
    assert "csrfmiddlewaretoken" in asked
    signed.refresh_from_db()
    assert signed.signing_secret == "s" * 40

    shown = browser.post(act(signed, "rotate-signing-secret"))
    (secret,) = set(_SECRET.findall(shown.content.decode()))
    signed.refresh_from_db()
    assert signed.signing_secret == secret
    assert secret not in browser.get(page(signed)).content.decode()
    assert not any(secret in str(session.get_decoded()) for session in BrowserSession.objects.all())
    entries = AuditEntry.objects.filter(tenant_id=tenant.pk, act="Create new signing secret")
    assert entries.exists()
    assert not any(secret in str((entry.before, entry.after, entry.facts)) for entry in entries)


def test_an_api_with_another_algorithm_gets_no_signing_secret(browser: Browser, api: ApiResource) -> None:
    assert browser.post(act(api, "rotate-signing-secret")).status_code == 403
    with pytest.raises(Invalid):
        rotate_signing_secret(tenant_id=api.tenant_id, resource_id=api.pk)
    api.refresh_from_db()
    assert api.sealed_signing_secret == ""


def test_the_confirmation_of_a_new_secret_says_how_many_clients_lose_access(browser: Browser, tenant: Tenant, signed: ApiResource) -> None:
    def told() -> str:
        return str(browser.get(act(signed, "rotate-signing-secret")).context["explanation"])

    add_scope(tenant_id=tenant.pk, resource_id=signed.pk, value="read:orders")
    revoked = machine(tenant, signed, "Old robot")
    machine(tenant, signed)
    assert "2 clients have a grant for the API." in told()
    revoke_client(tenant_id=tenant.pk, client_id=revoked.client_id)
    assert "1 client has a grant for the API." in told()

    every = "Every application can request tokens for users."
    assert every in told()
    policies = {"user": {"policy": "require_client_grant"}, "client": {"policy": "require_client_grant"}}
    settings = {"subject_type_authorization": policies}
    update_api_resource(tenant_id=tenant.pk, resource_id=signed.pk, changes={"settings": settings})
    assert every not in told()


# The test page


def test_the_test_page_has_a_token_request_of_the_newest_or_the_chosen_client(browser: Browser, tenant: Tenant, api: ApiResource) -> None:
    first, second = machine(tenant, api, "First"), machine(tenant, api, "Second")

    shown = unescape(browser.get(page(api, "test")).content.decode())
    assert f"--data client_id={second.client_id}" in shown
    assert f'--data-urlencode "audience={IDENTIFIER}"' in shown
    assert f'"Authorization: Bearer ${{TOKEN:?Set TOKEN to the access token}}" "{IDENTIFIER}"' in shown
    chosen = unescape(browser.get(page(api, "test"), {"client": first.client_id}).content.decode())
    assert f"--data client_id={first.client_id}" in chosen
    assert browser.get(page(api, "test"), {"client": "unknown"}).status_code == 404
    assert browser.post(page(api, "test")).status_code == 405


def test_the_test_page_offers_only_clients_that_can_request_tokens(browser: Browser, tenant: Tenant, api: ApiResource) -> None:
    revoked = machine(tenant, api, "Revoked")
    revoke_client(tenant_id=tenant.pk, client_id=revoked.client_id)
    machine(tenant, api, "Web", grant_types=["authorization_code"], redirect_uris="https://app.example.test/callback")
    create_client(tenant_id=tenant.pk, name="Ungranted", grant_types=["client_credentials"])

    shown = browser.get(page(api, "test"))
    assert shown.context["clients"] == []
    assert "No client can request tokens for this API" in shown.content.decode()
    assert f"?api_resource={api.pk}" in shown.content.decode()


def test_the_test_page_of_the_management_api_offers_global_clients_without_a_grant(browser: Browser, tenant: Tenant) -> None:
    management = ensure_management_api(tenant.pk)
    client, _ = create_client(tenant_id=tenant.pk, name="Operator", grant_types=["client_credentials"], is_global=True)
    create_client(tenant_id=tenant.pk, name="Web", grant_types=["authorization_code"], is_global=True)

    shown = browser.get(page(management, "test"))
    assert shown.context["clients"] == [client]
    assert f"--data client_id={client.client_id}" in unescape(shown.content.decode())
    assert "No client can request tokens" not in shown.content.decode()


def test_a_global_client_needs_a_grant_for_another_api(browser: Browser, tenant: Tenant, api: ApiResource) -> None:
    create_client(tenant_id=tenant.pk, name="Operator", grant_types=["client_credentials"], is_global=True)
    assert browser.get(page(api, "test")).context["clients"] == []


def test_the_test_page_adds_the_requested_client_to_its_limited_list_of_clients(
    browser: Browser, tenant: Tenant, api: ApiResource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_request, "_MOST_CLIENTS", 1)
    first, second = machine(tenant, api, "First"), machine(tenant, api, "Second")
    shown = browser.get(page(api, "test"), {"client": first.client_id})
    assert shown.context["clients"] == [second, first]
    assert f"--data client_id={first.client_id}" in unescape(shown.content.decode())


def titles(browser: Browser, api: ApiResource) -> list[str]:
    return [snippet.title for snippet in browser.get(page(api, "test")).context["snippets"]]


def test_the_programs_for_a_client_with_a_key_read_the_key_and_contain_no_secret(
    browser: Browser, tenant: Tenant, api: ApiResource
) -> None:
    client = machine(tenant, api)
    assert len(titles(browser, api)) == 4
    Client.objects.of(tenant.pk).filter(pk=client.pk).update(
        settings={"client_authentication_methods": {"private_key_jwt": {"credentials": [{"id": "cred_1"}]}}}
    )

    assert len(titles(browser, api)) == 4
    shown = browser.get(page(api, "test")).content.decode()
    assert "CLIENT_SECRET" not in shown
    assert shown.count("CLIENT_KEY_FILE") > 3


def test_the_test_page_shows_only_the_api_call_if_tokens_of_the_client_must_be_bound(
    browser: Browser, tenant: Tenant, api: ApiResource
) -> None:
    client = machine(tenant, api)
    Client.objects.of(tenant.pk).filter(pk=client.pk).update(settings={"require_proof_of_possession": True})

    assert titles(browser, api) == ["Call the API, with curl"]
    assert "must be bound to a key or a certificate" in browser.get(page(api, "test")).content.decode()


@pytest.mark.parametrize(
    ("identifier", "is_called"),
    [
        ("https://orders.example.test/v1", True),
        ("http://localhost:8080/", True),
        ("http://127.0.0.1/", True),
        ("http://orders.example.test/", False),
        ("http://localhost.example.test/", False),
        ("http://[orders", False),
        ("orders", False),
    ],
)
def test_a_token_is_sent_only_over_https_or_to_this_machine(browser: Browser, tenant: Tenant, identifier: str, *, is_called: bool) -> None:
    api = create_api_resource(tenant_id=tenant.pk, identifier=identifier, scopes=[{"value": "read:orders"}])
    machine(tenant, api)
    found = {snippet.title: snippet.text for snippet in browser.get(page(api, "test")).context["snippets"]}
    assert ("Call the API, with curl" in found) is is_called
    if is_called:
        assert found["Call the API, with curl"].startswith("# Replace the address with an endpoint of the API.\n")


@pytest.mark.parametrize(
    ("possession", "warning"),
    [
        ({"mechanism": "dpop", "required": True}, "bound to a key"),
        ({"mechanism": "mtls", "required": True, "required_for": "all_clients"}, "bound to a client certificate"),
        ({"mechanism": "dpop", "required": True, "required_for": "public_clients"}, ""),
        ({"mechanism": "dpop", "required": False}, ""),
    ],
)
def test_the_test_page_says_that_tokens_must_be_bound(browser: Browser, tenant: Tenant, possession: dict[str, Any], warning: str) -> None:
    api = create_api_resource(tenant_id=tenant.pk, identifier=IDENTIFIER, settings={"proof_of_possession": possession})
    shown = browser.get(page(api, "test")).content.decode()
    assert ("The API requires tokens that are bound to" in shown) is bool(warning)
    assert warning in shown


def test_the_test_page_says_that_applications_get_tokens_only_for_users(browser: Browser, tenant: Tenant) -> None:
    denied = {"subject_type_authorization": {"user": {"policy": "allow_all"}, "client": {"policy": "deny_all"}}}
    api = create_api_resource(tenant_id=tenant.pk, identifier=IDENTIFIER, settings=denied)
    assert "allow no application to request tokens without a user" in browser.get(page(api, "test")).content.decode()


def test_an_identifier_that_could_end_a_string_is_not_put_into_snippets(browser: Browser, tenant: Tenant) -> None:
    api = create_api_resource(tenant_id=tenant.pk, identifier='https://x/"; rm -rf ~; "', scopes=[{"value": "read:orders"}])
    machine(tenant, api)
    shown = browser.get(page(api, "test"))
    assert shown.context["snippets"] == []
    assert "No code:" in shown.content.decode()
