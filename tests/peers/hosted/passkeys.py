"""Visits of the login page that offers a login with a passkey, and of the page that offers to create a passkey."""

from __future__ import annotations

from tests.peers.hosted.walk import Walk
from tests.peers.hosted.world import PASSKEY_EMAIL

_AUTHENTICATOR = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
_REPORT = "document.querySelector('[name=can_make_passkeys]')"


def log_in(walk: Walk) -> None:
    walk.ask("with passkeys")
    walk.look("Log in", "Forgot password?")
    walk.submit_login(PASSKEY_EMAIL, "wrong")
    walk.look("Log in", "Wrong email address or password.", status=400)


def offer(walk: Walk) -> None:
    if walk.has_script:
        # Give the browser an authenticator: the script of the page asks the browser whether it has one.
        walk.page.send("WebAuthn.enable", enableUI=False)
        walk.page.send("WebAuthn.addVirtualAuthenticator", options=_AUTHENTICATOR)
    walk.ask("with passkeys")
    if walk.has_script:
        walk.page.until(f"{_REPORT}.value === '1'")
    else:
        walk.page.evaluate(f"{_REPORT}.value = '1'")
    walk.submit_login(PASSKEY_EMAIL)
    walk.look("Log in faster next time", "Create a passkey")
    walk.submit("button[value=later]")
