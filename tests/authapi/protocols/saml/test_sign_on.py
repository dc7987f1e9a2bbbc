"""Logins at an application that uses SAML, over the ASGI application."""

from __future__ import annotations

import pytest

from authapi.models import Session, SessionClient, SignIn
from authapi.protocols.saml.names import (
    EMAIL_NAME,
    ENTITY_NAME,
    PASSWORD_CLASS,
    PERSISTENT_NAME,
    PROTECTED_PASSWORD_CLASS,
    TRANSIENT_NAME,
)
from authapi.services.clients import revoke_client
from authapi.xml.bindings import HTTP_REDIRECT, REQUEST, posted_fields
from authapi.xml.building import element
from authapi.xml.certificates import pem_of
from authapi.xml.names import SAML, SAMLP, qualified
from authapi.xml.parsing import Element, parse
from identity.models import Group, Tenant
from identity.services.groups import add_group_members, create_group
from identity.services.tenants import create_tenant
from tests.authapi.browser import Browser
from tests.authapi.protocols.saml.conftest import ACS, Application, enable, saml_client, set_client
from tests.authapi.protocols.saml.requests_of_applications import OTHER_SIGNER, SIGNER, authn_request, contexts, policy
from tests.authapi.xml.signed_messages import trusted
from tests.factories.sign_in import person

MFA = "https://refeds.org/profile/mfa"


def test_a_login_by_redirect_ends_with_a_posted_assertion(application: Application) -> None:
    answer = application.answered(application.log_in(application.ask(relay_state="/orders?a=1&b=2")))
    assert answer.codes == ["Success"]
    assert answer.name == application.user.user_id
    assert answer.relay_state == "/orders?a=1&b=2"
    assert answer.root.get("InResponseTo") == "_request"
    assert answer.at("Issuer").text == f"urn:{application.tenant.pk}.example.test"
    assert answer.at("Conditions", "AudienceRestriction", "Audience").text == "urn:sp"


def test_a_login_by_post_ends_with_a_posted_assertion(application: Application) -> None:
    page = application.log_in(application.post(authn_request(), relay_state="x"))
    answer = application.answered(page)
    assert (answer.codes, answer.relay_state) == (["Success"], "x")


def test_a_further_request_in_the_session_gets_the_same_session_index(application: Application) -> None:
    first = application.answered(application.log_in(application.ask()))
    second = application.answered(application.ask(authn_request(ID="_second")))
    assert second.root.get("InResponseTo") == "_second"
    assert second.session_index == first.session_index
    assert second.at("AuthnStatement").get("AuthnInstant") == first.at("AuthnStatement").get("AuthnInstant")
    assert second.assertion.get("ID") != first.assertion.get("ID")
    assert Session.objects.of(application.tenant.pk).count() == 1


def test_the_page_with_the_response_is_not_cached_or_framed(application: Application) -> None:
    page = application.log_in(application.ask())
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "form-action https:" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


def test_a_login_started_by_this_service_gets_a_response_without_a_request_id(application: Application) -> None:
    page = application.log_in(application.browser.get(application.path, {"RelayState": "/start"}))
    answer = application.answered(page)
    assert "InResponseTo" not in answer.root.attrib
    assert answer.at("Subject", "SubjectConfirmation", "SubjectConfirmationData").get("InResponseTo") is None
    assert answer.relay_state == "/start"


def test_a_request_with_force_authn_requires_a_new_login(application: Application) -> None:
    first = application.answered(application.log_in(application.ask()))
    page = application.ask(authn_request(ForceAuthn="true"))
    assert page.location.startswith("/u/login")
    again = application.answered(application.log_in(page))
    assert (again.at("AuthnStatement").get("AuthnInstant") or "") > (first.at("AuthnStatement").get("AuthnInstant") or "")


def test_a_request_with_is_passive_shows_no_page(application: Application) -> None:
    answer = application.answered(application.ask(authn_request(IsPassive="true"), relay_state="x"))
    assert answer.codes == ["Responder", "NoPassive"]
    assert (answer.message, answer.relay_state) == ("Login required", "x")
    application.log_in(application.ask())
    assert application.answered(application.ask(authn_request(IsPassive="true"))).codes == ["Success"]
    both = authn_request(IsPassive="true", ForceAuthn="true")
    assert application.answered(application.ask(both)).codes == ["Responder", "NoPassive"]


@pytest.mark.parametrize("asked", [EMAIL_NAME, PERSISTENT_NAME, TRANSIENT_NAME])
def test_the_name_id_has_the_requested_format(application: Application, asked: str) -> None:
    answer = application.answered(application.log_in(application.ask(authn_request(policy(asked)))))
    found = answer.at("Subject", "NameID")
    assert found.get("Format") == asked
    again = application.answered(application.ask(authn_request(policy(asked))))
    assert (again.name == answer.name) is (asked != TRANSIENT_NAME)
    assert application.user.user_id not in answer.name


def test_the_error_is_invalid_name_id_policy_if_no_user_has_the_requested_format(application: Application) -> None:
    answer = application.answered(application.log_in(application.ask(authn_request(policy(ENTITY_NAME)))))
    assert answer.codes == ["Requester", "InvalidNameIDPolicy"]


def test_the_context_is_one_of_the_requested_contexts_or_an_error_is_returned(application: Application) -> None:
    page = application.log_in(application.ask(authn_request(contexts(PROTECTED_PASSWORD_CLASS))))
    answer = application.answered(page)
    assert answer.at("AuthnStatement", "AuthnContext", "AuthnContextClassRef").text == PROTECTED_PASSWORD_CLASS
    assert application.answered(application.ask(authn_request(contexts(MFA)))).codes == ["Responder", "NoAuthnContext"]
    both = application.answered(application.ask(authn_request(contexts(MFA, PASSWORD_CLASS))))
    assert both.at("AuthnStatement", "AuthnContext", "AuthnContextClassRef").text == PASSWORD_CLASS


def test_the_context_reports_a_second_factor_that_the_user_has_proven(application: Application) -> None:
    application.log_in(application.ask())
    session = Session.objects.of(application.tenant.pk).get()
    session.methods = [*session.methods, {"name": "mfa", "timestamp": session.methods[0]["timestamp"]}]
    session.save(update_fields=["methods"])
    answer = application.answered(application.ask(authn_request(contexts(MFA))))
    assert answer.at("AuthnStatement", "AuthnContext", "AuthnContextClassRef").text == MFA


def test_a_request_for_another_response_binding_is_refused(application: Application) -> None:
    answer = application.answered(application.ask(authn_request(ProtocolBinding=HTTP_REDIRECT)))
    assert answer.codes == ["Responder", "UnsupportedBinding"]


def test_a_request_for_another_user_gets_no_assertion(application: Application) -> None:
    def about(name: str) -> Element:
        return authn_request(element(qualified(SAML, "Subject"), None, element(qualified(SAML, "NameID"), None, name)))

    answer = application.answered(application.log_in(application.ask(about("eve@example.test"))))
    assert answer.codes == ["Responder", "UnknownPrincipal"]
    assert application.answered(application.ask(about("ada@example.test"))).codes == ["Success"]


# --- URLs of answers ---------------------------------------------------------------------------------------------------


def test_a_response_is_sent_to_the_callback_if_the_requested_address_is_not_registered(application: Application) -> None:
    set_client(application.client, redirect_uris=f"{ACS} https://sp.example.test/other")
    application.log_in(application.ask())
    for named, answered_at in (("https://sp.example.test/other",) * 2, ("https://evil.example.test/acs", ACS)):
        page = application.ask(authn_request(AssertionConsumerServiceURL=named))
        assert (page.status, page.form_action()) == (200, answered_at)


def test_a_response_is_sent_to_the_address_at_the_requested_index(application: Application) -> None:
    services = [{"index": 0, "url": ACS}, {"index": 7, "url": "https://sp.example.test/seven"}]
    application.set(assertionConsumerServices=services)
    application.log_in(application.ask())
    assert application.ask(authn_request(AssertionConsumerServiceIndex="7")).form_action() == "https://sp.example.test/seven"
    answer = application.answered(application.ask(authn_request(AssertionConsumerServiceIndex="8")))
    assert answer.codes == ["Requester", "RequestUnsupported"]


def test_an_application_without_an_address_gets_no_response(application: Application) -> None:
    set_client(application.client, redirect_uris="")
    page = application.ask()
    assert (page.status, "no callback address" in page.text) == (400, True)


# --- Signed requests --------------------------------------------------------------------------------------------------------


def test_signatures_are_required_once_a_certificate_is_registered(application: Application) -> None:
    application.set(signingCert=pem_of(trusted()))
    assert application.ask(signer=SIGNER).location.startswith("/u/login")
    assert application.post(authn_request(), signer=SIGNER).location.startswith("/u/login")
    for page in (application.ask(), application.post(authn_request()), application.ask(signer=OTHER_SIGNER)):
        assert page.status == 400
        assert "SAML request is refused" in page.text
    assert application.ask(signer=OTHER_SIGNER, connection="people").status == 400


def test_both_certificates_are_accepted_while_the_application_changes_its_key(application: Application) -> None:
    application.set(signingCert=pem_of(trusted("second")) + pem_of(trusted()))
    for signer in (SIGNER, OTHER_SIGNER):
        assert application.ask(signer=signer).location.startswith("/u/login")


# --- Refusals on a page, and in the sign-in log -----------------------------------------------------------------------------------


def test_a_refused_request_is_logged_with_its_reason_and_message(application: Application) -> None:
    assert application.ask(authn_request(Destination="https://elsewhere.test/samlp")).status == 400
    line = SignIn.objects.of(application.tenant.pk).get()
    assert (line.type, line.is_success, line.client_id) == ("f", False, application.client.client_id)
    assert "Destination" in line.description
    assert "AuthnRequest" in line.details["message"]


@pytest.mark.parametrize("text", ["", "x", "PGE+", "%%%", "A" * 700_000])
def test_an_invalid_message_is_refused_on_a_page(application: Application, text: str) -> None:
    for page in (application.browser.get(application.path, {REQUEST: text}), application.browser.post(application.path, {REQUEST: text})):
        assert page.status in (400, 413, 414)


def test_a_request_with_repeated_parameters_is_refused(application: Application) -> None:
    assert application.browser.get(application.path, {REQUEST: ["a", "b"]}).status == 400
    assert application.browser.get(application.path, {"RelayState": "x" * 5000}).status == 400


def test_an_application_without_the_add_on_cannot_use_saml(application: Application) -> None:
    set_client(application.client, settings={"addons": {}})
    for page in (application.ask(), application.browser.get(f"/samlp/metadata/{application.client.client_id}")):
        assert page.status == 400
        assert "SAML is off" in page.text


@pytest.mark.parametrize("name", ["nobody", "x" * 300])
def test_an_unknown_application_is_refused(application: Application, name: str) -> None:
    assert application.browser.get(f"/samlp/{name}").status == 400


def test_a_revoked_application_is_refused(application: Application) -> None:
    revoke_client(tenant_id=application.tenant.pk, client_id=application.client.client_id)
    assert application.ask().status == 400


def test_an_application_of_another_tenant_is_unknown(application: Application) -> None:
    other = create_tenant(tenant_id=f"{application.tenant.pk}-b", name="b", host=f"{application.tenant.pk}-b.example.test")
    assert Browser(other).get(application.path).status == 400


def test_other_methods_are_refused(application: Application) -> None:
    assert application.browser.send("PUT", application.path).status == 405


def test_a_refusal_of_the_login_is_sent_to_the_application(application: Application) -> None:
    answer = application.answered(application.ask(connection="no-such-connection"))
    assert answer.codes == ["Responder"]
    assert "connection" in answer.message


def test_a_refusal_without_a_request_is_shown_on_a_page(application: Application) -> None:
    page = application.browser.get(application.path, {"connection": "no-such-connection"})
    assert page.status == 400
    assert "SAMLResponse" not in page.text


# --- Claims -----------------------------------------------------------------------------------------------------------------


def test_groups_and_roles_are_sent_if_they_are_mapped(application: Application) -> None:
    group = create_group(tenant_id=application.tenant.pk, name="engineers")
    assert isinstance(group, Group)
    add_group_members(tenant_id=application.tenant.pk, group_id=group.pk, user_ids=[application.user.user_id])
    application.set(mappings={"groups": "urn:groups", "roles": "urn:roles", "email": "mail"})
    answer = application.answered(application.log_in(application.ask()))
    said = {each.get("Name"): [value.text for value in each] for each in answer.at("AttributeStatement")}
    assert (said["urn:groups"], said["mail"]) == (["engineers"], ["ada@example.test"])
    assert "urn:roles" not in said


def test_the_issuer_of_the_add_on_replaces_our_issuer(application: Application) -> None:
    application.set(issuer="urn:us")
    assert application.answered(application.log_in(application.ask())).at("Issuer").text == "urn:us"


# --- The endpoint without a client id ----------------------------------------------------------------------------------------


def test_the_issuer_of_a_request_finds_the_application_by_its_alias(application: Application) -> None:
    set_client(application.client, settings={"client_aliases": ["urn:sp"]})
    page = application.browser.post("/samlp", posted_fields(REQUEST, authn_request(), "x"))
    assert application.answered(application.log_in(page)).codes == ["Success"]
    assert application.browser.post("/samlp", posted_fields(REQUEST, authn_request(issuer="urn:other"), "x")).status == 400
    assert application.browser.get("/samlp").status == 400


# --- Metadata ---------------------------------------------------------------------------------------------------------------


def test_the_metadata_of_an_application_contains_its_addresses(application: Application) -> None:
    page = application.browser.get(f"/samlp/metadata/{application.client.client_id}")
    assert (page.status, page.headers["content-type"]) == (200, "application/samlmetadata+xml")
    root = parse(page.body)
    assert root.get("entityID") == f"urn:{application.tenant.pk}.example.test"
    places = {each.get("Location") for each in root.iter("{urn:oasis:names:tc:SAML:2.0:metadata}SingleSignOnService")}
    assert places == {f"http://{application.tenant.pk}.example.test{application.path}"}
    whole = parse(application.browser.get("/samlp/metadata").body)
    places = {each.get("Location") for each in whole.iter("{urn:oasis:names:tc:SAML:2.0:metadata}SingleSignOnService")}
    assert places == {f"http://{application.tenant.pk}.example.test/samlp"}


def test_metadata_can_be_downloaded(application: Application) -> None:
    page = application.browser.get(f"/samlp/metadata/{application.client.client_id}", {"download": ""})
    assert page.headers["content-disposition"].startswith("attachment")


# --- Single sign-on -----------------------------------------------------------------------------------------------------------


def test_one_login_serves_two_applications_with_two_name_ids(application: Application, tenant: Tenant) -> None:
    other = Application(tenant, saml_client(tenant, callbacks="https://other.example.test/acs"), application.user, application.browser)
    other.acs = "https://other.example.test/acs"
    enable(application.user.connection, other.client)
    request = authn_request(policy(PERSISTENT_NAME))
    first = application.answered(application.log_in(application.ask(request)))
    second = other.answered(other.ask(request))
    assert first.name != second.name
    assert first.session_index != second.session_index
    assert SessionClient.objects.of(tenant.pk).filter(protocol="samlp").count() == 2


def test_a_login_of_another_user_gets_another_session_index(application: Application) -> None:
    first = application.answered(application.log_in(application.ask()))
    application.user = person(application.user.connection, email="bob@example.test", name="Bob")
    second = application.answered(application.log_in(application.ask(authn_request(ForceAuthn="true"))))
    assert (first.name != second.name, first.session_index != second.session_index) == (True, True)


def test_a_posted_message_of_an_unsupported_type_is_refused(application: Application) -> None:
    assert application.post(element(qualified(SAMLP, "ArtifactResolve"), {"Version": "2.0"})).status == 400


def test_an_application_gets_no_assertion_for_another_application(application: Application) -> None:
    # The audience of an assertion is the Issuer of the request. If an application could send the Issuer of another application, it would
    # get an assertion that the other application accepts.
    saml_client(application.tenant, callbacks="https://other.example.test/acs", settings={"client_aliases": ["urn:other"]})
    page = application.ask(authn_request(issuer="urn:other"))
    assert page.status == 400
    assert "another application" in page.text
    saml_client(application.tenant, callbacks="https://third.example.test/acs", addons={"audience": "urn:third"})
    assert application.ask(authn_request(issuer="urn:third")).status == 400
    # An alias belongs to only one application, so the issuer is unambiguous.
    set_client(application.client, settings={**application.client.settings, "client_aliases": ["urn:third"]})
    assert application.ask(authn_request(issuer="urn:third")).location.startswith("/u/login")
