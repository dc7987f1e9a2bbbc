"""Logins at an OAuth 2.0 provider that a tenant configures itself: its URLs, its profile, and the parts of the profile that are used."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from pytest_django.fixtures import Settings

from authapi.models import SignIn
from identity.models import Tenant, User
from identity.services.connections import create_connection, update_connection
from identity.services.failures import Invalid
from identity.services.users import create_user
from tests.authapi.upstream.refusals import assert_refused
from tests.factories.provider import CLIENT_ID, SECRET, Login, Provider, login_at
from tests.factories.provider import provider as running_provider
from tests.factories.scim import reply

PROFILE: dict[str, Any] = {
    "data": {
        "id": 4711,
        "mail": "ada@people.example.test",
        "label": "Ada Lovelace",
        "mails": [{"v": "ada@people.example.test", "ok": True}],
    }
}
FIELDS = {
    "user_id": "data.id",
    "email": "data.mail",
    "email_verified": "to_bool(data.mails[0].ok)",
    "name": "data.label",
    "nickname": "lower(data.label)",
}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        running.answers["/userinfo"] = reply(200, PROFILE)
        yield running


def generic(tenant: Tenant, provider: Provider, **options: Any) -> Login:
    at = provider.issuer
    addresses = {"authorizationURL": f"{at}/authorize?tenant=x", "tokenURL": f"{at}/token", "userInfoURL": f"{at}/userinfo"}
    return login_at(
        tenant, provider, **{"strategy": "oauth2", "issuer": None, "scope": "profile email", "fieldsMap": FIELDS, **addresses, **options}
    )


def user_of(login: Login) -> User:
    return User.objects.of(login.tenant.pk).get()


def said(login: Login) -> str:
    return SignIn.objects.of(login.tenant.pk).filter(is_success=False).latest("created_at").description


def sent_to(provider: Provider, path: str) -> Any:
    return next(request for request in provider.server.received if request.path == path)


def test_the_expressions_of_the_connection_read_the_profile(tenant: Tenant, provider: Provider) -> None:
    login = generic(tenant, provider)
    sent = login.leave()
    assert (sent["tenant"], sent["scope"], sent["code_challenge_method"]) == ("x", "profile email", "S256")
    assert "nonce" not in sent
    assert "code" in login.told(login.come_back(sent))
    user = user_of(login)
    # The user id contains the name of the connection, because two providers can use the same number for two different users.
    assert user.user_id == "oauth2|corp|4711"
    assert (user.email, user.email_verified, user.name, user.nickname) == ("ada@people.example.test", True, "Ada Lovelace", "ada lovelace")
    form = provider.token_form()
    assert (form["client_id"], form["client_secret"], "code_verifier" in form) == (CLIENT_ID, SECRET, True)
    assert sent_to(provider, "/userinfo").headers["authorization"] == "Bearer at"
    assert "code" in login.log_in(prompt="login")


def test_the_first_login_finds_a_user_who_was_created_before(tenant: Tenant, provider: Provider) -> None:
    login = generic(tenant, provider)
    made = create_user(tenant_id=tenant.pk, connection=login.connection, identifier="4711", name="Made beforehand")
    assert "code" in login.log_in()
    assert (user_of(login).pk, user_of(login).user_id) == (made.pk, "oauth2|corp|4711")


def test_equal_subjects_at_two_providers_are_two_users(tenant: Tenant, provider: Provider) -> None:
    login = generic(tenant, provider)
    login.log_in()
    with running_provider() as other:
        other.answers["/userinfo"] = reply(200, {"data": {"id": 4711, "label": "Eve"}})
        second = {**login.connection.options, "authorizationURL": f"{other.issuer}/authorize", "tokenURL": f"{other.issuer}/token"}
        options = {**second, "userInfoURL": f"{other.issuer}/userinfo", "client_secret": SECRET}
        create_connection(tenant_id=tenant.pk, name="second", strategy="oauth2", enabled_clients=[login.client.client_id], options=options)
        login.provider = other
        assert "code" in login.told(login.come_back(login.leave(connection="second", prompt="login")))
    assert sorted(User.objects.of(tenant.pk).values_list("user_id", flat=True)) == ["oauth2|corp|4711", "oauth2|second|4711"]


def test_standard_members_are_used_without_expressions(tenant: Tenant, provider: Provider) -> None:
    login = generic(tenant, provider, fieldsMap=None)
    standard = {"sub": "s", "email": "ada@example.test", "email_verified": True, "preferred_username": "ada"}
    provider.answers["/userinfo"] = reply(200, standard)
    assert "code" in login.log_in()
    user = user_of(login)
    assert (user.user_id, user.email, user.email_verified, user.nickname) == ("oauth2|corp|s", "ada@example.test", True, "ada")


def test_the_proof_of_one_address_does_not_verify_another_mapped_address(tenant: Tenant, provider: Provider) -> None:
    login = generic(tenant, provider, fieldsMap={"email": "upn"})
    standard = {"sub": "s", "email": "eve@example.test", "email_verified": True, "upn": "victim@example.test"}
    provider.answers["/userinfo"] = reply(200, standard)
    assert "code" in login.log_in()
    assert (user_of(login).email, user_of(login).email_verified) == ("victim@example.test", False)


@pytest.mark.parametrize(
    "profile",
    [{}, [], "text", {"data": None}, {"data": {"id": {"a": 1}}}, {"data": {"id": [1]}}, {"data": {"id": ""}}, {"data": {"id": 1.5}}],
    ids=repr,
)
def test_a_profile_without_an_id_is_refused(tenant: Tenant, provider: Provider, profile: Any) -> None:
    login = generic(tenant, provider)
    provider.answers["/userinfo"] = reply(200, profile)
    assert_refused(login, login.come_back(login.leave()))
    assert "has no subject" in said(login)


def test_a_subject_that_looks_like_a_user_id_does_not_find_that_user(tenant: Tenant, provider: Provider) -> None:
    login = generic(tenant, provider)
    login.log_in()
    provider.answers["/userinfo"] = reply(200, {"data": {"id": "corp|4711"}})
    assert "code" not in login.log_in(prompt="login")


def test_an_expression_that_fails_for_a_profile_omits_its_field(tenant: Tenant, provider: Provider) -> None:
    login = generic(tenant, provider, fieldsMap={**FIELDS, "name": "lower(data)", "given_name": "join('', data)", "picture": "data.mails"})
    assert "code" in login.log_in()
    assert (user_of(login).given_name, user_of(login).picture) == (None, None)


@pytest.mark.parametrize(
    "iss",
    ["https://attacker.example.test", "https://127.0.0.1", "", "https://[x"],
    ids=["another host", "without the port", "empty", "invalid"],
)
def test_an_answer_that_names_another_host_as_issuer_is_refused(tenant: Tenant, provider: Provider, iss: str) -> None:
    login = generic(tenant, provider)
    assert_refused(login, login.come_back(login.leave(), iss=iss))
    assert provider.paths == []


def test_an_answer_may_name_the_requested_host_as_issuer_only_if_none_is_configured(tenant: Tenant, provider: Provider) -> None:
    login = generic(tenant, provider)
    assert "code" in login.told(login.come_back(login.leave(), iss=f"{provider.issuer}/oauth"))
    update_connection(
        tenant_id=tenant.pk,
        connection_id=login.connection.pk,
        changes={"options": {**login.connection.options, "issuer": "https://known.example.test", "client_secret": SECRET}},
    )
    assert "code" not in login.told(login.come_back(login.leave(prompt="login"), iss=f"{provider.issuer}/oauth"))
    assert "code" in login.told(login.come_back(login.leave(prompt="login"), iss="https://known.example.test"))


def test_no_code_is_sent_if_the_authorization_url_changes_during_the_login(tenant: Tenant, provider: Provider) -> None:
    login = generic(tenant, provider)
    sent = login.leave()
    elsewhere = {**login.connection.options, "authorizationURL": "https://elsewhere.example.test/authorize"}
    update_connection(tenant_id=tenant.pk, connection_id=login.connection.pk, changes={"options": elsewhere})
    assert_refused(login, login.come_back(sent))
    assert provider.paths == []


def test_the_connection_sets_headers_and_parameters_and_client_authentication(tenant: Tenant, provider: Provider) -> None:
    login = generic(
        tenant,
        provider,
        customHeaders={"X-Api-Key": "key-of-the-client", "authorization": "Basic of-its-own"},
        authParams={"access_type": "online", "state": "forced", "url": "odd", "self": "odd"},
        authParamsMap={"lang": "ui_locales", "nonce": "login_hint"},
        token_endpoint_auth_method="client_secret_basic",
        pkce_enabled=False,
    )
    sent = login.leave(ui_locales="de", login_hint="ada")
    assert (sent["access_type"], sent["lang"], sent["url"]) == ("online", "de", "odd")
    assert sent["state"] != "forced"
    assert not {"nonce", "code_challenge"} & sent.keys()
    assert "code" in login.told(login.come_back(sent))
    token, profile = sent_to(provider, "/token"), sent_to(provider, "/userinfo")
    assert token.headers["authorization"] == "Basic " + base64.b64encode(f"{CLIENT_ID}:{SECRET}".encode()).decode()
    assert (token.headers["x-api-key"], profile.headers["x-api-key"]) == ("key-of-the-client", "key-of-the-client")
    assert profile.headers["authorization"] == "Bearer at"
    assert not {"client_secret", "code_verifier"} & provider.token_form().keys()


@pytest.mark.parametrize("missing", ["authorizationURL", "tokenURL", "userInfoURL", "client_id"])
def test_the_error_for_an_incomplete_connection_says_what_is_missing(tenant: Tenant, provider: Provider, missing: str) -> None:
    login = generic(tenant, provider, **{missing: None})
    asked = {"response_type": "code", "client_id": login.client.client_id, "redirect_uri": "https://app.example.test/callback"}
    page = login.browser.get("/authorize", {**asked, "scope": "openid", "connection": "corp"})
    assert login.browser.get(page["Location"]).status_code == 502
    assert missing in said(login)


def test_no_request_is_sent_to_private_addresses(tenant: Tenant, provider: Provider, settings: Settings) -> None:
    login = generic(tenant, provider)
    sent = login.leave()
    settings.OUTBOUND_PRIVATE_NETWORKS = []
    assert_refused(login, login.come_back(sent))
    assert provider.paths == []


@pytest.mark.parametrize("name", ["tokenURL", "userInfoURL"])
def test_changing_the_token_url_removes_the_stored_secret(tenant: Tenant, provider: Provider, name: str) -> None:
    login = generic(tenant, provider, customHeaders={"X-Api-Key": "key-of-the-client"})
    changed = {**login.connection.options, name: "https://attacker.example.test/x"}
    with pytest.raises(Invalid, match="would be sent elsewhere"):
        update_connection(tenant_id=tenant.pk, connection_id=login.connection.pk, changes={"options": changed})


def test_a_url_with_a_query_is_stored_encrypted_and_still_used(tenant: Tenant, provider: Provider) -> None:
    login = generic(tenant, provider, userInfoURL=f"{provider.issuer}/userinfo?key=of-the-client")
    assert "userInfoURL" not in login.connection.options
    assert "code" in login.log_in()
    assert urlsplit(sent_to(provider, "/userinfo").target).query == "key=of-the-client"


# Refusals when options are stored.


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"scripts": {"fetchUserProfile": "function (a, b) {}"}}, "is not supported"),
        ({"authorizationURL": "javascript:alert(1)"}, "authorizationURL must be an https address"),
        ({"tokenURL": "https://user:pw@t.example.test"}, "tokenURL must be an https address"),
        ({"tokenURL": "https://t.example.test/#x"}, "tokenURL must be an https address"),
        ({"userInfoURL": 5}, "userInfoURL must be an https address"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "token_endpoint_auth_method must be one of"),
        ({"pkce_enabled": "yes"}, "pkce_enabled must be true or false"),
        ({"fieldsMap": ["id"]}, "fieldsMap must be an object"),
        ({"fieldsMap": {"blocked": "a"}}, "there is no field blocked"),
        ({"fieldsMap": {"name": 5}}, "name must be an expression"),
        ({"fieldsMap": {"name": "a" * 513}}, "name must be an expression"),
        ({"fieldsMap": {"name": "a["}}, "is not understood"),
        ({"fieldsMap": {"name": "sum(a)"}}, "There is no function sum()"),
        ({"customHeaders": "X-Key: x"}, "customHeaders must be an object"),
        ({"customHeaders": {"Host": "x"}}, "Host is not the name of a header that can be set"),
        ({"customHeaders": {"X Key": "x"}}, "is not the name of a header"),
        ({"customHeaders": {"X-Key": "x\r\nHost: y"}}, "must be a text of visible characters"),
        ({"customHeaders": {"X-Key": "é"}}, "must be a text of visible characters"),
    ],
    ids=lambda value: value if isinstance(value, str) else ascii(value)[:60],
)
def test_unusable_options_are_refused_when_they_are_stored(tenant: Tenant, options: dict[str, Any], told: str) -> None:
    with pytest.raises(Invalid) as refused:
        create_connection(tenant_id=tenant.pk, name="corp", strategy="oauth2", options=options)
    assert told in str(refused.value.errors)


@pytest.mark.parametrize(
    ("strategy", "options", "told"),
    [
        ("google-oauth2", {"hosted_domains": "people.example.test"}, "hosted_domains must be a list"),
        ("google-oauth2", {"hosted_domains": ["people"]}, "hosted_domains must be a list"),
        ("apple", {"team_id": "a/b"}, "team_id must be letters and digits"),
        ("apple", {"kid": "a b"}, "kid must be letters and digits"),
        ("apple", {"app_secret": "secret-that-is-no-key"}, "app_secret must be the private key"),
        ("facebook", {"graph_version": "../v1.0"}, "graph_version must be a version"),
        ("waad", {"client_id": "c", "tenant_domain": "a/../b"}, "tenant_domain must be a domain"),
    ],
    ids=lambda value: value if isinstance(value, str) else ascii(value)[:60],
)
def test_options_of_known_providers_are_checked_too(tenant: Tenant, strategy: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(Invalid) as refused:
        create_connection(tenant_id=tenant.pk, name="corp", strategy=strategy, options=options)
    assert told in str(refused.value.errors)
    assert "secret-that-is-no-key" not in str(refused.value.errors)
