"""`/usernamepassword/login`, the form in its answer, and other requests of hosted login pages."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from authapi.login.cookies import BROWSER, SESSION, cookie_name
from authapi.models import Session
from identity.services.users import update_user
from tests.authapi.asgi_client import Received
from tests.authapi.browser import Browser, Page
from tests.authapi.protocols.legacy.conftest import CALLBACK, EMAIL, ORIGIN, OldClient, change, refusal
from tests.authapi.protocols.legacy.test_cross_origin import INVALID, cookie_from, told
from tests.factories.sign_in import PASSWORD, session_of


def post(old: OldClient, *, origin: str | None = "", **changes: Any) -> Received:
    form = {
        "client_id": old.client.client_id,
        "redirect_uri": CALLBACK,
        "response_type": "code",
        "scope": "openid",
        "state": "st",
        "tenant": old.tenant.pk,
        "connection": old.connection.name,
        "username": EMAIL,
        "password": PASSWORD,
    }
    own = f"http://{old.host}" if origin == "" else origin
    return old.ask("/usernamepassword/login", {**form, **changes}, **({"origin": own} if own else {}))


def fields_of(answer: Received) -> dict[str, str]:
    found = re.findall(r'name="([^"]+)" value="([^"]*)"', answer.body.decode())
    return {name: html.unescape(value) for name, value in found}


def submit(old: OldClient, answer: Received, browser: Browser, **changes: str) -> Page:
    return browser.post("/login/callback", {**fields_of(answer), **changes}, Origin=f"http://{old.host}")


def test_the_returned_form_logs_its_browser_in(old: OldClient) -> None:
    answer = post(old)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert f'action="http://{old.host}/login/callback"' in answer.body.decode()
    assert fields_of(answer)["wa"] == "wsignin1.0"
    old.browser.cookies[cookie_name(BROWSER)] = cookie_from(answer)
    page = submit(old, answer, old.browser)
    assert page.location.startswith(CALLBACK), page.text
    assert (page.answer["state"], "code" in page.answer) == ("st", True)


def test_the_form_does_not_contain_the_password(old: OldClient) -> None:
    assert PASSWORD not in post(old).body.decode()


def test_the_form_escapes_the_parameters_of_the_page(old: OldClient) -> None:
    answer = post(old, state='"><script>alert(1)</script>')
    assert b"<script>" not in answer.body
    assert json.loads(fields_of(answer)["wctx"])["state"] == '"><script>alert(1)</script>'


def test_a_form_of_another_browser_is_refused(old: OldClient) -> None:
    # Login CSRF: a page of the attacker, which the victim visits, posts the attacker's form.
    answer = post(old)
    assert told(submit(old, answer, Browser(old.tenant))) == INVALID
    assert not Session.objects.of(old.tenant.pk).exists()


def test_the_form_is_accepted_once(old: OldClient) -> None:
    answer = post(old)
    old.browser.cookies[cookie_name(BROWSER)] = cookie_from(answer)
    assert "code" in submit(old, answer, old.browser).answer
    assert told(submit(old, answer, old.browser)) == INVALID


def test_the_redirect_uri_of_the_form_cannot_be_changed(old: OldClient) -> None:
    answer = post(old)
    old.browser.cookies[cookie_name(BROWSER)] = cookie_from(answer)
    context = json.dumps({"client_id": old.client.client_id, "response_type": "code", "redirect_uri": "https://evil.example/"})
    assert submit(old, answer, old.browser, wctx=context).status == 400


def test_the_refusal_tells_a_page_of_another_origin_which_endpoint_to_use(old: OldClient) -> None:
    status, error, words = refusal(post(old, origin=ORIGIN))
    assert (status, error, "/co/authenticate" in words) == (403, "access_denied", True)


@pytest.mark.parametrize("missing", ["client_id", "username", "password", "connection"])
def test_the_refusal_names_a_missing_parameter(old: OldClient, missing: str) -> None:
    assert refusal(post(old, **{missing: None})) == (400, "invalid_request", f"missing {missing} parameter")


def test_refusals_are_the_same_as_for_other_password_logins(old: OldClient) -> None:
    assert refusal(post(old, password="wrong")) == (401, "invalid_user_password", "Wrong email or password.")
    assert refusal(post(old, username="nobody")) == (401, "invalid_user_password", "Wrong email or password.")
    update_user(tenant_id=old.tenant.pk, user_id=old.user.user_id, changes={"blocked": True})
    assert refusal(post(old)) == (401, "unauthorized", "user is blocked")
    change(old.client, settings={"cross_origin_authentication": False})
    assert refusal(post(old)) == (403, "unauthorized_client", "Cross-origin login is off for this client.")


def test_no_captcha_is_required(old: OldClient) -> None:
    assert old.ask("/usernamepassword/challenge", {"state": "st"}).json() == {"required": False}


# --- The logged-in user -----------------------------------------------------------------------------------------------


def known(old: OldClient, **headers: str) -> Received:
    _, cookie = session_of(old.user)
    sent: dict[str, Any] = {"cookie": f"{cookie_name(SESSION)}={cookie}", **headers}
    return old.ask("/user/ssodata", method="GET", query=f"client_id={old.client.client_id}", **sent)


def test_a_page_of_this_host_can_read_which_user_is_logged_in(old: OldClient) -> None:
    told_of = known(old).json()
    assert (told_of["sso"], told_of["lastUsedUserID"], told_of["lastUsedUsername"]) == (True, old.user.user_id, EMAIL)
    assert told_of["lastUsedConnection"] == {"name": "people", "strategy": old.connection.strategy}
    assert old.ask("/user/ssodata", method="GET").json() == {"sso": False}


def test_a_page_of_the_client_can_read_which_user_is_logged_in(old: OldClient) -> None:
    answer = known(old, origin=ORIGIN)
    assert answer.json()["sso"] is True
    assert (answer.headers["access-control-allow-origin"], answer.headers["access-control-allow-credentials"]) == (ORIGIN, "true")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://app.example.test.evil.example"])
def test_a_page_of_another_origin_cannot_read_which_user_is_logged_in(old: OldClient, origin: str) -> None:
    answer = known(old, origin=origin)
    assert answer.json() == {"sso": False}
    assert "access-control-allow-credentials" not in answer.headers


def test_another_site_cannot_read_which_user_is_logged_in_even_without_an_origin(old: OldClient) -> None:
    assert known(old, sec_fetch_site="cross-site").json() == {"sso": False}


@pytest.mark.parametrize("changes", [{"settings": {"cross_origin_authentication": False}}, {"is_first_party": False}])
def test_a_client_that_is_not_trusted_cannot_read_which_user_is_logged_in(old: OldClient, changes: dict[str, Any]) -> None:
    change(old.client, **changes)
    assert known(old, origin=ORIGIN).json() == {"sso": False}


def test_the_country_is_read_from_the_header_that_the_setting_names(old: OldClient, settings: Any) -> None:
    def ask(**headers: Any) -> Any:
        return old.ask("/user/geoloc/country", method="GET", **headers).json()

    assert ask(cf_ipcountry="DE") == {"ip": "192.0.2.1", "country_code": None}
    settings.COUNTRY_HEADER = "CF-IPCountry"
    assert [ask(cf_ipcountry=said)["country_code"] for said in ("de", "XX", "<b>", "")] == ["DE", None, None, None]
