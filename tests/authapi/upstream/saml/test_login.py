"""Logins at a SAML provider: the request, the response, the created users, and lines of the sign-in log about failures."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from authapi.expiry import drop_ended
from authapi.models import LoginTransaction, RefusedMessage, Session, SessionClient, SignIn, UsedAssertion
from authapi.services.clients import update_client
from authapi.tokens.saml_keys import published_certificates, signing_identity
from authapi.xml.bindings import verify_query
from authapi.xml.names import DS, METADATA, SAML, qualified
from authapi.xml.parsing import from_base64, parse
from authapi.xml.verifying import verified
from events.models import Event
from identity.models import Tenant, User
from identity.services.connections import update_connection
from identity.services.users import block_user
from tests.factories.saml_login import SamlLogin, fields_of, saml_login
from tests.factories.saml_provider import OTHER, POST, SIGN_IN, SIGNING
from tests.factories.sign_in import CALLBACK
from tests.factories.wsfed_provider import Token

SUBJECT = "samlp|corp|248289"


@pytest.fixture
def login(tenant: Tenant) -> SamlLogin:
    return saml_login(tenant)


def users(tenant: Tenant) -> list[User]:
    return list(User.objects.of(tenant.pk))


def failure(tenant: Tenant) -> SignIn:
    return SignIn.objects.of(tenant.pk).filter(is_success=False).latest("created_at")


def refused(login: SamlLogin, response: Any) -> str:
    """Check that no session began and that the client got only the general error. Return the description in the sign-in log."""
    told = login.told(response)
    assert "code" not in told
    assert told["state"] == "app-state"
    assert not Session.objects.of(login.tenant.pk).exists()
    return failure(login.tenant).description


# The request.


def test_the_request_contains_our_entity_id_and_the_address_for_the_response(login: SamlLogin) -> None:
    request, state = login.leave()
    assert request.findtext(qualified(SAML, "Issuer")) == login.entity_id
    assert (request.get("AssertionConsumerServiceURL"), request.get("ProtocolBinding")) == (login.acs, POST)
    assert (request.get("Destination"), request.get("ForceAuthn")) == (SIGN_IN, None)
    # SAML Bindings 2.0, 3.4.3: at most 80 bytes.
    assert len(state) <= 80
    again, other_state = login.leave()
    assert (again.get("ID"), other_state) != (request.get("ID"), state)


def test_a_required_new_login_is_also_required_at_the_provider(login: SamlLogin) -> None:
    assert login.leave(prompt="login")[0].get("ForceAuthn") == "true"
    assert login.leave(max_age="0")[0].get("ForceAuthn") == "true"


def test_the_request_is_signed_if_the_connection_requires_it(tenant: Tenant) -> None:
    login = saml_login(tenant, signSAMLRequest=True)
    elsewhere = login.go()
    query = elsewhere["Location"].partition("?")[2]
    verify_query(query, "SAMLRequest", [signing_identity(tenant.pk).certificate])


def test_the_request_is_posted_if_the_connection_requires_it(tenant: Tenant) -> None:
    login = saml_login(tenant, signSAMLRequest=True, protocolBinding=POST)
    page = login.go()
    fields = fields_of(page)
    assert fields["action"] == SIGN_IN
    assert verified(parse(from_base64(fields["SAMLRequest"])), [signing_identity(tenant.pk).certificate]) is not None
    request = parse(from_base64(fields["SAMLRequest"]))
    assert "code" in login.told(login.come_back(login.answer(request), fields["RelayState"]))


def test_an_incomplete_connection_is_reported_in_the_sign_in_log(tenant: Tenant) -> None:
    login = saml_login(tenant, is_complete=False)
    assert login.go().status_code == 502
    assert "corp has no sign-in address" in failure(tenant).description


# The response.


def test_the_first_login_creates_the_user_and_later_logins_update_it(login: SamlLogin) -> None:
    assert "code" in login.log_in()
    (user,) = users(login.tenant)
    assert (user.user_id, user.email, user.email_verified, user.name) == (SUBJECT, "ada@corp.example.test", False, "Ada Lovelace")
    assert "code" in login.log_in({"attributes": {"displayName": ["Ada King"]}}, prompt="login")
    user.refresh_from_db()
    assert (user.name, user.logins_count) == ("Ada King", 2)
    types = Event.objects.filter(tenant_id=login.tenant.pk, type__startswith="user.").order_by("pk").values_list("type", flat=True)
    assert list(types) == ["user.created", "user.updated"]
    context = json.loads(bytes(Event.objects.get(tenant_id=login.tenant.pk, type="user.created").body))["data"]["context"]
    assert context["client"]["id"] == login.client.client_id
    assert SignIn.objects.of(login.tenant.pk).filter(is_success=True, type="s", connection="corp").count() == 2


def test_a_response_in_another_browser_is_refused(login: SamlLogin) -> None:
    # Login CSRF: the attacker sends a response about the attacker to the victim's browser.
    request, state = login.leave()
    answer = login.answer(request)
    victim = login.new_browser()
    again = login.come_back(answer, state, browser=victim)
    fields = fields_of(again)
    assert fields.pop("action") == login.acs
    response = victim.post("/login/callback?connection=corp", fields)
    assert response.status_code == 400
    assert b"another browser" in response.content
    assert users(login.tenant) == []
    # The browser that started the login can still finish it.
    assert "code" in login.told(login.come_back(answer, state))


def test_a_form_without_its_cookie_is_posted_once_more_from_this_host(login: SamlLogin) -> None:
    # Without TLS, the browser does not send the cookie with a form that another site posts.
    request, state = login.leave()
    cookies = login.browser.cookies
    login.browser.cookies = type(cookies)()
    page = login.come_back(login.answer(request), state)
    assert page.status_code == 200
    login.browser.cookies = cookies
    fields = fields_of(page)
    fields.pop("action")
    assert "code" in login.told(login.browser.post("/login/callback?connection=corp", fields))


def test_a_response_is_accepted_once(login: SamlLogin) -> None:
    request, state = login.leave()
    answer = login.answer(request, assertion_id="_one")
    assert "code" in login.told(login.come_back(answer, state))
    assert login.come_back(answer, state).status_code == 400


def test_a_used_assertion_is_refused_for_another_login_in_progress(login: SamlLogin) -> None:
    request, state = login.leave()
    first = login.answer(request, assertion_id="_one")
    assert "code" in login.told(login.come_back(first, state))
    login.browser = login.new_browser()
    request, state = login.leave()
    Session.objects.of(login.tenant.pk).delete()
    told = refused(login, login.come_back(login.answer(request, assertion_id="_one"), state))
    assert "was used before" in told
    # The assertion is remembered until it expires, and no longer.
    used = UsedAssertion.objects.of(login.tenant.pk).get()
    assert timedelta(minutes=7) < used.expires_at - timezone.now() < timedelta(minutes=9)


def test_an_expired_login_is_refused(login: SamlLogin) -> None:
    request, state = login.leave()
    LoginTransaction.objects.of(login.tenant.pk).update(expires_at="2020-01-01T00:00:00Z")
    assert login.come_back(login.answer(request), state).status_code == 400


@pytest.mark.parametrize("name", ["SAMLResponse", "RelayState"])
def test_a_repeated_form_field_is_refused(login: SamlLogin, name: str) -> None:
    request, state = login.leave()
    fields = {"SAMLResponse": login.answer(request).encoded, "RelayState": state}
    response = login.browser.post("/login/callback?connection=corp", {**fields, name: [fields[name], fields[name]]})
    assert response.status_code == 400
    assert users(login.tenant) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"key": OTHER}, "other.example.test"),
        ({"audience": "urn:auth0:another:corp"}, "as audience"),
        ({"in_response_to": "_another"}, "answers the request '_another'"),
        ({"now": timezone.now() - timedelta(hours=1)}, "Compare the clocks"),
        ({"signs_assertion": False}, "Neither the response nor the assertion is signed"),
        ({"name_id": None, "attributes": {}}, "no NameID"),
        ({"statuses": ("urn:oasis:names:tc:SAML:2.0:status:Responder",), "status_message": "No seat."}, "The provider says: No seat."),
    ],
)
def test_the_sign_in_log_contains_the_reason_of_a_refusal_and_the_message(login: SamlLogin, changes: dict[str, Any], told: str) -> None:
    request, state = login.leave()
    answer = login.answer(request, **changes)
    assert told in refused(login, login.come_back(answer, state))
    assert users(login.tenant) == []
    message = RefusedMessage.objects.of(login.tenant.pk).get(line_id=failure(login.tenant).pk)
    assert "<samlp:Response" in message.text
    # The stored message cannot be used again.
    assert (
        "<ds:SignatureValue>(left out)</ds:SignatureValue>" in message.text
        or not answer.signs_assertion
        or answer.statuses[0].endswith("Responder")
    )


def test_stored_messages_are_deleted_after_some_days(login: SamlLogin) -> None:
    request, state = login.leave()
    login.come_back(login.answer(request, key=OTHER), state)
    drop_ended()
    rows = RefusedMessage.objects.of(login.tenant.pk)
    assert rows.count() == 1
    rows.update(created_at=timezone.now() - timedelta(days=8))
    drop_ended()
    assert rows.count() == 0
    assert SignIn.objects.of(login.tenant.pk).filter(is_success=False).exists()


def test_an_assertion_encrypted_for_the_tenant_is_decrypted(login: SamlLogin) -> None:
    (certificate,) = published_certificates(login.tenant.pk)
    assert "code" in login.log_in({"encrypts_for": certificate})


def test_a_response_is_refused_if_its_connection_got_another_certificate_during_the_login(login: SamlLogin) -> None:
    request, state = login.leave()
    options = {"signInEndpoint": SIGN_IN, "signingCert": OTHER.text}
    update_connection(tenant_id=login.tenant.pk, connection_id=login.connection.pk, changes={"options": options})
    assert "is invalid" in refused(login, login.come_back(login.answer(request), state))


def test_a_connection_that_was_removed_from_the_client_during_the_login_is_refused(login: SamlLogin) -> None:
    request, state = login.leave()
    update_connection(tenant_id=login.tenant.pk, connection_id=login.connection.pk, changes={"enabled_clients": []})
    assert "error" in login.told(login.come_back(login.answer(request), state))
    assert users(login.tenant) == []


def test_a_blocked_user_is_refused(login: SamlLogin) -> None:
    login.log_in()
    block_user(tenant_id=login.tenant.pk, user_id=SUBJECT)
    Session.objects.of(login.tenant.pk).delete()
    assert login.log_in(prompt="login")["error_description"] == "user is blocked"


def test_both_certificates_are_accepted_during_a_rollover(tenant: Tenant) -> None:
    login = saml_login(tenant, signingCert=[SIGNING.text, OTHER.text])
    assert "code" in login.log_in()
    assert "code" in login.log_in({"key": OTHER}, prompt="login")


def test_the_mapping_of_the_connection_fills_the_profile(tenant: Tenant) -> None:
    login = saml_login(
        tenant,
        user_id_attribute="employee",
        fieldsMap={"email": "work", "nickname": ["nick"]},
        should_trust_email_verified_connection="always_set_emails_as_verified",
    )
    login.log_in({"attributes": {"employee": ["e-7"], "work": ["ada@work.example.test"], "nick": ["ada"]}})
    (user,) = users(tenant)
    assert (user.user_id, user.email, user.email_verified, user.nickname) == ("samlp|corp|e-7", "ada@work.example.test", True, "ada")


# Logins that the provider starts.


def initiated(tenant: Tenant, **more: Any) -> SamlLogin:
    login = saml_login(tenant)
    query = f"scope=openid&response_type=code&redirect_uri={CALLBACK}"
    named = {"enabled": True, "client_id": login.client.client_id, "client_protocol": "oauth2", "client_authorizequery": query, **more}
    options = {**login.connection.options, "idpinitiated": named}
    login.connection = update_connection(tenant_id=tenant.pk, connection_id=login.connection.pk, changes={"options": options})
    return login


def test_a_login_that_the_provider_starts_is_refused_by_default(login: SamlLogin) -> None:
    response = login.come_back(login.answer(None))
    assert response.status_code == 403
    assert users(login.tenant) == []
    assert "Switch idpinitiated on" in failure(login.tenant).description


def test_a_login_that_the_provider_starts_continues_at_the_application(tenant: Tenant) -> None:
    login = initiated(tenant)
    told = login.told(login.come_back(login.answer(None), "whatever the provider sends"))
    assert set(told) == {"code"} or set(told) == {"code", "iss"}
    assert [user.user_id for user in users(tenant)] == [SUBJECT]
    assert Session.objects.of(tenant.pk).get().session_clients.get().client_id == login.client.pk


def test_a_login_that_the_provider_starts_can_continue_at_an_application_with_saml_or_ws_federation(tenant: Tenant) -> None:
    login = initiated(tenant)
    addons = {"samlp": {"audience": "urn:shop"}, "wsfed": {}}
    update_client(tenant_id=tenant.pk, client_id=login.client.client_id, changes={"settings": {"addons": addons}})
    for protocol, query, member in (("samlp", "RelayState=there", "SAMLResponse"), ("wsfed", "wctx=there", "wresult")):
        named = {"enabled": True, "client_id": login.client.client_id, "client_protocol": protocol, "client_authorizequery": query}
        options = {**login.connection.options, "idpinitiated": named}
        update_connection(tenant_id=tenant.pk, connection_id=login.connection.pk, changes={"options": options})
        fields = fields_of(login.come_back(login.answer(None)))
        assert fields["action"] == CALLBACK
        assert fields[member]
        assert "there" in (fields.get("RelayState"), fields.get("wctx"))
    assert SessionClient.objects.of(tenant.pk).count() == 2


def test_a_login_that_the_provider_starts_is_accepted_once(tenant: Tenant) -> None:
    login = initiated(tenant)
    answer = login.answer(None, assertion_id="_one")
    login.come_back(answer)
    Session.objects.of(tenant.pk).delete()
    response = login.come_back(answer, browser=login.new_browser())
    assert "code" not in login.told(response)
    assert "was used before" in failure(tenant).description


def test_the_response_to_a_request_is_not_accepted_as_a_login_that_the_provider_starts(tenant: Tenant) -> None:
    login = initiated(tenant)
    request, _ = login.leave()
    for response in (
        login.come_back(login.answer(request)),
        login.come_back(login.answer(request, spoil_response=lambda tree: tree.attrib.pop("InResponseTo"))),
    ):
        assert response.status_code == 400 or "code" not in login.told(response)
    assert users(tenant) == []


def test_an_unknown_application_or_an_application_without_the_connection_gets_no_login(tenant: Tenant) -> None:
    login = initiated(tenant, client_id="gone")
    assert login.come_back(login.answer(None)).status_code == 500
    assert "names no application" in failure(tenant).description
    update_connection(
        tenant_id=tenant.pk,
        connection_id=login.connection.pk,
        changes={
            "enabled_clients": [],
            "options": {**login.connection.options, "idpinitiated": {"enabled": True, "client_id": login.client.client_id}},
        },
    )
    assert login.come_back(login.answer(None)).status_code == 400
    assert users(tenant) == []


# Our metadata.


def test_our_metadata_contains_the_values_for_a_provider_even_before_the_provider_is_known(tenant: Tenant) -> None:
    login = saml_login(tenant, is_complete=False)
    answer = login.browser.get("/samlp/metadata", {"connection": "corp"})
    root = parse(answer.content)
    assert root.get("entityID") == login.entity_id
    assert answer["Content-Type"].startswith("application/samlmetadata+xml")
    acs = root.find(f".//{qualified(METADATA, 'AssertionConsumerService')}")
    assert acs is not None
    assert acs.get("Location") == login.acs
    assert len(root.findall(f".//{qualified(DS, 'X509Certificate')}")) == 2
    assert login.browser.get("/samlp/metadata", {"connection": "unknown"}).status_code == 400


def test_the_connection_sets_the_entity_id(tenant: Tenant) -> None:
    login = saml_login(tenant, entityId="https://us.example.test")
    assert parse(login.browser.get("/samlp/metadata", {"connection": "corp"}).content).get("entityID") == "https://us.example.test"
    assert login.leave()[0].findtext(qualified(SAML, "Issuer")) == "https://us.example.test"
    assert "code" in login.log_in({"audience": "https://us.example.test"})


def test_a_response_for_one_tenant_is_refused_at_another_tenant(login: SamlLogin, second_tenant: Tenant) -> None:
    other = saml_login(second_tenant)
    request, state = login.leave()
    other.leave()
    # One provider serves both tenants, and signs with the same key.
    assert other.come_back(login.answer(request), state).status_code == 400
    assert other.come_back(other.answer(request), state).status_code == 400
    assert users(second_tenant) == []
    assert "code" in login.told(login.come_back(login.answer(request), state))
    theirs, their_state = other.leave()
    assert "audience" in refused(other, other.come_back(login.answer(theirs, recipient=other.acs), their_state))


def test_a_token_of_another_protocol_is_not_accepted_as_a_response(tenant: Tenant) -> None:
    # Over WS-Federation, an assertion names no request and no recipient, so a stolen assertion would be accepted in every browser.
    login = saml_login(tenant, signingCert=None, cert=SIGNING.text)
    _, state = login.leave()
    stolen = Token(realm=login.entity_id, is_saml2=True)
    response = login.browser.post("/login/callback", {"wa": "wsignin1.0", "wresult": stolen.result(), "wctx": state})
    assert "uses another protocol" in refused(login, response)
