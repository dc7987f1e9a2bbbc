"""The page of a new client: the choice of a kind, the fields of each kind, and what is stored."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser
from django.urls import reverse

from authapi.admin.applications.kinds import ALL, KINDS
from authapi.models import ApiResource, Client, ClientGrant
from authapi.services.api_resources import create_api_resource
from identity.models import AuditEntry, CustomDomain, Tenant
from tests.factories.admin import browser_of, new_staff, new_tenant, take_from_administrators

ADD = reverse("admin:authapi_client_add")
CALLBACK = "https://app.example.test/callback"
ORDERS = "https://orders.example.test"


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


def add(browser: Browser, kind: str, **fields: str) -> Any:
    return browser.post(f"{ADD}?kind={kind}", fields)


def only(tenant: Tenant) -> Client:
    return Client.objects.of(tenant.pk).get()


def errors_of(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 200
    return {name: list(texts) for name, texts in answer.context["adminform"].form.errors.items()}


def test_the_page_asks_for_the_kind_first_and_explains_each_kind_in_one_sentence(browser: Browser) -> None:
    content = browser.get(ADD).content.decode()
    for kind in KINDS.values():
        assert f'href="?kind={kind.name}"' in content
        assert kind.sentence in content
    assert 'name="name"' not in content
    assert browser.get(ADD, {"kind": "nothing"}).content.decode().count("?kind=") == len(KINDS) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_form_of_a_kind_has_only_the_fields_of_the_kind(browser: Browser, kind: str) -> None:
    answer = browser.get(ADD, {"kind": kind})
    own = {"api", "scopes"} if kind == "machine" else set()
    assert set(answer.context["adminform"].form.fields) == {*KINDS[kind].fields, *own}
    assert KINDS[kind].label in answer.content.decode()


@pytest.mark.parametrize("kind", [*KINDS, ALL])
def test_only_the_form_with_every_field_can_add_another_client(browser: Browser, kind: str) -> None:
    refused, opened = add(browser, kind).content.decode(), browser.get(ADD, {"kind": kind}).content.decode()
    assert ['name="_addanother"' in content for content in (refused, opened)] == [kind == ALL] * 2
    assert 'name="_save"' in opened


@pytest.mark.parametrize(
    ("kind", "app_type", "method", "grants"),
    [
        ("web", "regular_web", "client_secret_post", ["authorization_code", "refresh_token"]),
        ("spa", "spa", "none", ["authorization_code", "refresh_token"]),
        ("native", "native", "none", ["authorization_code", "refresh_token"]),
        ("machine", "non_interactive", "client_secret_post", ["client_credentials"]),
        ("saml", "regular_web", "none", []),
        ("wsfed", "regular_web", "none", []),
    ],
)
def test_a_kind_implies_the_settings_that_its_form_does_not_ask_for(
    browser: Browser, tenant: Tenant, kind: str, app_type: str, method: str, grants: list[str]
) -> None:
    answer = add(browser, kind, name="App", callbacks="" if kind == "machine" else CALLBACK)
    client = only(tenant)
    assert answer.status_code == (200 if method == "client_secret_post" else 302)
    assert (client.app_type, client.token_endpoint_auth_method, client.grant_types) == (app_type, method, grants)
    assert client.redirect_uris == ("" if kind == "machine" else CALLBACK)
    assert (client.is_global, client.is_first_party) == (False, True)
    addons: dict[str, dict[str, Any]] = {"saml": {"samlp": {}}, "wsfed": {"wsfed": {}}}
    assert client.settings.get("addons") == addons.get(kind)
    rotation = (client.settings.get("refresh_token") or {}).get("rotation_type")
    assert rotation == ("rotating" if "refresh_token" in grants else None)


def test_a_form_cannot_set_what_its_kind_decides(browser: Browser, tenant: Tenant) -> None:
    add(browser, "spa", name="App", callbacks=CALLBACK, is_global="on", grant_types="client_credentials", app_type="native")
    client = only(tenant)
    assert (client.is_global, client.app_type, "client_credentials" in client.grant_types) == (False, "spa", False)


@pytest.mark.parametrize(
    ("kind", "fields", "named"),
    [
        ("web", {"name": "App"}, {"callbacks"}),
        ("spa", {"name": "App", "callbacks": "javascript:alert(1)"}, {"callbacks"}),
        ("spa", {"name": "App", "callbacks": CALLBACK, "web_origins": "nowhere"}, {"web_origins"}),
        ("wsfed", {"callbacks": CALLBACK}, {"name"}),
        ("machine", {"name": "<b>"}, {"name"}),
        ("machine", {"name": "Robot", "scopes": "read:orders"}, {"api"}),
        ("machine", {"name": "Robot", "api": "nothing"}, {"api"}),
    ],
)
def test_wrong_input_is_refused_at_its_field(browser: Browser, tenant: Tenant, kind: str, fields: dict[str, str], named: set[str]) -> None:
    found = errors_of(add(browser, kind, **fields))
    assert set(found) == named
    assert all(text.endswith(".") for texts in found.values() for text in texts)
    assert not Client.objects.of(tenant.pk).exists()


def test_errors_are_sentences_that_name_the_line(browser: Browser) -> None:
    found = errors_of(add(browser, "web", name="<b>", callbacks=f"{CALLBACK}\njavascript:alert(1)"))
    assert found == {
        "name": ["Remove the characters < and >."],
        "callbacks": ["In line 2: Enter a full address, such as https://app.example.com/start."],
    }


def test_the_form_of_a_machine_client_also_creates_its_first_client_grant(browser: Browser, tenant: Tenant) -> None:
    api = create_api_resource(tenant_id=tenant.pk, identifier=ORDERS, scopes=[{"value": "read:orders", "description": ""}])
    assert set(errors_of(add(browser, "machine", name="Robot", api=api.pk, scopes="write:orders"))) == {"scopes"}
    assert not Client.objects.of(tenant.pk).exists()
    assert add(browser, "machine", name="Robot", api=api.pk, scopes="read:orders").status_code == 200
    grant = ClientGrant.objects.of(tenant.pk).get()
    assert (grant.client, grant.api_resource, grant.scopes, grant.subject_type) == (only(tenant), api, ["read:orders"], "client")


def test_the_management_api_is_offered_before_its_row_exists(browser: Browser, tenant: Tenant) -> None:
    assert not ApiResource.objects.of(tenant.pk).exists()
    assert "Management interface" in browser.get(ADD, {"kind": "machine"}).content.decode()
    assert not ApiResource.objects.of(tenant.pk).exists()
    assert add(browser, "machine", name="Robot", api="management", scopes="read:users").status_code == 200
    grant = ClientGrant.objects.of(tenant.pk).get()
    assert (grant.api_resource.is_system, grant.scopes) == (True, ["read:users"])


def test_the_page_tells_a_tenant_without_a_domain_to_add_a_domain(browser: Browser, tenant: Tenant) -> None:
    CustomDomain.objects.of(tenant.pk).delete()
    found = errors_of(add(browser, "machine", name="Robot", api="management", scopes="read:users"))
    assert found == {"api": ["Add a domain to the tenant first: the identifier of the management interface contains the domain."]}
    assert not Client.objects.of(tenant.pk).exists()


def test_the_api_of_another_tenant_is_not_offered_or_granted(browser: Browser, tenant: Tenant) -> None:
    api = create_api_resource(tenant_id=new_tenant().pk, identifier=ORDERS, name="Orders elsewhere")
    assert "Orders elsewhere" not in browser.get(ADD, {"kind": "machine"}).content.decode()
    assert set(errors_of(add(browser, "machine", name="Robot", api=api.pk))) == {"api"}
    assert not ClientGrant.objects.of(tenant.pk).exists()


def test_without_the_permission_for_client_grants_the_form_of_a_machine_client_offers_no_apis(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = create_api_resource(tenant_id=tenant.pk, identifier=ORDERS)
    take_from_administrators(monkeypatch, "authapi.add_clientgrant")
    browser = browser_of(new_staff(tenant))
    assert set(browser.get(ADD, {"kind": "machine"}).context["adminform"].form.fields) == {"name"}
    add(browser, "machine", name="Robot", api=api.pk)
    assert only(tenant).name == "Robot"
    assert not ClientGrant.objects.of(tenant.pk).exists()


@pytest.mark.parametrize("role", ["auditor", "provisioning_operator"])
def test_only_administrators_see_the_choice_of_a_kind(tenant: Tenant, role: str) -> None:
    browser = browser_of(new_staff(tenant, role))
    assert browser.get(ADD).status_code == 403
    assert add(browser, "machine", name="Robot").status_code == 403


def test_creating_an_application_redirects_to_the_next_step(browser: Browser, tenant: Tenant) -> None:
    answer = add(browser, "web", name="Web", callbacks=CALLBACK)
    paste = reverse("admin:authapi_client_change", args=(only(tenant).pk,)) + "?tab=code-for-your-application"
    assert f'href="{paste}"' in answer.content.decode()
    assert "export CLIENT_SECRET=" in answer.content.decode()
    only(tenant).delete()
    assert add(browser, "saml", name="Saml")["Location"].endswith("/saml/")
    only(tenant).delete()
    assert add(browser, "wsfed", name="Fed", callbacks=CALLBACK)["Location"].endswith("?tab=code-for-your-application")
    assert AuditEntry.objects.filter(tenant_id=tenant.pk, object_type="authapi.client").exists()
