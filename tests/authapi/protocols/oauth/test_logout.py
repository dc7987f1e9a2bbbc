"""Logging out: which sessions end, which clients are notified, and to which URLs the browser is redirected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from authapi import tenant_settings
from authapi.clients.logout_addresses import is_allowed
from authapi.login.browser import with_parameters
from authapi.models import LogoutNotice, Session, SignIn, TenantSettings
from authapi.services.api_resources import create_api_resource
from identity.services.tenants import create_tenant
from tests.authapi.browser import Browser
from tests.authapi.login.conftest import Login, set_client
from tests.factories.sign_in import people, person, web_client

HOME = "https://app.example.test/bye"


@pytest.fixture
def inside(login: Login) -> Login:
    """A user who is logged in at a client that requests notices of logouts."""
    set_client(
        login,
        post_logout_redirect_uris=f"{HOME} https://app.example.test/second",
        grant_types=["authorization_code", "implicit"],
        settings={"oidc_logout": {"backchannel_logout_urls": ["https://app.example.test/back-channel"]}},
    )
    login.begin_session()
    return login


def id_token(login: Login) -> str:
    return login.ask(response_type="id_token", nonce="n", prompt="none").answer["id_token"]


def has_session(login: Login) -> bool:
    return Session.objects.of(login.tenant.pk).filter(user=login.user).exists()


def allow_for_tenant(login: Login, **values: Any) -> None:
    TenantSettings(tenant=login.tenant, values=values).save()
    tenant_settings.remembered_settings.clear()


# --- URLs -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "registered", "is_good"),
    [
        (HOME, HOME, True),
        (f"{HOME}?then=1#top", HOME, True),
        (HOME, f"{HOME}?then=1", True),
        ("https://app.example.test/", "https://app.example.test", True),
        ("https://APP.example.test/bye", HOME, True),
        ("https://a.example.test/x", "https://*.example.test/x", True),
        ("com.example.app://bye", "com.example.app://bye", True),
        ("https://a.b.example.test/x", "https://*.example.test/x", False),
        ("https://example.test/x", "https://*.example.test/x", False),
        ("https://evil.test/.example.test/x", "https://*.example.test/x", False),
        ("https://evil.test#.example.test/x", "https://*.example.test/x", False),
        ("https://evil.test\\.example.test/x", "https://*.example.test/x", False),
        ("https://*.example.test/x", "https://*.example.test/x", False),
        ("https://u@app.example.test/bye", HOME, False),
        ("https://app.example.test:444/bye", HOME, False),
        ("http://app.example.test/bye", HOME, False),
        ("https://app.example.test/bye/", HOME, False),
        ("https://app.example.test/bye\\..", HOME, False),
        ("https://app.example.test.evil.test/bye", HOME, False),
        ("//app.example.test/bye", HOME, False),
        ("/bye", HOME, False),
        ("javascript:alert(1)", HOME, False),
        ("https://app.example.test/bye\n", HOME, False),
        ("https://[bad/bye", HOME, False),
        ("", HOME, False),
    ],
)
def test_only_registered_addresses_are_allowed(address: str, registered: str, is_good: bool) -> None:
    assert is_allowed(address, [registered]) is is_good


def test_the_state_is_added_to_the_query_of_any_address() -> None:
    for address, expected in [
        ("https://a.test/bye", "https://a.test/bye?state=s"),
        ("https://a.test/bye?x=1", "https://a.test/bye?x=1&state=s"),
        ("https://a.test/bye?x=1#top", "https://a.test/bye?x=1&state=s#top"),
        ("https://a.test/bye?", "https://a.test/bye?state=s"),
    ]:
        assert with_parameters(address, {"state": "s"}) == expected


# --- /v2/logout ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["https://evil.test/", "/u/login", "https://app.example.test.evil.test/bye"])
def test_a_request_with_a_forbidden_address_ends_no_session(inside: Login, address: str) -> None:
    for parameters in ({"client_id": inside.client.client_id, "returnTo": address}, {"returnTo": address}):
        page = inside.browser.get("/v2/logout", parameters)
        assert (page.status, "is not in the list of allowed logout URLs" in page.text) == (400, True)
    assert has_session(inside)


def test_a_logout_of_a_client_accepts_only_the_addresses_of_this_client(inside: Login) -> None:
    allow_for_tenant(inside, allowed_logout_urls=["https://www.example.test/"])
    own, tenants = {"client_id": inside.client.client_id}, "https://www.example.test/"
    assert inside.browser.get("/v2/logout", {**own, "returnTo": tenants}).status == 400
    assert inside.browser.get("/v2/logout", {"returnTo": HOME}).status == 400
    assert inside.browser.get("/v2/logout", {"returnTo": tenants}).location == tenants


def test_a_request_with_an_unknown_client_ends_no_session(inside: Login) -> None:
    assert inside.browser.get("/v2/logout", {"client_id": "nobody"}).status == 400
    assert has_session(inside)


def test_a_logout_that_names_only_the_client_redirects_to_the_first_registered_address(inside: Login) -> None:
    page = inside.browser.get("/v2/logout", {"client_id": inside.client.client_id})
    assert (page.status, page.location) == (302, HOME)
    assert not has_session(inside)
    assert "session" not in inside.browser.cookies
    assert [notice.url for notice in LogoutNotice.objects.of(inside.tenant.pk)] == ["https://app.example.test/back-channel"]
    assert SignIn.objects.of(inside.tenant.pk).get(type="slo").user_id == inside.user.user_id
    assert inside.ask(prompt="none").answer["error"] == "login_required"


def test_a_logout_without_a_session_still_redirects(login: Login) -> None:
    set_client(login, post_logout_redirect_uris=HOME)
    assert login.browser.get("/v2/logout", {"client_id": login.client.client_id, "returnTo": f"{HOME}?x=1"}).location == f"{HOME}?x=1"


def test_a_page_confirms_the_logout_if_there_is_no_return_address(inside: Login) -> None:
    page = inside.browser.get("/v2/logout", {"federated": ""})
    assert (page.status, "You are logged out" in page.text) == (200, True)
    assert not has_session(inside)


def test_a_logout_ends_only_the_session_of_its_browser(inside: Login) -> None:
    first, inside.browser = inside.browser, Browser(inside.tenant)
    inside.begin_session()
    inside.browser.get("/v2/logout")
    inside.browser = first
    assert "code" in inside.ask(prompt="none").answer


# Requests that another site can make a browser send without a navigation, and requests without Fetch Metadata.
ASIDE: dict[str, Any] = {
    "image": {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    "fetch": {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
    "frame": {"Sec-Fetch-Dest": "iframe"},
    "prefetch": {"Sec-Purpose": "prefetch"},
    "prerender": {"Sec-Purpose": "prefetch;prerender"},
    "two modes": {"Sec-Fetch-Mode": "navigate, navigate"},
    "old browser": {"Sec-Fetch-Mode": "", "Sec-Fetch-Dest": ""},
}


@pytest.mark.parametrize("headers", ASIDE.values(), ids=ASIDE)
def test_a_logout_request_that_is_not_a_navigation_shows_a_question_first(inside: Login, headers: dict[str, Any]) -> None:
    sent = {"client_id": inside.client.client_id, "returnTo": f"{HOME}?x=1"}
    page = inside.browser.get("/v2/logout", sent, **headers)
    assert (page.status, "Log out?" in page.text) == (200, True)
    assert has_session(inside)
    assert not LogoutNotice.objects.of(inside.tenant.pk).exists()
    assert inside.browser.submit(page, answer="no").location == f"{HOME}?x=1"
    assert has_session(inside)
    assert inside.browser.submit(page, answer="yes").location == f"{HOME}?x=1"
    assert not has_session(inside)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "same-origin", "none"])
def test_a_navigation_logs_out_immediately(inside: Login, site: str) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert inside.browser.get("/v2/logout", {"client_id": inside.client.client_id}, **headers).location == HOME
    assert not has_session(inside)


def test_a_head_request_ends_no_session(inside: Login) -> None:
    for path in ("/v2/logout", "/oidc/logout"):
        inside.browser.send("HEAD", f"{path}?client_id={inside.client.client_id}")
        assert has_session(inside)


def test_a_user_who_declines_the_logout_sees_that_they_are_still_logged_in(inside: Login) -> None:
    page = inside.browser.get("/v2/logout", **ASIDE["old browser"])
    kept = inside.browser.submit(page, answer="no")
    assert (kept.status, "You are still logged in" in kept.text) == (200, True)
    assert has_session(inside)


def test_the_question_can_redirect_to_the_url_scheme_of_an_application(inside: Login) -> None:
    set_client(inside, post_logout_redirect_uris="com.example.app://bye")
    page = inside.browser.get("/v2/logout", {"client_id": inside.client.client_id}, **ASIDE["old browser"])
    assert "form-action 'self' https: http: com.example.app:;" in page.headers["content-security-policy"]
    assert inside.browser.submit(page, answer="yes").location == "com.example.app://bye"


def test_the_form_of_the_question_contains_the_parameter_for_a_federated_logout(inside: Login) -> None:
    page = inside.browser.get("/v2/logout", {"federated": ""}, **ASIDE["image"])
    assert page.fields()["federated"] == "1"


# --- /oidc/logout ----------------------------------------------------------------------------------------------------------------


def test_an_id_token_hint_that_matches_the_session_ends_the_session_immediately(inside: Login) -> None:
    sent = {"id_token_hint": id_token(inside), "post_logout_redirect_uri": HOME, "state": "s&t"}
    page = inside.browser.post("/oidc/logout", sent)
    assert (page.status, page.location) == (303, f"{HOME}?state=s%26t")
    assert not has_session(inside)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"client_id": "other"}, "The parameter client_id does not belong to the id_token_hint."),
        ({"logout_hint": "ses_other"}, "The parameter logout_hint does not belong to the id_token_hint."),
        ({"id_token_hint": "no.id.token"}, "The id_token_hint is not an id token of this issuer."),
        ({"post_logout_redirect_uri": "https://evil.test/"}, "is not in the list of allowed logout URLs"),
        ({"state": ["a", "b"]}, "The parameter state is repeated."),
    ],
)
def test_a_request_with_invalid_or_contradictory_parameters_ends_no_session(inside: Login, changes: dict[str, Any], text: str) -> None:
    page = inside.browser.get("/oidc/logout", {"id_token_hint": id_token(inside), "post_logout_redirect_uri": HOME, **changes})
    assert (page.status, text in page.text) == (400, True)
    assert has_session(inside)


def test_only_an_id_token_of_this_tenant_is_accepted_as_id_token_hint(inside: Login) -> None:
    other = create_tenant(tenant_id=f"{inside.tenant.pk}-b", name="b", host=f"{inside.tenant.pk}-b.example.test")
    client, _ = web_client(other, grant_types=["authorization_code", "implicit"])
    connection = people(other, client)
    foreign = Login(other, client, connection, person(connection), Browser(other))
    foreign.begin_session()
    assert inside.browser.get("/oidc/logout", {"id_token_hint": id_token(foreign)}).status == 400
    api = create_api_resource(tenant_id=inside.tenant.pk, identifier="https://orders.example.test/")
    access_token = inside.ask(response_type="token", audience=api.identifier, prompt="none").answer["access_token"]
    assert inside.browser.get("/oidc/logout", {"id_token_hint": access_token}).status == 400
    assert has_session(inside)


def test_a_logout_without_an_id_token_hint_asks_the_user(inside: Login) -> None:
    sent = {"client_id": inside.client.client_id, "post_logout_redirect_uri": HOME, "state": "s"}
    page = inside.browser.get("/oidc/logout", sent)
    assert (page.status, "ada@example.test" in page.text) == (
        200,
        True,
    )
    assert has_session(inside)
    assert inside.browser.submit(page, answer="no").location == f"{HOME}?state=s"
    assert has_session(inside)
    assert inside.browser.submit(page, answer="yes").location == f"{HOME}?state=s"
    assert not has_session(inside)


def test_an_answer_posted_by_another_site_ends_no_session(inside: Login) -> None:
    page = inside.browser.get("/oidc/logout")
    for fields in ({"answer": "yes"}, {**page.fields(), "answer": "yes", "form_token": "x"}):
        assert inside.browser.post("/u/logout", fields).status == 400
    assert inside.browser.post("/u/logout", {**page.fields(), "answer": "yes"}, Origin="https://evil.test").status == 400
    assert has_session(inside)


def test_only_the_id_of_the_current_session_is_accepted_as_logout_hint(inside: Login) -> None:
    sid = Session.objects.of(inside.tenant.pk).get().pk
    assert "Log out?" in inside.browser.get("/oidc/logout", {"logout_hint": "ses_other"}).text
    assert "You are logged out" in inside.browser.get("/oidc/logout", {"logout_hint": sid}).text
    assert not has_session(inside)


def test_a_tenant_can_switch_the_question_off(inside: Login) -> None:
    allow_for_tenant(inside, sessions={"oidc_logout_prompt_enabled": False})
    inside.browser.get("/oidc/logout")
    assert not has_session(inside)


@pytest.mark.parametrize("headers", ASIDE.values(), ids=ASIDE)
def test_switching_the_question_off_affects_only_navigations(inside: Login, headers: dict[str, Any]) -> None:
    allow_for_tenant(inside, sessions={"oidc_logout_prompt_enabled": False})
    page = inside.browser.get("/oidc/logout", **headers)
    assert "Log out?" in page.text
    assert has_session(inside)


def test_a_hint_for_another_user_shows_the_question_even_if_it_is_switched_off(inside: Login) -> None:
    hint = id_token(inside)
    allow_for_tenant(inside, sessions={"oidc_logout_prompt_enabled": False})
    person(inside.connection, email="eve@example.test")
    inside.log_in(inside.ask(prompt="login"), identifier="eve@example.test")
    page = inside.browser.get("/oidc/logout", {"id_token_hint": hint})
    assert "eve@example.test" in page.text
    assert Session.objects.of(inside.tenant.pk).count() == 1


# --- JSON ------------------------------------------------------------------------------------------------------------------------


def test_a_logout_can_be_requested_as_json(inside: Login) -> None:
    body = {"id_token_hint": id_token(inside), "post_logout_redirect_uri": HOME, "state": "s", "federated": True, "logout_hint": None}
    page = inside.browser.send("POST", "/oidc/logout", body=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
    assert (page.status, page.location) == (303, f"{HOME}?state=s")
    assert not has_session(inside)


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"state": {"a": 1}}', b'{"post_logout_redirect_uri": "https://evil.test/"}'])
def test_an_invalid_json_request_ends_no_session(inside: Login, body: bytes) -> None:
    assert inside.browser.send("POST", "/oidc/logout", body=body, headers={"Content-Type": "application/json"}).status == 400
    assert has_session(inside)


def test_json_with_another_content_type_is_not_parsed(inside: Login) -> None:
    body = json.dumps({"id_token_hint": id_token(inside), "post_logout_redirect_uri": HOME}).encode()
    inside.browser.send("POST", "/oidc/logout", body=body, headers={"Content-Type": "text/plain"})
    assert has_session(inside)
