"""Logins for a protocol that the login code does not import: the toy protocol of these tests, with the real pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from authapi.failures import RequestRefused
from authapi.login import protocol, round_trips
from authapi.login.sessions import end_session
from authapi.models import Consent, LoginTransaction, LogoutTransaction, Session, SessionClient
from identity.hosts import resolve_host
from tests.authapi.browser import Page
from tests.authapi.login import toy
from tests.authapi.login.conftest import Login, set_client
from tests.factories.sign_in import CALLBACK, person, web_client

BYE = "https://app.example.test/bye"


@pytest.fixture(autouse=True)
def _toy_is_served(settings: Any) -> Iterator[None]:
    settings.ROOT_URLCONF = "tests.authapi.login.toy"
    protocol.register(toy.TOY)
    yield
    protocol.unregister(toy.TOY)


def ask(login: Login, **changes: str) -> Page:
    return login.browser.get("/toy", {"app": login.client.client_id, "to": CALLBACK, **changes})


def answered(login: Login, **changes: str) -> Page:
    """Log in with the toy protocol, and require a success."""
    page = login.log_in(ask(login, **changes))
    assert page.answer.get("user") == login.user.user_id, page.text
    return page


# --- Refusals -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "text"), [({"to": "https://evil.test/"}, "Callback URL mismatch."), ({"app": "unknown"}, "Unknown client: unknown")]
)
def test_a_request_without_a_registered_address_is_refused_on_a_page(login: Login, changes: dict[str, str], text: str) -> None:
    page = ask(login, **changes)
    assert (page.status, text in page.text) == (400, True)
    assert "location" not in page.headers


def test_a_silent_request_without_a_session_is_refused_in_the_format_of_the_protocol(login: Login) -> None:
    page = ask(login, silent="1")
    assert page.location == f"{CALLBACK}?refused=login_required"
    assert not LoginTransaction.objects.of(login.tenant.pk).exists()


def test_a_request_that_cannot_be_granted_is_answered_with_an_error(login: Login) -> None:
    assert ask(login, silent="1", anew="1").location == f"{CALLBACK}?refused=invalid_request"


def test_a_request_of_a_client_without_connections_is_answered_with_an_error(login: Login) -> None:
    lonely, _ = web_client(login.tenant, name="Lonely")
    assert ask(login, app=lonely.client_id).location == f"{CALLBACK}?refused=invalid_request"


def test_an_address_that_is_removed_from_the_client_during_a_login_gets_no_answer(login: Login) -> None:
    form = login.browser.follow(ask(login))
    set_client(login, redirect_uris="https://app.example.test/other")
    page = login.log_in(form)
    assert (page.status, "Callback URL mismatch." in page.text) == (400, True)
    assert not Session.objects.of(login.tenant.pk).exists()


def test_a_login_of_a_removed_protocol_is_shown_as_expired(login: Login) -> None:
    first = ask(login)
    protocol.unregister(toy.TOY)
    page = login.browser.follow(first)
    assert (page.status, "has expired" in page.text) == (400, True)


def test_two_protocols_cannot_have_the_same_name() -> None:
    with pytest.raises(ValueError, match="There is a protocol 'toy' already"):
        protocol.register(protocol.Protocol(**{**vars(toy.TOY), "refuse": toy.answer}))


# --- Logins -------------------------------------------------------------------------------------------------------------------


def test_a_login_is_answered_in_the_format_of_the_protocol(login: Login) -> None:
    first = ask(login)
    assert first.location.startswith("/u/login?state=")
    assert login.log_in(first).location == f"{CALLBACK}?user={login.user.user_id.replace('|', '%7C')}&takes="
    assert [(row.client_id, row.protocol) for row in SessionClient.objects.of(login.tenant.pk)] == [(login.client.pk, "toy")]


def test_an_answer_can_be_a_form_that_submits_itself(login: Login) -> None:
    page = login.log_in(ask(login, posts="1"))
    assert (page.status, page.form_action()) == (200, CALLBACK)
    assert page.fields() == {"user": login.user.user_id, "takes": ""}
    assert "form-action https:" in page.headers["content-security-policy"]
    assert "session" in login.browser.cookies


def test_the_request_of_the_client_is_sealed_during_the_login(login: Login) -> None:
    ask(login, bye="https://app.example.test/canary")
    row = LoginTransaction.objects.of(login.tenant.pk).get()
    assert (row.protocol, row.parameters) == ("toy", {})
    assert "canary" not in row.sealed_request


def test_a_session_that_began_with_one_protocol_is_valid_for_another_protocol(login: Login) -> None:
    login.begin_session()
    assert ask(login, silent="1").answer["user"] == login.user.user_id
    assert login.ask(prompt="none").answer.keys() == {"code", "state", "iss"}
    assert {row.protocol for row in SessionClient.objects.of(login.tenant.pk)} == {"oauth", "toy"}


def test_a_requested_new_login_is_required_and_is_valid_for_one_answer(login: Login) -> None:
    answered(login)
    first = ask(login, anew="1")
    assert first.location.startswith("/u/login?state=")
    assert "user" in login.log_in(first).answer
    assert login.browser.follow(first).status == 200


# --- Consent ------------------------------------------------------------------------------------------------------------------


def test_the_consent_page_shows_the_words_of_the_protocol(login: Login) -> None:
    page = login.browser.follow(login.log_in(ask(login, takes="train")))
    assert ("Play with your train" in page.text, "the toy box" in page.text) == (True, True)
    assert login.browser.submit(page, answer="deny").location == f"{CALLBACK}?refused=access_denied"
    assert ask(login, takes="train", silent="1").location == f"{CALLBACK}?refused=consent_required"


def test_consent_is_remembered_only_for_the_terms_that_the_user_has_allowed(login: Login) -> None:
    page = login.browser.follow(login.log_in(ask(login, takes="train")))
    assert login.browser.submit(page, answer="allow").answer["takes"] == "train"
    assert [(row.audience, row.scopes) for row in Consent.objects.of(login.tenant.pk)] == [("toys", ["train"])]
    assert ask(login, takes="train", silent="1").answer["takes"] == "train"
    assert ask(login, takes="train ball", silent="1").answer == {"refused": "consent_required"}


def test_consent_of_one_user_does_not_apply_to_another_user(login: Login) -> None:
    page = login.browser.follow(login.log_in(ask(login, takes="train")))
    login.browser.submit(page, answer="allow")
    person(login.connection, email="eve@example.test")
    again = login.log_in(ask(login, takes="train", anew="1"), identifier="eve@example.test")
    assert again.location.startswith("/u/consent?state=")


# --- Logouts ------------------------------------------------------------------------------------------------------------------


def test_a_logout_redirects_the_browser_to_each_participant_and_back(login: Login) -> None:
    answered(login, bye=BYE)
    other, _ = web_client(login.tenant, name="Other")
    login.connection.enabled_clients.append(other.client_id)
    login.connection.save()
    ask(login, app=other.client_id, silent="1", bye="https://other.example.test/bye")
    set_client(login, post_logout_redirect_uris="https://app.example.test/done")
    first = login.browser.get("/v2/logout", {"client_id": login.client.client_id})
    assert first.location.startswith(f"{BYE}?reason=rp-logout&back=")
    assert "session" not in login.browser.cookies
    assert not Session.objects.of(login.tenant.pk).exists()
    second = login.browser.get("/u/logout/next", {"state": first.answer["back"]})
    assert second.location.startswith("https://other.example.test/bye?reason=rp-logout&back=")
    assert login.browser.get("/u/logout/next", {"state": second.answer["back"]}).location == "https://app.example.test/done"
    assert not LogoutTransaction.objects.of(login.tenant.pk).exists()


def test_a_logout_without_a_return_address_ends_on_the_logged_out_page(login: Login) -> None:
    answered(login, bye=BYE)
    first = login.browser.get("/v2/logout")
    last = login.browser.get("/u/logout/next", {"state": first.answer["back"]})
    assert last.location == f"{login.issuer}u/logged-out"


@pytest.mark.parametrize("handle", ["", "unknown", "x" * 10_000])
def test_a_return_from_an_unknown_logout_is_refused(login: Login, handle: str) -> None:
    assert login.browser.get("/u/logout/next", {"state": handle}).status == 400


def test_a_used_logout_handle_is_refused(login: Login) -> None:
    answered(login, bye=BYE)
    handle = login.browser.get("/v2/logout").answer["back"]
    login.browser.get("/u/logout/next", {"state": handle})
    assert login.browser.get("/u/logout/next", {"state": handle}).status == 400


def test_a_logout_ends_at_the_failure_address_if_a_participant_keeps_its_session(login: Login, rf: Any) -> None:
    answered(login, bye=BYE)
    host = resolve_host(login.browser.host)
    assert host is not None
    session = Session.objects.of(login.tenant.pk).get()
    ends: dict[str, Any] = {
        "then": protocol.BrowserCall("https://a.test/good"),
        "otherwise": protocol.BrowserCall("https://a.test/bad", {"status": "partial"}),
    }
    first = round_trips.begin(session, reason="rp-logout", **ends)
    assert first is not None
    handle = first.address.partition("back=")[2]
    assert round_trips.expected(host, handle).state == {"told": "rp-logout"}
    last = round_trips.go_on(rf.get("/"), host, handle, is_told=False)
    assert (last.status_code, b'action="https://a.test/bad"' in last.content, b'value="partial"' in last.content) == (200, True, True)
    with pytest.raises(RequestRefused):
        round_trips.expected(host, handle)


def test_a_session_that_ends_without_a_browser_starts_no_round_trip(login: Login) -> None:
    answered(login, bye=BYE)
    assert end_session(Session.objects.of(login.tenant.pk).get(), reason="session-revoked") == []
    assert not LogoutTransaction.objects.of(login.tenant.pk).exists()


def test_the_state_of_a_participant_is_sealed_and_the_newest_state_is_used(login: Login) -> None:
    answered(login, bye="https://app.example.test/canary")
    assert "canary" not in SessionClient.objects.of(login.tenant.pk).get().sealed_state
    ask(login, silent="1", bye=BYE)
    assert login.browser.get("/v2/logout").location.startswith(f"{BYE}?")
