"""Logins at social providers over real sockets. Each test server requires of a request what the real provider requires."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from authapi.models import Session, SignIn
from authapi.upstream import exchange
from authapi.upstream.social.known_providers import KNOWN, AddressUnknown, check_addresses
from identity.models import User
from identity.services.connections import create_connection
from identity.services.users import create_user
from tests.authapi.upstream.refusals import assert_refused
from tests.authapi.upstream.social.conftest import Begin
from tests.factories.provider import address_of_logout
from tests.factories.scim import reply
from tests.factories.social_provider import DIRECTORY, EMAIL, PICTURE, SocialLogin, form_body

# Ada's user after a login at each provider: id, email address, whether the address is verified, name.
PEOPLE: dict[str, tuple[str, str, bool, str]] = {
    "google-oauth2": ("google-oauth2|1122", EMAIL, True, "Ada Lovelace"),
    "github": ("github|583231", EMAIL, True, "Ada Lovelace"),
    "windowslive": ("windowslive|AAAA-pairwise", EMAIL, False, "Ada Lovelace"),
    "waad": ("waad|corp|AAAA-pairwise", EMAIL, False, "Ada Lovelace"),
    "apple": ("apple|001234.ab.0123", "x7@privaterelay.appleid.com", True, "x7@privaterelay.appleid.com"),
    "facebook": ("facebook|10158", EMAIL, False, "Ada Lovelace"),
    "linkedin": ("linkedin|782bbtaQ", EMAIL, True, "Ada Lovelace"),
}
WITH_ID_TOKEN = sorted(strategy for strategy, row in KNOWN.items() if row.issuer)
WITH_PROFILE = sorted(strategy for strategy, row in KNOWN.items() if row.calls)


def user_of(login: SocialLogin) -> User:
    return User.objects.of(login.tenant.pk).get()


def refusal(login: SocialLogin, response: Any) -> str:
    """Return the description of a refused login in the sign-in log."""
    assert_refused(login, response)
    return SignIn.objects.of(login.tenant.pk).filter(is_success=False, connection="corp").latest("created_at").description


@pytest.mark.parametrize("strategy", PEOPLE)
def test_a_second_login_at_each_provider_finds_the_user_of_the_first_login(at: Begin, strategy: str) -> None:
    login = at(strategy)
    told = login.log_in()
    assert login.provider.refused == []
    assert "code" in told, told
    user = user_of(login)
    assert (user.user_id, user.email, user.email_verified, user.name) == PEOPLE[strategy]
    assert "code" in login.log_in(prompt="login")
    assert user_of(login).logins_count == 2


def test_every_provider_of_the_table_has_a_login_test(at: Begin) -> None:
    assert set(PEOPLE) == set(KNOWN)


# Refusals that do not depend on the provider.


@pytest.mark.parametrize("strategy", ["github", "google-oauth2", "apple"])
def test_a_refusal_at_the_provider_is_reported_to_the_client(at: Begin, strategy: str) -> None:
    login = at(strategy)
    response = login.come_back(login.leave(), code=None, error="access_denied", error_description="The user has denied access.")
    assert login.told(response)["error_description"] == "The user has denied access."
    assert "denied" in refusal(login, response)
    assert login.provider.paths == []


@pytest.mark.parametrize("strategy", ["github", "apple"])
def test_an_unknown_state_shows_an_error_page(at: Begin, strategy: str) -> None:
    login = at(strategy)
    sent = login.leave()
    for state in ("", "x", f"{sent['state']}x"):
        assert login.come_back({**sent, "state": state}).status_code == 400
    assert login.provider.paths == []


@pytest.mark.parametrize("strategy", ["github", "google-oauth2", "windowslive", "waad", "linkedin"])
def test_an_answer_of_another_issuer_is_refused_before_its_code_is_used(at: Begin, strategy: str) -> None:
    login = at(strategy)
    assert "not the issuer that got the request" in refusal(login, login.come_back(login.leave(), iss="https://attacker.example.test"))
    assert login.provider.paths == [path for path in login.provider.paths if path.endswith("openid-configuration")]


@pytest.mark.parametrize("strategy", ["github", "facebook", "apple"])
def test_a_login_is_refused_if_the_provider_refuses_its_code_with_status_200(at: Begin, strategy: str) -> None:
    login = at(strategy)
    assert "bad_verification_code" in refusal(login, login.come_back(login.leave(), code="another-code"))


def test_a_token_answer_without_a_usable_token_is_refused(at: Begin) -> None:
    login = at("github")
    for answer in (
        form_body(access_token="a", token_type="bearer"),
        reply(200, {"access_token": "with space", "token_type": "bearer"}),
        reply(200, {"access_token": {"a": 1}}),
        reply(200, {"access_token": "t" * 9000}),
        reply(200, {"error": {"message": "Error validating a-code", "code": 190}}),
        reply(500, {}),
        reply(200, []),
    ):
        sent = login.leave()
        login.provider.answers["token_endpoint"] = answer
        assert "a-code" not in refusal(login, login.come_back(sent))
    assert set(login.provider.paths) == {"/login/oauth/access_token"}


@pytest.mark.parametrize(("strategy", "role"), [("github", "user_endpoint"), ("github", "emails_endpoint"), ("facebook", "me_endpoint")])
def test_a_slow_overlong_or_invalid_profile_is_refused(at: Begin, strategy: str, role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    login = at(strategy)
    odd = {
        "huge": reply(200, {"padding": "p" * 300_000}),
        "no json": reply(200, raw=b"<html>"),
        "broken": reply(503, {}),
        "redirect": reply(302, {}, headers={"Location": f"{login.provider.base}/elsewhere"}),
    }
    for answer in odd.values():
        sent = login.leave()
        login.provider.answers[role] = answer
        assert_refused(login, login.come_back(sent))
    monkeypatch.setattr(exchange, "SECONDS", 0.3)
    sent = login.leave()
    login.provider.answers[role] = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"
    assert_refused(login, login.come_back(sent))
    assert "/elsewhere" not in login.provider.paths


@pytest.mark.parametrize("strategy", WITH_PROFILE)
def test_a_profile_without_a_usable_id_is_refused(at: Begin, strategy: str) -> None:
    login = at(strategy)
    subjects: list[Any] = [None, "", [], {}, True, 1.5, "s" * 256, "with\x00nul", "with space"]
    for subject in subjects:
        for document in login.provider.ada.values():
            if isinstance(document, dict):
                document["id"] = subject
        assert_refused(login, login.come_back(login.leave()))


@pytest.mark.parametrize("strategy", ["github", "facebook", "google-oauth2"])
def test_another_subject_with_the_same_email_address_is_another_user(at: Begin, strategy: str) -> None:
    login = at(strategy)
    login.log_in()
    first = user_of(login)
    for document in login.provider.ada.values():
        if isinstance(document, dict):
            document["sub"] = document["id"] = "999"
    told = login.log_in(prompt="login")
    assert told["error_description"] == "Another user of this connection has this e-mail address."
    assert user_of(login).user_id == first.user_id


def test_the_same_subject_at_another_connection_of_the_provider_is_another_user(at: Begin) -> None:
    login = at("google-oauth2")
    first = create_connection(tenant_id=login.tenant.pk, name="first", strategy="google-oauth2")
    ada = create_user(tenant_id=login.tenant.pk, connection=first, identifier="1122", email="ada@example.test")
    told = login.log_in()
    assert (told["error"], "code" in told) == ("access_denied", False)
    ada.refresh_from_db()
    assert (ada.email, ada.logins_count) == ("ada@example.test", 0)


@pytest.mark.parametrize("strategy", WITH_ID_TOKEN)
def test_an_id_token_with_an_invalid_claim_is_refused(at: Begin, strategy: str) -> None:
    login = at(strategy)
    wrong: list[dict[str, Any]] = [
        {"iss": "https://attacker.example.test"},
        {"aud": "another-client"},
        {"nonce": "of another login"},
        {"exp": 1},
        {"sub": None},
    ]
    # LinkedIn sends no nonce.
    for changes in [*wrong, *([{"nonce": None}] if strategy != "linkedin" else [])]:
        sent = login.leave()
        login.provider.changes = changes
        assert_refused(login, login.come_back(sent))


# URLs that only the operator sets.


@pytest.mark.parametrize("strategy", ["google-oauth2", "github"])
def test_no_option_of_a_tenant_sends_the_secret_to_another_host(at: Begin, strategy: str) -> None:
    names = ("issuer", "token_endpoint", "authorization_endpoint", "discovery_url", "tokenURL", "userInfoURL")
    login = at(strategy, **dict.fromkeys(names, "https://attacker.example.test/x"))
    assert "code" in login.log_in()


def test_no_request_is_sent_to_private_addresses(at: Begin, settings: Settings) -> None:
    login = at("github")
    sent = login.leave()
    settings.OUTBOUND_PRIVATE_NETWORKS = []
    assert_refused(login, login.come_back(sent))
    assert login.provider.paths == []


def test_an_unknown_provider_in_the_setting_prevents_the_start() -> None:
    check_addresses({"github": {"token_endpoint": "https://github.example.test/token"}, "apple": {"issuer": "https://apple.example.test"}})
    with pytest.raises(AddressUnknown, match="unknown strategy gitlab"):
        check_addresses({"gitlab": {"token_endpoint": "https://gitlab.example.test"}})
    with pytest.raises(AddressUnknown, match="unknown address `tokens` of github"):
        check_addresses({"github": {"tokens": "https://github.example.test"}})


# Google.


@pytest.mark.parametrize("named", ["accounts.google.com"])
def test_google_tokens_may_contain_the_older_issuer(at: Begin, named: str) -> None:
    login = at("google-oauth2")
    sent = login.leave()
    login.provider.changes = {"iss": named}
    assert "code" in login.told(login.come_back(sent))


@pytest.mark.parametrize(
    ("hd", "is_let_in"), [("People.example.test", True), ("other.example.test", False), (None, False), (["people.example.test"], False)]
)
def test_google_accounts_of_other_organizations_are_refused_if_the_connection_has_an_organization(
    at: Begin, hd: Any, is_let_in: bool
) -> None:
    login = at("google-oauth2", hosted_domains=["people.example.test"])
    sent = login.leave()
    assert sent["hd"] == "people.example.test"
    login.provider.changes = {"hd": hd}
    response = login.come_back(sent)
    if is_let_in:
        assert "code" in login.told(response)
    else:
        assert "hosted_domains" in refusal(login, response)


# GitHub.


def github_emails(login: SocialLogin, *emails: tuple[str, Any, Any]) -> None:
    login.provider.ada["emails_endpoint"] = [
        {"email": email, "primary": primary, "verified": verified} for email, primary, verified in emails
    ]


@pytest.mark.parametrize(
    "emails",
    [
        (("ada@people.example.test", True, False),),
        (("ada@people.example.test", False, True),),
        (("ada@people.example.test", "true", "true"),),
        (("ada@people.example.test", 1, 1),),
        (),
    ],
    ids=["not verified", "not primary", "texts", "numbers", "no address"],
)
def test_a_github_address_is_used_only_if_it_is_primary_and_verified(at: Begin, emails: tuple[tuple[str, Any, Any], ...]) -> None:
    login = at("github")
    github_emails(login, *emails)
    assert "code" in login.log_in()
    # The public email address in the profile is not used.
    assert (user_of(login).email, user_of(login).email_verified) == (None, False)


@pytest.mark.parametrize("status", [403, 404])
def test_a_github_login_without_the_scope_for_addresses_creates_a_user_without_an_address(at: Begin, status: int) -> None:
    login = at("github")
    login.provider.answers["emails_endpoint"] = reply(status, {"message": "Resource not accessible"})
    assert "code" in login.log_in()
    assert user_of(login).email is None


def test_github_gets_its_own_scopes_and_a_challenge_but_no_nonce(at: Begin) -> None:
    login = at("github", freeform_scopes=["read:org"])
    sent = login.leave(login_hint="ada")
    assert (sent["scope"], sent["login"], sent["code_challenge_method"]) == ("read:user user:email read:org", "ada", "S256")
    assert not {"nonce", "login_hint"} & sent.keys()
    assert login.leave(prompt="login")["prompt"] == "select_account"


# Microsoft.


@pytest.mark.parametrize(("proof", "is_verified"), [(True, True), ("1", True), (1, True), (False, False), ("0", False), (["1"], False)])
def test_a_microsoft_address_is_verified_if_its_domain_is_verified(at: Begin, proof: Any, is_verified: bool) -> None:
    login = at("windowslive")
    # The service ignores `email_verified`: a directory can put any email address and any value of this claim into its tokens.
    login.provider.claims = {"xms_edov": proof, "email_verified": True}
    assert "code" in login.log_in()
    assert user_of(login).email_verified is is_verified


def test_an_address_in_the_microsoft_profile_is_not_verified(at: Begin) -> None:
    login = at("windowslive")
    login.provider.claims = {"email": None}
    login.provider.userinfo = {"email": "victim@corp.example.test", "email_verified": True}
    assert "code" in login.log_in()
    assert (user_of(login).email, user_of(login).email_verified) == ("victim@corp.example.test", False)


OTHER_DIRECTORY = "72f988bf-86f1-41af-91ab-2d7cd011db47"


@pytest.mark.parametrize("strategy", ["windowslive", "waad"])
def test_the_issuer_of_a_microsoft_token_contains_the_directory_of_the_token(at: Begin, strategy: str) -> None:
    login = at(strategy)
    elsewhere = login.provider.addresses["issuer"].replace("{tenantid}", OTHER_DIRECTORY)
    wrong: list[dict[str, Any]] = [{"iss": elsewhere}, {"iss": login.provider.addresses["issuer"]}, {"iss": elsewhere, "tid": "-"}]
    if strategy == "windowslive":
        # With this strategy, accounts of every directory can log in. So only the token (`tid`) names the directory.
        template = login.provider.addresses["issuer"]
        wrong += [{"tid": OTHER_DIRECTORY}, {"tid": None}, {"tid": [DIRECTORY]}]
        wrong += [{"tid": tid, "iss": template.replace("{tenantid}", tid)} for tid in ("{tenantid}", "common", "a/../b")]
    for changes in wrong:
        sent = login.leave()
        # The published keys name no directory, so only the claims of the token can cause the refusal.
        login.provider.answers["jwks_uri"] = reply(200, {"keys": [key.as_dict(private=False) for key in login.provider.published]})
        login.provider.changes = changes
        assert_refused(login, login.come_back(sent))


def test_microsoft_accounts_of_every_directory_can_log_in(at: Begin) -> None:
    login = at("windowslive")
    issuer = login.provider.addresses["issuer"].replace("{tenantid}", OTHER_DIRECTORY)
    login.provider.changes = {"tid": OTHER_DIRECTORY, "iss": issuer}
    assert "code" in login.log_in()


def test_entra_users_of_another_directory_are_refused(at: Begin) -> None:
    login = at("waad")
    sent = login.leave()
    issuer = login.provider.addresses["issuer"].replace("{tenantid}", OTHER_DIRECTORY)
    login.provider.changes = {"tid": OTHER_DIRECTORY, "iss": issuer}
    assert_refused(login, login.come_back(sent))


def test_a_key_of_one_directory_is_not_valid_for_another_directory(at: Begin) -> None:
    login = at("windowslive")
    sent = login.leave()
    keys = [
        {**key.as_dict(private=False), "issuer": login.provider.addresses["issuer"].replace("{tenantid}", OTHER_DIRECTORY)}
        for key in login.provider.published
    ]
    login.provider.answers["jwks_uri"] = reply(200, {"keys": keys})
    assert "belongs to another directory" in refusal(login, login.come_back(sent))


def test_an_entra_connection_can_name_its_directory_by_domain(at: Begin) -> None:
    login = at("waad", tenant_domain="Contoso.example.test")
    assert "code" in login.log_in()
    assert "/contoso.example.test/v2.0/.well-known/openid-configuration" in login.provider.paths
    login.provider.changes = {"tid": OTHER_DIRECTORY, "iss": login.provider.addresses["issuer"].replace("{tenantid}", OTHER_DIRECTORY)}
    assert login.log_in(prompt="login")["error"] == "access_denied"


def test_entra_metadata_with_an_unexpected_issuer_is_refused(at: Begin) -> None:
    login = at("waad", tenant_domain="contoso.example.test")
    login.provider.answers["discovery_url"] = reply(200, {"issuer": "https://attacker.example.test", "jwks_uri": "x"})
    page = login.browser.get("/authorize", _asked(login))
    assert login.browser.get(page["Location"]).status_code == 502


def test_an_entra_connection_without_a_directory_is_refused(at: Begin) -> None:
    login = at("waad", tenant_domain=None)
    page = login.browser.get("/authorize", _asked(login))
    assert login.browser.get(page["Location"]).status_code == 502
    assert "set tenant_domain" in SignIn.objects.of(login.tenant.pk).get(is_success=False).description


# Apple.

NAME = json.dumps({"name": {"firstName": "Ada", "lastName": "Lovelace"}, "email": "victim@corp.example.test"})


def test_apple_posts_its_answer_and_sends_the_name_only_once(at: Begin) -> None:
    login = at("apple")
    sent = login.leave()
    assert (sent["response_mode"], sent["scope"]) == ("form_post", "name email")
    response = login.come_back(sent, user=NAME)
    assert "code" in login.told(response)
    user = user_of(login)
    assert (user.name, user.given_name, user.family_name) == ("Ada Lovelace", "Ada", "Lovelace")
    # The form that the browser posts is not signed, so the email address of the id token is used.
    assert (user.email, user.email_verified) == ("x7@privaterelay.appleid.com", True)
    assert "code" in login.log_in(prompt="login")
    assert user_of(login).name == "Ada Lovelace"


def test_an_apple_answer_with_a_name_works_if_cross_site_forms_have_no_cookies(at: Begin) -> None:
    login = at("apple")
    sent = login.leave()
    cookies, login.browser.cookies = login.browser.cookies, type(login.browser.cookies)()
    page = login.come_back(sent, user=NAME)
    assert page.status_code == 200
    assert "Ada" not in page.get("Location", "")
    assert b'name="user"' in page.content
    login.browser.cookies = cookies
    assert "code" in login.told(login.come_back(sent, user=NAME, posted_again="1"))


def test_apple_answers_in_another_browser_are_refused(at: Begin) -> None:
    login = at("apple")
    sent = login.leave()
    login.browser.cookies.clear()
    assert login.come_back(sent, user=NAME, posted_again="1").status_code == 400
    assert login.provider.paths == []


@pytest.mark.parametrize(
    "user", ["", "no json", "[]", '{"name": 5}', '{"name": {"firstName": {}}}', "[" * 1500, '{"name": {"firstName": "' + "x" * 3000 + '"}}']
)
def test_invalid_apple_names_do_not_prevent_a_login(at: Begin, user: str) -> None:
    login = at("apple")
    assert "code" in login.told(login.come_back(login.leave(), user=user))
    assert user_of(login).given_name is None


def test_a_name_in_the_answer_of_another_provider_is_ignored(at: Begin) -> None:
    login = at("google-oauth2")
    assert "code" in login.told(login.come_back(login.leave(), method="POST", user=NAME))
    assert user_of(login).given_name is None


@pytest.mark.parametrize(("said", "is_verified"), [("true", True), (True, True), ("false", False), (False, False), (None, False)])
def test_apple_may_send_email_verified_as_text(at: Begin, said: Any, is_verified: bool) -> None:
    login = at("apple")
    login.provider.claims = {"email_verified": said}
    assert "code" in login.log_in()
    assert user_of(login).email_verified is is_verified


@pytest.mark.parametrize("missing", ["team_id", "kid", "app_secret"])
def test_the_error_for_an_incomplete_apple_key_contains_the_missing_option(at: Begin, missing: str) -> None:
    login = at("apple", **{missing: None})
    page = login.browser.get("/authorize", _asked(login))
    assert login.browser.get(page["Location"]).status_code == 502
    assert f"has no {missing}" in SignIn.objects.of(login.tenant.pk).get(is_success=False).description


# Facebook and LinkedIn.


def test_a_facebook_login_without_an_address_creates_a_user_without_an_address(at: Begin) -> None:
    login = at("facebook", graph_version="v19.0")
    del login.provider.ada["me_endpoint"]["email"]
    assert "code" in login.log_in()
    user = user_of(login)
    assert (user.email, user.picture) == (None, PICTURE)
    assert "/v19.0/me" in login.provider.paths


def test_facebook_addresses_are_never_verified(at: Begin) -> None:
    login = at("facebook")
    login.provider.ada["me_endpoint"] |= {"email_verified": True, "verified": True}
    assert "code" in login.log_in()
    assert user_of(login).email_verified is False


@pytest.mark.parametrize("named", ["https://www.linkedin.com"])
def test_linkedin_tokens_may_contain_either_spelling_of_the_issuer(at: Begin, named: str) -> None:
    login = at("linkedin")
    sent = login.leave()
    login.provider.changes = {"iss": named}
    assert "code" in login.told(login.come_back(sent))


def test_a_federated_logout_is_sent_to_the_providers_that_support_it(at: Begin) -> None:
    login = at("windowslive")
    login.log_in()
    address = address_of_logout(Session.objects.of(login.tenant.pk).get(), return_to="https://app.example.test/bye") or ""
    assert address.startswith(f"{login.provider.base}/common/oauth2/v2.0/logout?client_id=")
    other = at("github", name="hub")
    other.log_in()
    session = Session.objects.of(login.tenant.pk).get(connection=other.connection)
    assert address_of_logout(session, return_to="https://app.example.test/bye") is None


def test_no_token_of_the_provider_is_stored_or_logged(at: Begin, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        login = at("github")
        login.log_in()
    kept = repr([*Session.objects.of(login.tenant.pk).values(), *User.objects.of(login.tenant.pk).values()])
    for secret in ("access-token-of-the-provider", "secret-at-the-provider", "a-code"):
        assert secret not in caplog.text
        assert secret not in kept


def _asked(login: SocialLogin) -> dict[str, str]:
    asked = {"response_type": "code", "client_id": login.client.client_id, "redirect_uri": "https://app.example.test/callback"}
    return {**asked, "scope": "openid", "connection": "corp"}
