"""Authorization details (RFC 9396), from the request to the token.

They are checked and shown, the user allows them, and nothing extends them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from authapi.models import ApiResource, AuthorizationCode, Consent, RefreshToken
from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from authapi.services.resource_changes import update_api_resource
from authapi.services.tenant_settings import update_tenant_settings
from identity.models import Tenant, User
from tests.authapi.asgi_client import Received, ask_token, post
from tests.authapi.browser import Browser, Page
from tests.authapi.forging import decoded
from tests.authapi.login.conftest import Login, set_client
from tests.authapi.memory import forget_all
from tests.authapi.pushing import Pusher
from tests.factories.sign_in import CALLBACK, people, person, web_client

API = "https://bank.example.test"
SCHEMA = {
    "type": "object",
    "properties": {
        "type": {},
        "actions": {"type": "array", "items": {"enum": ["initiate", "cancel"]}, "minItems": 1},
        "amount": {"type": "number", "exclusiveMinimum": 0},
        "payee": {"type": "string", "title": "Recipient"},
        "note": {"type": "string"},
        "locations": {},
    },
    "required": ["amount", "payee"],
    "additionalProperties": False,
}
TYPES = [
    {"type": "payment", "title": "Payment", "sentence": "Pay {amount} EUR to {payee}.", "schema": SCHEMA},
    {"type": "account_access"},
]
PAYMENT = {"type": "payment", "actions": ["initiate", "cancel"], "amount": 12.5, "payee": "Ada & Sons"}
ACCOUNT = {"type": "account_access", "identifier": "DE02"}
OTHER = "urn:stock"


@dataclass
class Bank:
    """A client of the tenant, a user at a browser, and an API with types of authorization details."""

    login: Login
    secret: str
    api: ApiResource
    sent: dict[str, Any] = field(default_factory=dict)

    @property
    def tenant(self) -> Tenant:
        return self.login.tenant

    def ask(self, *details: Any, **changes: Any) -> Page:
        return self.login.ask(audience=API, authorization_details=json.dumps(details) if details else None, **changes)

    def consent_page(self, *details: Any, **changes: Any) -> Page:
        """Send a request, log in if the service asks for a login, and return the consent page."""
        answer = self.ask(*details, **changes)
        if "/u/login" in answer.location:
            answer = self.login.log_in(answer)
        assert "/u/consent" in answer.location, answer.location
        return self.login.browser.follow(answer)

    def code(self, *details: Any, **changes: Any) -> str:
        page = self.login.browser.submit(self.consent_page(*details, **changes), answer="allow")
        return page.answer["code"]

    def token(self, **form: Any) -> Received:
        fields = {"client_id": self.login.client.client_id, "client_secret": self.secret, **form}
        return ask_token(self.tenant, {name: value for name, value in fields.items() if value is not None})

    def exchange(self, code: str, **form: Any) -> Received:
        return self.token(grant_type="authorization_code", code=code, redirect_uri=CALLBACK, **form)

    def refresh(self, token: str, **form: Any) -> Received:
        return self.token(grant_type="refresh_token", refresh_token=token, **form)


@pytest.fixture
def bank(tenant: Tenant) -> Bank:
    client, secret = web_client(tenant)
    connection = people(tenant, client)
    settings = {"authorization_details": TYPES, "allow_offline_access": True}
    api = create_api_resource(tenant_id=tenant.pk, identifier=API, name="Bank", settings=settings)
    create_api_resource(tenant_id=tenant.pk, identifier=OTHER, settings={"authorization_details": TYPES[1:], "allow_offline_access": True})
    return Bank(Login(tenant, client, connection, person(connection), Browser(tenant)), secret, api)


def granted(answer: Received) -> list[Any]:
    """Return the details in an answer of the token endpoint. Assert that the token in the answer contains the same details."""
    assert answer.status == 200, answer.body
    members = answer.json()
    _, claims = decoded(members["access_token"])
    assert claims.get("authorization_details") == members.get("authorization_details")
    return list(members.get("authorization_details", []))


def refused(answer: Received) -> str:
    assert (answer.status, answer.json()["error"]) == (400, "invalid_authorization_details"), answer.body
    return str(answer.json()["error_description"])


# --- Requests -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ("{", "not valid JSON"),
        ("[]", "at least one object"),
        ('[{"type": "unknown"}]', "has no such type"),
        (json.dumps([{**PAYMENT, "amount": -1}]), "Object 1 of the authorization_details: amount"),
        (json.dumps([{**PAYMENT, "hidden": "x"}]), "hidden"),
        (json.dumps([{**PAYMENT, "locations": ["https://other.example.test/"]}]), "locations"),
    ],
)
def test_the_client_gets_an_error_about_invalid_details_before_any_page(bank: Bank, sent: str, text: str) -> None:
    answer = bank.login.ask(audience=API, authorization_details=sent)
    assert answer.location.startswith(CALLBACK)
    assert (answer.answer["error"], text in answer.answer["error_description"]) == ("invalid_authorization_details", True)
    assert "-1" not in answer.answer["error_description"]
    pushed = Pusher(bank.tenant, bank.login.client, bank.secret).push(audience=API, authorization_details=sent)
    assert text in refused(pushed)


def test_details_require_the_audience_of_an_api_with_their_types(bank: Bank) -> None:
    for audience in (None, OTHER):
        answer = bank.login.ask(audience=audience, authorization_details=json.dumps([PAYMENT])).answer
        assert answer["error"] == "invalid_authorization_details"


def test_a_client_can_use_only_types_that_it_registered_or_was_granted(bank: Bank) -> None:
    set_client(bank.login, settings={"authorization_details_types": ["account_access"]})
    forget_all()
    assert bank.ask(PAYMENT).answer["error"] == "invalid_authorization_details"
    assert "/u/login" in bank.ask(ACCOUNT).location

    set_client(bank.login, settings={"authorization_details_types": None})
    policy = {"subject_type_authorization": {"user": {"policy": "require_client_grant"}, "client": {"policy": "deny_all"}}}
    update_api_resource(tenant_id=bank.tenant.pk, resource_id=bank.api.pk, changes={"settings": policy})
    create_client_grant(
        tenant_id=bank.tenant.pk,
        client_id=bank.login.client.client_id,
        api_resource=bank.api,
        subject_type="user",
        settings={"authorization_details_types": ["payment"]},
    )
    forget_all()
    assert bank.ask(ACCOUNT).answer["error"] == "invalid_authorization_details"
    assert "/u/login" in bank.ask(PAYMENT).location


# --- The consent page -----------------------------------------------------------------------------------------------------


def test_the_consent_page_describes_the_details_in_words_and_hides_no_member(bank: Bank) -> None:
    page = bank.consent_page({**PAYMENT, "payee": "<b>Mallory</b>\u202e", "note": "rent"}, ACCOUNT)
    html = page.body.decode()
    assert "Pay <strong><bdi>12.5</bdi></strong> EUR to <strong><bdi>&lt;b&gt;Mallory&lt;/b&gt;\ufffd</bdi></strong>." in html
    assert "<h2><bdi>Payment</bdi></h2>" in html
    assert "<dt><bdi>note</bdi></dt><dd><bdi>rent</bdi></dd>" in html
    assert "<dt><bdi>Actions</bdi></dt><dd><bdi>initiate, cancel</bdi></dd>" in html
    # If a type has neither a title nor a sentence, the page shows the name of the type and every member.
    assert "<h2><bdi>account_access</bdi></h2>" in html
    assert "<dd><bdi>DE02</bdi></dd>" in html
    assert "<b>" not in html


def test_the_page_shows_a_member_whose_name_equals_a_path_in_the_sentence(bank: Bank) -> None:
    types = [{"type": "transfer", "sentence": "Send {sum.value}."}]
    update_api_resource(tenant_id=bank.tenant.pk, resource_id=bank.api.pk, changes={"settings": {"authorization_details": types}})
    forget_all()
    html = bank.consent_page({"type": "transfer", "sum": {"value": 1}, "sum.value": 1_000_000}).body.decode()
    assert "Send <strong><bdi>1</bdi></strong>." in html
    assert "<dd><bdi>1000000</bdi></dd>" in html


def test_the_allowed_details_are_stored_and_returned_at_every_step(bank: Bank) -> None:
    code = bank.code(PAYMENT, ACCOUNT, scope="openid offline_access")
    assert AuthorizationCode.objects.of(bank.tenant.pk).get().asked == {"details": [PAYMENT, ACCOUNT]}
    first = bank.exchange(code)
    assert granted(first) == [PAYMENT, ACCOUNT]
    second = bank.refresh(first.json()["refresh_token"])
    assert granted(second) == [PAYMENT, ACCOUNT]


def test_a_user_who_declines_grants_nothing(bank: Bank) -> None:
    page = bank.login.browser.submit(bank.consent_page(PAYMENT), answer="deny")
    assert page.answer["error"] == "access_denied"
    assert not Consent.objects.of(bank.tenant.pk).exists()


def test_a_new_amount_requires_consent_again_but_the_same_details_do_not(bank: Bank) -> None:
    bank.code(PAYMENT)
    again = bank.ask({**PAYMENT, "actions": ["initiate"]}, prompt="none")
    assert "code" in again.answer
    assert bank.ask({**PAYMENT, "amount": 12.6}, prompt="none").answer["error"] == "consent_required"
    assert "/u/consent" in bank.ask({**PAYMENT, "payee": "Mallory"}).location
    # Another client needs its own consent.
    other, _ = web_client(bank.tenant, name="Other")
    people(bank.tenant, other, name="more")
    bank.login.connection.enabled_clients.append(other.client_id)
    bank.login.connection.save()
    answer = bank.login.ask(client_id=other.client_id, audience=API, authorization_details=json.dumps([PAYMENT]), prompt="none")
    assert answer.answer["error"] == "consent_required"


def test_a_first_party_client_needs_consent_only_for_details(bank: Bank) -> None:
    assert bank.login.client.is_first_party
    bank.login.begin_session()
    assert "code" in bank.ask(prompt="none").answer
    assert bank.ask(PAYMENT, prompt="none").answer["error"] == "consent_required"


def test_a_pushed_request_can_contain_details_as_json_and_as_text(bank: Bank) -> None:
    pusher = Pusher(bank.tenant, bank.login.client, bank.secret)
    for as_json, sent in ((False, json.dumps([PAYMENT])), (True, [PAYMENT])):
        handle = pusher.push(audience=API, authorization_details=sent, as_json=as_json).json()["request_uri"]
        # The details in this URL are ignored, because the URL contains the handle of a pushed request.
        beside = {"client_id": bank.login.client.client_id, "request_uri": handle, "authorization_details": json.dumps([ACCOUNT])}
        page = bank.login.browser.get("/authorize", beside)
        page = bank.login.log_in(page) if "/u/login" in page.location else page
        if "/u/consent" in page.location:
            page = bank.login.browser.submit(bank.login.browser.follow(page), answer="allow")
        assert granted(bank.exchange(page.answer["code"])) == [PAYMENT]


def test_an_answer_through_the_browser_contains_the_details_of_its_token_as_json(bank: Bank) -> None:
    set_client(bank.login, grant_types=["authorization_code", "implicit"])
    page = bank.consent_page(PAYMENT, response_type="token", nonce="n")
    members = bank.login.browser.submit(page, answer="allow").answer
    assert json.loads(members["authorization_details"]) == [PAYMENT]
    assert decoded(members["access_token"])[1]["authorization_details"] == [PAYMENT]


# --- At the token endpoint ------------------------------------------------------------------------------------------------


def test_an_exchange_can_request_fewer_details_and_the_refresh_token_keeps_all(bank: Bank) -> None:
    code = bank.code(PAYMENT, ACCOUNT, scope="openid offline_access")
    less = {**PAYMENT, "actions": ["initiate"]}
    answer = bank.exchange(code, authorization_details=json.dumps([less]))
    assert granted(answer) == [less]
    assert RefreshToken.objects.of(bank.tenant.pk).get().asked == {"details": [PAYMENT, ACCOUNT]}
    assert granted(bank.refresh(answer.json()["refresh_token"])) == [PAYMENT, ACCOUNT]


@pytest.mark.parametrize(
    "more",
    [
        {**PAYMENT, "amount": 99},
        {**PAYMENT, "amount": 1},
        {name: value for name, value in PAYMENT.items() if name != "actions"},
        {"type": "account_access", "identifier": "DE03"},
        {"type": "unknown"},
    ],
    ids=["a higher amount", "another amount", "without actions", "another account", "unknown"],
)
def test_an_exchange_or_a_refresh_cannot_add_to_the_details_that_the_user_allowed(bank: Bank, more: dict[str, Any]) -> None:
    code = bank.code(PAYMENT, ACCOUNT, scope="openid offline_access")
    assert "more than was granted" in refused(bank.exchange(code, authorization_details=json.dumps([more])))
    # The code is still valid.
    token = bank.exchange(code).json()["refresh_token"]
    assert "more than was granted" in refused(bank.refresh(token, authorization_details=json.dumps([PAYMENT, more])))
    assert granted(bank.refresh(token, authorization_details=json.dumps([ACCOUNT]))) == [ACCOUNT]


def test_a_shorter_list_must_still_match_the_schema(bank: Bank) -> None:
    types = [{"type": "payment", "schema": {"properties": {"actions": {"contains": {"const": "initiate"}}}}}]
    update_api_resource(tenant_id=bank.tenant.pk, resource_id=bank.api.pk, changes={"settings": {"authorization_details": types}})
    forget_all()
    code = bank.code(PAYMENT)
    assert "actions" in refused(bank.exchange(code, authorization_details=json.dumps([{**PAYMENT, "actions": ["cancel"]}])))


def test_a_login_without_details_cannot_get_details_later(bank: Bank) -> None:
    bank.login.begin_session()
    code = bank.ask(scope="openid offline_access").answer["code"]
    assert "more than was granted" in refused(bank.exchange(code, authorization_details=json.dumps([PAYMENT])))
    assert granted(bank.exchange(code)) == []


def test_details_do_not_apply_to_another_api(bank: Bank) -> None:
    policy = {"rotation_type": "non-rotating", "expiration_type": "non-expiring", "policies": [{"audience": OTHER, "scope": []}]}
    set_client(bank.login, settings={"refresh_token": policy})
    forget_all()
    token = bank.exchange(bank.code(ACCOUNT, scope="openid offline_access")).json()["refresh_token"]
    elsewhere = bank.refresh(token, audience=OTHER)
    assert decoded(elsewhere.json()["access_token"])[1]["aud"] in (OTHER, [OTHER, f"{bank.login.issuer}userinfo"])
    assert granted(elsewhere) == []
    # The other API has the same type, and the user has not allowed it there.
    assert "more than was granted" in refused(bank.refresh(token, audience=OTHER, authorization_details=json.dumps([ACCOUNT])))


def test_a_type_that_the_api_removes_is_missing_after_the_next_refresh(bank: Bank) -> None:
    token = bank.exchange(bank.code(PAYMENT, ACCOUNT, scope="openid offline_access")).json()["refresh_token"]
    update_api_resource(tenant_id=bank.tenant.pk, resource_id=bank.api.pk, changes={"settings": {"authorization_details": TYPES[:1]}})
    forget_all()
    assert granted(bank.refresh(token)) == [PAYMENT]


def machine(bank: Bank, *types: str) -> dict[str, Any]:
    """Return the form fields of a token request with client credentials."""
    client, secret = create_client(tenant_id=bank.tenant.pk, name="Robot", grant_types=["client_credentials"])
    settings = {"authorization_details_types": list(types)} if types else {}
    create_client_grant(tenant_id=bank.tenant.pk, client_id=client.client_id, api_resource=bank.api, settings=settings)
    forget_all()
    return {"grant_type": "client_credentials", "client_id": client.client_id, "client_secret": secret, "audience": API}


@pytest.mark.parametrize("as_json", [False, True])
def test_a_client_without_a_user_gets_only_the_types_of_its_client_grant(bank: Bank, as_json: bool) -> None:
    form = machine(bank, "payment")
    sent = [PAYMENT] if as_json else json.dumps([PAYMENT])
    assert granted(ask_token(bank.tenant, {**form, "authorization_details": sent}, as_json=as_json)) == [PAYMENT]
    account = [ACCOUNT] if as_json else json.dumps([ACCOUNT])
    assert "has no such type" in refused(ask_token(bank.tenant, {**form, "authorization_details": account}, as_json=as_json))


def test_a_client_grant_names_no_type_by_default(bank: Bank) -> None:
    form = machine(bank)
    assert "has no such type" in refused(ask_token(bank.tenant, {**form, "authorization_details": json.dumps([PAYMENT])}))
    assert granted(ask_token(bank.tenant, form)) == []


def test_grants_that_do_not_support_details_refuse_requests_with_details(bank: Bank) -> None:
    set_client(bank.login, grant_types=["http://auth0.com/oauth/grant-type/password-realm"])
    realm = "http://auth0.com/oauth/grant-type/password-realm"
    answer = bank.token(grant_type=realm, username="x", password="x", realm="people", authorization_details=json.dumps([PAYMENT]))
    assert refused(answer) == "This grant does not accept authorization_details."


def test_the_types_of_a_tenant_are_invalid_in_another_tenant(bank: Bank, tenant: Tenant) -> None:
    from identity.services.tenants import create_tenant

    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    client, _ = web_client(other)
    connection = people(other, client)
    user: User = person(connection)
    create_api_resource(tenant_id=other.pk, identifier=API)
    login = Login(other, client, connection, user, Browser(other))
    answer = login.ask(audience=API, authorization_details=json.dumps([PAYMENT]))
    assert answer.answer["error"] == "invalid_authorization_details"
    assert "authorization_details_types_supported" not in login.browser.get("/.well-known/openid-configuration").text


def test_introspection_returns_the_granted_details(bank: Bank) -> None:
    """RFC 9396, 9.2."""
    update_tenant_settings(tenant_id=bank.tenant.pk, changes={"token_introspection_supported": True})
    forget_all()
    token = bank.exchange(bank.code(PAYMENT)).json()["access_token"]
    form = {"client_id": bank.login.client.client_id, "client_secret": bank.secret, "token": token}
    told = post("/oauth/introspect", bank.tenant, form, as_json=False, headers=None, host=None, address="192.0.2.1").json()
    assert told["active"]
    assert told["authorization_details"] == decoded(token)[1]["authorization_details"] != []
