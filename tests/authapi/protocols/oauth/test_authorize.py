"""`/authorize` over the ASGI application: refusals on a page, refusals sent to the client, logins, and the contents of answers."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from joserfc import jwt
from joserfc.jwk import KeySet

from authapi import tenant_settings
from authapi.models import AuthorizationCode, LoginTransaction, Session, SignIn, TenantSettings
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import revoke_client
from authapi.tokens.keys import published_keys
from foundation.secrets.random_secrets import digest_of
from identity.hosts import forget_hosts
from identity.models import Tenant
from identity.services.tenants import create_tenant
from identity.services.users import update_user
from tests.authapi.browser import Browser, Page
from tests.authapi.login.conftest import Login, set_client
from tests.factories.sign_in import CALLBACK, PASSWORD, people, person, web_client

NOON = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)


def id_token_of(login: Login, token: str) -> dict[str, Any]:
    published = KeySet.import_key_set({"keys": list(published_keys(login.tenant.pk))})
    claims: dict[str, Any] = jwt.decode(token, published, algorithms=["RS256"]).claims
    return claims


def error_of(page: Page) -> tuple[str, str]:
    return page.answer["error"], page.answer["error_description"]


# --- Refusals on a page ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"client_id": None}, "Missing required parameter: client_id"),
        ({"client_id": "nobody"}, "Unknown client: nobody"),
        ({"client_id": "<script>alert(1)</script>"}, "Unknown client: <script>alert(1)</script>"),
        ({"client_id": ["a", "b"]}, "The parameter client_id is repeated."),
        ({"redirect_uri": "https://evil.test/"}, "Callback URL mismatch."),
        ({"redirect_uri": [CALLBACK, "https://evil.test/"]}, "The parameter redirect_uri is repeated."),
        ({"response_mode": "web_message"}, "The origin https://app.example.test is not among the client's web origins."),
        ({"state": "a\x00b"}, "A value contains a NUL character."),
    ],
)
def test_the_browser_is_not_redirected_to_an_untrusted_address(login: Login, changes: dict[str, Any], text: str) -> None:
    page = login.ask(**changes)
    assert page.status == 400
    assert "location" not in page.headers
    assert text in page.text
    assert b"<script" not in page.body
    assert page.headers["x-ratelimit-limit"] == "1000"
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_revoked_clients_and_clients_of_another_tenant_are_unknown(login: Login) -> None:
    other = create_tenant(tenant_id=f"{login.tenant.pk}-b", name="b", host=f"{login.tenant.pk}-b.example.test")
    foreign, _ = web_client(other)
    assert login.ask(client_id=foreign.client_id).status == 400
    revoke_client(tenant_id=login.tenant.pk, client_id=login.client.client_id)
    assert login.ask().status == 400


def test_a_tenant_can_show_errors_on_its_own_page(login: Login) -> None:
    TenantSettings(tenant=login.tenant, values={"error_page": {"url": "https://www.example.test/oops?from=login"}}).save()
    tenant_settings.remembered_settings.clear()
    page = login.ask(client_id="nobody")
    assert page.status == 302
    assert page.location.startswith("https://www.example.test/oops?from=login&error=invalid_request&error_description=Unknown+client")


def test_an_error_page_on_the_tenants_own_host_causes_no_redirect_loop(login: Login) -> None:
    address = f"http://{login.tenant.pk}.example.test/authorize"
    TenantSettings(tenant=login.tenant, values={"error_page": {"url": address}}).save()
    tenant_settings.remembered_settings.clear()
    assert login.ask(client_id="nobody").status == 400


@pytest.mark.parametrize(("status", "expected"), [("suspended", 403), ("draining", 404)])
def test_a_tenant_that_is_not_active_refuses_logins(login: Login, status: str, expected: int) -> None:
    Tenant.objects.filter(pk=login.tenant.pk).update(status=status)
    forget_hosts()
    assert login.ask().status == expected


def test_an_unknown_host_gets_404(login: Login) -> None:
    assert Browser(login.tenant, host="elsewhere.example.test").get("/authorize", login.sent).status == 404


@pytest.mark.parametrize("path", ["/authorize", "/u/login", "/u/consent", "/u/select-account", "/oidc/logout"])
def test_a_method_other_than_get_and_post_returns_405(login: Login, path: str) -> None:
    page = login.browser.send("DELETE", path)
    assert (page.status, page.headers["allow"]) == (405, "GET, POST")


def test_too_many_requests_return_429_with_the_headers_of_the_rate_limit(login: Login, settings: Any) -> None:
    settings.ADDRESS_RATE_BURST = settings.ADDRESS_RATE_PER_SECOND = 1
    settings.ANONYMOUS_RATE_PER_SECOND = 1
    with time_machine.travel(NOON, tick=False):
        # The limit of the IP address allows one request. Two more requests count against the limit of all anonymous callers of the tenant.
        assert [login.ask().status for _ in range(3)] == [302, 302, 302]
        page = login.ask()
    assert (page.status, page.headers["x-ratelimit-remaining"]) == (429, "0")
    assert int(page.headers["retry-after"]) >= 1


# --- Refusals to the client -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "description"),
    [
        ({"response_type": "banana"}, "unsupported_response_type", "Unsupported response type: banana"),
        (
            {"response_type": "token"},
            "unauthorized_client",
            "Response type 'token' not allowed for the client: its grant 'implicit' is off.",
        ),
        ({"prompt": "none"}, "login_required", "Login required"),
        ({"audience": "urn:unknown"}, "access_denied", "Service not enabled within domain: urn:unknown"),
        ({"connection": "unknown"}, "invalid_request", "The connection was not found or is not enabled for the client."),
        ({"organization": "org_x"}, "invalid_request", "parameter organization is not allowed for this client"),
        ({"id_token_hint": "x.y.z"}, "invalid_request", "The id_token_hint is not an id token of this issuer."),
        ({"scope": ["openid", "profile"]}, "invalid_request", "The parameter scope is repeated."),
        ({"nonce": "n" * 256}, "invalid_request", "The nonce is longer than 255 characters."),
    ],
)
def test_errors_are_sent_to_a_trusted_address_of_the_client_with_state_and_issuer(
    login: Login, changes: dict[str, Any], error: str, description: str
) -> None:
    if "id_token_hint" in changes:
        login.begin_session()
    page = login.ask(**changes)
    assert page.status == 302
    assert page.location.startswith(f"{CALLBACK}#" if changes.get("response_type") else f"{CALLBACK}?")
    assert page.answer == {"error": error, "error_description": description, "state": "the-state", "iss": login.issuer}
    assert page.headers["cache-control"] == "no-store"


def test_the_issuer_is_omitted_if_the_tenant_switched_it_off(login: Login) -> None:
    TenantSettings(tenant=login.tenant, values={"authorization_response_iss_parameter_supported": False}).save()
    tenant_settings.remembered_settings.clear()
    assert "iss" not in login.ask(prompt="none").answer


def test_a_missing_state_stays_missing_and_an_unusual_state_is_returned_unchanged(login: Login) -> None:
    assert "state" not in login.ask(prompt="none", state=None).answer
    assert login.ask(prompt="none", state="a b&c=ä#%25").answer["state"] == "a b&c=ä#%25"


def test_a_client_without_any_connection_gets_an_error_that_names_the_reason(login: Login) -> None:
    client, _ = web_client(login.tenant, name="Lonely")
    assert error_of(login.ask(client_id=client.client_id)) == ("invalid_request", "No connection is enabled for the client.")


# --- Logging in -------------------------------------------------------------------------------------------------------------


def test_a_login_returns_a_code_and_stores_only_its_digest(login: Login) -> None:
    first = login.ask()
    assert (first.status, "state" not in first.location) == (302, False)
    assert first.location.startswith("/u/login?state=")
    answer = login.log_in(first)
    assert answer.status == 303
    assert answer.answer.keys() == {"code", "state", "iss"}
    assert (answer.answer["state"], answer.answer["iss"]) == ("the-state", login.issuer)
    row = AuthorizationCode.objects.of(login.tenant.pk).get()
    session = Session.objects.of(login.tenant.pk).get()
    assert row.code == digest_of(answer.answer["code"])
    assert (row.user_id, row.sid, row.redirect_uri, row.is_redirect_uri_given) == (login.user.pk, session.pk, CALLBACK, True)
    assert (session.issuer, session.last_ip, session.methods[0]["name"]) == (login.issuer, "192.0.2.1", "pwd")


def test_the_request_can_be_sent_with_post(login: Login) -> None:
    sent = {"client_id": login.client.client_id, "response_type": "code", "redirect_uri": CALLBACK, "state": "s"}
    first = login.browser.post("/authorize", sent)
    assert first.status == 303
    assert login.log_in(first).answer["state"] == "s"


@pytest.mark.parametrize(("identifier", "password"), [("ada@example.test", "wrong"), ("eve@example.test", PASSWORD)])
def test_a_wrong_password_and_an_unknown_user_get_the_same_refusal(login: Login, identifier: str, password: str) -> None:
    page = login.log_in(login.ask(), identifier=identifier, password=password)
    assert page.status == 400
    assert "Wrong email address or password." in page.text
    assert "session" not in login.browser.cookies
    assert login.log_in(page.__class__(200, page.headers, [], page.body)).answer.keys() == {"code", "state", "iss"}


@pytest.mark.parametrize(
    ("identifier", "password", "problems"),
    [
        ("", "", {"username": "Enter your email address.", "password": "Enter your password."}),
        ("ada@example.test", "", {"password": "Enter your password."}),
        ("eve@example.test", "", {"password": "Enter your password."}),
        ("ada@", PASSWORD, {"username": "Enter an email address like name@example.com."}),
        ("ada @example.test", PASSWORD, {"username": "Enter an email address like name@example.com."}),
    ],
)
def test_a_missing_field_is_reported_without_a_search_for_the_account(
    login: Login, identifier: str, password: str, problems: dict[str, str]
) -> None:
    page = login.log_in(login.ask(), identifier=identifier, password=password)
    assert page.status == 400
    for field, text in problems.items():
        assert re.search(rf'<a href="#{field}">{re.escape(text)}</a>', page.text)
        assert f'aria-describedby="{field}-error"' in page.text
    assert page.text.count('aria-invalid="true"') == len(problems)
    assert not identifier or f'value="{identifier}"' in page.text
    assert not SignIn.objects.of(login.tenant.pk).exists()


def test_a_password_is_never_shown_again_and_the_identifier_is_escaped(login: Login) -> None:
    page = login.log_in(login.ask(), identifier='"><script>', password="canary-password")
    assert b"canary-password" not in page.body
    assert b'value="&quot;&gt;&lt;script&gt;"' in page.body


def test_a_user_can_also_log_in_with_a_username(login: Login) -> None:
    client, _ = web_client(login.tenant, name="Other")
    connection = people(login.tenant, client, name="named", requires_username=True)
    person(connection, username="ada", email="ada@named.example.test")
    assert "code" in login.log_in(login.ask(client_id=client.client_id), identifier="ada").answer


def test_a_blocked_user_is_reported_to_the_client_only_after_the_right_password(login: Login) -> None:
    update_user(tenant_id=login.tenant.pk, user_id=login.user.user_id, changes={"blocked": True})
    assert "Wrong email" in login.log_in(login.ask(), password="wrong").text
    assert error_of(login.log_in(login.ask())) == ("unauthorized", "user is blocked")


def test_a_blocked_identifier_returns_429_whether_or_not_its_account_exists(login: Login) -> None:
    for identifier in ("ada@example.test", "nobody@example.test"):
        pages = [login.log_in(login.ask(), identifier=identifier, password="wrong") for _ in range(11)]
        assert [page.status for page in pages] == [400] * 10 + [429]
        assert "blocked after too many failed logins" in pages[-1].text


# --- Sessions -----------------------------------------------------------------------------------------------------------------


def test_a_browser_with_a_session_gets_an_answer_immediately(login: Login) -> None:
    login.begin_session()
    for prompt in (None, "none"):
        page = login.ask(prompt=prompt)
        assert page.answer.keys() == {"code", "state", "iss"}
    assert LoginTransaction.objects.of(login.tenant.pk).count() == 1
    assert SignIn.objects.of(login.tenant.pk).filter(type="ssa", is_success=True).count() == 1


def test_a_session_of_one_tenant_is_not_valid_at_another_tenant(login: Login) -> None:
    login.begin_session()
    other = create_tenant(tenant_id=f"{login.tenant.pk}-b", name="b", host=f"{login.tenant.pk}-b.example.test")
    client, _ = web_client(other)
    people(other, client)
    browser = Browser(other, cookies=dict(login.browser.cookies))
    page = browser.get("/authorize", {"client_id": client.client_id, "response_type": "code", "prompt": "none"})
    assert page.answer["error"] == "login_required"


def test_a_session_planted_before_the_login_is_invalid_after_the_login(login: Login) -> None:
    attacker = Browser(login.tenant)
    login.browser, victim = attacker, login.browser
    login.begin_session()
    planted = attacker.cookies["session"]
    login.browser = victim
    victim.cookies["session"] = planted
    login.log_in(login.ask(prompt="login"))
    assert victim.cookies["session"] != planted
    login.browser = attacker
    assert login.ask(prompt="none").answer["error"] == "login_required"


def test_a_login_of_another_user_replaces_the_first_user(login: Login) -> None:
    person(login.connection, email="eve@example.test")
    login.begin_session()
    login.log_in(login.ask(prompt="login"), identifier="eve@example.test")
    assert [session.user.email for session in Session.objects.of(login.tenant.pk)] == ["eve@example.test"]


def test_a_session_of_a_connection_that_is_not_enabled_requires_a_new_login(login: Login) -> None:
    client, _ = web_client(login.tenant, name="Other")
    people(login.tenant, client, name="others")
    login.begin_session()
    assert error_of(login.ask(client_id=client.client_id, prompt="none")) == ("login_required", "Login required")


def test_an_id_token_hint_for_another_user_requires_a_login(login: Login) -> None:
    set_client(login, grant_types=["authorization_code", "implicit"])
    login.begin_session()
    hint = login.ask(response_type="id_token", nonce="n").answer["id_token"]
    assert "code" in login.ask(prompt="none", id_token_hint=hint).answer
    person(login.connection, email="eve@example.test")
    login.log_in(login.ask(prompt="login"), identifier="eve@example.test")
    assert error_of(login.ask(prompt="none", id_token_hint=hint)) == ("login_required", "Login required")


def test_a_user_who_does_not_match_the_id_token_hint_is_refused(login: Login) -> None:
    set_client(login, grant_types=["authorization_code", "implicit"])
    login.begin_session()
    hint = login.ask(response_type="id_token", nonce="n").answer["id_token"]
    login.browser.get("/v2/logout")
    person(login.connection, email="eve@example.test")
    page = login.log_in(login.ask(id_token_hint=hint), identifier="eve@example.test")
    assert error_of(page) == ("login_required", "Login required")


def test_the_login_page_replaces_the_sign_up_page_if_sign_ups_are_off(login: Login) -> None:
    assert login.ask(screen_hint="signup").location.startswith("/u/signup?state=")
    client, _ = web_client(login.tenant, name="Closed")
    people(login.tenant, client, name="closed", disable_signup=True)
    assert login.ask(client_id=client.client_id, screen_hint="signup").location.startswith("/u/login?state=")


def test_a_requested_new_login_keeps_the_session_and_the_sid(login: Login) -> None:
    login.begin_session()
    before = Session.objects.of(login.tenant.pk).get()
    first = login.ask(prompt="login")
    assert first.location.startswith("/u/login")
    assert "code" in login.log_in(first).answer
    after = Session.objects.of(login.tenant.pk).get()
    assert (after.pk, after.digest != before.digest, after.authenticated_at > before.authenticated_at) == (before.pk, True, True)


def test_a_request_for_a_new_login_that_is_sent_twice_requires_two_logins(login: Login) -> None:
    first = login.ask(prompt="login")
    login.log_in(first)
    again = login.browser.follow(first)
    assert again.status == 200
    assert "Log in" in again.text


def test_max_age_requires_a_new_login_if_the_last_login_is_too_old(login: Login) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        login.begin_session()
        clock.shift(timedelta(seconds=61))
        assert "code" in login.ask(max_age="61", prompt="none").answer
        assert login.ask(max_age="60", prompt="none").answer["error"] == "login_required"
        assert "code" in login.log_in(login.ask(max_age="60")).answer


def test_cookies_are_host_only_secure_and_hidden_from_scripts(login: Login, settings: Any) -> None:
    login.begin_session()
    settings.INSECURE_HTTP = False
    from django.http import HttpResponse

    from authapi.login.cookies import SESSION, set_cookie

    answer = HttpResponse()
    set_cookie(answer, SESSION, "value", seconds=60)
    morsel = answer.cookies["__Host-session"]
    assert (morsel["secure"], morsel["httponly"], morsel["samesite"], morsel["path"], morsel["domain"]) == (True, True, "None", "/", "")


def test_a_session_cookie_lasts_until_the_browser_closes(login: Login) -> None:
    TenantSettings(tenant=login.tenant, values={"session_cookie": {"mode": "non-persistent"}}).save()
    tenant_settings.remembered_settings.clear()
    (cookie,) = [line for line in login.begin_session().set_cookies if line.startswith("session=")]
    assert "Max-Age" not in cookie
    assert not Session.objects.of(login.tenant.pk).get().is_persistent


# --- Binding to the browser -----------------------------------------------------------------------------------------------------


def test_a_login_started_by_another_browser_cannot_be_finished(login: Login) -> None:
    first = login.ask()
    login.browser = Browser(login.tenant)
    page = login.browser.follow(first)
    assert (page.status, "started in another browser" in page.text) == (400, True)
    login.browser.cookies["browser"] = "x" * 43
    assert login.browser.follow(first).status == 400


@pytest.mark.parametrize("path", ["/u/login", "/u/consent", "/u/select-account"])
@pytest.mark.parametrize("handle", ["", "unknown", "x" * 10_000])
def test_a_page_whose_login_request_is_missing_shows_an_error(login: Login, path: str, handle: str) -> None:
    page = login.browser.get(path, {"state": handle})
    assert (page.status, "has expired" in page.text) == (400, True)


def test_a_login_request_expires(login: Login, settings: Any) -> None:
    first = login.ask()
    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=settings.AUTHORIZATION_REQUEST_SECONDS + 1)):
        assert login.browser.follow(first).status == 400


@pytest.mark.parametrize(
    ("token", "origin"), [("", None), ("x" * 64, None), (None, "https://evil.test"), (None, "null"), (None, "http://evil.example.test")]
)
def test_a_form_of_another_site_is_refused(login: Login, token: str | None, origin: str | None) -> None:
    form = login.browser.follow(login.ask())
    fields = {**form.fields(), "username": "ada@example.test", "password": PASSWORD}
    if token is not None:
        fields["form_token"] = token
    page = login.browser.post("/u/login", fields, **({"Origin": origin} if origin else {}))
    assert page.status == 400
    assert "session" not in login.browser.cookies


def test_a_login_started_by_the_previous_version_can_be_finished(login: Login) -> None:
    form = login.browser.follow(login.ask())
    # The previous version stored the parameters unsealed, and supported no protocol besides OAuth.
    LoginTransaction.objects.of(login.tenant.pk).update(sealed_request="", parameters=login.sent)
    answer = login.browser.submit(form, username="ada@example.test", password=PASSWORD)
    assert answer.answer.keys() == {"code", "state", "iss"}


def test_submitting_a_form_twice_returns_two_answers(login: Login) -> None:
    form = login.browser.follow(login.ask())
    answers = [login.browser.submit(form, username="ada@example.test", password=PASSWORD).answer for _ in range(2)]
    assert answers[0]["code"] != answers[1]["code"]
    assert Session.objects.of(login.tenant.pk).count() == 1


def test_a_callback_that_was_removed_from_the_client_gets_no_answer(login: Login) -> None:
    form = login.browser.follow(login.ask())
    set_client(login, redirect_uris="https://app.example.test/other")
    page = login.browser.submit(form, username="ada@example.test", password=PASSWORD)
    assert (page.status, "Callback URL mismatch." in page.text) == (400, True)
    assert "session" not in login.browser.cookies


# --- Answers ----------------------------------------------------------------------------------------------------------------------


def test_hybrid_and_implicit_answers_are_in_the_fragment(login: Login) -> None:
    create_api_resource(tenant_id=login.tenant.pk, identifier="urn:orders", scopes=[{"value": "read:orders"}])
    set_client(login, grant_types=["authorization_code", "implicit"])
    login.begin_session()
    page = login.ask(response_type="token id_token code", nonce="the-nonce", audience="urn:orders", scope="openid read:orders unknown")
    assert page.location.startswith(f"{CALLBACK}#")
    assert page.answer.keys() == {"code", "access_token", "token_type", "expires_in", "scope", "id_token", "state", "iss"}
    assert (page.answer["token_type"], page.answer["expires_in"], page.answer["scope"]) == ("Bearer", "7200", "openid read:orders")
    claims = id_token_of(login, page.answer["id_token"])
    assert (claims["nonce"], claims["aud"], claims["sub"]) == ("the-nonce", login.client.client_id, login.user.user_id)
    assert claims["sid"] == Session.objects.of(login.tenant.pk).get().pk
    assert {"at_hash", "c_hash"} <= claims.keys()


def test_a_posted_answer_needs_no_script_and_its_targets_are_limited(login: Login) -> None:
    login.begin_session()
    page = login.ask(response_mode="form_post", state='"><script>x')
    assert page.status == 200
    assert page.form_action() == CALLBACK
    assert page.fields().keys() == {"code", "state", "iss"}
    assert page.fields()["state"] == '"><script>x'
    assert b'<button type="submit">' in page.body
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "form-action https:" in policy
    assert "unsafe" not in policy
    assert page.body.count(b"<script") == 1


def test_only_the_registered_origin_gets_a_web_message_and_may_frame_its_page(login: Login) -> None:
    set_client(login, settings={"web_origins": ["https://app.example.test"]})
    page = login.ask(response_mode="web_message", prompt="none", state="</script>")
    assert page.status == 200
    assert "frame-ancestors https://app.example.test" in page.headers["content-security-policy"]
    assert "x-frame-options" not in page.headers
    assert page.headers["cross-origin-opener-policy"] == "unsafe-none"
    assert 'data-origin="https://app.example.test"' in page.text
    assert '"error": "login_required"' in page.text
    assert page.body.count(b"</script>") == 1


def test_the_query_of_a_callback_is_kept(login: Login) -> None:
    set_client(login, redirect_uris="https://app.example.test/cb?x=1")
    page = login.ask(redirect_uri=None, prompt="none")
    assert page.location.startswith("https://app.example.test/cb?x=1&error=login_required")


def test_a_native_application_gets_the_answer_at_its_own_url_scheme(login: Login) -> None:
    set_client(login, redirect_uris="com.example.app:/done")
    page = login.ask(redirect_uri="com.example.app:/done", prompt="none")
    assert page.location.startswith("com.example.app:/done?error=login_required")


def test_the_page_uses_the_first_requested_language_that_the_tenant_enables(login: Login) -> None:
    TenantSettings(tenant=login.tenant, values={"enabled_locales": ["de", "en"]}).save()
    tenant_settings.remembered_settings.clear()
    assert '<html lang="en"' in login.browser.follow(login.ask(ui_locales="fr en-GB")).text
    assert '<html lang="de"' in login.browser.follow(login.ask(ui_locales="xx")).text


def test_the_login_hint_fills_in_the_form(login: Login) -> None:
    assert 'value="eve@example.test"' in login.browser.follow(login.ask(login_hint="eve@example.test")).text


def test_an_authorization_request_can_be_sent_as_json(login: Login) -> None:
    login.begin_session()
    asked = {**login.sent, "prompt": "none", "max_age": 3600, "nonce": None}
    headers = {"Content-Type": "application/json"}
    page = login.browser.send("POST", "/authorize", body=json.dumps(asked).encode(), headers=headers)
    assert page.answer["state"] == "the-state"
    assert "code" in page.answer
    for body in (b"[]", b"{", json.dumps({**asked, "scope": ["openid"]}).encode()):
        assert login.browser.send("POST", "/authorize", body=body, headers=headers).status == 400


# --- Registered URLs ---------------------------------------------------------------------------------------------


def test_a_callback_with_a_wildcard_is_never_the_default(login: Login) -> None:
    set_client(login, redirect_uris=f"https://*.example.com/back {CALLBACK}")
    login.begin_session()
    assert login.ask(redirect_uri=None, prompt="none").location.startswith(f"{CALLBACK}?")
    matching = "https://pr-7.example.com/back"
    assert login.ask(redirect_uri=matching, prompt="none").location.startswith(f"{matching}?")
    for odd in ("https://*.example.com/back", "https://a.b.example.com/back", "https://example.com/back"):
        page = login.ask(redirect_uri=odd, prompt="none")
        assert (page.status, "location" in page.headers) == (400, False)
    set_client(login, redirect_uris="https://*.example.com/back")
    assert login.ask(redirect_uri=None, prompt="none").status == 400


def test_only_a_native_client_may_use_any_loopback_port(login: Login) -> None:
    set_client(login, redirect_uris=f"http://127.0.0.1/cb {CALLBACK}", app_type="native")
    login.begin_session()
    page = login.ask(redirect_uri="http://127.0.0.1:49152/cb", prompt="none")
    assert page.location.startswith("http://127.0.0.1:49152/cb?")
    set_client(login, app_type="regular_web")
    assert login.ask(redirect_uri="http://127.0.0.1:49152/cb", prompt="none").status == 400


def test_only_an_authorization_code_can_be_bound_to_a_key(login: Login) -> None:
    login.begin_session()
    assert login.ask(prompt="none", dpop_jkt="short").answer["error"] == "invalid_request"
    assert "code" in login.ask(prompt="none", dpop_jkt="A" * 43).answer
    set_client(login, grant_types=["authorization_code", "implicit"])
    refused = login.ask(prompt="none", dpop_jkt="A" * 43, response_type="code token").answer
    assert (refused["error"], "bound to no key" in refused["error_description"]) == ("invalid_request", True)


# --- Single sign-on ---------------------------------------------------------------------------------------------------


def test_a_client_without_single_sign_on_does_not_accept_the_login_of_another_client(login: Login) -> None:
    other, _ = web_client(login.tenant, settings={"sso_disabled": True})
    login.connection.enabled_clients = [*login.connection.enabled_clients, other.client_id]
    login.connection.save()
    login.begin_session()
    assert login.ask(client_id=other.client_id, prompt="none").answer["error"] == "login_required"
    # A login at this client itself is accepted. Afterwards, the client accepts the session without a new login.
    assert "code" in login.log_in(login.ask(client_id=other.client_id)).answer
    assert "code" in login.ask(client_id=other.client_id, prompt="none").answer
    assert "code" in login.ask(prompt="none").answer
