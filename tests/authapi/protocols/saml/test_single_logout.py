"""A logout at one application ends the login at all applications."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from authapi.login.sessions import end_sessions_of
from authapi.models import Session, SignIn
from authapi.protocols.saml.names import PARTIAL_LOGOUT, RESPONDER, SUCCESS
from authapi.tokens.saml_keys import published_certificates
from authapi.xml.bindings import (
    HTTP_REDIRECT,
    REQUEST,
    RESPONSE,
    Signer,
    posted_fields,
    redirect_address,
    redirected_message,
    verify_query,
)
from authapi.xml.certificates import pem_of
from authapi.xml.names import SAML, SAMLP, qualified
from authapi.xml.parsing import Element, child, from_base64, parse
from authapi.xml.verifying import verified
from identity.models import Tenant
from tests.authapi.browser import Page
from tests.authapi.protocols.saml.conftest import LOGOUT, Answer, Application, enable, saml_client, set_client
from tests.authapi.protocols.saml.requests_of_applications import SIGNER, logout_answer, logout_message
from tests.authapi.xml.signed_messages import trusted
from tests.factories.sign_in import CALLBACK, person, web_client

OTHER_ACS, OTHER_LOGOUT = "https://other.example.test/acs", "https://other.example.test/slo"


@pytest.fixture
def first(application: Application) -> Application:
    application.set(logout={"callback": LOGOUT}, signingCert=pem_of(trusted()))
    return application


def another(first: Application, **members: Any) -> Application:
    """Return a second application in the same browser. This application requests notices of logouts."""
    addons = {"logout": {"callback": OTHER_LOGOUT}, "signingCert": pem_of(trusted()), **members}
    client = saml_client(first.tenant, callbacks=OTHER_ACS, addons=addons)
    enable(first.user.connection, client)
    return Application(first.tenant, client, first.user, first.browser, OTHER_ACS)


def signed_in(application: Application) -> Answer:
    page = application.ask(signer=SIGNER)
    return application.answered(application.log_in(page) if page.status in (302, 303) else page)


def send(application: Application, parameter: str, message: Element, *, relay_state: str = "", signer: Signer | None = SIGNER) -> Page:
    return application.browser.post(f"{application.path}/logout", posted_fields(parameter, message, relay_state, signer))


def log_out(application: Application, known: Answer, **options: Any) -> Page:
    return send(application, REQUEST, logout_message(known.name, known.session_index), relay_state="the-state", **options)


def posted_message(page: Page, tenant: Tenant, address: str, parameter: str) -> Element:
    """Return the verified message that a page posts to a URL."""
    assert page.status == 200, page.text
    assert page.form_action() == address
    return verified(parse(from_base64(page.fields()[parameter])), published_certificates(tenant.pk))


def codes(message: Element) -> list[str]:
    status = child(message, qualified(SAMLP, "Status"))
    assert status is not None
    return [str(each.get("Value")).rpartition(":")[2] for each in status.iter(qualified(SAMLP, "StatusCode"))]


def is_over(tenant: Tenant) -> bool:
    return not Session.objects.of(tenant.pk).exists()


def test_the_requesting_application_gets_a_response_after_the_session_has_ended(first: Application) -> None:
    page = log_out(first, signed_in(first))
    message = posted_message(page, first.tenant, LOGOUT, RESPONSE)
    assert (codes(message), message.get("InResponseTo"), page.fields()["RelayState"]) == (["Success"], "_logout", "the-state")
    assert is_over(first.tenant)
    assert "session" not in first.browser.cookies
    assert SignIn.objects.of(first.tenant.pk).filter(type="slo", is_success=True).count() == 1
    assert first.ask(signer=SIGNER).location.startswith("/u/login")


def test_requests_and_responses_can_use_the_redirect_binding(first: Application) -> None:
    known = signed_in(first)
    first.set(logout={"callback": LOGOUT}, signingCert=pem_of(trusted()), binding=HTTP_REDIRECT)
    address = redirect_address(f"{first.path}/logout", REQUEST, logout_message(known.name, known.session_index), "the-state", SIGNER)
    page = first.browser.send("GET", address)
    parts = urlsplit(page.location)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == LOGOUT
    verify_query(parts.query, RESPONSE, published_certificates(first.tenant.pk))
    values = dict(parse_qsl(parts.query))
    assert (codes(parse(redirected_message(values[RESPONSE]))), values["RelayState"]) == (["Success"], "the-state")
    assert is_over(first.tenant)


def test_the_browser_visits_every_other_participant_before_the_response(first: Application) -> None:
    second = another(first)
    third = another(first, logout={"callback": "https://third.example.test/slo"})
    known, other, last = signed_in(first), signed_in(second), signed_in(third)
    page = log_out(first, known)
    for application, place, theirs in ((second, OTHER_LOGOUT, other), (third, "https://third.example.test/slo", last)):
        message = posted_message(page, first.tenant, place, REQUEST)
        named, index = child(message, qualified(SAML, "NameID")), child(message, qualified(SAMLP, "SessionIndex"))
        assert named is not None
        assert index is not None
        assert (named.text, index.text, message.get("Destination")) == (theirs.name, theirs.session_index, place)
        answer = logout_answer(message.get("ID") or "", SUCCESS)
        page = send(application, RESPONSE, answer, relay_state=page.fields()["RelayState"])
    assert codes(posted_message(page, first.tenant, LOGOUT, RESPONSE)) == ["Success"]
    assert is_over(first.tenant)


def test_a_response_without_relay_state_is_matched_by_the_id_of_our_request(first: Application) -> None:
    second = another(first)
    known, _ = signed_in(first), signed_in(second)
    message = posted_message(log_out(first, known), first.tenant, OTHER_LOGOUT, REQUEST)
    page = send(second, RESPONSE, logout_answer(message.get("ID") or "", SUCCESS))
    assert codes(posted_message(page, first.tenant, LOGOUT, RESPONSE)) == ["Success"]


@pytest.mark.parametrize("answer", ["responder", "partly", "unsigned", "of another request"])
def test_the_logout_is_partial_if_a_participant_did_not_end_its_login(first: Application, answer: str) -> None:
    second = another(first)
    known, _ = signed_in(first), signed_in(second)
    page = log_out(first, known)
    request_id = posted_message(page, first.tenant, OTHER_LOGOUT, REQUEST).get("ID") or ""
    said = {"responder": (RESPONDER,), "partly": (SUCCESS, PARTIAL_LOGOUT)}.get(answer, (SUCCESS,))
    message = logout_answer(request_id if answer != "of another request" else "_other", *said)
    signer = None if answer == "unsigned" else SIGNER
    page = send(second, RESPONSE, message, relay_state=page.fields()["RelayState"], signer=signer)
    assert codes(posted_message(page, first.tenant, LOGOUT, RESPONSE)) == ["Success", "PartialLogout"]
    assert is_over(first.tenant)


def test_a_response_of_a_participant_that_was_not_asked_is_refused(first: Application) -> None:
    second = another(first)
    known, _ = signed_in(first), signed_in(second)
    page = log_out(first, known)
    request_id = posted_message(page, first.tenant, OTHER_LOGOUT, REQUEST).get("ID") or ""
    refused = send(first, RESPONSE, logout_answer(request_id, SUCCESS), relay_state=page.fields()["RelayState"])
    assert refused.status == 400
    assert send(second, RESPONSE, logout_answer("_x", SUCCESS), relay_state="no-such-handle").status == 400


def test_the_browser_does_not_visit_applications_without_logout_addresses(first: Application) -> None:
    second = another(first, logout={"callback": OTHER_LOGOUT, "slo_enabled": False})
    third = another(first, logout=None)
    known, _, _ = signed_in(first), signed_in(second), signed_in(third)
    assert codes(posted_message(log_out(first, known), first.tenant, LOGOUT, RESPONSE)) == ["Success"]


def test_a_logout_by_openid_connect_visits_saml_applications(first: Application) -> None:
    client, _ = web_client(first.tenant, post_logout_redirect_uris="https://app.example.test/bye")
    enable(first.user.connection, client)
    signed_in(first)
    asked = {"client_id": client.client_id, "redirect_uri": CALLBACK, "response_type": "code", "scope": "openid", "state": "s"}
    assert "code" in first.browser.get("/authorize", asked).answer
    page = first.browser.get("/v2/logout", {"client_id": client.client_id, "returnTo": "https://app.example.test/bye"})
    message = posted_message(page, first.tenant, LOGOUT, REQUEST)
    page = send(first, RESPONSE, logout_answer(message.get("ID") or "", SUCCESS), relay_state=page.fields()["RelayState"])
    assert page.location == "https://app.example.test/bye"
    assert is_over(first.tenant)


# --- Refusals ------------------------------------------------------------------------------------------------------------------


def test_a_request_for_an_ended_login_succeeds(first: Application) -> None:
    known = signed_in(first)
    first.browser.cookies.clear()
    assert codes(posted_message(log_out(first, known), first.tenant, LOGOUT, RESPONSE)) == ["Success"]
    assert not is_over(first.tenant)


@pytest.mark.parametrize("name", ["another user", "another session"])
def test_a_request_for_another_login_ends_no_login(first: Application, name: str) -> None:
    known = signed_in(first)
    message = logout_message("eve@example.test") if name == "another user" else logout_message(known.name, "_other")
    answer = posted_message(send(first, REQUEST, message), first.tenant, LOGOUT, RESPONSE)
    assert codes(answer) == ["Requester", "UnknownPrincipal"]
    assert not is_over(first.tenant)


def test_an_application_without_a_login_in_the_session_cannot_end_logins(first: Application) -> None:
    second = another(first)
    known = signed_in(first)
    page = send(second, REQUEST, logout_message(known.name, known.session_index))
    assert codes(posted_message(page, first.tenant, OTHER_LOGOUT, RESPONSE)) == ["Requester", "UnknownPrincipal"]
    assert not is_over(first.tenant)


def test_an_unsigned_request_is_refused_if_a_certificate_is_registered(first: Application) -> None:
    known = signed_in(first)
    page = log_out(first, known, signer=None)
    assert (page.status, "not signed" in page.text) == (400, True)
    assert not is_over(first.tenant)


def test_an_application_without_a_certificate_must_send_the_session_index(application: Application) -> None:
    application.set(logout={"callback": LOGOUT})
    known = application.answered(application.log_in(application.ask()))
    page = send(application, REQUEST, logout_message(known.name), signer=None)
    assert codes(posted_message(page, application.tenant, LOGOUT, RESPONSE)) == ["Requester", "RequestDenied"]
    assert not is_over(application.tenant)
    page = log_out(application, known, signer=None)
    assert codes(posted_message(page, application.tenant, LOGOUT, RESPONSE)) == ["Success"]
    assert is_over(application.tenant)


def test_an_application_without_a_logout_response_address_gets_an_error_page(first: Application) -> None:
    known = signed_in(first)
    set_client(first.client, settings={"addons": {"samlp": {"signingCert": pem_of(trusted())}}})
    page = log_out(first, known)
    assert (page.status, "no URL for responses" in page.text) == (400, True)
    assert not is_over(first.tenant)


def test_a_request_without_a_message_is_refused(first: Application) -> None:
    assert first.browser.get(f"{first.path}/logout").status == 400


def test_a_session_that_ends_without_a_browser_notifies_no_application(first: Application) -> None:
    signed_in(first)
    assert end_sessions_of(tenant_id=first.tenant.pk, user_id=first.user.pk, reason="session-revoked") == 1


def test_a_request_for_the_previous_user_does_not_end_the_login_of_the_next_user(first: Application) -> None:
    known = signed_in(first)
    first.user = person(first.user.connection, email="bob@example.test", name="Bob")
    first.browser.cookies.clear()
    signed_in(first)
    assert codes(posted_message(log_out(first, known), first.tenant, LOGOUT, RESPONSE)) == ["Requester", "UnknownPrincipal"]
