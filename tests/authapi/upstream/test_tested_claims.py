"""The claims that *Test connection* stores, and the preview of a profile: a login with the same claims stores the same profile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client as Browser
from pytest_django.fixtures import Settings

from authapi.admin.sources.sample_form import sample_form
from authapi.admin.sources.shown_claims import shown_claims
from authapi.models import ConnectionTest
from authapi.upstream.connection_tests import begin_test
from authapi.upstream.mapping_preview import Preview, previewed
from authapi.upstream.read_claims import unstored_claims
from authapi.upstream.saml.claims import EMAIL_FORMAT
from authapi.upstream.saml.showing import shown_message
from authapi.upstream.sample_claims import Sample, newest_sample
from authapi.upstream.sent_claims import is_hidden_attribute, kept_claims
from identity.models import Connection, Tenant, User
from identity.services.connections import create_connection
from identity.services.users import create_user
from tests.factories.provider import Login, Provider, login_at
from tests.factories.saml_login import SamlLogin, fields_of, saml_login
from tests.factories.saml_provider import POST
from tests.factories.social_provider import SocialLogin, social_login, social_provider
from tests.factories.wsfed_provider import CLAIMS, Token, federation_metadata

FIELDS = (
    *("email", "email_verified", "name", "nickname", "given_name", "family_name", "picture"),
    *("phone_number", "phone_verified"),
)


def begun(browser: Browser, connection: Connection) -> Any:
    """Start a test and go to the provider."""
    address = begin_test(connection, base=f"http://{connection.tenant_id}.example.test")
    return browser.get(address.partition(".example.test")[2])


def after_test(login: Login) -> Sample:
    """Run a test at a provider of OpenID Connect. Return the claims that the preview uses."""
    sent = dict(parse_qsl(urlsplit(begun(login.browser, login.connection)["Location"]).query))
    login.provider.nonce = sent.get("nonce", "")
    if isinstance(login, SocialLogin):
        login.provider.asked = sent
    assert b"The test worked" in login.come_back(sent).content
    return newest_sample(login.connection)


def after_saml_test(login: SamlLogin, **changes: Any) -> Sample:
    fields = fields_of(begun(login.browser, login.connection))
    answer = login.answer(login.request_in(fields["SAMLRequest"]), **changes)
    assert b"The test worked" in login.come_back(answer, fields["RelayState"]).content
    return newest_sample(login.connection)


def assert_login_stored(preview: Preview, connection: Connection) -> None:
    """Assert that a login has created a user with the profile of the preview.

    The expected values come from a second user, which this function creates from the preview at another connection.
    """
    found = User.objects.of(connection.tenant_id).get()
    other = create_connection(tenant_id=connection.tenant_id, name="other", strategy=connection.strategy)
    expected = create_user(tenant_id=connection.tenant_id, connection=other, identifier="other", **preview.profile)
    assert found.user_id.rpartition("|")[2] == preview.subject
    assert {field: getattr(found, field) for field in FIELDS} == {field: getattr(expected, field) for field in FIELDS}


def mapping(**attributes: str) -> dict[str, Any]:
    return {"mapping_mode": "use_map", "attributes": attributes}


def test_numbers_booleans_and_nested_values_keep_their_types(login: Login) -> None:
    claims = {"level": 3, "share": 0.5, "is_staff": True, "flag": "true", "none": [], "roles": ["a"], "address": {"lines": ["1", 2]}}
    login.provider.claims = claims
    kept = after_test(login).parts["id_token"]
    assert {name: kept[name] for name in claims} == claims
    assert [type(kept[name]) for name in claims] == [type(value) for value in claims.values()]


def test_a_claim_that_is_not_a_text_fills_no_template_in_the_preview(tenant: Tenant, provider: Provider) -> None:
    login = login_at(tenant, provider, attribute_map=mapping(nickname="${context.tokenset.level}", name="${context.tokenset.flag}"))
    provider.claims = {"level": 3, "flag": "true"}
    profile = previewed(login.connection, after_test(login).parts).profile
    assert profile["name"] == "true"
    assert "nickname" not in profile


def test_userinfo_does_not_verify_the_address_of_the_id_token(login: Login) -> None:
    login.provider.changes = {"email_verified": None, "name": None}
    login.provider.userinfo = {"email": "eve@example.test", "email_verified": True, "name": "Ada"}
    sample = after_test(login)
    assert "email_verified" not in sample.parts["id_token"]
    assert sample.parts["userinfo"]["email_verified"] is True
    assert previewed(login.connection, sample.parts).profile == {"email": "ada@corp.example.test", "name": "Ada"}


def test_userinfo_that_a_login_does_not_read_fills_no_template(tenant: Tenant, provider: Provider) -> None:
    login = login_at(tenant, provider, attribute_map=mapping(nickname="${context.userinfo.nick}"))
    provider.userinfo = {"nick": "ada"}
    assert "userinfo" not in after_test(login).parts
    told = {"sub": "1", "email": "ada@example.test", "name": "Ada"}
    assert "nickname" not in previewed(login.connection, {"id_token": told, "userinfo": {"sub": "1", "nick": "ada"}}).profile


def test_a_custom_claim_of_google_fills_a_template(tenant: Tenant, settings: Settings) -> None:
    with social_provider("google-oauth2") as provider:
        settings.PROVIDER_ADDRESSES = {"google-oauth2": provider.addresses}
        login = social_login(tenant, provider, attribute_map=mapping(nickname="${context.tokenset.team}"))
        provider.claims = {"team": "engines"}
        sample = after_test(login)
    assert sample.parts["id_token"]["team"] == "engines"
    assert previewed(login.connection, sample.parts).profile["nickname"] == "engines"


def test_the_attribute_that_identifies_users_is_not_shown_as_the_name_id(tenant: Tenant) -> None:
    login = saml_login(tenant, protocolBinding=POST, user_id_attribute="uid")
    sample = after_saml_test(login, name_id="another", attributes={"uid": ["ada"], "cn": ["Ada", "Other"]})
    assert (sample.parts["name_id"], sample.parts["attributes"]) == ("another", {"uid": ["ada"], "cn": ["Ada", "Other"]})
    assert previewed(login.connection, sample.parts).subject == "ada"


def test_the_format_of_the_name_id_decides_whether_it_becomes_the_email_address(tenant: Tenant) -> None:
    login = saml_login(tenant, protocolBinding=POST)
    sample = after_saml_test(login, name_id="ada@example.test", name_id_format=EMAIL_FORMAT, attributes={})
    assert previewed(login.connection, sample.parts) == Preview("ada@example.test", {"email": "ada@example.test"})


@pytest.mark.parametrize(
    ("options", "changes", "userinfo"),
    [
        ({}, {"level": 3, "phone_number": "+431234567"}, {}),
        ({"attribute_map": mapping(name="${context.tokenset.first} ${context.tokenset.last}")}, {"first": "Ada", "last": "L."}, {}),
        ({"attribute_map": mapping(name="${context.tokenset.first}")}, {"first": 7}, {}),
        ({"attribute_map": mapping(email="${context.userinfo.mail}")}, {"email": None}, {"mail": "a@example.test", "email_verified": True}),
        ({}, {"email_verified": None, "name": None}, {"email": "ada@corp.example.test", "email_verified": True, "name": "Ada"}),
        ({}, {"email": None, "email_verified": "true"}, {"email": "ada@corp.example.test"}),
        ({"set_user_root_attributes": "never_on_login"}, {}, {}),
    ],
)
def test_a_login_stores_the_profile_of_the_preview(
    tenant: Tenant, provider: Provider, options: dict[str, Any], changes: dict[str, Any], userinfo: dict[str, Any]
) -> None:
    login = login_at(tenant, provider, **options)
    provider.changes, provider.userinfo = changes, userinfo
    preview = previewed(login.connection, after_test(login).parts)
    login.log_in()
    assert_login_stored(preview, login.connection)


@pytest.mark.parametrize("strategy", ["google-oauth2", "windowslive", "waad", "apple", "linkedin"])
def test_a_login_at_a_social_provider_stores_the_profile_of_the_preview(tenant: Tenant, settings: Settings, strategy: str) -> None:
    with social_provider(strategy) as provider:
        settings.PROVIDER_ADDRESSES = {strategy: provider.addresses}
        login = social_login(tenant, provider)
        preview = previewed(login.connection, after_test(login).parts)
        login.log_in()
    assert_login_stored(preview, login.connection)


def test_the_name_that_a_browser_posts_is_not_shown_as_a_claim_of_the_id_token(tenant: Tenant, settings: Settings) -> None:
    with social_provider("apple") as provider:
        settings.PROVIDER_ADDRESSES = {"apple": provider.addresses}
        login = social_login(tenant, provider)
        address = dict(parse_qsl(urlsplit(begun(login.browser, login.connection)["Location"]).query))
        provider.nonce, provider.asked = address["nonce"], address
        login.come_back(address, user='{"name": {"firstName": "Ada", "lastName": "Lovelace"}, "email": "eve@example.test"}')
        parts = newest_sample(login.connection).parts
    assert parts["form"] == {"given_name": "Ada", "family_name": "Lovelace", "name": "Ada Lovelace"}
    assert "name" not in parts["id_token"]
    assert [title for title, _ in shown_claims(parts)] == ["ID token", "Form sent by the browser"]
    assert previewed(login.connection, parts).profile["name"] == "Ada Lovelace"
    form = sample_form(login.connection, parts, {"id_token": '{"sub": "1"}', "form": '{"name": "Ada", "sub": "2"}'})
    assert form.is_valid()
    assert previewed(login.connection, form.parts) == Preview("1", {"name": "Ada"})


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ({}, {}),
        ({"user_id_attribute": "uid"}, {"name_id": "another", "attributes": {"uid": ["ada"]}}),
        ({"fieldsMap": {"name": "cn"}}, {"attributes": {"cn": [" ", "Ada ", "Other"], "mail": ["ada@example.test"]}}),
        ({}, {"name_id": "ada@example.test", "name_id_format": EMAIL_FORMAT, "attributes": {"email_verified": ["TRUE"]}}),
    ],
)
def test_a_login_over_saml_stores_the_profile_of_the_preview(tenant: Tenant, options: dict[str, Any], changes: dict[str, Any]) -> None:
    login = saml_login(tenant, protocolBinding=POST, **options)
    preview = previewed(login.connection, after_saml_test(login, **changes).parts)
    fields = fields_of(login.go())
    login.told(login.come_back(login.answer(login.request_in(fields["SAMLRequest"]), **changes), fields["RelayState"]))
    assert_login_stored(preview, login.connection)


def test_a_login_over_ws_federation_stores_the_profile_of_the_preview(tenant: Tenant) -> None:
    client = saml_login(tenant).client
    options = {"fedMetadataXml": federation_metadata().decode(), "user_id_attribute": f"{CLAIMS}/upn"}
    connection = create_connection(tenant_id=tenant.pk, name="adfs", strategy="adfs", options=options, enabled_clients=[client.client_id])
    login = SamlLogin(tenant, client, connection)
    result = Token(realm=login.entity_id).result()
    for elsewhere in (begun(login.browser, connection), login.go()):
        sent = dict(parse_qsl(urlsplit(elsewhere["Location"]).query))
        answer = login.browser.post("/login/callback", {"wresult": result, "wctx": sent["wctx"]})
    login.told(answer)
    sample = newest_sample(connection)
    assert sample.parts["name_id"] == "CORP\\ada"
    assert_login_stored(previewed(connection, sample.parts), connection)


def test_a_test_stores_neither_the_id_token_nor_secrets(login: Login) -> None:
    login.provider.claims = {"mail_token": "never", "inner": {"client_secret": "never"}, "team": "engines"}
    tokens: list[str] = []
    signed = login.provider.id_token

    def noted() -> str:
        tokens.append(signed())
        return tokens[-1]

    login.provider.id_token = noted  # type: ignore[method-assign]  # the test compares the token
    sample = after_test(login)
    assert sample.parts["id_token"]["team"] == "engines"
    assert {"mail_token", "inner", "nonce"} <= set(sample.left_out)
    stored = str(ConnectionTest.objects.of(login.tenant.pk).get().result)
    assert not [secret for secret in (*tokens, login.provider.nonce, "never") if secret in stored]


TOKEN = "eyJhbGciOiJub25lIn0.e30.c2ln"


def test_a_test_over_saml_stores_secrets_neither_in_its_claims_nor_in_its_message(tenant: Tenant) -> None:
    login = saml_login(tenant, protocolBinding=POST)
    after_saml_test(login, attributes={"user_password": ["never-stored"], "note": [TOKEN], "cn": ["Ada"]})
    row = ConnectionTest.objects.of(tenant.pk).get()
    assert "never-stored" not in f"{row.result}{row.message}"
    assert TOKEN not in f"{row.result}{row.message}"
    assert ["user_password" in row.message, "Ada" in row.message] == [True, True]


def test_a_test_over_ws_federation_stores_no_secrets_in_its_message() -> None:
    namespace = 'AttributeNamespace="http://x.test/claims" AttributeName="user_password"'
    value = "<AttributeValue>never-stored</AttributeValue>"
    raw = f'<Attribute xmlns="urn:oasis:names:tc:SAML:1.0:assertion" {namespace}>{value}</Attribute>'.encode()
    shown = shown_message(raw, hides=partial(is_hidden_attribute, read=()))
    assert ("never-stored" in shown, "user_password" in shown) == (False, True)
    mapped = shown_message(raw, hides=partial(is_hidden_attribute, read=("http://x.test/claims/user_password",)))
    assert "never-stored" in mapped


def test_a_token_that_the_map_copies_into_the_profile_is_not_stored_with_the_test(tenant: Tenant, provider: Provider) -> None:
    login = login_at(tenant, provider, attribute_map=mapping(nickname="${context.tokenset.note}"))
    provider.claims = {"note": TOKEN}
    after_test(login)
    assert TOKEN not in str(ConnectionTest.objects.of(tenant.pk).get().result)


@pytest.mark.parametrize(
    "value",
    ["x" * 5_000, "nul\x00", 2**64, "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.", [["eyJhbGciOiJub25lIn0.e30.c2ln"]], ["x"] * 3_000],
    ids=["long", "NUL", "number beyond 64 bits", "token", "token in a list", "long list"],
)
def test_a_claim_is_stored_whole_or_not_at_all(value: Any) -> None:
    kept = kept_claims({"id_token": {"sub": "1", "odd": value}})
    assert (kept.parts, kept.left_out) == ({"id_token": {"sub": "1"}}, ["odd"])


def test_the_size_and_the_number_of_the_claims_of_one_test_are_limited() -> None:
    large: Mapping[str, Any] = {f"c{number}": "x" * 4_000 for number in range(40)}
    kept = kept_claims({"id_token": large, "userinfo": {"sub": "1"}})
    assert len(str(kept.parts)) < 70_000
    assert (len(kept.parts["id_token"]) + len(kept.left_out), kept.parts["userinfo"]) == (40, {"sub": "1"})
    assert len(kept_claims({"attributes": {f"c{number}": ["x"] for number in range(300)}}).parts["attributes"]) == 200


def test_the_size_limits_apply_to_the_names_of_claims_as_to_their_values() -> None:
    assert kept_claims({"userinfo": {"n" * 513: 1, "o" * 512: 1}}).parts == {"userinfo": {"o" * 512: 1}}
    named = {f"{number}{'n' * 500}": 1 for number in range(200)}
    assert len(str(kept_claims({"userinfo": named}).parts)) < 70_000


@pytest.mark.parametrize(
    "text",
    [
        *(f"Bearer {TOKEN}", f"{TOKEN}\n", f"see {TOKEN} here", "bearer 0123456789abcdef"),
        *("https://x.test/?access_token=abc", "https://x.test/#id_token=abc", "see https://x.test/a?b=1&client_secret=abc now"),
        *("https://ada@x.test/", "https://ada:word@x.test/", f"https://x.test/{TOKEN}"),
    ],
)
def test_a_claim_with_a_token_inside_its_text_is_not_stored(text: str) -> None:
    assert kept_claims({"id_token": {"picture": text, "list": [text]}}, read={"picture"}).left_out == ["picture", "list"]


@pytest.mark.parametrize("text", ["https://x.test/a.png?size=2&v=beta#top", "mailto:ada@x.test", "https://x.test/@ada", "Bearer of news"])
def test_an_address_without_secrets_is_stored(text: str) -> None:
    assert kept_claims({"id_token": {"picture": text}}).left_out == []


ORDINARY = ("private_email", "employee_code", "credentialNumber", "ticket", "code", "http://x.test/claims/privatepersonalidentifier")


def test_ordinary_claims_whose_names_look_like_secrets_are_stored() -> None:
    assert kept_claims({"id_token": dict.fromkeys(ORDINARY, "1")}).left_out == []


def test_a_claim_that_the_map_reads_is_stored_unless_it_is_a_token(tenant: Tenant, provider: Provider) -> None:
    token = "eyJhbGciOiJub25lIn0.e30.c2ln"
    templates = mapping(email="${context.tokenset.mail_token}", nickname="${context.tokenset.other_token}")
    login = login_at(tenant, provider, attribute_map=templates)
    provider.claims = {"mail_token": "private@example.test", "other_token": token}
    sample = after_test(login)
    assert previewed(login.connection, sample.parts).profile["email"] == "private@example.test"
    assert unstored_claims(login.connection, sample.left_out) == ["other_token"]


def test_an_attribute_that_identifies_users_is_stored_although_its_name_looks_like_a_secret(tenant: Tenant) -> None:
    login = saml_login(tenant, protocolBinding=POST, user_id_attribute="employee_token")
    sample = after_saml_test(login, attributes={"employee_token": ["7"], "other_token": ["never"]})
    assert previewed(login.connection, sample.parts).subject == "7"
    assert sample.left_out == ["other_token"]


def test_an_attribute_that_identifies_users_is_stored_over_ws_federation(tenant: Tenant) -> None:
    mapped = f"{CLAIMS}/employee_token"
    options = {"fedMetadataXml": federation_metadata().decode(), "user_id_attribute": mapped}
    connection = create_connection(tenant_id=tenant.pk, name="adfs", strategy="adfs", options=options)
    login = SamlLogin(tenant, saml_login(tenant).client, connection)
    sent = dict(parse_qsl(urlsplit(begun(login.browser, connection)["Location"]).query))
    result = Token(realm=login.entity_id, attributes={mapped: ["7"], f"{CLAIMS}/other_token": ["never-stored"]}).result()
    assert b"The test worked" in login.browser.post("/login/callback", {"wresult": result, "wctx": sent["wctx"]}).content
    row = ConnectionTest.objects.of(tenant.pk).get()
    assert previewed(connection, newest_sample(connection).parts).subject == "7"
    assert "never-stored" not in f"{row.result}{row.message}"


def test_a_token_in_the_claim_sub_is_stored_only_from_an_id_token() -> None:
    assert kept_claims({"attributes": {"sub": [TOKEN], "hd": [TOKEN]}}).parts == {"attributes": {}}
    assert kept_claims({"id_token": {"sub": "1", "hd": TOKEN}}).parts == {"id_token": {"sub": "1"}}
    assert kept_claims({"id_token": {"sub": TOKEN}}).parts == {"id_token": {"sub": TOKEN}}


def test_the_subject_and_the_read_claims_are_stored_before_other_claims() -> None:
    many = {f"c{number}": "x" * 4_000 for number in range(40)}
    kept = kept_claims({"id_token": {**many, "team": "a", "hd": "b"}, "userinfo": {**many, "sub": "1"}}, read={"team"})
    assert kept.parts["id_token"].items() >= {"team": "a", "hd": "b"}.items()
    assert kept.parts["userinfo"]["sub"] == "1"
