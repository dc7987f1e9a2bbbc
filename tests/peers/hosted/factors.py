"""Visits of the pages on which a user proves a second factor or enrolls a first factor."""

from __future__ import annotations

import time

from authapi.accounts.setup_links import PATH, create_setup_link
from foundation.secrets import totp
from identity.factors.user_factors import begin_enrolment, confirm_enrolment
from identity.models import EnrolledFactor, User
from tests.factories.sign_in import PASSWORD
from tests.peers.hosted.walk import Walk
from tests.peers.hosted.world import NUMBER

TITLE, SETUP = "Confirm that it is you", "Protect your account"


def prove(walk: Walk) -> None:
    """Visit the pages on which a user proves a factor: an app, the list of other methods, a code by text message, and a recovery code."""
    user = walk.world.another_person(walk.unique("factor"))
    code = _give(user, kind="totp", secret=totp.new_secret())
    _give(user, kind="phone", address=NUMBER)
    EnrolledFactor.objects.of(user.tenant_id).filter(user=user).update(last_used_at=None)
    walk.ask("plain")
    walk.submit_login(user.email or "", PASSWORD)
    walk.look(TITLE, "Enter the code that your authenticator app shows.")
    walk.submit(code="000000")
    walk.look(TITLE, "This code is wrong or was used already. Enter the one that the app shows now.", status=400)
    others = "main .alternatives a"
    walk.follow(others)
    walk.look("Choose a method", "Recovery code")
    walk.follow(".stack a:nth-of-type(2)")
    walk.look(TITLE, "Send another message")
    walk.follow("button[name=again]")
    walk.look(TITLE, "There is a problem", status=429)
    walk.follow(others)
    walk.follow(".stack a:last-of-type")
    walk.look(TITLE, "Enter your recovery code. It works once, and you get a new one.")
    walk.submit(code=code)
    walk.look("Save your recovery code", "I have saved the code")
    walk.page.click("[name=saved]")
    walk.submit()
    assert walk.page.text() == "You are back."


def set_up(walk: Walk) -> None:
    """Visit the page of every method that a user without a factor can choose, and enroll an app."""
    user = walk.world.another_person(walk.unique("setup"))
    walk.ask("demanding")
    walk.submit_login(user.email or "", PASSWORD)
    walk.look(SETUP, "Screen lock of this device")
    _choose(walk, "webauthn-roaming", "Set up a security key")
    _choose(walk, "webauthn-platform", "Set up this device")
    _choose(walk, "phone", "Set up codes by text message")
    walk.submit(phone_number="12")
    walk.look("Set up codes by text message", "Enter a phone number with the country code, such as +1 555 010 0000.", status=400)
    walk.submit(phone_number=NUMBER)
    walk.look("Set up codes by text message", "Use another phone number")
    _choose(walk, "totp", "Set up an authenticator app")
    walk.submit(code="000000")
    walk.look("Set up an authenticator app", "The 6 digits that the app shows now.", status=400)
    secret = walk.page.text(".key").replace(" ", "")
    walk.submit(code=code_now(secret))
    walk.look("Save your recovery code")
    walk.page.click("[name=saved]")
    walk.submit()
    assert walk.page.text() == "You are back."


def set_up_by_link(walk: Walk) -> None:
    """Visit the pages of a setup link: for a phone number, for the complete setup of an app, and for a used and an unknown link."""
    user = walk.world.another_person(walk.unique("link"))
    link = _link_for(user)
    walk.open(link)
    walk.look(SETUP, "Screen lock of this device")
    _choose(walk, "webauthn-roaming", "Set up a security key")
    _choose(walk, "phone", "Set up codes by text message")
    walk.submit(phone_number="12")
    walk.look("Set up codes by text message", "Enter a phone number with the country code, such as +1 555 010 0000.", status=400)
    walk.submit(phone_number=NUMBER)
    walk.look("Set up codes by text message", "Use another phone number")
    _choose(walk, "totp", "Set up an authenticator app")
    walk.submit(code="000000")
    walk.look("Set up an authenticator app", "The 6 digits that the app shows now.", status=400)
    walk.submit(code=code_now(walk.page.text(".key").replace(" ", "")))
    walk.look("Second factor set up", "This is your new recovery code. Write it down now: it is not shown again.")
    walk.open(link)
    walk.look("This link has already been used", status=410)
    walk.open(f"{PATH}?ticket=unknown")
    walk.look("This link has expired", status=410)


def add_by_link(walk: Walk) -> None:
    """Visit the pages of a setup link for a user who has a factor. The user must prove this factor first."""
    user = walk.world.another_person(walk.unique("adds"))
    secret = totp.new_secret()
    _give(user, kind="totp", secret=secret)
    _give(user, kind="phone", address=NUMBER)
    EnrolledFactor.objects.of(user.tenant_id).filter(user=user).update(last_used_at=None, last_step=0)
    walk.open(_link_for(user, adds=True))
    walk.look(TITLE, "Enter the code that your authenticator app shows.")
    walk.submit(code="000000")
    walk.look(TITLE, "This code is wrong or was used already. Enter the one that the app shows now.", status=400)
    walk.follow("main .alternatives a")
    walk.look("Choose a method")
    walk.follow(".stack a:nth-of-type(2)")
    walk.look(TITLE, "Send a code")
    walk.follow("button[name=again]")
    walk.look(TITLE, "Another message is on its way.")
    walk.follow("main .alternatives a")
    walk.follow(".stack a:nth-of-type(1)")
    walk.submit(code=code_now(secret))
    walk.look(SETUP, "Code by text message")


def _link_for(user: User, *, adds: bool = False) -> str:
    return f"{PATH}?{create_setup_link(user=user, adds=adds).address.partition('?')[2]}"


def code_now(secret: str) -> str:
    """Return the code that an authenticator app with this secret shows now."""
    return totp.code_of(secret, totp.step_at(time.time()))


def _choose(walk: Walk, kind: str, heading: str) -> None:
    if not walk.page.evaluate(f"!!document.querySelector('button[value={kind}]')"):
        walk.follow("button[name=kind][value='']")
    walk.follow(f"button[value={kind}]")
    walk.look(heading)


def prove_with_a_key(walk: Walk) -> None:
    """Visit the page that requests a security key.

    The key itself is used in `tests.peers.test_second_factors`. It requires a host with a name, and these pages have an IP address.
    """
    user = walk.world.another_person(walk.unique("key"))
    EnrolledFactor(
        tenant_id=user.tenant_id,
        user=user,
        kind="webauthn-roaming",
        credential_id=f"a2V5{walk.language}{int(walk.has_script)}",
        relying_party="127.0.0.1",
        public_key=b"key",
    ).save()
    walk.ask("plain")
    walk.submit_login(user.email or "", PASSWORD)
    walk.look(TITLE, "Press the button, then touch your security key.")


def _give(user: User, **fields: str) -> str:
    factor = begin_enrolment(tenant_id=user.tenant_id, user_id=user.user_id, **fields)
    return confirm_enrolment(tenant_id=user.tenant_id, user_id=user.user_id, device=factor.device).recovery_code
