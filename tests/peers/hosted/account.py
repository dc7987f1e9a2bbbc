"""Visits of the account page: each section with and without rows, the messages after changes, and the login before the first visit."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from authapi.models import Consent, Session
from identity.models import EnrolledFactor, User
from identity.services.users import link_users
from tests.factories.sign_in import PASSWORD, session_of
from tests.peers.hosted.factors import code_now
from tests.peers.hosted.walk import Walk
from tests.peers.hosted.world import NUMBER

_FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
_NEW = f"{PASSWORD}-2"


def enter(walk: Walk) -> None:
    """Open a section without a session, log in, and see the section."""
    walk.open("/account/profile")
    walk.look("Log in", "Forgot password?")
    walk.submit_login()
    walk.look("Profile", "Save")


def look_around(walk: Walk) -> None:
    _logged_in(walk, "around")
    walk.open("/account")
    walk.look("Your account", "Delete account")
    for section, heading, says in (
        ("applications", "Applications", "No application has access to your account."),
        ("identities", "Linked accounts", "Main login"),
        ("activity", "Recent activity", "No activity in the last days."),
        ("data", "Your data", "Download your data"),
        ("sessions", "Sessions and devices", "You are not logged in anywhere else."),
    ):
        walk.open(f"/account/{section}")
        walk.look(heading, says)


def look_at_rows(walk: Walk) -> None:
    user = _logged_in(walk, "rows", methods=["pwd", "mfa", "otp"])
    tenant_id = user.tenant_id
    session_of(user, user_agent=_FIREFOX, country="DE")
    scopes = ["openid", "profile", "offline_access"]
    Consent(tenant_id=tenant_id, user=user, client=walk.world.clients["foreign"], scopes=scopes).save()
    second = walk.world.another_person(walk.unique("second"))
    link_users(tenant_id=tenant_id, primary_id=user.user_id, secondary_id=second.user_id)
    for kind in (EnrolledFactor.Kind.TOTP, EnrolledFactor.Kind.PASSKEY):
        EnrolledFactor(tenant_id=tenant_id, user=user, kind=kind, last_used_at=timezone.now()).save()
    for section, heading, says in (
        ("sessions", "Sessions and devices", "Log out there"),
        ("applications", "Applications", "Remove access"),
        ("identities", "Linked accounts", "Unlink"),
        ("two-step", "Two-step verification", "Rename"),
        ("passkeys", "Passkeys", "Remove"),
    ):
        walk.open(f"/account/{section}")
        walk.look(heading, says)
    walk.follow("button[value=remove]")
    # The tenant has not enabled passkeys, so the section of passkeys is gone after the only passkey was removed: open another section.
    walk.open("/account/sessions")
    walk.submit()
    walk.look("Sessions and devices", "That device is logged out.")


def change(walk: Walk) -> None:
    user = _logged_in(walk, "change")
    walk.open("/account/profile")
    walk.submit(picture="http://example.test/a.png")
    walk.look("Profile", "Enter the address of a picture that starts with https://.", status=400)
    walk.submit(picture="")
    walk.look("Profile", "Your changes are saved.")
    walk.open("/account/email")
    walk.submit(email="nowhere")
    walk.look("Email address", "There is a problem", status=400)
    walk.submit(email=walk.unique("other"))
    walk.look("Email address", "Send the link")
    walk.open("/account/password")
    walk.submit(present="wrong", password=_NEW, repeated=_NEW)
    walk.look("Password", "This is not your current password.", status=400)
    walk.submit(present=PASSWORD, password=_NEW, repeated=_NEW)
    walk.look("Your account", "Your password is changed. You were logged out everywhere else.")
    Session.objects.of(user.tenant_id).filter(user=user).update(authenticated_at=timezone.now() - timedelta(minutes=6))
    walk.open("/account/delete")
    walk.submit_login(user.email or "", _NEW)
    walk.submit(account="x")
    walk.look("Delete account", "Type the name of your account exactly.", status=400)
    walk.submit(account=user.email or "")
    walk.look("Your account is deleted", "You are logged out on all devices. You can close this page.")


def add_factors(walk: Walk) -> None:
    """Visit the page of every method that a user can add, and enroll an app.

    Other tests enroll a security key. It requires a host with a name, and these pages have an IP address.
    """
    _logged_in(walk, "add")
    _offer(walk)
    walk.look("Add a method", "Choose how you prove that it is you, in addition to your login.")
    for kind, heading in (("webauthn-roaming", "Set up a security key"), ("webauthn-platform", "Set up this device")):
        walk.follow(f"button[value={kind}]")
        walk.look(heading, "Choose another method")
        _offer(walk)
    walk.follow("button[value=phone]")
    walk.submit("main .section form button", phone_number="12")
    walk.look("Set up codes by text message", "Enter a phone number with the country code, such as +1 555 010 0000.", status=400)
    walk.submit("main .section form button", phone_number=NUMBER)
    walk.look("Set up codes by text message", "Use another phone number")
    walk.follow("button[name=again]")
    walk.look("Set up codes by text message", "There is a problem", status=429)
    _offer(walk)
    walk.follow("button[value=totp]")
    walk.submit("main .section form button", code="000000")
    walk.look("Set up an authenticator app", "The 6 digits that the app shows now.", status=400)
    walk.submit("main .section form button", code=code_now(walk.page.text(".key").replace(" ", "")))
    walk.look("Set up an authenticator app", "This is your new recovery code. Write it down now: it is not shown again.")
    walk.follow(".section a.button")
    walk.look("Two-step verification", "Get a new recovery code")


def _offer(walk: Walk) -> None:
    walk.open("/account/two-step")
    walk.follow(".section a.button")


def _logged_in(walk: Walk, name: str, **session: Any) -> User:
    user = walk.world.another_person(walk.unique(f"account-{name}"))
    walk.log_in_silently(user, **session)
    return user
