"""Linking at `/authorize`, unlinking at `/login/unlink`, and impersonation: a client can change only the accounts of its user."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.login.cookies import SESSION, cookie_name
from authapi.models import Session
from authapi.services.clients import create_client
from foundation.tenancy import tenant_bound
from identity.models import LinkedIdentity, User
from identity.services.users import link_users
from tests.authapi.browser import Browser, Page
from tests.authapi.protocols.legacy.conftest import CALLBACK, GRANTS, OldClient, change, refusal
from tests.factories.authapi import access_token, global_client
from tests.factories.identity import make_user
from tests.factories.sign_in import PASSWORD, session_of

BOB = "bob@example.test"
NOT_LINKED = (400, "invalid_request", "The identity is not linked to this user.")
INVALID = (401, "unauthorized", "The access token is invalid or has expired.")


def logged_in(old: OldClient, user: User | None = None) -> Browser:
    """Return a browser with a session of a user."""
    _, cookie = session_of(user or old.user)
    return Browser(old.tenant, cookies={cookie_name(SESSION): cookie})


def begin(old: OldClient, browser: Browser, token: str, **changes: Any) -> Page:
    asked = {"client_id": old.client.client_id, "response_type": "code", "redirect_uri": CALLBACK, "scope": "openid", "state": "st"}
    return browser.get("/authorize", {**asked, "access_token": token, **changes})


def agree(browser: Browser, page: Page, answer: str = "link") -> Page:
    return browser.submit(browser.follow(page), answer=answer)


def log_in(browser: Browser, page: Page, identifier: str) -> Page:
    return browser.submit(browser.follow(page), username=identifier, password=PASSWORD)


def token_of(old: OldClient) -> str:
    return str(old.log_in().json()["access_token"])


def told(page: Page) -> tuple[str, str]:
    return page.answer["error"], page.answer["error_description"]


@pytest.fixture
def bob(old: OldClient) -> User:
    return make_user(connection=old.connection, email=BOB, password=PASSWORD)


def test_an_account_is_linked_after_the_user_confirmed_and_logged_in_to_both_accounts(old: OldClient, bob: User) -> None:
    browser = logged_in(old)
    page = begin(old, browser, token_of(old))
    assert page.location.startswith("/u/link-account?")
    done = log_in(browser, agree(browser, page), BOB)
    assert "code" in done.answer, done.text
    with tenant_bound(old.tenant.pk):
        assert not User.objects.filter(pk=bob.pk).exists()
        assert LinkedIdentity.objects.get(identifier=bob.identifier).user_id == old.user.pk
    assert Session.objects.of(old.tenant.pk).get().user_id == old.user.pk


def test_no_account_is_linked_before_the_user_agrees(old: OldClient, bob: User) -> None:
    browser = logged_in(old)
    page = begin(old, browser, token_of(old))
    assert told(agree(browser, page, "cancel")) == ("access_denied", "The user did not agree to link the accounts.")
    # A user who opens the login page without answering the question cannot complete this login.
    question = browser.follow(begin(old, browser, token_of(old)))
    form = browser.get("/u/login", {"state": question.fields()["state"]})
    assert told(browser.submit(form, username=BOB, password=PASSWORD))[0] == "access_denied"
    assert User.objects.of(old.tenant.pk).filter(pk=bob.pk).exists()


def test_a_link_request_prepared_by_an_attacker_links_nothing(old: OldClient, bob: User) -> None:
    # The token belongs to the attacker. The browser belongs to the victim, who may or may not have a session.
    for victim in (logged_in(old, bob), Browser(old.tenant)):
        page = begin(old, victim, token_of(old))
        assert told(page)[1] == "Log in as the user of the access token in this browser before you link an account."
    assert User.objects.of(old.tenant.pk).filter(pk=bob.pk).exists()


def test_nothing_is_linked_if_the_user_of_the_browser_changes_between_question_and_login(old: OldClient, bob: User) -> None:
    browser = logged_in(old)
    form = browser.follow(agree(browser, begin(old, browser, token_of(old))))
    _, browser.cookies[cookie_name(SESSION)] = session_of(make_user(connection=old.connection, email="eve@example.test"))
    assert told(browser.submit(form, username=BOB, password=PASSWORD))[0] == "access_denied"
    assert User.objects.of(old.tenant.pk).filter(pk=bob.pk).exists()


def test_a_request_without_a_token_cannot_name_the_account_to_link(old: OldClient, bob: User) -> None:
    browser = logged_in(old, bob)
    page = begin(old, browser, "", link_to=old.user.user_id)
    assert "link-account" not in page.location


def test_tokens_of_other_clients_and_tenants_cannot_link_an_account(old: OldClient, second: OldClient) -> None:
    other, _ = create_client(tenant_id=old.tenant.pk, name="Other", grant_types=list(GRANTS), redirect_uris=CALLBACK)
    token = token_of(old)
    for page in (
        begin(old, logged_in(old), token, client_id=other.client_id),
        begin(old, logged_in(old), token_of(second)),
        begin(old, logged_in(old), "made-up"),
    ):
        assert told(page) == ("unauthorized", "The access token is invalid or has expired.")


def test_a_client_without_legacy_grants_cannot_link_accounts(old: OldClient) -> None:
    token = token_of(old)
    change(old.client, grant_types=["authorization_code"])
    assert told(begin(old, logged_in(old), token))[0] == "unauthorized_client"


def test_a_silent_request_cannot_link_an_account(old: OldClient) -> None:
    assert told(begin(old, logged_in(old), token_of(old), prompt="none"))[0] == "interaction_required"


def test_the_token_is_not_stored_in_plain_text(old: OldClient) -> None:
    browser, token = logged_in(old), token_of(old)
    page = begin(old, browser, token)
    assert token not in page.location
    assert token not in browser.follow(page).text


def test_a_login_with_the_same_account_links_nothing_and_continues(old: OldClient) -> None:
    browser = logged_in(old)
    done = log_in(browser, agree(browser, begin(old, browser, token_of(old))), str(old.user.email))
    assert "code" in done.answer


# --- /login/unlink ----------------------------------------------------------------------------------------------------


def unlink(old: OldClient, **form: Any) -> Any:
    return old.ask("/login/unlink", form)


def test_a_user_can_unlink_their_own_linked_account(old: OldClient, bob: User) -> None:
    token = token_of(old)
    link_users(tenant_id=old.tenant.pk, primary_id=old.user.user_id, secondary_id=bob.user_id)
    answer = unlink(old, access_token=token, user_id=bob.user_id)
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"OK", "text/plain; charset=utf-8")
    assert User.objects.of(old.tenant.pk).filter(user_id=bob.user_id).exists()
    assert refusal(unlink(old, access_token=token, user_id=bob.user_id)) == NOT_LINKED


def test_an_account_of_another_user_gets_the_same_answer_as_an_unknown_account(old: OldClient, bob: User) -> None:
    token = token_of(old)
    carol = make_user(connection=old.connection, email="carol@example.test")
    link_users(tenant_id=old.tenant.pk, primary_id=carol.user_id, secondary_id=bob.user_id)
    for named in (bob.user_id, carol.user_id, "auth0|nobody", "nothing"):
        assert refusal(unlink(old, access_token=token, user_id=named)) == NOT_LINKED
    assert LinkedIdentity.objects.of(old.tenant.pk).filter(user=carol).exists()


def test_the_primary_account_cannot_be_unlinked(old: OldClient) -> None:
    status, error, _ = refusal(unlink(old, access_token=token_of(old), user_id=old.user.user_id))
    assert (status, error) == (400, "invalid_request")


@pytest.mark.parametrize("missing", ["access_token", "user_id"])
def test_the_refusal_names_a_missing_parameter(old: OldClient, missing: str) -> None:
    form = {"access_token": "x", "user_id": "y"}
    assert refusal(unlink(old, **{**form, missing: None})) == (400, "invalid_request", f"missing {missing} parameter")


def test_invalid_tokens_cannot_unlink_an_account(old: OldClient, second: OldClient) -> None:
    for token in ("made-up", "a.b.c", "x" * 9000, token_of(second), old.log_in(scope="profile").json()["access_token"]):
        assert refusal(unlink(old, access_token=token, user_id="auth0|x")) == INVALID


# --- Impersonation ----------------------------------------------------------------------------------------------------


def impersonate(old: OldClient, **headers: str) -> Any:
    return old.ask("/users/<str:user_id>/impersonate", {"protocol": "oauth2", "impersonator_id": "x", "client_id": "y"}, **headers)


def test_impersonation_is_refused_and_the_answer_suggests_an_alternative(old: OldClient) -> None:
    token = access_token(old.tenant, global_client(old.tenant))
    words = "Impersonation is not available. Log in as a test user, or ask the user."
    assert refusal(impersonate(old, authorization=f"Bearer {token}")) == (403, "access_denied", words)


def test_callers_without_a_token_get_a_refusal_without_details(old: OldClient) -> None:
    for headers in ({}, {"authorization": "Bearer x"}, {"authorization": "Basic x"}):
        assert refusal(impersonate(old, **headers)) == (401, "invalid_token", "Unauthorized")


def test_every_path_of_old_clients_has_an_endpoint(old: OldClient) -> None:
    browser = Browser(old.tenant)
    assert browser.send("POST", "/users/auth0%7Cx/impersonate").status == 401
    assert browser.send("POST", "/delegation", body=b"{}", headers={"content-type": "application/json"}).status == 400
    assert browser.get("/user/ssodata").body == b'{"sso":false}'
