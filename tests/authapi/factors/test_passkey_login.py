"""Passkeys at the hosted login: refused and accepted answers, and the offer to create a passkey."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from webauthn.helpers import bytes_to_base64url

from authapi.models import PasskeyCeremony, Session, SignIn
from identity.factors.user_factors import remove_factor, user_handle
from identity.models import EnrolledFactor
from identity.services.users import block_user
from tests.authapi.browser import Page
from tests.authapi.factors.passkeys import authenticator, give_passkey, set_passkeys
from tests.authapi.factors.walks import (
    Walk,
    another,
    give_key,
    login,  # noqa: F401  (used by `walk`)
    walk,
)
from tests.authapi.login.conftest import set_client
from tests.factories.authenticator import Authenticator
from tests.factories.models.identity import TenantFactory
from tests.factories.sign_in import PASSWORD, people, person, web_client

__all__ = ["walk"]
REFUSED = "This passkey was not accepted."
OFFER = "Log in faster next time"


def login_page(at: Walk) -> Page:
    page = at.followed(at.at.ask())
    assert page.status == 200, page.text
    return page


def attempt(at: Walk, key: Authenticator, page: Page | None = None, **changes: Any) -> Page:
    """Sign the challenge of a login page, and submit the signature there."""
    page = page or login_page(at)
    return at.browser.submit(page, credential=key.signed({**at.options(page), **changes}))


def sessions(at: Walk) -> int:
    return Session.objects.of(at.at.tenant.pk).count()


def test_only_a_valid_answer_to_the_challenge_of_the_login_is_accepted(walk: Walk) -> None:
    tenant, host, user = walk.at.tenant, walk.browser.host, walk.at.user
    set_passkeys(tenant, walk.at.connection)
    eve = person(walk.at.connection, email="eve@example.test")
    elsewhere = login_page(another(walk))

    def of_eve(key: Authenticator) -> None:
        key.user_handle = bytes_to_base64url(user_handle(eve))

    tricks: dict[str, Callable[[Authenticator], Any]] = {
        "a page of another site": lambda key: setattr(key, "origin", "http://evil.example.test"),
        "another domain": lambda key: setattr(key, "rp_id", "evil.example.test"),
        "no verification of the user": lambda key: setattr(key, "verifies", False),
        "a signature count that does not increase": lambda key: setattr(key, "count", 0),
        "another user's handle": of_eve,
        "no handle": lambda key: setattr(key, "user_handle", ""),
        "an unknown key": lambda key: setattr(key, "credential_id", b"unknown"),
        "another private key": lambda key: setattr(key, "key", Authenticator().key),
    }
    for name, spoil in tricks.items():
        key, _ = give_passkey(user, host, authenticator(host))
        spoil(key)
        answer = attempt(walk, key)
        assert (answer.status, REFUSED in answer.text) == (400, True), name
    good, _ = give_passkey(user, host)
    # Refused: the challenge of another login, an empty answer, and a challenge that was answered before.
    assert attempt(walk, good, challenge=another(walk).options(elsewhere)["challenge"]).status == 400
    page = login_page(walk)
    assert walk.browser.submit(page, credential="{}").status == 400
    assert attempt(walk, good, page).status == 400
    # A security key that was enrolled as a second factor cannot be used as a passkey.
    second = give_key(user, host)
    second.verifies, second.user_handle = True, good.user_handle
    assert attempt(walk, second).status == 400
    assert sessions(walk) == 0
    lines = SignIn.objects.of(tenant.pk).filter(type="f")
    assert lines.count() == len(tricks) + 4


def test_a_passkey_logs_in_once_without_a_name_and_counts_as_two_factors(walk: Walk) -> None:
    tenant, host = walk.at.tenant, walk.browser.host
    set_passkeys(tenant, walk.at.connection, policy="always", factors=["otp"])
    key, factor = give_passkey(walk.at.user, host)
    page = login_page(walk)
    assert 'autocomplete="username webauthn"' in page.body.decode()
    assert walk.options(page)["userVerification"] == "required"
    assert walk.options(page)["allowCredentials"] == []
    credential = key.signed(walk.options(page))
    answer = walk.browser.submit(page, credential=credential)
    assert "code" in answer.answer
    [session] = Session.objects.of(tenant.pk)
    assert [method["name"] for method in session.methods] == ["pop", "user", "mfa"]
    # The same answer is sent again: in the same login after its challenge was replaced, and in another login.
    for again in (walk, another(walk)):
        assert again.browser.submit(page if again is walk else login_page(again), credential=credential).status == 400
    assert sessions(walk) == 1
    line = SignIn.objects.of(tenant.pk).get(type="s")
    assert line.details["passkey"] == factor.device
    assert (line.user_id, line.connection) == (walk.at.user.user_id, walk.at.connection.name)
    factor.refresh_from_db()
    assert factor.sign_count == key.count
    assert credential not in str(list(PasskeyCeremony.objects.of(tenant.pk).values_list("sealed", flat=True)))


def test_a_passkey_is_refused_if_its_user_is_blocked_or_the_connection_allows_no_passkeys(walk: Walk) -> None:
    tenant, connection, user = walk.at.tenant, walk.at.connection, walk.at.user
    set_passkeys(tenant, connection)
    key, factor = give_passkey(user, walk.browser.host)
    page = login_page(walk)
    set_passkeys(tenant, connection, is_on=False)
    assert attempt(walk, key, page).status == 400
    # Where the connection does not allow passkeys, the page neither offers them nor loads their script.
    closed = login_page(walk)
    assert ("data-conditional" in closed.text, "factor_keys.js" in closed.text) == (False, False)
    set_passkeys(tenant, connection)
    # A passkey of a connection that is not enabled for the client.
    inner, _ = give_passkey(person(people(tenant, name="staff", **connection.options), email="bob@example.test"), walk.browser.host)
    assert attempt(walk, inner).status == 400
    page = login_page(walk)
    remove_factor(tenant_id=tenant.pk, user_id=user.user_id, device=factor.device)
    assert attempt(walk, key, page).status == 400
    blocked, _ = give_passkey(user, walk.browser.host)
    block_user(tenant_id=tenant.pk, user_id=user.user_id)
    assert attempt(walk, blocked).answer["error"] == "unauthorized"
    assert sessions(walk) == 0


def test_a_passkey_of_another_tenant_is_unknown(walk: Walk) -> None:
    set_passkeys(walk.at.tenant, walk.at.connection)
    other = TenantFactory.create()
    theirs = people(other, web_client(other)[0])
    set_passkeys(other, theirs)
    key, _ = give_passkey(person(theirs), walk.browser.host)
    refused = attempt(walk, key)
    assert (refused.status, REFUSED in refused.text, sessions(walk)) == (400, True, 0)
    assert not SignIn.objects.of(other.pk).filter(type__in=("s", "f")).exists()


@pytest.mark.parametrize("ui", ["button", "autofill"])
def test_a_connection_selects_a_button_or_autofill_for_passkeys(walk: Walk, ui: str) -> None:
    set_passkeys(walk.at.tenant, walk.at.connection, options={"passkey_options": {"challenge_ui": ui}})
    page = login_page(walk)
    assert (" data-button" in page.text, " data-conditional" in page.text) == (ui == "button", ui == "autofill")
    assert ("username webauthn" in page.text) == (ui == "autofill")


def with_offer(at: Walk, **settings: Any) -> None:
    set_passkeys(at.at.tenant, at.at.connection, offers_passkeys=True, **settings)


def to_offer(at: Walk, **asked: Any) -> Page:
    """Log in with a password, in a browser that reports that it can create passkeys."""
    page = at.followed(at.at.ask(**asked))
    return at.followed(at.browser.submit(page, username="ada@example.test", password=PASSWORD, can_make_passkeys="1"))


def made_by(at: Walk, page: Page, key: Authenticator, **changes: Any) -> Page:
    return at.browser.submit(page, credential=key.made({**at.options(page), **changes}), name="My laptop")


def test_the_offer_accepts_only_a_key_that_was_created_for_it(walk: Walk) -> None:
    with_offer(walk)
    page, host = to_offer(walk), walk.browser.host
    assert OFFER in page.text
    lax, foreign = authenticator(host), Authenticator(origin="http://evil.example.test", rp_id=host)
    lax.verifies = False
    for key, changes in ((lax, {}), (foreign, {}), (authenticator(host), {"challenge": "eA"})):
        page = made_by(walk, page, key, **changes)
        assert (page.status, OFFER in page.text) == (400, True)
    # Refused: a passkey of another account, and a form that was created for another user.
    taken, _ = give_passkey(person(walk.at.connection, email="eve@example.test"), host)
    page = made_by(walk, page, taken)
    assert page.status == 409
    assert OFFER in walk.browser.submit(page, user="auth0|other", answer="later").text
    assert not EnrolledFactor.objects.of(walk.at.tenant.pk).filter(user=walk.at.user).exists()


def test_a_user_creates_a_passkey_after_a_login_and_gets_no_further_offer(walk: Walk) -> None:
    with_offer(walk)
    key, page = authenticator(walk.browser.host), to_offer(walk)
    options = walk.options(page)
    assert (options["authenticatorSelection"]["residentKey"], options["authenticatorSelection"]["userVerification"]) == ("required",) * 2
    assert "code" in made_by(walk, page, key).answer
    [factor] = EnrolledFactor.objects.of(walk.at.tenant.pk).filter(user=walk.at.user)
    assert (factor.kind, factor.name, factor.relying_party) == ("passkey", "My laptop", walk.browser.host)
    fresh = another(walk)
    assert "code" in attempt(fresh, key).answer
    assert "code" in to_offer(fresh, prompt="login").answer


def test_a_passkey_is_offered_only_if_the_browser_and_the_settings_allow_it(walk: Walk) -> None:
    with_offer(walk)
    # The first login does not report that the browser supports passkeys. The second login shows no page (`prompt=none`).
    assert "code" in walk.followed(walk.at.log_in(walk.at.ask())).answer
    assert "code" in walk.at.ask(prompt="none").answer
    assert "code" in walk.browser.submit(to_offer(walk, prompt="login"), answer="later").answer
    assert "no_passkey" not in walk.browser.cookies
    assert "code" in walk.browser.submit(to_offer(walk, prompt="login"), answer="never").answer
    assert "no_passkey" in walk.browser.cookies
    assert "code" in to_offer(walk, prompt="login").answer
    # A new browser has no cookie `no_passkey`. It still gets no offer, because the connection has switched offers off.
    with_offer(walk, options={"passkey_options": {"progressive_enrollment_enabled": False}})
    assert "code" in to_offer(another(walk)).answer


def test_a_passkey_is_offered_only_after_the_second_factor(walk: Walk) -> None:
    set_client(walk.at, settings={})
    with_offer(walk, factors=["otp"], policy="always")
    page = to_offer(walk)
    assert OFFER not in page.text
    state = page.fields()["state"]
    assert OFFER not in walk.followed(walk.browser.get("/u/passkey", {"state": state})).text
