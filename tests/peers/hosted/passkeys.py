"""The visits of passkeys at a login: the page that asks for a passkey, and the offer to create one."""

from __future__ import annotations

from tests.peers.hosted.walk import Walk
from tests.peers.hosted.world import PASSKEY_EMAIL


def log_in(walk: Walk) -> None:
    walk.ask("with passkeys")
    walk.look("Log in", "Forgot password?")
    walk.submit_login(PASSKEY_EMAIL, "wrong")
    walk.look("Log in", "Wrong email address or password.", status=400)


def offer(walk: Walk) -> None:
    walk.ask("with passkeys")
    # A browser with an authenticator sends this value; its script sets it.
    walk.page.evaluate("document.querySelector('[name=can_make_passkeys]').value = '1'")
    walk.submit_login(PASSKEY_EMAIL)
    walk.look("Log in faster next time", "Create a passkey")
    walk.submit("button[value=later]")
