"""The parameter `claims` (OpenID Connect Core 1.0, 5.5) and contexts of authentication, from the request to the tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from authapi.models import AccessToken, AuthorizationCode, Consent, Session
from authapi.protocols.oauth.asked_claims import ClaimsMalformed, read_claims
from authapi.services.api_resources import create_api_resource
from authapi.services.tenant_settings import update_tenant_settings
from authapi.tokens.contexts import ANY_LOGIN, PASSWORD, SECOND_FACTORS
from identity.models import Tenant
from identity.services.failures import Invalid
from tests.authapi.asgi_client import Received, ask_token, read_profile
from tests.authapi.browser import Browser, Page
from tests.authapi.forging import decoded
from tests.authapi.login.conftest import Login, set_client
from tests.authapi.memory import forget_all
from tests.factories.sign_in import CALLBACK, people, person, web_client

MFA = SECOND_FACTORS[0]


class Asking(Login):
    """A login whose client requests claims and exchanges its code."""

    secret = ""

    def claims(self, *, id_token: Any = None, userinfo: Any = None, **changes: Any) -> Page:
        sent = {name: value for name, value in {"id_token": id_token, "userinfo": userinfo}.items() if value is not None}
        return self.ask(claims=json.dumps(sent), **changes)

    def tokens(self, page: Page, **form: Any) -> Received:
        fields = {"client_id": self.client.client_id, "client_secret": self.secret}
        fields |= form or {"grant_type": "authorization_code", "code": page.answer["code"], "redirect_uri": CALLBACK}
        answer = ask_token(self.tenant, fields)
        assert answer.status == 200, answer.body
        return answer

    def id_token(self, page: Page) -> dict[str, Any]:
        return decoded(self.tokens(page).json()["id_token"])[1]


@pytest.fixture
def login(tenant: Tenant) -> Asking:
    client, secret = web_client(tenant)
    connection = people(tenant, client)
    login = Asking(tenant, client, connection, person(connection), Browser(tenant))
    login.secret = secret
    return login


# --- Parsing --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"id_token": []}',
        '{"userinfo": {"email": "yes"}}',
        '{"id_token": {"email": {"essential": "yes"}}}',
        '{"id_token": {"acr": {"values": "1"}}}',
        '{"id_token": {"acr": {"value": "%s"}}}' % ("x" * 301),
        '{"id_token": {"sub": {"value": "a"}}, "userinfo": {"sub": {"value": "b"}}}',
        json.dumps({"id_token": {f"c{number}": None for number in range(101)}}),
    ],
)
def test_an_invalid_claims_object_is_malformed(text: str) -> None:
    with pytest.raises(ClaimsMalformed):
        read_claims(text)


def test_unknown_claims_and_members_are_ignored() -> None:
    asked = read_claims('{"id_token": {"email": {"essential": true, "future": 1}, "verified_claims": null}, "other": 1}')
    assert (asked.id_token, asked.userinfo, asked.requires_context) == (("email",), (), False)


def test_the_client_gets_an_error_for_a_malformed_parameter(login: Asking) -> None:
    assert login.ask(claims="[]").answer["error"] == "invalid_request"


# --- Claims of the profile ------------------------------------------------------------------------------------------------


def test_each_claim_is_returned_only_where_it_was_requested(login: Asking) -> None:
    answer = login.log_in(login.claims(id_token={"email": {"essential": True}, "phone_number": None}, userinfo={"name": None}))
    members = login.tokens(answer).json()
    _, id_token = decoded(members["id_token"])
    assert (id_token["email"], "name" in id_token, "email_verified" in id_token) == ("ada@example.test", False, False)
    # The user has no phone number, so the requested claim is left out (5.5.1).
    assert "phone_number" not in id_token
    profile = read_profile(login.tenant, members["access_token"]).json()
    assert profile == {"sub": login.user.user_id, "name": "Ada Lovelace"}
    assert (AccessToken.objects.of(login.tenant.pk).get().asked or {})["userinfo"] == ["name"]


def test_a_login_for_an_api_and_its_refreshes_return_the_requested_claims(login: Asking) -> None:
    create_api_resource(tenant_id=login.tenant.pk, identifier="urn:orders", settings={"allow_offline_access": True})
    asked = {"userinfo": {"email": None}, "id_token": {"name": None}, "audience": "urn:orders", "scope": "openid offline_access"}
    first = login.tokens(login.log_in(login.claims(**asked))).json()
    second = login.tokens(Page(0, {}, [], b""), grant_type="refresh_token", refresh_token=first["refresh_token"]).json()
    for members in (first, second):
        assert read_profile(login.tenant, members["access_token"]).json() == {"sub": login.user.user_id, "email": "ada@example.test"}
        assert decoded(members["id_token"])[1]["name"] == "Ada Lovelace"


def test_a_request_without_claims_stores_no_claims_and_its_tokens_contain_none(login: Asking) -> None:
    page = login.log_in(login.ask())
    assert AuthorizationCode.objects.of(login.tenant.pk).get().asked is None
    id_token = login.id_token(page)
    assert not {"email", "name", "acr"} & id_token.keys()


def test_claims_without_the_scope_openid_have_no_effect(login: Asking) -> None:
    create_api_resource(tenant_id=login.tenant.pk, identifier="urn:orders", scopes=[{"value": "read", "description": ""}])
    page = login.log_in(login.claims(userinfo={"email": None}, id_token={"email": None}, scope="read", audience="urn:orders"))
    members = login.tokens(page).json()
    assert "id_token" not in members
    assert "userinfo_claims" not in decoded(members["access_token"])[1]


def test_a_user_of_a_third_party_client_consents_to_each_claim_once(login: Asking) -> None:
    set_client(login, is_first_party=False)
    page = login.browser.follow(login.log_in(login.claims(userinfo={"phone_number": None, "name": None})))
    assert "See your phone number" in page.text
    assert "See your name" in page.text
    login.browser.submit(page, answer="allow")
    assert Consent.objects.of(login.tenant.pk).get().asked == {"claims": ["phone_number", "name"]}
    assert "code" in login.claims(id_token={"name": None}, prompt="none").answer
    assert login.claims(userinfo={"email": None}, prompt="none").answer["error"] == "consent_required"
    # A requested scope already covers the claim.
    page = login.browser.follow(login.claims(userinfo={"email": None}, scope="openid email"))
    assert page.text.count("See your email address") == 1


# --- One user -------------------------------------------------------------------------------------------------------------


def test_a_user_other_than_the_requested_user_is_refused(login: Asking) -> None:
    assert login.claims(id_token={"sub": {"value": login.user.user_id}}, prompt="none").answer["error"] == "login_required"
    login.begin_session()
    assert "code" in login.claims(id_token={"sub": {"value": login.user.user_id}}, prompt="none").answer
    other = {"sub": {"value": "database|other"}}
    assert login.claims(id_token=other, prompt="none").answer["error"] == "login_required"
    assert login.claims(userinfo=other, prompt="none").answer["error"] == "login_required"
    # After a new login, the user is still refused, because the request names another user.
    assert login.log_in(login.claims(id_token=other)).answer["error"] == "login_required"


def test_an_essential_auth_time_is_in_the_token(login: Asking) -> None:
    answer = login.log_in(login.claims(id_token={"auth_time": {"essential": True}}))
    assert isinstance(login.id_token(answer)["auth_time"], int)


# --- Contexts of authentication -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"acr_values": PASSWORD}, PASSWORD),
        ({"acr_values": f"{MFA} {ANY_LOGIN} {PASSWORD}"}, ANY_LOGIN),
        # The voluntary context is not met (3.1.2.1).
        ({"acr_values": MFA}, None),
        ({"acr_values": "urn:unknown"}, None),
        ({"claims": '{"id_token": {"acr": null}}'}, PASSWORD),
        ({"claims": json.dumps({"id_token": {"acr": {"values": [MFA]}}})}, None),
        ({"claims": json.dumps({"id_token": {"acr": {"essential": True, "values": [MFA, PASSWORD]}}})}, PASSWORD),
        # An essential request without values accepts any context (5.5.1).
        ({"claims": '{"id_token": {"acr": {"essential": true}}}'}, PASSWORD),
    ],
)
def test_both_tokens_contain_the_achieved_context(login: Asking, asked: dict[str, str], expected: str | None) -> None:
    create_api_resource(tenant_id=login.tenant.pk, identifier="urn:orders")
    members = login.tokens(login.log_in(login.ask(audience="urn:orders", **asked))).json()
    assert decoded(members["id_token"])[1].get("acr") == expected
    assert decoded(members["access_token"])[1].get("acr") == expected


@pytest.mark.parametrize("value", [MFA, "urn:unknown"])
def test_an_essential_context_that_no_login_can_meet_is_refused_before_any_page(login: Asking, value: str) -> None:
    answer = login.claims(id_token={"acr": {"essential": True, "value": value}})
    assert answer.location.startswith(CALLBACK)
    assert answer.answer["error"] == "unmet_authentication_requirements"


def test_a_session_that_does_not_meet_an_essential_context_requires_a_new_login(login: Asking) -> None:
    login.begin_session()
    Session.objects.of(login.tenant.pk).update(methods=[{"name": "otp", "timestamp": "2031-01-01T00:00:00Z"}])
    asked = {"acr": {"essential": True, "values": [PASSWORD]}}
    assert login.claims(id_token=asked, prompt="none").answer["error"] == "login_required"
    # A voluntary context is ignored.
    assert "code" in login.ask(acr_values=PASSWORD, prompt="none").answer
    page = login.claims(id_token=asked)
    assert "/u/login" in page.location
    assert login.id_token(login.log_in(page))["acr"] == PASSWORD


def test_a_new_login_that_does_not_meet_the_context_fails(login: Asking) -> None:
    page = login.claims(id_token={"acr": {"essential": True, "values": [PASSWORD]}})
    form = login.browser.follow(page)
    # The tenant removes the context while the page is open.
    update_tenant_settings(tenant_id=login.tenant.pk, changes={"acr_values_supported": [ANY_LOGIN]})
    forget_all()
    assert login.log_in(form).answer["error"] == "unmet_authentication_requirements"


def test_a_tenant_can_limit_the_supported_contexts(login: Asking) -> None:
    assert login.browser.get("/.well-known/openid-configuration").text.count(f'"acr_values_supported":["{PASSWORD}","{ANY_LOGIN}"]') == 1
    update_tenant_settings(tenant_id=login.tenant.pk, changes={"acr_values_supported": [ANY_LOGIN]})
    forget_all()
    assert "acr" not in login.id_token(login.log_in(login.ask(acr_values=PASSWORD)))
    with pytest.raises(Invalid, match="No login"):
        update_tenant_settings(tenant_id=login.tenant.pk, changes={"acr_values_supported": [MFA]})
