"""Applications that use WS-Federation: from the request to the token, and the logout."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from django.test import Client as Browser

from authapi.models import Client, Session, SessionClient, SignIn
from authapi.tokens.saml_keys import published_certificates
from authapi.upstream.saml.certificates import certificate_of
from authapi.upstream.wsfed.metadata import WSFED, read_federation_metadata
from authapi.upstream.wsfed.responses import Expected, accepted_token
from authapi.xml.names import SAML11, SOAP12, WST, qualified
from authapi.xml.parsing import Element, parse
from authapi.xml.verifying import verify_octets
from identity.models import Tenant, User
from tests.factories.saml_login import fields_of
from tests.factories.sign_in import PASSWORD, people, person, web_client

REPLY = "https://app.example.test/wsfed"
CLAIMS = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims"
NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture
def client(tenant: Tenant) -> Client:
    return application(tenant)


def application(tenant: Tenant, **addon: Any) -> Client:
    made, _ = web_client(
        tenant, redirect_uris=REPLY, settings={"addons": {"wsfed": addon}, "client_aliases": ["https://app.example.test/"]}
    )
    return made


@pytest.fixture
def user(tenant: Tenant, client: Client) -> User:
    return person(people(tenant, client))


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return Browser(headers={"host": f"{tenant.pk}.example.test", **NAVIGATION})


def log_in(browser: Browser, path: str, **asked: str) -> Any:
    """Request a token and use the login page. Return the answer for the application."""
    page = browser.get(path, asked)
    assert page.status_code == 302, page.content
    form = browser.get(page["Location"])
    fields = fields_of(form)
    action = fields.pop("action")
    return browser.post(action or page["Location"], {**fields, "username": "ada@example.test", "password": PASSWORD})


def result_of(answer: Any) -> Element:
    return parse(fields_of(answer)["wresult"].encode())


def accepted(tenant: Tenant, result: str, realm: str) -> Any:
    """Verify a token as a relying party does, with the certificates of the tenant. Return its assertion."""
    known = [certificate_of(certificate.public_bytes(Encoding.DER)) for certificate in published_certificates(tenant.pk)]
    issuer = f"urn:{tenant.pk}.example.test"
    return accepted_token(result.encode(), known, Expected(issuer=issuer, realm=realm, now=datetime.now(UTC))).assertion


def test_a_login_ends_with_a_signed_token_at_the_registered_address(tenant: Tenant, client: Client, user: User, browser: Browser) -> None:
    realm = f"urn:{client.client_id}"
    answer = log_in(browser, f"/wsfed/{client.client_id}", wctx="rm=0&id=passive", wa="wsignin1.0")
    fields = fields_of(answer)
    assert (fields["action"], fields["wa"], fields["wctx"]) == (REPLY, "wsignin1.0", "rm=0&id=passive")
    assert result_of(answer).get("Context") == "rm=0&id=passive"
    assertion = accepted(tenant, fields["wresult"], realm)
    assert assertion.statement.name_id.value == user.user_id
    assert assertion.statement.attributes[f"{CLAIMS}/emailaddress"] == ("ada@example.test",)
    assert assertion.statement.attributes[f"{CLAIMS}/name"] == ("Ada Lovelace",)
    ends = assertion.not_on_or_after - datetime.now(UTC)
    assert timedelta(hours=7, minutes=59) < ends <= timedelta(hours=8)
    assert SessionClient.objects.of(tenant.pk).get().protocol == "wsfed"


@pytest.mark.parametrize("by_alias", [True, False])
def test_the_realm_identifies_the_application_if_the_path_does_not(
    tenant: Tenant, client: Client, user: User, browser: Browser, by_alias: bool
) -> None:
    realm = "https://app.example.test/" if by_alias else f"urn:{client.client_id}"
    answer = log_in(browser, "/wsfed", wtrealm=realm)
    fields = fields_of(answer)
    assert "wctx" not in fields
    assert accepted(tenant, fields["wresult"], realm)


def test_an_application_gets_no_token_for_another_application(tenant: Tenant, client: Client, user: User, browser: Browser) -> None:
    # The audience of a token is the realm of the request. If an application could send the realm of another application, it would get a
    # token that the other application accepts.
    other, _ = web_client(
        tenant, redirect_uris="https://b.example.test/", settings={"addons": {"wsfed": {}}, "client_aliases": ["https://b.example.test/"]}
    )
    for realm in ("https://b.example.test/", f"urn:{other.client_id}"):
        assert browser.get(f"/wsfed/{client.client_id}", {"wtrealm": realm}).status_code == 400
    for realm in ("https://app.example.test/", f"urn:{client.client_id}", "urn:of-no-application"):
        assert browser.get(f"/wsfed/{client.client_id}", {"wtrealm": realm}).status_code == 302


def test_a_user_with_a_session_logs_in_again_only_if_the_request_demands_it(client: Client, user: User, browser: Browser) -> None:
    log_in(browser, f"/wsfed/{client.client_id}")
    assert fields_of(browser.get(f"/wsfed/{client.client_id}"))["action"] == REPLY
    assert browser.get(f"/wsfed/{client.client_id}", {"wfresh": "60"}).status_code == 200
    assert browser.get(f"/wsfed/{client.client_id}", {"wfresh": "0"}).status_code == 302


def test_a_connection_that_is_not_enabled_for_the_application_is_reported_as_a_fault(client: Client, user: User, browser: Browser) -> None:
    answer = browser.get(f"/wsfed/{client.client_id}", {"whr": "urn:unknown", "wctx": "c"})
    fields = fields_of(answer)
    assert (fields["action"], fields["wctx"]) == (REPLY, "c")
    text = result_of(answer).find(f".//{qualified(SOAP12, 'Text')}")
    assert text is not None
    assert text.text == "The connection was not found or is not enabled for the client."


def test_an_unknown_realm_is_reported_to_the_user(client: Client, browser: Browser) -> None:
    for asked in ({}, {"wtrealm": "urn:unknown"}, {"wtrealm": "https://unknown.example.test"}, {"wa": "wpseudo1.0"}):
        assert browser.get("/wsfed", asked).status_code == 400
    assert browser.get(f"/wsfed/{client.client_id}", {"wreply": "https://evil.example.test"}).status_code == 400


def test_an_application_without_the_add_on_gets_no_token(tenant: Tenant, browser: Browser) -> None:
    plain, _ = web_client(tenant, redirect_uris=REPLY)
    answer = browser.get(f"/wsfed/{plain.client_id}")
    assert answer.status_code == 400
    assert b"add-on wsfed" in answer.content


def test_the_token_can_be_a_jwt_in_a_binary_token_or_without_a_wrapper(tenant: Tenant, browser: Browser) -> None:
    wrapped = application(tenant, tokenType="jwt")
    person(people(tenant, wrapped))
    fields = fields_of(log_in(browser, f"/wsfed/{wrapped.client_id}"))
    root = parse(fields["wresult"].encode())
    assert root.findtext(qualified(WST, "TokenType")) == "urn:ietf:params:oauth:token-type:jwt"
    holder = root.find(qualified(WST, "RequestedSecurityToken"))
    assert holder is not None
    token = base64.b64decode(holder[0].text or "").decode()
    claims = read_jwt(tenant, token)
    assert (claims["aud"], claims["iss"]) == (f"urn:{wrapped.client_id}", f"urn:{tenant.pk}.example.test")
    assert claims[f"{CLAIMS}/emailaddress"] == "ada@example.test"
    assert claims["exp"] - claims["iat"] == 8 * 3600
    wrapped.settings["addons"]["wsfed"] = {"tokenType": "plain_jwt", "lifetimeInSeconds": 60, "audience": "urn:chosen"}
    wrapped.save()
    claims = read_jwt(tenant, fields_of(browser.get(f"/wsfed/{wrapped.client_id}"))["wresult"])
    assert (claims["aud"], claims["exp"] - claims["iat"]) == ("urn:chosen", 60)


def read_jwt(tenant: Tenant, token: str) -> dict[str, Any]:
    header, payload, signature = token.split(".")

    def decoded(text: str) -> bytes:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

    algorithm = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
    verify_octets(f"{header}.{payload}".encode(), decoded(signature), algorithm, published_certificates(tenant.pk))
    claims: dict[str, Any] = json.loads(decoded(payload))
    return claims


def test_both_metadata_addresses_publish_the_metadata_that_applications_need(tenant: Tenant, client: Client, browser: Browser) -> None:
    for path, endpoint in (("wsfed", "wsfed"), (f"wsfed/{client.client_id}", f"wsfed/{client.client_id}")):
        answer = browser.get(f"/{path}/FederationMetadata/2007-06/FederationMetadata.xml")
        found = read_federation_metadata(answer.content, allows_http=True)
        assert found.entity_id == f"urn:{tenant.pk}.example.test"
        assert found.sign_in[WSFED] == f"http://{tenant.pk}.example.test/{endpoint}"
        assert [one.parsed for one in found.certificates] == list(published_certificates(tenant.pk))
    assert browser.get("/wsfed/unknown/FederationMetadata/2007-06/FederationMetadata.xml").status_code == 400


# Logout.


def test_a_sign_out_notifies_every_application_and_redirects_to_the_return_address(
    tenant: Tenant, client: Client, user: User, browser: Browser
) -> None:
    log_in(browser, f"/wsfed/{client.client_id}")
    answer = browser.get("/wsfed", {"wa": "wsignout1.0", "wtrealm": f"urn:{client.client_id}", "wreply": REPLY})
    assert answer.status_code == 302
    assert not Session.objects.of(tenant.pk).exists()
    page = browser.get(answer["Location"])
    assert f'<iframe src="{REPLY}?wa=wsignoutcleanup1.0"' in page.content.decode()
    assert "frame-src https://app.example.test" in page["Content-Security-Policy"]
    assert browser.get(page["Refresh"].partition("url=")[2])["Location"] == REPLY
    assert SignIn.objects.of(tenant.pk).filter(type="slo", is_success=True).exists()


def test_a_sign_out_request_that_is_not_a_navigation_shows_a_question_first(
    tenant: Tenant, client: Client, user: User, browser: Browser
) -> None:
    log_in(browser, f"/wsfed/{client.client_id}")
    answer = browser.get("/wsfed", {"wa": "wsignout1.0"}, headers={"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"})
    assert answer.status_code == 200
    assert b"Log out?" in answer.content
    assert Session.objects.of(tenant.pk).exists()


IMAGE = {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}


@pytest.mark.parametrize(("said", "is_kept"), [("yes", False), ("no", True)])
def test_a_confirmed_sign_out_redirects_to_the_address_of_the_application(
    tenant: Tenant, client: Client, user: User, browser: Browser, said: str, is_kept: bool
) -> None:
    log_in(browser, f"/wsfed/{client.client_id}")
    question = browser.get(f"/wsfed/{client.client_id}", {"wa": "wsignout1.0", "wreply": REPLY}, headers=IMAGE)
    assert "form-action 'self' https: http:;" in question["Content-Security-Policy"]
    fields = fields_of(question)
    answer = browser.post(fields.pop("action"), {**fields, "answer": said}, headers=IMAGE)
    assert Session.objects.of(tenant.pk).exists() is is_kept
    assert answer["Location"].startswith(REPLY if is_kept else "/u/logout/frames?")


def test_a_forged_confirmation_shows_the_question_again(tenant: Tenant, client: Client, user: User, browser: Browser) -> None:
    log_in(browser, f"/wsfed/{client.client_id}")
    sent = {"wa": "wsignout1.0", "wreply": REPLY, "answer": "yes", "form_token": "made up"}
    assert b"Log out?" in browser.post(f"/wsfed/{client.client_id}", sent, headers=IMAGE).content
    assert Session.objects.of(tenant.pk).exists()


def test_a_sign_out_redirects_only_to_registered_addresses(client: Client, user: User, browser: Browser) -> None:
    log_in(browser, f"/wsfed/{client.client_id}")
    for path in ("/wsfed", f"/wsfed/{client.client_id}"):
        assert browser.get(path, {"wa": "wsignout1.0", "wreply": "https://evil.example.test"}).status_code == 400
    answer = browser.get(f"/wsfed/{client.client_id}", {"wa": "wsignout1.0"})
    assert answer.status_code == 302


def test_a_browser_without_a_session_is_redirected_immediately(client: Client, browser: Browser) -> None:
    answer = browser.get(f"/wsfed/{client.client_id}", {"wa": "wsignout1.0", "wreply": REPLY})
    assert answer["Location"] == REPLY


def test_the_cleanup_page_of_an_unknown_logout_answers_400(browser: Browser) -> None:
    assert browser.get("/u/wsfed/cleanup", {"state": "x" * 43}).status_code == 400


def test_the_signature_is_the_last_element_of_the_assertion_as_the_schema_requires(
    tenant: Tenant, client: Client, user: User, browser: Browser
) -> None:
    answer = log_in(browser, f"/wsfed/{client.client_id}")
    assertion = result_of(answer).find(f".//{qualified(SAML11, 'Assertion')}")
    assert assertion is not None
    names = [child.tag.rpartition("}")[2] for child in assertion]
    assert names == [
        "Conditions",
        "AttributeStatement",
        "AuthenticationStatement",
        "Signature",
    ]
