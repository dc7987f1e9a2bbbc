"""Logins at an external provider: refusals, the created users, and the errors that the client gets."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client as Browser
from joserfc.jwk import RSAKey

from authapi.models import Client, LoginTransaction, Session, SignIn
from authapi.upstream import buttons, connection_for_email, metadata, named_connection
from authapi.upstream.authentication_requests import end_request, request_for
from events.models import Event
from identity.models import LinkedIdentity, Tenant, User
from identity.services.connections import create_connection, update_connection
from identity.services.users import block_user, create_user, link_users
from tests.factories.provider import CLIENT_ID, SECRET, Login, Provider, address_of_logout, login_at
from tests.factories.scim import reply

SUBJECT = "oidc|corp|248289"


def users(tenant: Tenant) -> list[User]:
    return list(User.objects.of(tenant.pk))


def event_types(tenant: Tenant) -> list[str]:
    return list(Event.objects.filter(tenant_id=tenant.pk, type__startswith="user.").order_by("pk").values_list("type", flat=True))


def refused(login: Login, response: Any) -> tuple[str, str]:
    """Check that no session began. Return the parameters that the client got."""
    told = login.told(response)
    assert "code" not in told
    assert told["state"] == "app-state"
    assert not Session.objects.of(login.tenant.pk).exists()
    assert SignIn.objects.of(login.tenant.pk).filter(is_success=False, connection="corp").exists()
    return told["error"], told["error_description"]


# The request and the answer.


def test_an_unknown_state_shows_an_error_page(login: Login) -> None:
    sent = login.leave()
    pk, _, secret = sent["state"].partition(".")
    for state in ("", "x", pk, f"{pk}.", f"{pk}.{'A' * 43}", f"{int(pk) + 1}.{secret}", f"{'9' * 19}.{secret}", f"{sent['state']}x"):
        response = login.come_back({"state": state})
        assert response.status_code == 400, state
        assert b"This login has expired" in response.content
    assert "/token" not in login.provider.paths


def test_only_the_first_of_two_requests_with_the_same_answer_uses_the_answer(login: Login) -> None:
    state = login.leave()["state"]
    first, second = request_for(login.tenant.pk, state), request_for(login.tenant.pk, state)
    assert first is not None
    assert second is not None
    assert end_request(first[0])
    assert not end_request(second[0])
    assert request_for(login.tenant.pk, state) is None


def test_an_answer_in_another_browser_is_refused(login: Login) -> None:
    # Login CSRF: the attacker sends an answer about the attacker to the victim's browser.
    sent = login.leave()
    for browser in (
        Browser(headers={"host": f"{login.tenant.pk}.example.test"}),
        Browser(headers={"host": f"{login.tenant.pk}.example.test"}),
    ):
        response = browser.get("/login/callback", {"code": "a-code", "state": sent["state"]})
        assert response.status_code == 400
        assert b"another browser" in response.content
    assert "/token" not in login.provider.paths
    assert login.told(login.come_back(sent))["code"]


def test_an_answer_is_accepted_once(login: Login) -> None:
    sent = login.leave()
    assert "code" in login.told(login.come_back(sent))
    assert login.come_back(sent).status_code == 400
    assert login.provider.paths.count("/token") == 1


def test_a_state_of_another_tenant_is_unknown(login: Login, second_tenant: Tenant) -> None:
    sent = login.leave()
    response = login.browser.get(
        "/login/callback", {"code": "c", "state": sent["state"]}, headers={"host": f"{second_tenant.pk}.example.test"}
    )
    assert response.status_code == 400
    assert "/token" not in login.provider.paths


def test_an_expired_request_is_refused(login: Login) -> None:
    sent = login.leave()
    LoginTransaction.objects.of(login.tenant.pk).update(expires_at="2020-01-01T00:00:00Z")
    assert login.come_back(sent).status_code == 400


def test_an_error_page_is_shown_and_nothing_is_logged_if_the_callback_was_removed(login: Login) -> None:
    sent = login.leave()
    lines = SignIn.objects.of(login.tenant.pk).count()
    Client.objects.of(login.tenant.pk).update(redirect_uris="https://app.example.test/other")
    response = login.come_back(sent)
    assert (response.status_code, b"Callback URL mismatch." in response.content) == (400, True)
    assert SignIn.objects.of(login.tenant.pk).count() == lines
    assert "/token" not in login.provider.paths


@pytest.mark.parametrize("name", ["code", "state", "iss"])
def test_a_repeated_parameter_of_the_answer_is_refused(login: Login, name: str) -> None:
    sent = login.leave()
    query = f"code=a&state={sent['state']}&iss={login.provider.issuer}&{name}=twice"
    assert login.browser.get(f"/login/callback?{query}").status_code == 400
    assert "/token" not in login.provider.paths


def test_a_posted_answer_is_redirected_to_a_get_request_with_its_known_parameters(login: Login) -> None:
    sent = login.leave()
    posted = login.come_back(sent, method="POST", junk="1")
    assert posted.status_code == 303
    assert urlsplit(posted["Location"]).path == "/login/callback"
    assert set(parse_qs(urlsplit(posted["Location"]).query)) == {"code", "state"}
    assert "code" in login.told(login.browser.get(posted["Location"]))


def test_the_client_gets_the_error_of_the_provider(login: Login) -> None:
    response = login.come_back(login.leave(), code=None, error="access_denied", error_description="You are\nnot <b>invited</b>.")
    assert refused(login, response) == ("access_denied", "You arenot <b>invited</b>.")


def test_an_empty_answer_is_refused(login: Login) -> None:
    assert refused(login, login.come_back(login.leave(), code=None))[0] == "server_error"


# Mix-up attacks: the answer or the discovery document is from another provider than the one that got the request.


def test_an_answer_of_another_issuer_is_refused_before_its_code_is_used(login: Login) -> None:
    response = login.come_back(login.leave(), iss="https://attacker.example.test")
    assert refused(login, response)[0] == "access_denied"
    assert "/token" not in login.provider.paths


def test_an_answer_without_an_issuer_is_refused_if_the_provider_sends_issuers(login: Login) -> None:
    login.provider.discovery["authorization_response_iss_parameter_supported"] = True
    assert refused(login, login.come_back(login.leave()))[0] == "access_denied"
    assert "/token" not in login.provider.paths
    assert "code" in login.told(login.come_back(login.leave(), iss=login.provider.issuer))


def test_a_provider_that_replaces_another_provider_during_a_login_gets_no_code(login: Login) -> None:
    sent = login.leave()
    options = {"client_id": CLIENT_ID, "issuer": "https://attacker.example.test", "token_endpoint": f"{login.provider.issuer}/token"}
    addresses = {"authorization_endpoint": "https://attacker.example.test/a", "jwks_uri": f"{login.provider.issuer}/jwks"}
    moved = options | addresses | {"client_secret": SECRET}
    update_connection(tenant_id=login.tenant.pk, connection_id=login.connection.pk, changes={"options": moved})
    assert refused(login, login.come_back(sent))[0] == "access_denied"
    assert "/token" not in login.provider.paths


def test_a_connection_that_was_removed_from_the_client_during_the_login_is_refused(login: Login) -> None:
    sent = login.leave()
    update_connection(tenant_id=login.tenant.pk, connection_id=login.connection.pk, changes={"enabled_clients": []})
    assert "error" in login.told(login.come_back(sent))
    assert users(login.tenant) == []


@pytest.mark.parametrize("changes", [{"issuer": "https://attacker.example.test"}, {"issuer": None}, {"issuer": 5}])
def test_a_discovery_document_of_another_issuer_is_not_used(login: Login, changes: dict[str, Any]) -> None:
    login.provider.discovery.update(changes)
    page = login.browser.get("/authorize", _asked(login))
    response = login.browser.get(page["Location"])
    assert response.status_code == 502
    assert login.provider.paths == ["/.well-known/openid-configuration"]
    # The sign-in log contains the reason.
    line = SignIn.objects.of(login.tenant.pk).get(is_success=False, connection="corp")
    assert "belongs to another issuer" in line.description


def test_an_issuer_with_an_additional_slash_is_another_issuer(tenant: Tenant, provider: Provider) -> None:
    login = login_at(tenant, provider, issuer=provider.issuer + "/")
    page = login.browser.get("/authorize", _asked(login))
    assert login.browser.get(page["Location"]).status_code == 502


# The id token.


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "of another login"},
        {"nonce": None},
        {"iss": "https://attacker.example.test"},
        {"iss": None},
        {"aud": "another-client"},
        {"aud": None},
        {"aud": [CLIENT_ID, "another-client"]},
        {"aud": [CLIENT_ID, "another-client"], "azp": "another-client"},
        {"azp": "another-client"},
        {"exp": 1},
        {"exp": None},
        {"iat": None},
        {"iat": 4_102_444_800},
        {"nbf": 4_102_444_800},
        {"sub": None},
        {"sub": ""},
        {"sub": 5},
        {"sub": "s" * 256},
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
    ],
)
def test_an_id_token_with_an_invalid_claim_is_refused(login: Login, changes: dict[str, Any]) -> None:
    sent = login.leave()
    login.provider.changes = changes
    assert refused(login, login.come_back(sent))[0] == "access_denied"
    assert users(login.tenant) == []


def test_a_small_difference_between_the_clocks_is_accepted(login: Login) -> None:
    sent = login.leave()
    login.provider.changes = {"exp": int(time.time()) - 30, "iat": int(time.time()) + 30}
    assert "code" in login.told(login.come_back(sent))


def test_an_unknown_key_causes_exactly_one_more_fetch_of_the_keys(login: Login) -> None:
    rotated = RSAKey.generate_key(2048, {"kid": "two", "use": "sig"})
    assert "code" in login.log_in()
    login.provider.key, login.provider.published = rotated, [rotated]
    jwks = f"{login.provider.issuer}/jwks"
    with metadata.documents._lock:
        asked_at, document = metadata.documents._entries[jwks]
        metadata.documents._entries[jwks] = (asked_at - 11, document)
    before = login.provider.paths.count("/jwks")
    assert "code" in login.log_in(prompt="login")
    login.provider.key = RSAKey.generate_key(2048, {"kid": "three"})
    told = login.log_in(prompt="login")
    assert told["error"] == "access_denied"
    assert login.provider.paths.count("/jwks") == before + 1


@pytest.mark.parametrize(
    "answer", [reply(200, raw=b"no json"), reply(200, []), reply(500, {}), reply(302, {}, headers={"Location": "/elsewhere"})]
)
def test_an_invalid_answer_of_the_token_endpoint_is_refused(login: Login, answer: bytes) -> None:
    sent = login.leave()
    login.provider.answers["/token"] = answer
    assert refused(login, login.come_back(sent))[0] in ("server_error", "access_denied")
    assert "/elsewhere" not in login.provider.paths


def test_a_code_that_the_provider_does_not_know_is_refused(login: Login) -> None:
    sent = login.leave()
    login.provider.answers["/token"] = reply(400, {"error": "invalid_grant"})
    assert refused(login, login.come_back(sent))[0] == "access_denied"


@pytest.mark.parametrize("token", [None, 5, "", "a.b", "a.b.c", "x" * 20_000])
def test_a_malformed_id_token_is_refused(login: Login, token: Any) -> None:
    sent = login.leave()
    login.provider.answers["/token"] = reply(200, {"access_token": "at", "token_type": "Bearer", "id_token": token})
    assert refused(login, login.come_back(sent))[0] == "access_denied"


def test_an_answer_larger_than_the_limit_for_documents_is_refused(login: Login) -> None:
    sent = login.leave()
    login.provider.answers["/jwks"] = reply(200, {"keys": [], "padding": "p" * 300_000})
    assert refused(login, login.come_back(sent))[0] == "server_error"


def test_no_request_is_sent_to_private_addresses(login: Login, settings: Any) -> None:
    settings.OUTBOUND_PRIVATE_NETWORKS = []
    page = login.browser.get("/authorize", _asked(login))
    assert login.browser.get(page["Location"]).status_code == 502
    assert login.provider.paths == []


# The request to the provider.


def test_the_provider_gets_pkce_a_nonce_and_a_state_that_is_not_the_handle(login: Login) -> None:
    sent = login.leave(login_hint="ada@corp.example.test", ui_locales="de")
    assert sent["redirect_uri"] == f"http://{login.tenant.pk}.example.test/login/callback"
    assert (sent["response_type"], sent["client_id"], sent["scope"]) == ("code", CLIENT_ID, "openid profile email")
    assert (sent["login_hint"], sent["ui_locales"], sent["code_challenge_method"]) == ("ada@corp.example.test", "de", "S256")
    login.come_back(sent)
    form = login.provider.token_form()
    challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
    assert sent["code_challenge"] == challenge
    basic = base64.b64encode(f"{CLIENT_ID}:{SECRET}".encode()).decode()
    received = next(request for request in login.provider.server.received if request.path == "/token")
    assert received.headers["authorization"] == f"Basic {basic}"
    assert "client_secret" not in form


def test_a_second_login_has_its_own_state_nonce_and_verifier(login: Login) -> None:
    first, second = login.leave(), login.leave()
    assert all(first[name] != second[name] for name in ("state", "nonce", "code_challenge"))


def test_parameters_of_the_connection_cannot_replace_the_parameters_that_protect_the_login(tenant: Tenant, provider: Provider) -> None:
    forced = {name: {"value": "forced"} for name in ("state", "nonce", "response_type", "redirect_uri", "hd", "code_challenge")}
    login = login_at(tenant, provider, upstream_params={**forced, "lang": {"alias": "ui_locales"}})
    sent = login.leave(ui_locales="de")
    assert (sent["hd"], sent["lang"]) == ("forced", "de")
    assert [name for name, value in sent.items() if value == "forced"] == ["hd"]


# Users.


def test_the_first_login_creates_the_user_and_later_equal_claims_record_no_event(login: Login) -> None:
    assert "code" in login.log_in()
    (user,) = users(login.tenant)
    assert (user.user_id, user.email, user.email_verified, user.name) == (SUBJECT, "ada@corp.example.test", True, "Ada Lovelace")
    assert "code" in login.log_in(prompt="login")
    assert event_types(login.tenant) == ["user.created"]
    user.refresh_from_db()
    assert (user.logins_count, user.last_ip) == (2, "127.0.0.1")
    context = json.loads(bytes(Event.objects.get(tenant_id=login.tenant.pk, type="user.created").body))["data"]["context"]
    assert context["client"] == {"id": login.client.client_id, "name": login.client.name, "metadata": {}}
    assert (context["request"]["ip"], context["request"]["method"]) == ("127.0.0.1", "GET")
    assert SignIn.objects.of(login.tenant.pk).filter(is_success=True, user_id=SUBJECT, connection="corp").count() == 2


def test_a_later_login_updates_the_profile_from_the_provider(login: Login) -> None:
    login.log_in()
    login.provider.claims = {"name": "Ada King", "email": None, "picture": "javascript:alert(1)"}
    login.log_in(prompt="login")
    (user,) = users(login.tenant)
    assert (user.name, user.email, user.picture) == ("Ada King", "ada@corp.example.test", None)
    assert event_types(login.tenant) == ["user.created", "user.updated"]


@pytest.mark.parametrize("setting", ["on_first_login", "never_on_login"])
def test_a_connection_can_keep_profiles_unchanged(tenant: Tenant, provider: Provider, setting: str) -> None:
    login = login_at(tenant, provider, set_user_root_attributes=setting)
    login.log_in()
    provider.claims = {"name": "Ada King"}
    login.log_in(prompt="login")
    (user,) = users(tenant)
    assert user.name == ("Ada Lovelace" if setting == "on_first_login" else None)
    assert event_types(tenant) == ["user.created"]


def test_a_new_user_is_refused_if_sign_up_is_disabled(tenant: Tenant, provider: Provider) -> None:
    login = login_at(tenant, provider, disable_signup=True)
    assert refused(login, login.come_back(login.leave())) == ("access_denied", "Public signup is disabled")
    assert users(tenant) == []
    create_user(tenant_id=tenant.pk, connection=login.connection, identifier="248289")
    assert "code" in login.log_in()


def test_a_blocked_user_is_refused(login: Login) -> None:
    create_user(tenant_id=login.tenant.pk, connection=login.connection, identifier="248289")
    block_user(tenant_id=login.tenant.pk, user_id=SUBJECT)
    assert refused(login, login.come_back(login.leave())) == ("unauthorized", "user is blocked")


def test_an_email_address_gives_no_access_to_the_account_of_another_user(login: Login) -> None:
    people = create_connection(tenant_id=login.tenant.pk, name="people", strategy="database")
    other = create_user(tenant_id=login.tenant.pk, connection=people, email="ada@corp.example.test", email_verified=True)
    login.log_in()
    assert sorted(user.user_id for user in users(login.tenant)) == sorted([other.user_id, SUBJECT])
    login.provider.changes = {"sub": "another"}
    told = login.log_in(prompt="login")
    assert told["error_description"] == "Another user of this connection has this e-mail address."


def test_a_linked_identity_logs_its_primary_user_in(login: Login) -> None:
    people = create_connection(tenant_id=login.tenant.pk, name="people", strategy="database")
    primary = create_user(tenant_id=login.tenant.pk, connection=people, email="ada@example.test")
    login.log_in()
    link_users(tenant_id=login.tenant.pk, primary_id=primary.user_id, secondary_id=SUBJECT)
    assert LinkedIdentity.objects.of(login.tenant.pk).filter(user=primary).exists()
    assert "code" in login.log_in(prompt="login")
    assert [user.user_id for user in users(login.tenant)] == [primary.user_id]


def test_a_subject_that_does_not_fit_into_an_id_is_refused(login: Login) -> None:
    login.provider.claims = {"sub": "with space"}
    assert refused(login, login.come_back(login.leave()))[0] == "access_denied"


def test_a_subject_that_looks_like_a_user_id_does_not_find_that_user(login: Login) -> None:
    login.log_in()
    login.provider.changes = {"sub": "corp|248289", "email": "eve@corp.example.test"}
    login.browser = Browser(headers={"host": f"{login.tenant.pk}.example.test"})
    assert "code" not in login.log_in()
    assert [user.email for user in users(login.tenant)] == ["ada@corp.example.test"]


def test_missing_claims_are_requested_from_userinfo_and_accepted_only_for_the_same_subject(login: Login) -> None:
    login.provider.claims = {"email": None, "name": None}
    login.provider.userinfo = {"sub": "somebody else", "email": "eve@corp.example.test"}
    assert refused(login, login.come_back(login.leave()))[0] == "access_denied"
    login.provider.userinfo = {"email": "ada@corp.example.test", "preferred_username": "ada"}
    assert "code" in login.log_in()
    (user,) = users(login.tenant)
    assert (user.email, user.email_verified, user.nickname) == ("ada@corp.example.test", False, "ada")


def test_a_provider_without_discovery_works_with_configured_urls(tenant: Tenant, provider: Provider) -> None:
    at = provider.issuer
    addresses = {"authorization_endpoint": f"{at}/authorize", "token_endpoint": f"{at}/token", "jwks_uri": f"{at}/jwks"}
    login = login_at(
        tenant, provider, **addresses, token_endpoint_auth_method="client_secret_post", connection_settings={"pkce": "disabled"}
    )
    assert "code" in login.log_in()
    assert "/.well-known/openid-configuration" not in provider.paths
    assert provider.token_form()["client_secret"] == SECRET
    assert "code_verifier" not in provider.token_form()


# Choice of a connection, and logout.


def test_buttons_and_domains_select_among_the_connections_of_the_client(tenant: Tenant, provider: Provider) -> None:
    login = login_at(tenant, provider, domain_aliases=["Corp.example.test"])
    client = login.client
    assert buttons(client) == []
    assert connection_for_email(client, "Ada@CORP.example.test") == login.connection
    assert connection_for_email(client, "ada@other.example.test") is None
    assert connection_for_email(client, "corp.example.test") is None
    assert named_connection(client, "corp") == login.connection
    shown = update_connection(tenant_id=tenant.pk, connection_id=login.connection.pk, changes={"show_as_button": True})
    assert buttons(client) == [shown]
    update_connection(tenant_id=tenant.pk, connection_id=login.connection.pk, changes={"enabled_clients": []})
    assert (buttons(client), named_connection(client, "corp")) == ([], None)


def test_the_login_page_shows_the_names_and_logos_of_known_providers(tenant: Tenant, provider: Provider) -> None:
    client = login_at(tenant, provider).client
    named = {"github": "", "apple": "", "oauth2": "", "facebook": "Our people"}
    for strategy, display_name in named.items():
        create_connection(
            tenant_id=tenant.pk, name=f"my-{strategy}", strategy=strategy, enabled_clients=[client.client_id], display_name=display_name
        )
    browser = Browser(headers={"host": f"{tenant.pk}.example.test"})
    asked = {"response_type": "code", "client_id": client.client_id, "redirect_uri": "https://app.example.test/callback"}
    content = browser.get(browser.get("/authorize", {**asked, "scope": "openid"})["Location"]).content.decode()
    said = re.findall(r"Continue with ([^<]+?)\s*</a>", content)
    assert said == ["GitHub", "Apple", "my-oauth2", "Our people"]
    assert content.count('<svg class="icon"') == 3


def test_a_federated_logout_sends_the_provider_the_id_token_of_the_provider(login: Login) -> None:
    login.log_in()
    session = Session.objects.of(login.tenant.pk).get()
    address = urlsplit(address_of_logout(session, return_to="https://app.example.test/bye") or "")
    query = parse_qs(address.query)
    assert f"{address.scheme}://{address.netloc}{address.path}" == f"{login.provider.issuer}/logout"
    assert (query["client_id"], query["post_logout_redirect_uri"]) == ([CLIENT_ID], ["https://app.example.test/bye"])
    assert query["id_token_hint"][0].count(".") == 2


def test_a_federated_logout_discovers_the_logout_url_unless_the_connection_configures_it(tenant: Tenant, provider: Provider) -> None:
    at = provider.issuer
    addresses = {"authorization_endpoint": f"{at}/authorize", "token_endpoint": f"{at}/token", "jwks_uri": f"{at}/jwks"}
    login = login_at(tenant, provider, **addresses)
    login.log_in()
    session = Session.objects.of(tenant.pk).get()
    assert (address_of_logout(session, return_to="https://app.example.test/bye") or "").startswith(f"{at}/logout?")
    update_connection(
        tenant_id=tenant.pk,
        connection_id=login.connection.pk,
        changes={"options": {**login.connection.options, "end_session_endpoint": "https://elsewhere.example.test/out?a=b"}},
    )
    listed = address_of_logout(session, return_to="https://app.example.test/bye") or ""
    assert listed.startswith("https://elsewhere.example.test/out?a=b&client_id=")


def _asked(login: Login) -> dict[str, str]:
    asked = {"response_type": "code", "client_id": login.client.client_id, "redirect_uri": "https://app.example.test/callback"}
    return {**asked, "scope": "openid", "connection": "corp"}
