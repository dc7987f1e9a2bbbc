"""The options of a connection as form fields: labels, stored values, and secrets, which the form never shows."""

from __future__ import annotations

import json

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from authapi.upstream.social.known_providers import GRAPH_VERSION, KNOWN
from authapi.upstream.strategies import speaker_of
from identity.admin.connection_options import field_name
from identity.models import Connection, Tenant
from identity.models.connections import PASSWORDLESS_STRATEGIES, known_strategies
from identity.options.guides import BRANDS, GUIDES
from identity.options.own_guides import DATABASE
from identity.options.schemas import schema_of
from identity.options.schemas.nodes import Members, Node, Secret
from identity.options.stored_guides import STORED_GUIDES
from identity.passwords import DEFAULT_POLICY, POLICIES
from tests.factories.models.identity import ConnectionFactory
from tests.factories.social_provider import APPLE_KEY, TEAM_ID

SECRET = "the-secret-at-the-provider"
PEM = APPLE_KEY.as_pem(private=True).decode()
ADD = "admin:identity_connection_add"


def page(connection: Connection) -> str:
    return reverse("admin:identity_connection_change", args=(quote(connection.pk),))


def added(browser: Client, tenant: Tenant, strategy: str, **fields: str) -> tuple[Connection | None, str]:
    answer = browser.post(reverse(ADD), {"name": "social", "strategy": strategy, **fields})
    return Connection.objects.of(tenant.pk).filter(name="social").first(), answer.content.decode()


def now(connection: Connection) -> Connection:
    return Connection.objects.of(connection.tenant_id).get(pk=connection.pk)


@pytest.fixture
def github(tenant: Tenant) -> Connection:
    options = {"client_id": "c", "client_secret": SECRET, "scope": ["read:user", "user:email"], "upstream_params": {"a": {"value": "b"}}}
    return ConnectionFactory.create(tenant_id=tenant.pk, name="github", strategy="github", options=options)


def test_every_login_strategy_has_a_guide_that_matches_its_options() -> None:
    spoken = {name for name in known_strategies() if speaker_of(Connection(strategy=name)) is not None}
    assert set(GUIDES) == {DATABASE, *PASSWORDLESS_STRATEGIES, *spoken}
    assert not set(STORED_GUIDES) & spoken
    assert set(BRANDS) <= set(KNOWN) <= set(GUIDES)
    for strategy, guide in {**GUIDES, **STORED_GUIDES}.items():
        for option in guide.fields:
            node: Node = schema_of(strategy, is_database=strategy == DATABASE)
            for part in option.name.split("."):
                assert isinstance(node, Members), option
                node = node.nodes[part]
            assert isinstance(node, Secret) is (option.kind in ("secret", "key")), option


def test_the_choices_of_the_password_policy_are_the_policies_of_the_service() -> None:
    policy = next(option for option in GUIDES[DATABASE].fields if option.name == "passwordPolicy")
    assert tuple(value for value, _ in policy.choices) == ("", *POLICIES)
    assert policy.choices[0][1] == f"Not set: the same as {DEFAULT_POLICY.capitalize()}"


def test_help_texts_contain_the_actual_defaults() -> None:
    for strategy, row in KNOWN.items():
        told = {option.name: option.help_text for option in GUIDES[strategy].fields}
        assert f"Default: {row.scope}." in told["scope"]
    assert f"Default: {GRAPH_VERSION}." in {option.help_text for option in GUIDES["facebook"].fields}


@pytest.mark.parametrize("strategy", GUIDES)
def test_the_form_of_a_new_connection_has_the_fields_of_its_strategy(browser: Client, tenant: Tenant, strategy: str) -> None:
    content = browser.get(reverse(ADD), {"strategy": strategy}).content.decode()
    assert (f"http://{tenant.pk}.example.test/login/callback" in content) is (GUIDES[strategy].callback == "plain")
    assert f'<option value="{strategy}" selected>' in content
    for option in GUIDES[strategy].fields:
        first = {"claims": "-claim-0", "texts": "-name-0", "parameters": "-name-0"}.get(option.kind, "")
        assert f'name="{field_name(option)}{first}"' in content
    assert content.count("(required)") == sum(option.is_required for option in GUIDES[strategy].fields)


def test_the_form_of_a_new_connection_offers_each_provider(browser: Client) -> None:
    content = browser.get(reverse(ADD)).content.decode()
    for strategy in GUIDES:
        assert f'href="?strategy={strategy}"' in content


def test_fields_of_the_form_are_stored_as_options_and_the_secret_is_sealed(browser: Client, tenant: Tenant) -> None:
    row, content = added(
        browser,
        tenant,
        "google-oauth2",
        option_client_id="c",
        option_client_secret=SECRET,
        option_hosted_domains="corp.example.test\n\nother.example.test\n",
        options='{"upstream_params": {"prompt": {"value": "select_account"}}}',
    )
    assert row is not None, content
    domains = ["corp.example.test", "other.example.test"]
    assert row.options == {"client_id": "c", "hosted_domains": domains, "upstream_params": {"prompt": {"value": "select_account"}}}
    assert row.secret_option("client_secret") == SECRET
    assert SECRET not in browser.get(page(row)).content.decode()


def test_an_empty_required_field_is_reported_and_typed_secrets_are_not_shown_again(browser: Client, tenant: Tenant) -> None:
    row, content = added(browser, tenant, "apple", option_client_id="c", option_kid="KEY", option_app_secret=PEM)
    assert row is None
    assert "Enter a value. Users cannot log in without it." in content
    assert PEM.splitlines()[1] not in content
    row, content = added(browser, tenant, "apple", option_client_id="c", option_kid="KEY", option_team_id=TEAM_ID, option_app_secret=PEM)
    assert row is not None, content
    assert (row.secret_option("app_secret") or "").strip() == PEM.strip()
    assert PEM.splitlines()[1] not in browser.get(page(row)).content.decode()


def test_a_refusal_by_the_service_is_shown_at_the_field(browser: Client, tenant: Tenant) -> None:
    row, content = added(browser, tenant, "facebook", option_client_id="c", option_client_secret=SECRET, option_graph_version="latest")
    assert row is None
    assert "graph_version must be a version of the Graph API" in content
    assert "field-option_graph_version" in content.partition("graph_version must be")[0].rpartition("form-row")[2]
    assert SECRET not in content


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([("", "user_id")], "Row 1: enter the expression for user_id."),
        ([("data.id", "")], "Row 1: choose the field of the profile for “data.id”."),
        ([("a", "blocked")], "Row 1: “blocked” is not a field of the profile."),
        ([("b", "name"), ("", ""), ("c", "name")], "Row 2: another row fills name already."),
        ([("a[", "name")], "is not understood"),
        ([("a\x00", "name")], "Remove the control characters."),
    ],
)
def test_an_invalid_map_is_refused_at_its_field(browser: Client, tenant: Tenant, rows: list[tuple[str, str]], told: str) -> None:
    answer = browser.post(reverse(ADD), {"name": "social", "strategy": "oauth2", **GENERIC, **map_rows("fieldsMap", rows)})
    (text,) = answer.context["adminform"].form.errors["option_fieldsMap"]
    assert told in text
    assert not Connection.objects.of(tenant.pk).exists()


GENERIC = {
    "option_client_id": "c",
    "option_authorizationURL": "https://idp.example.test/authorize",
    "option_tokenURL": "https://idp.example.test/token",
    "option_userInfoURL": "https://idp.example.test/me",
    "option_pkce_enabled": "on",
}


def map_rows(option: str, rows: list[tuple[str, str]]) -> dict[str, str]:
    """Return the inputs of the rows of a map. Each row is a claim and the field of the profile that the claim fills."""
    named = enumerate(rows)
    return {f"option_{option}-{key}-{number}": text for number, row in named for key, text in zip(("claim", "field"), row, strict=True)}


def test_the_form_shows_and_saves_a_map_with_one_row_per_claim(browser: Client, tenant: Tenant) -> None:
    rows = [("data.id", "user_id"), ("emails[?ok == `true`] | [0].value", "email")]
    typed = map_rows("fieldsMap", rows)
    row, content = added(browser, tenant, "oauth2", **GENERIC, **typed)
    assert row is not None, content
    assert row.options["fieldsMap"] == {"user_id": "data.id", "email": "emails[?ok == `true`] | [0].value"}
    assert "pkce_enabled" not in row.options
    content = browser.get(page(row)).content.decode()
    assert 'name="option_fieldsMap-claim-0" value="data.id"' in content
    assert '<option value="email" selected>' in content
    browser.post(page(row), {**GENERIC, **typed})
    assert now(row).options == row.options
    emptied = dict.fromkeys(typed, "")
    browser.post(page(row), {name: value for name, value in {**GENERIC, **emptied}.items() if name != "option_pkce_enabled"})
    assert (now(row).options["pkce_enabled"], "fieldsMap" in now(row).options) == (False, False)


def test_an_empty_secret_field_keeps_the_secret_and_a_typed_value_replaces_it(browser: Client, github: Connection) -> None:
    sent = {"option_client_id": "other", "option_scope": "read:user user:email", "options": '{"upstream_params": {"a": {"value": "b"}}}'}
    browser.post(page(github), sent)
    row = now(github)
    assert (row.options["client_id"], row.options["scope"], row.secret_option("client_secret")) == (
        "other",
        ["read:user", "user:email"],
        SECRET,
    )
    assert row.options["upstream_params"] == {"a": {"value": "b"}}
    browser.post(page(github), {**sent, "option_client_secret": "another", "option_scope": ""})
    assert (now(github).secret_option("client_secret"), "scope" in now(github).options) == ("another", False)
    browser.post(page(github), {**sent, "options": '{"client_secret": null}'})
    assert now(github).secret_option("client_secret") is None


def test_a_filled_required_field_cannot_be_emptied(browser: Client, github: Connection) -> None:
    answer = browser.post(page(github), {"option_client_id": ""})
    assert "Users cannot log in without it" in answer.content.decode()
    assert now(github).options["client_id"] == "c"


def test_options_without_a_field_are_edited_as_rows(browser: Client, tenant: Tenant) -> None:
    company = ConnectionFactory.create(tenant_id=tenant.pk, name="company", strategy="ad", options={"agentVersion": "x", "kerberos": True})
    content = browser.get(page(company)).content.decode()
    assert "option_kerberos" in content
    assert 'name="options-name-0" value="agentVersion"' in content
    assert 'name="options-value-0" value="x"' in content
    assert 'value="kerberos"' not in content


@pytest.mark.parametrize("strategy", STORED_GUIDES)
def test_a_strategy_without_logins_shows_which_strategy_to_use_for_logins(browser: Client, strategy: str) -> None:
    content = browser.get(f"{reverse(ADD)}?strategy={strategy}").content.decode()

    assert "Users cannot log in through this connection." in content
    assert "For logins, add a connection of" in content
    assert all(field_name(option) in content for option in STORED_GUIDES[strategy].fields)


def test_the_fields_of_a_strategy_without_logins_are_stored_and_its_tokens_are_sealed(browser: Client, tenant: Tenant) -> None:
    row, _ = added(
        browser, tenant, "google-apps", option_domain="example.com", option_admin_refresh_token="refresh-7", option_api_enable_users="on"
    )

    assert row is not None
    assert row.options == {"domain": "example.com", "api_enable_users": True}
    assert list(row.sealed_options) == ["admin_refresh_token"]


def test_the_password_policy_has_fields_and_saving_keeps_options_without_fields(browser: Client, tenant: Tenant) -> None:
    row, content = added(
        browser,
        tenant,
        "database",
        option_passwordPolicy="excellent",
        option_password_complexity_options__min_length="14",
        option_password_history__enable="on",
        option_password_history__size="3",
        option_brute_force_protection="on",
        options='{"password_dictionary": {"default": true}, "mfa": {"active": true}}',
    )
    assert row is not None, content
    assert row.options["passwordPolicy"] == "excellent"
    assert row.options["password_complexity_options"] == {"min_length": 14}
    assert row.options["password_history"] == {"enable": True, "size": 3}
    before = row.options
    form = browser.get(page(row)).context["adminform"].form
    sent = {name: form[name].value() for name in form.fields}
    sent = {name: value for name, value in sent.items() if value not in (None, False, [])}
    sent["options"] = json.dumps(form.initial["options"])
    assert browser.post(page(row), sent).status_code == 302
    assert now(row).options == before
    browser.post(page(row), {**sent, "option_password_history__size": ""})
    assert now(row).options["password_history"] == {"enable": True}


@pytest.mark.parametrize(
    ("strategy", "fields", "named"),
    [
        ("database", {"option_password_complexity_options__min_length": "0"}, "option_password_complexity_options__min_length"),
        ("database", {"option_passwordPolicy": "strict"}, "option_passwordPolicy"),
        ("email", {"option_totp__length": "4"}, "option_totp__length"),
        ("sms", {"option_totp__time_step": "soon"}, "option_totp__time_step"),
        ("sms", {"option_provider": "pigeon"}, "option_provider"),
        ("oidc", {}, "option_client_id"),
        ("okta", {"option_client_id": "c"}, "option_domain"),
        ("samlp", {"option_signInEndpoint": "javascript:alert(1)"}, "option_signInEndpoint"),
        ("samlp", {"option_metadataXml": "<no metadata"}, "option_metadataXml"),
        ("samlp", {"option_fieldsMap": "email"}, "option_fieldsMap"),
        ("samlp", {"option_fieldsMap-claim-0": "mail", "option_fieldsMap-field-0": ""}, "option_fieldsMap"),
        ("samlp", {"option_idpinitiated__enabled": "on"}, "option_idpinitiated__client_id"),
        ("samlp", {"option_digestAlgorithm": "md5"}, "option_digestAlgorithm"),
        ("database", {"option_validation__username__min": "0"}, "option_validation__username__min"),
        ("pingfederate", {}, "option_pingFederateBaseUrl"),
        ("adfs", {"option_adfs_server": "not a host"}, "option_adfs_server"),
    ],
)
def test_wrong_or_missing_options_are_refused_at_their_field(
    browser: Client, tenant: Tenant, strategy: str, fields: dict[str, str], named: str
) -> None:
    answer = browser.post(reverse(ADD), {"name": "social", "strategy": strategy, **fields})
    assert answer.status_code == 200
    assert list(answer.context["adminform"].form.errors) == [named]
    assert not Connection.objects.of(tenant.pk).exists()


def test_the_displayed_callback_url_of_an_enterprise_provider_contains_the_name_of_the_connection(browser: Client, tenant: Tenant) -> None:
    row = ConnectionFactory.create(tenant_id=tenant.pk, name="corp", strategy="samlp")
    assert f"http://{tenant.pk}.example.test/login/callback?connection=corp" in browser.get(page(row)).content.decode()
