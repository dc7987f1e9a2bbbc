"""Logouts between this service and a SAML provider: our requests with the responses of the provider, and requests of the provider with our
responses."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from django.utils import timezone

from authapi.models import Session, SignIn
from authapi.services.clients import update_client
from authapi.tokens.saml_keys import signing_identity
from authapi.upstream.saml import logout
from authapi.upstream.saml.facts import wire_instant
from authapi.upstream.saml.statuses import SUCCESS
from authapi.xml.bindings import Signer, posted_fields, redirect_address, verify_query
from authapi.xml.building import element
from authapi.xml.names import SAML, SAMLP, qualified
from authapi.xml.parsing import Element, inflated, parse
from identity.models import Tenant
from tests.factories.saml_login import SamlLogin, saml_login
from tests.factories.saml_provider import ENTITY_ID, OTHER, SIGN_OUT, SIGNING, KeyPair

RETURN_TO = "https://app.example.test/bye"
PARTIAL = "urn:oasis:names:tc:SAML:2.0:status:PartialLogout"


@pytest.fixture
def login(tenant: Tenant) -> SamlLogin:
    made = saml_login(tenant)
    update_client(tenant_id=tenant.pk, client_id=made.client.client_id, changes={"post_logout_redirect_uris": RETURN_TO})
    assert "code" in made.log_in()
    return made


def signer(key: KeyPair = SIGNING) -> Signer:
    return Signer(key.private, key.certificate)


def address(login: SamlLogin) -> str:
    return f"{login.base}logout?connection=corp"


def message(name: str, login: SamlLogin, *content: Element | None, **attributes: str | None) -> Element:
    given: dict[str, str | None] = {
        "ID": "_from-the-provider",
        "Version": "2.0",
        "IssueInstant": wire_instant(timezone.now()),
        "Destination": address(login),
    }
    return element(qualified(SAMLP, name), {**given, **attributes}, element(qualified(SAML, "Issuer"), None, ENTITY_ID), *content)


def demand(login: SamlLogin, *, name: str | None = "248289", index: str | None = "_session-1", **attributes: str | None) -> Element:
    named = element(qualified(SAML, "NameID"), None, name)
    session = None if index is None else element(qualified(SAMLP, "SessionIndex"), None, index)
    return message("LogoutRequest", login, named, session, **attributes)


def status(*codes: str) -> Element:
    code: Element | None = None
    for name in reversed(codes):
        code = element(qualified(SAMLP, "StatusCode"), {"Value": name}, code)
    return element(qualified(SAMLP, "Status"), None, code)


def send(
    login: SamlLogin, parameter: str, made: Element, relay_state: str = "", *, key: KeyPair | None = SIGNING, browser: Any = None
) -> Any:
    """Send a message by redirect, with its signature in the query."""
    sent = redirect_address("http://x/logout?connection=corp", parameter, made, relay_state, signer(key) if key else None)
    return (browser or login.browser).get(f"/logout?{sent.partition('?')[2]}")


def alive(login: SamlLogin) -> bool:
    return Session.objects.of(login.tenant.pk).exists()


def message_in(location: str, parameter: str) -> Element:
    query = dict(parse_qsl(urlsplit(location).query))
    return parse(inflated(base64.b64decode(query[parameter])))


# Logouts that this service starts.


def leave(login: SamlLogin) -> tuple[Element, str]:
    """Log out at the application and at the provider. Return the request to the provider and its RelayState."""
    asked = {"client_id": login.client.client_id, "returnTo": RETURN_TO, "federated": ""}
    response = login.browser.get("/v2/logout", asked, headers={"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})
    assert response.status_code == 302, response.content
    assert response["Location"].startswith(SIGN_OUT)
    assert not alive(login)
    verify_query(response["Location"].partition("?")[2], "SAMLRequest", [signing_identity(login.tenant.pk).certificate])
    return message_in(response["Location"], "SAMLRequest"), parse_qs(urlsplit(response["Location"]).query)["RelayState"][0]


def test_a_logout_redirects_to_the_provider_and_then_to_the_application(login: SamlLogin) -> None:
    request, state = leave(login)
    assert request.findtext(qualified(SAML, "Issuer")) == login.entity_id
    name = request.find(qualified(SAML, "NameID"))
    assert name is not None
    assert (name.text, name.get("Format")) == ("248289", "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent")
    assert request.findtext(qualified(SAMLP, "SessionIndex")) == "_session-1"
    answer = message("LogoutResponse", login, status(SUCCESS), InResponseTo=request.get("ID"))
    assert send(login, "SAMLResponse", answer, state)["Location"] == RETURN_TO


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda login, request: (message("LogoutResponse", login, status(SUCCESS), InResponseTo="_other"), SIGNING), "another request"),
        (lambda login, request: (message("LogoutResponse", login, status(SUCCESS), InResponseTo=request.get("ID")), OTHER), "signature"),
        (lambda login, request: (message("LogoutResponse", login, status(SUCCESS), InResponseTo=request.get("ID")), None), "not signed"),
        (
            lambda login, request: (
                message("LogoutResponse", login, status(SUCCESS), InResponseTo=request.get("ID"), Destination="https://x.example.test"),
                SIGNING,
            ),
            "Destination",
        ),
        (
            lambda login, request: (message("LogoutResponse", login, status(SUCCESS, PARTIAL), InResponseTo=request.get("ID")), SIGNING),
            "could not end all sessions",
        ),
    ],
)
def test_a_failed_logout_at_the_provider_is_logged_and_the_redirect_continues(
    login: SamlLogin, change: Callable[[SamlLogin, Element], tuple[Element, KeyPair | None]], told: str
) -> None:
    request, state = leave(login)
    answer, key = change(login, request)
    assert send(login, "SAMLResponse", answer, state, key=key)["Location"] == RETURN_TO
    assert told in SignIn.objects.of(login.tenant.pk).filter(is_success=False).latest("created_at").description


def test_a_response_to_an_unknown_logout_is_shown_as_an_error(login: SamlLogin) -> None:
    answer = message("LogoutResponse", login, status(SUCCESS), InResponseTo="_x")
    assert send(login, "SAMLResponse", answer, "A" * 43).status_code == 400


def test_a_provider_without_a_logout_url_gets_no_request(tenant: Tenant) -> None:
    made = saml_login(tenant, disableSignout=True)
    update_client(tenant_id=tenant.pk, client_id=made.client.client_id, changes={"post_logout_redirect_uris": RETURN_TO})
    made.log_in()
    asked = {"client_id": made.client.client_id, "returnTo": RETURN_TO, "federated": ""}
    response = made.browser.get("/v2/logout", asked, headers={"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})
    assert response["Location"] == RETURN_TO


# Logouts that the provider starts.


def answered(response: Any, login: SamlLogin) -> Element:
    assert response.status_code in (302, 303), response.content
    assert response["Location"].startswith(SIGN_OUT)
    verify_query(response["Location"].partition("?")[2], "SAMLResponse", [signing_identity(login.tenant.pk).certificate])
    return message_in(response["Location"], "SAMLResponse")


def codes_of(answer: Element) -> list[str | None]:
    return [code.get("Value") for code in answer.iter(qualified(SAMLP, "StatusCode"))]


def test_a_provider_can_end_the_login_in_this_browser_and_gets_a_response(login: SamlLogin) -> None:
    response = send(login, "SAMLRequest", demand(login), "their-state")
    answer = answered(response, login)
    assert not alive(login)
    assert (answer.get("InResponseTo"), codes_of(answer)) == ("_from-the-provider", [SUCCESS])
    assert parse_qs(urlsplit(response["Location"]).query)["RelayState"] == ["their-state"]
    assert SignIn.objects.of(login.tenant.pk).filter(type="slo", is_success=True).exists()


def test_a_posted_request_contains_its_signature(login: SamlLogin) -> None:
    fields = posted_fields("SAMLRequest", demand(login), "", signer())
    answered(login.browser.post("/logout?connection=corp", fields), login)
    assert not alive(login)


def test_a_provider_can_end_a_login_in_another_browser(login: SamlLogin) -> None:
    assert codes_of(answered(send(login, "SAMLRequest", demand(login), browser=login.new_browser()), login)) == [SUCCESS]
    assert not alive(login)


def test_a_request_without_session_indexes_ends_every_login_of_the_user(login: SamlLogin) -> None:
    login.browser = login.new_browser()
    login.log_in({"session_index": "_session-2"})
    assert Session.objects.of(login.tenant.pk).count() == 2
    send(login, "SAMLRequest", demand(login, index=None))
    assert not alive(login)


def test_the_named_login_is_found_among_logins_of_other_users(login: SamlLogin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logout, "_MOST_SESSIONS", 1)
    login.browser = login.new_browser()
    assert "code" in login.log_in({"name_id": "another", "session_index": "_session-2", "attributes": {}})
    send(login, "SAMLRequest", demand(login), browser=login.new_browser())
    assert [session.user.user_id for session in Session.objects.of(login.tenant.pk)] == ["samlp|corp|another"]


@pytest.mark.parametrize(("name", "index"), [("somebody-else", "_session-1"), ("248289", "_another-session")])
def test_only_the_named_login_ends(login: SamlLogin, name: str, index: str) -> None:
    assert codes_of(answered(send(login, "SAMLRequest", demand(login, name=name, index=index)), login)) == [SUCCESS]
    assert alive(login)


@pytest.mark.parametrize(
    ("attributes", "key", "told"),
    [
        ({}, None, "not signed"),
        ({}, OTHER, "signature"),
        ({"Destination": "https://elsewhere.example.test"}, SIGNING, "Destination"),
        ({"Destination": None}, SIGNING, "Destination"),
        ({"IssueInstant": "2020-01-01T00:00:00Z"}, SIGNING, "too old"),
        ({"NotOnOrAfter": "2020-01-01T00:00:00Z"}, SIGNING, "too old"),
        ({"IssueInstant": "soon"}, SIGNING, "cannot be read"),
        ({"ID": None}, SIGNING, "no ID"),
        ({"Version": "1.1"}, SIGNING, "SAML 2.0"),
    ],
)
def test_an_untrusted_request_ends_no_login(login: SamlLogin, attributes: dict[str, str | None], key: KeyPair | None, told: str) -> None:
    assert send(login, "SAMLRequest", demand(login, **attributes), key=key).status_code == 403
    assert alive(login)
    assert told in SignIn.objects.of(login.tenant.pk).filter(is_success=False).latest("created_at").description


def test_a_signature_over_another_query_is_refused(login: SamlLogin) -> None:
    sent = redirect_address("http://x/logout", "SAMLRequest", demand(login), "state", signer()).partition("?")[2]
    assert login.browser.get(f"/logout?connection=corp&{sent.replace('RelayState=state', 'RelayState=other')}").status_code == 403
    assert login.browser.get(f"/logout?connection=corp&{sent}&SAMLRequest=x").status_code == 400
    assert alive(login)


def test_a_request_without_a_message_or_a_connection_is_refused(login: SamlLogin) -> None:
    assert login.browser.get("/logout?connection=corp").status_code == 400
    sent = redirect_address("http://x/logout", "SAMLRequest", demand(login), "", signer()).partition("?")[2]
    assert login.browser.get(f"/logout?{sent}").status_code == 400
    assert alive(login)


def test_a_logout_by_a_provider_without_a_response_address_ends_on_a_page(tenant: Tenant) -> None:
    made = saml_login(tenant, disableSignout=True)
    made.log_in()
    response = send(made, "SAMLRequest", demand(made))
    assert response.status_code == 200
    assert b"logged out" in response.content
    assert not alive(made)
