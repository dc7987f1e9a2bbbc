"""Clients in the admin: one form with the rules of the management interface, and a secret that is shown once and stored as a digest."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.sessions.models import Session as BrowserSession
from django.test import Client as Browser
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from authapi.grants.device_code import DeviceCodeGrant
from authapi.models import Client, ClientCredential
from authapi.protocols.oauth.registration.metadata import registration_of
from authapi.services.api_resources import create_api_resource
from authapi.services.client_credentials import NewCredential, create_credential
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client, update_client
from authapi.services.registered_clients import managed_client, register_client
from authapi.services.tenant_settings import update_tenant_settings
from identity.hosts import forget_hosts
from identity.models import AuditEntry, Connection, Tenant
from identity.services.connections import change_enabled_clients
from identity.services.failures import NotFound
from tests.authapi.assertions import public_pem
from tests.authapi.memory import forget_all
from tests.factories.admin import browser_of, new_staff
from tests.factories.authapi import granted_client
from tests.factories.models.authapi import EdgeKeyFactory
from tests.factories.models.identity import CustomDomainFactory

_SECRET = re.compile(r'<code class="command" tabindex="0">([A-Za-z0-9_-]{64})</code>')


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


PASTE = {"tab": "code-for-your-application"}
# The form with every field, after the choice of a kind.
ADD = "/admin/authapi/client/add/?kind=all"


def page(client: Client, name: str = "change") -> str:
    return reverse(f"admin:authapi_client_{name}", args=(quote(client.pk),))


def action(client: Client, name: str) -> str:
    return reverse("admin:authapi_client_action", args=(quote(client.pk), name))


def form_of(browser: Browser, address: str, **changes: Any) -> dict[str, Any]:
    """Return the fields that a browser sends when the user entered only `changes`."""
    form = browser.get(address).context["adminform"].form
    sent = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in {**sent, **changes}.items() if value not in (None, False)}


def shown_secret(content: str) -> str:
    found = _SECRET.search(content)
    assert found is not None
    return found[1]


def test_legacy_features_are_separate_with_a_warning_and_stay_when_other_fields_change(browser: Browser, tenant: Tenant) -> None:
    name = "http://auth0.com/oauth/legacy/grant-type/ro"
    content = browser.get(ADD).content.decode()
    assert "These settings are less secure than those above, and off by default" in content
    assert "Warning: only for applications that cannot be changed." in content
    client, _ = create_client(tenant_id=tenant.pk, name="Old", grant_types=["authorization_code"])
    sent = form_of(browser, page(client), legacy_grants=[name], cross_origin_authentication="on", allowed_clients="abc")
    assert browser.post(page(client), sent).status_code == 302
    client.refresh_from_db()
    assert client.grant_types == ["authorization_code", name]
    assert (client.settings["cross_origin_authentication"], client.settings["allowed_clients"]) == (True, ["abc"])
    assert browser.post(page(client), form_of(browser, page(client), name="Older")).status_code == 302
    client.refresh_from_db()
    assert (client.name, client.grant_types) == ("Older", ["authorization_code", name])


def test_a_client_is_created_with_the_entered_values(browser: Browser, tenant: Tenant) -> None:
    sent = form_of(
        browser,
        ADD,
        name="Shop",
        app_type="regular_web",
        callbacks="https://shop.example.test/callback\n\n https://shop.example.test/other ",
        allowed_logout_urls="https://shop.example.test/",
        grant_types=["authorization_code", "refresh_token"],
        rotation_type="rotating",
        expiration_type="expiring",
        token_lifetime="3600",
        backchannel_logout_urls="https://shop.example.test/logout",
        **{"client_metadata-name-0": "team", "client_metadata-value-0": "web"},
    )

    answer = browser.post(ADD, sent)

    client = Client.objects.of(tenant.pk).get(name="Shop")
    assert answer.status_code == 200
    assert client.secret_matches(shown_secret(answer.content.decode()))
    assert client.redirect_uris.split() == ["https://shop.example.test/callback", "https://shop.example.test/other"]
    assert client.grant_types == ["authorization_code", "refresh_token"]
    assert client.settings["refresh_token"]["token_lifetime"] == 3600
    assert client.settings["oidc_logout"]["backchannel_logout_urls"] == ["https://shop.example.test/logout"]
    assert client.metadata == {"team": "web"}


def test_a_new_secret_is_in_one_answer_and_not_stored_in_plain_text(browser: Browser, tenant: Tenant) -> None:
    answer = browser.post(ADD, form_of(browser, ADD, name="Robot", grant_types=["client_credentials"]))
    secret = shown_secret(answer.content.decode())
    client = Client.objects.of(tenant.pk).get(name="Robot")

    assert "no-store" in answer.headers["Cache-Control"]
    assert secret not in str(answer.cookies) + str(browser.cookies)
    assert all(secret not in str(kept.get_decoded()) for kept in BrowserSession.objects.all())
    for address in (page(client), reverse("admin:authapi_client_changelist"), page(client, "history")):
        assert secret not in browser.get(address).content.decode(), address
    assert all(secret not in str(entry.__dict__) for entry in AuditEntry.objects.filter(tenant_id=tenant.pk))


def test_a_rotated_secret_is_shown_once_after_a_confirmation_and_replaces_the_old_secret(browser: Browser, tenant: Tenant) -> None:
    registered = granted_client(tenant)
    question = browser.get(action(registered.client, "rotate-secret"))
    assert "become invalid at once" in question.content.decode()

    answer = browser.post(action(registered.client, "rotate-secret"))

    secret = shown_secret(answer.content.decode())
    client = Client.objects.of(tenant.pk).get(pk=registered.client.pk)
    assert client.secret_matches(secret)
    assert not client.secret_matches(registered.secret)
    assert secret not in browser.get(page(client)).content.decode()
    assert AuditEntry.objects.filter(object_id=str(client.pk), act="Create new secret").exists()


def test_a_public_client_gets_no_secret_and_no_button_for_a_secret(browser: Browser, tenant: Tenant) -> None:
    sent = form_of(browser, ADD, name="App", app_type="spa", token_endpoint_auth_method="none", grant_types=["authorization_code"])

    answer = browser.post(ADD, sent)

    client = Client.objects.of(tenant.pk).get(name="App")
    assert answer.status_code == 302
    assert browser.post(action(client, "rotate-secret")).status_code == 403
    assert client.secret_digest == ""


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"callbacks": "https://a.example.test/\njavascript:alert(1)"}, "callbacks"),
        ({"callbacks": "https://a.example.test/#part"}, "callbacks"),
        ({"name": "<script>"}, "name"),
        ({"logo_uri": "nowhere"}, "logo_uri"),
        ({"grant_types": ["everything"]}, "grant_types"),
        ({"leeway": "-1"}, "leeway"),
        ({"backchannel_logout_urls": "data:text/html,x"}, "backchannel_logout_urls"),
        ({"client_metadata-value-0": "a"}, "client_metadata"),
        ({"token_endpoint_auth_method": "none", "grant_types": ["client_credentials"]}, "grant_types"),
        ({"is_first_party": "", "organization_usage": "allow"}, "is_first_party"),
    ],
)
def test_errors_of_the_interface_are_shown_at_their_field(browser: Browser, tenant: Tenant, changes: dict[str, Any], field: str) -> None:
    answer = browser.post(ADD, form_of(browser, ADD, **{"name": "Refused", **changes}))

    assert answer.status_code == 200
    assert list(answer.context["adminform"].form.errors) == [field]
    assert not Client.objects.of(tenant.pk).exists()


def test_a_save_changes_only_the_changed_fields(browser: Browser, tenant: Tenant) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="Shop", redirect_uris="https://shop.example.test/callback")
    policies = {"rotation_type": "rotating", "expiration_type": "expiring", "policies": [{"audience": "https://a.test", "scope": ["a"]}]}
    update_client(tenant_id=tenant.pk, client_id=client.client_id, changes={"settings": {"refresh_token": policies, "sso_disabled": True}})
    client.refresh_from_db()
    version = client.auth_version

    answer = browser.post(page(client), form_of(browser, page(client), name="Store", leeway="30"))

    client.refresh_from_db()
    assert answer.status_code == 302
    assert client.name == "Store"
    assert client.settings["refresh_token"] == {**policies, "leeway": 30}
    assert client.settings["sso_disabled"] is True
    assert client.redirect_uris == "https://shop.example.test/callback"
    assert client.auth_version == version


def test_saving_keeps_a_grant_type_that_the_form_does_not_offer(browser: Browser, tenant: Tenant) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="Old", grant_types=["authorization_code", "urn:example:grant"])

    browser.post(page(client), form_of(browser, page(client), description="Saved"))

    client.refresh_from_db()
    assert (client.settings["description"], client.grant_types) == ("Saved", ["authorization_code", "urn:example:grant"])


def test_a_revoked_client_can_be_viewed_but_not_changed(browser: Browser, tenant: Tenant) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="Gone")
    assert browser.post(action(client, "revoke")).status_code == 302

    assert browser.post(page(client), {"name": "Back"}).status_code == 403
    assert browser.post(action(client, "rotate-secret")).status_code == 403
    client.refresh_from_db()
    assert client.name == "Gone"


def test_snippets_contain_the_domain_and_the_id_but_no_secret(browser: Browser, tenant: Tenant) -> None:
    web, secret = create_client(
        tenant_id=tenant.pk, name="Web", grant_types=["authorization_code"], redirect_uris="https://web.example.test/callback"
    )
    robot = granted_client(tenant, token_endpoint_auth_method="client_secret_basic")

    shown = browser.get(page(web), PASTE).content.decode()
    assert web.client_id in shown
    assert f"http://{tenant.pk}.example.test/.well-known/openid-configuration" in shown
    assert "https://web.example.test/callback" in shown
    assert secret not in shown
    machine = "".join(snippet.text for snippet in browser.get(page(robot.client), PASTE).context["snippets"])
    assert f"http://{tenant.pk}.example.test/api/v2/" in machine
    assert f'--user "{robot.client_id}:${{CLIENT_SECRET:?Set CLIENT_SECRET to the secret of this client}}"' in machine
    assert "ClientSecretBasic(process.env.CLIENT_SECRET)" in machine
    assert robot.secret not in machine


def test_snippets_contain_the_host_of_the_request_if_it_belongs_to_the_tenant(browser: Browser, tenant: Tenant, settings: Settings) -> None:
    robot = granted_client(tenant)
    settings.LOCALHOST_TENANT = tenant.pk
    forget_hosts()

    for host in ("localhost:8300", "127.0.0.1:8300"):
        shell = browser.get(page(robot.client), PASTE, headers={"host": host}).context["snippets"][0].text
        assert f'"http://{host}/oauth/token"' in shell
        assert f"audience=http://{host}/api/v2/" in shell

    settings.LOCALHOST_TENANT = "another"
    forget_hosts()
    shell = browser.get(page(robot.client), PASTE, headers={"host": "localhost:8300"}).context["snippets"][0].text
    assert f'"http://{tenant.pk}.example.test:8300/oauth/token"' in shell
    forget_hosts()


def test_a_client_on_a_device_has_snippets_of_the_device_flow(browser: Browser, tenant: Tenant) -> None:
    client, _ = create_client(
        tenant_id=tenant.pk, name="TV", grant_types=[DeviceCodeGrant.name], token_endpoint_auth_method=Client.AuthMethod.NONE
    )
    (snippet,) = browser.get(page(client), PASTE).context["snippets"]
    assert f"http://{tenant.pk}.example.test/oauth/device/code" in snippet.text
    assert "CLIENT_SECRET" not in snippet.text


@pytest.mark.parametrize("app_type", ["regular_web", "spa", "native"])
def test_the_example_code_of_a_client_requests_tokens_for_the_api_of_its_client_grant(
    browser: Browser, tenant: Tenant, app_type: str
) -> None:
    client, _ = create_client(
        tenant_id=tenant.pk,
        name="App",
        app_type=app_type,
        grant_types=["authorization_code"],
        redirect_uris="https://app.example.test/callback",
    )
    api = create_api_resource(tenant_id=tenant.pk, identifier="https://shop.example.test/api", name="Shop")

    def programs() -> list[str]:
        *found, shell = browser.get(page(client), PASTE).context["snippets"]
        assert "curl" in shell.title
        return [snippet.text for snippet in found]

    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=api, subject_type="client")
    assert [text for text in programs() if "audience" in text] == []
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=api, subject_type="user")
    assert [text for text in programs() if text.count("https://shop.example.test/api") != 1] == []


def test_staff_see_that_an_application_registered_itself_and_can_stop_its_self_management(browser: Browser, tenant: Tenant) -> None:
    made = register_client(tenant_id=tenant.pk, registration=registration_of({"redirect_uris": ["https://app.example.test/back"]}))
    assert "Registered itself" in browser.get(page(made.client)).content.decode()
    browser.post(action(made.client, "end-registration"), {"confirmed": "1"})
    with pytest.raises(NotFound):
        managed_client(tenant_id=tenant.pk, client_id=made.client.client_id, token=made.token)
    assert "Revoke the registration token" not in browser.get(page(made.client)).content.decode()


KEY_METHOD = {"private_key_jwt": {"credentials": [{"id": "cred_1"}]}}
CERTIFICATE_METHOD = {"self_signed_tls_client_auth": {"credentials": [{"id": "cred_1"}]}}


@pytest.mark.parametrize(
    "settings",
    [
        {"require_pushed_authorization_requests": True},
        {"require_proof_of_possession": True},
        {"signed_request_object": {"required": True, "credentials": [{"id": "cred_1"}]}},
        {"compliance_level": "fapi2_sp_pkj_mtls", "client_authentication_methods": KEY_METHOD},
    ],
)
def test_a_client_with_further_requirements_gets_only_the_snippet_that_reads_the_metadata(
    browser: Browser, tenant: Tenant, settings: dict[str, Any]
) -> None:
    client, _ = create_client(
        tenant_id=tenant.pk, name="Bank", grant_types=["authorization_code"], redirect_uris="https://bank.example.test/callback"
    )
    Client.objects.of(tenant.pk).filter(pk=client.pk).update(settings=settings)

    shown = browser.get(page(client), PASTE)

    assert [snippet.title for snippet in shown.context["snippets"]] == ["Shell, with curl"]
    assert "The manual has example programs" in shown.content.decode()


def test_the_page_of_a_machine_client_has_programs_even_if_the_tenant_requires_pushed_requests(browser: Browser, tenant: Tenant) -> None:
    robot = granted_client(tenant)
    update_tenant_settings(tenant_id=tenant.pk, changes={"require_pushed_authorization_requests": True})
    forget_all()

    shown = browser.get(page(robot.client), PASTE)

    assert len(shown.context["snippets"]) == 3
    assert "The manual has example programs" not in shown.content.decode()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"require_proof_of_possession": True}, "The manual has example programs"),
        ({"client_authentication_methods": CERTIFICATE_METHOD}, "no host of the tenant requests certificates"),
    ],
)
def test_the_page_of_a_machine_client_without_programs_gives_the_reason(
    browser: Browser, tenant: Tenant, settings: dict[str, Any], reason: str
) -> None:
    robot = granted_client(tenant)
    Client.objects.of(tenant.pk).filter(pk=robot.client.pk).update(settings=settings)

    shown = browser.get(page(robot.client), PASTE)

    assert shown.context["snippets"] == []
    assert reason in shown.content.decode()


def test_a_client_with_a_certificate_gets_snippets_only_if_a_tls_proxy_forwards_certificates(browser: Browser, tenant: Tenant) -> None:
    robot = granted_client(tenant)
    Client.objects.of(tenant.pk).filter(pk=robot.client.pk).update(settings={"client_authentication_methods": CERTIFICATE_METHOD})
    shown = browser.get(page(robot.client), PASTE)
    assert shown.context["snippets"] == []

    domain = CustomDomainFactory.create(tenant=tenant, host="login.example.test", verified_at=timezone.now())
    EdgeKeyFactory.create(domain=domain)
    shown = browser.get(page(robot.client), PASTE)
    (snippet,) = shown.context["snippets"]
    assert '"http://mtls.login.example.test/oauth/token"' in snippet.text
    assert '--cert "${CLIENT_CERTIFICATE_FILE:?' in snippet.text
    assert "CLIENT_SECRET" not in shown.content.decode()


def test_snippets_contain_no_url_that_could_end_a_string_literal(browser: Browser, tenant: Tenant) -> None:
    client, _ = create_client(
        tenant_id=tenant.pk, name="Odd", grant_types=["authorization_code"], redirect_uris='https://web.example.test/"+evil()+"'
    )

    snippets = "".join(snippet.text for snippet in browser.get(page(client), PASTE).context["snippets"])

    assert "evil" not in snippets
    assert "https://app.example.com/callback" in snippets


@pytest.mark.parametrize("port", ["99999", "abc", "0"])
def test_a_callback_with_an_invalid_port_is_not_put_into_snippets(browser: Browser, tenant: Tenant, port: str) -> None:
    client, _ = create_client(
        tenant_id=tenant.pk, name="Odd", grant_types=["authorization_code"], redirect_uris=f"http://localhost:{port}/callback"
    )
    answer = browser.get(page(client), PASTE)
    assert answer.status_code == 200
    assert all(f":{port}/" not in snippet.text for snippet in answer.context["snippets"])


@pytest.mark.parametrize(
    ("kind", "callback", "parts"),
    [
        ("regular_web", "http://localhost:3000/callback", ["Open http://localhost:3000/", '("127.0.0.1", 3000)']),
        ("regular_web", "http://localhost:3000/", ["Open http://localhost:3000/login", '{"/login": self.log_in']),
        ("regular_web", "https://*.example.test/back\nhttps://app.example.test/back", ['"https://app.example.test/back"', "port 3000"]),
        ("spa", "http://localhost:4000/a/back", ["Save as a/back/index.html", "http.server 4000", "Open http://localhost:4000/a/back"]),
        ("spa", "http://localhost:4000/", ["Save as index.html"]),
        ("spa", "http://localhost:4000/app.html", ["Save as app.html"]),
        ("native", "com.example.app://callback", ["Add http://127.0.0.1/callback to the callbacks of the client first."]),
        ("native", "http://localhost:5000/back", ['("127.0.0.1", 5000)', "http://localhost:{server.server_port}/back"]),
    ],
)
def test_the_first_snippet_serves_the_callback_of_the_client(
    browser: Browser, tenant: Tenant, kind: str, callback: str, parts: list[str]
) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="App", redirect_uris=callback, app_type=kind, grant_types=["authorization_code"])

    first = browser.get(page(client), PASTE).context["snippets"][0].text

    assert [part for part in parts if part not in first] == []


def test_a_client_without_a_connection_gets_a_link_to_add_a_connection(
    browser: Browser, tenant: Tenant, database_connection: Connection
) -> None:
    client, _ = create_client(
        tenant_id=tenant.pk, name="App", redirect_uris="https://app.example.test/back", grant_types=["authorization_code"]
    )
    add = reverse("admin:authapi_client_connections", args=(client.pk,))
    assert "No connection yet" in (shown := browser.get(page(client), PASTE).content.decode())
    assert f'href="{add}">Add connection' in shown

    change_enabled_clients(tenant_id=tenant.pk, connection_id=database_connection.pk, added=[client.client_id], removed=[])

    assert "No connection yet" not in browser.get(page(client), PASTE).content.decode()


@pytest.mark.parametrize("role", ["auditor", "provisioning_operator"])
def test_only_administrators_create_and_change_clients(tenant: Tenant, role: str) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="Shop")
    browser = browser_of(new_staff(tenant, role))

    assert browser.get(ADD).status_code == 403
    assert browser.post(page(client), {"name": "Taken"}).status_code == 403
    assert browser.post(action(client, "rotate-secret")).status_code == 403
    assert browser.get(page(client)).status_code == (200 if role == "auditor" else 403)


def test_the_form_sets_security_requirements_of_a_client(browser: Browser, tenant: Tenant) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="Bank", redirect_uris="https://bank.example.test/callback")
    new = NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public_pem("first"), algorithm="PS256", name="Requests")
    key = create_credential(tenant_id=tenant.pk, client_id=client.client_id, new=new)
    switches = {"require_pushed_authorization_requests": "on", "require_proof_of_possession": "on", "signed_request_required": "on"}
    entered = form_of(browser, page(client), **switches, par_request_expiry="120", jwks_uri="https://bank.example.test/keys")

    assert browser.post(page(client), {**entered, "request_keys": [key.pk]}).status_code == 302

    client.refresh_from_db()
    assert {name: client.settings[name] for name in ("par_request_expiry", "jwks_uri")} == {
        "par_request_expiry": 120,
        "jwks_uri": "https://bank.example.test/keys",
    }
    assert client.settings["require_pushed_authorization_requests"] is client.settings["require_proof_of_possession"] is True
    assert client.settings["signed_request_object"] == {"required": True, "credentials": [{"id": key.pk}]}
    form = browser.get(page(client)).context["adminform"].form
    assert (form["request_keys"].value(), form["signed_request_required"].value()) == ([key.pk], True)


def test_the_form_explains_why_a_requirement_cannot_be_set(browser: Browser, tenant: Tenant) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="Bank")
    for changes, text in (
        ({"signed_request_required": "on"}, "Name a key or a jwks_uri first"),
        ({"require_pushed_authorization_requests": "on", "token_endpoint_auth_method": "none", "grant_types": []}, "cannot push requests"),
        ({"par_request_expiry": "5"}, "greater than or equal to 10"),
    ):
        answer = browser.post(page(client), form_of(browser, page(client), **changes))
        assert (answer.status_code, text in answer.content.decode()) == (200, True), text


def test_the_form_links_a_client_to_an_api(browser: Browser, tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier="urn:orders")
    client, _ = create_client(tenant_id=tenant.pk, name="Orders", redirect_uris="https://orders.example.test/callback")
    entered = {"app_type": "resource_server", "resource_server_identifier": "urn:orders", "exchange_kinds": ["on_behalf_of_token_exchange"]}
    entered |= {"frontchannel_logout_uri": "https://orders.example.test/out"}

    assert browser.post(page(client), {**form_of(browser, page(client)), **entered}).status_code == 302

    client.refresh_from_db()
    assert client.settings["token_exchange"] == {"allow_any_profile_of_type": ["on_behalf_of_token_exchange"]}
    assert client.settings["resource_server_identifier"] == "urn:orders"
    assert client.settings["frontchannel_logout_uri"] == "https://orders.example.test/out"
    form = browser.get(page(client)).context["adminform"].form
    assert (form["exchange_kinds"].value(), form["resource_server_identifier"].value()) == (["on_behalf_of_token_exchange"], "urn:orders")
    for changes, text in (
        ({"resource_server_identifier": "urn:nowhere"}, "The resource server does not exist."),
        ({"frontchannel_logout_uri": "https://evil.example.test/out"}, "must be the same as in a callback"),
    ):
        answer = browser.post(page(client), {**form_of(browser, page(client)), **changes})
        assert (answer.status_code, text in answer.content.decode()) == (200, True), text
    assert (
        browser.post(page(client), form_of(browser, page(client), resource_server_identifier="", frontchannel_logout_uri="")).status_code
        == 302
    )
    client.refresh_from_db()
    assert not {"resource_server_identifier", "frontchannel_logout_uri"} & {name for name, value in client.settings.items() if value}
