"""SAML in the admin: metadata fills in the form, the form shows the assertion of a user, and only saving stores changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client as Browser
from django.urls import reverse

from authapi.models import Client, SamlKey
from authapi.protocols.saml.recipes import recipes
from authapi.protocols.saml.settings import is_on, saml_settings
from authapi.services.clients import revoke_client
from authapi.tokens.saml_keys import current_key, prepare_key
from identity.models import AuditEntry, Tenant
from tests.authapi.protocols.saml.conftest import ACS, saml_client
from tests.authapi.protocols.saml.test_metadata import CONSUMER, partner
from tests.factories.admin import browser_of, new_staff, take_from_administrators
from tests.factories.sign_in import people, person, web_client

METADATA = partner(CONSUMER)


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


@pytest.fixture
def client(tenant: Tenant) -> Client:
    made, _ = web_client(tenant, name="Payroll", redirect_uris=ACS)
    return made


def address(client: Client) -> str:
    return reverse("admin:authapi_client_saml", args=(quote(client.pk),))


def entered(browser: Browser, client: Client, act: str, **changes: Any) -> Any:
    """Press a button of the page after some changes."""
    form = browser.get(address(client)).context["shown"].form
    sent = {name: form[name].value() for name in form.fields} | changes
    lines = {name: "\n".join(value) if isinstance(value, list) else value for name, value in sent.items()}
    return browser.post(address(client), {name: value for name, value in lines.items() if value not in (None, False)} | {act: "x"})


def stored(client: Client) -> Any:
    client.refresh_from_db()
    return client.settings.get("addons")


def test_the_page_shows_the_values_for_the_application(browser: Browser, client: Client, tenant: Tenant) -> None:
    page = browser.get(address(client)).content.decode()
    assert f"urn:{tenant.pk}.example.test" in page
    assert f"/samlp/{client.client_id}</code>" in page
    assert f"/samlp/metadata/{client.client_id}" in page
    assert "SAML is off" in page


def test_the_certificate_can_be_downloaded(browser: Browser, client: Client, tenant: Tenant) -> None:
    key = current_key(tenant.pk)
    answer = browser.get(address(client), {"certificate": key.kid})
    assert answer.content.decode() == key.certificate
    assert "attachment" in answer.headers["content-disposition"]
    assert browser.get(address(client), {"certificate": "unknown"}).status_code == 404


@pytest.mark.parametrize("way", ["pasted", "uploaded"])
def test_metadata_fills_in_the_form_without_saving(browser: Browser, client: Client, way: str) -> None:
    sent: dict[str, Any] = {"import-text": METADATA.decode()}
    if way == "uploaded":
        sent = {"import-file": SimpleUploadedFile("sp.xml", METADATA)}
    answer = browser.post(address(client), {**sent, "read": "x"})
    form = answer.context["shown"].form
    assert (form["audience"].value(), form["callbacks"].value()) == ("urn:sp", "https://sp.test/acs")
    assert "Nothing is saved yet" in answer.content.decode()
    assert stored(client) is None


@pytest.fixture
def published() -> Iterator[dict[str, Any]]:
    """A server with the metadata of an application. Tests can change `status` and `body`."""
    state: dict[str, Any] = {"status": 200, "body": METADATA}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(state["status"])
            self.send_header("Content-Length", str(len(state["body"])))
            self.end_headers()
            self.wfile.write(state["body"])

        def log_message(self, *args: Any) -> None:
            """Write no log."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state["address"] = f"http://127.0.0.1:{server.server_port}/metadata"
    yield state
    server.shutdown()
    server.server_close()


def test_metadata_can_be_fetched(browser: Browser, client: Client, published: dict[str, Any]) -> None:
    answer = browser.post(address(client), {"import-address": published["address"], "read": "x"})
    assert answer.context["shown"].form["audience"].value() == "urn:sp"


@pytest.mark.parametrize(
    ("status", "body", "says"), [(404, b"", "status 404"), (200, b"<html/>", "type html"), (200, b"<a>" * 900_000, "2097152")]
)
def test_an_error_in_fetched_metadata_is_explained(
    browser: Browser, client: Client, published: dict[str, Any], status: int, body: bytes, says: str
) -> None:
    published.update(status=status, body=body)
    answer = browser.post(address(client), {"import-address": published["address"], "read": "x"})
    assert says in answer.content.decode()


def test_metadata_is_not_fetched_from_private_networks(browser: Browser, client: Client, published: dict[str, Any], settings: Any) -> None:
    settings.OUTBOUND_PRIVATE_NETWORKS = []
    answer = browser.post(address(client), {"import-address": published["address"], "read": "x"})
    assert answer.context["shown"].imported.errors
    assert answer.context["shown"].form["audience"].value() in (None, "")


def test_missing_metadata_is_reported(browser: Browser, client: Client) -> None:
    assert "Paste the metadata" in browser.post(address(client), {"read": "x"}).content.decode()


@pytest.mark.parametrize("name", list(recipes()))
def test_a_recipe_fills_in_the_form_and_shows_the_steps_at_the_application(browser: Browser, client: Client, name: str) -> None:
    answer = browser.post(address(client), {"import-recipe": name, "import-place": "acme", "read": "x"})
    shown = answer.context["shown"]
    callbacks, addon = recipes()[name].filled("acme")
    assert (shown.form["audience"].value(), shown.form["callbacks"].value()) == (addon["audience"], "\n".join(callbacks))
    assert recipes()[name].there[0] in answer.content.decode()


def test_a_recipe_that_requires_a_name_is_refused_if_the_name_is_missing(browser: Browser, client: Client) -> None:
    assert "Slack needs a value" in browser.post(address(client), {"import-recipe": "slack", "read": "x"}).content.decode()


def test_the_assertion_of_a_user_is_shown_before_anything_is_saved(browser: Browser, client: Client, tenant: Tenant) -> None:
    person(people(tenant, client), name="<b>Ada</b>")
    answer = entered(browser, client, "preview", mappings="name = urn:name", **{"preview-user": "ada@example.test"})
    page = answer.content.decode()
    assert "urn:name" in page
    assert "&amp;lt;b&amp;gt;Ada" in page
    assert "<b>Ada" not in page
    assert stored(client) is None
    assert (
        "There is no user with this id or email address."
        in entered(browser, client, "preview", **{"preview-user": "nobody@example.test"}).content.decode()
    )


def test_a_user_of_another_tenant_cannot_be_shown(browser: Browser, client: Client, tenant: Tenant) -> None:
    from identity.services.tenants import create_tenant

    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    person(people(other), email="eve@example.test")
    assert (
        "There is no user with this id or email address."
        in entered(browser, client, "preview", **{"preview-user": "eve@example.test"}).content.decode()
    )


def test_saving_the_form_has_the_same_effect_as_the_management_interface_and_is_audited(
    browser: Browser, client: Client, tenant: Tenant
) -> None:
    answer = entered(
        browser,
        client,
        "save",
        audience="urn:sp",
        callbacks=f"{ACS}\nhttps://sp.example.test/other",
        mappings="email = mail\nname = cn\nname = displayName",
        signs="both",
        logout_callback="https://sp.example.test/slo",
        consumers="1 https://sp.example.test/other",
        lifetimeInSeconds="600",
    )
    assert answer.status_code == 302
    assert stored(client) == {
        "samlp": {
            "audience": "urn:sp",
            "mappings": {"email": "mail", "name": ["cn", "displayName"]},
            "signResponse": True,
            "signAssertion": True,
            "logout": {"callback": "https://sp.example.test/slo", "slo_enabled": True},
            "assertionConsumerServices": [{"index": 1, "url": "https://sp.example.test/other"}],
            "lifetimeInSeconds": 600,
        }
    }
    assert client.redirect_uris == f"{ACS} https://sp.example.test/other"
    assert AuditEntry.objects.filter(tenant_id=tenant.pk, act="SAML settings").exists()
    again = browser.get(address(client)).context["shown"].form
    assert again["mappings"].value() == "email = mail\nname = cn\nname = displayName"
    assert again["signs"].value() == "both"


def test_saving_an_unchanged_form_creates_an_add_on_without_settings(browser: Browser, client: Client) -> None:
    assert entered(browser, client, "save").status_code == 302
    assert stored(client) == {"samlp": {}}
    assert is_on(client.settings)
    assert saml_settings(client.settings) == saml_settings({"addons": {"samlp": {}}})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("callbacks", "javascript:alert(1)", "line 1"),
        ("mappings", "no separator", "field = attribute"),
        ("consumers", "x https://a.test", "index and address"),
        ("consumers", "1 https://a.test/\n1 https://b.test/", "must be unique"),
        ("signingCert", "no certificate", "certificate"),
        ("signingCert", "-----BEGIN PRIVATE KEY-----", "private key"),
        ("logout_callback", "ftp://a.test", "Enter a full address"),
        ("lifetimeInSeconds", "0", "greater than or equal to 1"),
    ],
)
def test_errors_are_shown_at_their_field(browser: Browser, client: Client, name: str, value: str, says: str) -> None:
    answer = entered(browser, client, "save", **{name: value})
    assert answer.status_code == 200
    assert says in " ".join(answer.context["shown"].form.errors[name])
    assert stored(client) is None


def test_switching_saml_off_keeps_other_add_ons(browser: Browser, tenant: Tenant) -> None:
    client = saml_client(tenant, settings={"addons": {"samlp": {"audience": "urn:sp"}, "wsfed": {}}})
    assert entered(browser, client, "off").status_code == 302
    assert stored(client) == {"wsfed": {}}


def test_only_roles_that_can_change_clients_can_open_the_page(client: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    take_from_administrators(monkeypatch, "authapi.change_client")
    browser = browser_of(new_staff(tenant))
    assert browser.get(address(client)).status_code == 403
    assert browser.post(address(client), {"save": "x"}).status_code == 403


def test_a_client_of_another_tenant_has_no_page(client: Client, tenant: Tenant) -> None:
    from identity.services.tenants import create_tenant

    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    assert browser_of(new_staff(other)).get(address(client)).status_code in (302, 403, 404)


def test_a_revoked_client_has_no_page(browser: Browser, client: Client, tenant: Tenant) -> None:
    revoke_client(tenant_id=tenant.pk, client_id=client.client_id)
    assert browser.get(address(client)).status_code == 403


def test_an_unknown_button_is_refused(browser: Browser, client: Client) -> None:
    assert browser.post(address(client), {"other": "x"}).status_code == 404


def test_three_buttons_replace_the_certificate_in_steps(browser: Browser, tenant: Tenant) -> None:
    first = current_key(tenant.pk)

    def press(row: SamlKey, name: str) -> int:
        place = reverse("admin:authapi_samlkey_action", args=(quote(row.pk), name))
        return browser.post(place, {"post": "yes"}).status_code

    assert press(first, "prepare") == 302
    following = prepare_key(tenant.pk)
    assert press(following, "rotate") == 302
    assert current_key(tenant.pk).pk == following.pk
    assert press(first, "remove") == 302
    assert [row.state for row in SamlKey.objects.of(tenant.pk)] == ["current"]
    assert press(following, "rotate") == 403
