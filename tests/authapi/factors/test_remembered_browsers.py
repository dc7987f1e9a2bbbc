"""Remembered browsers: which user can skip the second factor in them, until when, and which changes make the service forget them."""

from __future__ import annotations

import time

import time_machine

from authapi.models import RememberedBrowser
from identity.services.users import block_user, unblock_user, update_user
from tests.authapi.factors.walks import (
    Walk,
    another,
    app_code,
    give_app,
    login,  # noqa: F401  (used by `walk`)
    set_factors,
    walk,
)
from tests.authapi.login.conftest import set_client
from tests.factories.sign_in import person

__all__ = ["walk"]
ASKS = "Confirm that it is you"
NEW = "Another-Horse-8-Battery"


def remembered(walk: Walk) -> str:
    """Log in with a ticked box for remembering the browser; return the secret of the app."""
    set_factors(walk.at.tenant, "otp")
    secret, _ = give_app(walk.at.user)
    page = walk.to_second()
    assert "Do not ask again in this browser for 30 days" in page.text
    answer = walk.browser.submit(page, code=app_code(secret), remember="1")
    [cookie] = [line for line in answer.set_cookies if line.startswith("trusted=")]
    assert "HttpOnly" in cookie
    assert "Max-Age=2592000" in cookie
    assert walk.browser.cookies["trusted"] not in str(list(RememberedBrowser.objects.of(walk.at.tenant.pk).values()))
    return secret


def test_a_remembered_browser_skips_the_second_factor_while_the_tenant_allows_it(walk: Walk) -> None:
    remembered(walk)
    assert "code" in walk.to_second(prompt="login").answer
    set_factors(walk.at.tenant, "otp", remembers_browsers=False)
    page = walk.to_second(prompt="login")
    assert (ASKS in page.text, "Do not ask again" in page.text) == (True, False)
    set_factors(walk.at.tenant, "otp")
    with time_machine.travel(time.time() + 31 * 86_400):
        assert ASKS in walk.to_second(prompt="login").text


def test_the_cookie_of_one_user_does_not_skip_the_second_factor_of_another_user(walk: Walk) -> None:
    remembered(walk)
    eve = person(walk.at.connection, email="eve@example.test")
    give_app(eve)
    thief = another(walk)
    thief.browser.cookies["trusted"] = walk.browser.cookies["trusted"]
    page = thief.followed(thief.at.log_in(thief.at.ask(), identifier="eve@example.test"))
    assert ASKS in page.text


def test_a_stolen_cookie_is_useless_after_the_next_login_of_the_owner(walk: Walk) -> None:
    remembered(walk)
    thief = another(walk)
    thief.browser.cookies["trusted"] = walk.browser.cookies["trusted"]
    assert "code" in walk.to_second(prompt="login").answer
    assert walk.browser.cookies["trusted"] != thief.browser.cookies["trusted"]
    assert ASKS in thief.to_second().text
    assert "code" in walk.to_second(prompt="login").answer


def test_an_application_can_request_a_second_factor_even_in_a_remembered_browser(walk: Walk) -> None:
    remembered(walk)
    assert ASKS in walk.to_second(prompt="login", acr_values="http://schemas.openid.net/pape/policies/2007/06/multi-factor").text
    set_client(walk.at, settings={"second_factor_policy": "always"})
    assert "code" in walk.to_second(prompt="login").answer


def test_a_new_password_and_a_block_end_every_remembered_browser(walk: Walk) -> None:
    secret = remembered(walk)
    update_user(tenant_id=walk.at.tenant.pk, user_id=walk.at.user.user_id, changes={"password": NEW})
    page = walk.followed(walk.at.log_in(walk.at.ask(), password=NEW))
    assert ASKS in page.text

    walk.browser.submit(page, code=app_code(secret, steps=1), remember="1")
    assert RememberedBrowser.objects.of(walk.at.tenant.pk).count() == 1
    block_user(tenant_id=walk.at.tenant.pk, user_id=walk.at.user.user_id)
    unblock_user(tenant_id=walk.at.tenant.pk, user_id=walk.at.user.user_id)
    assert not RememberedBrowser.objects.of(walk.at.tenant.pk).exists()
